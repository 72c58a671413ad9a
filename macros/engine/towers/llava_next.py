"""The vision tower of LLaVA-NeXT: LLaVA's, for the whole image and for its tiles.

The vectors of the tiles are put together as they lie in the image, those of a frame around it are left out, and after
each row comes a trained vector. Source: transformers 5.24, modeling_llava_next.py and processing_llava_next.py.
"""

from __future__ import annotations

from typing import Any

from ..architectures.config import config, key, listed
from ..errors import Problem, shorten
from ..interface import Array, KVCache, Weights
from . import Grid, tower
from .clip import Clip, encode

USUAL = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]


@config
class LlavaNextVision(Clip):
    """CLIP's vision model and LLaVA-NeXT's projector."""

    pinpoints: list[Any] = key("image_grid_pinpoints", lambda c: USUAL)

    def check(self) -> None:
        super().check()
        check_shapes(self.pinpoints, int(self.image_size))

    def grid(self, height: int, width: int) -> Grid:
        rows, columns = tiles_of(self.pinpoints, int(self.image_size), height, width)
        return Grid(int(self.patch_rows), int(self.patch_rows), rows * columns + 1)

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        tiles = tiles_of(self.pinpoints, int(self.image_size), height, width)
        side = int(self.patch_rows)
        rows, columns = without_frame(side * tiles[0], side * tiles[1], height, width)
        return tokens // (tiles[0] * tiles[1] + 1) + rows * columns + rows


def check_shapes(shapes: list[Any], size: int) -> None:
    """Raise `Problem` unless each shape is the height and width of at least one tile."""
    for shape in shapes:
        sides = listed(shape)
        if (
            sides is None
            or len(sides) != 2
            or any(not isinstance(side, int) or isinstance(side, bool) or side < size for side in sides)
        ):
            raise Problem(f"image_grid_pinpoints has {shorten(shape)}", "give two sides of at least one tile")


def tiles_of(shapes: list[Any], size: int, height: int, width: int) -> tuple[int, int]:
    """The rows and columns of tiles of an image: the grid that keeps most of it and leaves the least empty."""
    best, most, least = (size, size), 0, 0
    for rows, columns in shapes:
        scale = min(columns / width, rows / height)
        kept = min(int(width * scale) * int(height * scale), width * height)
        empty = rows * columns - kept
        if kept > most or (kept == most and empty < least):
            best, most, least = (rows, columns), kept, empty
    return best[0] // size, best[1] // size


def without_frame(rows: int, columns: int, height: int, width: int) -> tuple[int, int]:
    """The rows and columns of patches without the empty ones around an image."""
    if width / height > columns / rows:
        return rows - (rows - int(round(height * (columns / width), 7))) // 2 * 2, columns
    return rows, columns - (columns - int(round(width * (rows / height), 7))) // 2 * 2


@tower(
    "llava_next.vision_config", "llava_next_video.vision_config", config=LlavaNextVision, of_type="clip_vision_model"
)
def forward(w: Weights, x: Array, grid: Grid, c: LlavaNextVision, cache: KVCache) -> list[Array]:
    """A tile's vectors for the text model: [P I] -> [P D]."""
    w("model.image_newline", c.d_text)  # the vector after each row of the whole image
    return [encode(w, x, c, cache)]
