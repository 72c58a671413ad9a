"""Machines of one's own as nobody would write them: amounts that are huge, tiny, negative, in other digits, or none."""

from __future__ import annotations

import random

from macros.counting.accelerators import TYPES, accelerators

from .texts import text

GOOD = ("24GB,1008GB/s,165TFLOPS", "80GB", "0.5GB", "192GB,8TB/s,link:900GB/s", "h100,94GB", "64GB,2xDDR5-5600")
GOOD += ("96GB,2xDDR5-5600,link:64GB/s", "40GB,1555GB/s,312TFLOPS,fp8:600TFLOPS", "24 GiB , 1008 GiB/s", "1TB,1TB/s")
DIGITS = ("24", "0", "1", "999999999", "0.000000001", "999999999.999999999", "1.5", "000000001")
STRANGE_DIGITS = (
    *(
        "-1",
        "+1",
        "1e400",
        "1e-400",
        "nan",
        "inf",
        "٢٤",
        "２４",
        "²",
        "1_000",
        "0x10",
        "9" * 10,
        "9" * 5000,
        "1..2",
        ".5",
    ),
    *("5.", "", " ", "½", "१", "1,5", "--", "1e3", "1/0"),
)
UNITS = ("GB", "GiB", "MB", "kB", "TB", "B", "PB", "gb", "Gb", "GB/s", "TB/s", "GBps", "Gb/s", "Gbit/s", "MiB/s")
UNITS += ("TFLOPS", "PFLOPS", "GFLOPS", "kFLOPS", "TOPS", "TFLOP/s", "tflops", "FLOPS", "", "x", "/s", "ps", "s")
KINDS = (*TYPES, "link", "fp9", "", "Link", "FP8", "link ")
CHANNELS = ("2xDDR5-5600", "999xDDR5-99999", "0xDDR4-3200", "2×ddr3-1", "xDDR5-", "2xDDR6-5600", "1000xDDR5-5600")


def part(rng: random.Random) -> str:
    """One of the amounts."""
    digits = rng.choice(DIGITS if rng.random() < 0.7 else STRANGE_DIGITS)
    said = digits + rng.choice(("", "", "", " ", "  ", "\t", "\u00a0")) + rng.choice(UNITS)
    kind = rng.random()
    if kind < 0.2:
        return f"{rng.choice(KINDS)}:{said}"
    return rng.choice(CHANNELS) if kind < 0.3 else text(rng) if kind < 0.34 else said


def machine(rng: random.Random, is_strange: float = 0.5) -> str:
    """A machine; with a listed one's name before it, empty parts, or two of a kind."""
    if rng.random() > is_strange:
        return rng.choice((*GOOD, *accelerators()))
    kind = rng.random()
    if kind < 0.05:
        return rng.choice((text(rng), "," * 5000, "24GB," * 2000, "h100,h100", "H100", "h10", "24GB,,1008GB/s", ","))
    parts = [part(rng) for _ in range(rng.choice((1, 1, 2, 3, 4)))]
    if kind < 0.4:  # near to one that can be
        parts = rng.choice(GOOD).split(",")
        parts[rng.randrange(len(parts))] = part(rng)
    if rng.random() < 0.2:
        parts.insert(0, rng.choice([*accelerators()]))
    return rng.choice((",", ",", ",", ", ", ";", ",,")).join(parts)
