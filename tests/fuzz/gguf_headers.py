"""`describe` of GGUF files whose bytes are changed: types, counts, lengths, offsets, names."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path

from . import Case
from .command_line import answered

FEW = 30
SECONDS = 5.0
FOLDER = Path(__file__).parent.parent / "golden" / "gguf"
HEADER = 9000  # bytes, of these files
NUMBERS = (0, 1, 7, 255, 2**16, 2**31, 2**32 - 1, 2**40, 2**62, 2**63, 2**64 - 1)


def draw(rng: random.Random) -> Case:
    """A small file of llama.cpp's with a few bytes, or whole numbers, changed, or cut off."""
    changes: list[list] = []
    for _ in range(1 + rng.randrange(4)):
        at = rng.randrange(HEADER - 8)
        form = rng.choice("BBBIQ")
        value = rng.randrange(256) if form == "B" else rng.choice(NUMBERS) % 256 ** struct.calcsize(form)
        changes.append([at, form, value])
    end = rng.randrange(HEADER) if rng.random() < 0.2 else None
    return {"file": rng.choice(sorted(path.name for path in FOLDER.glob("*.gguf"))), "changes": changes, "end": end}


def trial(case: Case, folder: Path) -> None:
    data = bytearray((FOLDER / case["file"]).read_bytes())
    for at, form, value in case["changes"]:
        struct.pack_into(f"<{form}", data, at, value)
    path = folder / "changed.gguf"
    path.write_bytes(data[: case["end"]])
    answered(["describe", "--collapse", "--format", "json", "--context", "64", str(path)], SECONDS)


def smaller(case: Case) -> Iterator[Case]:
    for i in range(len(case["changes"])):
        yield case | {"changes": case["changes"][:i] + case["changes"][i + 1 :]}
    if case["end"] is not None:
        yield case | {"end": None}
