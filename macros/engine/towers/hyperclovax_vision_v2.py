"""The vision tower of HyperCLOVA X SEED Think 32B: Qwen2.5-VL's, followed by one more matrix.

Source: transformers 5.24, modeling_hyperclovax_vision_v2.py.
"""

from __future__ import annotations

from ..architectures.config import Size, config, key
from ..interface import Array, KVCache, Weights
from ..ops import linear
from . import TEXT_WIDTH, Grid, tower
from .qwen2_5_vl import Qwen25Vision, read


@config
class HyperClovaXVision(Qwen25Vision):
    """Hyperparameters of Qwen2.5-VL's vision tower and the projector, in forward order."""

    d_out: Size = key(TEXT_WIDTH)


@tower("hyperclovax_vision_v2.vision_config", config=HyperClovaXVision)
def forward(w: Weights, x: Array, grid: Grid, c: HyperClovaXVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    x = read(w.at("model.vision_model"), x, grid, c, cache)
    return [linear(x, w, "model.projector", c.d_out, bias=True)]
