"""Gemma 4's image input without an encoder: a linear map of patches, with positions and norms.

An image is made as large as its number of tokens allows, as in Gemma 4. Source: transformers 5.23,
modeling_gemma4_unified.py and image_processing_gemma4_unified.py.
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Size, config, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import layer_norm, linear, unit_norm
from ..steps import Keeps, Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .gemma4_vision import blocks_within
from .patches import places


@config
class Gemma4UnifiedVision(TowerConfig):
    """Hyperparameters of Gemma 4's embedder of images, in forward order."""

    n_most_tokens: Size = fixed(280)  # of an image: the processor's
    patch: Size = key("patch_size", 16)
    pool: Size = key("pooling_kernel_size", 3)
    patch_eps: Positive = fixed(1e-5)
    d_model: Size = key("mm_embed_dim", 3840)
    n_positions: Size = key("mm_posemb_size", 1120)
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    d_out: Size = key("output_proj_dims", 3840)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"model_patch_size", "num_soft_tokens"})

    def check(self) -> None:
        if int(self.d_out) != int(self.d_model):
            raise Problem(
                f"output_proj_dims = {int(self.d_out)}", "the projection reads vectors of mm_embed_dim numbers"
            )

    def grid(self, height: int, width: int) -> Grid:
        return blocks_within(height, width, int(self.patch) * int(self.pool), int(self.n_most_tokens))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        rows, columns = run.declare("n_token_rows", grid.rows), run.declare("n_token_columns", grid.columns)
        return Grid(rows, columns, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows * grid.columns, 3 * self.patch * self.pool * (self.patch * self.pool)


@tower("gemma4_unified.vision_config", config=Gemma4UnifiedVision)
def forward(w: Weights, x: Array, grid: Grid, c: Gemma4UnifiedVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [M I] -> [M D]."""
    tower = w.at("model.embed_vision")
    row, column = places(x, grid.rows, grid.columns)
    x = linear(layer_norm(x, tower, "patch_ln1", c.patch_eps), tower, "patch_dense", c.d_model, bias=True)
    x = layer_norm(x, tower, "patch_ln2", c.patch_eps) + axis_positions(row, column, tower, c)
    x = unit_norm(layer_norm(x, tower, "pos_norm", c.patch_eps), c.norm_eps)
    return [linear(x, tower, "multimodal_embedder.embedding_projection", c.d_text)]


@step(Role.EMBED_POSITIONS, keeps=Keeps.NOTHING)
def axis_positions(row: Array, column: Array, w: Weights, c: Gemma4UnifiedVision) -> Array:
    """A trained vector for each column and each row, added up: [M], [M] -> [M D]."""
    table = w("pos_embedding", c.n_positions, 2, c.d_model)
    return np.take(table[:, 0], column, axis=0) + np.take(table[:, 1], row, axis=0)
