"""The list of figures, all in one module: what each is called, its unit, its convention, how it is computed.

The macros `value`, `cost` and `figure_table`, the command line's `describe` (JSON and table) and the downloads read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from .conditions import Conditions
from .costs import Costs
from .costs import of as costs_of
from .parameters import Counts

PARAMETERS, NUMBERS, TENSORS, BYTES, FLOPS = "parameters", "numbers", "tensors", "bytes", "FLOPs"
TOKENS, SECONDS = "tokens", "seconds"


@dataclass(frozen=True)
class Figure:
    """A figure: its name, what a heading calls it, its unit, the conditions that it depends on, and how it is computed.

    `key` is its place in the JSON of `describe`, `line` and `note` what the table of `describe` says of it. A figure
    that is `of_latents` says nothing new of a model without latent attention.
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
        """The figure of a model; None for a batch that is never reached."""
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
            "active without the input table",
            PARAMETERS,
            (),
            lambda c, given: c.counts.active_excluding_input_embedding,
            "the convention of some makers; a table that is the head too stays",
            "parameters.active_excluding_input_embedding",
        ),
        Figure(
            "embedding",
            "embedding parameters",
            PARAMETERS,
            (),
            lambda c, given: c.counts.embedding,
            "token and position tables and the head; a tied table once",
            "parameters.embedding",
            "embedding",
            "tables and head",
        ),
        Figure(
            "non_embedding",
            "non-embedding parameters",
            PARAMETERS,
            (),
            lambda c, given: c.counts.non_embedding,
            "the total without the tables and an untied head",
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
            "what the file stores and training does not touch by gradient",
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
            "bytes of the weights at 2 bytes each",
            BYTES,
            ("format",),
            lambda c, given: c.weight_bytes(given.format),
            "matrices in the format, with their scales; norms and biases in 16 bits",
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
            "KV cache a token, bytes",
            "at long context, {width} an element",
        ),
        Figure(
            "cache_bytes_per_token_uncapped",
            "KV cache bytes per token, windows ignored",
            BYTES,
            ("dtype",),
            lambda c, given: c.counts.cache_bytes_per_token_uncapped(given.item_bytes),
            "every attention layer taken as growing; without an indexer’s keys",
            "kv_cache.bytes_per_token_uncapped",
        ),
        Figure(
            "index_bytes_per_token",
            "bytes of an indexer's keys per token",
            BYTES,
            ("dtype",),
            lambda c, given: c.counts.index_bytes_per_token(given.item_bytes),
            "0 without an indexer",
            "kv_cache.index_bytes_per_token",
            "of these, an indexer's keys",
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
            "bytes of an indexer's keys",
            BYTES,
            _CHUNK,
            lambda c, given: c.index_bytes(given.tokens, given.item_bytes) * given.batch,
            "0 without an indexer",
        ),
        Figure(
            "buffer_bytes",
            "bytes of tokens that wait for a compressed entry",
            BYTES,
            _CHUNK,
            lambda c, given: c.counts.buffer_bytes(given.tokens, given.item_bytes) * given.batch,
            "bounded, beside the cache; 0 where one row stands for one token",
            "costs.buffer_bytes_at",
        ),
        Figure(
            "expanded_cache_bytes",
            "KV cache bytes, latents written out per head",
            BYTES,
            _CHUNK,
            lambda c, given: c.expanded_cache_bytes(given.tokens, given.item_bytes) * given.batch,
            "without latents, the same as the cache",
            "costs.expanded_cache_bytes_at",
            "KV cache at {context:,}, heads written out, bytes",
            of_latents=True,
        ),
        Figure(
            "inference_bytes",
            "bytes to continue a batch",
            BYTES,
            _STEP,
            lambda c, given: sum(c.inference_bytes(1, given).values()),
            "weights, cache and the largest operation of one new token",
            line="memory to continue a text of {context:,}, bytes",
        ),
        Figure(
            "training_bytes",
            "bytes to train",
            BYTES,
            ("context", "batch"),
            lambda c, given: sum(c.training_bytes(given.tokens, given.batch).values()),
            "AdamW in mixed precision, 16 bytes a parameter, and all activations",
            line="memory to train on a text of {context:,}, bytes",
        ),
        Figure(
            "recomputed_training_bytes",
            "bytes to train, activations recomputed",
            BYTES,
            ("context", "batch"),
            lambda c, given: sum(c.training_bytes(given.tokens, given.batch, recompute=True).values()),
            "the input of each layer is kept, and one layer’s own at a time",
            line="the same, recomputed by layer, bytes",
        ),
        Figure(
            "activation_bytes",
            "bytes of the activations",
            BYTES,
            ("context", "batch"),
            lambda c, given: c.activation_bytes(given.tokens, given.batch),
            "what each step read, the shares of every (query, key) pair too",
        ),
        Figure(
            "blocked_activation_bytes",
            "bytes of the activations without pairs",
            BYTES,
            ("context", "batch"),
            lambda c, given: c.activation_bytes(given.tokens, given.batch, pairs=False),
            "attention computed in blocks",
        ),
        Figure(
            "recomputed_activation_bytes",
            "bytes of the activations, recomputed by layer",
            BYTES,
            ("context", "batch"),
            lambda c, given: c.activation_bytes(given.tokens, given.batch, recompute=True),
            "the input of each layer is kept, and one layer’s own at a time",
        ),
        Figure(
            "split_weight_bytes",
            "bytes of the weights on each device",
            BYTES,
            ("format", "devices"),
            lambda c, given: c.split_weight_bytes(given.devices, given.format),
            "tensor parallel, the fullest device",
        ),
        Figure(
            "split_cache_bytes",
            "KV cache bytes on each device",
            BYTES,
            (*_CHUNK, "devices"),
            lambda c, given: c.split_cache_bytes(given.tokens, given.devices, given.batch, given.item_bytes),
            "tensor parallel, the fullest device",
        ),
        Figure(
            "device_bytes",
            "bytes on each device to continue texts",
            BYTES,
            (*_STEP, "devices"),
            lambda c, given: sum(c.device_bytes(given).values()),
            "tensor parallel, the fullest device; the largest operation whole on each",
            line="on the fullest device at {context:,}, bytes",
        ),
        Figure(
            "largest_context",
            "tokens of the longest context that fits",
            TOKENS,
            ("batch", "format", "dtype", "devices", "accelerator"),
            lambda c, given: c.largest_context(given.machine.memory_bytes, given),
            "0 where none does; “never” where no context fills the memory",
            line="longest context that fits, tokens",
        ),
        # compute
        Figure(
            "decode_flops",
            "FLOPs of one new token",
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
            "FLOPs of reading the whole text",
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
            "FLOPs of reading the whole text, causal",
            FLOPS,
            ("context",),
            lambda c, given: c.causal_flops(given.tokens, given.tokens),
            _CAUSAL,
            "costs.flops.prefill_causal_at",
            "FLOPs of a prompt of {context:,}, causal",
            _CAUSAL,
        ),
        Figure(
            "score_flops",
            "FLOPs over pairs of tokens",
            FLOPS,
            ("context",),
            lambda c, given: c.pair_flops(given.tokens, given.tokens),
            "scores and averages of a whole text, in full",
        ),
        Figure(
            "training_flops",
            "FLOPs of training on a token",
            FLOPS,
            ("context",),
            lambda c, given: c.training_flops_per_token(given.tokens),
            f"{_TRAINING}; scores in full",
            "costs.flops.training_per_token_at",
        ),
        Figure(
            "causal_training_flops",
            "FLOPs of training on a token, causal",
            FLOPS,
            ("context",),
            lambda c, given: c.training_flops_per_token(given.tokens, causal=True),
            f"{_TRAINING}; {_CAUSAL}",
            "costs.flops.training_per_token_causal_at",
            "FLOPs of training on a token, texts of {context:,}",
        ),
        Figure(
            "six_per_active_parameter",
            "6 FLOPs for each active parameter",
            FLOPS,
            (),
            lambda c, given: 6 * c.counts.active,
            "the rule for training on a token",
            "costs.flops.six_per_active_parameter",
        ),
        Figure(
            "expanded_causal_flops",
            "FLOPs of reading the whole text, latents written out per head",
            FLOPS,
            ("context",),
            lambda c, given: c.expanded_flops(given.tokens, given.tokens, causal=True),
            _CAUSAL,
            "costs.flops.prefill_expanded_causal_at",
            "FLOPs of the same, heads written out",
            "keys and values of latent attention for each head",
            of_latents=True,
        ),
        # a decoding step
        Figure(
            "weight_bytes_read",
            "bytes of weights read for one new token",
            BYTES,
            ("batch", "format"),
            lambda c, given: c.weight_bytes_read(1, given.batch, given.format),
            "of the experts, those that some text’s token is expected to choose",
        ),
        Figure(
            "cache_bytes_read",
            "bytes of cache read for one new token",
            BYTES,
            _CHUNK,
            lambda c, given: c.cache_bytes_read(1, given.tokens, given.batch, given.item_bytes),
            "what the step sees",
        ),
        Figure(
            "bytes_moved",
            "bytes moved for one new token",
            BYTES,
            _STEP,
            lambda c, given: c.bytes_moved(1, given),
            "each weight and each cached number once",
            line="moved for a token at {context:,}, bytes",
        ),
        Figure(
            "intensity",
            "FLOPs per byte of one new token",
            "FLOPs per byte",
            _STEP,
            lambda c, given: c.intensity(1, given),
            "masked scores left out",
        ),
        # time
        Figure(
            "decode_seconds",
            "seconds of one new token",
            SECONDS,
            _TIME,
            lambda c, given: c.bound(1, given).seconds,
            "at the least: the peak, the full bandwidth, no time between devices",
        ),
        Figure(
            "prefill_seconds",
            "seconds of reading the whole text",
            SECONDS,
            _TIME,
            lambda c, given: c.bound(given.tokens, given).seconds,
            "at the least",
        ),
        Figure(
            "tokens_per_second",
            "tokens per second",
            "tokens per second",
            _TIME,
            lambda c, given: given.batch / c.bound(1, given).seconds,
            "at best, of the whole batch together",
        ),
        Figure(
            "critical_batch",
            "sequences from which compute limits",
            "sequences",
            ("context", "format", "dtype", "accelerator"),
            lambda c, given: c.critical_batch(given),
            "“never” where the cache of each sequence keeps memory the limit",
        ),
        Figure(
            "uncached_critical_batch",
            "sequences from which compute limits, without a cache",
            "sequences",
            ("format", "accelerator"),
            lambda c, given: c.critical_batch(given.at(None)),
            "no cache is moved and nothing is scored",
        ),
        Figure(
            "devices_needed",
            "devices that hold the model",
            "devices",
            (*_STEP, "accelerator"),
            lambda c, given: c.devices_needed(given),
            "weights, cache and largest operation, nothing copied",
        ),
    )
}

ALIASES = {"parameters": "total"}


def figure(name: str) -> Figure | None:
    """The figure of a name; None for a name of something else."""
    return FIGURES.get(ALIASES.get(name, name))
