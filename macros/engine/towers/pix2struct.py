"""The vision tower of Pix2Struct: T5's gated block for as many patches as are allowed, of an image of any shape.

An image is made as large as the number of patches allows. A trained vector for each row and each column says where a
patch lies. Source: transformers 5.24, modeling_pix2struct.py and image_processing_pix2struct.py (arXiv 2210.03347).
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Size, activation, config, fixed, key
from ..interface import Array, KVCache, Weights
from ..ops import attend, heads, linear, rms_norm
from ..steps import Keeps, Role, step
from . import Grid, TowerConfig, tower
from .patches import places

MOST_PATCHES, PIXELS = 2048, 16  # of an image, and of a patch's side: the processor's


@config
class Pix2StructVision(TowerConfig):
    """Hyperparameters of Pix2Struct's vision tower, in forward order."""

    # patches
    most: int = fixed(MOST_PATCHES)
    d_patch: Size = key("patch_embed_hidden_size", 768)  # the numbers of a patch
    d_model: Size = key("hidden_size", 768)
    n_places: Size = key("seq_len", 4096)
    # layers
    n_layers: Size = key("num_hidden_layers", 12)
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads", 12)
    d_head: Size = key("d_kv", 64)
    is_scaled: bool = fixed(False)
    d_ff: Size = key("d_ff", 2048)
    activation: str = key("dense_act_fn", "gelu_new")

    ignored = frozenset(
        """dropout_rate initializer_factor is_vqa num_channels relative_attention_max_distance
        relative_attention_num_buckets""".split()
    )

    def check(self) -> None:
        activation(self.activation)

    def grid(self, height: int, width: int) -> Grid:
        scale = math.sqrt(self.most * (PIXELS / height) * (PIXELS / width))
        rows, columns = (max(min(math.floor(scale * side / PIXELS), self.most), 1) for side in (height, width))
        return Grid(rows, columns)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows * grid.columns, self.d_patch


@tower("pix2struct.vision_config", config=Pix2StructVision)
def forward(w: Weights, x: Array, grid: Grid, c: Pix2StructVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P D]."""
    return [encode(w.at("encoder"), x, grid, c, cache)]


def encode(w: Weights, x: Array, grid: Grid, c: Pix2StructVision, cache: KVCache) -> Array:
    """The vectors of an image, one for each patch: [P I] -> [P D]."""
    row, column = places(x, grid.rows, grid.columns)
    tables = w.at("embeddings")
    x = linear(x, tables, "patch_projection", c.d_model, bias=True) + placed(row, column, tables, c)
    for _, w_layer, _ in w.layers("encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return rms_norm(x, w, "layernorm", c.norm_eps)


@step(Role.EMBED_POSITIONS, keeps=Keeps.NOTHING)
def placed(row: Array, column: Array, w: Weights, c: Pix2StructVision) -> Array:
    """A trained vector for each row and each column, of which there is none numbered zero: [P], [P] -> [P D]."""
    rows, columns = (w(f"{name}.weight", c.n_places, c.d_model) for name in ("row_embedder", "column_embedder"))
    return np.take(rows, row + 1, axis=0) + np.take(columns, column + 1, axis=0)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Pix2StructVision) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    x = x + attention(rms_norm(x, w, "pre_attention_layer_norm", c.norm_eps), w.at("attention"), c)
    return x + feed_forward(rms_norm(x, w, "pre_mlp_layer_norm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Pix2StructVision) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    N, H = c.n_heads, c.d_head
    q, k, v = (heads(linear(x, w, name, N * H), N, H) for name in ("query", "key", "value"))
    return linear(attend(q, k, v, None, H**-0.5 if c.is_scaled else 1.0), w, "output", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Pix2StructVision) -> Array:
    """Process each vector separately, in a wider space, gated: [P D] -> [P F] -> [P D]."""
    gate = activation(c.activation)(linear(x, w, "wi_0", c.d_ff))
    return linear(gate * linear(x, w, "wi_1", c.d_ff), w, "wo", c.d_model)
