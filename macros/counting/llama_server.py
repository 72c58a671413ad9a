"""The memory of llama.cpp's server: its buffers as terms."""

from __future__ import annotations

from dataclasses import replace

from . import llama_cpp
from .conditions import Conditions
from .costs import Costs
from .parameters import INDEX
from .serving import MIB, Serving, Term, between, estimate, exact, has_cuda, weights_term

LLAMA_CPP = "https://github.com/ggml-org/llama.cpp/"
# What its own breakdown leaves unaccounted for on three RTX 4090, in MiB.
CONTEXT = 451 * MIB, 456 * MIB


def _setting(given: Conditions) -> llama_cpp.Setting:
    return llama_cpp.Setting(
        given.tokens * given.batch, given.batch, dtype=given.dtype, outputs=given.batch, step=llama_cpp.STEP
    )


def terms(costs: Costs, given: Conditions) -> list[Term]:
    """The cache, states and logits."""
    setting = _setting(given)
    llama_cpp.architecture(costs)
    found: list[Term] = []
    source = f"{LLAMA_CPP}blob/master/src/"
    if size := llama_cpp.cache_bytes(costs, setting):
        rule = f"all {given.tokens:,} tokens of each sequence from the start, padded to {llama_cpp.CELLS}"
        if llama_cpp.has_windows(costs):
            rule += f"; a window keeps its length and a step of {setting.step}"
        unused = size - llama_cpp.cache_bytes(costs, replace(setting, unit=1))
        found.append(exact("cache", "KV buffer", size, rule, f"{source}llama-kv-cache.cpp", unused))
    if size := llama_cpp.state_bytes(costs, setting):
        rule = "states and convolutions in 32 bits, per sequence"
        found.append(exact("state", "RS buffer (recurrent state)", size, rule, f"{source}llama-memory-recurrent.cpp"))
    found += [
        exact(
            "outputs",
            "output buffer (logits)",
            llama_cpp.output_bytes(costs, setting),
            "one row of the vocabulary per sequence, in 32 bits",
            f"{source}llama-context.cpp",
        ),
    ]
    return found


def serving(costs: Costs, given: Conditions, vendor: str) -> Serving:
    """llama-server with `--ctx-size` for all sequences and `--parallel` for their number."""
    setting = _setting(given)
    found = [weights_term(costs, given), *terms(costs, given), _computing(costs, setting)]
    if has_cuda(vendor):
        rule = "what its breakdown leaves unaccounted for on three RTX 4090"
        found.append(between("context", "CUDA context", *CONTEXT, rule, f"{LLAMA_CPP}pull/15860"))
    options: dict[str, int | str] = {
        "--ctx-size": given.tokens * given.batch,
        "--parallel": given.batch,
        "--ubatch-size": setting.step,
        "--flash-attn": "on",
        "--cache-type-k": llama_cpp.NAMES.get(given.dtype, given.dtype),
        "--cache-type-v": llama_cpp.NAMES.get(given.dtype, given.dtype),
    }
    return Serving("llama.cpp", tuple(found), options)


def _computing(costs: Costs, setting: llama_cpp.Setting) -> Term:
    """The buffer of a step: an estimate; for a model with an indexer, which has additional arrays, a range."""
    name = f"compute buffer at {setting.tokens:,} tokens per step"
    size, source = llama_cpp.compute_bytes(costs, setting), f"{LLAMA_CPP}blob/master/ggml/src/ggml-alloc.c"
    rule = "arrays in 32 bits, laid out in order as its allocator does, and the masks"
    if any(k.holds is INDEX for k in costs.counts.kept):
        most = size * llama_cpp.WITH_INDEXER.numerator // llama_cpp.WITH_INDEXER.denominator
        return between(
            "compute", name, size, most, f"{rule}; models with an indexer printed up to that much more", source
        )
    return estimate("compute", name, size, rule, source)
