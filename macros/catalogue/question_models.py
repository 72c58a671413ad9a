"""The models that a question names, in one module: those of the catalog, and those that it lacks.

A name is read as a whole. The words of `Gemma 4 12B` are `gemma`, `4` and `12b`: a model whose names lack one of them
is not meant, and a name that no model has is reported as missing, along with the nearest models. `resolving` handles
the names that a hub, a file or Ollama uses: `unsloth/Qwen3-8B-GGUF:Q4_K_M`. A browser fetches that module only for a
name that no model of the catalog has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .question_names import Absent, Entry, Named, is_before, is_date, is_member, is_version, likeness, slug_of
from .question_words import Token, chunks_of, in_one_piece, is_near, is_size, number_of, parameters_of, tokens_of

if TYPE_CHECKING:
    from .resolving import Meant, Resolver

LONGEST = 9  # tokens of a model's name
MOST_TIMES = 10**6  # how many times as large a model of unknown size is assumed to be
LIKE = Fraction(5, 4)  # how many times as large one of two similar models may be
MOST_NAMES = 2  # number of models whose names a word may be part of and still be another model's name
NO_NAMES = ("ing", "ed", "ly", "able")  # ends of words that are not names
SHORTEST_NEAR = 4  # minimum letters of a word that may be misspelled


class Models:
    """The names of models, prepared for matching."""

    def __init__(
        self,
        names: Mapping[str, Any],
        records: Sequence[Sequence[str]],
        known: set[str],
        resolving: type[Resolver] | None,
    ) -> None:
        self.records = records
        self.resolving = resolving
        self.noise: set[str] = set(names["noise"])
        self.plain: set[str] = set(names["plain"])
        self.qualifiers: set[str] = set(names["qualifiers"])
        self.size_words: set[str] = set(names["size_words"])
        self.known = known
        self.formats: list[str] = list(names["formats"])
        self.entries: list[Entry] = []
        self.called: dict[str, tuple[str, Sequence[str], str]] = {}  # title, other names and size of a model, by slug
        self.sizes: list[int] = []  # parameters, as the maker rounds them; 0 if it does not
        for record, (short, headline, *_) in enumerate(names["models"]):
            title, slug = records[record][1], slug_of(records[record][0])
            hub = short[0] + title.replace(" ", "-") if short[0].endswith("/") else short[0]
            others = [hub, *short[1:]]
            place = -1 if record in names["unlisted"] else len(records) - record  # the newest first
            self.called[slug] = (title, others, headline)
            cut = [self._cut(name) for name in (title, slug, *[name.rpartition("/")[2] for name in others])]
            size = headline.lower()
            self.sizes.append(parameters_of(size.partition("-")[0]))
            cut += [[*name, size] for name in cut if is_size(size) and not any(map(is_size, name))]
            own = {word for name in cut[:3] for word in name}
            self.entries.append(Entry(record, place, cut, own))
        self.lacking = [(self._cut(hub.rpartition("/")[2]), hub) for hub in names["lacking"]]
        self.words: dict[str, set[str]] = {}  # of all names that start with a word
        self.entry_of: dict[str, Entry] = {}  # by its names run together
        self.hub_of: dict[str, str] = {}  # of models that the catalog lacks
        for name in [name for entry in self.entries for name in entry.names] + [name for name, _ in self.lacking]:
            if name:
                self.words[name[0]] = {*self.words.get(name[0], set()), *name}
        for entry in self.entries:
            for name in entry.names:
                self.entry_of.setdefault("".join(name), entry)
        for name, hub in self.lacking:
            self.hub_of.setdefault("".join(name), hub)
        self.makers: set[str] = set(names["makers"])  # of models for which no name is known

    @cached_property
    def _resolver(self) -> Resolver:
        if self.resolving is None:
            raise KeyError("resolving")  # a browser fetches it and parses the question again
        return self.resolving(self.called, self.formats)

    @cached_property
    def _of_slug(self) -> dict[str, Entry]:
        return {slug_of(self.records[entry.record][0]): entry for entry in self.entries}

    def _cut(self, name: str) -> list[str]:
        return [_short(token.text) for token in tokens_of(name) if token.text not in self.noise]

    def is_first(self, word: str) -> bool:
        """Whether a model's name starts with a word."""
        return (word in self.words or word in self.makers) and word[:1].isalpha() and len(word) > 1

    def near(self, word: str, terms: Sequence[str]) -> str:
        """The only known word that differs by one letter from a misspelled one; empty if the word is known, or if there
        is no such word."""
        if len(word) < SHORTEST_NEAR or not word.isalpha() or not word.isascii() or self._is_known(word):
            return ""
        firsts = [first for first in self.words if first.isalpha() and (len(first) > 4 or first == "qwen")]
        for known in (firsts, terms if len(word) > 5 else []):
            found = [name for name in known if name not in (*self.plain, f"{word}s") and is_near(word, name)]
            if found:
                return found[0] if len(found) == 1 else ""
        return ""

    def _is_known(self, word: str, most: int = 0) -> bool:
        """Whether a word occurs in questions or in model names; with `most`, in more than `most` names."""
        singular = word.removesuffix("s")
        if any(one in self.known or (one in self.words and not most) for one in (word, singular)):
            return True
        return len([1 for entry in self.entries if any(word in name for name in entry.names)]) > most

    def _continues(self, word: str) -> bool:
        """Whether a word continues the name of an unknown model: `3.1`, `Max`, `70b`, `a3b`."""
        is_active = word[:1] == "a" and is_size(word[1:])
        number = number_of(word)
        is_bare = number is not None and number.suffix == ""
        return is_bare or is_version(word) or is_size(word) or is_active or word in self.qualifiers

    def find(
        self, question: str, tokens: Sequence[Token], gone: list[bool], said: Any, denied: Callable[[int], int]
    ) -> tuple[list[Named], list[Absent]]:
        """The models of a question, in its order, without those that it excludes; marks their tokens as read."""
        tokens = [Token(_short(one.text), one.start, one.end, one.is_joined) for one in tokens]
        found: list[Named] = []
        absent: list[Absent] = []
        typed: dict[int, list[str]] = {}  # the words by which a model was named
        written = ""
        self._resolve(question, tokens, gone, said, found, absent)
        self._leave_publishers(question, tokens, gone)
        i = 0
        while i < len(tokens):
            is_first = not gone[i] and self.is_first(tokens[i].text)
            end = self._whole(tokens, gone, i)
            if is_first:
                end = max(end, self._end(tokens, gone, i))
            if end == i:
                i += 1
                continue
            start = i
            is_size_before = i > 0 and not gone[i - 1] and is_size(tokens[i - 1].text)
            if is_size_before and not any(is_size(token.text) for token in tokens[i:end]):
                start = i - 1
            start = self._begin(tokens, gone, start, end)
            end = self._whole_chunk(question, tokens, gone, start, end)
            one = self._named(question, tokens, start, i, end)
            if isinstance(one, Absent):
                end, one = self._without_last(question, tokens, start, i, end, one)
            if one is not None and denied(start) >= 0:
                said.unused.append(question[tokens[denied(start)].start : tokens[end - 1].end])
            elif isinstance(one, Named):
                self._note_alias(question[tokens[start].start : tokens[end - 1].end], tokens[start:end], one, said)
                if all(other.record != one.record for other in found):
                    found.append(one)
                    written = question[tokens[start].start : tokens[end - 1].end]
                    said.vague += [(written, one.title)] if one.is_one_of_several else []
                    self._leave_version(question, tokens, gone, start, said)
                    self._leave_name(question, tokens, gone, start, said)
                    typed[one.record] = [token.text for token in tokens[start:end] if token.text not in self.noise]
            elif one is not None:
                absent.append(one)
            if one is not None:
                for n in range(start, end):
                    gone[n] = True
            i = end
            if isinstance(one, Named):
                self._read_more_sizes(question, tokens, gone, start, end, found)
        if not found and not absent:
            absent = self._unheard(question, tokens, gone)
        if len(found) == 1 and not found[0].is_sure and found[0].record in typed:
            found = [self._of_size_apart(tokens, gone, typed[found[0].record]) or found[0]]
        if len(found) == 1 and not found[0].is_sure:
            words = typed[found[0].record]
            said.sizes = self._sizes_of(words)
            if said.is_training or (not said.sizes and len(words) == 1):
                said.vague.append((written, found[0].title))
        return self._of_like_sizes(found, typed), absent

    def _leave_version(self, question: str, tokens: Sequence[Token], gone: list[bool], end: int, said: Any) -> None:
        """Report as unused the version of another model before a name: `Rombos v2.6 qwen 14b`."""
        start = end - 1
        if start < 0 or gone[start] or tokens[start].text[:1] != "v" or not is_version(tokens[start].text):
            return
        while start > 0 and not gone[start - 1] and not self._is_known(tokens[start - 1].text):
            start -= 1
        said.unused.append(question[tokens[start].start : tokens[end - 1].end])
        for n in range(start, end):
            gone[n] = True

    def _without_last(
        self, question: str, tokens: Sequence[Token], start: int, first: int, end: int, absent: Absent
    ) -> tuple[int, Named | Absent]:
        """A model whose name would end in a question word, without that word: `qwen2.5-vl 7b image tokens`."""
        last = tokens[end - 1].text
        is_word = last.isalpha() and last not in self.qualifiers and last not in self.size_words
        if (
            is_word
            and not absent.hub
            and end - 1 > first
            and question[tokens[end - 2].end : tokens[end - 1].start] != "-"
        ):
            one = self._named(question, tokens, start, first, end - 1)
            if isinstance(one, Named):
                return end - 1, one
        return end, absent

    def _leave_name(self, question: str, tokens: Sequence[Token], gone: list[bool], end: int, said: Any) -> None:
        """Report as unused an unknown word before a name, which may turn it into another model: `dolphin mixtral`."""
        n = end - 1
        if n < 0 or gone[n]:
            return
        word = tokens[n].text
        is_name = word.isalpha() and word.isascii() and len(word) > 3 and not word.endswith(NO_NAMES)
        between = question[tokens[n].end : tokens[end].start]
        if is_name and between in (" ", "-", "_") and not self._is_known(word, MOST_NAMES):
            said.unused.append(question[tokens[n].start : tokens[n].end])
            gone[n] = True

    def _of_size_apart(self, tokens: Sequence[Token], gone: list[bool], family: Sequence[str]) -> Named | None:
        """The model of a family whose size is elsewhere in the question: `gemma 3 kv cache of the 27b`."""
        sizes = [n for n, token in enumerate(tokens) if not gone[n] and is_size(token.text)]
        if len(sizes) != 1 or any(map(is_size, family)):
            return None
        one = self._closest([*family, tokens[sizes[0]].text])
        if one is not None:
            gone[sizes[0]] = True
        return one

    def _read_more_sizes(
        self, question: str, tokens: Sequence[Token], gone: list[bool], start: int, end: int, found: list[Named]
    ) -> None:
        """Read the further sizes of a family: the last two in `qwen3 8b, 14b and 32b`."""
        words = [token.text for token in tokens[start:end] if token.text not in self.noise]
        sizes = [n for n, word in enumerate(words) if is_size(word)]
        is_more = is_size if sizes else _is_lettered  # the last two in `deepseek v3 vs v3.1 vs v3.2`
        sizes = sizes or [n for n, word in enumerate(words) if _is_lettered(word)]
        at = end
        while len(sizes) == 1 and at < len(tokens):
            between = question[tokens[at - 1].end : tokens[at].start].strip()
            is_joined = between in (",", "/", "&", "+") or tokens[at].text in ("and", "or", "vs", "versus")
            if not is_joined or gone[at]:
                return
            at += 0 if is_more(tokens[at].text) else 1
            while at < len(tokens) and tokens[at].text == "the":
                at += 1
            if at >= len(tokens) or gone[at] or not is_more(tokens[at].text):
                return
            one = self._closest([*words[: sizes[0]], tokens[at].text])
            if one is None:
                return
            gone[at] = True
            at += 1
            if all(other.record != one.record for other in found):
                found.append(one)

    def _note_alias(self, typed: str, tokens: Sequence[Token], one: Named, said: Any) -> None:
        """Note that a model was named by another one with the same shapes."""
        words = [token.text for token in tokens if not is_size(token.text) and token.text != "meta"]
        own = self.entries[one.record].own
        if any(word not in own and word not in self.noise and word not in self.plain for word in words):
            said.alike.append((typed, one.title))

    def _resolve(
        self,
        question: str,
        tokens: Sequence[Token],
        gone: list[bool],
        said: Any,
        found: list[Named],
        absent: list[Absent],
    ) -> None:
        """Read the names of hub repositories, files and Ollama tags, each as a whole."""
        for start, end in chunks_of(question):
            name = question[start:end].strip(".,;!?()`\"'")
            if not self._is_of_hub(name):
                continue
            one = self._resolver.resolve(name)
            called = self._resolver.reference(name).name
            if not one.slug and ("/" not in name or ("://" in name and not self._is_of_hub(called))):
                continue
            if not one.slug:
                absent.append(Absent(called, name, self._near_to(name, one)))
            elif all(slug_of(self.records[other.record][0]) != one.slug for other in found):
                found.append(self._as_named(self._of_slug[one.slug], True))
                if "/" not in name:
                    self._note_alias(name, tokens_of(called), found[-1], said)
                elif "the same shapes" in one.why:
                    said.alike.append((name, found[-1].title))
                said.format = said.format or one.format or None
            for i, token in enumerate(tokens):
                if start <= token.start < end:
                    gone[i] = True

    def _is_of_hub(self, name: str) -> bool:
        """Whether a string may name a repository or a file, or be a tag: `Qwen/Qwen3-8B`, `qwen3:8b`; not
        `tokens/s`."""
        repository = "/".join(name.split("/")[:2])  # of `organization/name/folder/file`
        if "://" not in name and repository != name and self._is_of_hub(repository):
            return True
        publisher, slash, rest = name.rpartition("/")
        words = [token.text for token in tokens_of(rest)]
        has_number = any(c.isdigit() for c in rest) and any(c.isalpha() for c in rest)
        if "://" in publisher:
            return self._resolver.reference(name).name != ""
        if slash:
            is_name = has_number or ("-" in rest and any(map(self.is_first, words)))
            return is_name and len(publisher) > 1 and len(words) > 1 and not is_size(words[0])
        is_file = rest.lower().endswith(".gguf") or ":" in rest.strip(":")
        return has_number and is_file and len(words) > 1 and self.is_first(words[0])

    def _near_to(self, name: str, one: Meant) -> list[Named]:
        """The models that a hub name could mean: those whose names it contains, and those that share its words."""
        inside = [other.slug for other in self._resolver.contained(name)]
        slugs = [*one.candidates, *inside][:2]
        return [self._as_named(self._of_slug[slug], True) for slug in slugs] or self._nearest(
            self._cut(self._resolver.reference(name).name)
        )

    def _leave_publishers(self, question: str, tokens: Sequence[Token], gone: list[bool]) -> None:
        """Drop the publisher, which is not part of a model's name: `meta-llama/`, `unsloth/`."""
        for n, token in enumerate(tokens):
            rest = question[token.end :]
            if rest[:1] != "/" or not rest[1:2].isalnum():
                continue
            at = n
            while at > 0 and question[tokens[at - 1].end : tokens[at].start] in ("", "-", "_", "."):
                at -= 1
            if (
                "-" not in rest.split()[0]
                and "." not in rest.split()[0]
                and not any(c.isdigit() for c in rest.split()[0])
            ):
                continue
            for i in range(at, n + 1):
                gone[i] = True

    def _end(self, tokens: Sequence[Token], gone: Sequence[bool], start: int) -> int:
        """The end of the model name that starts at a token: after the words of the names that start this way, sizes,
        versions and qualifiers."""
        first = tokens[start].text
        words = self.words.get(first, set())
        end, has_size = start + 1, False
        while end < min(len(tokens), start + LONGEST) and not gone[end]:
            text = tokens[end].text
            number = number_of(text)
            is_bare = number is not None and number.suffix == ""
            is_of_names = text in words and not (is_bare and has_size and number is not None and number.digits < 1000)
            if has_size and is_size(text) and not self._has_both(text, [token.text for token in tokens[start:end]]):
                break  # another model in `qwen3 8b, 14b`
            is_sized = is_size(text) and not has_size
            has_version = is_version(text) and not has_size and self._may_be_version(text, tokens, start, end, words)
            is_next = not has_size and end + 1 < len(tokens) and not gone[end + 1] and is_size(tokens[end + 1].text)
            is_unknown = is_next and (is_bare and is_date(text) or text.isalpha() and not self._is_known(text))
            is_unknown = is_unknown or (is_bare and not has_size and is_date(text))  # `mistral large 2411`
            is_more = is_of_names or is_sized or has_version or is_unknown  # `small 2409 22b`, `aya expanse 32b`
            if not (is_more or text in self.noise or text in self.qualifiers):
                break
            has_size = has_size or is_size(text)
            end += 1
        return end

    def _has_both(self, size: str, words: Sequence[str]) -> bool:
        """Whether a name that starts with the same word has this size in addition to those that came before."""
        names = [name for entry in self.entries for name in entry.names if name[:1] == [*words[:1]] and size in name]
        return any(all(word in name for word in words if is_size(word)) for name in names)

    def _whole(self, tokens: Sequence[Token], gone: Sequence[bool], start: int) -> int:
        """The end of a name none of whose parts is itself a name: `a.x-k1`."""
        for end in range(min(len(tokens), start + LONGEST), start + 1, -1):
            key = "".join([token.text for token in tokens[start:end] if token.text not in self.noise])
            is_known = len(key) > 2 and (key in self.entry_of or key in self.hub_of)
            if is_known and in_one_piece(tokens, gone, start, end):
                return end
        return start

    def _whole_chunk(self, question: str, tokens: Sequence[Token], gone: Sequence[bool], start: int, end: int) -> int:
        """The end of a name that continues after a hyphen with unknown words: `Qwen3-8B-abliterated`."""
        last = end
        while last < len(tokens) and not gone[last] and question[tokens[last - 1].end : tokens[last].start] == "-":
            last += 1
        rest = [token.text for token in tokens[end:last]]
        is_more = any(word.isalpha() and len(word) > 2 and not self._is_known(word) for word in rest)
        text = question[tokens[start].start : tokens[last - 1].end]
        return last if is_more and not self._resolver.resolve(text).slug else end

    def _begin(self, tokens: Sequence[Token], gone: Sequence[bool], start: int, end: int) -> int:
        """Where a name starts that a model has together with the words before it: `r1 distill llama 70b`."""
        at = start
        while at > 0 and not gone[at - 1] and start - at < 3:
            at -= 1
            if tokens[at].text.isdigit():
                continue  # a value before a name: `--pipeline-parallel-size 2 llama 70b`
            asked = [token.text for token in tokens[at:end] if token.text not in self.noise]
            if self._closest(asked) is not None:
                start = at
        return start

    def _may_be_version(self, text: str, tokens: Sequence[Token], start: int, end: int, words: set[str]) -> bool:
        """Whether a number is a generation: it follows the name's words, with a letter only where names have one."""
        if text[:1].isdigit():
            return not any(token.text[:1].isdigit() for token in tokens[start + 1 : end])
        return any(word[:1] == text[:1] and word[1:2].isdigit() for word in words)

    def _named(self, question: str, tokens: Sequence[Token], start: int, first: int, end: int) -> Named | Absent | None:
        """What the tokens of a name refer to."""
        asked = [token.text for token in tokens[start:end] if token.text not in self.noise]
        kept = [word for word in asked if word not in self.qualifiers or any(word in w for w in self.words.values())]
        key = "".join(asked)
        if key in self.entry_of and (len(asked) > 1 or (len(key) > 2 and key not in self.plain)):
            return self._as_named(self.entry_of[key], True)
        exact = [hub for name, hub in self.lacking if set(name) == set(asked)]
        exact = [self.hub_of[key]] if key in self.hub_of else exact
        one = self._closest(asked)
        if one is not None and not exact:
            is_long = len(asked[0]) > 2 or asked[0][-1:].isdigit()  # `t5`
            is_name = len(asked) > 1 or (is_long and asked[0] not in self.plain)
            return one if is_name else None
        hub = exact[0] if exact else next((hub for name, hub in self.lacking if set(asked) <= set(name)), "")
        if not hub and tokens[first].text in self.plain and not self._begins_name(asked):
            return None
        if not hub and len(kept) < 2 and not (len(asked) == 1 and asked[0] in self.makers):
            return None
        while tokens[end - 1].text in self.noise and end - 1 > start:
            end -= 1
        typed = question[tokens[start].start : tokens[end - 1].end]
        inside = self._resolver.contained(typed)
        near = [self._as_named(self._of_slug[other.slug], True) for other in inside]
        near += [one for one in self._nearest(asked) if all(one.slug != other.slug for other in near)]
        return Absent(
            hub.rpartition("/")[2] if exact else typed, hub if exact else "", near[:2], self._has_other_size(asked)
        )

    def _has_other_size(self, asked: Sequence[str]) -> bool:
        """Whether a model has this name with another size."""
        words = {word for word in asked if not is_size(word)}
        is_dated = any(map(is_version, words)) or len(words) > 1
        return is_dated and any(is_member(entry, [*words]) for entry in self.entries)

    def _begins_name(self, asked: Sequence[str]) -> bool:
        """Whether some name starts with the first two requested words, or with the first and a version: `command r`,
        `step 3.5`, not `open source`."""
        if len(asked) < 3:
            return False
        names = [name for entry in self.entries for name in entry.names if name[:1] == [*asked[:1]]]
        is_versioned = is_version(asked[1]) and any(is_version(word) for name in names for word in name[1:2])
        return is_versioned or any(name[:2] == [*asked[:2]] for name in names)

    def _closest(self, asked: Sequence[str]) -> Named | None:
        """The model whose name has all of these words and the fewest others; the newest if there are several."""
        best, least, several = None, 0, 0
        wanted = set(asked)
        for entry in self.entries:
            for name in entry.names:
                if not all(word in name for word in asked):
                    continue
                more = len(set(name)) - len(wanted)
                if best is None or more < least:
                    best, least, several = entry, more, 0
                elif more == least and best.record != entry.record:
                    several += 1
                    best = entry if is_before(entry.place, best.place) else best
        if best is None:
            return None
        is_sized = any(map(is_size, asked))
        return self._as_named(best, least == 0 or several == 0 or is_sized, least > 0 and several > 0 and is_sized)

    def _as_named(self, entry: Entry, is_sure: bool, is_one_of_several: bool = False) -> Named:
        address, title = self.records[entry.record]
        return Named(entry.record, slug_of(address), title, address, entry.place >= 0, is_sure, is_one_of_several)

    def _of_like_sizes(self, found: list[Named], typed: Mapping[int, Sequence[str]]) -> list[Named]:
        """Two models, one or both given only as families, as two models of similar size: newest and largest first."""
        if len(found) != 2 or (found[0].is_sure and found[1].is_sure) or not all(one.is_listed for one in found):
            return found
        best, least = (found[0], found[1]), Fraction(0)
        members = [self._members(one, typed[one.record] if one.record in typed else []) for one in found]
        for a in members[0]:
            for b in members[1]:
                sizes = [self.sizes[one.record] for one in (a, b)]
                if min(sizes) < 1 or a.record == b.record:
                    continue
                ratio = Fraction(max(sizes), min(sizes))
                if least == 0 or (ratio < least and least > LIKE):
                    best, least = (a, b), ratio
        return [*best]

    def _members(self, one: Named, typed: Sequence[str]) -> list[Named]:
        """The models that a name may mean: the one it names, or those with all of its words, shortest names first."""
        if one.is_sure:
            return [one]
        found: list[tuple[int, int, Entry]] = []
        for entry in self.entries:
            more = [
                len([word for word in name if word not in typed and not is_size(word)])
                for name in entry.names
                if name[:1] == [*typed[:1]] and all(word in name for word in typed)
            ]
            if more and entry.place >= 0:
                found.append((min(more), entry.place, entry))
        return [self._as_named(entry, False) for _, _, entry in sorted(found, key=lambda one: one[:2])]

    def _sizes_of(self, family: Sequence[str]) -> list[Named]:
        """The models whose names are a family's and a size, smallest first; empty unless there are several."""
        found: list[tuple[int, int, Entry]] = []
        for entry in self.entries:
            rests = [name[len(family) :] for name in entry.names if name[: len(family)] == [*family]]
            if entry.place >= 0 and any(map(self._is_of_sizes, rests)):
                found.append((self.sizes[entry.record], entry.record, entry))
        if len(found) < 2:
            return []
        return [self._as_named(entry, True) for _, _, entry in sorted(found, key=lambda one: one[:2])]

    def _is_of_sizes(self, words: Sequence[str]) -> bool:
        """Whether words are a size: `8b`, `small`, `30b a3b`."""
        if len(words) == 1:
            return is_size(words[0]) or words[0] in self.size_words
        return len(words) == 2 and is_size(words[0]) and words[1][:1] == "a" and is_size(words[1][1:])

    def _nearest(self, asked: Sequence[str]) -> list[Named]:
        """The models that share most words with a name, newest first; none that shares only a size."""
        words = [word for word in asked if not is_size(word)]
        size = max([0, *[parameters_of(word) for word in asked]])
        best: list[tuple[bool, int, Fraction, int, Entry]] = []
        for entry in self.entries:
            shared = max([sum([likeness(word, name) for word in asked]) for name in entry.names if name])
            if any(word in name for name in entry.names for word in words[:1]):
                is_later = not any(name[:1] == words[:1] for name in entry.names)
                sizes = sorted([size, self.sizes[entry.record]])
                times = Fraction(sizes[1], sizes[0]) if sizes[0] else Fraction(MOST_TIMES if size else 1)
                place = entry.place if entry.place >= 0 else len(self.entries)
                best.append((is_later, -shared, times, place, entry))
        found = sorted(best, key=lambda one: one[:4])
        return [self._as_named(one[4], True) for one in found[:2]]

    def _unheard(self, question: str, tokens: Sequence[Token], gone: list[bool]) -> list[Absent]:
        """An unknown name: a word that is not a question word, followed by a size."""
        for i, token in enumerate(tokens):
            text = token.text
            is_word = text.isalpha() and len(text) > 2 and not gone[i] and not self._is_known(text, MOST_NAMES)
            if not is_word:
                continue
            end = i + 1
            while end < len(tokens) and not gone[end] and self._continues(tokens[end].text):
                end += 1
            has_size = any(is_size(one.text) and one.text.endswith("b") for one in tokens[i + 1 : end])
            is_written_as_name = question[token.start : token.start + 1].isupper() or (
                end > i + 1 and question[token.end : tokens[i + 1].start] in ("-", "")
            )
            if end > i + 1 and (has_size or (is_written_as_name and i + 1 < len(tokens))):
                if not has_size and not is_written_as_name:
                    continue
                for n in range(i, end):
                    gone[n] = True
                return [Absent(question[token.start : tokens[end - 1].end], "", [])]
        return []


def _short(word: str) -> str:
    """A version without a zero: `4.0` -> `4`."""
    return word.removesuffix(".0") if word[:1].isdigit() or word[:1] == "v" else word


def _is_lettered(word: str) -> bool:
    """A version with its letter: `v3.1`."""
    return word[:1] == "v" and is_version(word)
