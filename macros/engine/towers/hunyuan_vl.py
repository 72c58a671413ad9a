"""The vision tower of HunyuanOCR: a ViT for images of any size, whose vectors are joined four to one, row by row.

Each row of tokens ends with a trained vector, and one stands before and one behind an image. Positions are a learned
table, stretched over the image. Source: transformers 5.24, modeling_hunyuan_vl.py.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Size, activation, config, derived, key
from ..interface import Array, KVCache, Weights
from ..ops import linear, rms_norm
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .patches import (
    AnySize,
    blocks,
    embed_patches,
    named_activation,
    places,
    stretched_positions,
    vit_layer,
)


@config
class HunYuanVision(AnySize):
    """Hyperparameters of HunyuanOCR's vision tower, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("max_image_size", 2048)  # of the table of positions
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 1152)
    side: Size = derived(lambda c: c.image_size // c.patch)
    stretching: Literal["bilinear"] = key("interpolate_mode", "bilinear")
    # layers
    n_layers: Size = key("num_hidden_layers", 27)
    norm_eps: Positive = key("rms_norm_eps", 1e-5, also=("layer_norm_eps",))
    n_heads: Size = key("num_attention_heads", 16, also=("attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 4304)
    activation: str = key("hidden_act", "gelu")
    # merger
    merge: Size = key("spatial_merge_size", 2)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset(
        """img_max_token_num max_vit_seq_len min_image_size num_key_value_heads out_hidden_size temporal_patch_size
        head_dim text_hidden_size""".split()
    )

    def check(self) -> None:
        super().check()
        self.must_not_exceed("patch", "image_size")
        activation(self.activation)


@tower("hunyuan_vl.vision_config", config=HunYuanVision)
def forward(w: Weights, x: Array, grid: Grid, c: HunYuanVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [M D]."""
    tower = w.at("model.vision_tower")
    kernel = c.n_channels, c.patch, c.patch
    x = embed_patches(x, tower, "embeddings.patch_embedding", c.d_model, kernel, bias=True)
    row, column = places(x, grid.rows, grid.columns)
    table = tower("embeddings.position_embedding.weight", c.side * c.side + 1, c.d_model)
    x = x + stretched_positions(row, column, table[1:], c.side, grid, to_corners=False)
    for _, w_layer, _ in tower.layers("layers", ["layer"] * c.n_layers, cache):
        x = vit_layer(x, w_layer, c, output="o_proj")
    return [merger(x, tower.at("patch_merger"), grid, c)]


@step(Role.FEED_FORWARD)
def merger(x: Array, w: Weights, grid: Grid, c: HunYuanVision) -> Array:
    """Vectors of blocks of patches, of ends of rows and of an image: [P D] -> [P/m² 2·D] -> [M 4·D] -> [M O]."""
    D, m = c.d_model, c.merge
    rows, columns = grid.rows // m, grid.columns // m
    x = blocks(rms_norm(x, w, "before_rms", c.norm_eps), grid, m)
    kernel = w("proj_conv.weight", 2 * D, D, m, m).reshape(2 * D, D, m * m)
    x = np.einsum("mkd,odk->mo", x, kernel, optimize=True) + w("proj_conv.bias", 2 * D)
    kernel = w("proj_out.weight", 4 * D, 2 * D, 1, 1).reshape(4 * D, 2 * D)
    x = np.einsum("mi,oi->mo", named_activation(c.activation)(x), kernel, optimize=True) + w("proj_out.bias", 4 * D)
    ends = np.broadcast_to(w("image_newline", 4 * D)[None, None, :], (rows, 1, 4 * D))
    x = np.concatenate([x.reshape(rows, columns, 4 * D), ends], axis=1).reshape(rows * (columns + 1), 4 * D)
    x = linear(x, w, "mlp", c.d_text, bias=True)
    w("image_sep", c.d_text)  # between images: no class of transformers uses it
    x = np.concatenate([w("image_begin", c.d_text)[None, :], x, w("image_end", c.d_text)[None, :]], axis=0)
    return rms_norm(x, w, "after_rms", c.norm_eps)
