"""vLLM's packed groups by its own functions: `python -m tests.reference.vllm_packed VLLM`, from the repository.

VLLM is the folder with vLLM 0.33's sources, of which no module is imported: the classes and functions below run as they
stand there, and only sizes of types, divisions and the registry of specs are given to them.

Of random models of DeepSeek V4's kind it asks for the groups and what a request needs, and writes
`tests/golden/vllm_packed.json`: the kinds of layers, tokens of a request and of a step, stages, layers of the model's
own draft, bytes of a block on the fullest stage, and blocks.
"""

from __future__ import annotations

import ast
import json
import math
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar, Self

from . import TESTS

FILE = TESTS / "golden" / "vllm_packed.json"
CLASSES = """
    SparseCacheRole KVQuantMode KVCacheSpec AttentionSpec FullAttentionSpec MLAAttentionSpec SlidingWindowSpec
    CircularBufferSpec SlidingWindowMLASpec MambaSpec UniformTypeKVCacheSpecs KVCacheGroupRole KVCacheGroupSpec
    _apply_alignment_padding
""".split()
FUNCTIONS = """
    _approximate_gcd _get_packed_kv_cache_groups _get_kv_cache_bytes_per_block _get_per_layer_spec
    _project_kv_cache_groups_to_worker
""".split()
SIZES = {"uint8": 1, "float32": 4}
SEED, NUMBER = 5, 60


def loaded(folder: Path) -> dict[str, Any]:
    """The classes and functions, with stand-ins for what they import."""
    for name in (
        "vllm",
        "vllm.v1",
        "vllm.v1.attention",
        "vllm.v1.attention.backend",
    ):  # a function imports a type of it
        sys.modules[name] = ModuleType(name)
    sys.modules["vllm.v1.attention.backend"].MultipleOf = type("MultipleOf", (), {})  # pyright: ignore
    torch = SimpleNamespace(**{name: name for name in SIZES}, dtype=str, Tensor=object)
    given: dict[str, Any] = {
        **{
            one.__name__: one
            for one in (Counter, defaultdict, Enum, Fraction, partial, dataclass, field, fields, replace)
        },
        "Any": Any,
        "ClassVar": ClassVar,
        "Self": Self,
        "Sequence": Sequence,
        "Collection": Collection,
        "Callable": Callable,
        "math": math,
        "torch": torch,
        "get_dtype_size": SIZES.__getitem__,
        "prod": math.prod,
        "IntEnum": __import__("enum").IntEnum,
        "cdiv": lambda a, b: -(-a // b),
        "round_up": lambda n, unit: -(-n // unit) * unit,
        "HiSparseHotSpec": type("HiSparseHotSpec", (), {}),
        "MambaAttentionBackendEnum": SimpleNamespace(MAMBA2=0),
    }
    for file, names in (("kv_cache_interface.py", CLASSES), ("core/kv_cache_planning.py", FUNCTIONS)):
        body = ast.parse((folder / "vllm" / "v1" / file).read_text("utf-8")).body
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in names:
                code = ast.Module([ast.parse("from __future__ import annotations").body[0], node], [])
                exec(compile(code, file, "exec"), given)
    full = given["FullAttentionSpec"]  # the only one without a rule of its own that is asked for
    given["KVCacheSpecRegistry"] = SimpleNamespace(get_uniform_type_base_spec=lambda spec: full)
    return given


def layers_of(kinds: Sequence[int], drafts: int, there: dict[str, Any]) -> dict[str, Any]:
    """The specs of layers by their compression (0 for windows alone, as drafts have), as the model's modules make
    them."""
    latent, window = there["MLAAttentionSpec"], there["SlidingWindowMLASpec"]
    one = {"num_kv_heads": 1, "dtype": "uint8", "alignment": 576}
    found: dict[str, Any] = {}
    for i, size in enumerate([*kinds, *[0] * drafts]):
        row = {"head_size": 512, "state_content_bytes": 584}
        found[f"{i}.swa"] = window(block_size=64, sliding_window=128, model_version="deepseek_v4", **one, **row)
        if not size:
            continue
        found[f"{i}.main"] = latent(block_size=256, tokens_per_state=size, model_version="deepseek_v4", **one, **row)
        times, wide = 1 + (size == 4), {**one, "dtype": "float32"}
        block = {4: 4, 128: 8}[size]
        states = {"block_size": block, "sliding_window": times * size, **wide}
        found[f"{i}.state"] = window(head_size=2 * times * 512, **states)
        if size == 4:
            found[f"{i}.index"] = latent(block_size=256, tokens_per_state=size, head_size=132, **one)
            found[f"{i}.index.state"] = window(head_size=2 * times * 128, **states)
    return found


def stages_of(layers: int, stages: int) -> list[range]:
    """The layers of each stage (`get_pp_indices` in vllm/distributed/utils.py, written out)."""
    sizes = [layers // stages] * stages
    for i in range(2, layers % stages + 2):
        sizes[-i] += 1
    return [range(sum(sizes[:i]), sum(sizes[: i + 1])) for i in range(stages)]


def counted(
    kinds: Sequence[int], length: int, flight: int, stages: int, drafts: int, there: dict[str, Any]
) -> list[int]:
    """Bytes of a block on the fullest stage, and the blocks of a request."""
    layout = SimpleNamespace(is_block_outermost=True)
    config = SimpleNamespace(
        cache_config=SimpleNamespace(get_resolved_kv_cache_layout=lambda: layout),
        model_config=SimpleNamespace(max_model_len=length),
        parallel_config=SimpleNamespace(decode_context_parallel_size=1),
        max_in_flight_tokens=flight,
    )
    specs = layers_of(kinds, drafts, there)
    groups = there["_get_packed_kv_cache_groups"](config, specs)
    blocks = [-(-g.kv_cache_spec.max_memory_usage_bytes(config) // g.kv_cache_spec.page_size_bytes) for g in groups]
    sizes: list[int] = []
    for own in stages_of(len(kinds), stages):
        last = range(len(kinds), len(kinds) + drafts) if own.stop == len(kinds) else range(0)
        worker = {name: spec for name, spec in specs.items() if int(name.partition(".")[0]) in {*own, *last}}
        projected = there["_project_kv_cache_groups_to_worker"](groups, worker)
        sizes.append(there["_get_kv_cache_bytes_per_block"](projected, layout))
    return [max(sizes), sum(blocks)]


def drawn(rng: random.Random) -> list[int]:
    """A model's layers: windows first, then in turn, or at random."""
    number = rng.randrange(3, 64)
    if rng.random() < 0.5:
        return [0] * rng.randrange(3) + [4 if i % 2 else 128 for i in range(number)]
    return [4, 128, *[rng.choice((0, 4, 128)) for _ in range(number)]]


def main() -> int:
    there = loaded(Path(sys.argv[1]))
    rng = random.Random(SEED)
    rows: list[dict[str, Any]] = []
    for _ in range(NUMBER):
        kinds, length, step = drawn(rng), rng.randrange(300, 1 << 20), rng.randrange(256, 16384)
        stages, drafts = rng.choice((1, 1, 2, 3)), rng.choice((0, 0, 1))
        found = counted(kinds, length, (stages + 1) * step, stages, drafts, there)
        rows.append({"layers": kinds, "length": length, "step": step, "stages": stages, "drafts": drafts, "is": found})
    FILE.write_text("[\n" + ",\n".join([json.dumps(row) for row in rows]) + "\n]\n", "utf-8")
    print(f"{len(rows)} models")
    return 0


if __name__ == "__main__":
    sys.exit(main())
