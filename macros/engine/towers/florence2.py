"""The vision tower of Florence-2: DaViT, which mixes patches in windows and channels in groups, in four stages.

Each stage begins with a convolution that leaves fewer, wider vectors. The text gets a mean of the vectors of the last
stage, and all of them. Source: transformers 5.24, modeling_florence2.py (arXiv 2204.03645, 2311.06242).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..architectures.config import Positive, Size, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import attend, layer_norm, linear
from ..steps import Role, step
from ..trace import Trace
from . import Grid, TowerConfig, tower
from .patches import named_activation, two_maps
from .sounds import convolve_plane, convolve_plane_each

SIDE = 768  # pixels of an image's sides: the processor's
NORM_EPS = 1e-5


@config
class Florence2Vision(TowerConfig):
    """Hyperparameters of Florence-2's vision tower, in forward order. Lists have a number for each stage."""

    n_channels: Size = key("in_channels", 3)
    depths: list[int] = key("depths", lambda c: [1, 1, 9, 1])
    patches: list[int] = key("patch_size", lambda c: [7, 3, 3, 3])
    strides: list[int] = key("patch_stride", lambda c: [4, 2, 2, 2])
    paddings: list[int] = key("patch_padding", lambda c: [3, 1, 1, 1])
    normed_before: list[bool] = key("patch_prenorm", lambda c: [False, True, True, True])
    widths: list[int] = key("embed_dim", lambda c: [128, 256, 512, 1024])
    heads: list[int] = key("num_heads", lambda c: [4, 8, 16, 32])
    groups: list[int] = key("num_groups", lambda c: [4, 8, 16, 32])
    window: Size = key("window_size", 12)
    mlp_ratio: Positive = key("mlp_ratio", 4.0)
    bias: bool = key("qkv_bias", True)
    activation: str = key("activation_function", "gelu")
    # projector
    n_places: Size = key("max_position_embeddings", 50)
    n_moments: Size = key("max_temporal_embeddings", 100)
    d_last: Size = derived(lambda c: c.widths[-1] if c.widths else 1)
    d_text: Size = key("projection_dim", 1024)
    norm_eps: Positive = fixed(NORM_EPS)

    ignored = frozenset({"drop_path_rate"})

    def check(self) -> None:
        named_activation(self.activation)
        lists: dict[str, list[Any]] = {
            "depths": self.depths,
            "patch_size": self.patches,
            "patch_stride": self.strides,
            "patch_padding": self.paddings,
            "patch_prenorm": self.normed_before,
            "embed_dim": self.widths,
            "num_heads": self.heads,
            "num_groups": self.groups,
        }
        for name, numbers in lists.items():
            if not numbers or len(numbers) != len(self.depths) or len(numbers) > 8:
                raise Problem(f"{name} = {numbers}", "give a number for each of up to eight stages")
            if name not in ("patch_prenorm", "patch_padding") and not all(0 < n < 100_000 for n in numbers):
                raise Problem(f"{name} = {numbers}", "give positive numbers")
        for width, heads, groups in zip(self.widths, self.heads, self.groups):
            if width % heads or width % groups:
                raise Problem(f"embed_dim has {width}", "num_heads and num_groups must divide it")
        if any(patch % 2 == 0 or padding != patch // 2 for patch, padding in zip(self.patches, self.paddings)):
            raise Problem(f"patch_padding = {self.paddings}", "give half of patch_size, which must be odd")

    def grid(self, height: int, width: int) -> Grid:
        side = -(-SIDE // self.strides[0])
        return Grid(side, side)

    def declared(self, grid: Grid, run: Trace) -> Grid:
        if grid.rows != grid.columns:
            return super().declared(grid, run)
        side = run.declare("n_patch_rows", grid.rows)
        return Grid(side, side, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows * self.strides[0], grid.columns * self.strides[0], self.n_channels


@tower("florence2.vision_config", config=Florence2Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Florence2Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [H W 3] -> [1 + P D]."""
    tower, before = w.at("model.vision_tower"), 0
    for stage, depth in enumerate(c.depths):
        x = merged(x, tower.at(f"convs.{stage}"), c, stage)
        name = f"stage {stage + 1}"
        for _, w_layer, _ in tower.layers(f"blocks.{stage}", [name] * depth, cache, name, before):
            x = layer(x, w_layer, c, stage)
        before += depth
    return [project(x, w.at("model.multi_modal_projector"), c)]


@step(Role.CONV_STEM)
def merged(x: Array, w: Weights, c: Florence2Vision, stage: int) -> Array:
    """Fewer vectors of a plane, by a convolution, normalized before or after: [R C I] -> [R/s C/s O]."""
    width, size = c.widths[stage], c.patches[stage]
    if c.normed_before[stage]:
        x = layer_norm(x, w, "norm", c.norm_eps)
    x = convolve_plane(x, w("conv.weight", width, x.shape[2], size, size), c.strides[stage]) + w("conv.bias", width)
    return x if c.normed_before[stage] else layer_norm(x, w, "norm", c.norm_eps)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Florence2Vision, stage: int) -> Array:
    """One block that mixes patches, and one that mixes channels: [R C D] -> [R C D]."""
    for mixer, name in ((windows, "spatial_block"), (channels, "channel_block")):
        block = w.at(name)
        x = x + around(x, block, "conv1")
        x = x + mixer(layer_norm(x, block, "norm1", c.norm_eps), block, c, stage)
        x = x + around(x, block, "conv2")
        y = layer_norm(x, block, "norm2", c.norm_eps)
        wide, act = int(c.widths[stage] * c.mlp_ratio), named_activation(c.activation)
        flat = y.reshape(y.shape[0] * y.shape[1], y.shape[2])
        flat = two_maps(flat, block.at("ffn"), ("fc1", "fc2"), wide, c.widths[stage], act)
        x = x + flat.reshape(*x.shape)
    return x


def around(x: Array, w: Weights, name: str) -> Array:
    """Each channel convolved over neighboring patches: [R C D] -> [R C D]."""
    width = x.shape[2]
    return convolve_plane_each(x, w(f"{name}.weight", width, 1, 3, 3), 1) + w(f"{name}.bias", width)


@step(Role.ATTENTION)
def windows(x: Array, w: Weights, c: Florence2Vision, stage: int) -> Array:
    """Let each patch gather information from those of its window; empty ones fill windows up: [R C D] -> [R C D]."""
    R, C, D = x.shape
    N, side = c.heads[stage], c.window
    down, right = (R + side - 1) // side, (C + side - 1) // side
    x = np.pad(x, ((0, down * side - R), (0, right * side - C), (0, 0)))
    x = x.reshape(down, side, right, side, D).transpose(0, 2, 1, 3, 4).reshape(down * right * side * side, D)
    # windows are treated as additional heads
    q, k, v = (
        part.reshape(down * right, side * side, N, D // N)
        .transpose(1, 0, 2, 3)
        .reshape(side * side, down * right * N, D // N)
        for part in np.split(linear(x, w, "window_attn.qkv", 3 * D, bias=c.bias), 3, axis=-1)
    )
    mixed = attend(q, k, v, None, (D // N) ** -0.5).reshape(side * side, down * right, D).swapaxes(0, 1)
    x = linear(mixed.reshape(down * right * side * side, D), w, "window_attn.proj", D, bias=True)
    x = x.reshape(down, right, side, side, D).transpose(0, 2, 1, 3, 4)
    return x.reshape(down * side, right * side, D)[:R, :C]


@step(Role.ATTENTION)
def channels(x: Array, w: Weights, c: Florence2Vision, stage: int) -> Array:
    """Let each channel gather information from those of its group: [R C D] -> [R C D]."""
    R, C, D = x.shape
    G = c.groups[stage]
    parts = np.split(linear(x.reshape(R * C, D), w, "channel_attn.qkv", 3 * D, bias=c.bias), 3, axis=-1)
    q, k, v = (part.reshape(R * C, G, D // G).transpose(2, 1, 0) for part in parts)
    mixed = attend(q, k, v, None, int(R * C) ** -0.5).reshape(D // G, G, R * C).transpose(2, 1, 0)
    return linear(mixed.reshape(R * C, D), w, "channel_attn.proj", D, bias=True).reshape(R, C, D)


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, c: Florence2Vision) -> Array:
    """The mean of the vectors with their positions, and all of them, mapped: [R C D] -> [1 + P O]."""
    R, C, D = x.shape
    half = D // 2
    rows = w("image_position_embed.row_embeddings.weight", c.n_places, half)[:R]
    columns = w("image_position_embed.column_embeddings.weight", c.n_places, D - half)[:C]
    pair = np.broadcast_to(columns[None], (R, C, D - half)), np.broadcast_to(rows[:, None], (R, C, half))
    x = (x + np.concatenate(pair, axis=-1)).reshape(R * C, D)
    x = x + w.buffer("visual_temporal_embed.pos_idx_to_embed", c.n_moments, D)[:1]
    x = np.concatenate([x.mean(axis=0)[None, :], x], axis=0)
    return layer_norm(linear(x, w, "image_projection", c.d_text), w, "image_proj_norm", c.norm_eps)
