"""The vision tower of LLaVA-OneVision: SigLIP, for the whole image and for its tiles, projected.

The vectors of the tiles are put together as they lie in the image, those of a frame around it are left out, and larger
images are shrunk to a bound; after each row comes a trained vector. Source: transformers 5.24,
modeling_llava_onevision.py and processing_llava_onevision.py (arXiv 2408.03326).
"""

from __future__ import annotations

import math
from typing import Any, Literal

from ..architectures.config import Size, activation, config, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from . import TEXT_WIDTH, Grid, tower
from .llava_next import check_shapes, tiles_of, without_frame
from .patches import two_maps
from .siglip import Siglip, encode


@config
class LlavaOneVision(Siglip):
    """SigLIP and LLaVA-OneVision's projector."""

    feature_layer: Literal[-1] = key("vision_feature_layer", -1)
    strategy: Literal["full"] = key("vision_feature_select_strategy", "full")
    bias: bool = key("multimodal_projector_bias", True)
    projector_activation: str = key("projector_hidden_act", "gelu")
    d_text: Size = key(TEXT_WIDTH)
    pinpoints: list[Any] = key("image_grid_pinpoints", lambda c: USUAL)
    bound: str = key("vision_aspect_ratio", "anyres_max_9")

    def check(self) -> None:
        super().check()
        activation(self.projector_activation)
        check_shapes(self.pinpoints, int(self.image_size))
        if self.most < 1:
            raise Problem(f"vision_aspect_ratio = {self.bound}", "give anyres_max_ and a number of tiles")

    @property
    def most(self) -> int:
        """The most tiles of an image, in addition to the whole image."""
        number = self.bound.removeprefix("anyres_max_")
        return int(number) if number.isdecimal() and len(number) < 9 else 0

    def grid(self, height: int, width: int) -> Grid:
        rows, columns = tiles_of(self.pinpoints, int(self.image_size), height, width)
        return Grid(int(self.patch_rows), int(self.patch_rows), rows * columns + 1)

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        side = int(self.patch_rows)
        tiles = tiles_of(self.pinpoints, int(self.image_size), height, width)
        rows, columns = without_frame(side * tiles[0], side * tiles[1], height, width)
        ratio = math.sqrt(rows * columns / (self.most * side**2))
        if ratio > 1.1:
            rows, columns = int(rows // ratio), int(columns // ratio)
        return side**2 + rows * columns + rows


USUAL = [[384 * rows, 384 * columns] for rows in range(1, 7) for columns in range(1, 7)]


@tower("llava_onevision.vision_config", config=LlavaOneVision, of_type="siglip_vision_model")
def forward(w: Weights, x: Array, grid: Grid, c: LlavaOneVision, cache: KVCache) -> list[Array]:
    """A tile's vectors for the text model: [P I] -> [P D]."""
    w("model.image_newline", c.d_text)  # the vector after each row of the whole image
    x = encode(w.at("model.vision_tower"), x, grid, c, cache, normed=False)
    act = activation(c.projector_activation)
    projector = w.at("model.multi_modal_projector")
    return [two_maps(x, projector, ("linear_1", "linear_2"), c.d_text, c.d_text, act, bias=c.bias)]
