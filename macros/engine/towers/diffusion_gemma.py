"""The vision tower of DiffusionGemma: Gemma 4's, used by the part that reads the text so far.

Source: transformers 5.24, modeling_diffusion_gemma.py.
"""

from __future__ import annotations

from ..interface import Array, KVCache, Weights
from . import Grid, tower
from .gemma4_vision import Gemma4Vision, read


@tower("diffusion_gemma.vision_config", config=Gemma4Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Gemma4Vision, cache: KVCache) -> list[Array]:
    """The vectors of an image for the text, from pixels between 0 and 1: [P I] -> [M D]."""
    return [read(w.at("model.encoder"), x, grid, c, cache)]
