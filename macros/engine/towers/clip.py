"""The vision tower of LLaVA: CLIP's ViT, for images of one size, with a vector for each patch, projected.

The vectors are those before the last layer; that layer is computed and not used. A class token comes before the
patches, and is dropped. Source: transformers 5.23, modeling_clip.py and modeling_llava.py (arXiv 2103.00020,
2304.08485).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Size, activation, config, derived, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import embed_positions, layer_norm
from . import TEXT_WIDTH, Grid, tower
from .patches import OneSize, Patches, embed_patches, two_maps, vit_layer


@config
class Clip(OneSize):
    """Hyperparameters of CLIP's vision model and LLaVA's projector, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 336)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("hidden_size", 1024)
    # layers
    n_layers: Size = key("num_hidden_layers", 24)
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 4096)
    activation: str = key("hidden_act", "quick_gelu")
    # projector
    feature_layer: int = key("vision_feature_layer", -2)
    strategy: Literal["default", "full"] = key("vision_feature_select_strategy", "default")
    bias: bool = key("multimodal_projector_bias", True)
    projector_activation: str = key("projector_hidden_act", "gelu")
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"projection_dim", "vocab_size", "image_seq_length"})

    def check(self) -> None:
        super().check()
        activation(self.projector_activation)
        if not 0 <= self.used <= self.n_layers:
            raise Problem(f"vision_feature_layer = {self.feature_layer}", "give a layer of this tower")

    @property
    def used(self) -> int:
        """The layers whose vectors the text gets."""
        return self.feature_layer if self.feature_layer >= 0 else int(self.n_layers) + 1 + self.feature_layer

    @property
    def kinds(self) -> list[str]:
        """Whether each layer's output reaches the text."""
        return ["layer" if i < self.used else "unused" for i in range(self.n_layers)]


@tower("llava.vision_config", config=Clip, of_type="clip_vision_model")
def forward(w: Weights, x: Array, grid: Grid, c: Clip, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P D]."""
    return [encode(w, x, c, cache)]


def encode(w: Weights, x: Array, c: Clip, cache: KVCache, name: str = "model.vision_tower") -> Array:
    """CLIP's vectors of an image, projected: [P I] -> [P D]."""
    tower = w.at(name)
    x = last = embed(x, tower, c)
    for kind, w_layer, _ in tower.layers("encoder.layers", c.kinds, cache):
        last = vit_layer(last, w_layer, c)
        x = last if kind == "layer" else x
    layer_norm(last[:1], tower, "post_layernorm", c.norm_eps)  # a vector of the whole image, which nothing reads
    x = x[1:] if c.strategy == "default" else x
    names = "linear_1", "linear_2"
    act = activation(c.projector_activation)
    return two_maps(x, w.at("model.multi_modal_projector"), names, c.d_text, c.d_text, act, bias=c.bias)


def embed(x: Array, tower: Weights, c: Patches) -> Array:
    """The vectors of the class token and the patches, with their positions: [P I] -> [P + 1 D]."""
    x = embed_patches(x, tower, "embeddings.patch_embedding", c.d_model, (c.n_channels, c.patch, c.patch), bias=False)
    x = np.concatenate([tower("embeddings.class_embedding", c.d_model)[None, :], x], axis=0)
    places = np.arange(x.shape[0], like=x)
    x = x + embed_positions(places, tower, "embeddings.position_embedding.weight", x.shape[0], c.d_model)
    return layer_norm(x, tower, "pre_layrnorm", c.norm_eps)
