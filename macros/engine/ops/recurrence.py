"""Recurrences: a state of fixed size that is carried from token to token, and convolutions over the last few tokens.

Additional letters: C channels, Z numbers of state, G groups of heads, W the width of a convolution, I and J the sides
of a head's state. Only the recurrent form is here; chunks are a faster way to compute the same result.

FLOPs: in a recurrence each product that is added to the state or summed out of it is one multiply-add; `keep · state +
key ⊗ value` takes two for each number of the state. Decay and step size are element-wise, and not counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import numpy as np
from msgspec import Struct

from ..dims import product
from ..interface import Array, KVCache, Weights
from ..steps import Holds, Keeps, Role, Ruling, step, tracer_of
from .basic import linear, logistic

# Bytes of an element of a state, regardless of the format of the model and of its cache.
CONVOLUTION_BYTES, STATE_BYTES = 2, 4


class Mixed(Struct, frozen=True):
    """The composition of a hybrid model's layer: its token mixer, and its feed-forward network."""

    mixer: str
    feed_forward: str = ""

    def __str__(self) -> str:
        return f"{self.mixer}, {self.feed_forward}" if self.feed_forward else self.mixer


# A recurrent state: one array or several.
State = TypeVar("State", Array, tuple[Array, Array], tuple[Array, Array, Array])


def scan(body: Callable[..., tuple[State, Array]], state: State, xs: tuple[Array, ...]) -> tuple[State, Array]:
    """Carry a state across the tokens: a state, [T …] of each of `xs` -> the last state, [T …] of the outputs of
    `body`.

    `body(state, *rows)` returns (new state, row); the state is one array or a tuple of them.
    """
    tracer = tracer_of(xs)
    if tracer is not None:
        return tracer.repeat(body, state, xs)
    rows: list[Array] = []
    for t in range(xs[0].shape[0]):
        state, row = body(state, *(x[t] for x in xs))
        rows.append(row)
    return state, np.stack(rows)


def _state_update_rule(state: Array, keep: Array, key: Array, value: Array | None = None) -> Ruling:
    return state.shape, product(state.shape) * (1 if value is None else 2)


@step(Role.STATE_UPDATE, rule=_state_update_rule)
def state_update(state: Array, keep: Array, key: Array, value: Array | None = None) -> Array:
    """Decay a state and write into it, keep · state + key · value, by broadcasting: same shape."""
    return keep * state + (key if value is None else key * value)


@step(Role.CAUSAL_CONV)
def causal_conv(
    x: Array, w: Weights, cache: KVCache, name: str, width: int, *, bias: bool, kept: int | None = None
) -> Array:
    """Mix each channel over its last `width` tokens, including the token itself: [T C], [C 1 W] -> [T C].

    The last W rows are kept, at the model's 2 bytes, as in transformers and mamba_ssm, or the last `kept`: the next
    step reads W − 1.
    """
    C, kept = x.shape[1], width if kept is None else kept
    rows = np.concatenate([cache.state(Holds.CONVOLUTION, kept, C), x], axis=0)
    cache.store(Holds.CONVOLUTION, rows[x.shape[0] :], item_bytes=CONVOLUTION_BYTES)
    windows = np.stack([rows[kept - back : -back or None] for back in range(width - 1, -1, -1)], axis=1)
    y = np.einsum("twc,cw->tc", windows, w(f"{name}.weight", C, 1, width)[:, 0], optimize=True)
    return y + w(f"{name}.bias", C) if bias else y


@step(Role.CONVOLVE)
def centered_conv(x: Array, w: Weights, name: str, width: int, *, bias: bool) -> Array:
    """Mix each channel over the `width` tokens around each token, equally many ahead and back: [T C], [C 1 W] -> [T
    C]."""
    T, C = x.shape
    beside = np.zeros((width // 2, C), dtype=x.dtype, like=x)
    rows = np.concatenate([beside, x, beside], axis=0)
    windows = np.stack([rows[tap : tap + T] for tap in range(width)], axis=1)
    y = np.einsum("twc,cw->tc", windows, w(f"{name}.weight", C, 1, width)[:, 0], optimize=True)
    return y + w(f"{name}.bias", C) if bias else y


@step(Role.CAUSAL_CONV)
def grouped_conv(rows: Array, w: Weights, name: str, width: int, groups: int) -> Array:
    """Mix each group of channels over `width` tokens: [T+W−1 C], [C C/G W] -> [T C]."""
    C = rows.shape[1]
    inside = C // groups
    windows = np.stack([rows[width - 1 - back : -back or None] for back in range(width - 1, -1, -1)], axis=1)
    windows = windows.reshape(windows.shape[0], width, groups, inside)
    weight = w(f"{name}.weight", C, inside, width).reshape(groups, inside, inside, width)
    y = np.einsum("twgi,goiw->tgo", windows, weight, optimize=True)
    return y.reshape(y.shape[0], C)


@step(Role.SHORT_CONVOLUTION)
def short_convolution(x: Array, w: Weights, cache: KVCache, width: int, *, bias: bool, centered: bool = False) -> Array:
    """Mix each channel over the last few tokens, gated before and after: [T D] -> [T 3D] -> [T D].

    If `centered`, over those around each token, equally many ahead and back, in a sequence that is processed at once.
    Both gates come from the token itself and have no activation function (arXiv 2511.23404, 2.1).
    """
    D = x.shape[1]
    before, after, x = np.split(linear(x, w, "in_proj", 3 * D, bias=bias), 3, axis=-1)
    if centered:
        mixed = centered_conv(before * x, w, "conv", width, bias=bias)
    else:
        mixed = causal_conv(before * x, w, cache, "conv", width, bias=bias)
    return linear(after * mixed, w, "out_proj", D, bias=bias)


@step(Role.CAUSAL_CONV)
def dilated_conv(x: Array, w: Weights, cache: KVCache, name: str, width: int, apart: int) -> Array:
    """Mix each channel over `width` tokens spaced `apart`, going back from the token: [T C] -> [T C]."""
    C, before = x.shape[1], (width - 1) * apart
    rows = np.concatenate([cache.state(Holds.CONVOLUTION, before, C), x], axis=0)
    cache.store(Holds.CONVOLUTION, rows[x.shape[0] :], item_bytes=CONVOLUTION_BYTES)
    taps = [rows[i * apart : -(width - 1 - i) * apart or None] for i in range(width)]
    return np.einsum("twc,cw->tc", np.stack(taps, axis=1), w(f"{name}.weight", C, 1, width)[:, 0], optimize=True)


@step(Role.CAUSAL_CONV)
def tap_conv(x: Array, of: Array, w: Weights, cache: KVCache, width: int, n_heads: int) -> Array:
    """A short convolution whose taps depend on the token, head by head, plus fixed ones: [T C], [T D] -> [T C].

    The token itself is added; the sum is scaled to the size of one vector.
    """
    T, C = x.shape
    rows = np.concatenate([cache.state(Holds.CONVOLUTION, width, C), x], axis=0)
    cache.store(Holds.CONVOLUTION, rows[-width:], item_bytes=CONVOLUTION_BYTES)
    windows = np.stack([rows[width - back : -back or None] for back in range(width)], axis=1)
    fixed = np.einsum("twc,wc->tc", windows, w("static_weight", width, C), optimize=True)
    taps = linear(of, w, "weight_proj", n_heads * width).reshape(T, n_heads, width)
    moving = windows.reshape(T, width, n_heads, C // n_heads)
    moving = np.einsum("twnh,tnw->tnh", moving, taps, optimize=True).reshape(T, C)
    return (x + fixed + moving) * (2 * width + 1) ** -0.5


@step(Role.TOKEN_SHIFT, keeps=Keeps.NOTHING)
def token_shift(x: Array, cache: KVCache, holds: Holds) -> Array:
    """The vector of the previous token: [T D] -> [T D]. The last one is kept, at the model's 2 bytes."""
    rows = np.concatenate([cache.state(holds, 1, x.shape[1]), x], axis=0)
    cache.store(holds, rows[-1:], item_bytes=CONVOLUTION_BYTES)
    return rows[:-1]


@step(Role.SELECTIVE_SCAN)
def selective_scan(
    x: Array, dt: Array, A: Array, B: Array, C: Array, cache: KVCache, item_bytes: int = STATE_BYTES
) -> Array:
    """Mamba's state space, one state per channel: [T C], [T C] step sizes, [C Z], [T Z], [T Z] -> [T C].

    h ← exp(Δ·A)·h + Δ·x ⊗ B, y = h·C (arXiv 2312.00752, 3.2).
    """

    def body(h: Array, x: Array, dt: Array, b: Array, c: Array) -> tuple[Array, Array]:
        h = state_update(h, np.exp(dt[:, None] * A), (dt * x)[:, None], b[None, :])
        return h, np.einsum("cz,z->c", h, c, optimize=True)

    h, y = scan(body, cache.state(Holds.STATE, *A.shape), (x, dt, B, C))
    cache.store(Holds.STATE, h, item_bytes=item_bytes)
    return y


@step(Role.RG_LRU)
def rg_lru(x: Array, log_keep: Array, cache: KVCache, item_bytes: int = STATE_BYTES) -> Array:
    """The real-gated linear recurrent unit, one number of state per channel: [T C], [T C] -> [T C].

    h ← a·h + √(1 − a²)·x with a = e^log_keep, so that a state keeps its size; a sequence's first token enters unscaled
    (Griffin, arXiv 2402.19427, 2.4).
    """
    is_first = (np.arange(x.shape[0], like=x) + cache.length < 1)[:, None]
    written = np.where(is_first, x, np.sqrt(1 - np.exp(2 * log_keep)) * x)

    def body(h: Array, keep: Array, written: Array) -> tuple[Array, Array]:
        h = state_update(h, keep, written)
        return h, h

    h, y = scan(body, cache.state(Holds.STATE, x.shape[1]), (np.exp(log_keep), written))
    cache.store(Holds.STATE, h, item_bytes=item_bytes)
    return y


@step(Role.DECAYING_ATTENTION)
def decaying_attention(
    q: Array, k: Array, v: Array, keep: Array, cache: KVCache, item_bytes: int = STATE_BYTES
) -> Array:
    """Linear attention whose memory fades: [T N I], [T N I], [T N J], [T N] decays -> [T N J].

    S ← keep·S + k ⊗ v, y = q·S. Lightning attention (arXiv 2401.04658) and, with q = C, k = B, v = Δ·x and keep =
    exp(Δ·A), Mamba 2 (arXiv 2405.21060, 5.2).
    """

    def body(state: Array, q: Array, k: Array, v: Array, keep: Array) -> tuple[Array, Array]:
        state = state_update(state, keep[:, None, None], k[:, :, None], v[:, None, :])
        return state, np.einsum("ni,nij->nj", q, state, optimize=True)

    state, y = scan(body, cache.state(Holds.STATE, *q.shape[1:], v.shape[2]), (q, k, v, keep))
    cache.store(Holds.STATE, state, item_bytes=item_bytes)
    return y


@step(Role.GATED_DELTA_RULE)
def gated_delta_rule(
    q: Array, k: Array, v: Array, keep: Array, strength: Array, cache: KVCache, item_bytes: int = STATE_BYTES
) -> Array:
    """Linear attention that forgets and corrects itself: [T N I], [T N I], [T N J], [T N] each -> [T N J].

    The value that the memory already returns for the key is removed before the new one is written: S ← keep·S, S ← S +
    k ⊗ strength·(v − k·S), y = q·S (arXiv 2412.06464). With decays of [T N I] each channel of a key forgets at its own
    rate (arXiv 2510.26692).
    """
    if keep.ndim == 2:
        keep = keep[:, :, None]

    def body(state: Array, q: Array, k: Array, v: Array, keep: Array, strength: Array) -> tuple[Array, Array]:
        known = np.einsum("ni,nij->nj", k * keep, state, optimize=True)
        state = state_update(state, keep[:, :, None], k[:, :, None], ((v - known) * strength[:, None])[:, None, :])
        return state, np.einsum("ni,nij->nj", q, state, optimize=True)

    state, y = scan(body, cache.state(Holds.STATE, *q.shape[1:], v.shape[2]), (q, k, v, keep, strength))
    cache.store(Holds.STATE, state, item_bytes=item_bytes)
    return y


@step(Role.WKV7)
def wkv7(r: Array, keep: Array, k: Array, v: Array, removed: Array, rate: Array, cache: KVCache) -> Array:
    """RWKV-7's memory, which removes along one key and writes along another: [T N I] each, v [T N J] -> [T N J].

    S ← diag(keep)·S + k ⊗ v − (rate·removed) ⊗ (removed·S), y = r·S (arXiv 2503.14456, 4.1): it removes what the memory
    returned before it faded, at a rate that each channel has for itself.
    """

    def body(
        state: Array, r: Array, keep: Array, k: Array, v: Array, removed: Array, rate: Array
    ) -> tuple[Array, Array]:
        known = np.einsum("ni,nij->nj", removed, state, optimize=True)
        state = state_update(state, keep[:, :, None], k[:, :, None], v[:, None, :])
        state = state - (removed * rate)[:, :, None] * known[:, None, :]
        return state, np.einsum("ni,nij->nj", r, state, optimize=True)

    state, y = scan(body, cache.state(Holds.STATE, *r.shape[1:], v.shape[2]), (r, keep, k, v, removed, rate))
    cache.store(Holds.STATE, state, item_bytes=STATE_BYTES)
    return y


# A memory or a weighted sum, the sum of the weights, and the logarithm of the largest weight.
Averages: TypeAlias = tuple[Array, Array, Array]


@step(Role.WKV)
def wkv(k: Array, v: Array, decay: Array, bonus: Array, cache: KVCache) -> Array:
    """RWKV's weighted average of all values so far: [T C], [T C], [C], [C] -> [T C] (arXiv 2305.13048, 3.1).

    A value's weight is e^(its key), fading by e^−decay with each token; the weight of the newest is raised by e^bonus.
    The sum and the sum of weights are stored divided by the largest weight, whose logarithm is stored too: all three in
    float32.
    """

    def body(state: Averages, k: Array, v: Array) -> tuple[Averages, Array]:
        total, weight, largest = state
        top = np.maximum(largest, k + bonus)
        old, new = np.exp(largest - top), np.exp(k + bonus - top)
        y = state_update(total, old, new, v) / state_update(weight, old, new)
        top = np.maximum(largest - decay, k)
        old, new = np.exp(largest - decay - top), np.exp(k - top)
        return (state_update(total, old, new, v), state_update(weight, old, new), top), y

    kept, C = (Holds.WEIGHTED_SUM, Holds.SUM_OF_WEIGHTS, Holds.LARGEST_WEIGHT), k.shape[1]
    total, weight, largest = (cache.state(holds, C) for holds in kept)
    largest = np.where(weight > 0, largest, -1e38)  # no token has been weighted yet
    state, y = scan(body, (total, weight, largest), (k, v))
    for holds, new in zip(kept, state):
        cache.store(holds, new, item_bytes=STATE_BYTES)
    return y


@step(Role.MLSTM)
def mlstm(q: Array, k: Array, v: Array, opened: Array, log_keep: Array, cache: KVCache, eps: float) -> Array:
    """xLSTM's matrix memory, read as an average: [T N I], [T N I], [T N J], [T N], [T N] logarithms -> [T N J].

    C ← keep·C + e^opened·k ⊗ v, n ← keep·n + e^opened·k, y = q·C / max(|q·n|, 1) (arXiv 2405.04517, 2.3). Both are
    stored divided by the largest weight, whose logarithm is stored too: all three in float32.
    """

    def body(state: Averages, q: Array, k: Array, v: Array, opened: Array, log_keep: Array) -> tuple[Averages, Array]:
        memory, weight, largest = state
        top = np.maximum(log_keep + largest, opened)
        keep, k = np.exp(log_keep + largest - top)[:, None], k * np.exp(opened - top)[:, None]
        memory = state_update(memory, keep[:, :, None], k[:, :, None], v[:, None, :])
        weight = state_update(weight, keep, k)
        read = np.abs(np.einsum("ni,ni->n", q, weight, optimize=True))
        y = np.einsum("ni,nij->nj", q, memory, optimize=True) / (np.maximum(read, np.exp(-top)) + eps)[:, None]
        return (memory, weight, top), y

    shapes = {
        Holds.STATE: (*q.shape[1:], v.shape[2]),
        Holds.SUM_OF_WEIGHTS: q.shape[1:],
        Holds.LARGEST_WEIGHT: q.shape[1:2],
    }
    memory, weight, largest = (cache.state(holds, *shape) for holds, shape in shapes.items())
    state, y = scan(body, (memory, weight, largest), (q, k, v, opened, log_keep))
    for holds, new in zip(shapes, state):
        cache.store(holds, new, item_bytes=STATE_BYTES)
    return y


@step(Role.GATED_RMS_NORM)
def gated_rms_norm(x: Array, z: Array, w: Weights, name: str, eps: float, groups: int = 1) -> Array:
    """Gate with SiLU, divide each group of elements by its root mean square, then scale: [T C], [T C], [C] -> [T C]."""
    T, C = x.shape
    y = (x * z * logistic(z)).reshape(T, groups, C // groups)
    y = y / np.sqrt((y * y).mean(axis=-1, keepdims=True) + eps)
    return y.reshape(T, C) * w(f"{name}.weight", C)


@step(Role.RMS_NORM)
def grouped_rms_norm(x: Array, w: Weights, name: str, eps: float, groups: int) -> Array:
    """Divide each group of elements by its root mean square, then scale: [T C], [C] -> [T C]."""
    T, C = x.shape
    y = x.reshape(T, groups, C // groups)
    y = y / np.sqrt((y * y).mean(axis=-1, keepdims=True) + eps)
    return y.reshape(T, C) * w(f"{name}.weight", C)


@step(Role.L2_NORM)
def l2_norm(x: Array) -> Array:
    """Scale each vector to length 1: [… H] -> [… H]."""
    return x / np.sqrt((x * x).sum(axis=-1, keepdims=True) + 1e-6)
