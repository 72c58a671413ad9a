"""The vision tower of Ovis2: AIMv2's ViT, for tiles of one size; each token is a mean of rows of a table of its own.

A block of patches gets a score for every row of that table; the softmax of the scores are the shares in the mean. A
large image is cut into tiles, and is shown once more as a whole. Source: transformers 5.24, modeling_ovis2.py and
image_processing_ovis2.py (arXiv 2405.20797).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Size, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import embed_positions, layer_norm, linear, rms_norm, softmax
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .patches import OneSize, blocks, embed_patches, gated_maps, named_activation, separate_attention

MOST_TILES, COVERED = 12, 0.9  # the processor's: of an image; of its area, for which a few tiles will do


@config
class Ovis2Vision(OneSize):
    """Hyperparameters of Ovis2's vision tower, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 224)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("hidden_size", 1024)
    # layers
    n_layers: Size = key("num_hidden_layers", 24)
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_heads: Size = key("num_attention_heads", 8)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    bias: bool = key("qkv_bias", False)
    d_ff: Size = key("intermediate_size", 2816)
    activation: str = key("hidden_act", "silu")
    mlp_bias: bool = key("mlp_bias", False)
    # the table
    merge: Size = key("hidden_stride", 1)
    n_rows: Size = key("vocab_size", 16384)
    n_indicators: Size = key("num_visual_indicator_tokens", 5)
    head_eps: Positive = fixed(1e-5)
    shares: Literal["softmax"] = key("tokenize_function", "softmax")
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"visual_indicator_token_ids"})

    def check(self) -> None:
        super().check()
        if int(self.n_indicators) >= int(self.n_rows):
            raise Problem(f"vocab_size = {int(self.n_rows)}", "it has more rows than num_visual_indicator_tokens")

    def tiles(self, height: int, width: int) -> int:
        return covering_tiles(height, width, int(self.image_size))

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        return tokens


def covering_tiles(height: int, width: int, side: int) -> int:
    """The number of tiles of an image: the fewest that nearly keep its area, or those that keep most of it."""
    found: list[tuple[int, float]] = []
    shapes = [(columns, rows) for columns in range(1, MOST_TILES + 1) for rows in range(1, MOST_TILES // columns + 1)]
    for columns, rows in sorted(shapes, key=lambda shape: shape[0] * shape[1]):
        kept = 0.0
        wide, high = width // columns, height // rows
        for i in range(columns):
            for j in range(rows):
                w = width - i * wide if i == columns - 1 else wide
                h = height - j * high if j == rows - 1 else high
                longer, shorter = max(w, h), min(w, h)
                kept += side * shorter * side / longer if longer > side else longer * shorter
        found.append((columns * rows, kept / (width * height)))
    enough = [one for one in found if one[1] > COVERED]
    if enough:
        return min(enough, key=lambda one: (one[0], -one[1]))[0]
    return min(found, key=lambda one: (-one[1], one[0]))[0]


@tower("ovis2.vision_config", config=Ovis2Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Ovis2Vision, cache: KVCache) -> list[Array]:
    """A tile's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.vision_tower")
    trunk = tower.at("transformer")
    kernel = c.n_channels, c.patch, c.patch
    x = embed_patches(x, trunk, "embeddings.patch_embedding", c.d_model, kernel, bias=True)
    x = rms_norm(x, trunk, "embeddings.rms_norm", c.norm_eps)
    places = np.arange(x.shape[0], like=x)
    x = x + embed_positions(places, trunk, "embeddings.position_embedding.weight", x.shape[0], c.d_model)
    for _, w_layer, _ in trunk.layers("encoder.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    x = blocks(rms_norm(x, trunk, "rms_norm", c.norm_eps), grid, c.merge)
    return [visual_tokens(x.reshape(x.shape[0], c.merge * c.merge * c.d_model), w, c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Ovis2Vision) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    y = rms_norm(x, w, "rms_norm1", c.norm_eps)
    x = x + separate_attention(y, w.at("attention"), c.n_heads, c.d_head, "out_proj", bias=c.bias)
    y = rms_norm(x, w, "rms_norm2", c.norm_eps)
    return x + gated_maps(y, w.at("ffn"), c.d_ff, c.d_model, named_activation(c.activation), bias=c.mlp_bias)


@step(Role.FEED_FORWARD)
def visual_tokens(x: Array, w: Weights, c: Ovis2Vision) -> Array:
    """A mean of the table's rows for each block of patches; the last rows mark tiles: [M m²·D] -> [M V] -> [M O]."""
    V = c.n_rows
    scores = linear(x, w, "model.vision_tower.head_linear", V - c.n_indicators)
    shares = softmax(layer_norm(scores, w, "model.vision_tower.head_norm", c.head_eps))
    shares = np.pad(shares, ((0, 0), (0, c.n_indicators)))
    return np.einsum("mv,vo->mo", shares, w("model.visual_embeddings_table.weight", V, c.d_text), optimize=True)
