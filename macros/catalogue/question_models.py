"""The models that a question names: those of the catalog, and those that it lacks.

A name is read as a whole. The words of `Gemma 4 12B` are `gemma`, `4` and `12b`: a model whose names lack one of them
is not meant, and a name that no model has is reported as missing, along with the nearest models. `resolving` handles
the names that a hub, a file or Ollama uses: `unsloth/Qwen3-8B-GGUF:Q4_K_M`. A browser fetches that module only for a
name that no model of the catalog has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .question_catalog import Catalog, short
from .question_names import Absent, Named, is_date, is_version, slug_of
from .question_words import Token, chunks_of, in_one_piece, is_size, number_of, tokens_of

if TYPE_CHECKING:
    from .resolving import Meant

LONGEST = 9  # tokens of a model's name
MOST_NAMES = 2  # of models that a word may be part of and yet be another model's name
NO_NAMES = ("ing", "ed", "ly", "able")  # ends of words that are no names


class Models:
    """Reads the models of a question."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def find(
        self, question: str, tokens: Sequence[Token], gone: list[bool], said: Any, denied: Callable[[int], int]
    ) -> tuple[list[Named], list[Absent]]:
        """The models of a question, in its order, without those that it excludes; marks their tokens as read."""
        tokens = [Token(short(one.text), one.start, one.end, one.is_joined) for one in tokens]
        found: list[Named] = []
        absent: list[Absent] = []
        typed: dict[int, list[str]] = {}  # the words by which a model was named
        written = ""
        self._resolve(question, tokens, gone, said, found, absent)
        self._leave_publishers(question, tokens, gone)
        i = 0
        while i < len(tokens):
            is_first = not gone[i] and self.catalog.is_first(tokens[i].text)
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
                    typed[one.record] = [
                        token.text for token in tokens[start:end] if token.text not in self.catalog.noise
                    ]
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
            said.vague += [(written, found[0].title)] if found[0].is_one_of_several else []
        if len(found) == 1 and not found[0].is_sure:
            words = typed[found[0].record]
            said.sizes = self.catalog.sizes_of(words)
            if said.is_training or (not said.sizes and len(words) == 1):
                said.vague.append((written, found[0].title))
        return self.catalog.of_like_sizes(found, typed), absent

    def _leave_version(self, question: str, tokens: Sequence[Token], gone: list[bool], end: int, said: Any) -> None:
        """Report as unused the version of another model before a name: `Rombos v2.6 qwen 14b`."""
        start = end - 1
        if start < 0 or gone[start] or tokens[start].text[:1] != "v" or not is_version(tokens[start].text):
            return
        while start > 0 and not gone[start - 1] and not self.catalog.is_known(tokens[start - 1].text):
            start -= 1
        said.unused.append(question[tokens[start].start : tokens[end - 1].end])
        for n in range(start, end):
            gone[n] = True

    def _without_last(
        self, question: str, tokens: Sequence[Token], start: int, first: int, end: int, absent: Absent
    ) -> tuple[int, Named | Absent]:
        """A model whose name would end in a question word, without that word: `qwen2.5-vl 7b image tokens`."""
        last = tokens[end - 1].text
        is_word = last.isalpha() and last not in self.catalog.qualifiers and last not in self.catalog.size_words
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
        if is_name and between in (" ", "-", "_") and not self.catalog.is_known(word, MOST_NAMES):
            said.unused.append(question[tokens[n].start : tokens[n].end])
            gone[n] = True

    def _of_size_apart(self, tokens: Sequence[Token], gone: list[bool], family: Sequence[str]) -> Named | None:
        """The model of a family whose size is elsewhere in the question: `gemma 3 kv cache of the 27b`."""
        sizes = [n for n, token in enumerate(tokens) if not gone[n] and is_size(token.text)]
        if len(sizes) != 1 or any(map(is_size, family)):
            return None
        one = self.catalog.closest([*family, tokens[sizes[0]].text])
        if one is not None:
            gone[sizes[0]] = True
        return one

    def _read_more_sizes(
        self, question: str, tokens: Sequence[Token], gone: list[bool], start: int, end: int, found: list[Named]
    ) -> None:
        """Read the further sizes of a family: of `qwen3 8b, 14b and 32b` the last two."""
        words = self.catalog.kept(tokens[start:end])
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
            one = self.catalog.closest([*words[: sizes[0]], tokens[at].text])
            if one is None:
                return
            gone[at] = True
            at += 1
            if all(other.record != one.record for other in found):
                found.append(one)

    def _note_alias(self, typed: str, tokens: Sequence[Token], one: Named, said: Any) -> None:
        """Note that a model was named by another one with the same shapes."""
        words = [token.text for token in tokens if not is_size(token.text) and token.text != "meta"]
        own = self.catalog.entries[one.record].own
        if any(word not in own and word not in self.catalog.noise and word not in self.catalog.plain for word in words):
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
            one = self.catalog.resolver.resolve(name)
            called = self.catalog.resolver.reference(name).name
            if not one.slug and ("/" not in name or ("://" in name and not self._is_of_hub(called))):
                continue
            if not one.slug:
                absent.append(Absent(called, name, self._near_to(name, one)))
            elif all(slug_of(self.catalog.records[other.record][0]) != one.slug for other in found):
                found.append(self.catalog.as_named(self.catalog.of_slug[one.slug], True))
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
            return self.catalog.resolver.reference(name).name != ""
        if slash:
            is_name = has_number or ("-" in rest and any(map(self.catalog.is_first, words)))
            return is_name and len(publisher) > 1 and len(words) > 1 and not is_size(words[0])
        is_file = rest.lower().endswith(".gguf") or ":" in rest.strip(":")
        return has_number and is_file and len(words) > 1 and self.catalog.is_first(words[0])

    def _near_to(self, name: str, one: Meant) -> list[Named]:
        """The models that a hub name could mean, those whose names it contains, and those that share its words."""
        inside = [other.slug for other in self.catalog.resolver.contained(name)]
        slugs = [*one.candidates, *inside][:2]
        return [self.catalog.as_named(self.catalog.of_slug[slug], True) for slug in slugs] or self.catalog.nearest(
            self.catalog.cut(self.catalog.resolver.reference(name).name)
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
        words = self.catalog.words.get(first, set())
        end, has_size = start + 1, False
        while end < min(len(tokens), start + LONGEST) and not gone[end]:
            text = tokens[end].text
            number = number_of(text)
            is_bare = number is not None and number.suffix == ""
            is_of_names = text in words and not (is_bare and has_size and number is not None and number.digits < 1000)
            if (
                has_size
                and is_size(text)
                and not self.catalog.has_both(text, [token.text for token in tokens[start:end]])
            ):
                break  # of `qwen3 8b, 14b` another model
            is_sized = is_size(text) and not has_size
            has_version = is_version(text) and not has_size and self._may_be_version(text, tokens, start, end, words)
            is_next = not has_size and end + 1 < len(tokens) and not gone[end + 1] and is_size(tokens[end + 1].text)
            is_unknown = is_next and (is_bare and is_date(text) or text.isalpha() and not self.catalog.is_known(text))
            is_unknown = is_unknown or (is_bare and not has_size and is_date(text))  # `mistral large 2411`
            is_more = is_of_names or is_sized or has_version or is_unknown  # `small 2409 22b`, `aya expanse 32b`
            if not (is_more or text in self.catalog.noise or text in self.catalog.qualifiers):
                break
            has_size = has_size or is_size(text)
            end += 1
        return end

    def _whole(self, tokens: Sequence[Token], gone: Sequence[bool], start: int) -> int:
        """The end of a name none of whose parts is itself a name: `a.x-k1`."""
        for end in range(min(len(tokens), start + LONGEST), start + 1, -1):
            key = "".join(self.catalog.kept(tokens[start:end]))
            is_known = len(key) > 2 and (key in self.catalog.entry_of or key in self.catalog.hub_of)
            if is_known and in_one_piece(tokens, gone, start, end):
                return end
        return start

    def _whole_chunk(self, question: str, tokens: Sequence[Token], gone: Sequence[bool], start: int, end: int) -> int:
        """The end of a name that continues after a hyphen with unknown words: `Qwen3-8B-abliterated`."""
        last = end
        while last < len(tokens) and not gone[last] and question[tokens[last - 1].end : tokens[last].start] == "-":
            last += 1
        rest = [token.text for token in tokens[end:last]]
        is_more = any(word.isalpha() and len(word) > 2 and not self.catalog.is_known(word) for word in rest)
        text = question[tokens[start].start : tokens[last - 1].end]
        return last if is_more and not self.catalog.resolver.resolve(text).slug else end

    def _begin(self, tokens: Sequence[Token], gone: Sequence[bool], start: int, end: int) -> int:
        """Where a name starts that a model has together with the words before it: `r1 distill llama 70b`."""
        at = start
        while at > 0 and not gone[at - 1] and start - at < 3:
            at -= 1
            if tokens[at].text.isdigit():
                continue  # a value before a name: `--pipeline-parallel-size 2 llama 70b`
            asked = self.catalog.kept(tokens[at:end])
            if self.catalog.closest(asked) is not None:
                start = at
        return start

    def _may_be_version(self, text: str, tokens: Sequence[Token], start: int, end: int, words: set[str]) -> bool:
        """Whether a number is a generation: it follows the name's words, with a letter only where names have one."""
        if text[:1].isdigit():
            return not any(token.text[:1].isdigit() for token in tokens[start + 1 : end])
        return any(word[:1] == text[:1] and word[1:2].isdigit() for word in words)

    def _named(self, question: str, tokens: Sequence[Token], start: int, first: int, end: int) -> Named | Absent | None:
        """What the tokens of a name mean."""
        asked = self.catalog.kept(tokens[start:end])
        kept = [
            word
            for word in asked
            if word not in self.catalog.qualifiers or any(word in w for w in self.catalog.words.values())
        ]
        key = "".join(asked)
        if key in self.catalog.entry_of and (len(asked) > 1 or (len(key) > 2 and key not in self.catalog.plain)):
            return self.catalog.as_named(self.catalog.entry_of[key], True)
        exact = [hub for name, hub in self.catalog.lacking if set(name) == set(asked)]
        exact = [self.catalog.hub_of[key]] if key in self.catalog.hub_of else exact
        one = self.catalog.closest(asked)
        if one is not None and not exact:
            is_long = len(asked[0]) > 2 or asked[0][-1:].isdigit()  # `t5`
            is_name = len(asked) > 1 or (is_long and asked[0] not in self.catalog.plain)
            return one if is_name else None
        hub = exact[0] if exact else next((hub for name, hub in self.catalog.lacking if set(asked) <= set(name)), "")
        if not hub and tokens[first].text in self.catalog.plain and not self.catalog.begins_name(asked):
            return None
        if not hub and len(kept) < 2 and not (len(asked) == 1 and asked[0] in self.catalog.makers):
            return None
        while tokens[end - 1].text in self.catalog.noise and end - 1 > start:
            end -= 1
        typed = question[tokens[start].start : tokens[end - 1].end]
        inside = self.catalog.resolver.contained(typed)
        near = [self.catalog.as_named(self.catalog.of_slug[other.slug], True) for other in inside]
        near += [one for one in self.catalog.nearest(asked) if all(one.slug != other.slug for other in near)]
        return Absent(
            hub.rpartition("/")[2] if exact else typed,
            hub if exact else "",
            near[:2],
            self.catalog.has_other_size(asked),
        )

    def _unheard(self, question: str, tokens: Sequence[Token], gone: list[bool]) -> list[Absent]:
        """An unknown name: a word that is not a question word, followed by a size."""
        for i, token in enumerate(tokens):
            text = token.text
            is_word = text.isalpha() and len(text) > 2 and not gone[i] and not self.catalog.is_known(text, MOST_NAMES)
            if not is_word:
                continue
            end = i + 1
            while end < len(tokens) and not gone[end] and self.catalog.continues(tokens[end].text):
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


def _is_lettered(word: str) -> bool:
    """A version with its letter: `v3.1`."""
    return word[:1] == "v" and is_version(word)
