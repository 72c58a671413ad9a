"""The vision tower of Phi-4 multimodal: SigLIP for tiles of one size; vectors are averaged four to one and projected.

The vectors are those before the last layer; that layer, and a vector of the whole tile, are computed and not used. An
image is cut into up to 36 tiles, after which it comes once more as a whole; a trained vector ends each row, and another
separates both. Source: transformers 5.24, modeling_phi4_multimodal.py and image_processing_phi4_multimodal.py (arXiv
2503.01743).
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Size, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import embed_positions, gelu, layer_norm
from . import TEXT_WIDTH, Grid, tower
from .internvl import tiled
from .patches import OneSize, blocks, embed_patches, pooled, two_maps, vit_layer

MOST_TILES = 36  # of an image: the processor's


@config
class Phi4Vision(OneSize):
    """Hyperparameters of Phi-4 multimodal's vision tower and projector, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 448)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("hidden_size", 1152)
    # layers
    n_layers: Size = key("num_hidden_layers", 27)
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 4304)
    activation: str = key("hidden_act", "gelu_pytorch_tanh")
    feature_layer: int = key("feature_layer", -2)
    # projector
    merge: int = fixed(2)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"crop_size", "image_token_id"})

    def check(self) -> None:
        super().check()
        if not 0 <= self.used <= self.n_layers:
            raise Problem(f"feature_layer = {self.feature_layer}", "give a layer of this tower")

    @property
    def used(self) -> int:
        """The layers whose vectors the text gets."""
        return self.feature_layer if self.feature_layer >= 0 else int(self.n_layers) + 1 + self.feature_layer

    @property
    def kinds(self) -> list[str]:
        """Whether each layer's output reaches the text."""
        return ["layer" if i < self.used else "unused" for i in range(self.n_layers)]

    def shape(self, height: int, width: int) -> tuple[int, int]:
        """The rows and columns of tiles of an image."""
        size = int(self.image_size)
        rows, columns = math.ceil(height / size), math.ceil(width / size)
        return (rows, columns) if rows * columns <= MOST_TILES else tiled(height, width, size, 1, MOST_TILES)

    def grid(self, height: int, width: int) -> Grid:
        rows, columns = self.shape(height, width)
        return Grid(int(self.patch_rows), int(self.patch_rows), rows * columns + 1)

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        size, side = int(self.image_size), int(self.patch_rows)
        rows, columns = self.shape(height, width)
        by_height, by_width = rows * size / height, columns * size / width
        below = rows * size - int(height * by_width) if by_width < by_height else 0
        right = 0 if by_width < by_height else columns * size - int(width * by_height)
        high = math.ceil((rows * side - below // int(self.patch)) / 2)
        wide = math.ceil((columns * side - right // int(self.patch)) / 2)
        return side**2 // 4 + side // 2 + 1 + high * wide + high


@tower("phi4_multimodal.vision_config", config=Phi4Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Phi4Vision, cache: KVCache) -> list[Array]:
    """A tile's vectors for the text model: [P I] -> [P/4 D]."""
    w = w.at("model.embed_tokens_extend.image_embed")
    tower = w.at("img_processor")
    kernel = c.n_channels, c.patch, c.patch
    x = embed_patches(x, tower, "embeddings.patch_embedding", c.d_model, kernel, bias=True)
    places = np.arange(x.shape[0], like=x)
    x = x + embed_positions(places, tower, "embeddings.position_embedding.weight", x.shape[0], c.d_model)
    last = x
    for kind, w_layer, _ in tower.layers("encoder.layers", c.kinds, cache):
        last = vit_layer(last, w_layer, c)
        x = last if kind == "layer" else x
    pooled(layer_norm(last, tower, "post_layernorm", c.norm_eps), tower.at("head"), c)  # which nothing reads
    w("global_img_feature_extensor", 1, 1, c.d_model)  # the vector between tiles and the whole
    w("sub_img_feature_extensor", 1, 1, 1, c.d_model)  # the vector after each row
    x = blocks(x, grid, c.merge).mean(axis=1)
    return [two_maps(x, w, ("img_projection_up", "img_projection_down"), c.d_text, c.d_text, gelu)]
