"""TensorRT-LLM on one or several devices: blocks of the cache from the memory that is free after the engine is loaded.

Source in TensorRT-LLM: `cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp` (`calculateMaxNumBlocks`, blocks rounded
up); `tensorrt_llm/llmapi/llm_args.py` (`KvCacheConfig`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from ..engine.errors import Problem
from . import vllm
from .conditions import Conditions
from .costs import Costs
from .deployments import BY_SOURCE, PROVED, Card, Deployment, Figure, Place, decimal, exactly, version_of
from .engine_options import BYTES, SHARE, TEXT, TOKENS, WHOLE, Option, Value, amount, text, whole, words_for
from .serving import Term, exact, window_of
from .splits import Split

NAME = "TensorRT-LLM"
VERSION = "0.13"
CODE = "https://github.com/NVIDIA/TensorRT-LLM/blob/main/"
SHARE_OF_FREE = Fraction(9, 10)  # free_gpu_memory_fraction
BLOCK = 64
CACHE_TYPES = {"auto": 0, "float16": 2, "bfloat16": 2, "fp8": 1, "int8": 1}

OPTIONS = (
    Option("tensor", ("--tp-size", "--tp_size", "--tensor-parallel-size"), WHOLE, "ranks that share each matrix"),
    Option("pipeline", ("--pp-size", "--pp_size"), WHOLE, "stages of layers"),
    Option(
        "share",
        ("--kv-cache-free-gpu-memory-fraction", "--free-gpu-memory-fraction"),
        SHARE,
        "part of the free memory for the cache; 0.9",
    ),
    Option("block", ("--tokens-per-block",), WHOLE, "tokens of a block; 64"),
    Option("length", ("--max-seq-len",), TOKENS, "tokens of a request"),
    Option("tokens", ("--max-tokens", "--max-num-tokens-in-paged-kv-cache"), TOKENS, "tokens of the cache at most"),
    Option("cache", ("--kv-cache-dtype",), TEXT, "type of the cache", choices=tuple(CACHE_TYPES)),
    Option(
        "room", ("--available-memory",), BYTES, "what its log calls available, on each rank; not an option of its own"
    ),
)
# Keys of its `KvCacheConfig` that no option of trtllm-serve sets.
IN_CONFIG = (("tokens_per_block", "block"), ("max_tokens", "tokens"), ("dtype", "cache"))
IGNORED = (
    "--host=",
    "--port=",
    "--max-batch-size=",
    "--max-num-tokens=",
    "--backend=",
    "--tokenizer=",
    "--trust-remote-code",
    "--extra-llm-api-options=",
)


def deploy(
    costs: Costs,
    given: Conditions,
    options: Mapping[str, Value],
    cards: Sequence[Card],
    version: str = "",
    longest: int = 0,
    draft: Costs | None = None,
) -> Deployment:
    """TensorRT-LLM with these options on these devices. Raises `Problem`."""
    version_of(version, VERSION, NAME)
    pipeline = whole(options, "pipeline", 1)
    tensor = whole(options, "tensor", 0) or max(len(cards) // pipeline, 1)
    if cards and len(cards) != tensor * pipeline:
        raise Problem(
            f"--tp-size {tensor:,} with --pp-size {pipeline:,} needs {tensor * pipeline:,} devices, and there are "
            f"{len(cards):,}",
            "make them fit",
        )
    if tensor not in costs.devices.tensors or costs.devices.n_layers % pipeline:
        raise Problem(
            f"--tp-size {tensor:,}, --pp-size {pipeline:,}: the model's sizes do not divide by them", "give divisors"
        )
    kept = costs.counts.kept
    if (
        costs.counts.waiting
        or any(k.row is None or k.tokens != 1 or window_of(costs, k) is not None for k in kept)
        or costs.compute.reads_source
    ):
        raise Problem("no rule is known for TensorRT-LLM's blocks of this model's cache", "leave out the engine")
    item = CACHE_TYPES[text(options, "cache", "auto")] or (1 if given.dtype == "fp8" else 2)
    sizes = vllm.elements_on_rank(costs, tensor)
    row = sum(sizes[i] * item * len(k.layers) for i, k in enumerate(kept) if not k.is_shared) // pipeline
    block = whole(options, "block", BLOCK)
    each = row * block
    if not each:
        raise Problem("the model keeps no cache", "leave out the engine")
    share = options.get("share")
    part = share if isinstance(share, Fraction) else SHARE_OF_FREE
    weights = max(costs.devices.split_weights(Split(tensor, 1, pipeline, 1), given.format))
    ends = amount(options, "room")
    rooms: list[int] = []
    if ends is not None:
        rooms = [ends[0], ends[2], ends[1]]
    elif cards:
        rooms = [max(min(card.free_bytes for card in cards) - weights, 0)] * 2
    found: list[Figure] = [
        exactly(
            "row", "cache of one token on a rank", row, "bytes", 0, "keys and values of all layers of a stage", PROVED
        ),
        exactly("page", "bytes of a block", each, "bytes", 0, f"{block:,} tokens", PROVED),
    ]
    counts = [math.ceil(part * room / each) for room in rooms]
    most = whole(options, "tokens", 0)
    if most:
        counts = [min(n, -(-most // block)) for n in counts]
    middle = [Fraction(n) for n in counts[2:]]
    if counts:
        low, high = counts[0], counts[1]
        proof = PROVED if ends is not None else BY_SOURCE
        rule = f"{decimal(part)} of the free memory by the bytes of a block, rounded up"
        found.append(
            Figure(
                "blocks",
                "blocks in primary pool",
                Fraction(low),
                Fraction(high),
                "",
                0,
                rule,
                proof,
                "",
                middle[0] if middle else None,
            )
        )
        between_ = [Fraction(n * each) for n in counts]
        found.append(
            Figure(
                "allocated",
                "Allocated",
                between_[0],
                between_[1],
                "GiB",
                2,
                "blocks × their bytes",
                proof,
                "",
                between_[2] if middle else None,
            )
        )
        tokens = [Fraction(n * block) for n in counts]
        found.append(
            Figure(
                "tokens",
                "tokens of the cache",
                tokens[0],
                tokens[1],
                "tokens",
                0,
                "blocks × tokens of a block",
                proof,
                "",
                tokens[2] if middle else None,
            )
        )
        length = length_of(options, given)
        of_one = -(-length // block)
        ratios = [Fraction(n, of_one) for n in counts]
        found.append(
            Figure(
                "concurrency",
                f"requests of {length:,} tokens",
                ratios[0],
                ratios[1],
                "x",
                2,
                f"{of_one:,} blocks each",
                proof,
                "",
                ratios[2] if middle else None,
            )
        )
    places: list[Place] = []
    for card in cards:
        size = counts[0] * each if counts else 0
        terms: list[Term] = [
            exact("weights", "weights", weights, "every tensor in its format, on a rank", CODE),
            exact(
                "cache",
                "cache",
                size,
                f"{counts[0] if counts else 0:,} blocks",
                f"{CODE}cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp",
            ),
        ]
        places.append(Place(card.name, tuple(terms), card.free_bytes))
    chosen: dict[str, Value] = {"length": whole(options, "length", given.tokens), "share": part}
    for key, n in (("tensor", tensor), ("pipeline", pipeline)):
        if n > 1:
            chosen[key] = n
    words = [  # as trtllm-serve spells them
        "--" + word.removeprefix("--").replace("-", "_") if word.startswith("--") else word
        for word in words_for(OPTIONS, chosen)
    ]
    inside = [(name, options[key]) for name, key in IN_CONFIG if key in options]
    advice: list[str] = []
    is_held = not counts or counts[0] * block >= length_of(options, given)
    if cards and not is_held:
        advice.append(f"--max_seq_len {counts[0] * block}: the longest request that the cache holds.")
    notes = (
        ["Buffers of the engine and of activations come on top: --available-memory takes what its log calls available."]
        if ends is None
        else []
    )
    if inside:
        said = ", ".join([f"{name}: {value}" for name, value in inside])
        notes.append(f"In the file of --extra_llm_api_options: kv_cache_config: {{{said}}}.")
    return Deployment(
        "tensorrt-llm",
        version or VERSION,
        tuple(places),
        tuple(found),
        tuple(words),
        tuple(advice),
        tuple(notes),
        request=(is_held, is_held),
    )


def length_of(options: Mapping[str, Value], given: Conditions) -> int:
    """The tokens of a request."""
    return whole(options, "length", given.tokens)
