"""VQGAN's encoder, which two towers have: convolutions at fewer and fewer places, then the nearest of a codebook.

A vector's number in the codebook is a token of the text's vocabulary. Source: transformers 5.23, modeling_chameleon.py
and modeling_emu3.py (arXiv 2012.09841).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Size, config, fixed, key
from ..errors import Problem
from ..interface import Array, Weights
from ..ops import attend, sigmoid
from ..steps import Keeps, Role, Ruling, step
from ..trace import Trace
from . import Grid, TowerConfig
from .sounds import convolve_planes

GROUPS = 32  # of channels, each of which is normalized by itself


@config
class Vqgan(TowerConfig):
    """Hyperparameters of VQGAN's encoder, in forward order."""

    n_channels: Size = key("in_channels", 3)
    d_base: Size = key("base_channels", 128)
    multipliers: list[int] = key("channel_multiplier", lambda c: [1, 1, 2, 2, 4])
    n_blocks: Size = key("num_res_blocks", 2)
    norm_eps: Positive = fixed(1e-6)
    d_latent: Size = key("latent_channels", 256)
    double_latent: Literal[False] = key("double_latent", False)
    d_code: Size = key("embed_dim", 256)
    n_codes: Size = key("num_embeddings", 8192)

    def check(self) -> None:
        if not 1 <= len(self.multipliers) <= 8 or not all(0 < n <= 1000 for n in self.multipliers):
            raise Problem(f"channel_multiplier = {self.multipliers}", "give positive numbers for up to eight levels")
        if any(int(self.d_base) * n % GROUPS for n in (1, *self.multipliers)):
            raise Problem(f"base_channels = {int(self.d_base)}", f"{GROUPS} must divide the channels of each level")

    @property
    def side(self) -> int:
        """The pixels of a token's side."""
        return 2 ** (len(self.multipliers) - 1)

    def widths(self, level: int) -> tuple[int, int]:
        """The channels before and after the blocks of a level."""
        before, behind = (1, *self.multipliers)[level : level + 2]
        return self.d_base * before, self.d_base * behind

    def attends(self, level: int) -> bool:
        """Whether attention follows each block of a level."""
        raise NotImplementedError

    def declared(self, grid: Grid, run: Trace) -> Grid:
        if grid.rows == grid.columns:
            side = run.declare("n_token_rows", grid.rows)
            return Grid(side, side, grid.count)
        rows, columns = run.declare("n_token_rows", grid.rows), run.declare("n_token_columns", grid.columns)
        return Grid(rows, columns, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows * self.side, grid.columns * self.side, self.n_channels


def convolved(
    x: Array, w: Weights, name: str, width: int, stride: int = 1, before: tuple[int, int] | None = None
) -> Array:
    """A convolution over places next to each other, with a bias: [F R C I] -> [F R/s C/s O]."""
    return convolve_planes(x, w(f"{name}.weight", width, x.shape[3], 3, 3), stride, before) + w(f"{name}.bias", width)


def mapped(x: Array, w: Weights, name: str, width: int) -> Array:
    """A linear map of each place, stored as a convolution: [F R C I] -> [F R C O]."""
    F, R, C, I = x.shape  # noqa: E741
    kernel = w(f"{name}.weight", width, I, 1, 1).reshape(width, I)
    y = np.einsum("pi,oi->po", x.reshape(F * R * C, I), kernel, optimize=True) + w(f"{name}.bias", width)
    return y.reshape(F, R, C, width)


@step(Role.LAYER_NORM)
def group_norm(x: Array, w: Weights, name: str, eps: float) -> Array:
    """Give each group of channels of an image mean 0 and variance 1, then scale and shift: [F R C D] -> [F R C D]."""
    F, R, C, D = x.shape
    x = x.reshape(F, R * C, GROUPS, D // GROUPS)
    x = x - x.mean(axis=(1, 3), keepdims=True)
    x = x / np.sqrt((x * x).mean(axis=(1, 3), keepdims=True) + eps)
    return x.reshape(F, R, C, D) * w(f"{name}.weight", D) + w(f"{name}.bias", D)


def swish(x: Array) -> Array:
    """x · sigmoid(x)."""
    return x * sigmoid(x)


@step(Role.LAYER)
def block(x: Array, w: Weights, c: Vqgan, width: int) -> Array:
    """Two convolutions over places next to each other: [F R C I] -> [F R C O]."""
    y = convolved(swish(group_norm(x, w, "norm1", c.norm_eps)), w, "conv1", width)
    y = convolved(swish(group_norm(y, w, "norm2", c.norm_eps)), w, "conv2", width)
    return (x if x.shape[3] == width else mapped(x, w, "nin_shortcut", width)) + y


@step(Role.CONV_STEM)
def halved(x: Array, w: Weights) -> Array:
    """A vector of each four places, by a convolution that reaches beyond them: [F R C D] -> [F R/2 C/2 D]."""
    return convolved(x, w, "conv", x.shape[3], 2, (0, 0))


def in_frames(q: Array, k: Array, v: Array, n: int) -> Array:
    """Attention among the places of each frame: [F P D], [F P D], [F P D] -> [F P D]."""
    F, P, D = q.shape
    # frames are treated as additional heads
    q, k, v = (part.reshape(F, P, n, D // n).transpose(1, 0, 2, 3).reshape(P, F * n, D // n) for part in (q, k, v))
    mixed = attend(q, k, v, None, (D // n) ** -0.5)
    return mixed.reshape(P, F, D).swapaxes(0, 1)


def _nearest_rule(x: Array, table: Array) -> Ruling:
    return (x.shape[0],), x.shape[0] * table.shape[0] * table.shape[1]


@step(Role.TOP_K, rule=_nearest_rule, keeps=Keeps.NOTHING)
def nearest(x: Array, table: Array) -> Array:
    """The numbers of the rows that are nearest to vectors: [M E], [V E] -> [M]."""
    return np.argmin((table * table).sum(axis=-1)[None, :] - 2 * (x @ table.T), axis=-1)


@step(Role.EMBED)
def coded(x: Array, w: Weights, c: Vqgan) -> Array:
    """The nearest vectors of the codebook: [F R C E] -> [M E]."""
    table = w("quantize.embedding.weight", c.n_codes, c.d_code)
    flat = x.reshape(x.shape[0] * x.shape[1] * x.shape[2], c.d_code)
    return np.take(table, nearest(flat, table), axis=0)
