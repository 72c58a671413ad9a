"""Gemma 4's audio input without an encoder: a linear map of every 40 milliseconds.

Source: transformers 5.24, modeling_gemma4_unified.py and feature_extraction_gemma4_unified.py.
"""

from __future__ import annotations

import math

from ..architectures.config import Positive, Size, config, key
from ..interface import Array, KVCache, Weights
from ..ops import linear, unit_norm
from . import TEXT_WIDTH, Grid, TowerConfig, tower

SAMPLES = 16_000  # a second: the feature extractor's


@config
class Gemma4UnifiedAudio(TowerConfig):
    """Hyperparameters of Gemma 4's embedder of sounds, in forward order."""

    reads = "sound"

    n_samples: Size = key("audio_embed_dim", 640)
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"audio_samples_per_token", "hidden_size", "output_proj_dims"})

    def moments(self, seconds: float) -> Grid:
        return Grid(max(math.ceil(int(seconds * SAMPLES) / int(self.n_samples)), 1))

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows, self.n_samples


@tower("gemma4_unified.audio_config", config=Gemma4UnifiedAudio)
def forward(w: Weights, x: Array, grid: Grid, c: Gemma4UnifiedAudio, cache: KVCache) -> list[Array]:
    """The vectors of a sound for the text: [M I] -> [M D]."""
    return [linear(unit_norm(x, c.norm_eps), w, "model.embed_audio.embedding_projection", c.d_text)]
