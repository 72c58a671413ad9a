"""What each argument of a function changes, as approved text: an answer, and one with each argument at other values."""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from macros.engine.errors import Problem

from .answers import digest, plain

SHOWN = 80  # characters of an answer, before the digest of all of it
# Usual values of an argument, values at its bounds, and wrong ones.
VALUES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("context", "sequence"), (1, 100_000, 0, 10**10, "8k")),
    **dict.fromkeys(("batch", "micro_batch", "tensor", "pipeline", "data", "expert"), (2, 3, 0)),
    **dict.fromkeys(("devices", "zero"), (2, 7, 0, "2")),
    **dict.fromkeys(("weights", "dtype", "cache", "dispatch", "gradients"), ("int8", "fp8", "float32", "q8_0", "int3")),
    **dict.fromkeys(("on", "host"), ("h100", "24GB", "64GB,2xDDR5-5600", "h10")),
    **dict.fromkeys(("collapse", "components", "sequence_parallel", "master_weights", "descending"), (True, False)),
    **dict.fromkeys(("gpu_layers", "n_cpu_moe", "new_tokens", "draft_tokens", "rank", "prefix", "watts"), (1, 5, 1000)),
    **dict.fromkeys(("acceptance", "utilization"), (0.5, 1, 0, 1.1)),
    **dict.fromkeys(("price_per_hour", "purchase", "years", "electricity", "tokens"), (2, 0.5, 0, -1)),
    "method": ("lora", "qlora", "dora", "lor"),
    "optimizer": ("sgd", "adafactor", "muon", "adam8bit", "ada"),
    "recompute": ("full", "selective", "some"),
    "bias": ("all", "lora_only", "some"),
    "target_modules": ("all-linear", "q_proj,v_proj", "zzz"),
    "modules_to_save": ("lm_head", "zzz"),
    "layers_to_transform": ("0,1", 0, "99"),
    "rank_pattern": ("q_proj=4", "zzz"),
    "alpha_pattern": ("q_proj=4", "zzz=4", "zzz"),
    "exclude_modules": ("q_proj", "zzz"),
    "layers_pattern": ("layers", "zzz"),
    "target_parameters": ("experts.gate_up_proj", "zzz"),
    "engine": ("vllm", "ollama", "vlm"),
    "version": ("0.10", "99", "x"),
    "options": ("--max-model-len 4096", "--zzz"),
    "start": (0, 1, 9),
    "top": (1, 0),
    "all_logits": (True,),
    "memory": ("1GB", "1KB"),
    "without": ("norms", ("norms", "scaling"), "norm"),
    "trace": (True,),
    "tokens_per_second": (30, 10**6, 0),
    "draft": ("smollm2-135m", "zzz"),
    "family": ("GPT", "GTP"),
    "organization": ("OpenAI", "OpenAi Inc"),
    "min_parameters": (10**9, -1),
    "max_parameters": (10**9, -1),
    "sort_by": ("released", "total", "size"),
    "input": (1, 5000, 0),
    "output": (1, 5000, 0),
    "cached": (1, 5000, 0),
}


def said(call: Callable[..., Any], *given: Any, **named: Any) -> str:
    """An answer as text, with its warnings, or how it is refused."""
    with warnings.catch_warnings(record=True) as drawn:
        warnings.simplefilter("always")
        try:
            found = call(*given, **named)
            text = f"{found!r} {json.dumps(plain(found), ensure_ascii=False)} {getattr(found, 'table', '')}"
        except (Problem, TypeError, ValueError) as problem:
            return f"refused: {problem}"
    return " ".join([*(f"warning: {one.message};" for one in drawn), text])


def each_argument(call: Callable[..., Any], *given: Any, **named: Any) -> Iterator[str]:
    """The answer to these arguments, and with each further one at each of its values."""
    first = said(call, *given, **named)
    yield f"{first[: 4 * SHOWN]} {digest(first)}"
    for name in list(inspect.signature(call).parameters)[len(given) :]:
        for value in VALUES.get(name, ()):
            other = said(call, *given, **{**named, name: value})
            shown = other if other.startswith("refused") else f"{other[:SHOWN]} {digest(other)}"
            yield f"{name}={value!r}: {'the same' if other == first else shown}"
