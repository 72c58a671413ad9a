"""SigLIP 2's vision model for images of any size, which several towers have.

Positions are a learned table, stretched over the image; where the image is smaller, averaged. Source: transformers
5.23, modeling_siglip2.py (arXiv 2502.14786).
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Size, config, derived, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import layer_norm, linear
from ..steps import Keeps, Role, step
from . import Grid
from .patches import AnySize, places, vit_layer


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


@step(Role.EMBED_POSITIONS, keeps=Keeps.NOTHING)
def averaged_positions(row: Array, column: Array, table: Array, side: int, grid: Grid) -> Array:
    """The position table, a square of `side`, stretched over the grid from border to border; each patch gets a mean of
    all rows of it that it covers, by distance: [P], [P], [side² D] -> [P D]."""
    total = np.zeros((1, table.shape[1]), np.float32, like=table)
    down, right = covered(row, side, int(grid.rows)), covered(column, side, int(grid.columns))
    for y, y_share in down:
        for x, x_share in right:
            total = total + np.take(table, y * side + x, axis=0) * (y_share * x_share).astype(np.float32)[:, None]
    return total


def covered(place: Array, side: int, size: int) -> list[tuple[Array, Array]]:
    """The places on the table's axis that a patch's place is a mean of, each with its share."""
    scale = side / size
    reach = max(scale, 1.0)
    centre = (place + 0.5) * scale
    first = np.floor(centre - reach + 0.5)
    found: list[tuple[Array, Array]] = []
    for number in range(2 * math.ceil(reach) + 1):
        at = first + number
        share = np.maximum(1 - np.abs(at + 0.5 - centre) / reach, 0) * ((at >= 0) & (at < side))
        found.append((np.clip(at, 0, side - 1).astype(np.int64), share))
    whole: Array = found[0][1]
    for _, share in found[1:]:
        whole = whole + share
    return [(at, share / whole) for at, share in found]
