"""`run --source` of a .npy file of anything: other types, shapes, headers, bytes."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import Case, checkpoints
from .command_line import answered
from .texts import text

FEW = 15
SECONDS = 3.0

TYPES = ("f2", "f4", "f8", ">f4", "g", "i1", "u8", "?", "c8", "S3", "U3", "M8[s]", "m8", "O", "V3", "f4,f4", "i8")
SHAPES = ("(9, 9)", "(2**62, 2)", f"({2**62}, {2**62})", "()", "(0,)", "(-1, 2)", "(True, 2)", "('a',)", "9", "None")


def draw(rng: random.Random) -> Case:
    changes = [change(rng) for _ in range(rng.choice((0, 1, 1, 1, 2)))]
    return {"dtype": rng.choice(TYPES) if rng.random() < 0.4 else "f4", "order": rng.choice("CF"), "changes": changes}


def change(rng: random.Random) -> list:
    header = f"{{'descr': '{rng.choice(TYPES)}', 'fortran_order': {rng.random() < 0.5}, 'shape': {rng.choice(SHAPES)}}}"
    no_header = "(" * 9000, "9" * 9000, "[" * 99, "{}", "", "[1]", " " * 70_000, "x" * 12_000, text(rng)[:99]
    return rng.choice(
        (
            ["spoil", rng.randrange(200), rng.randbytes(rng.choice((1, 4))).hex()],
            ["spoil", rng.randrange(128, 600), rng.randbytes(rng.choice((1, 4))).hex()],
            ["cut", rng.choice((0, 5, 6, 8, 10, 40, 128, 129, 500)), None],
            ["more", rng.choice((1, 4, 999)), None],
            ["header", 0, header],
            ["header", 0, rng.choice(no_header)],
            ["version", 0, rng.choice((1, 2, 3, 4, 255))],
            ["value", rng.choice(("nan", "inf", "1e300", "-1e38", "0")), None],
            ["shape", 0, rng.choice(((3, 3), (0, 0), (1,), ()))],
            ["file", 0, rng.choice((b"PK\x03\x04", b"", b"\x93NUMPY", b"\x93NUMPY\x01", b"\x80\x04.")).hex()],
        )
    )


def smaller(case: Case) -> Iterator[Case]:
    for i in range(len(case["changes"])):
        yield case | {"changes": case["changes"][:i] + case["changes"][i + 1 :]}


def written(case: Case, sound: np.ndarray) -> bytes:
    """The bytes of a case's file."""
    shape = next((tuple(value) for what, _, value in case["changes"] if what == "shape"), sound.shape)
    made = np.zeros(shape, case["dtype"], order=case["order"])
    for what, where, _ in case["changes"]:
        if what == "value" and made.dtype.kind == "f":
            with np.errstate(all="ignore"):
                made[...] = np.float64(where)
    file = io.BytesIO()
    np.save(file, made, allow_pickle=True)
    data = file.getvalue()
    for what, where, value in case["changes"]:
        if what == "header":
            said = value.encode("utf-8", "surrogatepass")
            data = b"\x93NUMPY\x02\x00" + len(said).to_bytes(4, "little") + said + data[128:]
        elif what == "version":
            data = data[:6] + bytes([value]) + data[7:]
        elif what == "spoil":
            data = data[:where] + bytes.fromhex(value) + data[where + len(value) // 2 :]
        elif what == "file":
            data = bytes.fromhex(value)
        elif what == "more":
            data += bytes(where)
        elif what == "cut":
            data = data[:where]
    return data


def trial(case: Case, folder: Path) -> None:
    checkpoints.write({"base": "whisper", "changes": []}, folder)
    sound = np.load(checkpoints.GOLDEN / "whisper.npz")["source"][0]
    (folder / "sound.npy").write_bytes(written(case, sound))
    status, out, err = answered(["run", str(folder), "--tokens=1,2", f"--source={folder / 'sound.npy'}"], SECONDS)
    assert status in (0, 2) and err.count("\n") == 1 and "nan" not in out, err
