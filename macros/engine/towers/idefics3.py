"""The vision tower of Idefics3 and SmolVLM: SigLIP for tiles of one size, whose patches are joined and mapped.

An image is resized until its longer side has four tiles, cut into them, and shown once more as a whole. Source:
transformers 5.24, modeling_idefics3.py and image_processing_idefics3.py (arXiv 2408.12637, 2504.05299).
"""

from __future__ import annotations

import math

from ..architectures.config import Size, config, derived, key
from ..interface import Array, KVCache, Weights
from ..ops import linear
from . import TEXT_WIDTH, Grid, tower
from .patches import blocks
from .siglip import Siglip, encode

LONGER_SIDE = 4  # tiles of an image's longer side: the processor's


@config
class Idefics3Vision(Siglip):
    """SigLIP and Idefics3's connector."""

    image_size: Size = key("image_size", 224)
    patch: Size = key("patch_size", 32)
    d_model: Size = key("hidden_size", 1152)
    n_layers: Size = key("num_hidden_layers", 12)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 3072)
    merge: Size = key("scale_factor", 2)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"max_image_size", "size", "use_base_siglip"})

    def grid(self, height: int, width: int) -> Grid:
        longer, ratio = LONGER_SIDE * int(self.image_size), width / height
        shorter = even(longer / ratio if width >= height else longer * ratio)
        return Grid(
            int(self.patch_rows), int(self.patch_rows), LONGER_SIDE * math.ceil(shorter / int(self.image_size)) + 1
        )


def even(length: float) -> int:
    """A side in whole pixels: an even number, at least one."""
    pixels = int(length)
    return max(pixels + pixels % 2, 1)


@tower("idefics3.vision_config", "smolvlm.vision_config", config=Idefics3Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Idefics3Vision, cache: KVCache) -> list[Array]:
    """A tile's vectors for the text model: [P I] -> [P/m² D]."""
    return [read(w, x, grid, c, cache, "modality_projection.proj")]


def read(w: Weights, x: Array, grid: Grid, c: Idefics3Vision, cache: KVCache, projection: str) -> Array:
    """The vectors of a tile, joined and projected: [P I] -> [P/m² D]."""
    x = blocks(encode(w.at("model.vision_model"), x, grid, c, cache), grid, c.merge)
    x = x.reshape(x.shape[0], c.merge * c.merge * c.d_model)
    return linear(x, w, f"model.connector.{projection}", c.d_text)
