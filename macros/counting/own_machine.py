"""A machine of your own, written as `24GB,1008GB/s,165TFLOPS`, or a listed one with changes: `h100,94GB`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..engine.errors import Problem, nearest, shorten
from .accelerators import OF_16_BITS, TYPES, Accelerator, Link

EXAMPLE = "24GB,1008GB/s,165TFLOPS"
DIGITS = "0123456789"
POWERS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
BINARY = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
CHANNEL_BYTES = 8  # bytes that a DDR channel moves per transfer
# parts that occur once; peaks occur once per type
KINDS = {"memory": "memory", "bandwidth": "bandwidth", "link": "a link"}


@dataclass(frozen=True)
class Amount:
    """One part of the string: its kind, its size in bytes, bytes per second or FLOP/s, and its spelling."""

    kind: str
    size: int
    text: str


@dataclass(frozen=True)
class Machine:
    """Its name, its memory in bytes, and the accelerator, unless only memory was given."""

    name: str
    memory_bytes: int
    accelerator: Accelerator | None = None


def machine(text: str, known: Mapping[str, Accelerator]) -> Machine | None:
    """A machine parsed from a string: a listed one by its slug, or its parts, or both; None if it is neither.

    Parts are separated by commas, in any order: memory (`24GB`), bandwidth (`1008GB/s`, or the channels of a CPU's
    memory, `2xDDR5-5600`), the 16-bit peak (`165TFLOPS`), the peak of another type (`fp8:330TFLOPS`), links in both
    directions together (`link:900GB/s`). Raises a one-line `Problem` that names the part.
    """
    if text in known:
        return Machine(known[text].name, known[text].memory_bytes, known[text])
    parts = [part.strip() for part in text.split(",")]
    base = known[parts[0]] if parts[0] in known else None
    given: dict[str, Amount] = {}
    for part in parts[1:] if base else parts:
        if part in known:
            raise Problem(f"{shorten(part)}: only one machine can be named, and it comes first", "leave one out")
        said = amount(part)
        if said is None:
            if len(parts) == 1:
                return None
            what = "not an amount of memory, bandwidth or compute"
            mend = f"write it as in {EXAMPLE}"
            raise Problem(f"{shorten(part)}: {what}", mend if part[:1].isdigit() else nearest(part, known, mend))
        if said.size == 0:
            raise Problem(f"{shorten(part)} is zero", "give an amount above 0")
        if said.kind in given:
            what = KINDS[said.kind] if said.kind in KINDS else f"a peak of {said.kind}"
            raise Problem(f"{shorten(part)}: {what} was given before it", "give one")
        given[said.kind] = said
    return _made(base, given)


def named(text: str, known: Mapping[str, Accelerator]) -> Machine:
    """Like `machine`, for a string that must be a machine. Raises `Problem` with the nearest known slug."""
    if found := machine(text, known):
        return found
    otherwise = f"give a listed one, such as h100, an amount of memory, such as 24GB, or a machine, as {EXAMPLE}"
    raise Problem("neither an accelerator nor a size", nearest(text, known, otherwise))


def _made(base: Accelerator | None, given: Mapping[str, Amount]) -> Machine:
    """The machine made of a listed one and the given changes."""
    peaks = {kind: said.size for kind, said in given.items() if kind not in KINDS}
    if base is None and "memory" not in given:
        raise Problem("a machine without memory", f"write it first, as in {EXAMPLE}")
    if base is None and "bandwidth" not in given and len(given) > 1:
        raise Problem("a peak or a link without a bandwidth", f"add it, as in {EXAMPLE}")
    listed = base.peak_flops if base else {}
    if "bfloat16" in peaks:  # the given peak is for 16 bits
        listed = {kind: peak for kind, peak in listed.items() if kind not in OF_16_BITS}
    name = ", ".join([*([base.name] if base else []), *(said.text for said in given.values())])
    memory = given["memory"].size if "memory" in given else base.memory_bytes if base else 0
    if base is None and "bandwidth" not in given:
        return Machine(name, memory)
    own = Accelerator(
        name=name,
        vendor=base.vendor if base else "own",
        bytes_per_second=given["bandwidth"].size if "bandwidth" in given else base.bytes_per_second if base else 0,
        memory_bytes=memory,
        kind=base.kind if base else "GPU",
        peak_flops={**listed, **peaks},
        capability=base.capability if base else None,
        link=Link(name="link", bytes_per_second=given["link"].size) if "link" in given else base.link if base else None,
    )
    return Machine(name, memory, own)


def amount(part: str) -> Amount | None:
    """One part of the string; None if it is not an amount. Raises `Problem` for an ambiguous one."""
    kind, colon, rest = part.partition(":")
    kind = kind.strip().lower()
    if colon:
        if kind == "link":
            return _bandwidth(rest.strip(), "link")
        if kind not in TYPES:
            raise Problem(f"{shorten(part)}: {kind!r} is not a type of a peak", f"one of {', '.join(TYPES)}, or link")
        return _peak(rest.strip(), kind)
    return memory_of(part) or _channels(part) or _peak(part, "") or _bandwidth(part, "bandwidth")


def _number(text: str) -> tuple[Fraction, str, str] | None:
    """The number at the start of a string, its digits, and the rest; None without one, or with too many digits."""
    end = 0
    while end < len(text) and text[end] in DIGITS + ".":
        end += 1
    digits = text[:end]
    whole, point, part = digits.partition(".")
    if not 0 < len(whole) < 10 or "." in part or (point and not 0 < len(part) < 10):
        return None
    unit = text[end:]
    return Fraction(int(whole + part), 10 ** len(part)), digits, unit[1:] if unit.startswith(" ") else unit


def _unit(unit: str) -> tuple[int, str] | None:
    """The bytes of a unit, and its spelling: `gb` -> 10⁹, `GB`."""
    lower = unit.lower()
    if len(lower) == 2 and lower[1] == "b" and lower[0] in BINARY:
        return POWERS[lower[0]], lower[0].upper() + "B"
    if len(lower) == 3 and lower[1:] == "ib" and lower[0] in BINARY:
        return BINARY[lower[0]], lower[0].upper() + "iB"
    return None


def memory_of(part: str) -> Amount | None:
    """An amount of memory such as `24GB`; None if it is not one."""
    number = _number(part)
    unit = _unit(number[2]) if number else None
    if number is None or unit is None:
        return None
    return Amount("memory", int(number[0] * unit[0]), f"{number[1]} {unit[1]}")


def _bandwidth(part: str, kind: str) -> Amount | None:
    number = _number(part)
    if number is None:
        return None
    unit = number[2]
    for end in ("/s", "ps"):
        if not unit.lower().endswith(end):
            continue
        unit = unit[: -len(end)]
        if unit[1:] in ("b", "ib") and unit[0] != unit[0].lower() or unit.lower().endswith("bit"):
            raise Problem(f"{shorten(part)} is in bits", "write bytes, an eighth of it, as in 1008GB/s")
        found = _unit(unit)
        return Amount(kind, int(number[0] * found[0]), f"{number[1]} {found[1]}/s") if found else None
    return None


def _peak(part: str, kind: str) -> Amount | None:
    number = _number(part)
    if number is None:
        return None
    unit = number[2].lower().removesuffix("/s").removesuffix("s")
    what = unit[1:]
    if not unit or unit[0] not in POWERS or what not in ("flop", "op"):
        return None
    if what == "op" and not kind:
        raise Problem(f"{shorten(part)}: operations without a type", f"say which, as in int8:{part}")
    said = f"{number[1]} {unit[0].upper()}{what.upper()}S"
    return Amount(kind or "bfloat16", int(number[0] * POWERS[unit[0]]), f"{kind} {said}" if kind else said)


def _channels(part: str) -> Amount | None:
    """Channels of a CPU's memory: `2xDDR5-5600` moves 2 × 8 bytes 5,600 million times per second."""
    count, _, kind = part.lower().replace("×", "x").partition("x")
    name, _, rate = kind.partition("-")
    if name not in ("ddr3", "ddr4", "ddr5") or not (_is_whole(count, 3) and _is_whole(rate, 5)):
        return None
    size = int(count) * int(rate) * 10**6 * CHANNEL_BYTES
    return Amount("bandwidth", size, f"{count} × {name.upper()}-{rate}")


def _is_whole(text: str, most: int) -> bool:
    return 0 < len(text) <= most and all(c in DIGITS for c in text)
