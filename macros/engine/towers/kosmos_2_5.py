"""The vision tower of KOSMOS-2.5: Pix2Struct's, and trained queries that attend to its vectors, as in KOSMOS-2.

Source: transformers 5.23, modeling_kosmos2_5.py and image_processing_kosmos2_5.py (arXiv 2309.11419).
"""

from __future__ import annotations

from ..architectures.config import Size, config, derived, fixed, key
from ..interface import Array, KVCache, Weights
from . import OF_TEXT, Grid, tower
from .kosmos_2 import gather
from .pix2struct import Pix2StructVision, encode


@config
class Kosmos25Vision(Pix2StructVision):
    """Hyperparameters of KOSMOS-2.5's vision tower, in forward order."""

    d_model: Size = key("hidden_size", 1536)
    n_places: Size = key("max_num_patches", 4096)
    most: int = derived(lambda c: int(c.n_places))
    n_layers: Size = key("num_hidden_layers", 18)
    n_heads: Size = key("num_attention_heads", 24)
    d_head: Size = key("head_dim", 64)
    is_scaled: bool = fixed(True)
    d_ff: Size = key("intermediate_size", 3968)
    # projector
    n_latents: Size = key("latent_query_num", 2048)
    d_text: Size = key(OF_TEXT + "embed_dim", 1536)
    n_latent_heads: Size = key(OF_TEXT + "attention_heads", 16)

    def check(self) -> None:
        super().check()
        self.must_divide("n_latent_heads", "d_text")


@tower("kosmos-2.5.vision_config", config=Kosmos25Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Kosmos25Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [M D]."""
    x = encode(w.at("vision_model"), x, grid, c, cache)
    return [gather(x, w.at("image_to_text_projection"), c.n_latents, c.d_text, c.n_latent_heads)]
