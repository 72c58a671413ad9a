"""The vision tower of Kimi K2.5: MoonViT, for images of any size, whose vectors are joined four to one and projected.

Positions are a learned table, stretched over the image, and 2D rotary embeddings in which column and row alternate.
Frames of a film are averaged at the end; here an image is one. Source: transformers 5.24, modeling_kimi_k25.py.
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Raw, Size, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Rope, gelu, layer_norm, rope_table
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .patches import (
    AnySize,
    blocks,
    embed_patches,
    named_activation,
    places,
    separate_attention,
    stretched_positions,
    two_maps,
)

# The processor's: a larger image is shrunk; a side is filled up to whole blocks.
MOST_PATCHES, MOST_ROWS = 16384, 512


@config
class KimiVision(AnySize):
    """Hyperparameters of Kimi K2.5's vision tower, in forward order."""

    # patches
    n_channels: Size = fixed(3)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("vt_hidden_size", also=("hidden_size",))
    n_position_rows: Size = key("init_pos_emb_height", 64, also=("pos_emb_height",))
    n_position_columns: Size = key("init_pos_emb_width", 64, also=("pos_emb_width",))
    # layers
    n_layers: Size = key("vt_num_hidden_layers", also=("num_hidden_layers",))
    norm_eps: Positive = fixed(1e-5)
    n_heads: Size = key("vt_num_attention_heads", also=("num_attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    theta: Positive = fixed(10000.0)
    d_ff: Size = key("vt_intermediate_size", also=("intermediate_size",))
    activation: str = fixed("gelu_pytorch_tanh")
    # projector
    merge_sides: list[int] = key("merge_kernel_size", lambda c: [2, 2])
    merge: Size = derived(lambda c: c.merge_sides[0] if c.merge_sides else 0)
    projector_eps: Positive = key("projector_ln_eps", 1e-5, also=("projection_layer_norm_eps",))
    d_text: Size = key(TEXT_WIDTH)

    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    ignored = frozenset(
        """_attn_implementation init_pos_emb_time pos_emb_time merge_type mm_hidden_size mm_projector_type pos_emb_type
        projection_hidden_size projector_hidden_act hidden_act text_hidden_size video_attn_type""".split()
    )

    def check(self) -> None:
        super().check()
        self.check_sides()

    def check_sides(self) -> None:
        """Raise `Problem` unless blocks of patches and the table of positions are squares."""
        if len(self.merge_sides) != 2 or len(set(self.merge_sides)) != 1:
            raise Problem(f"merge_kernel_size = {self.merge_sides}", "give the same number of rows and columns")
        if int(self.n_position_rows) != int(self.n_position_columns):
            raise Problem("the table of positions is no square", "correct init_pos_emb_height or _width")

    def grid(self, height: int, width: int) -> Grid:
        patch, block = int(self.patch), int(self.patch) * int(self.merge)
        patches = max(height // patch, 1) * max(width // patch, 1)
        shrink = min(1.0, math.sqrt(MOST_PATCHES / patches), *(MOST_ROWS * patch / side for side in (height, width)))
        rows, columns = (
            math.ceil(min(max(int(side * shrink), 1), MOST_ROWS * patch) / block) for side in (height, width)
        )
        return Grid(rows * int(self.merge), columns * int(self.merge))


@tower("kimi_k25.vision_config", config=KimiVision)
def forward(w: Weights, x: Array, grid: Grid, c: KimiVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.vision_tower")
    x = embed_patches(x, tower, "patch_embed.proj", c.d_model, (c.n_channels, c.patch, c.patch), bias=True)
    row, column = places(x, grid.rows, grid.columns)
    sides = c.n_position_rows, c.n_position_columns
    table = tower("patch_embed.pos_emb.position_embeddings", *sides, c.d_model).reshape(sides[0] * sides[1], c.d_model)
    x = x + stretched_positions(row, column, table, c.n_position_rows, grid, to_corners=False, cubic=True)
    angles = alternating_rope(row, column, c.d_head, c.theta)
    for _, w_layer, _ in tower.layers("layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    x = layer_norm(x, tower, "final_layernorm", c.norm_eps)
    return [project(x, w.at("model.mm_projector"), grid, c)]


def alternating_rope(row: Array, column: Array, d_head: int, theta: float) -> RopeTable:
    """Cosines and sines of a patch's column and of its row by turns, pair after pair."""
    rope = Rope(theta)
    tables = rope_table(column, d_head // 2, rope), rope_table(row, d_head // 2, rope)
    cos, sin = (np.stack(both, axis=-1).reshape(row.shape[0], d_head // 2) for both in zip(*tables))
    return cos, sin


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: KimiVision, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    y = layer_norm(x, w, "norm1", c.norm_eps)
    x = x + separate_attention(y, w.at("attn"), c.n_heads, c.d_head, "proj", angles)
    y = layer_norm(x, w, "norm2", c.norm_eps)
    return x + two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, grid: Grid, c: KimiVision) -> Array:
    """One vector for the text model per block of patches: [P D] -> [P/m² m²·D] -> [P/m² O]."""
    x = layer_norm(x, w, "pre_norm", c.projector_eps)
    wide = c.merge * c.merge * c.d_model
    x = blocks(x, grid, c.merge).reshape(grid.rows // c.merge * (grid.columns // c.merge), wide)
    return two_maps(x, w, ("in_proj", "out_proj"), wide, c.d_text, gelu)
