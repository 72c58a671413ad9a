"""The vision tower of LFM2-VL: SigLIP 2, for images of any size, whose vectors are joined four to one and projected.

A large image is cut into tiles of one size, and is shown once more as a whole. Source: transformers 5.23,
modeling_lfm2_vl.py and image_processing_lfm2_vl.py.
"""

from __future__ import annotations

import math
from typing import Literal

from ..architectures.config import Positive, Size, activation, config, fixed, key
from ..interface import Array, KVCache, Weights
from ..ops import layer_norm
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .internvl import tiles_of
from .patches import blocks, two_maps
from .siglip2 import Siglip2, encode

# The processor's: tokens of an image, pixels of a tile's side, tiles, and how much more than the tokens is a large one.
LEAST_TOKENS, MOST_TOKENS, TILE, LEAST_TILES, MOST_TILES, TOLERANCE = 64, 256, 512, 2, 10, 2.0


@config
class Lfm2Vision(Siglip2):
    """SigLIP 2 and LFM2-VL's projector."""

    pooled: Literal[False] = key("vision_use_head", False)  # one vector of the whole image: no text model reads it
    # projector
    merge: Size = key("downsample_factor", 2)
    normed: bool = key("projector_use_layernorm", True)
    projector_eps: Positive = fixed(1e-5)
    d_projector: Size = key("projector_hidden_size", 2560)
    projector_activation: str = key("projector_hidden_act", "gelu")
    bias: bool = key("projector_bias", True)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset(
        """do_image_splitting encoder_patch_size max_image_tokens max_num_patches max_pixels_tolerance max_tiles
        min_image_tokens min_tiles tile_size use_image_special_tokens use_thumbnail""".split()
    )

    def check(self) -> None:
        super().check()
        activation(self.projector_activation)

    def is_large(self, height: int, width: int) -> bool:
        """Whether an image is cut into tiles."""
        block = int(self.patch) * int(self.merge)
        high, wide = (max(int(self.patch), round(side / block) * block) for side in (height, width))
        return high * wide > MOST_TOKENS * block**2 * TOLERANCE

    def whole(self, height: int, width: int) -> Grid:
        """The patches of an image as a whole."""
        block = int(self.patch) * int(self.merge)
        high, wide = (max(block, round(side / block) * block) for side in (height, width))
        least, most = (tokens * block**2 for tokens in (LEAST_TOKENS, MOST_TOKENS))
        if high * wide > most:
            shrink = math.sqrt(height * width / most)
            high, wide = (max(block, math.floor(side / shrink / block) * block) for side in (height, width))
        elif high * wide < least:
            grow = math.sqrt(least / (height * width))
            high, wide = (math.ceil(side * grow / block) * block for side in (height, width))
        return Grid(high // int(self.patch), wide // int(self.patch))

    def grid(self, height: int, width: int) -> Grid:
        if not self.is_large(height, width):
            return self.whole(height, width)
        side = TILE // int(self.patch)
        return Grid(side, side, tiles_of(height, width, TILE, LEAST_TILES, MOST_TILES))

    def grids(self, height: int, width: int) -> list[Grid]:
        grid = self.grid(height, width)
        return [grid, self.whole(height, width)] if grid.count > 1 else [grid]


@tower("lfm2_vl.vision_config", config=Lfm2Vision, of_type="siglip2_vision_model")
def forward(w: Weights, x: Array, grid: Grid, c: Lfm2Vision, cache: KVCache) -> list[Array]:
    """The vectors of an image or a tile for the text: [P I] -> [P/m² D]."""
    x = encode(w.at("model.vision_tower"), x, grid, c, cache)
    return [project(x, w.at("model.multi_modal_projector"), grid, c)]


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, grid: Grid, c: Lfm2Vision) -> Array:
    """One vector for the text model per block of patches: [P D] -> [P/m² m²·D] -> [P/m² O]."""
    x = blocks(x, grid, c.merge)
    x = x.reshape(x.shape[0], c.merge * c.merge * c.d_model)
    if c.normed:
        x = layer_norm(x, w, "layer_norm", c.projector_eps)
    act = activation(c.projector_activation)
    return two_maps(x, w, ("linear_1", "linear_2"), c.d_projector, c.d_text, act, bias=c.bias)
