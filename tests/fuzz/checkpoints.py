"""Checkpoint folders: small ones with other bytes, other headers, other indexes, and calls with other token ids.

`run` answers, or refuses in one line.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from macros.cli.commands import main

from . import Case, is_one_line, within
from .configs import strange
from .texts import text

GOLDEN = Path(__file__).parent.parent / "golden"
FEW = 20
SECONDS = 3.0

BASES = ("llama", "gpt2", "mixtral", "mamba")
TOKENS = ("1,2,3", "", ",", "1", "-1", "1e3", "0x1", "१", "1," * 400 + "1", "9" * 30, "96", "97", "1 , 2", "\x1b[31m")
TYPES = ("F32", "F16", "BF16", "F64", "I8", "F8_E4M3", "BOOL", "X", "", 3, None)


@cache
def base(name: str) -> tuple[str, dict[str, Any], bytes]:
    """A golden checkpoint's config, the header of its file without offsets of its own, and the data."""
    arrays = np.load(GOLDEN / f"{name}.npz")
    header, data = {}, b""
    for key in arrays.files:
        if key.startswith("w/"):
            array = np.ascontiguousarray(arrays[key], np.float32)
            offsets = [len(data), len(data) + array.nbytes]
            header[key[2:]] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": offsets}
            data += array.tobytes()
    return str(arrays["config_json"]), header, data


def draw(rng: random.Random) -> Case:
    name = rng.choice(BASES)
    config, header, data = base(name)
    changes: list[list[Any]] = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        tensor = rng.choice(sorted(header))
        key = rng.choice(sorted(json.loads(config)))
        changes.append(
            rng.choice(
                (
                    ["config", key, strange(rng, json.loads(config)[key])],
                    ["shape", tensor, strange(rng, header[tensor]["shape"])],
                    ["dtype", tensor, rng.choice(TYPES)],
                    ["data_offsets", tensor, strange(rng, header[tensor]["data_offsets"])],
                    ["rename", tensor, text(rng)[:200]],
                    ["without", tensor, None],
                    ["bytes", rng.randrange(len(data)), rng.randbytes(8).hex()],
                    ["nan", 0, None],
                    ["cut", rng.randrange(len(data) + 200), None],
                    ["length", 0, rng.choice((0, 1, 7, 2**20, 2**40, 2**63, 2**64 - 1))],
                    ["header", rng.randrange(200), text(rng)[:20]],
                    ["index", rng.choice(("weight_map", "metadata", "")), strange(rng, {tensor: "model.safetensors"})],
                    ["index", "weight_map", {tensor: rng.choice(("../x", "/etc/passwd", "none", text(rng)[:99], 3))}],
                )
            )
        )
    return {"base": name, "changes": changes, "tokens": rng.choice(TOKENS) if rng.random() < 0.3 else "1,2,3"}


def smaller(case: Case) -> Iterator[Case]:
    if case["tokens"] != "1,2,3":
        yield case | {"tokens": "1,2,3"}
    for i in range(len(case["changes"])):
        yield case | {"changes": case["changes"][:i] + case["changes"][i + 1 :]}


def write(case: Case, folder: Path) -> None:
    """The folder of a case."""
    config, header, data = base(case["base"])
    raw = json.loads(config)
    header = {name: dict(entry) for name, entry in header.items()}
    length, cut, spoilt = None, None, []
    for what, where, value in case["changes"]:
        if what == "config":
            raw[where] = value
        elif what in ("shape", "dtype", "data_offsets") and where in header:
            header[where][what] = value
        elif what == "rename" and where in header:
            header[value] = header.pop(where)
        elif what == "without":
            header.pop(where, None)
        elif what == "bytes":
            data = data[:where] + bytes.fromhex(value) + data[where + 8 :]
        elif what == "nan":
            data = np.full(len(data) // 4, np.nan, np.float32).tobytes()
        elif what == "cut":
            cut = where
        elif what == "length":
            length = value
        elif what == "header":
            spoilt.append((where, value))
        elif what == "index":
            (folder / "model.safetensors.index.json").write_text(json.dumps({where: value}), "utf-8")
    written = json.dumps(header).encode()
    for at, piece in spoilt:
        written = written[:at] + piece.encode("utf-8", "surrogatepass") + written[at:]
    file = (len(written) if length is None else length).to_bytes(8, "little") + written + data
    (folder / "model.safetensors").write_bytes(file if cut is None else file[:cut])
    (folder / "config.json").write_text(json.dumps(raw), "utf-8")


def trial(case: Case, folder: Path) -> None:
    write(case, folder)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            with within(SECONDS):
                status = main(["run", str(folder), f"--tokens={case['tokens']}"])
        except SystemExit as ended:  # of the arguments
            status = ended.code
    assert status in (0, 2), (status, err.getvalue())
    lines = err.getvalue().splitlines(keepends=True)
    said = [line for line in lines if not line.endswith(" of memory\n")]  # which is told before the files are read
    assert len(said) == 1 if status == 2 else all(line.count(" ") for line in lines), lines
    for line in lines:
        is_one_line(line.removesuffix("\n"))
