"""From a trace to integers: parameters, FLOPs, cache. Every figure is an int or a polynomial; only views round."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..engine.architectures import Architecture
from ..engine.array import Node
from ..engine.dims import Dim, Poly
from ..engine.errors import Problem
from ..engine.steps import BUFFERS, Holds, Role
from ..engine.tensors import CacheEntry, Weight
from ..engine.trace import Trace
from .formats import BLOCK_OF_CACHE, ItemBytes, cached_bytes
from .parts import HEAD, INPUT_TABLES, OF_TOKENS, Part, partition
from .weight_formats import WeightFormats

if TYPE_CHECKING:
    from .file_weights import FileWeights

# An indexer's keys, which published figures of the KV cache leave out.
INDEX = Holds.INDEX_KEYS
# The config keys for the longest context that a model is made for.
LENGTHS = "max_position_embeddings", "max_seq_len", "n_positions", "model_max_length", "context_length"


def context_key(raw: Mapping[str, Any]) -> str | None:
    """The config's key for the longest context."""
    return next((key for key in LENGTHS if raw.get(key) is not None), None)


def stated_context(raw: Mapping[str, Any]) -> int | None:
    """The longest context that a config states, in tokens."""
    n = raw.get(context_key(raw) or "")
    return n if isinstance(n, int) and not isinstance(n, bool) and n > 0 else None


class Counts:
    """Every count of one model. Sizes are in elements unless a name says bytes; FLOPs are 2 per multiply-add.

    Conventions: a tied table counts once; `active` excludes routed experts that a token does not choose; scores count
    in full, not only their causal half; logits are for the last token only; an embedding lookup is 0.
    """

    def __init__(
        self,
        trace: Trace,
        raw: Mapping[str, Any] | None = None,
        architecture: Architecture | None = None,
        file: Callable[[], FileWeights | None] | None = None,
    ):
        """`raw` holds the keys of the config.json, which state the format of the published weights, and `file` reads
        the headers of the files."""
        self.trace: Trace = trace
        self._read = raw or {}, architecture, file
        # Small results that tables of all models need again: bytes of all weights in each format; operations with or
        # without pairs, see `Memory.operations`.
        self._totals: dict[str, int] = {}
        self.operations: dict[bool, list[tuple[dict[Poly, int], Node]]] = {}
        self.release()

    def release(self) -> None:
        """Drop the costs and the sizes in formats, which are most of a model's memory."""
        self.formats: WeightFormats = WeightFormats(self.trace, *self._read, self._totals)
        self.costs: object = None  # the model's `costs.of`, freed with it

    @property
    def raw(self) -> Mapping[str, Any]:
        """The keys of the config.json; none if they are not known."""
        return self._read[0]

    @cached_property
    def weights(self) -> tuple[Weight, ...]:
        """The trained tensors, in the order of their first use."""
        return tuple(w for w in self.trace.weights.values() if not w.is_buffer)

    @cached_property
    def buffers(self) -> tuple[Weight, ...]:
        """The other tensors of the checkpoint, which training by gradient does not change."""
        return tuple(w for w in self.trace.weights.values() if w.is_buffer)

    def tensors(self, weights: tuple[Weight, ...] | None = None) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Every tensor, (name, shape), none collapsed: layer by layer, within a layer in the order of first use."""
        for layered, group in itertools.groupby(
            self.weights if weights is None else weights, lambda w: w.layers is not None
        ):
            together = list(group)
            for i in sorted({i for w in together for i in w.layers or ()}) if layered else (None,):
                for w in together:
                    if i is None or i in (w.layers or ()):
                        shape = tuple(map(int, w.shape))
                        for name in w.names(i):
                            yield name, shape

    @cached_property
    def _sizes(self) -> tuple[Dim, ...]:
        return tuple(w.count for w in self.weights)

    @cached_property
    def total(self) -> int:
        """Unique trainable parameters."""
        return sum(map(int, self._sizes))

    @cached_property
    def total_poly(self) -> Poly:
        """The total as a polynomial of the sizes."""
        return Poly.sum(size.expr for size in self._sizes)

    @cached_property
    def buffer_elements(self) -> int:
        """Elements of the buffers."""
        return sum(int(w.count) for w in self.buffers)

    @cached_property
    def active(self) -> int:
        """Parameters without the routed experts that a token does not choose; embeddings and the head count in full."""
        return sum(int(w.active) for w in self.weights)

    @cached_property
    def active_poly(self) -> Poly:
        """`active` as a polynomial of the sizes."""
        return Poly.sum(w.active.expr for w in self.weights)

    @cached_property
    def active_excluding_input_embedding(self) -> int:
        """`active` without the tables of n-grams and the input table, unless that is also the head."""
        looked_up = self._touched_by(OF_TOKENS) - self._touched_by((HEAD,))
        return self.active - sum(int(w.count) for w in (*looked_up, *self.ngram_tables))

    @cached_property
    def ngram_tables(self) -> dict[Weight, int]:
        """The tables of n-grams, each with the number of rows that a token reads from it."""
        return {
            w: int(node.outputs[0].shape[-1]) // int(w.shape[-1])
            for node in self.trace.root.walk()
            if node.role is Role.NGRAM_EMBEDDING
            for w in node.weights
            if not w.is_buffer
        }

    @cached_property
    def embedding(self) -> int:
        """Elements of the token and position tables and of the head; a tied table counts once."""
        return sum(int(w.count) for w in self._touched_by((*INPUT_TABLES, HEAD)))

    @property
    def non_embedding(self) -> int:
        """The total without the input and position tables and without an untied head."""
        return self.total - self.embedding

    @property
    def active_non_embedding(self) -> int:
        """`active` without the input and position tables, the tables of n-grams and the head, tied or not."""
        return self.active - self.embedding - self._of_ngrams

    @property
    def excluding_ngram_tables(self) -> int:
        """The total without the tables of n-grams."""
        return self.total - self._of_ngrams

    @property
    def _of_ngrams(self) -> int:
        return sum(int(w.count) for w in self.ngram_tables)

    @property
    def is_tied(self) -> bool:
        """Whether the head is the input table."""
        return bool(self.tied)

    @property
    def tied(self) -> frozenset[str]:
        """The names of the weights that are both an input table and the head."""
        return frozenset(w.name for w in self._touched_by(INPUT_TABLES[:1]) & self._touched_by((HEAD,)))

    def _touched_by(self, roles: tuple[Role, ...]) -> set[Weight]:
        return {
            w for node in self.trace.root.children if node.role in roles for w in node.all_weights() if not w.is_buffer
        }

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The model cut into parts; every weight is in one of them."""
        return partition(self.trace)

    # FLOPs

    @cached_property
    def flops(self) -> Poly:
        """FLOPs of a step: a polynomial of the new tokens T and the context S that they end at."""
        return self.trace.root.flops

    def flops_at(self, new_tokens: int, context: int) -> int:
        """FLOPs of a step of `new_tokens` tokens, the last of which sees `context` tokens, including itself."""
        return self._flops_in_numbers.at({"T": new_tokens, "S": context})

    @cached_property
    def _flops_in_numbers(self) -> Poly:
        """`flops` with every size but T and S as a number: a few terms, quick to evaluate at many points."""
        return self.flops.in_numbers(self.trace.symbols)

    def decode_flops(self, context: int) -> int:
        """FLOPs of one new token that sees `context` tokens, including itself."""
        return self.flops_at(1, context)

    def prefill_flops(self, context: int) -> int:
        """FLOPs of a sequence of `context` tokens in one step, with the logits of the last token only."""
        return self.flops_at(context, context)

    def values(self, **free: int) -> Mapping[str, int]:
        """The value of every symbol, with T and S as given."""
        return {**self.trace.symbols, **free}

    # cache

    @cached_property
    def kept(self) -> tuple[CacheEntry, ...]:
        """The entries that layers keep between steps, without tokens that wait for a compressed entry."""
        return tuple(k for k in self.trace.kept if k.holds not in BUFFERS)

    @cached_property
    def waiting(self) -> tuple[CacheEntry, ...]:
        """The tokens that wait for a compressed entry (DeepSeek V4): never more rows than a few windows have."""
        return tuple(k for k in self.trace.kept if k.holds in BUFFERS)

    def cache_bytes(self, context: int, item_bytes: ItemBytes = 2) -> int:
        """Bytes of the cache after `context` tokens, including an indexer's keys; a fixed state has its own size per
        element.

        Tokens that wait for a compressed entry are excluded; `buffer_bytes` counts them.
        """
        at = {"S": context}
        self.check_cache(item_bytes)
        return sum(
            cached_bytes(elements.at(at), size or item_bytes) for size, elements in self._kept_in_numbers.items()
        )

    def check_cache(self, item_bytes: ItemBytes) -> None:
        """Raise `Problem` if rows of the cache are not whole blocks of its type, which llama.cpp rejects too."""
        if isinstance(item_bytes, int):
            return
        for k in self.kept:
            width = int((k.row or k.shape)[-1])
            if k.item_bytes is None and width % BLOCK_OF_CACHE != 0:
                what = f"cache: {k.holds} has rows of {width}, not a multiple of {BLOCK_OF_CACHE}"
                raise Problem(what, "ask for a cache without blocks, such as bfloat16 or fp8")

    @property
    def row_width(self) -> int:
        """A common divisor of the widths of the cache's rows, except those whose elements have their own size."""
        widths = [int((k.row or k.shape)[-1]) for k in self.kept if k.item_bytes is None]
        return math.gcd(0, *widths)

    def buffer_bytes(self, context: int, item_bytes: ItemBytes = 2) -> int:
        """Bytes of tokens that wait for a compressed entry (DeepSeek V4), at most those of two windows each; otherwise
        0."""
        self.check_cache(item_bytes)
        at = self.values(S=context)
        return sum(cached_bytes(k.elements.at(at), k.item_bytes or item_bytes) for k in self.waiting)

    @cached_property
    def _kept_in_numbers(self) -> dict[int | None, Poly]:
        """Elements kept, by their own size in bytes, with every size but S as a number."""
        found: dict[int | None, Poly] = {}
        for k in self.kept:
            found[k.item_bytes] = found.get(k.item_bytes, Poly.of(0)) + k.elements.in_numbers(self.trace.symbols)
        return found

    @cached_property
    def _slopes(self) -> list[int]:
        """Elements that one more token adds to each kept entry at long context."""
        end = stated_context(self._read[0])
        return [self._slope(k, end) for k in self.kept]

    def _slope(self, k: CacheEntry, end: int | None) -> int:
        """A window that the model's longest context `end` does not fill drops no rows: each token adds one."""
        if (late := k.slope.at(self.trace.symbols)) or end is None:
            return late
        is_growing = k.elements.at(self.values(S=end)) > k.elements.at(self.values(S=end - 1))
        return k.elements_per_token.at(self.trace.symbols) if is_growing else 0

    def cache_bytes_per_token(self, item_bytes: ItemBytes = 2) -> int:
        """Bytes that one more token adds at long context, including an indexer's keys: windows and chunks add none
        there, unless they are at least as long as the model's longest context."""
        self.check_cache(item_bytes)
        return sum(cached_bytes(size, k.item_bytes or item_bytes) for k, size in zip(self.kept, self._slopes))

    def cache_bytes_per_token_uncapped(self, item_bytes: ItemBytes = 2) -> int:
        """`cache_bytes_per_token` if every attention layer grew without limit, excluding an indexer's keys."""
        return self._row_bytes([row for row in self._rows if row[0].holds is not INDEX], item_bytes)

    def index_bytes_per_token(self, item_bytes: ItemBytes = 2) -> int:
        """The keys of an indexer (DeepSeek-V3.2, GLM-5), in addition to the keys and values or latents; otherwise 0."""
        return self._row_bytes([row for row in self._rows if row[0].holds is INDEX], item_bytes)

    @cached_property
    def _rows(self) -> list[tuple[CacheEntry, int]]:
        """Each kept entry, with the elements that one more token adds to it until rows are dropped."""
        return [(k, k.elements_per_token.at(self.trace.symbols)) for k in self.kept]

    def _row_bytes(self, rows: Iterable[tuple[CacheEntry, int]], item_bytes: ItemBytes) -> int:
        self.check_cache(item_bytes)
        return sum(cached_bytes(size, k.item_bytes or item_bytes) for k, size in rows)
