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
from .peak import laid_out
from .serving import MANY, padded, row_of, steps_of, window_of, written_out

CELLS = 256  # a context is padded to so many tokens, and so is a window's cache
STEP = 512  # tokens of a step: --ubatch-size
BATCH = 2048  # tokens handed over at once: --batch-size
OUTPUT_BYTES = 4  # of a logit and of an activation
STATE_BYTES = 4  # of an element of a recurrent state and of a convolution's

WITH_INDEXER = Fraction(5, 2)  # of the estimated compute buffer: what was printed for models with an indexer at most
# Whose latents it keeps as keys and values of every head.
WRITTEN_OUT = frozenset(("minicpm3",))
# Architectures whose windows or chunks llama.cpp knows (`swa_type` in src/models): of others every layer keeps all.
WINDOWED = frozenset(
    """
    afmoe cohere2 cohere2moe exaone-moe exaone4 gemma2 gemma3 gemma3n gemma4 gpt-oss laguna llama4 mellum mimo2 olmo2
    plamo3 smallthinker step35
    """.split()
)
NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}  # of types, as its options have them


@dataclass(frozen=True)
class Setting:
    """Under which options a context is made: tokens of all sequences, how many these are, whether they share one cache
    (--kv-unified), tokens of a step, flash attention, the type of the cache, rows of logits that a step may give, and
    the `unit` of tokens that caches are padded to.
    """

    context: int
    sequences: int = 1
    is_unified: bool = False
    step: int = STEP
    flash: bool = True
    dtype: str = "float16"
    outputs: int = 1
    unit: int = CELLS

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
        kept = window * (self.sequences if self.is_unified else 1) + self._step
        return padded(min(self.cells, kept), self.unit)

    def row_bytes(self, elements: int, head: int) -> int:
        """Bytes of a row of the cache, for heads with this many elements. Raises `Problem` if the type does not allow
        it."""
        name = NAMES.get(self.dtype, self.dtype).upper()
        if name not in BLOCKS or name == "I32":
            known = ", ".join([*NAMES, "q8_0", "q4_0"])
            raise Problem(f"llama.cpp has no cache of type {self.dtype}", f"give one of {known}")
        block, size = BLOCKS[name]
        if head % block:
            what = f"llama.cpp makes no {self.dtype} cache for heads of {head:,} elements, not a multiple of {block}"
            raise Problem(what, "give float16")
        return elements // block * size


def architecture(costs: Costs) -> str:
    """llama.cpp's name for the model. Raises `Problem` if it has no such model, or caches it differently."""
    name = costs.counts.formats.gguf.architecture
    if costs.counts.waiting or any(k.tokens != 1 for k in costs.counts.kept) or costs.reads_source:
        raise Problem(f"no rule is known for llama.cpp's cache of {name}", "leave out --engine")
    return name


def has_windows(costs: Costs) -> bool:
    """Whether llama.cpp has a separate cache for windows."""
    return architecture(costs) in WINDOWED


def cache_bytes(costs: Costs, setting: Setting) -> int:
    """Bytes of keys and values, latents, and an indexer's keys: the KV buffer that it prints."""
    grows = [k for k in costs.counts.kept if k.row is not None]
    # without flash attention values lie transposed, in rows as wide as the widest layer's
    widest = max((row_of(k) for k in costs.trace.kept if k.holds is Holds.VALUES and k.row), default=0)
    total = 0
    for k in grows:
        if k.is_shared:
            continue
        window = window_of(costs, k) if has_windows(costs) else None
        cells = setting.cells if window is None else setting.window_cells(window)
        of_heads = written_out(costs, k) if architecture(costs) in WRITTEN_OUT else row_of(k)
        row = widest if k.holds is Holds.VALUES and not setting.flash else of_heads
        total += setting.row_bytes(row, int(k.shape[-1])) * cells * setting.streams * len(k.layers)
    return total


def state_bytes(costs: Costs, setting: Setting) -> int:
    """Bytes of recurrent states and convolutions, in 32 bits: the RS buffer that it prints."""
    return sum(_state(k) * len(k.layers) * STATE_BYTES * setting.sequences for k in costs.counts.kept if k.row is None)


def _state(k: CacheEntry) -> int:
    """Elements of a layer's state; for a convolution, without the column that is shifted out."""
    size = 1
    for d in k.shape:
        size *= int(d)
    return size - size // int(k.shape[0]) if k.holds is Holds.CONVOLUTION else size


def output_bytes(costs: Costs, setting: Setting) -> int:
    """Bytes of the logits that it returns: a row for each sequence."""
    return costs.counts.values()["vocab_size"] * OUTPUT_BYTES * setting.sequences


def mask_bytes(costs: Costs, setting: Setting) -> int:
    """Bytes of the masks, one for the layers that keep all tokens and one for those with a window."""
    if all(k.row is None for k in costs.counts.kept):
        return 0
    windows = {window_of(costs, k) if has_windows(costs) else None for k in costs.counts.kept if k.row is not None}
    cells = [setting.cells if window is None else setting.window_cells(window) for window in windows]
    return sum(cells) * setting.tokens * (2 if setting.flash else 4)


def compute_bytes(costs: Costs, setting: Setting) -> int:
    """Bytes of the compute buffer of a step, from the arrays that are alive at the same time in 32 bits: an
    estimate."""
    values: dict[str, int] = dict(costs.counts.values(T=setting.tokens, S=setting.cells))
    if not has_windows(costs):
        for k in costs.counts.kept:
            if k.row is not None:
                values |= {symbol: MANY for symbol in k.shape[0].expr.symbols if symbol != "S"}
    kept: dict[Poly, int] = {}

    def at(polynomial: Poly) -> int:
        if polynomial not in kept:
            kept[polynomial] = polynomial.at(values)
        return kept[polynomial]

    rows = setting.tokens if setting.outputs == 0 else min(setting.outputs, setting.tokens)
    # a place for embeddings that a step may be given instead of tokens, and the masks
    always = setting.tokens * values["d_model"] + mask_bytes(costs, setting) // OUTPUT_BYTES
    alive = laid_out(steps_of(costs, pairs=not setting.flash), at, always)
    logits = rows * (values["vocab_size"] + values["d_model"]) + mask_bytes(costs, setting) // OUTPUT_BYTES
    return max(alive, logits) * OUTPUT_BYTES
