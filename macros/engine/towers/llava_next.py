"""The vision tower of LLaVA-NeXT: that of LLaVA, for an image as a whole and cut into tiles.

The vectors of the tiles are put together as they lie in the image, those of a frame around it are left out, and after
each row comes a trained vector. Source: transformers 5.23, modeling_llava_next.py and processing_llava_next.py.
"""

from __future__ import annotations

from typing import Any

from ..architectures.config import config, key, listed
from ..errors import Problem, shorten
from ..interface import Array, KVCache, Weights
from . import Grid
from .clip import Clip, encode

USUAL = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]


@config
class LlavaNextVision(Clip):
    """CLIP's vision model and LLaVA-NeXT's projector."""

    pinpoints: list[Any] = key("image_grid_pinpoints", lambda c: USUAL)

    def check(self) -> None:
        super().check()
        for shape in self.pinpoints:
            sides = listed(shape)
            if (
                sides is None
                or len(sides) != 2
                or any(not isinstance(side, int) or isinstance(side, bool) or side < self.image_size for side in sides)
            ):
                raise Problem(f"image_grid_pinpoints has {shorten(shape)}", "give two sides of at least one tile")

    def shape(self, height: int, width: int) -> tuple[int, int]:
        """The height and width that an image is resized to: those in which most of it is kept and least is empty."""
        best, most, least = (int(self.image_size), int(self.image_size)), 0, 0
        for rows, columns in self.pinpoints:
            scale = min(columns / width, rows / height)
            kept = min(int(width * scale) * int(height * scale), width * height)
            empty = rows * columns - kept
            if kept > most or (kept == most and empty < least):
                best, most, least = (rows, columns), kept, empty
        return best

    def tiles(self, height: int, width: int) -> tuple[int, int]:
        """The rows and columns of tiles of an image."""
        rows, columns = self.shape(height, width)
        return rows // int(self.image_size), columns // int(self.image_size)

    def grid(self, height: int, width: int) -> Grid:
        side = int(self.image_size) // int(self.patch)
        rows, columns = self.tiles(height, width)
        return Grid(side, side, rows * columns + 1)

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        side = int(self.image_size) // int(self.patch)
        tile_rows, tile_columns = self.tiles(height, width)
        rows, columns = side * tile_rows, side * tile_columns
        if width / height > columns / rows:
            rows -= (rows - int(round(height * (columns / width), 7))) // 2 * 2
        else:
            columns -= (columns - int(round(width * (rows / height), 7))) // 2 * 2
        return tokens // (tile_rows * tile_columns + 1) + rows * columns + rows


CONFIG = LlavaNextVision


def forward(w: Weights, x: Array, grid: Grid, c: LlavaNextVision, cache: KVCache) -> list[Array]:
    """The vectors of a tile for the text: [P I] -> [P D]."""
    w("model.image_newline", c.d_text)  # the vector after each row of the whole image
    return [encode(w, x, c, cache)]
