"""The vision tower of ModernVBERT: Idefics3's, before a text encoder.

Source: transformers 5.24, modeling_modernvbert.py (arXiv 2510.01149).
"""

from __future__ import annotations

from ..architectures.config import Size, config, derived, key
from ..interface import Array, KVCache, Weights
from . import Grid, tower
from .idefics3 import Idefics3Vision, read


@config
class ModernVBertVision(Idefics3Vision):
    """SigLIP and ModernVBERT's connector."""

    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 768)
    n_heads: Size = key("num_attention_heads", 12)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    merge: Size = key("pixel_shuffle_factor", 4)


@tower("modernvbert.vision_config", config=ModernVBertVision)
def forward(w: Weights, x: Array, grid: Grid, c: ModernVBertVision, cache: KVCache) -> list[Array]:
    """A tile's vectors for the text model: [P I] -> [P/m² D]."""
    return [read(w, x, grid, c, cache, "modality_projection")]
