"""Attention: the earlier tokens that a layer sees and keeps, and the scaled dot product over them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..errors import Problem, only_forward
from ..interface import Array, KVCache, Mask, Weights
from ..steps import Access, Keeps, Role, step
from .basic import soft_cap, softmax
from .masks import Full, NoPE, Shared, SlidingWindow


def with_shared(masks: Sequence[Mask], sharing: int) -> list[Mask]:
    """The mask of each layer, if the last `sharing` layers read the cache of the last earlier layer of their kind.

    Raises `Problem` if there is no such layer.
    """
    own = list(masks[: len(masks) - sharing])
    for mask in masks[len(own) :]:
        if mask not in own:
            raise Problem(
                f"no layer before the last {sharing} keeps keys and values for those with {mask} attention",
                "correct num_kv_shared_layers or layer_types",
            )
    return [*own, *(Shared(mask) for mask in masks[len(own) :])]


def causal_mask(cache: KVCache, queries: Array, keys: Array, mask: Mask) -> Array | None:
    """The keys that each new token may attend to: [T S], True if allowed.

    If attention is bidirectional, those within its window on both sides; None without a window.
    """
    return both_sides(queries, mask) if cache.looks_both_ways else strictly_causal_mask(cache, queries, keys, mask)


def both_sides(x: Array, mask: Mask) -> Array | None:
    """The tokens within a window, equally far ahead and back: [T …] -> [T T]; None without a window.

    Raises `Problem` for a mask that has no counterpart.
    """
    if isinstance(mask, (NoPE, Shared)):
        return both_sides(x, mask.mask)
    if isinstance(mask, SlidingWindow):
        place = np.arange(x.shape[0], like=x)
        return np.abs(place[:, None] - place[None, :]) <= mask.size
    if not isinstance(mask, Full):
        raise only_forward(f"{mask} attention")
    return None


def strictly_causal_mask(cache: KVCache, queries: Array, keys: Array, mask: Mask) -> Array:
    """The keys that each new token may attend to: [T S], True if allowed. Raises `Problem` if attention is
    bidirectional."""
    if cache.looks_both_ways:
        raise only_forward("its choice of keys")
    T, S = queries.shape[0], keys.shape[0]
    query = np.arange(T, like=queries) + cache.length
    key = np.arange(S, like=keys) + (cache.length + T - S)
    return mask.allows(query[:, None], key[None, :])


@step(Role.HEAD_NORMS)
def head_norms(x: Array, w: Weights, name: str, eps: float) -> Array:
    """Layer norm without shift, with separate weights for each head: [T N H], [N H] -> [T N H]."""
    x = x - x.mean(axis=-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    return x * w.stack(name, x.shape[1], x.shape[2], used=x.shape[1])


@step(Role.REPEAT_KV, keeps=Keeps.NOTHING, access=Access.LOOKS)
def repeat_kv(x: Array, n_heads: int) -> Array:
    """Each key/value head serves several query heads: [S K H] -> [S N H]."""
    return np.repeat(x, n_heads // x.shape[1], axis=1)


@step(Role.SCORES)
def scores(q: Array, k: Array, scale: float) -> Array:
    """The fit of each new token's query to each key, head by head: [T N H], [S N H] -> [N T S]."""
    return np.einsum("tnh,snh->nts", q, k, optimize=True) * scale


@step(Role.CAUSAL_MASK, keeps=Keeps.NOTHING)
def masked(x: Array, allowed: Array | None) -> Array:
    """Hide the tokens that must not be seen, such as all later ones: [N T S], [T S] -> [N T S]."""
    return x if allowed is None else np.where(allowed, x, -np.inf)


def masked_on_both_sides(x: Array, allowed: Array | None) -> Array:
    """Instead of the causal mask if attention is bidirectional: hide what is outside the window, if there is one."""
    return x if allowed is None else window_mask(x, allowed)


@step(Role.WINDOW_MASK, keeps=Keeps.NOTHING)
def window_mask(x: Array, allowed: Array) -> Array:
    """Hide the tokens farther away than a window reaches, on both sides: [N T T], [T T] -> [N T T]."""
    return np.where(allowed, x, -np.inf)


@step(Role.SOFTMAX_WITH_SINK, keeps=Keeps.OUTPUT)
def softmax_with_sink(x: Array, sinks: Array) -> Array:
    """Attention weights that add up to less than 1: a score of each head, the sink, takes the rest: [N T S], [N] -> [N
    T S].

    If each token has its own sinks, these are [N T].
    """
    sinks = sinks[:, None, None] if sinks.ndim == 1 else sinks[:, :, None]
    top = np.maximum(x.max(axis=-1, keepdims=True), sinks)
    e = np.exp(x - top)
    return e / (e.sum(axis=-1, keepdims=True) + np.exp(sinks - top))


@step(Role.WEIGHTED_SUM)
def weighted_sum(shares: Array, v: Array) -> Array:
    """Average the values by their attention weights: [N T S], [S N H] -> [T N H]."""
    return np.einsum("nts,snh->tnh", shares, v, optimize=True)


def alibi(k: Array, n_heads: int) -> Array:
    """ALiBi: a later key scores higher, with a separate slope for each head: [S K H] -> [N 1 S] (arXiv 2108.12409).

    Per query, adding slope · position differs from -slope · distance by a constant, which the softmax drops.
    """
    return (alibi_slopes(k, n_heads)[:, None, None] * np.arange(k.shape[0], like=k)[None, None, :]).astype(np.float32)


def alibi_slopes(k: Array, n_heads: int) -> Array:
    """The slope of each head: [S K H] -> [N]."""
    power = 1 << int(n_heads).bit_length() - 1
    i = np.arange(n_heads, like=k)
    return np.where(i < power, 2.0 ** ((i + 1) * (-8 / power)), 2.0 ** ((2 * (i - power) + 1) * (-4 / power)))


@step(Role.CLIP)
def clip_length(x: Array, longest: float) -> Array:
    """Clip each vector to a maximum length: [… H] -> [… H]."""
    length = np.sqrt((x * x).sum(axis=-1, keepdims=True))
    return x * np.minimum(longest / (length + 1e-6), 1)


@step(Role.RELATIVE_LOGITS)
def relative_logits(x: Array, profiles: Array, cache: KVCache, keys: Array) -> Array:
    """Each head's addition to a score by distance, a mixture of trained profiles: [T N R], [R E], [S …] -> [N T S].

    Nothing is added beyond E tokens.
    """
    T, S, reach = x.shape[0], keys.shape[0], profiles.shape[1]
    by_distance = np.einsum("tnr,re->tne", x, profiles, optimize=True)
    distance = np.arange(T, like=x)[:, None] + (S - T) - np.arange(S, like=x)[None, :]
    nearest = np.clip(distance, 0, reach - 1)[:, None, :]
    bias = np.take_along_axis(by_distance, nearest, axis=2)
    is_near = (distance >= 0) & (distance < reach)
    return np.where(is_near[:, None, :], bias, 0.0).swapaxes(0, 1)


@step(Role.RELATIVE_BIAS, keeps=Keeps.NOTHING)
def relative_bias(
    queries: Array,
    keys: Array,
    w: Weights,
    name: str,
    buckets: int,
    heads: int,
    longest: int,
    *,
    to_both_sides: bool,
    others: int = 0,
    scale: int | None = None,
) -> Array:
    """Each head's addition to a score by distance, looked up: [T], [S], [B N] -> [N T S] (arXiv 1910.10683, 2.1).

    Half of the buckets of a side hold one distance each; the others hold increasingly many distances up to `longest`,
    and the last one everything beyond. The tokens after a query have separate buckets, or none if they are hidden.
    `others`: rows of the table after those of the buckets. Fractional positions differ by that many steps of a `scale`.
    """
    table = w(name, buckets + others, heads)
    ahead = keys[None, :] - queries[:, None]
    if scale is not None:
        ahead = (ahead * scale).astype(np.int64)
    of_side = int(buckets) // 2 if to_both_sides else int(buckets)
    distance = np.abs(ahead) if to_both_sides else np.maximum(-ahead, 0)
    single = of_side // 2
    octaves = np.log(np.maximum(distance, single).astype(np.float32) / single) / math.log(longest / single)
    far = np.minimum(single + (octaves * (of_side - single)).astype(np.int64), of_side - 1)
    bucket = np.where(distance < single, distance, far)
    if to_both_sides:
        bucket = bucket + (ahead > 0) * of_side
    return np.take(table, bucket, axis=0).transpose(2, 0, 1)


def attend(
    q: Array,
    k: Array,
    v: Array,
    allowed: Array | None,
    scale: float,
    bias: Array | None = None,
    cap: float | None = None,
) -> Array:
    """Scaled dot-product attention: [T N H], [S K H], [S K H], [T S] -> [T N·H] (arXiv 1706.03762, 3.2).

    `bias`, if any, is added to the scaled scores: [N 1 S] or [N T S]; `cap` bounds them. Without `allowed`, nothing is
    hidden.
    """
    if k.shape[1] != q.shape[1]:
        k, v = repeat_kv(k, q.shape[1]), repeat_kv(v, q.shape[1])
    fit = scores(q, k, scale) if cap is None else soft_cap(scores(q, k, scale), cap)
    fit = fit if bias is None else fit + bias
    shares = softmax(fit if allowed is None else masked(fit, allowed))
    mixed = weighted_sum(shares, v)
    return mixed.reshape(mixed.shape[0], mixed.shape[1] * mixed.shape[2])


def heads(x: Array, n: int, width: int) -> Array:
    """Cut each vector into heads: [T N·H] -> [T N H]."""
    return x.reshape(x.shape[0], n, width)
