"""vLLM's cache: pages of a block of tokens, layers in groups that share them, and the memory that its share leaves.

Source in vLLM: `v1/kv_cache_interface.py` and `v1/core/kv_cache_utils.py` (pages, groups, blocks of a request),
`config/cache.py` (blocks of 16 tokens, a share of 0.92), `engine/arg_utils.py` (tokens and sequences of a step); the
pages of recurrent layers as in its log. The tests compare the results with the cache sizes in logs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..engine.errors import Problem
from ..engine.steps import Holds, Role
from ..engine.tensors import CacheEntry
from .costs import Costs
from .parameters import INDEX
from .serving import GIB, padded, row_of, window_of

BLOCK = 16
SHARE = Fraction(92, 100)  # --gpu-memory-utilization
# --max-num-batched-tokens and --max-num-seqs of its server: on 70 GiB and more that are no A100, and on all else
LARGE, USUAL = (8192, 1024), (2048, 256)
STATES = 2  # pages of a recurrent layer per sequence with prefix caching, its default; without, one
TYPES = {"float32": 4, "bfloat16": 2, "float16": 2, "fp8": 1}


@dataclass(frozen=True)
class Setting:
    """The options: tokens and sequences of a step, the type of the cache, pages of a state."""

    step: int
    sequences: int
    dtype: str = "bfloat16"
    states: int = STATES

    @property
    def item_bytes(self) -> int:
        """Bytes of an element of the cache. Raises `Problem` for a type that vLLM does not have."""
        if self.dtype not in TYPES:
            raise Problem(f"vLLM has no cache of type {self.dtype}", "give bfloat16 or fp8")
        return TYPES[self.dtype]


def defaults(memory_bytes: int, name: str) -> tuple[int, int]:
    """Tokens and sequences of a step on a device."""
    return LARGE if memory_bytes >= 70 * GIB and "a100" not in name.lower() else USUAL


@dataclass(frozen=True)
class Layers:
    """Layers of one kind: how many, bytes of a page of each, the tokens of it, and the window or chunk; of recurrent
    layers the pages and the bytes of a state."""

    number: int
    page: int
    block: int
    window: int | None = None
    is_chunk: bool = False
    states: int = 0
    state: int = 0

    def rows(self, tokens: int, step: int) -> int:
        """Tokens that are kept of so many."""
        if self.window is None:
            return tokens
        return min(self.window + step if self.is_chunk else self.window - 1 + step, tokens)

    def pages(self, tokens: int, step: int) -> int:
        """Pages of one layer for a sequence of this many tokens."""
        if self.states:
            return self.states
        begun = self.window is not None and not self.is_chunk  # a window need not begin with a block
        return -(-self.rows(tokens, step) // self.block) + (1 if begun else 0)

    def used(self, tokens: int, step: int) -> int:
        """Bytes of those pages, in all layers, that hold something."""
        if self.states:
            return self.number * self.states * self.state
        return self.number * self.rows(tokens, step) * (self.page // self.block)


@dataclass(frozen=True)
class Cache:
    """The layout of a model's cache: its kinds of layers, the number of layers that share a pool of pages, the number
    of groups, bytes of a block over all layers of a group, and the fewest tokens of a block."""

    kinds: tuple[Layers, ...]
    layers: int
    groups: int
    block_bytes: int
    block: int

    def blocks(self, tokens: int, step: int) -> int:
        """Blocks for a sequence of this many tokens."""
        if self.layers == 0:
            return max((kind.pages(tokens, step) for kind in self.kinds), default=0)
        return sum(-(-kind.number // self.layers) * kind.pages(tokens, step) for kind in self.kinds)

    def unused(self, tokens: int, step: int) -> int:
        """Bytes of those blocks that hold nothing: the rest of a sequence's last block, of pages that are as large as
        another kind's, of groups that are not full.
        """
        used = sum(kind.used(tokens, step) for kind in self.kinds)
        return self.blocks(tokens, step) * self.block_bytes - used

    def held(self, room: int) -> int:
        """Blocks that this many bytes hold."""
        return max(room, 0) // self.block_bytes if self.block_bytes else 0

    def printed_tokens(self, blocks: int) -> int:
        """The tokens that `GPU KV cache size` prints."""
        return blocks // self.groups * self.block if self.groups else 0


def cache_of(costs: Costs, setting: Setting) -> Cache:
    """vLLM's layout of a model's cache. Raises `Problem` if no rule is known for its pages."""
    kept = costs.counts.kept
    if costs.counts.waiting or any(k.tokens != 1 or k.holds is INDEX for k in kept) or costs.reads_source:
        raise Problem("no rule is known for vLLM's pages of this model's cache", "leave out --engine")
    of_layers: dict[tuple[int | None, bool, int], set[int]] = {}
    attention: dict[int, list[CacheEntry]] = {}
    states: dict[int, list[CacheEntry]] = {}
    for k in kept:
        if not k.is_shared:
            for layer in k.layers:
                (states if k.row is None else attention).setdefault(layer, []).append(k)
    for entries, layers in _alike(attention):
        bytes_of_token = sum(row_of(k) for k in entries) * setting.item_bytes
        kind = window_of(costs, entries[0]), _is_chunk(entries[0]), bytes_of_token
        of_layers.setdefault(kind, set()).update(layers)
    kinds = [
        Layers(len(layers), size * BLOCK, BLOCK, window, chunk) for (window, chunk, size), layers in of_layers.items()
    ]
    is_mamba = any(node.role in (Role.MAMBA, Role.MAMBA2) for node in costs.trace.root.walk()) if states else False
    state = {_state_bytes(entries, is_mamba) for entries, _ in _alike(states)}
    if len(state) > 1:
        raise Problem("no rule is known for vLLM's pages of states of several sizes", "leave out --engine")
    if state:
        return _with_states(kinds, len(states), state.pop(), setting.states)
    if len({kind.window for kind in kinds}) <= 1:  # one group, each layer with pages of its own size
        return Cache(tuple(kinds), 0, min(len(kinds), 1), sum(k.number * k.page for k in kinds), BLOCK)
    return _grouped(_as_large(kinds))


def _alike(by_layer: dict[int, list[CacheEntry]]) -> list[tuple[list[CacheEntry], list[int]]]:
    """The entries of layers that keep the same ones, once, with these layers."""
    found: dict[tuple[int, ...], tuple[list[CacheEntry], list[int]]] = {}
    for layer, entries in by_layer.items():
        found.setdefault(tuple([id(k) for k in entries]), (entries, []))[1].append(layer)
    return list(found.values())


def _is_chunk(k: CacheEntry) -> bool:
    return any("chunk" in symbol for symbol in k.shape[0].expr.symbols)


def _state_bytes(entries: list[CacheEntry], is_mamba: bool) -> int:
    """Bytes of the states of one layer: a convolution without the column of the new token in 16 bits, a state of a
    delta rule in 32 bits and one of Mamba in 16."""
    total = 0
    for k in entries:
        size = row_of(k)
        if k.holds is Holds.CONVOLUTION:
            total += (size - size // int(k.shape[0])) * 2
        else:
            total += size * (2 if is_mamba else 4)
    return total


def _with_states(kinds: list[Layers], number: int, state: int, states: int) -> Cache:
    """Attention in a model with recurrent layers: a block is long enough that a page holds a state."""
    if not kinds:
        return Cache((Layers(number, state, 1, states=states, state=state),), number, 1, state * number, 1)
    widest = max(kind.page // kind.block for kind in kinds)
    block = padded(-(-max(state, 1) // widest), BLOCK)  # a convolution of one tap keeps nothing
    pages = [Layers(k.number, k.page // k.block * block, block, k.window, k.is_chunk) for k in kinds]
    page = max(kind.page for kind in pages)
    return _grouped([*_as_large(pages), Layers(number, page, block, states=states, state=state)])


def _as_large(kinds: list[Layers]) -> list[Layers]:
    """Pages of one size: a block of smaller rows holds more tokens."""
    page = max(kind.page for kind in kinds)
    if any(page % kind.page for kind in kinds):
        raise Problem("no rule is known for vLLM's pages of layers whose rows do not divide", "leave out --engine")
    return [Layers(k.number, page, k.block * (page // k.page), k.window, k.is_chunk, k.states) for k in kinds]


def _grouped(kinds: list[Layers]) -> Cache:
    """Layers in groups of the size of the rarest kind, or of the most frequent if that has less than half as many
    again: layers at the same place in each group share the same memory."""
    numbers = [kind.number for kind in kinds]
    layers = max(numbers) if 2 * max(numbers) < 3 * min(numbers) else min(numbers)
    groups = sum(-(-n // layers) for n in numbers)
    return Cache(tuple(kinds), layers, groups, layers * kinds[0].page, min(kind.block for kind in kinds))
