"""The vision tower of LightOnOCR: Pixtral's ViT, whose vectors are joined four to one and projected.

The last row or column of patches is dropped where their number is odd. Source: transformers 5.24, modeling_pixtral.py
and modeling_lighton_ocr.py.
"""

from __future__ import annotations

import math
from typing import Literal

from ..architectures.config import config, fixed
from ..interface import Array, KVCache, Weights
from ..trace import Trace
from . import Grid, tower
from .pixtral import Pixtral, encode, project


@config
class LightOnOcr(Pixtral):
    """Hyperparameters of Pixtral's vision model and LightOnOCR's projector, in forward order."""

    feature_layer: Literal[-1] = fixed(-1)
    bias: bool = fixed(False)
    projector_activation: str = fixed("gelu")

    def grid(self, height: int, width: int) -> Grid:
        shrink = max(height / int(self.image_size), width / int(self.image_size), 1)
        rows, columns = (math.ceil(max(math.floor(side / shrink), 1) / int(self.patch)) for side in (height, width))
        return Grid(max(rows, int(self.merge)), max(columns, int(self.merge)))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(run.declare("n_patch_rows", grid.rows), run.declare("n_patch_columns", grid.columns), grid.count)


@tower("lighton_ocr.vision_config", config=LightOnOcr, of_type="pixtral")
def forward(w: Weights, x: Array, grid: Grid, c: LightOnOcr, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    x = encode(w.at("model.vision_encoder"), x, grid, c, cache)
    rows, columns = grid.rows // c.merge * c.merge, grid.columns // c.merge * c.merge
    x = x.reshape(grid.rows, grid.columns, c.d_model)[:rows, :columns].reshape(rows * columns, c.d_model)
    return [project(x, w.at("model.vision_projection"), Grid(rows, columns, grid.count), c)]
