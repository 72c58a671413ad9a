"""The vision tower of DeepSeek-VL: SigLIP, for images of one size, with a vector for each patch, projected.

Source: transformers 5.24, modeling_siglip.py and modeling_deepseek_vl.py (arXiv 2403.05525).
"""

from __future__ import annotations

from ..architectures.config import Size, config, derived, key
from ..interface import Array, KVCache, Weights
from ..ops import gelu
from . import TEXT_WIDTH, Grid, tower
from .patches import two_maps
from .siglip import Siglip, encode


@config
class DeepseekVlVision(Siglip):
    """SigLIP and DeepSeek-VL's aligner."""

    image_size: Size = key("image_size", 224)
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 768)
    n_layers: Size = key("num_hidden_layers", 12)
    n_heads: Size = key("num_attention_heads", 12)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 3072)
    d_text: Size = key(TEXT_WIDTH)


@tower("deepseek_vl.vision_config", config=DeepseekVlVision, of_type="siglip_vision_model")
def forward(w: Weights, x: Array, grid: Grid, c: DeepseekVlVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P D]."""
    x = encode(w.at("model.vision_model"), x, grid, c, cache)
    return [two_maps(x, w.at("model.aligner"), ("linear1", "linear2"), c.d_text, c.d_text, gelu)]
