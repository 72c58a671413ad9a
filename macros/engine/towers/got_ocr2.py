"""The vision tower of GOT-OCR 2: SAM's ViT, for images of one size; two convolutions make one vector of sixteen.

Source: transformers 5.24, modeling_got_ocr2.py (arXiv 2409.01704).
"""

from __future__ import annotations

from ..architectures.config import Size, config, key
from ..interface import Array, KVCache, Weights
from ..ops import linear
from . import TEXT_WIDTH, Grid, tower
from .sam import SamVision, convolved, encode


@config
class GotOcr2Vision(SamVision):
    """Hyperparameters of SAM's vision model and GOT-OCR 2's projector, in forward order."""

    d_text: Size = key(TEXT_WIDTH)


@tower("got_ocr2.vision_config", "pp_chart2table.vision_config", config=GotOcr2Vision)
def forward(w: Weights, x: Array, grid: Grid, c: GotOcr2Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/16 D]."""
    x = encode(w.at("model.vision_tower"), x, grid, c, cache)
    projector = w.at("model.multi_modal_projector")
    x = convolved(x, projector, "conv_upsampler1", 2 * c.d_neck, 2)
    x = convolved(x, projector, "conv_upsampler2", c.d_text, 2)
    x = x.reshape(x.shape[0] * x.shape[1], c.d_text)
    return [linear(x, projector, "multimodal_projector", c.d_text, bias=True)]
