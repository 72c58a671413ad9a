"""Convolutions over time steps of sound, in both directions."""

from __future__ import annotations

import numpy as np

from ..interface import Array
from ..steps import Role, Ruling, step


def _convolve_rule(x: Array, kernel: Array, bias: Array, stride: int, before: int | None = None) -> Ruling:
    rows, (wide, channels, width) = x.shape[0] // stride, kernel.shape
    return (rows, wide), rows * wide * channels * width


@step(Role.CONVOLVE, rule=_convolve_rule)
def convolve(x: Array, kernel: Array, bias: Array, stride: int, before: int | None = None) -> Array:
    """Mix all channels over a time step and its neighbors, at every `stride`-th: [R I], [O I W], [O] -> [R/stride O].

    W is odd; zeros precede the first time step and follow the last, equally many unless `before` says how many precede
    it, and their products count.
    """
    width = kernel.shape[2]
    first = width // 2 if before is None else before
    rows = np.pad(x, ((first, width - 1 - first), (0, 0)))
    moments = range(0, x.shape[0], stride)
    windows = np.stack([rows[start : start + width].T for start in moments])
    return np.einsum("tiw,oiw->to", windows, kernel, optimize=True) + bias
