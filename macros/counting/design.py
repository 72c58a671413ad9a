"""The choices of a model's makers as numbers, for the charts of all models and for the reader's own model."""

from __future__ import annotations

from fractions import Fraction

from .parameters import Counts

FEED_FORWARD, SHARING, CACHE, VOCABULARY = "feed-forward width", "query heads per KV head", "KV cache", "vocabulary"
SHAPE, ACTIVE = "width to depth", "active share"


def is_sparse(counts: Counts) -> bool:
    """Whether a token uses only some of the parameters: a mixture of experts."""
    return counts.active != counts.total


def n_layers(counts: Counts) -> int:
    """Layers of every kind; a layer that runs several times counts each time."""
    return sum(int(node.layer_count) for node in counts.trace.root.children if node.layers is not None)


def cache_growth(counts: Counts) -> int:
    """Bytes that one more token adds to the cache until a window is full, including an indexer's keys."""
    return counts.cache_bytes_per_token_uncapped() + counts.index_bytes_per_token()


def feed_forward_matrices(counts: Counts) -> int | None:
    """The number of matrices in the dense feed-forward network: 2, or 3 with a gate; None without such a network, or if
    its width differs between layers."""
    sizes, parts = counts.values(), [p for p in counts.parts if p.is_dense_feed_forward]
    if not parts or "d_ff" not in sizes:
        return None
    one = sizes["d_model"] * sizes["d_ff"]
    matrices = [(int(w.count), int(w.copies) * one) for w in parts[0].weights if len(w.shape) > 1]
    return sum((2 * count + of) // (2 * of) for count, of in matrices) or None


def choices(counts: Counts) -> dict[str, Fraction | int | None]:
    """Each choice of a model; None where it has no such choice."""
    sizes, layers = counts.values(), n_layers(counts)
    has_network = not is_sparse(counts) and feed_forward_matrices(counts) in (2, 3)
    has_heads = "n_heads" in sizes and "kv_lora_rank" not in sizes
    return {
        FEED_FORWARD: Fraction(sizes["d_ff"], sizes["d_model"]) if has_network else None,
        SHARING: Fraction(sizes["n_heads"], sizes.get("n_kv_heads") or sizes["n_heads"]) if has_heads else None,
        CACHE: cache_growth(counts) or None,
        VOCABULARY: sizes["vocab_size"],
        SHAPE: Fraction(sizes["d_model"], layers) if layers else None,
        ACTIVE: Fraction(counts.active, counts.total) if is_sparse(counts) else None,
    }
