"""Shared by audio towers: convolutions over a spectrogram."""

from __future__ import annotations

import numpy as np

from ..interface import Array, Weights
from ..steps import Role, Ruling, step


def _padded(x: Array, size: int, before: tuple[int, int] | None) -> Array:
    """A plane with zeros around it, that many of them before its rows and its columns; otherwise as many on both
    sides."""
    above, left = before or (size // 2, size // 2)
    return np.pad(x, ((above, size - 1 - above), (left, size - 1 - left), (0, 0)))


def _plane_rule(x: Array, kernel: Array, stride: int, before: tuple[int, int] | None = None) -> Ruling:
    rows, columns = ((x.shape[axis] + stride - 1) // stride for axis in (0, 1))
    wide, channels, height, width = kernel.shape
    return (rows, columns, wide), rows * columns * wide * channels * height * width


@step(Role.CONVOLVE, rule=_plane_rule)
def convolve_plane(x: Array, kernel: Array, stride: int, before: tuple[int, int] | None = None) -> Array:
    """Mix all channels over moments and bands next to each other, at every `stride`-th of both: [R B I], [O I 3 3] ->
    [R/s B/s O].

    Zeros stand around the plane, and their products count; `before`: that many above and on the left, if not half.
    """
    size = kernel.shape[2]
    padded = _padded(x, size, before)
    total = np.zeros((-(-x.shape[0] // stride), -(-x.shape[1] // stride), kernel.shape[0]), np.float32)
    for i in range(size):
        for j in range(size):
            part = padded[i : i + x.shape[0] : stride, j : j + x.shape[1] : stride]
            total += np.einsum("rbi,oi->rbo", part, kernel[:, :, i, j], optimize=True)
    return total


def _plane_each_rule(x: Array, kernel: Array, stride: int, before: tuple[int, int] | None = None) -> Ruling:
    rows, columns = ((x.shape[axis] + stride - 1) // stride for axis in (0, 1))
    return (rows, columns, x.shape[2]), rows * columns * x.shape[2] * kernel.shape[2] * kernel.shape[3]


@step(Role.CONVOLVE, rule=_plane_each_rule)
def convolve_plane_each(x: Array, kernel: Array, stride: int, before: tuple[int, int] | None = None) -> Array:
    """Mix moments and bands next to each other, each channel by itself: [R B C], [C 1 3 3] -> [R/s B/s C]."""
    size = kernel.shape[2]
    padded = _padded(x, size, before)
    total = np.zeros((-(-x.shape[0] // stride), -(-x.shape[1] // stride), x.shape[2]), np.float32)
    for i in range(size):
        for j in range(size):
            total += padded[i : i + x.shape[0] : stride, j : j + x.shape[1] : stride] * kernel[:, 0, i, j]
    return total


def _planes_rule(x: Array, kernel: Array, stride: int, before: tuple[int, int] | None = None) -> Ruling:
    rows, columns = ((x.shape[axis] + stride - 1) // stride for axis in (1, 2))
    wide, channels, height, width = kernel.shape
    return (x.shape[0], rows, columns, wide), x.shape[0] * rows * columns * wide * channels * height * width


@step(Role.CONVOLVE, rule=_planes_rule)
def convolve_planes(x: Array, kernel: Array, stride: int, before: tuple[int, int] | None = None) -> Array:
    """The same for several planes, each by itself: [C R B I], [O I 3 3] -> [C R/s B/s O]."""
    return np.stack([convolve_plane(x[i], kernel, stride, before) for i in range(x.shape[0])])


def _moments_rule(x: Array, kernel: Array, stride: int, beside: int) -> Ruling:
    wide, channels, width = kernel.shape
    rows = (x.shape[0] + 2 * beside - width) // stride + 1
    return (rows, wide), rows * wide * channels * width


@step(Role.CONVOLVE, rule=_moments_rule)
def convolve_moments(x: Array, kernel: Array, stride: int, beside: int) -> Array:
    """Mix all channels over moments next to each other, at every `stride`-th: [R I], [O I W] -> [R/s O].

    Padding adds empty moments at both ends, whose products count.
    """
    width = kernel.shape[2]
    rows = np.pad(x, ((beside, beside), (0, 0)))
    windows = np.stack([rows[first : first + width] for first in range(0, len(rows) - width + 1, stride)])
    return np.einsum("twi,oiw->to", windows, kernel, optimize=True)


def _depthwise_rule(x: Array, kernel: Array, before: int) -> Ruling:
    return x.shape, x.shape[0] * x.shape[1] * kernel.shape[2]


@step(Role.CONVOLVE, rule=_depthwise_rule)
def convolve_each(x: Array, kernel: Array, before: int) -> Array:
    """Mix moments next to each other, each channel by itself; `before` of them precede: [R D], [D 1 W] -> [R D]."""
    width = kernel.shape[2]
    padded = np.pad(x, ((before, width - 1 - before), (0, 0)))
    return sum(padded[i : i + x.shape[0]] * kernel[:, 0, i] for i in range(width))  # pyright: ignore[reportReturnType]


def batch_norm(x: Array, w: Weights, eps: float) -> Array:
    """Each channel by its mean and spread in training: [… C] -> [… C]."""
    width = x.shape[-1]
    mean, variance = w.buffer("running_mean", width), w.buffer("running_var", width)
    w.buffer("num_batches_tracked", whole=True)
    return (x - mean) / np.sqrt(variance + eps) * w("weight", width) + w("bias", width)
