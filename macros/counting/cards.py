"""Devices as people write them: `2xh100+l40s`, `rtx-3090+rtx-4090`, each optionally with its free memory:
`24GB,free:20GB`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..engine.errors import Problem, shorten
from .accelerators import Accelerator
from .deployments import MOST_PLACES, Card
from .own_machine import DIGITS, memory_of, named

FREE = "free:"


def cards_of(text: str, known: Mapping[str, Accelerator], devices: int = 1) -> list[Card]:
    """The devices that a string names, with their counts; a single one is repeated `devices` times. Raises a one-line
    `Problem`."""
    found: list[Card] = []
    parts = [part.strip() for part in text.split("+")]
    for part in parts:
        number, rest = _times(part)
        found += [_card(rest, known)] * number
        if len(found) > MOST_PLACES:
            raise Problem(f"more than {MOST_PLACES} devices", "give fewer")
    if devices > 1:
        if len(found) > 1 and len(found) != devices:
            raise Problem(
                f"{shorten(text)} are {len(found):,} devices, and --devices says {devices:,}", "give one of the two"
            )
        if len(found) == 1:
            if devices > MOST_PLACES:
                raise Problem(f"more than {MOST_PLACES} devices", "give fewer")
            found = found * devices
    return found


def are_several(text: str) -> bool:
    """Whether a string names several devices, or the free memory of one."""
    return "+" in text or FREE in text or _times(text.strip())[0] > 1


def _times(part: str) -> tuple[int, str]:
    """The count and the device in `2xh100`. `2xDDR5-5600` are the channels of one machine."""
    digits = 0
    while digits < len(part) and part[digits] in DIGITS:
        digits += 1
    rest = part[digits:].strip()
    is_number = 0 < digits < 4 and rest[:1] in ("x", "×") and len(rest) > 1
    if not is_number or rest[1:].strip().lower().startswith("ddr") or int(part[:digits]) == 0:
        return 1, part
    return int(part[:digits]), rest[1:].strip()


def _card(text: str, known: Mapping[str, Accelerator]) -> Card:
    parts = [part.strip() for part in text.split(",")]
    free = [part[len(FREE) :].strip() for part in parts if part.lower().startswith(FREE)]
    rest = ",".join([part for part in parts if not part.lower().startswith(FREE)])
    if len(free) > 1:
        raise Problem(f"{shorten(text)}: the free memory is given twice", "give it once")
    said = memory_of(free[0]) if free else None
    if free and (said is None or not said.size):
        raise Problem(f"{shorten(free[0])}: not an amount of memory", "write it as in free:9862MiB")
    if not rest and said is not None:
        return Card(said.text, said.size, said.size)
    try:
        machine = named(rest, known)
    except Problem as problem:
        raise problem.at(shorten(rest)) from None
    vendor = "" if machine.accelerator is None else machine.accelerator.vendor
    size = machine.memory_bytes
    if said is not None and said.size > size:
        if said.size * 10 > size * 11:
            raise Problem(f"{shorten(text)}: more memory is free than the device has", "correct one of the two")
        size = said.size  # makers say GB, though some mean GiB
    capability = None if machine.accelerator is None else machine.accelerator.capability
    kind = "GPU" if machine.accelerator is None else machine.accelerator.kind
    return Card(machine.name, size, size if said is None else said.size, vendor, capability, kind)
