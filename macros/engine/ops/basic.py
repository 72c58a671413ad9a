"""Embedding and unembedding, linear maps, norms, activation functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ..interface import Array, KVCache, Weights
from ..steps import Keeps, Role, step

# An activation function: element-wise, same shape.
Activation: TypeAlias = Callable[[Array], Array]


@step(Role.EMBED, keeps=Keeps.NOTHING)
def embed(ids: Array, w: Weights, name: str, rows: int, width: int) -> Array:
    """Look up one row of the table for each token id: [T], [V D] -> [T D]."""
    return np.take(w(name, rows, width), ids, axis=0)


@step(Role.EMBED_SEGMENTS, keeps=Keeps.NOTHING)
def embed_segments(ids: Array, w: Weights, name: str, rows: int, width: int) -> Array:
    """Look up the row of the first segment for each token: [T], [G D] -> [T D]."""
    return np.take(w(name, rows, width), ids * 0, axis=0)


@step(Role.EMBED_POSITIONS, keeps=Keeps.NOTHING)
def embed_positions(positions: Array, w: Weights, name: str, rows: int, width: int) -> Array:
    """Look up one row of the table for each position: [T], [P D] -> [T D]."""
    return np.take(w(name, rows, width), positions, axis=0)


@step(Role.EMBED_LAYERS, keeps=Keeps.NOTHING)
def embed_layers(ids: Array, w: Weights, name: str, rows: int, layers: int, width: int) -> Array:
    """Look up one row of a table that holds a short vector for each layer: [T], [V L·P] -> [T L P]."""
    return np.take(w(name, rows, layers * width), ids, axis=0).reshape(ids.shape[0], layers, width)


def positions(ids: Array, cache: KVCache) -> Array:
    """The position of each new token in the whole sequence: [T] -> [T]."""
    return np.arange(ids.shape[0], like=ids) + cache.length


@step(Role.LAST_ROW, keeps=Keeps.NOTHING)
def last_row(x: Array) -> Array:
    """Only the last token's vector predicts the next token: [T D] -> [1 D]."""
    return x[-1:]


@step(Role.UNEMBED)
def unembed(x: Array, w: Weights, name: str, vocabulary: int, *, last: bool, bias: str | None = None) -> Array:
    """A score for every token of the vocabulary: [T D], [V D] -> [T V], or [1 V] for the last token only."""
    x = last_row(x) if last else x
    logits = np.einsum("td,vd->tv", x, w(name, vocabulary, x.shape[-1]), optimize=True)
    return logits if bias is None else logits + w(bias, vocabulary)


@step(Role.LINEAR)
def linear(x: Array, w: Weights, name: str, width: int, *, bias: bool = False) -> Array:
    """Multiply by a weight matrix stored [out, in]: [T I], [O I] -> [T O]."""
    y = np.einsum("ti,oi->to", x, w(f"{name}.weight", width, x.shape[-1]), optimize=True)
    return y + w(f"{name}.bias", width) if bias else y


@step(Role.CONV1D)
def conv1d(x: Array, w: Weights, name: str, width: int) -> Array:
    """Multiply by a weight matrix stored [in, out], as GPT-2 does, and add a bias: [T I], [I O], [O] -> [T O]."""
    y = np.einsum("ti,io->to", x, w(f"{name}.weight", x.shape[-1], width), optimize=True)
    return y + w(f"{name}.bias", width)


@step(Role.LAYER_NORM)
def layer_norm(
    x: Array, w: Weights, name: str, eps: float, *, weight: bool = True, bias: bool = True, offset: float = 0.0
) -> Array:
    """Give each vector mean 0 and variance 1, then scale and shift: [… D], [D], [D] -> [… D].

    `offset` is added to the weight: 1 if a file stores the difference of the scale from 1. Without a name, the weights
    are those at `w`.
    """
    at = f"{name}." if name else ""
    x = x - x.mean(axis=-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    if weight:
        scale = w(f"{at}weight", x.shape[-1])
        x = x * (scale + offset if offset else scale)
    return x + w(f"{at}bias", x.shape[-1]) if bias else x


@step(Role.RMS_NORM)
def rms_norm(x: Array, w: Weights, name: str, eps: float, *, offset: float = 0.0) -> Array:
    """Divide each vector by its root mean square, then scale: [… D], [D] -> [… D].

    `offset` is added to the weight: 1 if a file stores the difference of the scale from 1.
    """
    x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    scale = w(f"{name}.weight", x.shape[-1])
    return x * (scale + offset if offset else scale)


@step(Role.UNIT_NORM)
def unit_norm(x: Array, eps: float) -> Array:
    """Divide each vector by its root mean square; no weights: same shape."""
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)


@step(Role.SELF_GATED_NORM)
def self_gated_norm(x: Array, w: Weights, eps: float, rank: int) -> Array:
    """RMS norm whose result is gated by itself, through a narrow pair of matrices: [T D] -> [T R] -> [T D] (A.X K2)."""
    y = rms_norm(x, w, "norm", eps)
    return y * sigmoid(linear(silu(linear(y, w, "mlp.fc1", rank)), w, "mlp.fc2", x.shape[-1]))


@step(Role.SOFTMAX, keeps=Keeps.OUTPUT)
def softmax(x: Array) -> Array:
    """Turn scores into positive weights that add up to 1, along the last axis: [… S] -> [… S]."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@step(Role.SOFTPLUS)
def softplus(x: Array) -> Array:
    """A smooth way to make numbers positive, ln(1 + eˣ): same shape."""
    return np.logaddexp(x, 0)


@step(Role.SOFT_CAP)
def soft_cap(x: Array, cap: float) -> Array:
    """Squeeze scores so that none goes beyond ±cap: cap · tanh(x / cap): same shape (Gemma 2, arXiv 2408.00118)."""
    return np.tanh(x / cap) * cap


@step(Role.GELU_TANH)
def gelu_tanh(x: Array) -> Array:
    """GELU in its tanh form: nearly x · Φ(x), with tanh instead of Φ: [T F] -> [T F]."""
    return x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


@step(Role.GELU)
def gelu(x: Array) -> Array:
    """GELU: x · Φ(x), with Φ the normal distribution function: [T F] -> [T F]."""
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


@step(Role.SILU)
def silu(x: Array) -> Array:
    """SiLU: x · sigmoid(x): [T F] -> [T F]."""
    return x * logistic(x)


@step(Role.RELU)
def relu(x: Array) -> Array:
    """ReLU: x if it is positive, otherwise 0: [T F] -> [T F]."""
    return np.maximum(x, 0)


@step(Role.XIELU)
def xielu(x: Array, w: Weights, name: str) -> Array:
    """xIELU: a parabola above zero, eˣ − 1 − x below, each with a learned strength: [T F], [1], [1] -> [T F].

    arXiv 2411.13010.
    """
    above, below = (np.logaddexp(w(f"{name}.{part}", 1), 0) for part in ("alpha_p", "alpha_n"))
    return 0.5 * x + np.where(x > 0, above * x * x, (0.5 + below) * (np.expm1(np.minimum(x, -1e-6)) - x))


@step(Role.RELU_SQUARED)
def relu_squared(x: Array) -> Array:
    """ReLU, squared: [T F] -> [T F]."""
    return np.maximum(x, 0) * np.maximum(x, 0)


@step(Role.GAUSSIAN_TOP_K)
def gaussian_top_k(x: Array, share: float) -> Array:
    """The part of each vector beyond its largest `share` of elements, assumed to be normal: same shape (Gemma 3n)."""
    mean = x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt(((x - mean) * (x - mean)).mean(axis=-1, keepdims=True))
    return np.maximum(x - (mean + deviation * normal_quantile(1 - share)), 0)


# P. J. Acklam's rational fits of the normal quantile, within 1.2e-9: numerators and denominators, highest power first.
MIDDLE_ABOVE = (
    -39.69683028665376,
    220.9460984245205,
    -275.9285104469687,
    138.357751867269,
    -30.66479806614716,
    2.506628277459239,
)
MIDDLE_BELOW = (-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1.0)
TAIL_ABOVE = (
    -0.007784894002430293,
    -0.3223964580411365,
    -2.400758277161838,
    -2.549732539343734,
    4.374664141464968,
    2.938163982698783,
)
TAIL_BELOW = (0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1.0)


def normal_quantile(p: float) -> float:
    """The number that a standard normal variable stays below with probability p, between 0 and 1."""
    if p > 0.5:
        return -normal_quantile(1 - p)
    if p < 0.02425:
        q = math.sqrt(-2 * math.log(p))
        return _power_sum(TAIL_ABOVE, q) / _power_sum(TAIL_BELOW, q)
    q = p - 0.5
    return q * _power_sum(MIDDLE_ABOVE, q * q) / _power_sum(MIDDLE_BELOW, q * q)


def _power_sum(coefficients: tuple[float, ...], x: float) -> float:
    """A polynomial at x, with coefficients from the highest power down."""
    total = 0.0
    for coefficient in coefficients:
        total = total * x + coefficient
    return total


@step(Role.SIGMOID, keeps=Keeps.OUTPUT)
def sigmoid(x: Array) -> Array:
    """The opening of a gate, element by element: between 0 and 1, same shape."""
    return logistic(x)


def logistic(x: Array) -> Array:
    """1 / (1 + e⁻ˣ), without overflow: same shape."""
    return 0.5 * (1 + np.tanh(0.5 * x))


# Coefficients of the powers of t, highest first.
ERFC_FIT = (
    0.17087277,
    -0.82215223,
    1.48851587,
    -1.13520398,
    0.27886807,
    -0.18628806,
    0.09678418,
    0.37409196,
    1.00002368,
)


def erf(x: Array) -> Array:
    """The error function to 1.2e-7 (Numerical Recipes, 3rd ed., section 6.2.2: erfc by Chebyshev fit): same shape."""
    t = 1 / (1 + 0.5 * np.abs(x))
    fit: float | Array = 0.0
    for coefficient in ERFC_FIT:
        fit = fit * t + coefficient
    return np.sign(x) * (1 - t * np.exp(-x * x - 1.26551223 + t * fit))


ACTIVATIONS: dict[str, Activation] = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_fast": gelu_tanh,
    "silu": silu,
    "swish": silu,
    "relu": relu,
    "relu2": relu_squared,
}
