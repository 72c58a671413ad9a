"""The names of the catalog's models, and the model that the words of a name mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .question_names import Entry, Named, is_before, is_member, is_version, likeness, slug_of
from .question_words import Token, is_near, is_size, number_of, parameters_of, tokens_of, without_doubles

if TYPE_CHECKING:
    from .resolving import Resolver

MOST_TIMES = 10**6  # how many times as large a model of no known size is taken to be
LIKE = Fraction(5, 4)  # how many times as large one of two like models may be
SHORTEST_NEAR = 4  # letters of a word that may be misspelled


class Catalog:
    """The names of models, prepared."""

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
            cut = [self.cut(name) for name in (title, slug, *[name.rpartition("/")[2] for name in others])]
            size = headline.lower()
            self.sizes.append(parameters_of(size.partition("-")[0]))
            cut += [[*name, size] for name in cut if is_size(size) and not any(map(is_size, name))]
            own = {word for name in cut[:3] for word in name}
            self.entries.append(Entry(record, place, cut, own))
        self.lacking = [(self.cut(hub.rpartition("/")[2]), hub) for hub in names["lacking"]]
        self.families: dict[str, int] = {}  # how many models have names that begin with a word
        for entry in self.entries:
            first = entry.names[0][0]
            self.families[first] = self.families.get(first, 0) + 1
        self.words: dict[str, set[str]] = {}  # of all names that begin with a word
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
        self.makers: set[str] = set(names["makers"])  # of models of which no name is known

    @cached_property
    def resolver(self) -> Resolver:
        if self.resolving is None:
            raise KeyError("resolving")  # a browser fetches it, and reads the question again
        return self.resolving(self.called, self.formats)

    @cached_property
    def of_slug(self) -> dict[str, Entry]:
        return {slug_of(self.records[entry.record][0]): entry for entry in self.entries}

    def cut(self, name: str) -> list[str]:
        return [short(token.text) for token in tokens_of(name) if token.text not in self.noise]

    def kept(self, tokens: Sequence[Token]) -> list[str]:
        """The words of a name, without those that only say for what a model was tuned."""
        return [token.text for token in tokens if token.text not in self.noise]

    def is_first(self, word: str) -> bool:
        """Whether a model's name begins with a word."""
        return (word in self.words or word in self.makers) and word[:1].isalpha() and len(word) > 1

    def near(self, word: str, terms: Sequence[str], has_number: bool = True) -> str:
        """The only known word that differs by one letter from a misspelled one; empty if the word is known, or if there
        is no such word. A short word is a misspelled one only before a number: `qwem 3`, not `qwer`."""
        if len(word) < SHORTEST_NEAR or not word.isalpha() or not word.isascii() or self.is_known(word):
            return ""
        firsts = [first for first in self.words if first.isalpha() and (len(first) > 4 or first == "qwen")]
        for known in (firsts, terms if len(word) > 5 else []):
            found = [name for name in known if name not in (*self.plain, f"{word}s") and is_near(word, name)]
            if found:
                is_plain = len(word) > SHORTEST_NEAR or has_number or without_doubles(word) == without_doubles(found[0])
                return found[0] if len(found) == 1 and is_plain else ""
        return ""

    def is_known(self, word: str, most: int = 0) -> bool:
        """Whether it is a word of questions or of names; with `most`, of more names than so many."""
        singular = word.removesuffix("s")
        if any(one in self.known or (one in self.words and not most) for one in (word, singular)):
            return True
        return len([1 for entry in self.entries if any(word in name for name in entry.names)]) > most

    def continues(self, word: str) -> bool:
        """Whether a word continues the name of an unknown model: `3.1`, `Max`, `70b`, `a3b`."""
        is_active = word[:1] == "a" and is_size(word[1:])
        number = number_of(word)
        is_bare = number is not None and number.suffix == ""
        return is_bare or is_version(word) or is_size(word) or is_active or word in self.qualifiers

    def has_both(self, size: str, words: Sequence[str]) -> bool:
        """Whether a name that begins with the same word has this size besides those that came before."""
        names = [name for entry in self.entries for name in entry.names if name[:1] == [*words[:1]] and size in name]
        return any(all(word in name for word in words if is_size(word)) for name in names)

    def has_other_size(self, asked: Sequence[str]) -> bool:
        """Whether a model has this name with another size."""
        words = {word for word in asked if not is_size(word)}
        is_dated = any(map(is_version, words)) or len(words) > 1
        return is_dated and any(is_member(entry, [*words]) for entry in self.entries)

    def begins_name(self, asked: Sequence[str]) -> bool:
        """Whether some name begins with the first two words of what was asked for, or with the first and a version:
        `command r`, `step 3.5`, not `open source`."""
        if len(asked) < 3:
            return False
        names = [name for entry in self.entries for name in entry.names if name[:1] == [*asked[:1]]]
        is_versioned = is_version(asked[1]) and any(is_version(word) for name in names for word in name[1:2])
        return is_versioned or any(name[:2] == [*asked[:2]] for name in names)

    def closest(self, asked: Sequence[str]) -> Named | None:
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
        return self.as_named(best, least == 0 or several == 0 or is_sized, least > 0 and several > 0 and is_sized)

    def of_size(self, size: str) -> Named | None:
        """A model of a size, for a question that names none: one whose name is a family and this size, of the family
        with the most models, the newest. None without one, and for a size of experts."""
        found: list[tuple[int, int, Entry]] = []
        for entry in self.entries:
            first, *words = entry.names[0]
            if entry.place >= 0 and [word for word in words if not is_version(word)] == [size]:
                found.append((-self.families[first], entry.place, entry))
        found = sorted(found, key=lambda one: one[:2])
        return self.as_named(found[0][2], True) if found else None

    def as_named(self, entry: Entry, is_sure: bool, is_one_of_several: bool = False) -> Named:
        address, title = self.records[entry.record]
        return Named(entry.record, slug_of(address), title, address, entry.place >= 0, is_sure, is_one_of_several)

    def of_like_sizes(self, found: list[Named], typed: Mapping[int, Sequence[str]]) -> list[Named]:
        """Two models, where one or both are only families, as two models of similar size: the newest and largest
        first."""
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
        """The models that a name may mean: the one it names, or those with all of its words, the shortest names
        first."""
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
        return [self.as_named(entry, False) for _, _, entry in sorted(found, key=lambda one: one[:2])]

    def sizes_of(self, family: Sequence[str]) -> list[Named]:
        """The models whose names are a family's and a size, the smallest first; empty unless there are several."""
        found: list[tuple[int, int, Entry]] = []
        for entry in self.entries:
            rests = [name[len(family) :] for name in entry.names if name[: len(family)] == [*family]]
            if entry.place >= 0 and any(map(self._is_of_sizes, rests)):
                found.append((self.sizes[entry.record], entry.record, entry))
        if len(found) < 2:
            return []
        return [self.as_named(entry, True) for _, _, entry in sorted(found, key=lambda one: one[:2])]

    def _is_of_sizes(self, words: Sequence[str]) -> bool:
        """Whether words are a size: `8b`, `small`, `30b a3b`."""
        if len(words) == 1:
            return is_size(words[0]) or words[0] in self.size_words
        return len(words) == 2 and is_size(words[0]) and words[1][:1] == "a" and is_size(words[1][1:])

    def nearest(self, asked: Sequence[str]) -> list[Named]:
        """The models that share most words with a name, the newest first; none that shares only a size."""
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
        return [self.as_named(one[4], True) for one in found[:2]]


def short(word: str) -> str:
    """A version without a zero: `4.0` -> `4`."""
    return word.removesuffix(".0") if word[:1].isdigit() or word[:1] == "v" else word
