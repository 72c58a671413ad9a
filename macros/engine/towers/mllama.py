"""The vision tower of Llama 3.2 Vision: a ViT in which patches attend across all tiles, then a second, gated one.

An image has a fixed number of tiles; those that it lacks are empty, and are read, too. The text's layers for images see
vectors of several layers side by side. Source: transformers 5.24, modeling_mllama.py and image_processing_mllama.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..architectures.config import Positive, Size, activation, config, derived, fixed, key, listed
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import attend, heads, layer_norm, linear
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .patches import embed_patches, two_maps

RATIOS = [[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]]
MULTIPLE = 8  # of which a tile's vectors are filled up to


@config
class MllamaVision(TowerConfig):
    """Hyperparameters of Llama 3.2 Vision's tower, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 448)  # of a tile
    patch: Size = key("patch_size", 14)
    n_tiles: Size = key("max_num_tiles", 4)
    ratios: list[Any] = key("supported_aspect_ratios", lambda c: RATIOS)
    d_model: Size = key("hidden_size", 1280)
    # layers
    n_layers: Size = key("num_hidden_layers", 32)
    n_global: Size = key("num_global_layers", 8)
    norm_eps: Positive = key("norm_eps", 1e-5)
    outer_eps: Positive = fixed(1e-5)
    n_heads: Size = key("attention_heads", 16, also=("num_attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 5120)
    activation: str = key("hidden_act", "gelu")
    features: list[int] = key("intermediate_layers_indices", lambda c: [3, 7, 15, 23, 30])
    # projector
    d_output: Size = key("vision_output_dim", 7680)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"max_aspect_ratio_id"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        self.must_not_exceed("patch", "image_size")
        activation(self.activation)
        for ratio in self.ratios:
            sides = listed(ratio) or []
            if len(sides) != 2 or any(type(n) is not int or not 0 < n <= int(self.n_tiles) for n in sides):
                raise Problem(f"supported_aspect_ratios has {ratio}", "give rows and columns of tiles")
        if not self.ratios:
            raise Problem("supported_aspect_ratios is empty", "give rows and columns of tiles")
        if len(set(self.features)) < len(self.features) or not all(0 <= i < self.n_layers for i in self.features):
            raise Problem(f"intermediate_layers_indices = {self.features}", "give layers of this tower, each once")
        if int(self.d_output) != int(self.d_model) * (len(self.features) + 1):
            raise Problem(
                f"vision_output_dim = {int(self.d_output)}",
                f"give {int(self.d_model) * (len(self.features) + 1)}, the width of the layers side by side",
            )

    @property
    def side(self) -> int:
        """The patches in a row of a tile."""
        return int(self.image_size) // int(self.patch)

    def grid(self, height: int, width: int) -> Grid:
        size = int(self.image_size)
        fits = [(min(rows * size / height, columns * size / width), rows, columns) for rows, columns in self.ratios]
        larger = [fit for fit, _, _ in fits if fit >= 1]
        best = min(larger) if larger else max(fit for fit, _, _ in fits)
        _, rows, columns = min((fit for fit in fits if fit[0] == best), key=lambda fit: fit[1] * fit[2])
        return Grid(rows * self.side, columns * self.side)

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return grid

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return self.n_tiles * (self.side * self.side), self.n_channels * self.patch * self.patch

    @property
    def kinds(self) -> list[str]:
        """Which of the vectors for the text model each layer produces, if any."""
        return [f"feature {self.features.index(i)}" if i in self.features else "layer" for i in range(self.n_layers)]


@tower("mllama.vision_config", config=MllamaVision)
def forward(w: Weights, x: Array, grid: Grid, c: MllamaVision, cache: KVCache) -> list[Array]:
    """The vectors of all tiles for the text's layers for images: [R·P I] -> [R·(P + 1) D]."""
    tower, D, R = w.at("model.vision_model"), c.d_model, c.n_tiles
    patches = c.side * c.side
    shape = c.ratios.index([int(grid.rows) // c.side, int(grid.columns) // c.side]) + 1
    x = embed_patches(x, tower, "patch_embedding", D, (c.n_channels, c.patch, c.patch), bias=False)
    x = tile_positions(x.reshape(R, patches, D), tower.at("pre_tile_positional_embedding"), shape, c)
    first = np.broadcast_to(tower("class_embedding", D)[None, None, :], (R, 1, D))
    x = positions(np.concatenate([first, x], axis=1), tower.at("gated_positional_embedding"), shape, c)
    x = layer_norm(x, tower, "layernorm_pre", c.outer_eps)
    added = -(patches + 1) % MULTIPLE
    length = patches + 1 + added
    x = np.pad(x, ((0, 0), (0, added), (0, 0))).reshape(R * length, D)
    place = np.arange(R * length, like=x)
    is_empty = (place % length > patches) | (place // length >= int(grid.rows) * int(grid.columns) // patches)
    allowed = np.where(is_empty[:, None], np.where(is_empty[None, :], 0, 1), 1) > 0
    found: dict[str, Array] = {}
    for kind, w_layer, _ in tower.layers("transformer.layers", c.kinds, cache, "tile"):
        x = layer(x, w_layer, c, allowed, gated=False)
        found[kind] = x
    x = layer_norm(x, tower, "layernorm_post", c.outer_eps).reshape(R, length, D)
    x = tile_positions(x, tower.at("post_tile_positional_embedding"), shape, c).reshape(R * length, D)
    kinds = ["layer"] * c.n_global
    for _, w_layer, _ in tower.layers("global_transformer.layers", kinds, cache, "global", c.n_layers):
        x = layer(x, w_layer, c, allowed, gated=True)
    if not c.features:
        return [linear(tiles_alone(x, length, c), w, "model.multi_modal_projector", c.d_text, bias=True)]
    side_by_side = np.stack([found[f"feature {i}"] for i in range(len(c.features))], axis=-1)
    x = np.concatenate([x, side_by_side.reshape(R * length, D * len(c.features))], axis=-1)
    return [linear(tiles_alone(x, length, c), w, "model.multi_modal_projector", c.d_text, bias=True)]


def tiles_alone(x: Array, length: int, c: MllamaVision) -> Array:
    """The vectors of all tiles without those that fill them up: [R·L D] -> [R·(P + 1) D]."""
    kept = c.side * c.side + 1
    return x.reshape(c.n_tiles, length, c.d_output)[:, :kept].reshape(c.n_tiles * kept, c.d_output)


@step(Role.EMBED_POSITIONS)
def tile_positions(x: Array, w: Weights, shape: int, c: MllamaVision) -> Array:
    """Add a trained vector of each tile, for the arrangement of tiles, through a gate: [R P D] -> [R P D]."""
    table = w("embedding.weight", len(c.ratios) + 1, c.n_tiles * c.d_model)
    return x + table[shape].reshape(c.n_tiles, 1, c.d_model) * np.tanh(w("gate", 1))


@step(Role.EMBED_POSITIONS)
def positions(x: Array, w: Weights, shape: int, c: MllamaVision) -> Array:
    """Add a trained vector of each position, and one of each position in each tile, by one gate: [R P D] -> [R P D]."""
    R, P, D = x.shape
    gate = np.tanh(w("gate", 1))
    x = x + (1 - gate) * w("embedding", P, D)
    return x + gate * w("tile_embedding.weight", len(c.ratios) + 1, R * P * D)[shape].reshape(R, P, D)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: MllamaVision, allowed: Array, *, gated: bool) -> Array:
    """One transformer block, in which every patch of every tile sees all others: [P D] -> [P D]."""
    y = attention(layer_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), c, allowed)
    x = x + (np.tanh(w("gate_attn", 1)) * y if gated else y)
    y = layer_norm(x, w, "post_attention_layernorm", c.norm_eps)
    y = two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, activation(c.activation))
    return x + (np.tanh(w("gate_ffn", 1)) * y if gated else y)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: MllamaVision, allowed: Array) -> Array:
    """Let each patch gather information from all patches; what is empty sees nothing empty: [P D] -> [P D]."""
    q, k, v = (heads(linear(x, w, f"{name}_proj", c.d_model), c.n_heads, c.d_head) for name in ("q", "k", "v"))
    return linear(attend(q, k, v, allowed, c.d_head**-0.5), w, "o_proj", c.d_model)
