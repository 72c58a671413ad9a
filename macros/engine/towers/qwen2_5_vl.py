"""The vision tower of Qwen2.5-VL: a ViT for images of any size, with windows in most layers, merged four to one.

In layers with windows a patch sees those of its window alone, a square of whole blocks that is cut off at the right and
below. A patch has two frames of a film; an image is shown twice. Source: transformers 5.24, modeling_qwen2_5_vl.py
(arXiv 2502.13923).
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Raw, Size, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import apply_rope, attend, gelu, heads, linear, rms_norm
from ..steps import Role, Ruling, step
from . import Grid, tower
from .patches import (
    AnySize,
    axial_rope,
    embed_patches,
    gated_maps,
    named_activation,
    places,
    two_maps,
)


@config
class Qwen25Vision(AnySize):
    """Hyperparameters of Qwen2.5-VL's vision tower, in forward order."""

    # patches
    n_channels: Size = key("in_channels", 3, also=("in_chans",))
    n_frames: Size = key("temporal_patch_size", 2)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("depth")
    norm_eps: Positive = fixed(1e-6)
    n_heads: Size = key("num_heads")
    n_kv_heads: Size = derived(lambda c: c.n_heads)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    is_joint: bool = fixed(True)  # one matrix for queries, keys and values
    theta: Positive = fixed(10000.0)
    window: Size = key("window_size", 112)  # pixels of a side
    full: list[int] = key("fullatt_block_indexes", lambda c: [7, 15, 23, 31])
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "silu")
    # merger
    merge: Size = key("spatial_merge_size", 2)
    d_text: Size = key("out_hidden_size")

    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    ignored = frozenset({"spatial_patch_size", "tokens_per_second"})

    def check(self) -> None:
        super().check()
        if self.window_blocks < 1:
            raise Problem(f"window_size = {int(self.window)} pixels", "a window holds at least one block of patches")

    @property
    def window_blocks(self) -> int:
        """The blocks of patches in a row of a window."""
        return int(self.window) // int(self.merge) // int(self.patch)

    @property
    def kinds(self) -> list[str]:
        """Whether each layer sees all patches or a window."""
        return ["full" if i in self.full else "window" for i in range(self.n_layers)]


@tower("qwen2_5_vl.vision_config", config=Qwen25Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Qwen25Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    return [read(w.at("model.visual"), x, grid, c, cache)]


def read(tower: Weights, x: Array, grid: Grid, c: Qwen25Vision, cache: KVCache) -> Array:
    """The same below the tower's prefix: [P I] -> [P/m² D]."""
    row, column = places(x, grid.rows, grid.columns, c.merge)
    kernel = c.n_channels, c.n_frames, c.patch, c.patch
    x = embed_patches(x, tower, "patch_embed.proj", c.d_model, kernel, bias=False)
    angles = axial_rope(row, column, c.d_head, c.theta)
    for kind, w_layer, _ in tower.layers("blocks", c.kinds, cache):
        x = layer(x, w_layer, c, angles, grid, c.window_blocks * int(c.merge) if kind == "window" else None)
    return merger(x, tower.at("merger"), c)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Qwen25Vision, angles: RopeTable, grid: Grid, side: int | None) -> Array:
    """One transformer block: [P D] -> [P D]."""
    x = x + attention(rms_norm(x, w, "norm1", c.norm_eps), w.at("attn"), c, angles, grid, side)
    y = rms_norm(x, w, "norm2", c.norm_eps)
    return x + gated_maps(y, w.at("mlp"), c.d_ff, c.d_model, named_activation(c.activation), bias=True)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Qwen25Vision, angles: RopeTable, grid: Grid, side: int | None) -> Array:
    """Let each patch gather information from all patches, or from those of its window: [P D] -> [P D]."""
    wide, narrow = c.n_heads * c.d_head, c.n_kv_heads * c.d_head
    if c.is_joint:
        q, k, v = np.split(linear(x, w, "qkv", wide + 2 * narrow, bias=True), [wide, wide + narrow], axis=-1)
    else:
        q, k, v = (linear(x, w, name, c.d_model, bias=True) for name in ("q", "k", "v"))
    q, k, v = heads(q, c.n_heads, c.d_head), heads(k, c.n_kv_heads, c.d_head), heads(v, c.n_kv_heads, c.d_head)
    q, k = apply_rope(q, angles), apply_rope(k, angles)
    scale = c.d_head**-0.5
    mixed = attend(q, k, v, None, scale) if side is None else windowed(q, k, v, grid, c.merge, side, scale)
    return linear(mixed, w, "proj", c.d_model, bias=True)


def _windowed_rule(q: Array, k: Array, v: Array, grid: Grid, merge: int, side: int, scale: float) -> Ruling:
    pairs = 1
    for size in (grid.rows, grid.columns):
        pairs *= int(size) // side * side**2 + (int(size) % side) ** 2
    return (q.shape[0], q.shape[1] * q.shape[2]), 2 * pairs * q.shape[1] * q.shape[2]


@step(Role.WINDOW_MASK, rule=_windowed_rule)
def windowed(q: Array, k: Array, v: Array, grid: Grid, merge: int, side: int, scale: float) -> Array:
    """Attention within windows of `side` × `side` patches: [P N H], [P K H], [P K H] -> [P N·H]."""
    row, column = places(q, grid.rows, grid.columns, merge)
    window = row // side * grid.columns + column // side
    mixed = np.zeros((q.shape[0], q.shape[1] * q.shape[2]), q.dtype)
    for number in np.unique(window):
        here = window == number
        mixed[here] = attend(q[here], k[here], v[here], None, scale)
    return mixed


@step(Role.FEED_FORWARD)
def merger(x: Array, w: Weights, c: Qwen25Vision) -> Array:
    """One vector for the text model per block of patches: [P D] -> [P/m² m²·D] -> [P/m² O]."""
    x = rms_norm(x, w, "ln_q", c.norm_eps)
    block = c.merge * c.merge
    wide = block * c.d_model
    return two_maps(x.reshape(x.shape[0] // block, wide), w, ("mlp.0", "mlp.2"), wide, c.d_text, gelu)
