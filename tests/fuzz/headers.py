"""`totals` of safetensors files, folders and indexes whose headers are what no program writes."""

from __future__ import annotations

import json
import math
import os
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from macros.catalogue.stored import BITS, INDEX

from . import Case
from .command_line import answered
from .configs import strange
from .texts import text

FEW = 30
SECONDS = 3.0

SHAPES = (
    [],
    [0],
    [1],
    [2, 3],
    [7],
    [0, 2**62],
    [-1],
    [2**62],
    [2**62] * 64,
    [2**62] * 65,
    [1] * 70,
    [1.0],
    ["2"],
    None,
    3,
)
TYPES = (*BITS, "F33", "f32", "", None, 3, "\x1b[31m", "B" * 9999)
NO_FILES = ("/dev/zero", "none", "\x00", "", "a" * 5000)
NAMES = ("a", "b", "model.layers.0.x", "__metadata__", "", " ", "\x1b]0;x\x07", "\u202egnirts", "a\nb", "n" * 9999)


def draw(rng: random.Random) -> Case:
    """Files of tensors, most as they should be, and what is done to their headers."""
    files = [file(rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    index = None
    if rng.random() < 0.3:
        weight_map: Any = {one[0]: file["name"] for file in files for one in file["tensors"]}
        sizes = strange(rng, {"total_size": 7, "total_parameters": 7})
        index = rng.choice(
            (
                {"weight_map": weight_map},
                {"weight_map": strange(rng, weight_map)},
                {"metadata": sizes, "weight_map": weight_map},
                {"metadata": {"total_parameters": strange(rng, 7)}},
            )
        )
    asked = rng.choice(("folder", "file", "index" if index else "file"))
    asked = asked if rng.random() < 0.9 else rng.choice(("pipe", "loop", *NO_FILES))
    options = ["--strict"] if rng.random() < 0.4 else []
    if rng.random() < 0.1:
        options.append(f"--{rng.choice(('hub', 'preset'))}={text(rng)}")
    return {"files": files, "index": index, "asked": asked, "options": options}


def file(rng: random.Random) -> dict[str, Any]:
    """A file of small tensors, one behind the other."""
    tensors, end = [], 0
    for _ in range(rng.choice((0, 1, 2, 3, 5))):
        dtype, shape = rng.choice(("F32", "BF16", "I8")), [rng.randrange(1, 5) for _ in range(rng.randrange(4))]
        begin, end = end, end + math.prod(shape) * BITS[dtype] // 8
        name = rng.choice(NAMES) if rng.random() < 0.2 else f"t{rng.randrange(999)}"
        tensors.append([name, dtype, shape, [begin, end]])
    n, of = rng.randrange(4), rng.choice((1, 2, 99999))
    names = [f"m{rng.randrange(99)}.safetensors"] * 4 + [f"model-{n:05}-of-{of:05}.safetensors"]
    changes = [change(rng, len(tensors)) for _ in range(rng.choice((0, 1, 1, 2)))]
    return {"name": rng.choice(names), "tensors": tensors, "changes": changes}


def change(rng: random.Random, tensors: int) -> list:
    i = rng.randrange(tensors) if tensors else 0
    return rng.choice(
        (
            ["shape", i, rng.choice(SHAPES)],
            ["dtype", i, rng.choice(TYPES)],
            ["offsets", i, strange(rng, [0, 8])],
            ["offsets", i, rng.choice(([0, 0], [2**63, 2**64], [8, 0], [1, 2, 3], [], [-8, 0], [0.0, 8.0]))],
            ["table", i, strange(rng, {"dtype": "F32"})],
            ["twice", i, None],
            ["deep", i, rng.choice((10, 70, 1000, 100_000))],
            ["digits", i, rng.choice((30, 400, 4299, 4301, 20_000))],
            ["length", 0, rng.choice((0, 1, 7, 2**20, 2**40, 2**63, 2**64 - 1))],
            ["cut", rng.randrange(300), None],
            ["spoil", rng.randrange(300), rng.randbytes(3).hex()],
            ["text", rng.randrange(300), text(rng)[:30]],
            ["behind", rng.choice((1, 100)), None],
        )
    )


def smaller(case: Case) -> Iterator[Case]:
    for i, file in enumerate(case["files"]):
        yield case | {"files": case["files"][:i] + case["files"][i + 1 :]}
        for part in ("tensors", "changes"):
            for j in range(len(file[part])):
                less = file | {part: file[part][:j] + file[part][j + 1 :]}
                yield case | {"files": [*case["files"][:i], less, *case["files"][i + 1 :]]}
    if case["options"]:
        yield case | {"options": []}


def written(file: dict[str, Any]) -> bytes:
    """The bytes of a file."""
    pieces = [
        [name, {"dtype": dtype, "shape": shape, "data_offsets": at}] for name, dtype, shape, at in file["tensors"]
    ]
    said, behind = [f"{json.dumps(name)}: {json.dumps(table)}" for name, table in pieces], 0
    for what, where, value in file["changes"]:
        if where < len(pieces):
            one, table = pieces[where]
            if what in ("shape", "dtype", "offsets"):
                table["data_offsets" if what == "offsets" else what] = value
            said[where] = f"{json.dumps(one)}: {json.dumps(value if what == 'table' else table)}"
            if what == "twice":
                said.append(said[where])
            elif what == "deep":
                said[where] = f"{json.dumps(one)}: {'[' * value}{']' * value}"
            elif what == "digits":
                said[where] = f"{json.dumps(one)}: {{'shape': [{'9' * value}]}}".replace("'", '"')
    header = f"{{{', '.join(said)}}}".encode("utf-8", "surrogatepass")
    length = len(header)
    for what, where, value in file["changes"]:
        if what == "length":
            length = value
        elif what == "spoil":
            header = header[:where] + bytes.fromhex(value) + header[where + 3 :]
        elif what == "text":
            header = header[:where] + value.encode("utf-8", "surrogatepass") + header[where:]
            length = len(header)
        elif what == "behind":
            behind = where
    data = length.to_bytes(8, "little") + header + bytes(behind)
    cuts = [where for what, where, _ in file["changes"] if what == "cut"]
    return data[: min(cuts)] if cuts else data


def trial(case: Case, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to("loop")
    for file in case["files"]:
        (folder / file["name"]).write_bytes(written(file))
    if case["index"]:
        (folder / INDEX).write_text(json.dumps(case["index"]), "utf-8")
    asked = case["asked"]
    first = case["files"][0]["name"] if case["files"] else "none"
    path = {"folder": folder, "file": folder / first, "index": folder / INDEX, "pipe": folder / "pipe"}.get(
        asked, asked
    )
    status, out, err = answered(["totals", str(path), *case["options"]], SECONDS)
    if status == 0:
        assert tomllib.loads(out)["published"]["parameters"] > 0
    else:
        assert err.count("\n") == 1 and not out, err
