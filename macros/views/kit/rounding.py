"""Formats numbers for readers. Rounding happens only here."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from ...counting.figures import SCALES
from .arguments import unknown

DIGITS = 3  # significant digits of a rounded count
BYTES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
DECIMAL = {unit: size for unit, size in BYTES.items() if "i" not in unit}
BINARY = {unit: size for unit, size in BYTES.items() if "i" in unit or size == 1}
FLOPS = {"FLOP": 1, "KFLOP": 10**3, "MFLOP": 10**6, "GFLOP": 10**9, "TFLOP": 10**12, "PFLOP": 10**15, "EFLOP": 10**18}


def grouped(n: int | Fraction) -> str:
    """Every digit, in groups of three: `8,030,261,248`."""
    return f"{int(n):,}".replace("-", "−")


def significant(value: float | Fraction, digits: int = DIGITS) -> str:
    """Rounded half up to this many significant digits, zeros kept: 8.030 -> `8.03`, 70.55 -> `70.6`, 405.9 -> `406`."""
    return _quotient(*value.as_integer_ratio(), digits)


def _quotient(above: int, below: int, digits: int) -> str:
    if above <= 0:
        return "−" + _quotient(-above, below, digits) if above else "0"
    whole, places = above // below, digits
    if whole:
        places -= len(str(whole))
    else:
        while above * 10 ** (places - digits + 1) < below:
            places += 1
    if places < 0:
        below *= 10**-places
    else:
        above *= 10**places
    n = (2 * above + below) // (2 * below)
    if n == 10**digits:  # 9.999 -> 10.0
        n, places = n // 10, places - 1
    if places <= 0:
        return f"{n * 10**-places:,}"
    whole, part = divmod(n, 10**places)
    return f"{whole:,}.{part:0{places}}"


def scaled(value: int | Fraction, units: dict[str, int], digits: int = DIGITS) -> tuple[str, str]:
    """The number in the largest unit that it reaches; the table starts with the smallest."""
    above, below = value.as_integer_ratio()
    (unit, size), amount = next(iter(units.items())), abs(above)
    for larger, its_size in units.items():
        if its_size * below > amount:
            break
        unit, size = larger, its_size
    if size == below == 1:
        return grouped(above), unit
    number = _quotient(above, below * size, digits)
    if size > 1 and number.startswith("1,000"):
        for bigger, its_size in units.items():
            if its_size == 1000 * size:
                return _quotient(above, below * its_size, digits), bigger
    return number, unit


@lru_cache(maxsize=16384)
def short(n: int, digits: int = DIGITS) -> str:
    """A count in short form: `8.03B`, `124M`."""
    return "".join(scaled(n, SCALES, digits))


@lru_cache(maxsize=16384)
def decimal_bytes(n: int | Fraction, digits: int = DIGITS) -> str:
    """Bytes in powers of ten: `16.1 GB`."""
    return " ".join(scaled(n, DECIMAL, digits))


def decimal_range(least: int | Fraction, most: int | Fraction, about: str = "~ ") -> str:
    """Two sizes with a common unit: `0.12 to 1.74 GB`; one size if both are equal, as `~ 125 MB`."""
    low, high = decimal_bytes(least), decimal_bytes(most)
    if low == high:
        return f"{about}{low}"
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(f' {unit}') else low} to {high}"


@lru_cache(maxsize=16384)
def binary_bytes(n: int | Fraction, digits: int = DIGITS) -> str:
    """Bytes in powers of two: `1.00 GiB`."""
    return " ".join(scaled(n, BINARY, digits))


@lru_cache(maxsize=16384)
def flops(n: int | Fraction, digits: int = DIGITS) -> str:
    """FLOPs: `15.0 GFLOP`."""
    return " ".join(scaled(n, FLOPS, digits))


def percent(part: int, whole: int, places: int = 1) -> str:
    """A share: `26.2%`; a share above zero that rounds to nothing is `<0.1%`."""
    if not whole:
        return "–"
    if whole < 0:
        part, whole = -part, -whole
    sign, size = "−" if part < 0 else "", abs(part) * 100 * 10**places
    if part and 2 * size < whole:
        return f"{'>−' if sign else '<'}{10.0**-places:.{places}f}%"
    n = (2 * size + whole) // (2 * whole)
    return f"{sign}{n // 10**places}.{n % 10**places:0{places}}%" if places else f"{sign}{n}%"


def signed_percent(part: int, whole: int, places: int = 1) -> str:
    """A difference: `+0.5%`."""
    text = percent(part, whole, places)
    return text if text[0] in "−>–" or part == 0 else f"+{text}"


def in_unit(n: int | Fraction, unit: str, digits: int = DIGITS) -> str:
    """A number in the given unit: `in_unit(2**30, "GiB")` is `1.00 GiB`. Raises `Problem` for an unknown unit."""
    for units, gap in ((SCALES, ""), (BYTES, " "), (FLOPS, " ")):
        if unit in units and not (unit == "B" and units is BYTES):
            return significant(Fraction(n, units[unit]), digits) + gap + unit
    raise unknown(f"unknown unit {unit!r}", unit, filter(None, [*SCALES, *BYTES, *FLOPS]))


def duration(seconds: Fraction, digits: int = DIGITS) -> str:
    """`12.3 ms`: a time in the unit in which it is at least 1."""
    above, below = seconds.as_integer_ratio()
    unit, scale = ("s", 1) if above >= below else ("ms", 10**3) if above * 10**3 >= below else ("µs", 10**6)
    return f"{_quotient(above * scale, below, digits)} {unit}"
