"""Several residual streams: each part of a layer reads a mixture of them, and writes into all.

Additional letters: M streams. Hyper-connections (arXiv 2409.19606) replace `x + part(x)`; if the matrix that mixes the
streams is doubly stochastic, nothing grows with the depth (manifold-constrained: mHC, arXiv 2512.24880).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..interface import Array, Weights
from ..steps import Access, Keeps, Role, Ruling, step
from .basic import linear, logistic, silu, softmax


class StreamShares(NamedTuple):
    """The weights with which a part of a layer reads, writes and mixes the streams."""

    read: Array  # [T M]
    write: Array  # [T M]
    mix: Array | None = None  # [T M M]: from, to; None if streams are not mixed


@step(Role.ATTENTION_RESIDUALS)
def attention_residuals(sources: list[Array], w: Weights, name: str, n: int, eps: float) -> list[Array]:
    """Averages of normalized sources by their fit to trained queries: [T D] each, [D] or [n D] -> [T D] each.

    Attention over the depth, the sums of blocks of layers, instead of one residual sum (Inkling 2).
    """
    D = sources[0].shape[1]
    return _averages(sources, w(name, n, D) if n > 1 else w(name, D)[None, :], eps)


@step(Role.ATTENTION_RESIDUALS)
def messages_of(sources: list[Array], queries: Array, eps: float) -> list[Array]:
    """Like `attention_residuals`, with queries selected by the layer's index: [T D] each, [n D] -> [T D] each (Inkling
    2 Mini)."""
    return _averages(sources, queries, eps)


def _averages(sources: list[Array], queries: Array, eps: float) -> list[Array]:
    D = sources[0].shape[1]
    x = np.stack(sources, axis=1)
    x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    shares = softmax(np.einsum("tmd,nd->tnm", x, queries, optimize=True) * D**-0.5)
    averages = np.einsum("tnm,tmd->tnd", shares, x, optimize=True)
    return [averages[:, i] for i in range(queries.shape[0])]


@step(Role.EXPAND_STREAMS, keeps=Keeps.NOTHING, access=Access.LOOKS)
def expand_streams(x: Array, n_streams: int) -> Array:
    """Start every stream with the same vector: [T D] -> [T M D]."""
    return np.repeat(x[:, None, :], n_streams, axis=1)


@step(Role.EXPAND_STREAMS, keeps=Keeps.NOTHING)
def first_stream(x: Array) -> Array:
    """Weights with which the first part reads only the first stream: [T M D] -> [T M] (DeepSeek V4.1)."""
    T, M = x.shape[0], x.shape[1]
    one = np.zeros((T, 1), dtype=np.float32, like=x) + 1
    return np.concatenate([one, np.zeros((T, M - 1), dtype=np.float32, like=x)], axis=1)


@step(Role.STREAM_SHARES)
def stream_shares(x: Array, w: Weights, eps: float, floor: float, rounds: int) -> StreamShares:
    """Compute the weights from all streams together: [T M D], [(2 + M)·M M·D] -> [T M], [T M], [T M M] (mHC, 4.2).

    `floor` is added to weights and sums, and Sinkhorn's `rounds` make the mixing matrix doubly stochastic.
    """
    M = x.shape[1]
    mixed = of_all_streams(x, w, "fn", (2 + M) * M, eps)
    base, scale = w("base", (2 + M) * M), w("scale", 3)
    read, write, mix = np.split(mixed, [M, 2 * M], axis=-1)
    read_base, write_base, mix_base = np.split(base, [M, 2 * M])
    mix = softmax((mix * scale[2] + mix_base).reshape(x.shape[0], M, M)) + floor
    return StreamShares(
        logistic(read * scale[0] + read_base) + floor,
        2 * logistic(write * scale[1] + write_base),
        sinkhorn(mix, floor, rounds),
    )


@step(Role.STREAM_SHARES)
def separate_shares(x: Array, w: Weights, eps: float, floor: float, most: float) -> StreamShares:
    """Like `stream_shares`, for streams that are never mixed: [T M D], [2·M M·D] -> [T M], [T M] (HunYuan 4,
    independent form)."""
    M = x.shape[1]
    base, scale = w("base", 2 * M), w("scale", 2)
    read, write = np.split(of_all_streams(x, w, "fn", 2 * M, eps), [M], axis=-1)
    read_base, write_base = np.split(base, [M])
    return StreamShares(
        logistic(read * scale[0] + read_base) + floor, most * logistic(write * scale[1] + write_base) + floor
    )


@step(Role.RMS_NORM)
def stream_norm(x: Array, w: Weights, name: str, eps: float) -> Array:
    """Divide each stream by its root mean square, then scale by 1 + w: [T M D], [M·D] -> [T M D]."""
    M, D = x.shape[1], x.shape[2]
    x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    return x * (w(f"{name}.weight", M * D).reshape(M, D) + 1)


@step(Role.STREAM_SHARES)
def stream_gates(x: Array, w: Weights, eps: float, rank: int) -> tuple[Array, StreamShares]:
    """A part's input, and the weights of its output: [T M D] -> [T D], [T M] (Qwen4-Exp).

    Each element of the streams has its own gate, from a narrow pair of matrices; nothing is mixed.
    """
    M = x.shape[1]
    normed = stream_norm(x, w, "hc_norm", eps)
    flat = normed.reshape(x.shape[0], M * x.shape[2])
    write = 2 * logistic(linear(flat, w, "block_inject_weight", M) * (1 / M))
    return mixed_streams(normed, w, rank), StreamShares(write, write)


@step(Role.READ_STREAMS)
def mixed_streams(x: Array, w: Weights, rank: int) -> Array:
    """The mean of normalized streams, each element multiplied by a gate: [T M D] -> [T R] -> [T M D] -> [T D]."""
    T, M, D = x.shape
    low = silu(linear(x.reshape(T, M * D), w, "input_mix_weight_down", rank) * (1 / M))
    gates = logistic(linear(low, w, "input_mix_weight_up", M * D)).reshape(T, M, D)
    return (gates * x).mean(axis=1)


@step(Role.REDUCE_STREAMS)
def mean_of_streams(x: Array) -> Array:
    """The mean of the streams, for the head: [T M D] -> [T D]."""
    return x.mean(axis=1)


@step(Role.REDUCE_STREAMS)
def reduce_streams(x: Array, w: Weights, eps: float, floor: float) -> Array:
    """Sum the streams for the head, with weights computed from all of them: [T M D], [M M·D] -> [T D]."""
    M = x.shape[1]
    shares = logistic(of_all_streams(x, w, "hc_fn", M, eps) * w("hc_scale", 1) + w("hc_base", M)) + floor
    return read_streams(x, shares)


def of_all_streams(x: Array, w: Weights, name: str, width: int, eps: float) -> Array:
    """A linear map of all streams side by side, normalized together: [T M D], [O M·D] -> [T O]."""
    flat = x.reshape(x.shape[0], x.shape[1] * x.shape[2])
    flat = flat / np.sqrt((flat * flat).mean(axis=-1, keepdims=True) + eps)
    return np.einsum("ti,oi->to", flat, w(name, width, flat.shape[1]), optimize=True)


def _sinkhorn_rule(x: Array, floor: float, rounds: int) -> Ruling:
    return x.shape, 0


@step(Role.SINKHORN, rule=_sinkhorn_rule)
def sinkhorn(x: Array, floor: float, rounds: int) -> Array:
    """Divide columns and rows by their sums in turn, so that all sums are near 1: [T M M] -> [T M M] (arXiv
    2512.24880)."""
    x = x / (x.sum(axis=-2, keepdims=True) + floor)
    for _ in range(rounds - 1):
        x = x / (x.sum(axis=-1, keepdims=True) + floor)
        x = x / (x.sum(axis=-2, keepdims=True) + floor)
    return x


@step(Role.READ_STREAMS)
def read_streams(x: Array, shares: Array) -> Array:
    """The input of a part of a layer: the weighted sum of the streams: [T M D], [T M] -> [T D]."""
    return np.einsum("tmd,tm->td", x, shares, optimize=True)


@step(Role.WRITE_STREAMS)
def write_streams(x: Array, y: Array, shares: StreamShares) -> Array:
    """Mix the streams, and add to each its share of the part's output: [T M D], [T D] -> [T M D]."""
    mixed = x if shares.mix is None else np.einsum("tmk,tmd->tkd", shares.mix, x, optimize=True)
    return shares.write[:, :, None] * y[:, None, :] + mixed
