"""The vision tower of Command A Vision: SigLIP for tiles of one size, whose vectors are joined four to one, gated.

A large image is cut into up to twelve tiles, and is shown once more as a whole. Source: transformers 5.24,
modeling_siglip.py, modeling_cohere2_vision.py and image_processing_cohere2_vision.py.
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Size, config, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import linear, silu
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .llama4 import tiles_of
from .patches import blocks
from .siglip import Siglip, encode

MOST_TILES = 12  # of an image: the processor's


@config
class Cohere2Vision(Siglip):
    """SigLIP and the projector of Command A Vision."""

    merge: Size = key("downsample_factor", 2)
    d_projector: Size = key("alignment_intermediate_size", 36864)
    d_text: Size = key(TEXT_WIDTH)

    def check(self) -> None:
        super().check()
        if int(self.d_projector) % 2:
            raise Problem(f"alignment_intermediate_size = {int(self.d_projector)}", "one half gates the other")

    def tiles(self, height: int, width: int) -> int:
        return tiles_of(height, width, int(self.image_size), MOST_TILES)


@tower("cohere2_vision.vision_config", config=Cohere2Vision, of_type="siglip_vision_model")
def forward(w: Weights, x: Array, grid: Grid, c: Cohere2Vision, cache: KVCache) -> list[Array]:
    """A tile's vectors for the text model: [P I] -> [P/m² D]."""
    x = encode(w.at("model.vision_tower"), x, grid, c, cache)
    return [project(x, w.at("model.multi_modal_projector"), grid, c)]


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, grid: Grid, c: Cohere2Vision) -> Array:
    """One vector for the text from each block of patches, gated: [P D] -> [P/m² m²·D] -> [P/m² 2F] -> [P/m² O]."""
    x = blocks(x, grid, c.merge)
    x = x.reshape(x.shape[0], c.merge * c.merge * c.d_model)
    wide, gate = np.split(linear(x, w, "linear_1", c.d_projector, bias=True), 2, axis=-1)
    return linear(silu(gate) * wide, w, "linear_2", c.d_text, bias=True)
