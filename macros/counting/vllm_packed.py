"""vLLM's packed groups: layers whose pages differ in size are side by side in a block, which is as long as the widest
group's.

Source in vLLM 0.33: `v1/core/kv_cache_planning.py` (`_get_packed_kv_cache_groups`, `_approximate_gcd`), and for
DeepSeek V4 `models/deepseek_v4/attention.py`, `compressor.py` and `nvidia/model.py` (`_select_dsv4_attn_cls`): every
NVIDIA device keeps latents in `fp8_ds_mla`. A test compares it with vLLM's own functions, and with a printed log.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..engine.errors import Problem
from ..engine.ops.masks import Waiting
from ..engine.steps import Holds
from ..engine.tensors import CacheEntry
from .costs import Costs
from .parameters import INDEX
from .serving import padded, window_of
from .vllm import NULL_BLOCK_SINCE, Cache, Layers, Setting, cache_of

PACKED_SINCE = (0, 29)  # before, groups of tuples of layers
BLOCK, WINDOW_BLOCK = 256, 64  # tokens of a page for all tokens, and for a window
ALIGNMENT = 576  # bytes that a page must be a multiple of, as FlashMLA reads it
# Per token: 448 elements in 8 bits, 64 in 16 bits and 8 bytes of scales; per indexer key, one scale for 128 elements.
LATENT, INDEX_SCALE = 584, 4
OF_STATES = {4: 4, 128: 8}  # tokens of a page of waiting tokens, by how many are compressed together
STATE_ITEM = 4  # bytes of a waiting element, of a row and of its weight


@dataclass(frozen=True)
class Bucket:
    """Layers that need equally many pages: tokens of one, the window (None for all tokens), and the layers by the bytes
    of their pages, in the model's order."""

    block: int
    window: int | None
    pages: dict[int, list[int]]

    @property
    def most(self) -> int:
        """The largest number of layers with pages of one size."""
        return max(len(layers) for layers in self.pages.values())

    @property
    def is_balanced(self) -> bool:
        """Whether each page size has the same number of layers."""
        return len({len(layers) for layers in self.pages.values()}) == 1


@dataclass(frozen=True)
class Pack:
    """A bucket's layers, by the bytes of their pages, and the number of groups that they are dealt out to in turn."""

    kinds: tuple[Layers, ...]
    groups: int

    def bytes_of(self, first: int, last: int) -> int:
        """Bytes of a block for the layers from `first` to `last` in the group that has the most."""
        sizes = [
            sum(
                kind.page * len([i for i in kind.layers[group :: self.groups] if first <= i < last])
                for kind in self.kinds
            )
            for group in range(self.groups)
        ]
        return max(sizes)


@dataclass(frozen=True)
class PackedCache(Cache):
    """A layout whose groups have pages of several sizes: a sequence has blocks in each group, all of one size."""

    packs: tuple[Pack, ...] = ()

    def blocks(self, tokens: int, step: int) -> int:
        """Blocks for a sequence of this many tokens."""
        tokens = -(-tokens // self.contexts)
        return sum(pack.groups * pack.kinds[0].pages(tokens, step) for pack in self.packs)

    def unused(self, tokens: int, step: int) -> int:
        """Bytes of blocks without a page: groups narrower than the widest."""
        used = sum(kind.number * kind.pages(tokens, step) * kind.page for kind in self.kinds)
        return self.blocks(tokens, step) * self.block_bytes - used

    def stage_bytes(self, first: int, last: int) -> int:
        """Bytes of a block on a stage that has the layers from `first` to `last`."""
        return max(pack.bytes_of(first, last) for pack in self.packs)


def layout_of(
    costs: Costs,
    setting: Setting,
    vendors: Collection[str] = (),
    draft: Costs | None = None,
    asked: str = "",
    method: str = "",
) -> Cache:
    """vLLM's layout of a model's cache on a rank, packed if the model's class says so; `asked` is the type of the cache
    that an option names, and `method` the draft's. Raises `Problem` if no rule is known for it."""
    architecture = costs.formats.architecture
    if architecture is None or not architecture.vllm.is_packed:
        return cache_of(costs, setting, draft)
    if draft is not None or (setting.draft_layers and not method.endswith("mtp")):
        raise Problem(
            "no rule is known for vLLM's pages of this draft beside packed ones",
            'leave it out, or give the model\'s own heads: {"method": "mtp", "num_speculative_tokens": 1}',
        )
    if any(vendor not in ("", "NVIDIA") for vendor in vendors):
        raise Problem("no rule is known for vLLM's packed pages on other devices than NVIDIA's", "leave out the engine")
    if setting.version < PACKED_SINCE:
        raise Problem(
            "no rule is known for vLLM's pages of this model before 0.29", "give --engine-version 0.29, or a later one"
        )
    if setting.contexts > 1:
        raise Problem(
            "no rule is known for vLLM's packed pages over contexts",
            "leave out --decode-context-parallel-size and --prefill-context-parallel-size",
        )
    if asked not in ("", "auto") and not asked.startswith("fp8"):  # `_resolve_dsv4_kv_cache_dtype`
        raise Problem(f"vLLM has no cache of type {asked} for this model", "give fp8")
    return packed(costs, setting, 1 if setting.version >= NULL_BLOCK_SINCE else 0)


def packed(costs: Costs, setting: Setting, reserved: int) -> PackedCache:
    """The layout of a model whose latents are compressed. Raises `Problem` for one that also has other entries."""
    buckets = _buckets(costs, setting.draft_layers)
    repeats = _repeats(buckets)
    packs: list[Pack] = []
    for bucket in buckets:
        groups = -(-bucket.most // repeats) if repeats and bucket.is_balanced else 1
        kinds = [
            Layers(len(layers), page, bucket.block, bucket.window, layers=tuple(layers))
            for page, layers in bucket.pages.items()
        ]
        packs.append(Pack(tuple(kinds), groups))
    widest = max(pack.bytes_of(0, 10**6) for pack in packs)
    kinds = [kind for pack in packs for kind in pack.kinds]
    groups = sum(pack.groups for pack in packs)
    return PackedCache(tuple(kinds), 0, groups, widest, BLOCK, setting.contexts, reserved, tuple(packs))


def _buckets(costs: Costs, drafts: int) -> list[Bucket]:
    """The layers by block and window, in the order in which vLLM reaches them; the model's own drafts are last, and
    have only windows (`DeepseekV4Attention.__init__`)."""
    found: dict[tuple[int, int | None], dict[int, list[int]]] = {}
    rows: list[tuple[int, int, int | None, int]] = []  # layer, block, window, bytes of a page
    for k in costs.counts.kept:
        if not k.is_shared:
            block, window, page = _page(costs, k)
            rows += [(layer, block, window, page) for layer in k.layers]
    for k in costs.counts.waiting:
        if k.holds in (Holds.WAITING, Holds.INDEX_WAITING):
            block, window, page = _waiting(costs, k)
            rows += [(layer, block, window, page) for layer in k.layers]
    windows = [row for row in rows if row[1] == WINDOW_BLOCK][:1]
    rows += [(costs.devices.n_layers + i, *row[1:]) for i in range(drafts) for row in windows]
    for layer, block, window, page in sorted(rows, key=lambda row: row[0]):
        found.setdefault((block, window), {}).setdefault(page, []).append(layer)
    return [Bucket(block, window, pages) for (block, window), pages in found.items()]


def _page(costs: Costs, k: CacheEntry) -> tuple[int, int | None, int]:
    """Tokens of a page of rows, their window, and its bytes."""
    width = int(k.shape[-1])
    tokens = k.tokens.expr.at(costs.counts.values()) if k.tokens != 1 else 1
    if k.holds is INDEX:
        return BLOCK, None, padded(BLOCK // tokens * (width + width // 128 * INDEX_SCALE), ALIGNMENT)
    if k.holds is Holds.COMPRESSED and width == 512:
        return BLOCK, None, padded(BLOCK // tokens * LATENT, ALIGNMENT)
    window = window_of(costs, k)
    if k.holds is not Holds.KEYS_AND_VALUES or window is None or width != 512:
        raise Problem("no rule is known for vLLM's pages of this model's cache", "leave out the engine")
    return WINDOW_BLOCK, window, padded(WINDOW_BLOCK * LATENT, ALIGNMENT)


def _waiting(costs: Costs, k: CacheEntry) -> tuple[int, int | None, int]:
    """The page of rows that wait to be compressed: a row and its weight for each token, twice if windows overlap."""
    same = Holds.WINDOW_BEFORE if k.holds is Holds.WAITING else Holds.INDEX_WINDOW_BEFORE
    times = 2 if any(one.holds is same and one.layers == k.layers for one in costs.counts.waiting) else 1
    size = int(k.mask.size) if isinstance(k.mask, Waiting) else 0
    if size not in OF_STATES:
        raise Problem("no rule is known for vLLM's pages of this model's cache", "leave out the engine")
    block = OF_STATES[size]
    return block, times * size, padded(block * 2 * times * int(k.shape[-1]) * STATE_ITEM, ALIGNMENT)


def _repeats(buckets: Sequence[Bucket]) -> int:
    """The number of layers of one page size in a group that pads the divisible buckets the least; 0 if no bucket has
    pages of several sizes."""
    numbers = [bucket.most for bucket in buckets if bucket.is_balanced]
    least = max([bucket.most for bucket in buckets if bucket.is_balanced and len(bucket.pages) > 1], default=0)
    if not least:
        return 0
    best, fewest = least, -1
    for size in range(least, max(numbers) + 1):
        empty = sum(-n % size for n in numbers)
        if fewest < 0 or empty <= fewest:
            best, fewest = size, empty
    return best
