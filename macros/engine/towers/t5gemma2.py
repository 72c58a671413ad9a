"""The vision tower of T5Gemma 2: Gemma 3's, for the encoder."""

from __future__ import annotations

from ..interface import Array, KVCache, Weights
from . import Grid, tower
from .siglip import Gemma3Vision, encode, project


@tower("t5gemma2.vision_config", config=Gemma3Vision, of_type="siglip_vision_model")
def forward(w: Weights, x: Array, grid: Grid, c: Gemma3Vision, cache: KVCache) -> list[Array]:
    """The vectors of an image for the encoder: [P I] -> [M D]."""
    x = encode(w.at("model.encoder.vision_tower"), x, grid, c, cache)
    return [project(x, w.at("model.encoder.multi_modal_projector"), grid, c)]
