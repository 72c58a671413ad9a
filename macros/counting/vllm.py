"""vLLM's cache in one module: pages of a block of tokens, layers in groups that share them, and what its share leaves.

Source in vLLM: `v1/kv_cache_interface.py` and `v1/core/kv_cache_utils.py` (pages, groups, blocks of a request),
`platforms/interface.py` (`_align_hybrid_block_size`), `model_executor/layers/mamba/mamba_utils.py` (states of a rank),
`config/cache.py` (blocks of 16 tokens, a share of 0.92), `engine/arg_utils.py` (tokens and sequences of a step). The
tests compare the results with the figures in logs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

from ..engine.errors import Problem
from ..engine.facts import USUAL_VLLM
from ..engine.steps import Holds, Role
from ..engine.tensors import CacheEntry
from .costs import Costs
from .parameters import INDEX
from .serving import GIB, padded, row_of, window_of
from .splits import Split

VERSION = 0, 33  # the version whose rules apply if none is named
BLOCK = 16
# With recurrent layers, the tokens of a block are a multiple of this; with latents a multiple of 64, and since 0.27 of
# 128.
GRAIN, GRAIN_OF_LATENTS, GRAIN_SINCE = 16, 64, (128, (0, 27))
SHARE, OLD_SHARE, SHARE_SINCE = Fraction(92, 100), Fraction(90, 100), (0, 20)  # --gpu-memory-utilization
# --max-num-batched-tokens and --max-num-seqs of its server: on devices with 70 GiB or more that are not an A100, and on
# all others
LARGE, USUAL = (8192, 1024), (2048, 256)
# since 0.28 on 160 GiB and more; since 0.29 a GB10 has the usual ones
LARGEST, LARGEST_SINCE, GB10_SINCE = (16384, 1024), (0, 28), (0, 29)
STATES = 2  # pages of a recurrent layer per sequence with prefix caching, its default; without, one
# Bits of an element; nvfp4 has an 8-bit scale for every 16 elements.
TYPES = {"float32": 32, "bfloat16": 16, "float16": 16, "fp8": 8, "nvfp4": 9}
SPARSE_LATENT = 656  # bytes of a token's latent in fp8_ds_mla: 512 in 8 bits, 4 scales, 64 in 16 bits
INDEX_SCALE = 4  # bytes of a scale, one for 128 elements of an indexer's key
WINDOWS_SINCE = (0, 9)  # before, every layer with a window kept all tokens (`unify_hybrid_kv_cache_specs`)
DIGITS_SINCE = (0, 20)  # the version that prints concurrency times length as tokens
# Since 0.26 a window keeps the tokens of every step that is scheduled before the last one has ended: two with
# asynchronous scheduling (`max_in_flight_tokens` in config/vllm.py). With pipeline stages, one step per stage; since
# 0.32, whose usual model runner is the second one, one more.
IN_FLIGHT_SINCE, SECOND_RUNNER_SINCE = (0, 26), (0, 32)
# Since this version the layers of Mamba 2 keep one more page with prefix caching (`get_kv_cache_spec` in
# mamba_mixer2.py).
CHECKPOINT_SINCE = (0, 32)
# Since this version one block of the pool is held back (`get_kv_cache_configs`), so the longest request is one block
# shorter.
NULL_BLOCK_SINCE = (0, 29)
# The tokens of a block of latents, depending on the kernel that the device has (`_get_backend_priorities` in
# platforms/cuda.py, `get_supported_kernel_block_sizes` in v1/attention/backends/mla): with an indexer; FlashInfer on
# Blackwell; FlashMLA, which Hopper has only for 8 bits.
SPARSE_BLOCK, BLACKWELL_BLOCK, FLASHMLA_BLOCK, BLOCKS_SINCE = 64, 32, 64, (0, 24)
# Compute capabilities by device name, for devices without a known one.
GENERATIONS = (
    (90, ("h100", "h200", "h800", "h20", "gh200")),
    (100, ("b100", "b200", "b300", "gb200", "gb300")),
    (120, ("gb10", "spark", "rtx 50", "rtx pro 6000")),
)


@dataclass(frozen=True)
class Setting:
    """The options: tokens and sequences of a step, the type of the cache, pages of a state (0 for one in every block),
    tokens of a block (0 for the default), ranks that share each matrix, ranks that share a sequence's rows, tokens that
    a draft proposes and the layers that it adds, bits of a state, whether windows keep their own length, the version,
    the number of steps that are scheduled at once, the device's compute capability (0 if it is not known), and the
    kernel of a delta rule for prompts.
    """

    step: int
    sequences: int
    dtype: str = "bfloat16"
    states: int = STATES
    block: int = 0
    tensor: int = 1
    contexts: int = 1
    drafted: int = 0
    draft_layers: int = 0
    state_bits: int = 0
    has_windows: bool = True
    version: tuple[int, int] = VERSION
    batches: int = 1
    capability: int = 0
    prefill: str = "auto"

    @property
    def in_flight(self) -> int:
        """Tokens of the steps that are scheduled at once, for which a window keeps rows."""
        return self.step * self.batches

    def row_bytes(self, k: CacheEntry, elements: int) -> int:
        """Bytes of a row of this many elements. Raises `Problem` for a type that vLLM does not have."""
        if k.holds is INDEX:
            return elements + -(-elements // 128) * INDEX_SCALE
        if self.dtype == "fp8_ds_mla":
            if k.holds not in (Holds.LATENT, Holds.ROPE_KEY):
                raise Problem("fp8_ds_mla is a type of latents", "give fp8")
            return SPARSE_LATENT if k.holds is Holds.LATENT else 0
        if self.dtype.endswith("_head"):
            from .vllm_options import bytes_with_scales  # a browser loads these rules only for such an option

            return bytes_with_scales(k, elements, self.dtype, self.version)
        if self.dtype not in TYPES:
            raise Problem(f"vLLM has no cache of type {self.dtype}", "give bfloat16 or fp8")
        if self.dtype == "nvfp4" and int(k.shape[-1]) % 16:
            raise Problem("vLLM makes no nvfp4 cache for heads that are no multiple of 16", "give fp8")
        return elements * TYPES[self.dtype] // (16 if self.dtype == "nvfp4" else 8)


def capability_of(name: str, known: int | None = None) -> int:
    """A device's compute capability, either known or derived from the generation in its name; 0 otherwise."""
    if known:
        return known
    lower = name.lower()
    for capability, names in GENERATIONS:
        if any(part in lower for part in names):
            return capability
    return 0


def usual(costs: Costs, memory_bytes: int, device: str, dtype: str) -> Setting:
    """What the server does with a model on a device, by the newest version known: two steps are scheduled at once."""
    step, sequences = defaults(memory_bytes, device)
    step = max(step, step_of_images(costs, VERSION))
    return Setting(step, sequences, dtype, batches=2, capability=capability_of(device))


def block_of(costs: Costs, setting: Setting) -> int:
    """The tokens per block that the kernels for the model's attention need on the device."""
    if setting.block:
        return setting.block
    kept = costs.counts.kept
    if setting.version < BLOCKS_SINCE or not any(k.holds is Holds.LATENT for k in kept):
        return BLOCK
    if any(k.holds is INDEX for k in kept):
        return SPARSE_BLOCK
    generation = setting.capability // 10
    if generation == 10:
        return BLACKWELL_BLOCK
    return FLASHMLA_BLOCK if generation == 9 and setting.dtype in ("fp8", "fp8_ds_mla") else BLOCK


def checkpoint_grain(costs: Costs, setting: Setting) -> int | None:
    """The number of tokens that a block must be a multiple of because a kernel returns states mid-prompt; None if no
    kernel does. Such a layer keeps one more page with prefix caching."""
    if setting.states != STATES:
        return None
    if any(node.role is Role.MAMBA2 for node in costs.trace.root.walk()):
        return 1 if setting.version >= CHECKPOINT_SINCE else None
    rule = costs.formats.architecture.vllm if costs.formats.architecture else USUAL_VLLM
    has_kernel = setting.prefill in ("auto", "flashinfer", "flashkda")
    if not rule.capabilities or setting.version < rule.checkpoint or not has_kernel:
        return None
    if rule.needs is not None:
        table = costs.counts.raw.get(rule.needs[0])
        if not isinstance(table, dict) or cast("dict[str, Any]", table).get(rule.needs[1]) is None:
            return None
    is_there = setting.capability // 10 in rule.capabilities or setting.prefill != "auto"
    return rule.grain if is_there else None


def step_of_images(costs: Costs, version: tuple[int, int]) -> int:
    """The minimum number of tokens per step, by default, for a model whose attention to an image is bidirectional."""
    architecture = costs.formats.architecture
    if architecture is None:
        return 0
    key, value = architecture.vllm.sees
    tokens, since = architecture.vllm.step
    return tokens if version >= since and key and costs.counts.raw.get(key) == value else 0


def defaults(memory_bytes: int, name: str, version: tuple[int, int] = VERSION) -> tuple[int, int]:
    """vLLM's default limits of tokens and sequences per step on a device."""
    if memory_bytes >= 160 * GIB and version >= LARGEST_SINCE:
        return LARGEST
    if version >= GB10_SINCE and any(part in name.lower() for part in ("gb10", "dgx spark")):
        return USUAL
    return LARGE if memory_bytes >= 70 * GIB and "a100" not in name.lower() else USUAL


@dataclass(frozen=True)
class Layers:
    """Layers of one kind: how many, bytes of a page of each, its tokens, and the window or chunk; for recurrent layers,
    the pages and the bytes of a state. `layers` are their indices in the model; a draft's come after all others."""

    number: int
    page: int
    block: int
    window: int | None = None
    is_chunk: bool = False
    states: int = 0
    state: int = 0
    layers: tuple[int, ...] = ()
    is_whole: bool = False
    every: bool = False
    row: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of one token; a page may be padded."""
        return self.row or self.page // self.block

    def rows(self, tokens: int, step: int) -> int:
        """The number of tokens that stay in the cache."""
        if self.window is None:
            return tokens
        return min(self.window + step if self.is_chunk else self.window - 1 + step, tokens)

    def pages(self, tokens: int, step: int) -> int:
        """Pages of one layer for a sequence of this many tokens."""
        if self.every:
            return -(-tokens // self.block)
        if self.states:
            return self.states
        begun = self.window is not None and not self.is_chunk  # a window may start in the middle of a block
        return -(-self.rows(tokens, step) // self.block) + (1 if begun else 0)

    def used(self, tokens: int, step: int) -> int:
        """Bytes of those pages, in all layers, that hold something."""
        if self.states:
            return self.number * self.pages(tokens, step) * self.state
        return self.number * self.rows(tokens, step) * self.row_bytes


@dataclass(frozen=True)
class Cache:
    """The layout of a model's cache on a rank: its kinds of layers, the number of layers that share a pool of pages,
    the number of groups, bytes of a block over all layers of a group, and the fewest tokens of a block. `contexts`
    ranks share the rows of a sequence; `reserved` of the pool's blocks hold no request."""

    kinds: tuple[Layers, ...]
    layers: int
    groups: int
    block_bytes: int
    block: int
    contexts: int = 1
    reserved: int = 0

    def blocks(self, tokens: int, step: int) -> int:
        """Blocks for a sequence of this many tokens."""
        tokens = -(-tokens // self.contexts)
        if self.layers == 0:
            return max((kind.pages(tokens, step) for kind in self.kinds), default=0)
        return sum(-(-kind.number // self.layers) * kind.pages(tokens, step) for kind in self.kinds)

    def unused(self, tokens: int, step: int) -> int:
        """Bytes of blocks that hold nothing: the unused part of a sequence's last block, of pages as large as another
        kind's, and of groups that are not full."""
        used = sum(kind.used(-(-tokens // self.contexts), step) for kind in self.kinds)
        return self.blocks(tokens, step) * self.block_bytes - used

    def held(self, room: int) -> int:
        """The number of blocks that this many bytes hold."""
        return max(room, 0) // self.block_bytes if self.block_bytes else 0

    def printed_tokens(self, blocks: int) -> int:
        """The tokens that `GPU KV cache size` prints before version 0.20."""
        return blocks // self.groups * self.block * self.contexts if self.groups else 0

    def concurrency(self, blocks: int, tokens: int, step: int) -> Fraction:
        """The number of sequences of this many tokens that fit in these blocks."""
        each = self.blocks(tokens, step)
        return Fraction(blocks, each) if each else Fraction(0)

    def longest(self, room: int, step: int, most: int) -> int:
        """The longest context of one sequence in this many bytes, but no longer than the given one."""
        held = self.held(room) - self.reserved
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.blocks(middle, step) <= held else (low, middle - 1)
        return low

    def padding(self) -> list[tuple[int, int]]:
        """For each kind that does not fill its groups, the number of empty places and of its layers."""
        if self.layers == 0:
            return []
        return [(-kind.number % self.layers, kind.number) for kind in self.kinds if kind.number % self.layers]

    def stage_bytes(self, first: int, last: int) -> int:
        """Bytes of a block on a stage that has the layers from `first` to `last`: the groups are those of the whole
        model, each reduced to the stage's layers."""
        if self.layers == 0:
            return sum(kind.page * len([i for i in kind.layers if first <= i < last]) for kind in self.kinds)
        most, page = 0, 0
        for kind in self.kinds:
            groups = -(-kind.number // self.layers)
            page = max(page, kind.page)
            for group in range(groups):
                most = max(most, len([i for i in kind.layers[group::groups] if first <= i < last]))
        return most * page


def elements_on_rank(costs: Costs, tensor: int) -> dict[int, int]:
    """Elements of a row, or of a state, of each kept entry on a rank, keyed by the entry's index in `counts.kept`:
    heads are divided, with at least one per rank; latents and an indexer's keys are kept whole."""
    found: dict[int, int] = {}
    cut = costs.devices.cut_cache(Split(tensor=tensor))
    for i, k in enumerate(costs.counts.kept):
        part, all_of = cut[i]
        found[i] = row_of(k) * part // all_of
    return found


def cache_of(costs: Costs, setting: Setting, draft: Costs | None = None) -> Cache:
    """vLLM's layout of a model's cache on a rank. The layers of a `draft`, or those that the model's own heads add,
    join the layers of attention. Raises `Problem` if no rule is known for its pages."""
    kept = costs.counts.kept
    if costs.counts.waiting or any(k.tokens != 1 for k in kept) or costs.compute.reads_source:
        raise Problem("no rule is known for vLLM's pages of this model's cache", "leave out the engine")
    block, reserved = block_of(costs, setting), 1 if setting.version >= NULL_BLOCK_SINCE else 0
    attention: dict[tuple[int | None, bool, int, bool], list[int]] = {}
    states: list[tuple[int, list[int]]] = []
    _sort(costs, setting, attention, states, 0)
    last = costs.devices.n_layers
    if draft is not None:
        if any(k.row is None or k.tokens != 1 for k in draft.counts.kept):
            raise Problem("no rule is known for vLLM's pages of such a draft", "leave out the draft")
        _sort(draft, setting, attention, states, last)
    elif setting.draft_layers and attention:
        key = max(attention, key=lambda kind: (kind[0] is None, len(attention[kind])))
        attention[key] = attention[key] + list(range(last, last + setting.draft_layers))
    has_latents = any(k.holds is Holds.LATENT for k in kept)
    kinds = [
        Layers(len(layers), size * block, block, window, chunk, layers=tuple(layers), is_whole=is_index)
        for (window, chunk, size, is_index), layers in attention.items()
    ]
    sizes = {size for size, _ in states}
    if len(sizes) > 1 or (states and any(kind.is_whole for kind in kinds)):
        raise Problem("no rule is known for vLLM's pages of this model's states", "leave out the engine")
    if states:
        own = tuple(sorted([i for _, layers in states for i in layers]))
        return _with_states(
            kinds,
            own,
            sizes.pop(),
            replace(setting, block=block),
            has_latents,
            checkpoint_grain(costs, setting),
            reserved,
        )
    if len({kind.window for kind in kinds}) <= 1:  # one group, in which each layer has pages of its own size
        block_bytes = sum(k.number * k.page for k in kinds)
        return Cache(tuple(kinds), 0, min(len(kinds), 1), block_bytes, block, setting.contexts, reserved)
    return _grouped(_as_large(kinds, has_latents), setting.contexts, reserved)


def _sort(
    costs: Costs,
    setting: Setting,
    attention: dict[tuple[int | None, bool, int, bool], list[int]],
    states: list[tuple[int, list[int]]],
    first: int,
) -> None:
    """Group a model's layers by their cache: kinds of attention, and states."""
    sizes = elements_on_rank(costs, setting.tensor)
    rows: dict[int, list[int]] = {}
    fixed: dict[int, list[int]] = {}
    kept = costs.counts.kept
    for i, k in enumerate(kept):
        if not k.is_shared:
            for layer in k.layers:
                (fixed if k.row is None else rows).setdefault(layer, []).append(i)
    for entries, layers in _alike(rows):
        of_index = [i for i in entries if kept[i].holds is INDEX]
        plain = [i for i in entries if kept[i].holds is not INDEX]
        for those in (plain, of_index):
            if not those:
                continue
            head = kept[those[0]]
            window = window_of(costs, head) if setting.has_windows else None
            is_chunk = window is not None and _is_chunk(head)
            size = sum(setting.row_bytes(kept[i], sizes[i]) for i in those)
            key = window, is_chunk, size, those is of_index
            attention.setdefault(key, []).extend([layer + first for layer in layers])
    for places in attention.values():
        places.sort()
    if fixed:
        is_mamba = any(node.role in (Role.MAMBA, Role.MAMBA2) for node in costs.trace.root.walk())
        for entries, layers in _alike(fixed):
            size = sum(_state_bytes(kept[i], sizes[i], is_mamba, setting) for i in entries)
            states.append((size, [layer + first for layer in layers]))


def _alike(by_layer: dict[int, list[int]]) -> list[tuple[list[int], list[int]]]:
    """The entries of layers that keep the same ones, listed once with those layers."""
    found: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
    for layer in sorted(by_layer):
        entries = by_layer[layer]
        found.setdefault(tuple(entries), (entries, []))[1].append(layer)
    return list(found.values())


def _is_chunk(k: CacheEntry) -> bool:
    return any("chunk" in symbol for symbol in k.shape[0].expr.symbols)


def _state_bytes(k: CacheEntry, size: int, is_mamba: bool, setting: Setting) -> int:
    """Bytes of a state: a convolution, without the column of the new token and with one for each proposed token, in 16
    bits; a state of a delta rule in 32 bits and one of Mamba in 16, unless an option or the config says otherwise."""
    if k.holds is Holds.CONVOLUTION:
        column = size // int(k.shape[0])
        return (size - column + column * setting.drafted) * 2
    return size * (setting.state_bits or (16 if is_mamba else 32)) // 8


def _with_states(
    kinds: list[Layers],
    own: tuple[int, ...],
    state: int,
    setting: Setting,
    has_latents: bool,
    checkpoint: int | None,
    reserved: int,
) -> Cache:
    """Attention in a model with recurrent layers: a block is long enough for a page to hold a state."""
    number, pages_of_state = len(own), setting.states + setting.drafted if setting.states else 0
    if checkpoint is not None:
        pages_of_state += 1
    if not kinds:
        kind = Layers(number, state, 1, states=max(pages_of_state, 1), state=state, layers=own)
        return Cache((kind,), number, 1, state * number, 1, reserved=reserved)
    grain = GRAIN
    if has_latents:
        later, since = GRAIN_SINCE
        grain = later if setting.version >= since else GRAIN_OF_LATENTS
    grain = math.lcm(max(grain, setting.block), checkpoint or 1)
    widest = max(kind.row_bytes for kind in kinds)
    block = padded(-(-max(state, 1) // widest), grain)  # a convolution of one tap keeps nothing
    pages = [Layers(k.number, k.row_bytes * block, block, k.window, k.is_chunk, layers=k.layers) for k in kinds]
    page = max(kind.page for kind in pages)
    recurrent = Layers(
        number, page, block, states=max(pages_of_state, 1), state=state, layers=own, every=not setting.states
    )
    return _grouped([*_as_large(pages, has_latents), recurrent], setting.contexts, reserved)


def _as_large(kinds: list[Layers], has_latents: bool) -> list[Layers]:
    """Make all pages the same size: a block of smaller rows holds more tokens, or is padded if the sizes do not divide
    (`unify_kv_cache_spec_page_size`)."""
    page = max(kind.page for kind in kinds)
    if has_latents and any(page % kind.page for kind in kinds):
        raise Problem(
            "no rule is known for vLLM's pages of latents next to rows that do not divide", "leave out the engine"
        )
    return [
        Layers(
            k.number,
            page,
            k.block if page % k.page else k.block * (page // k.page),
            k.window,
            k.is_chunk,
            k.states,
            layers=k.layers,
            row=k.row_bytes,
        )
        for k in kinds
    ]


def _grouped(kinds: list[Layers], contexts: int, reserved: int) -> Cache:
    """Layers in groups as large as the rarest kind, or as the most frequent one if it has less than 1.5 times as many:
    layers at the same position in each group share the same memory."""
    numbers = [kind.number for kind in kinds]
    layers = max(numbers) if 2 * max(numbers) < 3 * min(numbers) else min(numbers)
    groups = sum(-(-n // layers) for n in numbers)
    return Cache(
        tuple(kinds), layers, groups, layers * kinds[0].page, min(kind.block for kind in kinds), contexts, reserved
    )
