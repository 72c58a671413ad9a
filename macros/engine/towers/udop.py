"""UDOP's image input: a convolution over patches, without an encoder.

A patch's vector is added to those of the tokens whose boxes have their middle in it; the others are tokens themselves.
The decoder has a map of its own, which it never uses. Source: transformers 5.24, modeling_udop.py (arXiv 2212.02623).
"""

from __future__ import annotations

from ..architectures.config import Size, config, key
from ..interface import Array, KVCache, Weights
from . import OF_TEXT, Grid, tower
from .patches import OneSize, embed_patches


@config
class UdopVision(OneSize):
    """Hyperparameters of UDOP's map of patches, in forward order. They are among the whole config's keys."""

    among_text = frozenset({"image_size", "num_channels", "patch_size"})

    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 224)
    patch: Size = key("patch_size", 16)
    d_model: Size = key(OF_TEXT + "d_model")

    def check(self) -> None:
        self.must_not_exceed("patch", "image_size")


@tower("udop.vision_config", config=UdopVision, has_table=False)
def forward(w: Weights, x: Array, grid: Grid, c: UdopVision, cache: KVCache) -> list[Array]:
    """The vectors of an image for the encoder: [P I] -> [P D]."""
    shape = c.n_channels, c.patch, c.patch
    unused = w.at("decoder.embed_patches.proj")
    unused("weight", c.d_model, *shape)
    unused("bias", c.d_model)
    return [embed_patches(x, w, "patch_embed.proj", c.d_model, shape, bias=True)]
