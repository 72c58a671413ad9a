"""The vision tower of Qwen2.5-Omni: that of Qwen2.5-VL, with separate matrices for queries, keys and values.

Source: transformers 5.24, modeling_qwen2_5_omni.py (arXiv 2503.20215).
"""

from __future__ import annotations

from ..architectures.config import config, fixed
from ..interface import Array, KVCache, Weights
from . import Grid, tower
from .qwen2_5_vl import Qwen25Vision, read


@config
class Qwen25OmniVision(Qwen25Vision):
    """Hyperparameters of Qwen2.5-VL's vision tower."""

    is_joint: bool = fixed(False)


@tower("qwen2_5_omni_thinker.vision_config", config=Qwen25OmniVision)
def forward(w: Weights, x: Array, grid: Grid, c: Qwen25OmniVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    return [read(w.at("model.visual"), x, grid, c, cache)]
