"""The vision tower of PaliGemma: SigLIP, for images of one size, with a vector for each patch, projected by one matrix.

Source: transformers 5.24, modeling_siglip.py and modeling_paligemma.py (arXiv 2407.07726).
"""

from __future__ import annotations

from ..architectures.config import Size, config, key
from ..interface import Array, KVCache, Weights
from ..ops import linear
from . import TEXT_WIDTH, Grid, tower
from .siglip import Siglip, encode


@config
class PaliGemmaVision(Siglip):
    """SigLIP and PaliGemma's projector."""

    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"num_image_tokens", "vocab_size", "projection_dim", "projector_hidden_act"})


@tower("paligemma.vision_config", config=PaliGemmaVision, of_type="siglip_vision_model")
def forward(w: Weights, x: Array, grid: Grid, c: PaliGemmaVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P D]."""
    x = encode(w.at("model.vision_tower"), x, grid, c, cache)
    return [linear(x, w, "model.multi_modal_projector.linear", c.d_text, bias=True)]
