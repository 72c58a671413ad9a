"""Fuyu's image input: a linear map of patches, without an encoder.

An image keeps its size up to a limit; a token ends each row of patches. Source: transformers 5.23, modeling_fuyu.py and
image_processing_fuyu.py.
"""

from __future__ import annotations

import math

from ..architectures.config import Size, config, key
from ..interface import Array, KVCache, Weights
from ..ops import linear
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower

# The processor's: pixels of an image at most.
MOST_ROWS, MOST_COLUMNS = 1080, 1920


@config
class FuyuVision(TowerConfig):
    """Hyperparameters of Fuyu's projection of patches, in forward order. They are among the keys of the whole
    config."""

    among_text = frozenset({"num_channels", "patch_size"})

    n_channels: Size = key("num_channels", 3)
    patch: Size = key("patch_size", 30)
    d_text: Size = key(TEXT_WIDTH)

    def grid(self, height: int, width: int) -> Grid:
        scale = min(MOST_ROWS / height, MOST_COLUMNS / width, 1)
        high, wide = (max(int(side * scale), 1) for side in (height, width))
        return Grid(math.ceil(high / int(self.patch)), math.ceil(wide / int(self.patch)))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        rows, columns = run.declare("n_token_rows", grid.rows), run.declare("n_token_columns", grid.columns)
        return Grid(rows, columns, grid.count)

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        return tokens + int(self.grid(height, width).rows)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows * grid.columns, self.patch * self.patch * self.n_channels


@tower("fuyu.vision_config", config=FuyuVision, has_table=False)
def forward(w: Weights, x: Array, grid: Grid, c: FuyuVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P D]."""
    return [linear(x, w, "model.vision_embed_tokens", c.d_text, bias=True)]
