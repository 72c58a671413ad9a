"""The vision tower of Llama 4: a ViT for tiles of one size, whose vectors are joined four to one and projected.

A large image is cut into up to sixteen tiles, and is shown once more as a whole. A class token comes after the patches,
and is dropped. Positions are a learned table and 2D rotary embeddings, neighbors as pairs. Source: transformers 5.24,
modeling_llama4.py and image_processing_llama4.py.
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Size, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Rope, apply_rope_pairs, attend, gelu, heads, layer_norm, linear, rope_table
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .patches import OneSize, two_maps


@config
class Llama4Vision(OneSize):
    """Hyperparameters of Llama 4's vision tower, in forward order."""

    # patches
    n_tiles: Size = fixed(16)  # of an image, at most: the processor's
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size")
    patch: Size = key("patch_size")
    d_model: Size = key("hidden_size")
    # layers
    norm_eps: Positive = fixed(1e-5)
    n_layers: Size = key("num_hidden_layers")
    n_heads: Size = key("num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    theta: Positive = key("rope_theta", 10000.0)
    d_ff: Size = key("intermediate_size")
    activation: str = fixed("gelu")
    # adapter and projector
    shuffle: Positive = key("pixel_shuffle_ratio", 0.5)
    merge: Size = derived(lambda c: round(1 / c.shuffle))
    d_adapter: Size = key("projector_input_dim", 4096)
    d_out: Size = key("projector_output_dim", 4096)
    d_vision: Size = key("vision_output_dim")
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset(
        {"hidden_act", "multi_modal_projector_bias", "norm_eps", "projector_dropout", "rope_parameters"}
        | {"vision_feature_layer", "vision_feature_select_strategy"}
    )

    def check(self) -> None:
        super().check()
        if 1 / self.shuffle != int(self.merge):
            raise Problem(f"pixel_shuffle_ratio = {self.shuffle}", "its inverse must be a whole number")
        if int(self.merge) ** 2 * int(self.d_model) != int(self.d_ff):
            raise Problem(
                f"intermediate_size = {int(self.d_ff)}",
                f"give {int(self.merge) ** 2 * int(self.d_model)}, the width of a block of patches",
            )
        if int(self.d_out) != int(self.d_vision) or int(self.d_adapter) != int(self.d_out):
            raise Problem(
                "the adapter's widths differ", "correct projector_input_dim, _output_dim or vision_output_dim"
            )

    def tiles(self, height: int, width: int) -> int:
        return tiles_of(height, width, int(self.image_size), int(self.n_tiles))


def tiles_of(height: int, width: int, size: int, most: int) -> int:
    """The number of tiles of an image: the grid that shrinks it least, of these the one that enlarges it least, and of
    equal ones the smallest."""
    fits = [
        (min(rows * size / height, columns * size / width), rows * columns)
        for rows in range(1, most + 1)
        for columns in range(1, most // rows + 1)
    ]
    larger = [fit for fit, _ in fits if fit >= 1]
    best = min(larger) if larger else max(fit for fit, _ in fits)
    return min(tiles for fit, tiles in fits if fit == best)


@tower("llama4.vision_config", config=Llama4Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Llama4Vision, cache: KVCache) -> list[Array]:
    """A tile's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("vision_model")
    patches = x.shape[0]
    x = linear(x, tower, "patch_embedding.linear", c.d_model)
    x = np.concatenate([x, tower("class_embedding", c.d_model)[None, :]], axis=0)
    x = x + tower("positional_embedding_vlm", patches + 1, c.d_model)
    x = layer_norm(x, tower, "layernorm_pre", c.norm_eps)
    angles = turns(x, grid, c)
    for _, w_layer, _ in tower.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    x = layer_norm(x, tower, "layernorm_post", c.norm_eps)
    return [project(x[:-1], tower.at("vision_adapter.mlp"), w, grid, c)]


def turns(x: Array, grid: Grid, c: Llama4Vision) -> RopeTable:
    """Cosines and sines of a patch's column, then of its row, both counted from 1; the class token stays at 0."""
    i = np.arange(x.shape[0], like=x)
    is_patch = i < grid.rows * grid.columns
    places = i % grid.columns + 1, i // grid.columns + 1
    tables = [rope_table(np.where(is_patch, place, 0), c.d_head // 2, Rope(c.theta)) for place in places]
    cos, sin = (np.concatenate(both, axis=-1) for both in zip(*tables))
    return cos, sin


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Llama4Vision, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    x = x + attention(layer_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), c, angles)
    y = layer_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, gelu)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Llama4Vision, angles: RopeTable) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head) for name in ("q_proj", "k_proj", "v_proj")
    )
    q, k = apply_rope_pairs(q, angles), apply_rope_pairs(k, angles)
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "o_proj", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, whole: Weights, grid: Grid, c: Llama4Vision) -> Array:
    """One vector for the text model per block of patches: [P D] -> [P/m² m²·D] -> [P/m² A] -> [P/m² O]."""
    m, width = c.merge, x.shape[1]
    rows, columns = grid.rows // m, grid.columns // m
    x = x.reshape(rows, m, columns, m * width).transpose(0, 2, 1, 3).reshape(rows * columns, m * m * width)
    x = gelu(two_maps(x, w, ("fc1", "fc2"), c.d_adapter, c.d_out, gelu, bias=False))
    return linear(x, whole, "multi_modal_projector.linear_1", c.d_text)
