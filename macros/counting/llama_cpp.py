"""llama.cpp's buffers: cache and state for the whole context at the start, the logits, and the compute buffer of its
graph.

Source: llama.cpp in `llama-cpp-python` 0.3.36: `src/llama-context.cpp`, `llama-kv-cache.cpp`,
`llama-kv-cache-iswa.cpp`, `llama-memory-recurrent.cpp`, `llama-graph.cpp`, `ggml/src/ggml-alloc.c`; defaults in
`common/common.h` and `tools/server/server-context.cpp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from ..engine.dims import Poly
from ..engine.errors import Problem
from ..engine.steps import Holds
from ..engine.tensors import CacheEntry
from .costs import Costs
from .gguf_types import BLOCKS
from .parameters import INDEX
from .peak import laid_out
from .serving import MANY, padded, row_of, steps_of, window_of, written_in_two

CELLS = 256  # contexts and windows' caches are padded to a multiple of this many tokens
STEP = 512  # tokens of a step: --ubatch-size
BATCH = 2048  # tokens handed over at once: --batch-size
OUTPUT_BYTES = 4  # bytes of a logit and of an activation
STATE_BYTES = 4  # bytes of an element of a recurrent or convolution state

# the largest printed multiple of the estimated compute buffer, for models with an indexer
WITH_INDEXER = Fraction(5, 2)
NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}  # of types, as its options have them


@dataclass(frozen=True)
class Setting:
    """The options of a context: tokens of all sequences, the number of sequences, whether they share one cache
    (--kv-unified), tokens of a step, flash attention, the type of the cache, rows of logits that a step may return, the
    `unit` of tokens that caches are padded to, the type of values if it is a different one, whether windows keep all
    tokens (--swa-full), how many states a sequence keeps, whether windows have no cache of their own and latents are
    expanded into keys and values, as in builds before May 2025, and whether latents are also stored as values, as in
    builds of 2025.
    """

    context: int
    sequences: int = 1
    is_unified: bool = False
    step: int = STEP
    flash: bool = True
    dtype: str = "float16"
    outputs: int = 1
    unit: int = CELLS
    values: str = ""
    has_full_windows: bool = False
    states: int = 1
    is_old: bool = False
    has_latents_twice: bool = False

    @property
    def streams(self) -> int:
        """The number of caches."""
        return 1 if self.is_unified else self.sequences

    @property
    def cells(self) -> int:
        """Tokens that each cache holds."""
        return padded(padded(self.context, self.unit) // self.streams, self.unit)

    @property
    def tokens(self) -> int:
        """Tokens of a step, a multiple of the number of sequences."""
        return padded(self._step, self.sequences)

    @property
    def _step(self) -> int:
        return min(self.context, max(BATCH, self.step), self.step)

    def window_cells(self, window: int) -> int:
        """Tokens that the cache of a window holds: the window of each sequence, and a step."""
        if self.has_full_windows:
            return self.cells
        kept = window * (self.sequences if self.is_unified else 1) + self._step
        return padded(min(self.cells, kept), self.unit)

    def row_bytes(self, elements: int, head: int, are_values: bool = False) -> int:
        """Bytes of a row of the cache, for heads with this many elements. Raises `Problem` if the type does not allow
        such a row."""
        dtype = self.values if are_values and self.values else self.dtype
        name = NAMES.get(dtype, dtype).upper()
        if name not in BLOCKS or name == "I32":
            known = ", ".join([*NAMES, "q8_0", "q4_0"])
            raise Problem(f"llama.cpp has no cache of type {dtype}", f"give one of {known}")
        block, size = BLOCKS[name]
        if head % block:
            what = f"llama.cpp makes no {dtype} cache for heads of {head:,} elements, not a multiple of {block}"
            raise Problem(what, "give float16")
        return elements // block * size


def architecture(costs: Costs) -> str:
    """llama.cpp's name for the model. Raises `Problem` if it has no such model, or caches it differently."""
    name = costs.counts.formats.gguf.architecture
    if costs.counts.waiting or any(k.tokens != 1 for k in costs.counts.kept) or costs.compute.reads_source:
        raise Problem(f"no rule is known for llama.cpp's cache of {name}", "leave out the engine")
    return name


def has_windows(costs: Costs, setting: Setting | None = None) -> bool:
    """Whether llama.cpp has a separate cache for windows."""
    architecture(costs)
    return costs.formats.gguf.converted.is_windowed and not (setting and setting.is_old)


def cache_bytes(costs: Costs, setting: Setting) -> int:
    """Bytes of keys and values, latents, and an indexer's keys: the KV buffer that llama.cpp prints."""
    return sum(part.keys + part.values for part in cache_parts(costs, setting))


@dataclass(frozen=True)
class Part:
    """Cache entries of one kind: the bytes of keys and of values in all of them, cells, whether they have a window, and
    whether they hold an indexer's keys."""

    layers: tuple[int, ...]
    keys: int
    values: int
    cells: int
    is_windowed: bool
    is_index: bool


def cache_parts(costs: Costs, setting: Setting) -> list[Part]:
    """The cache, kind by kind."""
    grows = [k for k in costs.counts.kept if k.row is not None]
    # without flash attention, values are transposed, in rows as wide as the widest layer's
    widest = max((row_of(k) for k in costs.trace.kept if k.holds is Holds.VALUES and k.row), default=0)
    found: list[Part] = []
    for k in grows:
        if k.is_shared:
            continue
        window = window_of(costs, k) if has_windows(costs, setting) else None
        cells = setting.cells if window is None else setting.window_cells(window)
        are_values = k.holds is Holds.VALUES
        rows = (0, row_of(k)) if are_values else (row_of(k), 0)
        if setting.has_latents_twice and k.holds is Holds.LATENT:
            rows = row_of(k), row_of(k)
        if setting.is_old or costs.formats.gguf.converted.is_written_out:
            rows = written_in_two(costs, k)
        if are_values and not setting.flash:
            rows = 0, widest
        number = cells * setting.streams * len(k.layers)
        keys, values = [
            setting.row_bytes(row, int(k.shape[-1]), i == 1) * number if row else 0 for i, row in enumerate(rows)
        ]
        found.append(Part(k.layers, keys, values, cells, window is not None, k.holds is INDEX))
    return found


def state_bytes(costs: Costs, setting: Setting) -> int:
    """Bytes of recurrent states and convolutions, in 32 bits: the RS buffer that llama.cpp prints."""
    return sum(size * len(layers) for layers, size in state_parts(costs, setting))


def state_parts(costs: Costs, setting: Setting) -> list[tuple[tuple[int, ...], int]]:
    """The states: the number of layers, and the bytes of each."""
    number = STATE_BYTES * setting.sequences * setting.states
    return [(k.layers, state_of(k) * number) for k in costs.counts.kept if k.row is None]


def state_of(k: CacheEntry) -> int:
    """Elements of a layer's state; for a convolution, without the column that is shifted out."""
    size = 1
    for d in k.shape:
        size *= int(d)
    return size - size // int(k.shape[0]) if k.holds is Holds.CONVOLUTION else size


def output_bytes(costs: Costs, setting: Setting) -> int:
    """Bytes of the logits that a step returns: a row for each sequence."""
    return costs.counts.values()["vocab_size"] * OUTPUT_BYTES * setting.sequences


def mask_bytes(costs: Costs, setting: Setting) -> int:
    """Bytes of the masks, one for the layers that keep all tokens and one for those with a window."""
    if all(k.row is None for k in costs.counts.kept):
        return 0
    is_windowed = has_windows(costs, setting)
    windows = {window_of(costs, k) if is_windowed else None for k in costs.counts.kept if k.row is not None}
    cells = [setting.cells if window is None else setting.window_cells(window) for window in windows]
    return sum(cells) * setting.tokens * (2 if setting.flash else 4)


def compute_bytes(costs: Costs, setting: Setting) -> int:
    """Bytes of the compute buffer of a step, from the arrays that are alive at the same time in 32 bits: an
    estimate."""
    values: dict[str, int] = dict(costs.counts.values(T=setting.tokens, S=setting.cells))
    if not has_windows(costs, setting):
        for k in costs.counts.kept:
            if k.row is not None:
                values |= {symbol: MANY for symbol in k.shape[0].expr.symbols if symbol != "S"}
    kept: dict[Poly, int] = {}

    def at(polynomial: Poly) -> int:
        if polynomial not in kept:
            kept[polynomial] = polynomial.at(values)
        return kept[polynomial]

    rows = setting.tokens if setting.outputs == 0 else min(setting.outputs, setting.tokens)
    # room for embeddings as input in place of tokens, and for the masks
    always = setting.tokens * values["d_model"] + mask_bytes(costs, setting) // OUTPUT_BYTES
    alive = laid_out(steps_of(costs, pairs=not setting.flash), at, always)
    logits = rows * (values["vocab_size"] + values["d_model"]) + mask_bytes(costs, setting) // OUTPUT_BYTES
    return max(alive, logits) * OUTPUT_BYTES
