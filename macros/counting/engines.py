"""Four inference engines: the memory terms that each needs to serve a model, by its own rules.

Weights are in the requested format. Terms that follow from shapes are exact; activations are estimated from the arrays
that are alive at the same time; the memory of drivers and compilers is a measured range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from ..engine.bounds import MOST_TEXTS, MOST_TOKENS
from ..engine.dims import Poly
from ..engine.errors import Problem, nearest
from ..engine.facts import USUAL_MLX
from ..engine.steps import Holds
from ..engine.tensors import CacheEntry
from . import vllm
from .conditions import Conditions
from .costs import Costs
from .formats import CACHE_BYTES, PUBLISHED
from .parameters import INDEX
from .peak import peak
from .serving import (
    GIB,
    Pool,
    Serving,
    Term,
    between,
    estimate,
    exact,
    has_cuda,
    padded,
    row_of,
    steps_of,
    weights_term,
    window_of,
    written_out,
)

PYTORCH = "https://github.com/pytorch/pytorch/"
# Bytes on the device after the first small tensor, with kernels loaded lazily, and with all of them loaded at once.
CONTEXT_OF_PYTORCH = 287_047_680, 666_632_192
CONTEXT_SOURCE = f"{PYTORCH}pull/86509"
# `non_torch_memory` of its log, in hundredths of a GiB.
OUTSIDE_OF_PYTORCH = 15 * GIB // 100, 39 * GIB // 100
# What graph capture took according to the log, and vLLM's estimate of it; both in hundredths of a GiB.
GRAPHS = 11 * GIB // 100, 162 * GIB // 100
VLLM = "https://github.com/vllm-project/vllm/"
MLX = "https://github.com/ml-explore/mlx-lm/"
TRANSFORMERS = "https://github.com/huggingface/transformers/blob/main/src/transformers/"
MLX_STEP, MLX_BLOCK = 2048, 256  # tokens of a prefill step, and rows by which a cache grows
ACTIVATION_BYTES = 2

LIVE = "the arrays that are alive at once, by the order of the operations"


def names() -> tuple[str, ...]:
    """The names of the engines."""
    return tuple(ENGINES)


def engine(name: object) -> str:
    """An engine's name, accepted in upper or lower case. Raises `Problem`."""
    for known in ENGINES:
        if isinstance(name, str) and name.lower() in (known, *OTHER_NAMES.get(known, ())):
            return known
    mend = nearest(str(name), ENGINES, f"one of {', '.join(ENGINES)}")
    raise Problem("no such engine", mend).about("engine", name)


def serve(name: str, costs: Costs, given: Conditions, memory_bytes: int, device: str = "", vendor: str = "") -> Serving:
    """The memory that an engine needs to serve a model, with each sequence of the batch as long as the context. Raises
    `Problem` if no rule is known for the engine's cache of the model, or if that cache does not have the requested
    type."""
    if given.devices > 1:
        raise Problem(f"an engine is counted on one device, and devices = {given.devices}", "leave out one of the two")
    return ENGINES[name](costs, given, memory_bytes, device, vendor)


def exact_terms(name: str, costs: Costs, given: Conditions, memory_bytes: int, device: str = "") -> list[Term]:
    """The exact terms of `serve`, except the weights. Raises `Problem` as it does."""
    return EXACT[name](costs, given, memory_bytes, device)


def longest_context(
    name: str, costs: Costs, given: Conditions, memory_bytes: int, device: str = "", vendor: str = ""
) -> int | None:
    """The longest context at which even the engine's upper bound fits; 0 for none, None if every context does."""

    def is_enough(context: int) -> bool:
        serving = serve(name, costs, given.at(context), memory_bytes, device, vendor)
        return serving.most <= serving.limit(memory_bytes)

    return _largest(is_enough, MOST_TOKENS)


def largest_batch(
    name: str, costs: Costs, given: Conditions, memory_bytes: int, device: str = "", vendor: str = ""
) -> int | None:
    """The largest batch size at which even the engine's upper bound fits; None if every batch size does."""

    def is_enough(batch: int) -> bool:
        serving = serve(name, costs, replace(given, batch=batch), memory_bytes, device, vendor)
        return serving.most <= serving.limit(memory_bytes)

    return _largest(is_enough, MOST_TEXTS)


def _largest(is_enough: Callable[[int], bool], most: int) -> int | None:
    """The largest number that fits in memory; 0 if there is none, None if there is no limit."""
    if not is_enough(1):
        return 0
    if is_enough(most):
        return None
    low, high = 1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_enough(middle) else (low, middle)
    return low


def _alive(costs: Costs, tokens: int, context: int) -> int:
    """Elements that are alive at the same time if attention is computed in blocks."""
    values = costs.counts.values(T=tokens, S=max(context, tokens))

    def at(polynomial: Poly) -> int:
        return polynomial.at(values)

    return peak(steps_of(costs, pairs=False), at)[1]


def _of_llama_cpp(costs: Costs, given: Conditions, memory_bytes: int, device: str) -> list[Term]:
    from .llama_server import terms  # a browser loads these rules only for this engine

    return terms(costs, given)


def _llama_cpp(costs: Costs, given: Conditions, memory_bytes: int, device: str, vendor: str) -> Serving:
    from .llama_server import serving

    return serving(costs, given, vendor)


def _of_vllm(costs: Costs, given: Conditions, memory_bytes: int, device: str) -> list[Term]:
    """The cache in pages."""
    setting = vllm.usual(costs, memory_bytes, device, given.dtype)
    return _paged(_cache_of_vllm(costs, setting), given, setting.in_flight)


def _cache_of_vllm(costs: Costs, setting: vllm.Setting, vendor: str = "") -> vllm.Cache:
    """vLLM's layout of the cache. Raises `Problem` if no rule is known for it."""
    architecture = costs.formats.architecture
    if architecture is not None and architecture.vllm.is_packed:
        from .vllm_packed import layout_of  # a browser loads these rules only for such a model

        return layout_of(costs, setting, [vendor])
    return vllm.cache_of(costs, setting)


def _paged(cache: vllm.Cache, given: Conditions, step: int) -> list[Term]:
    blocks = cache.blocks(given.tokens, step)
    rule = f"pages of {cache.block:,} tokens, {blocks:,} blocks of {cache.block_bytes:,} bytes per sequence"
    size, unused = (n * given.batch for n in (blocks * cache.block_bytes, cache.unused(given.tokens, step)))
    return [exact("cache", "KV cache, paged", size, rule, f"{VLLM}blob/main/vllm/v1/core/kv_cache_utils.py", unused)]


def _vllm(costs: Costs, given: Conditions, memory_bytes: int, device: str, vendor: str) -> Serving:
    """`vllm serve` with its defaults for the device."""
    setting = vllm.usual(costs, memory_bytes, device, given.dtype)
    step, sequences = setting.step, setting.sequences
    cache = _cache_of_vllm(costs, setting, vendor)
    vocabulary, width = (costs.counts.values()[name] for name in ("vocab_size", "d_model"))
    alive = _alive(costs, step, max(step, given.tokens)) * ACTIVATION_BYTES
    logits = step * width * ACTIVATION_BYTES + sequences * vocabulary * (ACTIVATION_BYTES + 4)
    source = f"{VLLM}blob/main/vllm/v1/"
    others = [
        _weights_of_vllm(costs, given, device, vendor),
        estimate(
            "activations",
            f"activation peak at {step:,} tokens per step",
            max(alive, logits),
            f"the larger of {LIVE}, in 16 bits, and the logits of {sequences:,} sequences in 16 and 32 bits",
            f"{source}worker/gpu_worker.py",
        ),
        between(
            "outside",
            "memory outside of PyTorch",
            *OUTSIDE_OF_PYTORCH,
            "CUDA context and libraries, as three reports print it",
            f"{VLLM}issues/15340",
        ),
        between("graphs", "CUDA graphs", *GRAPHS, "as several reports print it", f"{VLLM}pull/39559"),
    ]
    budget = math.floor(vllm.SHARE * memory_bytes)
    blocks = cache.blocks(given.tokens, setting.in_flight)
    (paged,) = _paged(cache, given, setting.in_flight)
    room = (max(budget - sum(t.most for t in others), 0), max(budget - sum(t.least for t in others), 0))
    texts = tuple(Fraction(cache.held(size), blocks) if blocks else Fraction(0) for size in room)
    pool = Pool(
        budget,
        vllm.SHARE,
        room,
        (math.floor(texts[0] * given.tokens), math.floor(texts[1] * given.tokens)),
        (texts[0], texts[1]),
        blocks > 0,
    )
    options: dict[str, int | str] = {
        "--gpu-memory-utilization": f"{float(vllm.SHARE):.2f}",
        "--max-model-len": given.tokens,
        "--max-num-batched-tokens": step,
        "--max-num-seqs": sequences,
        "--kv-cache-dtype": given.dtype,
    }
    return Serving("vllm", (others[0], paged, *others[1:]), options, pool)


def _weights_of_vllm(costs: Costs, given: Conditions, device: str, vendor: str) -> Term:
    """The weights, padded by the kernel that the device chooses."""
    if given.format != PUBLISHED or "mxfp4" not in costs.formats.names:
        return weights_term(costs, given)
    from .vllm_server import weights_of_kernels  # imported only where weights are padded

    return weights_of_kernels(costs, given, device, vendor)


def _of_transformers(costs: Costs, given: Conditions, memory_bytes: int, device: str) -> list[Term]:
    """The dynamic cache and the logits."""
    _check_plain(costs, given, "transformers")
    steady, whole = of_dynamic(costs, given)
    vocabulary = costs.counts.values()["vocab_size"]
    source = TRANSFORMERS
    terms = [
        exact(
            "cache",
            "KV cache",
            steady,
            "one row per token so far; a window has its own length",
            f"{source}cache_utils.py",
        ),
    ]
    if whole > steady:
        rule = "the rows of the whole prompt, which a window keeps until the next token"
        terms.append(exact("prompt", "windows after the prompt", whole - steady, rule, f"{source}cache_utils.py"))
    terms.append(
        exact(
            "outputs",
            "logits",
            vocabulary * given.batch * (ACTIVATION_BYTES + 4),
            "one row per sequence in 16 bits, and a copy in 32",
            f"{source}generation/utils.py",
        )
    )
    return terms


def _transformers(costs: Costs, given: Conditions, memory_bytes: int, device: str, vendor: str) -> Serving:
    """`generate` with its dynamic cache: the whole prompt in one step."""
    *cached, outputs = _of_transformers(costs, given, memory_bytes, device)
    terms = [
        weights_term(costs, given),
        *cached,
        estimate(
            "activations",
            f"activations of a prompt of {given.tokens:,} tokens",
            _alive(costs, given.tokens, given.tokens) * given.batch * ACTIVATION_BYTES,
            f"{LIVE}, in 16 bits; all tokens of the prompt in one step",
            f"{TRANSFORMERS}generation/utils.py",
        ),
        outputs,
    ]
    if has_cuda(vendor):
        rule = "measured after the first tensor, kernels loaded as needed and all at once"
        terms.append(between("context", "CUDA context", *CONTEXT_OF_PYTORCH, rule, CONTEXT_SOURCE))
    return Serving("transformers", tuple(terms), {"cache_implementation": "dynamic", "attn_implementation": "sdpa"})


def of_dynamic(costs: Costs, given: Conditions) -> tuple[int, int]:
    """Bytes of transformers' dynamic cache: later, and right after the prompt."""
    tokens, item, batch = given.tokens, int(given.item_bytes), given.batch
    steady = whole = 0
    for k in costs.counts.kept:
        if k.is_shared:
            continue
        if k.row is None:
            size = row_of(k) * _state_item(k, item) * len(k.layers) * batch
            steady, whole = steady + size, whole + size
            continue
        row = row_of(k) * item * batch
        window = window_of(costs, k)
        kept = tokens if window is None else min(tokens, window)
        steady += row * kept * len(k.layers)
        whole += row * tokens * len(k.layers)
    return steady, whole


def _state_item(k: CacheEntry, item_bytes: int) -> int:
    """Bytes of an element of a state: its own size or, for a convolution, the size of the model's numbers."""
    return item_bytes if k.holds is Holds.CONVOLUTION else k.item_bytes or item_bytes


def _of_mlx(costs: Costs, given: Conditions, memory_bytes: int, device: str) -> list[Term]:
    """mlx-lm's cache and the logits."""
    _check_plain(costs, given, "mlx")
    later, reading = mlx_cache_bytes(costs, given)
    filled, _ = mlx_cache_bytes(costs, given, 1)
    source = f"{MLX}blob/main/mlx_lm/models/cache.py"
    terms = [
        exact(
            "cache",
            "KV cache",
            later,
            f"rows by blocks of {MLX_BLOCK}; a window's as long as it is",
            source,
            later - filled,
        ),
    ]
    if reading > later:
        rule = f"rows of a window and a step of {MLX_STEP:,} tokens, until prefill ends"
        terms.append(exact("prompt", "windows during prefill", reading - later, rule, source))
    terms.append(
        exact(
            "outputs",
            "logits",
            costs.counts.values()["vocab_size"] * given.batch * (ACTIVATION_BYTES + 4),
            "one row per sequence in 16 bits, and one in 32",
            f"{MLX}blob/main/mlx_lm/generate.py",
        )
    )
    return terms


def _mlx(costs: Costs, given: Conditions, memory_bytes: int, device: str, vendor: str) -> Serving:
    """mlx-lm's generation: the prompt in steps of 2,048 tokens."""
    *cached, outputs = _of_mlx(costs, given, memory_bytes, device)
    step = min(MLX_STEP, given.tokens)
    terms = [
        weights_term(costs, given),
        *cached,
        estimate(
            "activations",
            f"activations of a step of {step:,} tokens",
            _alive(costs, step, given.tokens) * given.batch * ACTIVATION_BYTES,
            f"{LIVE}, in 16 bits",
            f"{MLX}blob/main/mlx_lm/generate.py",
        ),
        outputs,
    ]
    return Serving("mlx", tuple(terms), {"prefill_step_size": MLX_STEP})


def mlx_cache_bytes(costs: Costs, given: Conditions, block: int = MLX_BLOCK) -> tuple[int, int]:
    """Bytes of mlx-lm's cache: after the first new token was generated from the prompt, and while the prompt is read;
    rows are allocated in blocks.
    """
    item, batch = int(given.item_bytes), given.batch
    later = reading = 0
    rule = costs.formats.architecture.mlx if costs.formats.architecture else USUAL_MLX
    for k in costs.counts.kept:
        if k.is_shared:
            continue
        is_windowed = k.row is not None and rule.is_windowed
        row = written_out(costs, k) if rule.is_written_out else row_of(k)
        row *= 2 if k.holds is INDEX else 1  # an indexer's keys are stored as values too
        window = window_of(costs, k) if is_windowed else None
        if k.row is None:
            # a convolution without the column of the new token
            kept = row_of(k) - (row_of(k) // int(k.shape[0]) if k.holds is Holds.CONVOLUTION else 0)
            first = last = kept * _state_item(k, item)
        elif window is None:
            first = last = padded(given.tokens, block) * row * item
        else:
            first, last = (rows * row * item for rows in rotating_rows(given.tokens, window, block))
        later += last * len(k.layers) * batch
        reading += first * len(k.layers) * batch
    return later, max(reading, later)


def rotating_rows(tokens: int, window: int, block: int = MLX_BLOCK) -> tuple[int, int]:
    """The maximum number of rows of a rotating cache while a prompt is read, and the number after its last token."""
    before = tokens - 1  # are read in steps, the last token in a step of its own
    steps, rest = before // MLX_STEP, before % MLX_STEP
    most = rows = min((steps - 1) * MLX_STEP, window - 1) + MLX_STEP if steps else 0
    if rest:
        rows = min(steps * MLX_STEP, window - 1) + rest
        most = max(most, rows)
    if rows >= window:
        return most, window
    return most, rows + min(block, window - (tokens - 1))


def _check_plain(costs: Costs, given: Conditions, name: str) -> None:
    """Raise `Problem` for entries that an engine's plain cache does not hold."""
    kept = costs.counts.kept
    if costs.counts.waiting or any(k.tokens != 1 for k in kept) or costs.compute.reads_source:
        raise Problem(f"no rule is known for the cache of {name} with this model", "leave out the engine")
    if name == "mlx" and any("chunk" in symbol for k in kept for symbol in k.shape[0].expr.symbols):
        raise Problem("no rule is known for the cache of mlx with chunks", "leave out the engine")
    if given.dtype not in CACHE_BYTES or CACHE_BYTES[given.dtype] < 2:
        raise Problem(f"the plain cache of {name} is not quantized, and cache = {given.dtype}", "give bfloat16")


ENGINES: dict[str, Callable[[Costs, Conditions, int, str, str], Serving]] = {
    "vllm": _vllm,
    "llama.cpp": _llama_cpp,
    "transformers": _transformers,
    "mlx": _mlx,
}
# The exact terms of each engine, other than the weights.
EXACT: dict[str, Callable[[Costs, Conditions, int, str], list[Term]]] = {
    "vllm": _of_vllm,
    "llama.cpp": _of_llama_cpp,
    "transformers": _of_transformers,
    "mlx": _of_mlx,
}
TITLES = {"vllm": "vLLM", "mlx": "MLX"}  # names used in sentences, if different
OTHER_NAMES = {"llama.cpp": ("llama-cpp", "llamacpp"), "transformers": ("hf", "huggingface"), "mlx": ("mlx-lm",)}
