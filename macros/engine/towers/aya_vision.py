"""The vision tower of Aya Vision: SigLIP for tiles of one size, whose vectors are joined four to one, normed and gated.

The vectors are those of the last layer before its norm. A large image is cut into up to twelve tiles, and is shown once
more as a whole. Source: transformers 5.24, modeling_siglip.py and modeling_aya_vision.py.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Size, config, key
from ..interface import Array, KVCache, Weights
from ..ops import layer_norm, linear, silu
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .cohere2_vision import Cohere2Vision
from .internvl import tiles_of
from .patches import blocks
from .siglip import encode


@config
class AyaVision(Cohere2Vision):
    """SigLIP and the projector of Aya Vision."""

    feature_layer: Literal[-1] = key("vision_feature_layer", -1)
    strategy: Literal["full"] = key("vision_feature_select_strategy", "full")
    d_projector: Size = key("alignment_intermediate_size", lambda c: c.d_text)
    projector_eps: Positive = key("adapter_layer_norm_eps", 1e-6)
    d_text: Size = key(TEXT_WIDTH)

    def tiles(self, height: int, width: int) -> int:
        return tiles_of(height, width, int(self.image_size))


@tower("aya_vision.vision_config", config=AyaVision, of_type="siglip_vision_model")
def forward(w: Weights, x: Array, grid: Grid, c: AyaVision, cache: KVCache) -> list[Array]:
    """A tile's vectors for the text model: [P I] -> [P/m² D]."""
    x = encode(w.at("model.vision_tower"), x, grid, c, cache, normed=False)
    return [project(x, w.at("model.multi_modal_projector"), grid, c)]


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, grid: Grid, c: AyaVision) -> Array:
    """One vector for the text from each block of patches, gated: [P D] -> [P/m² m²·D] -> [P/m² 2F] -> [P/m² O]."""
    x = blocks(x, grid, c.merge)
    x = layer_norm(x.reshape(x.shape[0], c.merge * c.merge * c.d_model), w, "layernorm", c.projector_eps)
    wide, gate = np.split(linear(x, w, "linear_1", c.d_projector, bias=True), 2, axis=-1)
    return linear(silu(gate) * wide, w, "linear_2", c.d_text, bias=True)
