"""SigLIP 2's vision model for images of any size, which several towers have.

Positions are a learned table, stretched over the image; where the image is smaller, averaged. Source: transformers
5.23, modeling_siglip2.py (arXiv 2502.14786).
"""

from __future__ import annotations

import math

from ..architectures.config import Positive, Size, config, derived, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import layer_norm, linear
from . import Grid
from .patches import AnySize, averaged_positions, places, vit_layer


@config
class Siglip2(AnySize):
    """Hyperparameters of SigLIP 2's vision model, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 768)
    n_positions: Size = key("num_patches", 256)
    # layers
    n_layers: Size = key("num_hidden_layers", 12)
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads", 12)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 3072)
    activation: str = key("hidden_act", "gelu_pytorch_tanh")

    def check(self) -> None:
        super().check()
        if math.isqrt(int(self.n_positions)) ** 2 != int(self.n_positions):
            raise Problem(f"num_patches = {int(self.n_positions)} is no square", "correct the value")


def encode(w: Weights, x: Array, grid: Grid, c: Siglip2, cache: KVCache, merge: int = 1) -> Array:
    """SigLIP 2's vectors of an image, one for each patch: [P I] -> [P D]."""
    row, column = places(x, grid.rows, grid.columns, merge)
    x = linear(x, w, "embeddings.patch_embedding", c.d_model, bias=True)
    table = w("embeddings.position_embedding.weight", c.n_positions, c.d_model)
    x = x + averaged_positions(row, column, table, math.isqrt(int(c.n_positions)), grid)
    for _, w_layer, _ in w.layers("encoder.layers", ["layer"] * c.n_layers, cache):
        x = vit_layer(x, w_layer, c)
    return layer_norm(x, w, "post_layernorm", c.norm_eps)
