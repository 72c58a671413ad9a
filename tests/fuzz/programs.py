"""The Python API: each function with arguments that can be, and one or two of no such type, size or name.

It answers with what shows and writes itself and does not contradict itself, or raises `Problem` of one line.
"""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import every_parameter as ep
import numpy as np

from macros.counting.engines import names as engines
from macros.counting.figures import FIGURES
from macros.counting.formats import CACHE_BYTES, WEIGHTS
from macros.counting.links import DISPATCH_TYPES
from macros.counting.training_setup import GRADIENTS, METHODS, OPTIMIZERS, RECOMPUTED

from . import Case, invariants, is_one_line, questions, refused, within
from .calls import has_no_markup_of_ours
from .own_machines import machine
from .texts import text

FEW = 30
SECONDS = 5.0
OF_A_LIST = 10.0

# What no argument is, or hardly; a case names them.
OBJECTS: dict[str, Any] = {
    "numpy 8": np.int64(8),
    "numpy 2.5": np.float32(2.5),
    "array": np.arange(3),
    "none": None,
    "true": True,
    "false": False,
    "nan": float("nan"),
    "infinity": float("inf"),
    "0.8": 0.8,
    "tiny": 1e-320,
    "0": 0,
    "-1": -1,
    "7.0": 7.0,
    "fraction": Fraction(4, 5),
    "decimal": Decimal("0.8"),
    "huge": 10**400,
    "10**18": 10**18,
    "empty text": "",
    "8": "8",
    "digits": "٨",
    "bytes": b"h100",
    "path": Path("nowhere/config.json"),
    "list": [],
    "list of none": [None],
    "list of text": ["h100"],
    "tuple": ("q_proj", "v_proj"),
    "set": {"q_proj"},
    "dict": {},
    "type": int,
    "function": len,
    "complex": 1j,
    "range": range(3),
    "surrogate": "\ud800",
    "zero byte": "\x00",
    "long": "x" * 100_000,
}

COUNTS = (1, 2, 4, 8)
CONTEXTS = (1, 2, 7, 512, 4096, 32768, 10**6, 10**9 - 1)
CONDITIONS: dict[str, Any] = {
    "context": CONTEXTS,
    "batch": (1, 1, 2, 16, 1000),
    "weights": (*WEIGHTS, *["published"] * 20),
    "cache": (*CACHE_BYTES, *["bfloat16"] * 5),
}
MODEL = "a model"  # of the catalogue, by slug, by its keys, or loaded
TRAINING: dict[str, Any] = {
    "on": machine,
    "devices": COUNTS,
    "method": tuple(METHODS),
    "rank": (1, 8, 64),
    "target_modules": ("all-linear", "q_proj,v_proj", "q_proj", None),
    "bias": ("none", "all", "lora_only"),
    "modules_to_save": ("lm_head", None),
    "optimizer": tuple(OPTIMIZERS),
    "zero": (0, 1, 2, 3, "fsdp", "3"),
    "tensor": (1, 2),
    "pipeline": (1, 2),
    "sequence_parallel": (True, False),
    "recompute": tuple(RECOMPUTED),
    "sequence": CONTEXTS,
    "micro_batch": (1, 2, 8),
    "gradients": tuple(GRADIENTS),
    "master_weights": (True, False),
    "tokens": (1, 10**9, 10**12, 10**18),
    "utilization": (0.4, 1, 0.01),
    "watts": (1, 700),
}
# Of each function what may be said, those that have to be first; methods are those of a loaded model.
FUNCTIONS: dict[str, dict[str, Any]] = {
    "fits": {"model": MODEL, "on": machine, **CONDITIONS, "devices": COUNTS, "engine": tuple(engines())},
    "what fits": {"on": machine, **CONDITIONS, "devices": COUNTS},
    "where it fits": {"model": MODEL, **CONDITIONS, "devices": COUNTS},
    "splits": {"model": MODEL, "on": machine, "devices": COUNTS, **CONDITIONS, "dispatch": tuple(DISPATCH_TYPES)},
    "traffic": {
        "model": MODEL,
        "tensor": COUNTS,
        "pipeline": (1, 1, 2),
        "data": (1, 1, 2),
        "context": CONTEXTS,
        "batch": (1, 2, 16),
        "new_tokens": (1, 2, 512),
        "dispatch": tuple(DISPATCH_TYPES),
    },
    "offload": {
        "model": MODEL,
        "on": machine,
        "host": machine,
        **CONDITIONS,
        "gpu_layers": (0, 8),
        "n_cpu_moe": (0, 4),
    },
    "shared_prefix": {
        "model": MODEL,
        "prefix": (1, 3, 500, 4000),
        "context": CONTEXTS,
        "batch": (1, 2, 16),
        "cache": CONDITIONS["cache"],
    },
    "speculative": {
        "target": MODEL,
        "draft": MODEL,
        "on": machine,
        "acceptance": (0, 0.5, 0.8, 1),
        "draft_tokens": (1, 5, 64),
        **CONDITIONS,
        "devices": COUNTS,
    },
    "train": {"model": MODEL, **TRAINING},
    "compare": {"first": MODEL, "second": MODEL, "on": machine, **CONDITIONS, "devices": COUNTS},
    "models": {
        "family": ("Llama", "qwen"),
        "organization": ("Meta", "google"),
        "min_parameters": (1e9, 10**10),
        "max_parameters": (1e9, 10**12),
        "sort_by": ("model", "total", "released"),
        "descending": (True, False),
    },
    "kv_cache": {"model": MODEL, "context": CONTEXTS, "batch": (1, 16), "dtype": CONDITIONS["cache"]},
    "flops": {"model": MODEL, "context": CONTEXTS, "new_tokens": (1, 2, 512)},
    "memory": {"model": MODEL, **CONDITIONS, "devices": COUNTS},
    "figure": {"model": MODEL, "name": tuple(FIGURES), "on": machine, **CONDITIONS, "devices": COUNTS},
    "to_dict": {"model": MODEL, "context": (*CONTEXTS, (4096, 8192)), "weights": tuple(WEIGHTS), "cache": ("q8_0",)},
}
NEEDED = {"offload": 2, "splits": 1, "speculative": 3, "shared_prefix": 2, "compare": 2, "models": 0, "figure": 2}
NEEDED |= {"what fits": 1, "fits": 2}


def draw(rng: random.Random) -> Case:
    name = rng.choice([*FUNCTIONS])
    known = FUNCTIONS[name]
    needed = NEEDED.get(name, 1)
    said = [*known][:needed] + [key for key in [*known][needed:] if rng.random() < (0.25 if len(known) > 9 else 0.4)]
    values = {key: value(rng, known[key]) for key in said}
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        kind = rng.random()
        key = rng.choice([*known] if kind < 0.95 else ["nothing"])
        values[key] = ["text", text(rng)] if kind < 0.15 else ["object", rng.choice([*OBJECTS])]
    return {"function": name, "values": values}


def value(rng: random.Random, known: Any) -> list:
    if known is MODEL:
        one = questions.model(rng) if rng.random() < 0.3 else rng.choice(questions.slugs())
        kind = "config" if isinstance(one, dict) else rng.choice(("loaded", "text"))
        return [kind, one]
    return ["text", machine(rng, 0.15)] if known is machine else ["plain", rng.choice(known)]


def smaller(case: Case) -> Iterator[Case]:
    for key in case["values"]:
        yield case | {"values": {name: one for name, one in case["values"].items() if name != key}}


def trial(case: Case, folder: Path) -> None:
    from . import configs

    def made(kind: str, one: Any) -> Any:
        if kind == "config":
            raw = configs.config(one["config"])
            return raw | ({"quantization_config": one["quantization"]} if "quantization" in one else {})
        if kind == "loaded":
            return ep.load(one)
        return OBJECTS[one] if kind == "object" else tuple(one) if isinstance(one, list) else one

    name = case["function"]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with within(OF_A_LIST if name in ("what fits", "where it fits", "models") else SECONDS, None):
                given = {key: made(*one) for key, one in case["values"].items()}
                answer = ask(name, given)
                if answer is not None:
                    shown(answer)
        except Problem as problem:
            return refused(problem)
        except TypeError as error:  # a name that the function does not have, or one that it needs
            assert "argument" in str(error) and error.__traceback__.tb_next.tb_next is None, error
            return None
        if name in KINDS:
            KINDS[name](answer, given)
    for one in warned:
        is_one_line(str(one.message))


Problem = ep.Problem


def ask(name: str, given: dict[str, Any]) -> Any:
    """What a function gives, or a method of a model."""
    if name == "compare":
        rest = {key: one for key, one in given.items() if key not in ("first", "second")}
        return ep.compare(*(given[key] for key in ("first", "second") if key in given), **rest)
    if name in ("what fits", "where it fits"):
        return ep.fits(**given)
    if name not in ep.__all__:
        rest = {key: one for key, one in given.items() if key != "model"}
        model = given.get("model", "gpt2")
        model = model if isinstance(model, ep.Model) else ep.load(model)
        return model.to_dict(collapse=True, **rest) if name == "to_dict" else getattr(model, name)(**rest)
    return getattr(ep, name)(**given)


def shown(answer: Any) -> None:
    """Show and write an answer in every way that it has."""
    if isinstance(answer, dict | float) or type(answer) is int:
        return said(answer)
    for line in repr(answer).split("\n"):
        assert line.isprintable(), f"not as it may stand in a terminal: {line[:200]!r}"
    answer.to_csv(), answer.to_markdown()
    has_no_markup_of_ours(answer._repr_html_())
    said(answer.rows())
    if hasattr(answer, "to_dict"):
        said(answer.to_dict())


def said(data: Any) -> None:
    json.dumps(data, allow_nan=False)
    if not isinstance(data, list | dict) or "differ" not in data:
        invariants.no_number_is_strange(data)


# --- what each answer keeps to ------------------------------------------------------------------------------------


def _fits(answer: Any, given: dict[str, Any]) -> None:
    if hasattr(answer, "to_dict"):
        invariants.holds("fits", answer.to_dict())


def _shared(answer: Any, given: dict[str, Any]) -> None:
    for row in answer:
        assert row["saved"] == row["each"] - row["shared"] and 0 <= row["saved"] <= row["each"], row
    if int(given["prefix"]) > 1:
        less = ep.shared_prefix(**given | {"prefix": int(given["prefix"]) - 1})
        assert all(a["saved"] >= b["saved"] for a, b in zip(answer, less)), "a longer prefix saves less"


def _splits(answer: Any, given: dict[str, Any]) -> None:
    for row in answer:
        assert row["weights_bytes"] + row["cache_bytes"] + row["activations_bytes"] == row["total_bytes"]
        assert row["tensor"] * row["pipeline"] * row["data"] == int(given.get("devices", 8))


def _adds_up(answer: Any, given: dict[str, Any]) -> None:
    # A model without a KV cache has the one figure.
    column = next(name for name in ("bytes", "flops", "value") if name in answer.table.columns)
    assert sum(row[column] for row in answer.rows()) == answer >= 0


def _of(command: str) -> Callable[[Any, dict[str, Any]], None]:
    return lambda answer, given: invariants.holds(command, answer.to_dict())


KINDS: dict[str, Callable[[Any, dict[str, Any]], None]] = {
    "fits": _fits,
    "what fits": _fits,
    "where it fits": _fits,
    "offload": _fits,
    "shared_prefix": _shared,
    "splits": _splits,
    "kv_cache": _adds_up,
    "flops": _adds_up,
    "memory": _adds_up,
    "train": _of("train"),
    "speculative": _of("speculative"),
    "to_dict": lambda answer, given: invariants.holds("describe", answer),
}
