"""The part of a context that a layer sees and keeps: all of it, a window, a chunk, entries for several tokens, selected
blocks."""

from __future__ import annotations

from msgspec import Struct

from ..dims import smallest
from ..interface import Array, Mask


class Full(Struct, frozen=True):
    """Every earlier token is seen, and kept."""

    def seen(self, past: int) -> int:
        """The number of earlier tokens, out of `past`, that the next step reads."""
        return past

    def kept(self, context: int) -> int:
        """The number of rows that a step ending at `context` needs, including the new one: the size of the cache."""
        return context

    def allows(self, query: Array, key: Array) -> Array:
        """Whether the query's position may attend to the key's: [T 1], [1 S] -> [T S]."""
        return key <= query

    def pairs(self, tokens: int) -> int:
        """The number of allowed (query, key) pairs in a sequence of `tokens`: the causal half and its diagonal."""
        return tokens * (tokens + 1) // 2

    def __str__(self) -> str:
        return "full"


class SlidingWindow(Struct, frozen=True):
    """The last `size` tokens are seen, including the token itself."""

    size: int

    def seen(self, past: int) -> int:
        return smallest(past, self.size - 1)

    def kept(self, context: int) -> int:
        return smallest(context, self.size)

    def allows(self, query: Array, key: Array) -> Array:
        return (key <= query) & (key > query - self.size)

    def pairs(self, tokens: int) -> int:
        size = int(self.size)
        ramp = min(tokens, size)
        return ramp * (ramp + 1) // 2 + (tokens - ramp) * size

    def __str__(self) -> str:
        return "sliding"


class Canvas(Full, frozen=True):
    """Every earlier token is seen, and all new ones: no new token is hidden from another."""

    def allows(self, query: Array, key: Array) -> Array:
        return (query == query) & (key == key)

    def pairs(self, tokens: int) -> int:
        return tokens * tokens


class CanvasAndWindow(SlidingWindow, frozen=True):
    """The last earlier tokens are seen, and all new ones."""

    def allows(self, query: Array, key: Array) -> Array:
        return (query == query) & (key == key)

    def pairs(self, tokens: int) -> int:
        return tokens * tokens


class Chunked(Struct, frozen=True):
    """The tokens of the same chunk of `size` are seen."""

    size: int

    def seen(self, past: int) -> int:
        return past % self.size

    def kept(self, context: int) -> int:
        return smallest(context, self.size)

    def allows(self, query: Array, key: Array) -> Array:
        return (key <= query) & (key // self.size == query // self.size)

    def pairs(self, tokens: int) -> int:
        size = int(self.size)
        chunks, rest = divmod(tokens, size)
        return (chunks * size * (size + 1) + rest * (rest + 1)) // 2

    def __str__(self) -> str:
        return "chunked"


class Blocks(Struct, frozen=True):
    """The tokens of the same block of `size` are seen, and all of the block before it."""

    size: int

    def seen(self, past: int) -> int:
        rest = past % self.size
        return rest + smallest(self.size, past - rest)

    def kept(self, context: int) -> int:
        return smallest(context, 2 * self.size)

    def allows(self, query: Array, key: Array) -> Array:
        return (key <= query) & (query // self.size - key // self.size <= 1)

    def pairs(self, tokens: int) -> int:
        size = int(self.size)
        return Chunked(size).pairs(tokens) + size * max(tokens - size, 0)

    def __str__(self) -> str:
        return "blocks"


class NoPE(Struct, frozen=True):
    """The rule of `mask`, and no rotary embedding: the layer gets no position information (arXiv 2305.19466)."""

    mask: Mask = Full()

    def seen(self, past: int) -> int:
        return self.mask.seen(past)

    def kept(self, context: int) -> int:
        return self.mask.kept(context)

    def allows(self, query: Array, key: Array) -> Array:
        return self.mask.allows(query, key)

    def pairs(self, tokens: int) -> int:
        return self.mask.pairs(tokens)

    def __str__(self) -> str:
        return f"{self.mask}, NoPE"


class Shared(Struct, frozen=True):
    """The rule of `mask`, over the keys and values that an earlier layer made and keeps: this layer adds none.

    Cross-layer attention (arXiv 2405.12981).
    """

    mask: Mask = Full()

    def seen(self, past: int) -> int:
        return self.mask.seen(past)

    def kept(self, context: int) -> int:
        return 0

    def allows(self, query: Array, key: Array) -> Array:
        return self.mask.allows(query, key)

    def pairs(self, tokens: int) -> int:
        return self.mask.pairs(tokens)

    def __str__(self) -> str:
        return f"{self.mask}, shared"


class Compressed(Struct, frozen=True):
    """One entry for every `size` tokens, visible to the last of them and to all later tokens."""

    size: int

    def seen(self, past: int) -> int:
        """The number of entries that the next step finds."""
        return past // self.size

    def kept(self, context: int) -> int:
        """The number of entries after a step that ends at `context`."""
        return context // self.size

    def allows(self, query: Array, key: Array) -> Array:
        """Whether the query's position may attend to the entry with this number: [T 1], [1 P] -> [T P]."""
        return (key + 1) * self.size <= query + 1

    def pairs(self, tokens: int) -> int:
        """The number of allowed (query, entry) pairs in a sequence of `tokens`."""
        return self.picked_pairs(tokens, tokens)

    def picked_pairs(self, tokens: int, most: int) -> int:
        """The number of allowed pairs if each query sees at most `most` entries."""
        size = int(self.size)
        full = min(tokens // size, most)  # the query at full · size - 1 is the first to see this many
        return size * (full * (full - 1) // 2) + max(tokens - (full * size - 1), 0) * full if full else 0

    def __str__(self) -> str:
        return f"compressed by {int(self.size)}"


class Waiting(Struct, frozen=True):
    """The tokens since the last full window of `size`, and with `overlap` that window too: all wait for an entry."""

    size: int
    overlap: bool = False

    def seen(self, past: int) -> int:
        """The number of waiting rows."""
        rest = past % self.size
        return rest + self.before(past) if self.overlap else rest

    def before(self, past: int) -> int:
        """The number of waiting rows that belong to the last full window."""
        return smallest(self.size, past - past % self.size)

    def kept(self, context: int) -> int:
        return self.seen(context)

    def allows(self, query: Array, key: Array) -> Array:
        return key <= query

    def pairs(self, tokens: int) -> int:
        """No query attends to waiting tokens."""
        return 0

    def __str__(self) -> str:
        return "waiting"


class PickedBlocks(Struct, frozen=True):
    """Every earlier token is kept; each query sees those in `most` blocks of `size` tokens, including its own block."""

    size: int
    most: int

    def seen(self, past: int) -> int:
        return past

    def kept(self, context: int) -> int:
        return context

    def picks(self, context: int) -> int:
        """The number of blocks picked in a context."""
        return smallest((context + self.size - 1) // self.size, self.most)

    def reads(self, context: int) -> int:
        """The number of rows fetched for each query."""
        return self.picks(context) * self.size

    def behind(self, context: int) -> int:
        """The number of these rows that come after the newest token."""
        return self.size - 1 - (context - 1) % self.size

    def allows(self, query: Array, key: Array) -> Array:
        return key <= query

    def pairs(self, tokens: int) -> int:
        """The number of (query, key) pairs in a sequence of `tokens`: those up to the query in its own block, and all
        of other blocks."""
        size, most = int(self.size), int(self.most)
        blocks, rest = divmod(tokens, size)
        own = blocks * (size * (size + 1) // 2) + rest * (rest + 1) // 2
        ramp = min(blocks, most)  # queries of block b see min(b, most - 1) others
        others = sum(min(b, most - 1) for b in range(ramp)) + (blocks - ramp) * (most - 1)
        return own + others * size * size + rest * min(blocks, most - 1) * size

    def __str__(self) -> str:
        return "picked blocks"


class PickedPools(Struct, frozen=True):
    """Every earlier token is kept; each query sees those in `most` full pools of `size` tokens, and the rest."""

    size: int
    most: int
    tail: bool = True

    def seen(self, past: int) -> int:
        return past

    def kept(self, context: int) -> int:
        return context

    def picks(self, context: int) -> int:
        """The number of pools picked in a context."""
        return smallest(context // self.size, self.most)

    def reads(self, context: int) -> int:
        """The number of rows fetched for each query, including those of the unfinished pool."""
        return self.picks(context) * self.size + (self.size - 1 if self.tail else 0)

    def behind(self, context: int) -> int:
        """The number of these rows that would come after the newest token."""
        return self.size - 1 - context % self.size if self.tail else 0

    def allows(self, query: Array, key: Array) -> Array:
        return key <= query

    def pairs(self, tokens: int) -> int:
        """The number of (query, key) pairs in a sequence of `tokens`: those of full pools, and of the unfinished
        one."""
        size = int(self.size)
        pools, rest = divmod(tokens, size)
        unfinished = pools * (size * (size - 1) // 2) + rest * (rest + 1) // 2
        return Compressed(size).picked_pairs(tokens, int(self.most)) * size + (unfinished if self.tail else 0)

    def __str__(self) -> str:
        return "picked pools"


class Patches(Struct, frozen=True):
    """One entry for each finished patch. The first token is a patch; the next ones end at multiples of `size`."""

    size: int

    def seen(self, past: int) -> int:
        """The number of patches that the next step finds."""
        return past if self.size == 1 else smallest(past, 1) + past // self.size

    def kept(self, context: int) -> int:
        """The number of finished patches after a step that ends at `context`."""
        return self.seen(context)

    def waiting(self, context: int) -> int:
        """The number of tokens since the last patch."""
        if self.size == 1:
            return context - context
        first, whole = smallest(context, 1), context // self.size * self.size
        return context - (first + whole - smallest(first, whole))

    def allows(self, query: Array, key: Array) -> Array:
        """Whether a patch may attend to another: [P 1], [1 P] -> [P P]."""
        return key <= query

    def pairs(self, tokens: int) -> int:
        """The number of allowed pairs of patches in a sequence of `tokens`."""
        patches = int(self.seen(tokens))
        return patches * (patches + 1) // 2

    def __str__(self) -> str:
        return "patches"
