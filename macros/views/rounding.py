"""Integers as a reader sees them. Rounding happens here and nowhere else."""

from __future__ import annotations

from fractions import Fraction

from .arguments import unknown

DIGITS = 3  # significant digits of a rounded count

SCALES = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}
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
FLOPS = {"FLOP": 1, "KFLOP": 10**3, "MFLOP": 10**6, "GFLOP": 10**9, "TFLOP": 10**12, "PFLOP": 10**15, "EFLOP": 10**18}


def grouped(n: int | Fraction) -> str:
    """Every digit, in groups of three: `8,030,261,248`."""
    return f"{int(n):,}".replace("-", "−")


def significant(value: int | Fraction, digits: int = DIGITS) -> str:
    """Rounded half up to so many significant digits, zeros kept: 8.030 -> `8.03`, 70.55 -> `70.6`, 405.9 -> `406`."""
    value = Fraction(value)
    if value <= 0:
        return "−" + significant(-value, digits) if value else "0"
    exponent = len(str(int(value))) - 1
    while value < Fraction(10) ** exponent:
        exponent -= 1
    places = digits - 1 - exponent
    n = int(value * Fraction(10) ** places + Fraction(1, 2))
    if n == 10**digits:  # 9.999 -> 10.0
        n, places = n // 10, places - 1
    whole, part = divmod(n, 10 ** max(places, 0))
    return f"{whole:,}.{part:0{places}}" if places > 0 else f"{whole * 10**-places:,}"


def scaled(value: int | Fraction, units: dict[str, int], digits: int = DIGITS) -> tuple[str, str]:
    """The number and the largest unit of a table that it reaches."""
    unit = max((u for u in units if units[u] <= abs(value)), key=units.__getitem__, default=next(iter(units)))
    number = significant(Fraction(value, units[unit]), digits)
    if units[unit] == 1:
        number = grouped(int(value)) if Fraction(value).denominator == 1 else number
    bigger = [u for u in units if units[u] == 1000 * units[unit]]
    return (
        (significant(Fraction(value, units[bigger[0]]), digits), bigger[0])
        if number.startswith("1,000") and units[unit] > 1 and bigger
        else (number, unit)
    )


def short(n: int, digits: int = DIGITS) -> str:
    """A count as people say it: `8.03B`, `124M`."""
    return "".join(scaled(n, SCALES, digits))


def decimal_bytes(n: int | Fraction, digits: int = DIGITS) -> str:
    """Bytes in powers of ten: `16.1 GB`."""
    return " ".join(scaled(n, {u: s for u, s in BYTES.items() if "i" not in u}, digits))


def binary_bytes(n: int | Fraction, digits: int = DIGITS) -> str:
    """Bytes in powers of two: `1.00 GiB`."""
    number, unit = scaled(n, {u: s for u, s in BYTES.items() if "i" in u or s == 1}, digits)
    return f"{number} {unit}"


def flops(n: int | Fraction, digits: int = DIGITS) -> str:
    """FLOPs: `15.0 GFLOP`."""
    return " ".join(scaled(n, FLOPS, digits))


def percent(part: int, whole: int, places: int = 1) -> str:
    """A share: `26.2%`; what is there and rounds to nothing is `<0.1%`."""
    if not whole:
        return "–"
    share = Fraction(100 * part, whole)
    least = Fraction(1, 10**places)
    if 0 < abs(share) < least / 2:
        return f"{'<' if share > 0 else '>−'}{float(least):.{places}f}%"
    n = (abs(share) * 10**places * 2 + 1) // 2
    return (
        f"{'−' if share < 0 else ''}{n // 10**places}.{n % 10**places:0{places}}%"
        if places
        else f"{'−' if share < 0 else ''}{n}%"
    )


def signed_percent(part: int, whole: int, places: int = 1) -> str:
    """A difference: `+0.5%`."""
    text = percent(part, whole, places)
    return text if text[0] in "−>–" or part == 0 else f"+{text}"


def in_unit(n: int | Fraction, unit: str, digits: int = DIGITS) -> str:
    """A number in the unit asked for: `in_unit(2**30, "GiB")` is `1.00 GiB`. Raises `Problem` for an unknown unit."""
    for units, gap in ((SCALES, ""), (BYTES, " "), (FLOPS, " ")):
        if unit in units and not (unit == "B" and units is BYTES):
            return significant(Fraction(n, units[unit]), digits) + gap + unit
    raise unknown(f"unknown unit {unit!r}", unit, filter(None, [*SCALES, *BYTES, *FLOPS]))
