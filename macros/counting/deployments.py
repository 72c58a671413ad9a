"""A model served by an engine on one or several devices: the memory of each, and the figures that its log prints."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..engine.errors import Problem, nearest, shorten
from .serving import GIB, MIB, Term

MOST_PLACES = 64
UNITS = {"GiB": GIB, "MiB": MIB, "GB": GIB, "MB": MIB}  # SGLang and Megatron write GB and MB for these
PROVED, BY_SOURCE = "a printed figure proves it", "by its source"


@dataclass(frozen=True)
class Card:
    """A device: its name, total and free memory in bytes, its vendor, its compute capability if it has CUDA (90 for
    9.0), and its kind if it is an accelerator."""

    name: str
    memory_bytes: int
    free_bytes: int
    vendor: str = ""
    capability: int | None = None
    kind: str = "GPU"


@dataclass(frozen=True)
class Figure:
    """A figure as an engine prints it: its key, its label, the number (two bounds if an input is rounded), its unit,
    the digits after the decimal point, the rule, the proof of the rule, the device if it belongs to one, and the number
    that follows from the rounded input taken at face value.
    """

    key: str
    what: str
    least: Fraction
    most: Fraction
    unit: str
    digits: int
    rule: str
    proof: str
    place: str = ""
    middle: Fraction | None = None

    @property
    def text(self) -> str:
        """The printed number, or both bounds if they differ."""
        low, high = [written(self.value(end), self.digits) for end in (self.least, self.most)]
        space = "" if self.unit in ("x", "%") else " "
        said = low if low == high else f"{low} to {high}"
        if self.middle is not None:
            middle = written(self.value(self.middle), self.digits)
            said = middle if low == high else f"{middle} ({said})"
        return f"{said}{space}{self.unit}" if self.unit else said

    def value(self, end: Fraction) -> Fraction:
        """A number in the unit."""
        return Fraction(end) / UNITS.get(self.unit, 1)

    def is_near(self, printed: Fraction, digits: int) -> bool:
        """Whether a number printed with this many decimals equals this one or lies in its range."""
        half = Fraction(1, 2 * 10**digits)
        return self.value(self.least) - half <= printed <= self.value(self.most) + half


def written(value: Fraction, digits: int) -> str:
    """A number with this many decimals, rounded half to even like C."""
    scaled = Fraction(value) * 10**digits
    whole = scaled.numerator // scaled.denominator
    rest = scaled - whole
    if rest * 2 > 1 or rest * 2 == 1 and whole % 2:
        whole += 1
    if not digits:
        return f"{whole:,}"
    below = str(whole % 10**digits)
    return f"{whole // 10**digits:,}.{'0' * (digits - len(below))}{below}"


def decimal(value: Fraction) -> str:
    """A number with as few digits as possible, at most four decimals: 0.92."""
    whole, point, digits = written(value, 4).partition(".")
    kept = digits
    while kept.endswith("0"):
        kept = kept[:-1]
    return f"{whole}{point}{kept}" if kept else whole


@dataclass(frozen=True)
class Place:
    """A device with its memory terms, and the part that the engine may use; None if its size is not known."""

    name: str
    terms: tuple[Term, ...]
    limit: int | None = None

    @property
    def least(self) -> int:
        return sum(term.least for term in self.terms)

    @property
    def most(self) -> int:
        return sum(term.most for term in self.terms)


@dataclass(frozen=True)
class Deployment:
    """An engine with its version, its devices, the figures of its log in order, the words of its command line, what may
    be changed, remarks, further figures that a complete log may have, the host's memory if the engine keeps part of the
    model there, and whether its pool is certain to hold a request or may hold one."""

    engine: str
    version: str
    places: tuple[Place, ...]
    figures: tuple[Figure, ...]
    command: tuple[str, ...]
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    more: tuple[Figure, ...] = ()
    host: Place | None = None
    request: tuple[bool, bool] = (True, True)

    @property
    def is_known(self) -> bool:
        """Whether the memory of every device is known."""
        return bool(self.places) and all(place.limit is not None for place in self.places)

    @property
    def is_enough(self) -> bool:
        """Whether even the upper bound fits on every device, and on the host if its memory is known."""
        has_host = self.host is None or self.host.limit is None or self.host.most <= self.host.limit
        fits = all(place.limit is not None and place.most <= place.limit for place in self.places)
        return has_host and fits and self.request[0]

    @property
    def may_be_enough(self) -> bool:
        """Whether the lower bound fits on every device, and on the host if its memory is known."""
        has_host = self.host is None or self.host.limit is None or self.host.least <= self.host.limit
        fits = all(place.limit is not None and place.least <= place.limit for place in self.places)
        return has_host and fits and self.request[1]


def exactly(
    key: str, what: str, value: int | Fraction, unit: str, digits: int, rule: str, proof: str, place: str = ""
) -> Figure:
    """A figure without rounded inputs."""
    return Figure(key, what, Fraction(value), Fraction(value), unit, digits, rule, proof, place)


def quoted(words: tuple[str, ...]) -> str:
    """Words quoted for a shell."""
    said: list[str] = []
    for word in words:
        plain = word and all(c.isascii() and (c.isdigit() or c.lower() != c.upper() or c in "-_./:,=+@%") for c in word)
        said.append(word if plain else "'" + word.replace("'", "'\\''") + "'")
    return " ".join(said)


def version_of(text: str, known: str, engine: str) -> tuple[int, int]:
    """The first two numbers of a version, such as 0.24.0; without one, those of the known version. Raises `Problem`."""
    parts = (text or known).lower().removeprefix("v").split(".")
    numbers = [part for part in parts[:2] if 0 < len(part) < 6 and part.isascii() and part.isdigit()]
    if len(numbers) < 2:
        raise Problem(f"{shorten(text)}: no version of {engine}", f"write it as in {known}")
    return int(numbers[0]), int(numbers[1])


def refuse_unknown(name: str, known: tuple[str, ...], what: str) -> Problem:
    """The message about a name that is not one of these."""
    return Problem(f"{shorten(name)}: no such {what}", nearest(name, known, f"one of {', '.join(known)}"))
