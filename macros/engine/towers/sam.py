"""SAM's ViT, which several towers have: windows in most layers, and scores by distance in rows and in columns.

Source: transformers 5.23, modeling_got_ocr2.py and modeling_sam.py (arXiv 2304.02643).
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Size, config, derived, fixed, key
from ..interface import Array, KVCache, Weights
from ..ops import attend, layer_norm, linear
from ..steps import Role, step
from . import Grid
from .patches import OneSize, averaged_positions, embed_patches, named_activation, places, taps, two_maps
from .sounds import convolve_plane


@config
class SamVision(OneSize):
    """Hyperparameters of SAM's vision model, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 1024)
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 768)
    placed: bool = key("use_abs_pos", True)
    # layers
    n_layers: Size = key("num_hidden_layers", 12)
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads", 12)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    bias: bool = key("qkv_bias", True)
    by_distance: bool = key("use_rel_pos", True)
    window: Size = key("window_size", 14)  # patches of a side
    full: list[int] = key("global_attn_indexes", lambda c: [2, 5, 8, 11])
    d_ff: Size = key("mlp_dim", 3072)
    activation: str = key("hidden_act", "gelu")
    # neck
    d_neck: Size = key("output_channels", 256)
    neck_eps: Positive = fixed(1e-6)

    @property
    def kinds(self) -> list[str]:
        """Whether each layer sees all patches or a window."""
        return ["full" if i in self.full else "window" for i in range(self.n_layers)]


def encode(w: Weights, x: Array, grid: Grid, c: SamVision, cache: KVCache) -> Array:
    """SAM's vectors of an image, one for each patch, in rows and columns: [P I] -> [R C N]."""
    return neck(layers(w, x, grid, c, cache)[-1], w.at("neck"), c)


def layers(w: Weights, x: Array, grid: Grid, c: SamVision, cache: KVCache) -> list[Array]:
    """SAM's vectors before its neck, in rows and columns: those after a layer whose output is kept, then the last:
    [P I] -> [R C D].
    """
    x = embed_patches(x, w, "patch_embed.projection", c.d_model, (c.n_channels, c.patch, c.patch), bias=True)
    if c.placed:
        side = c.patch_rows
        table = w("pos_embed", 1, side, side, c.d_model).reshape(side * side, c.d_model)
        if int(grid.rows) == int(side):
            x = x + table
        else:
            row, column = places(x, grid.rows, grid.columns)
            x = x + averaged_positions(row, column, table, int(side), grid, cubic=True)
    kept: list[Array] = []
    for kind, w_layer, _ in w.layers("layers", c.kinds, cache):
        x = layer(x, w_layer, c, grid, kind == "window")
        kept += [x] if kind == "kept" else []
    return [x.reshape(grid.rows, grid.columns, c.d_model) for x in (*kept, x)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: SamVision, grid: Grid, windowed: bool) -> Array:
    """One transformer block: [P D] -> [P D]."""
    x = x + attention(layer_norm(x, w, "layer_norm1", c.norm_eps), w.at("attn"), c, grid, windowed)
    y = layer_norm(x, w, "layer_norm2", c.norm_eps)
    return x + two_maps(y, w.at("mlp"), ("lin1", "lin2"), c.d_ff, c.d_model, named_activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: SamVision, grid: Grid, windowed: bool) -> Array:
    """Let each patch gather information from all patches, or those of its window; empty ones fill windows up: [P D] ->
    [P D]."""
    R, C, N, H = grid.rows, grid.columns, c.n_heads, c.d_head
    side = c.window if windowed else R
    down, right = (R + side - 1) // side, (C + side - 1) // side
    if windowed:
        x = np.pad(x.reshape(R, C, c.d_model), ((0, down * side - R), (0, right * side - C), (0, 0)))
        x = x.reshape(down, side, right, side, c.d_model).transpose(0, 2, 1, 3, 4)
        x = x.reshape(down * right * side * side, c.d_model)
    # windows are treated as additional heads
    parts = np.split(linear(x, w, "qkv", 3 * c.d_model, bias=c.bias), 3, axis=-1)
    q, k, v = (
        part.reshape(down * right, side * side, N, H).transpose(1, 0, 2, 3).reshape(side * side, down * right * N, H)
        for part in parts
    )
    bias = distance_scores(q, w, side, side if windowed else c.patch_rows) if c.by_distance else None
    mixed = attend(q, k, v, None, H**-0.5, bias)
    x = mixed.reshape(side * side, down * right, c.d_model).swapaxes(0, 1)
    x = linear(x.reshape(down * right * side * side, c.d_model), w, "proj", c.d_model, bias=True)
    if windowed:
        x = x.reshape(down, right, side, side, c.d_model).transpose(0, 2, 1, 3, 4)
        x = x.reshape(down * side, right * side, c.d_model)[:R, :C].reshape(R * C, c.d_model)
    return x


@step(Role.RELATIVE_LOGITS)
def distance_scores(q: Array, w: Weights, side: int, usual: int) -> Array:
    """The relative position bias of each head, from distances in rows and columns: [s² N H] -> [N s² s²].

    The tables are of an image of the `usual` side, and are stretched for any other.
    """
    heads, width = q.shape[1], q.shape[2]
    q = q.reshape(side, side, heads, width)
    at = np.arange(side, like=q)
    distance = at[:, None] - at[None, :] + (side - 1)
    down, right = (
        np.take(stretched(w(name, 2 * usual - 1, width), 2 * int(side) - 1), distance, axis=0)
        for name in ("rel_pos_h", "rel_pos_w")
    )
    by_row = np.einsum("rcnh,rkh->nrck", q, down, optimize=True)
    by_column = np.einsum("rcnh,ckh->nrck", q, right, optimize=True)
    return (by_row[:, :, :, :, None] + by_column[:, :, :, None, :]).reshape(heads, side * side, side * side)


def stretched(table: Array, size: int) -> Array:
    """A table by distance, interpolated to another number of rows: [A H] -> [B H]."""
    if int(table.shape[0]) == size:
        return table
    found = taps(np.arange(size, like=table), int(table.shape[0]), size, to_corners=False, cubic=False)
    (low, low_share), (high, high_share) = found
    return np.take(table, low, axis=0) * low_share[:, None] + np.take(table, high, axis=0) * high_share[:, None]


@step(Role.CONV_STEM)
def neck(x: Array, w: Weights, c: SamVision) -> Array:
    """The neck: a projection to fewer channels, then a convolution: [R C D] -> [R C N]."""
    R, C = x.shape[:2]
    kernel = w("conv1.weight", c.d_neck, c.d_model, 1, 1).reshape(c.d_neck, c.d_model)
    x = np.einsum("pi,oi->po", x.reshape(R * C, c.d_model), kernel, optimize=True).reshape(R, C, c.d_neck)
    x = layer_norm(x, w, "layer_norm1", c.neck_eps)
    return layer_norm(convolved(x, w, "conv2", c.d_neck, 1), w, "layer_norm2", c.neck_eps)


def convolved(x: Array, w: Weights, name: str, width: int, stride: int) -> Array:
    """A convolution over patches next to each other, at every `stride`-th row and column: [R C I] -> [R/s C/s O]."""
    return convolve_plane(x, w(f"{name}.weight", width, x.shape[2], 3, 3), stride)
