"""`describe` of GGUF files whose bytes are changed: types, counts, lengths, offsets, names; and of files whose values
are: sizes in words, angles of nothing, tensors under other names and in other shapes.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from gguf_files import METADATA, QUANTIZED, tensors, write

from . import Case
from .command_line import answered

FEW = 30
SECONDS = 5.0
FOLDER = Path(__file__).parent.parent / "golden" / "gguf"
COMMAND = ("describe", "--collapse", "--format", "json", "--context", "64")
KINDS = ("F32", "F16", "BF16", "Q8_0", "Q4_0")
HEADER = 9000  # bytes, of these files
VALUES = (
    0,
    1,
    3,
    64,
    2**31,
    True,
    0.0,
    0.5,
    -1.0,
    float("inf"),
    float("nan"),
    "",
    "llama",
    "\x1b[31m",
    [],
    [1, 2],
    ["a"],
)
MORE = (
    *("expert_count", "expert_used_count", "attention.sliding_window", "attention.sliding_window_pattern"),
    *("attention.key_length", "attention.value_length", "attention.kv_lora_rank", "nextn_predict_layers"),
    *("rope.scaling.type", "rope.scaling.factor", "rope.scaling.yarn_log_multiplier", "ssm.inner_size"),
)
ARCHITECTURES = (
    "llama",
    "qwen3",
    "qwen3moe",
    "gemma3",
    "deepseek2",
    "gpt-oss",
    "mamba",
    "granitehybrid",
    "lfm2",
    "bert",
)
NAMES = ("rope_freqs.weight", "output.bias", "blk.9.attn_q.weight", "blk.0.ssm_a", "", "x" * 2000, "\x00")
NUMBERS = (0, 1, 7, 255, 2**16, 2**31, 2**32 - 1, 2**40, 2**62, 2**63, 2**64 - 1)


def draw(rng: random.Random) -> Case:
    """A small file of llama.cpp's with a few bytes, or whole numbers, changed, or cut off; or one of other values."""
    if rng.random() < 0.5:
        return {"values": [_other(rng) for _ in range(1 + rng.randrange(4))]}
    changes: list[list] = []
    for _ in range(1 + rng.randrange(4)):
        at = rng.randrange(HEADER - 8)
        form = rng.choice("BBBIQ")
        value = rng.randrange(256) if form == "B" else rng.choice(NUMBERS) % 256 ** struct.calcsize(form)
        changes.append([at, form, value])
    end = rng.randrange(HEADER) if rng.random() < 0.2 else None
    return {"file": rng.choice(sorted(path.name for path in FOLDER.glob("*.gguf"))), "changes": changes, "end": end}


def _other(rng: random.Random) -> list:
    """One change: a key's value, the architecture, or a tensor under another name or in another shape."""
    kind = rng.choice(("key", "key", "architecture", "name", "shape", "type"))
    keys = [*METADATA, *(f"llama.{key}" for key in MORE), "general.alignment", "split.count"]
    if kind == "key":
        return [kind, rng.choice(keys), rng.choice(VALUES)]
    if kind == "architecture":
        return [kind, rng.choice(ARCHITECTURES), ""]
    name = rng.choice([*tensors()])
    return [kind, name, rng.choice({"name": NAMES, "shape": [[], [1], [32], [32, 64], [0]], "type": KINDS}[kind])]


def _write(path: Path, changes: list[list]) -> None:
    said, found, kinds = dict(METADATA), tensors(), dict(QUANTIZED)
    for kind, name, value in changes:
        if kind == "key":
            said[name] = value
        elif kind == "architecture":
            said = {key.replace("llama.", f"{name}."): one for key, one in said.items()} | {
                "general.architecture": name
            }
        elif kind == "name":
            found[value] = found.pop(name, np.zeros(8, np.float32))
        elif kind == "shape":
            found[name] = np.ones(value, np.float32)
        else:
            kinds[name] = value
    whole = {
        name: kind for name, kind in kinds.items() if name in found and found[name].size and not found[name].size % 32
    }
    write(path, said, found, whole)


def content(case: Case, folder: Path) -> bytes:
    """The changed file."""
    if "values" in case:
        _write(folder / "values.gguf", case["values"])
        return (folder / "values.gguf").read_bytes()
    data = bytearray((FOLDER / case["file"]).read_bytes())
    for at, form, value in case["changes"]:
        struct.pack_into(f"<{form}", data, at, value)
    return bytes(data[: case["end"]])


def trial(case: Case, folder: Path) -> None:
    path = folder / "changed.gguf"
    path.write_bytes(content(case, folder))
    answered([*COMMAND, str(path)], SECONDS)


def smaller(case: Case) -> Iterator[Case]:
    if "values" in case:
        yield from ({"values": case["values"][:i] + case["values"][i + 1 :]} for i in range(len(case["values"])))
        return
    for i in range(len(case["changes"])):
        yield case | {"changes": case["changes"][:i] + case["changes"][i + 1 :]}
    if case["end"] is not None:
        yield case | {"end": None}
