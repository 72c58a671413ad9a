"""The vision tower of DeepSeek V4.1: a ViT for images of any size, whose vectors are joined nine to one and projected.

Patches know their place by rotary embeddings alone. Blocks at the border are filled up with zeros, a trained vector
ends each row of blocks, and two more stand around the image. Source: mlx-vlm 0.7.10, models/deepseek_v41, but for the
projector's GELU, which is exact in vLLM 0.33 and SGLang 0.5.23; tensor names as published.
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Size, config, derived, fixed, key
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import gelu, linear, rms_norm, silu
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .patches import Patches, axial_rope, blocks, embed_patches, joint_attention, places, two_maps


@config
class DeepSeekV41Vision(Patches):
    """Hyperparameters of DeepSeek V4.1's vision tower, in forward order."""

    # patches
    n_channels: Size = fixed(3)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = fixed(1e-6)
    n_heads: Size = key("num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    theta: Positive = key("rope_theta", 10000.0)
    d_ff: Size = key("intermediate_size")
    activation: str = fixed("silu")
    # projector
    merge: Size = key("downsample_ratio", 3)
    d_text: Size = key(TEXT_WIDTH)
    # processor
    most_tokens: Size = key("max_image_tokens", 1024)
    least_pixels: int = key("min_pixels", 295936)
    widest: Positive | None = key("max_wh_ratio", None)

    def grid(self, height: int, width: int) -> Grid:
        patch = int(self.patch)
        if self.widest is not None and width > height * self.widest:
            width = int(height * self.widest)
        if 0 < width * height < self.least_pixels:
            ratio = (self.least_pixels / (width * height)) ** 0.5
            width, height = int(width * ratio), int(height * ratio)
        rows, columns = math.ceil(height / patch), math.ceil(width / patch)
        if self._tokens(rows, columns) > self.most_tokens:
            rows, columns = self._shrunk(height, width)
        return Grid(rows, columns)

    def _shrunk(self, height: int, width: int) -> tuple[int, int]:
        """The patches of the largest image of these proportions whose tokens stay within the limit."""
        patch, merge, most = int(self.patch), int(self.merge), int(self.most_tokens)
        widest = math.sqrt((most - 2) * width / height + 0.25) - 0.5
        if widest < 1:
            return (most - 2) // 2 * merge, merge
        if widest * height / width < 1:
            return merge, (most - 3) * merge
        block = patch * merge
        scale = min(math.floor(widest) * block / width, math.floor(widest * height / width) * block / height)
        return math.floor(height * scale / patch), math.floor(width * scale / patch)

    def _tokens(self, rows: int, columns: int) -> int:
        """The tokens of this many patches: each row is followed by one more, and two enclose them all."""
        merge = int(self.merge)
        return -(-rows // merge) * (-(-columns // merge) + 1) + 2

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        grid = self.grid(height, width)
        return self._tokens(grid.rows, grid.columns)


@tower("deepseek_v41.vision_config", config=DeepSeekV41Vision)
def forward(w: Weights, x: Array, grid: Grid, c: DeepSeekV41Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    inner = w.at("vision")
    x = embed_patches(x, inner, "patch_embed.proj", c.d_model, (x.shape[1],), bias=True)
    row, column = places(x, grid.rows, grid.columns)
    angles = axial_rope(row, column, c.d_head, c.theta)
    for _, w_layer, _ in inner.layers("blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    x = rms_norm(x, inner, "norm", c.norm_eps)
    for name in ("image_start", "image_end", "image_newline"):
        w(name, c.d_text)
    return [align(x, w.at("aligner"), grid, c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: DeepSeekV41Vision, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    y = rms_norm(x, w, "norm1", c.norm_eps)
    x = x + joint_attention(y, w.at("attn"), c.n_heads, c.d_head, angles, "wqkv", "wo")
    return x + feed_forward(rms_norm(x, w, "norm2", c.norm_eps), w.at("mlp"), c)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: DeepSeekV41Vision) -> Array:
    """Process each patch separately, in a wider space, gated; both halves by one matrix: [P D] -> [P 2F] -> [P D]."""
    gate, up = np.split(linear(x, w, "w1", 2 * c.d_ff), 2, axis=-1)
    return linear(silu(gate) * up, w, "w2", c.d_model)


@step(Role.FEED_FORWARD)
def align(x: Array, w: Weights, grid: Grid, c: DeepSeekV41Vision) -> Array:
    """One vector for the text from each block of patches, element by element: [P D] -> [P/m² D·m²] -> [P/m² O]."""
    m, D = c.merge, c.d_model
    rows, columns = (grid.rows + m - 1) // m, (grid.columns + m - 1) // m
    x = x.reshape(grid.rows, grid.columns, D)
    right = np.zeros((grid.rows, columns * m - grid.columns, D), dtype=np.float32, like=x)
    x = np.concatenate([x, right], axis=1)
    below = np.zeros((rows * m - grid.rows, columns * m, D), dtype=np.float32, like=x)
    x = np.concatenate([x, below], axis=0).reshape(rows * m * (columns * m), D)
    joined = blocks(x, Grid(rows * m, columns * m), m).transpose(0, 2, 1).reshape(rows * columns, D * m * m)
    return two_maps(joined, w, ("w1", "w2"), c.d_text, c.d_text, gelu)
