"""The vision tower of BLIP: the ViT of BLIP-2, all of whose vectors the text model reads by cross-attention.

Source: transformers 5.24, modeling_blip.py (arXiv 2201.12086).
"""

from __future__ import annotations

from ..architectures.config import Positive, Size, config, derived, key
from ..interface import Array, KVCache, Weights
from . import Grid, tower
from .blip_2 import Vit, encode


@config
class BlipVision(Vit):
    """Hyperparameters of BLIP's vision tower, in forward order."""

    image_size: Size = key("image_size", 384)
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 768)
    n_layers: Size = key("num_hidden_layers", 12)
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    n_heads: Size = key("num_attention_heads", 12)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 3072)

    ignored = frozenset(
        "image_text_hidden_size initializer_factor label_smoothing logit_scale_init_value projection_dim".split()
    )


@tower("blip.vision_config", config=BlipVision)
def forward(w: Weights, x: Array, grid: Grid, c: BlipVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P + 1 D]."""
    return [encode(w.at("vision_model"), x, c, cache)]
