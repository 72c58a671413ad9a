"""Donut's and Nougat's Swin: attention within windows, which are shifted in every second layer.

Each stage but the last ends by merging patches: a quarter as many vectors, twice as wide. Source: transformers 5.24,
modeling_donut_swin.py (arXiv 2103.14030, 2111.15664).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Raw, Size, config, derived, fixed, key
from ..errors import Problem, shorten
from ..interface import Array, KVCache, Weights
from ..ops import attend, layer_norm, linear
from ..steps import Keeps, Role, step
from ..trace import Trace
from . import Grid, tower
from .encoders import Encoder, seen
from .patches import embed_patches, named_activation, one_side, two_maps

APART = -100.0  # added to the score of patches that only the shift brought into one window


@config
class DonutSwin(Encoder):
    """Hyperparameters of Donut's Swin, in forward order. Lists have a number for each stage."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_sides: list[int] = key("image_size", lambda c: [224, 224])
    patch: Size = key("patch_size", 4)
    d_first: Size = key("embed_dim", 96)
    norm_eps: Positive = fixed(1e-5)  # of those between the stages
    # stages
    depths: list[int] = key("depths", lambda c: [2, 2, 6, 2])
    layer_eps: Positive = key("layer_norm_eps", 1e-5)
    heads: list[int] = key("num_heads", lambda c: [3, 6, 12, 24])
    window: Size = key("window_size", 7)
    bias: bool = key("qkv_bias", True)
    mlp_ratio: Positive = key("mlp_ratio", 4.0)
    activation: str = key("hidden_act", "gelu")
    d_model: Size = derived(lambda c: c.d_first * 2 ** (min(len(c.depths), 9) - 1))  # of the last stage
    placed: Literal[False] = key("use_absolute_embeddings", False)

    ignored = Encoder.ignored | frozenset(
        """attention_probs_dropout_prob drop_path_rate encoder_stride hidden_size num_layers num_hidden_layers
        out_features out_indices path_norm stage_names use_2d_embeddings""".split()
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        one_side(raw, "patch_size")
        if type(side := raw.get("image_size")) is int:
            raw["image_size"] = [side, side]
        return raw

    def check(self) -> None:
        named_activation(self.activation)
        self.must_be_seen(self.d_model)
        if len(self.image_sides) != 2 or not all(0 < side < 1_000_000 for side in self.image_sides):
            raise Problem(f"image_size = {shorten(self.image_sides)}", "give a side, or height and width")
        for name, numbers in (("depths", self.depths), ("num_heads", self.heads)):
            if not 0 < len(numbers) <= 8 or len(numbers) != len(self.depths):
                raise Problem(f"{name} = {shorten(numbers)}", "give a number for each of up to eight stages")
            if not all(0 < n <= 1000 for n in numbers):
                raise Problem(f"{name} = {shorten(numbers)}", "give positive numbers, of at most 1,000")
        for stage, heads in enumerate(self.heads):
            if self.width(stage) % heads:
                raise Problem(f"num_heads = {shorten(self.heads)}", f"{heads} must divide {int(self.width(stage))}")
        # transformers compares the sides of the last stages' planes with a window, and cannot fill a smaller one.
        rows, columns = self._patches()
        for _ in self.depths:
            if min(rows, columns) < self.window:
                raise Problem(
                    f"window_size = {int(self.window)} and a plane of {rows} × {columns} vectors",
                    "give a window that no stage's plane is smaller than",
                )
            rows, columns = (rows + 1) // 2, (columns + 1) // 2

    def width(self, stage: int) -> int:
        """The width of a stage's vectors."""
        return self.d_first * 2**stage

    def _patches(self) -> tuple[int, int]:
        rows, columns = (-(-side // int(self.patch)) for side in self.image_sides)
        return rows, columns

    def grid(self, height: int, width: int) -> Grid:
        return Grid(*self._patches())

    def declared(self, grid: Grid, run: Trace) -> Grid:
        rows = run.declare("n_patch_rows", grid.rows)
        columns = rows if grid.rows == grid.columns else run.declare("n_patch_columns", grid.columns)
        return Grid(rows, columns, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows * grid.columns, self.n_channels * self.patch * self.patch


@tower("vision-encoder-decoder.encoder", config=DonutSwin, of_type="donut-swin")
def forward(w: Weights, x: Array, grid: Grid, c: DonutSwin, cache: KVCache) -> list[Array]:
    """The vectors of an image for the decoder: [P I] -> [M D]."""
    tower, before = w.at("encoder"), 0
    shape = c.n_channels, c.patch, c.patch
    x = embed_patches(x, tower, "embeddings.patch_embeddings.projection", c.d_first, shape, bias=True)
    x = layer_norm(x, tower, "embeddings.norm", c.norm_eps).reshape(grid.rows, grid.columns, c.d_first)
    for stage, depth in enumerate(c.depths):
        part, name = tower.at(f"encoder.layers.{stage}"), f"stage {stage + 1}"
        is_cut = min(int(x.shape[0]), int(x.shape[1])) > c.window
        kinds = [f"{name}, shifted" if i % 2 and is_cut else name for i in range(depth)]
        for kind, w_layer, _ in part.layers("blocks", kinds, cache, name, before):
            x = layer(x, w_layer, c, stage, kind != name)
        before += depth
        if stage + 1 < len(c.depths):
            x = merged(x, part.at("downsample"), c)
    return [seen(x.reshape(x.shape[0] * x.shape[1], c.d_model), w, c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: DonutSwin, stage: int, is_shifted: bool) -> Array:
    """One transformer block, in which each patch attends within its window: [R C D] -> [R C D]."""
    x = x + attention(layer_norm(x, w, "layernorm_before", c.layer_eps), w.at("attention"), c, stage, is_shifted)
    R, C, D = x.shape
    y = layer_norm(x, w, "layernorm_after", c.layer_eps).reshape(R * C, D)
    names, wide = ("intermediate.dense", "output.dense"), int(c.mlp_ratio * c.width(stage))
    return x + two_maps(y, w, names, wide, D, named_activation(c.activation)).reshape(R, C, D)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: DonutSwin, stage: int, is_shifted: bool) -> Array:
    """Let each patch gather information from those of its window; empty ones fill windows up: [R C D] -> [R C D]."""
    R, C, D = x.shape
    N, side = c.heads[stage], c.window
    down, right = (R + side - 1) // side, (C + side - 1) // side
    x = np.pad(x, ((0, down * side - R), (0, right * side - C), (0, 0)))
    by = side // 2 if is_shifted else 0
    x = cut(turned(x, by), side).reshape(down * right * side * side, D)
    # windows are treated as additional heads
    q, k, v = (
        linear(x, w, f"self.{name}", D, bias=c.bias)
        .reshape(down * right, side * side, N, D // N)
        .transpose(1, 0, 2, 3)
        .reshape(side * side, down * right * N, D // N)
        for name in ("query", "key", "value")
    )
    bias = by_place(w.at("self"), N, side)[None]
    if is_shifted:
        bias = bias + apart(down * side, right * side, side, by, x)
    else:
        bias = np.broadcast_to(bias, (down * right, N, side * side, side * side))
    bias = bias.reshape(down * right * N, side * side, side * side)
    mixed = attend(q, k, v, None, (D // N) ** -0.5, bias).reshape(side * side, down * right, D).swapaxes(0, 1)
    x = linear(mixed.reshape(down * right * side * side, D), w, "output.dense", D, bias=True)
    x = x.reshape(down, right, side, side, D).transpose(0, 2, 1, 3, 4).reshape(down * side, right * side, D)
    return turned(x, -by)[:R, :C]


def cut(x: Array, side: int) -> Array:
    """A plane cut into windows: [R C …] -> [R/s C/s s s …]."""
    down, right = x.shape[0] // side, x.shape[1] // side
    return x.reshape(down, side, right, side, x.shape[2]).transpose(0, 2, 1, 3, 4)


def turned(x: Array, by: int) -> Array:
    """A plane rolled so that its first rows and columns come last, or its last ones first: same shape."""
    if by == 0:
        return x
    x = np.concatenate([x[by:], x[:by]], axis=0)
    return np.concatenate([x[:, by:], x[:, :by]], axis=1)


@step(Role.RELATIVE_LOGITS)
def by_place(w: Weights, n: int, side: int) -> Array:
    """Each head's addition to the scores of a window, by how far apart two places are: [N s² s²]."""
    number, reach = side * side, 2 * side - 1
    table = w("relative_position_bias_table", reach * reach, n)
    which = w.buffer("relative_position_index", number, number, whole=True)
    return np.take(table, which.reshape(number * number), axis=0).reshape(number, number, n).transpose(2, 0, 1)


@step(Role.CAUSAL_MASK, keeps=Keeps.NOTHING)
def apart(rows: int, columns: int, side: int, by: int, like: Array) -> Array:
    """The mask of each window: patches that only the shift brought together do not see each other: [W 1 s² s²]."""
    down, across = (
        (at >= size - side) * 1.0 + (at >= size - by) * 1.0
        for at, size in ((np.arange(rows, like=like), rows), (np.arange(columns, like=like), columns))
    )
    regions = cut((down[:, None] * 3.0 + across[None, :])[:, :, None], side)
    regions = regions.reshape((rows // side) * (columns // side), side * side)
    return np.where(regions[:, None, :] == regions[:, :, None], 0.0, APART).astype(np.float32)[:, None]


@step(Role.CONV_STEM)
def merged(x: Array, w: Weights, c: DonutSwin) -> Array:
    """One vector of four next to each other, of twice the width; empty ones fill up: [R C D] -> [R/2 C/2 2D]."""
    R, C, D = x.shape
    down, right = (R + 1) // 2, (C + 1) // 2
    x = np.pad(x, ((0, down * 2 - R), (0, right * 2 - C), (0, 0)))
    x = x.reshape(down, 2, right, 2, D).transpose(0, 2, 3, 1, 4).reshape(down * right, 4 * D)
    return linear(layer_norm(x, w, "norm", c.norm_eps), w, "reduction", 2 * D).reshape(down, right, 2 * D)
