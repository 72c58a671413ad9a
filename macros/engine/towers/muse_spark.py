"""The vision tower of Muse Spark: that of Muse Glimmer, with another epsilon. Source: transformers 5.24,
modeling_muse_spark.py.
"""

from __future__ import annotations

from ..architectures.config import Positive, config, key
from ..interface import Array, KVCache, Weights
from . import OF_TEXT, Grid, tower
from .muse_glimmer import MuseGlimmerVision, encode


@config
class MuseSparkVision(MuseGlimmerVision):
    """Hyperparameters of Muse Spark's vision tower: those of Muse Glimmer's."""

    text_eps: Positive = key(OF_TEXT + "rms_norm_eps", 1e-5)


@tower("muse_spark.vision_config", config=MuseSparkVision)
def forward(w: Weights, x: Array, grid: Grid, c: MuseSparkVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    return [encode(w, x, grid, c, cache)]
