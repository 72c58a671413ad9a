"""Where a forward pass's tensors are in a file: makers' names, transformers' names, stacks and their parts.

The architecture declares the possibilities: a file may spell names differently, pack several of our tensors into one,
or split one of ours. No tensor is read here: names, and shapes if known, are enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from .architectures import Architecture

# The shape of a stored tensor; None if only its name is known.
Stored: TypeAlias = Mapping[str, Sequence[int] | None]

# The prefix of a language model within a larger one: there, and here.
WRAPPERS = (
    ("language_model.", ""),
    ("model.language_model.", "model."),
    ("model.language_model.", ""),
    ("model.text_model.", "model."),
    ("thinker.", ""),
    ("text_model.", ""),
)
MOST_DIGITS = 9  # placeholder for a number in a name
MOST_KINDS = 10_000  # limit on kinds of names; beyond it, names are taken literally


class Cut(NamedTuple):
    """A stored tensor, or a part of it.

    `member`: one along its first axis. `position`: one of several equal `parts` along the rows, which are interleaved
    if `in_turn`, and otherwise one below the other. `in_pairs`: in each head, the rows that rotate together are
    neighbors in the file, and half a head apart here.
    """

    stored: str
    member: int | None = None
    position: int = 0
    parts: int = 1
    in_turn: bool = False
    in_pairs: bool = False


class Place(NamedTuple):
    """The place of a tensor: its cuts, stacked row-wise; with `is_stack`, an array of them for each member, along the
    first axis or, if `beside` each other, along the second."""

    members: list[list[Cut]]
    is_stack: bool = False
    beside: bool = False

    @property
    def cuts(self) -> list[Cut]:
        return [cut for member in self.members for cut in member]


class Layout:
    """The tensors of a file by the names of a forward pass, however the file spells and packs them.

    `renamed`: the prefix of the trunk's tensors here, and in a file with another head.
    """

    def __init__(self, architecture: Architecture, stored: Stored, renamed: tuple[str, str] = ("", "")):
        self.architecture, self.stored = architecture, stored
        self.packed = [(end, parts, False) for end, parts in architecture.fused.items()]
        self.packed += [(end, parts, True) for end, parts in architecture.in_turn.items()]
        self.called: dict[str, str] = {}  # here -> in the file
        kinds: dict[str, list[str]] = {}
        for name in stored:
            kind, numbers = _kind(name)
            if kind not in kinds:
                if len(kinds) == MOST_KINDS:
                    break
                kinds[kind] = [ours for ours in _spellings(kind, architecture, renamed) if ours != kind]
            for ours in kinds[kind]:
                self.called.setdefault(_filled(ours, numbers), name)

    def find(self, name: str) -> Place | None:
        """The place of the tensor `name`; None if there is none."""
        cut = self._cut(name)
        if cut is not None:
            return Place([[cut]])
        for ours, parts in self.architecture.pieces.items():
            if f".{name}".endswith(f".{ours}"):
                place = self._joined(name[: len(name) - len(ours)], parts)
                if place is not None:
                    return place
        return None

    def shape(self, place: Place) -> tuple[int, ...] | None:
        """The shape of the tensor there; None if it does not follow from the file's shapes."""
        shapes: list[list[int]] = []
        for cuts in place.members:
            below = [self._shape(cut) for cut in cuts]
            known = [shape for shape in below if shape]
            if len(known) < len(below):
                return tuple(below[0]) if len(below) == 1 and below[0] is not None and not place.is_stack else None
            shapes.append([sum(shape[0] for shape in known), *known[0][1:]])
        if place.beside:
            return (shapes[0][0], len(shapes), *shapes[0][1:])
        return (len(shapes), *shapes[0]) if place.is_stack else tuple(shapes[0])

    def _shape(self, cut: Cut) -> list[int] | None:
        given = self.stored[cut.stored]
        if given is None:
            return None
        shape = list(given) if cut.member is None else list(given)[1:]
        if cut.parts > 1 and shape:
            shape[rows_axis(len(shape))] //= cut.parts
        return shape

    def _cut(self, name: str) -> Cut | None:
        if name in self.stored:
            return Cut(name)
        if name in self.called:
            return Cut(self.called[name])
        for ours, theirs in self.architecture.in_pairs.items():
            if f".{name}".endswith(f".{ours}"):
                stored = self.called.get(name.removesuffix(ours) + theirs)
                if stored is not None:
                    return Cut(stored, in_pairs=True)
        for packed, parts, in_turn in self.packed:
            for position, part in enumerate(parts):
                prefix, member = _prefix(name, part)
                if prefix is None:
                    continue
                stored = self.called.get(prefix + packed, prefix + packed)
                if stored in self.stored and _holds(self.stored[stored], member):
                    return Cut(stored, member, position, len(parts), in_turn)
        return None

    def _joined(self, prefix: str, parts: Sequence[str]) -> Place | None:
        """One array of all experts' tensors, with the parts of each expert one below the other; or just of such
        parts."""
        for letter in ("{e}", "{s}"):
            if letter in parts[0]:
                members = list(self._members(prefix, parts, letter))
                return Place(members, is_stack=True, beside=letter == "{s}") if members else None
        if "{n}" in parts[0]:
            pieces = [cut for member in self._members(prefix, parts, "{n}") for cut in member]
            return Place([pieces]) if pieces else None
        cuts = [self._cut(prefix + part) for part in parts]
        found = [cut for cut in cuts if cut is not None]
        return Place([found]) if len(found) == len(cuts) else None

    def _members(self, prefix: str, parts: Sequence[str], letter: str) -> Iterator[list[Cut]]:
        """The cuts of each member."""
        e = 0
        while True:
            cuts = [self._cut(prefix + part.replace(letter, str(e))) for part in parts]
            found = [cut for cut in cuts if cut is not None]
            if len(found) < len(cuts):
                return
            yield found
            if any(cut.member is not None and self.stored[cut.stored] is None for cut in found):
                return  # their number is unknown
            e += 1


def rows_axis(dimensions: int) -> int:
    """The axis of the rows: the second to last, or a vector's only one."""
    return max(dimensions - 2, 0)


def _holds(shape: Sequence[int] | None, member: int | None) -> bool:
    """Whether a stored tensor has a member with this number; if its shape is not known, it may."""
    return member is None or shape is None or (len(shape) > 1 and member < shape[0])


def _prefix(name: str, part: str) -> tuple[str | None, int | None]:
    """The prefix of a name before this suffix, and the number in place of `{e}`; (None, None) for another name."""
    before, has_member, after = part.partition("{e}")
    if not has_member:
        return (name[: len(name) - len(part)], None) if f".{name}".endswith(f".{part}") else (None, None)
    head, _, number = name[: len(name) - len(after)].rpartition(".")
    if not name.endswith(after) or not _is_number(number) or not f".{head}.".endswith(f".{before}"):
        return None, None
    return head[: len(head) + 1 - len(before)], int(number)


def _kind(name: str) -> tuple[str, list[str]]:
    """A name with `{0}`, `{1}` … in place of its numbers, and the numbers."""
    numbers: list[str] = []
    parts: list[str] = []
    for part in name.split("."):
        if _is_number(part):
            parts.append("{" + str(len(numbers)) + "}")
            numbers.append(part)
        else:
            parts.append(part)
    return ".".join(parts), numbers


def _filled(kind: str, numbers: Sequence[str]) -> str:
    """A name of this kind; `{0+1}` is the number that follows the first."""
    for i, number in enumerate(numbers):
        kind = kind.replace("{" + str(i) + "}", number)
        if "+1}" in kind:
            kind = kind.replace("{" + str(i) + "+1}", str(int(number) + 1))
    return kind


def _is_number(part: str) -> bool:
    return part.isdigit() and part.isascii() and len(part) <= MOST_DIGITS


def _spellings(kind: str, architecture: Architecture, renamed: tuple[str, str]) -> list[str]:
    """The forward pass's possible names for a kind of tensor in a file."""
    names = [kind]
    names += [ours + kind.removeprefix(theirs) for theirs, ours in WRAPPERS if kind.startswith(theirs)]
    ours, theirs = renamed
    if ours != theirs:
        names += [ours + name.removeprefix(theirs) for name in names if name.startswith(theirs)]
    spelled: list[str] = []
    for name in names:
        name = respelled(name, architecture.spellings)
        spelled.append(name)
        spelled += [prefix + name for prefix in architecture.stored_prefixes if not name.startswith(prefix)]
    return list(dict.fromkeys(spelled))


def names_in_files(name: str, architecture: Architecture, packed: bool = True) -> list[str]:
    """The possible names of our tensor in files: the same name, one of its spellings or all of them combined, its
    pieces, or with `packed` the stack that packs it. `{i}` and `{e}` in the name stay."""
    kind = name.replace("{i}", "{0}").replace("{e}", "{1}")
    names, together = [kind], kind
    for there, here in reversed(architecture.spellings):
        names.append(_given_back(kind, there, here))
        together = _given_back(together, there, here)
    names.append(together)
    for ours, parts in architecture.pieces.items():
        if f".{name}".endswith(f".{ours}"):
            names += [name.removesuffix(ours) + part for part in parts]
    for stack, parts in (*architecture.fused.items(), *architecture.in_turn.items()) if packed else ():
        names += [name.removesuffix(part) + stack for part in parts if f".{name}".endswith(f".{part}")]
    return list(dict.fromkeys(one.replace("{0}", "{i}").replace("{1}", "{e}") for one in names))


def _given_back(name: str, there: str, here: str) -> str:
    """A name with one part spelled as in a file; the inverse of `_replaced`."""
    if "+1}" in here:
        return name
    if there.startswith("^"):
        return there[1:] + name.removeprefix(here) if name.startswith(here) else name
    if there.endswith("$"):
        return name.removesuffix(here) + there[:-1] if name.endswith(here) else name
    return name.replace(here, there)


def respelled(name: str, spellings: Iterable[tuple[str, str]]) -> str:
    """A file's name in the spelling used here: its parts replaced in order."""
    for there, here in spellings:
        name = _replaced(name, there, here)
    return name


def _replaced(name: str, there: str, here: str) -> str:
    """A name with a part of it spelled as here; `^` anchors the start of a name, `$` its end."""
    if there.startswith("^"):
        return here + name.removeprefix(there[1:]) if name.startswith(there[1:]) else name
    if there.endswith("$"):
        return name.removesuffix(there[:-1]) + here if name.endswith(there[:-1]) else name
    return name.replace(there, here)
