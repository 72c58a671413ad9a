"""The vision tower of Gemma 3: SigLIP, for images of one size, whose vectors are averaged in blocks and projected.

Source: transformers 5.23, modeling_siglip.py and modeling_gemma3.py (SigLIP: arXiv 2303.15343).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ..architectures.config import Positive, Size, config, derived, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import embed_positions, layer_norm, rms_norm
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, tower
from .patches import OneSize, Vit, blocks, embed_patches, vit_layer


@config
class Siglip(OneSize):
    """Hyperparameters of SigLIP's vision model, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size")
    patch: Size = key("patch_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "gelu_pytorch_tanh")
    pooled: Literal[False] = key("vision_use_head", False)  # one vector of the whole image: no text model reads it


@config
class Gemma3Vision(Siglip):
    """SigLIP and Gemma 3's projector."""

    n_image_tokens: Size = key("mm_tokens_per_image", 256)
    d_text: Size = key(TEXT_WIDTH)

    def check(self) -> None:
        super().check()
        side, patches = math.isqrt(int(self.n_image_tokens)), int(self.image_size) // int(self.patch)
        if side * side != int(self.n_image_tokens) or patches % side:
            raise Problem(
                f"mm_tokens_per_image = {int(self.n_image_tokens)}, and an image has {patches} × {patches} patches",
                "give a square whose side divides theirs",
            )

    def declared(self, grid: Grid, run: Trace) -> Grid:
        side = math.isqrt(int(self.n_image_tokens))
        rows = run.declare("n_token_rows", side) * run.declare("pool", grid.rows // side)
        return Grid(rows, rows, grid.count)


@tower("gemma3.vision_config", "shieldgemma2.vision_config", config=Gemma3Vision, of_type="siglip_vision_model")
def forward(w: Weights, x: Array, grid: Grid, c: Gemma3Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [M D]."""
    x = encode(w.at("model.vision_tower"), x, grid, c, cache)
    return [project(x, w.at("model.multi_modal_projector"), grid, c)]


def encode(w: Weights, x: Array, grid: Grid, c: Siglip | Vit, cache: KVCache, *, normed: bool = True) -> Array:
    """SigLIP's vectors of an image, one for each patch: [P I] -> [P D]. If not `normed`, those before the last norm."""
    kernel = c.n_channels, c.patch, c.patch
    x = embed_patches(x, w, "embeddings.patch_embedding", c.d_model, kernel, bias=True)
    places = np.arange(x.shape[0], like=x)
    x = x + embed_positions(places, w, "embeddings.position_embedding.weight", x.shape[0], c.d_model)
    for _, w_layer, _ in w.layers("encoder.layers", ["layer"] * c.n_layers, cache):
        x = vit_layer(x, w_layer, c)
    y = layer_norm(x, w, "post_layernorm", c.norm_eps)
    return y if normed else x


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, grid: Grid, c: Gemma3Vision) -> Array:
    """The mean of each block of patches, normalized and projected: [P D] -> [M D] -> [M O]."""
    pool = grid.rows // math.isqrt(int(c.n_image_tokens))
    x = rms_norm(blocks(x, grid, pool).mean(axis=1), w, "mm_soft_emb_norm", c.norm_eps, offset=1.0)
    return np.einsum("md,do->mo", x, w("mm_input_projection_weight", c.d_model, c.d_text), optimize=True)
