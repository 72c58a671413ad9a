"""The list of figures, all in one module: the name, unit, convention and computation of each.

The macros `value`, `cost` and `figure_table`, the command line's `describe` (JSON and table) and the downloads read it.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from msgspec import Struct

from .conditions import Conditions
from .costs import Costs
from .costs import of as costs_of
from .parameters import Counts

PARAMETERS, NUMBERS, TENSORS, BYTES, FLOPS = "parameters", "numbers", "tensors", "bytes", "FLOPs"
TOKENS, SECONDS = "tokens", "seconds"
SCALES = {"": 1, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}  # of a short count


class Figure(Struct, frozen=True):
    """A figure: its name, its heading, its unit, the conditions that it depends on, and how it is computed.

    `key` is its place in the JSON of `describe`, `line` and `note` its texts in the table of `describe`. A figure
    `of_latents` adds nothing for a model without latent attention.
    """

    name: str
    title: str
    unit: str
    needs: tuple[str, ...]
    compute: Callable[[Costs, Conditions], int | Fraction | None]
    convention: str = ""
    key: str = ""
    line: str = ""
    note: str = ""
    of_latents: bool = False

    def of(self, counts: Counts, conditions: Conditions) -> int | Fraction | None:
        """The figure of a model; None for a batch size that is never reached."""
        return self.compute(costs_of(counts), conditions)


_IN_FULL = "scores in full; logits of the last token only"
_CAUSAL = "only the scores that the mask lets through"
_TRAINING = "forward and backward, logits of every token"
_CHUNK = ("context", "batch", "dtype")
_STEP = ("context", "batch", "format", "dtype")
_TIME = (*_STEP, "devices", "accelerator")

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        # parameters
        Figure(
            "total",
            "parameters",
            PARAMETERS,
            (),
            lambda c, given: c.counts.total,
            "unique and trainable; a tied table once",
            "parameters.total",
            "total",
        ),
        Figure(
            "active",
            "active parameters",
            PARAMETERS,
            (),
            lambda c, given: c.counts.active,
            "without the routed experts that a token does not choose",
            "parameters.active",
            "active",
            "without the routed experts that a token does not choose",
        ),
        Figure(
            "active_excluding_input_embedding",
            "active without the input embedding",
            PARAMETERS,
            (),
            lambda c, given: c.counts.active_excluding_input_embedding,
            "the convention of some makers, also without tables of n-grams; a table that is also the LM head counts",
            "parameters.active_excluding_input_embedding",
        ),
        Figure(
            "active_non_embedding",
            "active non-embedding parameters",
            PARAMETERS,
            (),
            lambda c, given: c.counts.active_non_embedding,
            "active without the embeddings, tables of n-grams and the LM head",
            "parameters.active_non_embedding",
            "active non-embedding",
            "active without the embeddings and the LM head",
        ),
        Figure(
            "excluding_ngram_tables",
            "parameters without tables of n-grams",
            PARAMETERS,
            (),
            lambda c, given: c.counts.excluding_ngram_tables,
            "the total without tables of n-grams",
            "parameters.excluding_ngram_tables",
            "without tables of n-grams",
        ),
        Figure(
            "embedding",
            "embedding and LM head parameters",
            PARAMETERS,
            (),
            lambda c, given: c.counts.embedding,
            "token and position embeddings and the LM head; a tied table once",
            "parameters.embedding",
            "embedding",
            "embeddings and LM head",
        ),
        Figure(
            "non_embedding",
            "non-embedding parameters",
            PARAMETERS,
            (),
            lambda c, given: c.counts.non_embedding,
            "the total without the embeddings and an untied LM head",
            "parameters.non_embedding",
            "non-embedding",
        ),
        Figure(
            "in_layers",
            "parameters in the layers",
            PARAMETERS,
            (),
            lambda c, given: sum(int(w.count) for w in c.counts.weights if w.layers is not None),
        ),
        Figure(
            "buffers",
            "buffer elements",
            NUMBERS,
            (),
            lambda c, given: c.counts.buffer_elements,
            "numbers that the file stores and no gradient changes",
        ),
        Figure(
            "tensors",
            "tensors",
            TENSORS,
            (),
            lambda c, given: sum(int(w.copies) for w in c.counts.weights + c.counts.buffers),
            "of the file, buffers included",
        ),
        # memory
        Figure(
            "weight_bytes",
            "bytes of weights",
            BYTES,
            ("format",),
            lambda c, given: c.weight_bytes(given.format),
            "as published, or with matrices in the given format, scales included; norms and biases in 16 bits",
            line="weights, bytes",
        ),
        Figure(
            "cache_bytes_per_token",
            "KV cache bytes per token",
            BYTES,
            ("dtype",),
            lambda c, given: c.counts.cache_bytes_per_token(given.item_bytes),
            "what one more token adds at long context",
            "kv_cache.bytes_per_token",
            "KV cache per token, bytes",
            "at long context, {width} per element",
        ),
        Figure(
            "cache_bytes_per_token_uncapped",
            "KV cache bytes per token, windows ignored",
            BYTES,
            ("dtype",),
            lambda c, given: c.counts.cache_bytes_per_token_uncapped(given.item_bytes),
            "every attention layer counted as growing; without an indexer’s keys",
            "kv_cache.bytes_per_token_uncapped",
        ),
        Figure(
            "index_bytes_per_token",
            "indexer key bytes per token",
            BYTES,
            ("dtype",),
            lambda c, given: c.counts.index_bytes_per_token(given.item_bytes),
            "0 without an indexer",
            "kv_cache.index_bytes_per_token",
            "of which an indexer's keys",
        ),
        Figure(
            "cache_bytes",
            "KV cache bytes",
            BYTES,
            _CHUNK,
            lambda c, given: c.counts.cache_bytes(given.tokens, given.item_bytes) * given.batch,
            "an indexer’s keys included; fixed states at their own size",
            "kv_cache.bytes_at",
            "KV cache at {context:,}, bytes",
        ),
        Figure(
            "index_bytes",
            "indexer key bytes",
            BYTES,
            _CHUNK,
            lambda c, given: c.cache.index_bytes(given.tokens, given.item_bytes) * given.batch,
            "0 without an indexer",
        ),
        Figure(
            "buffer_bytes",
            "bytes of tokens not yet compressed",
            BYTES,
            _CHUNK,
            lambda c, given: c.counts.buffer_bytes(given.tokens, given.item_bytes) * given.batch,
            "bounded, in addition to the cache; 0 where each entry holds one token",
            "costs.buffer_bytes_at",
        ),
        Figure(
            "expanded_cache_bytes",
            "KV cache bytes, latents expanded per head",
            BYTES,
            _CHUNK,
            lambda c, given: c.cache.expanded_cache_bytes(given.tokens, given.item_bytes) * given.batch,
            "without latents, the same as the cache",
            "costs.expanded_cache_bytes_at",
            "KV cache at {context:,}, latents expanded per head, bytes",
            of_latents=True,
        ),
        Figure(
            "inference_bytes",
            "bytes while generating",
            BYTES,
            _STEP,
            lambda c, given: sum(c.memory.inference_bytes(1, given).values()),
            "weights, cache and the largest operation of one new token",
            line="memory for decode at {context:,}, bytes",
        ),
        Figure(
            "training_bytes",
            "bytes while training",
            BYTES,
            ("context", "batch"),
            lambda c, given: sum(c.training.training_bytes(given.tokens, given.batch).values()),
            "AdamW in mixed precision, 16 bytes per parameter, and all activations",
            line="memory for training at {context:,}, bytes",
        ),
        Figure(
            "recomputed_training_bytes",
            "bytes while training, activations recomputed",
            BYTES,
            ("context", "batch"),
            lambda c, given: sum(c.training.training_bytes(given.tokens, given.batch, recompute=True).values()),
            "the input of each layer is kept, and one layer’s own at a time",
            line="the same, activations recomputed, bytes",
        ),
        Figure(
            "activation_bytes",
            "bytes of activations",
            BYTES,
            ("context", "batch"),
            lambda c, given: c.training.activation_bytes(given.tokens, given.batch),
            "the input of each step, and the attention weight of every (query, key) pair",
        ),
        Figure(
            "blocked_activation_bytes",
            "bytes of activations, attention in blocks",
            BYTES,
            ("context", "batch"),
            lambda c, given: c.training.activation_bytes(given.tokens, given.batch, pairs=False),
            "attention computed in blocks",
        ),
        Figure(
            "recomputed_activation_bytes",
            "bytes of activations, recomputed by layer",
            BYTES,
            ("context", "batch"),
            lambda c, given: c.training.activation_bytes(given.tokens, given.batch, recompute=True),
            "the input of each layer is kept, and one layer’s own at a time",
        ),
        Figure(
            "split_weight_bytes",
            "bytes of weights per device",
            BYTES,
            ("format", "devices"),
            lambda c, given: c.devices.split_weight_bytes(given.devices, given.format),
            "the fullest device; null where the sizes allow no split",
        ),
        Figure(
            "split_cache_bytes",
            "KV cache bytes per device",
            BYTES,
            (*_CHUNK, "devices"),
            lambda c, given: c.devices.split_cache_bytes(given.tokens, given.devices, given.batch, given.item_bytes),
            "the fullest device; null where the sizes allow no split",
        ),
        Figure(
            "device_bytes",
            "bytes per device while generating",
            BYTES,
            (*_STEP, "devices"),
            lambda c, given: c.devices.fullest_bytes(given),
            "the fullest device of the best split; each holds the largest operation whole",
            line="on the fullest device at {context:,}, bytes",
        ),
        Figure(
            "largest_context",
            "longest context that fits, tokens",
            TOKENS,
            ("batch", "format", "dtype", "devices", "accelerator"),
            lambda c, given: c.largest_context(given.machine.memory_bytes, given),
            "0 where none does; “never” where no context fills the memory",
            line="longest context that fits, tokens",
        ),
        # compute
        Figure(
            "decode_flops",
            "FLOPs per generated token",
            FLOPS,
            ("context",),
            lambda c, given: c.counts.decode_flops(given.tokens),
            "2 per multiply-add",
            "flops.decode_at",
            "FLOPs of a token at {context:,}",
            "2 per multiply-add",
        ),
        Figure(
            "prefill_flops",
            "prefill FLOPs",
            FLOPS,
            ("context",),
            lambda c, given: c.counts.prefill_flops(given.tokens),
            _IN_FULL,
            "flops.prefill",
            "FLOPs of a prompt of {context:,}",
            _IN_FULL,
        ),
        Figure(
            "causal_flops",
            "prefill FLOPs, causal",
            FLOPS,
            ("context",),
            lambda c, given: c.compute.causal_flops(given.tokens, given.tokens),
            _CAUSAL,
            "costs.flops.prefill_causal_at",
            "FLOPs of a prompt of {context:,}, causal",
            _CAUSAL,
        ),
        Figure(
            "score_flops",
            "FLOPs of attention scores",
            FLOPS,
            ("context",),
            lambda c, given: c.compute.pair_flops(given.tokens, given.tokens)[0],
            "attention scores and weighted sums of a whole prompt, without the causal mask",
        ),
        Figure(
            "training_flops",
            "training FLOPs per token",
            FLOPS,
            ("context",),
            lambda c, given: c.compute.training_flops_per_token(given.tokens),
            f"{_TRAINING}; scores in full",
            "costs.flops.training_per_token_at",
        ),
        Figure(
            "causal_training_flops",
            "training FLOPs per token, causal",
            FLOPS,
            ("context",),
            lambda c, given: c.compute.training_flops_per_token(given.tokens, causal=True),
            f"{_TRAINING}; {_CAUSAL}",
            "costs.flops.training_per_token_causal_at",
            "FLOPs of training per token at {context:,}",
        ),
        Figure(
            "six_per_active_parameter",
            "6 FLOPs per active parameter",
            FLOPS,
            (),
            lambda c, given: 6 * c.counts.active,
            "the rule of thumb for training on one token",
            "costs.flops.six_per_active_parameter",
        ),
        Figure(
            "expanded_causal_flops",
            "prefill FLOPs, latents written out per head",
            FLOPS,
            ("context",),
            lambda c, given: c.compute.expanded_flops(given.tokens, given.tokens, causal=True),
            _CAUSAL,
            "costs.flops.prefill_expanded_causal_at",
            "the same, latents expanded per head",
            "keys and values of latent attention for each head",
            of_latents=True,
        ),
        # a decoding step
        Figure(
            "weight_bytes_read",
            "bytes of weights read per generated token",
            BYTES,
            ("batch", "format"),
            lambda c, given: c.traffic.weight_bytes_read(1, given.batch, given.format),
            "only the experts that the batch is expected to choose",
        ),
        Figure(
            "cache_bytes_read",
            "bytes of cache read per generated token",
            BYTES,
            _CHUNK,
            lambda c, given: c.traffic.cache_bytes_read(1, given.tokens, given.batch, given.item_bytes),
            "the entries that the step attends to",
        ),
        Figure(
            "bytes_moved",
            "bytes moved per generated token",
            BYTES,
            _STEP,
            lambda c, given: c.traffic.bytes_moved(1, given),
            "each weight and each cached number once",
            line="bytes moved per token at {context:,}",
        ),
        Figure(
            "intensity",
            "arithmetic intensity of decoding",
            "FLOPs per byte",
            _STEP,
            lambda c, given: c.traffic.intensity(1, given),
            "without masked scores",
        ),
        # time
        Figure(
            "decode_seconds",
            "seconds per generated token",
            SECONDS,
            _TIME,
            lambda c, given: c.bound(1, given).seconds,
            "at least: at peak and full bandwidth, without time between devices",
        ),
        Figure(
            "prefill_seconds",
            "prefill seconds",
            SECONDS,
            _TIME,
            lambda c, given: c.bound(given.tokens, given).seconds,
            "at least",
        ),
        Figure(
            "tokens_per_second",
            "tokens per second",
            "tokens per second",
            _TIME,
            lambda c, given: given.batch / c.bound(1, given).seconds,
            "at best, summed over the batch",
        ),
        Figure(
            "critical_batch",
            "critical batch size",
            "sequences",
            ("context", "format", "dtype", "accelerator"),
            lambda c, given: c.critical_batch(given),
            "“never” where the cache of each sequence keeps memory the limit",
        ),
        Figure(
            "uncached_critical_batch",
            "critical batch size without a cache",
            "sequences",
            ("format", "accelerator"),
            lambda c, given: c.critical_batch(given.at(None)),
            "no cache is moved and nothing is scored",
        ),
        Figure(
            "devices_needed",
            "devices needed",
            "devices",
            (*_STEP, "accelerator"),
            lambda c, given: c.devices_needed(given),
            "for weights, cache and the largest operation; the smallest split that the sizes allow",
        ),
    )
}

ALIASES = {"parameters": "total"}


def figure(name: Any) -> Figure | None:
    """The figure with this name, or None."""
    return FIGURES.get(ALIASES.get(name, name)) if isinstance(name, str) else None
