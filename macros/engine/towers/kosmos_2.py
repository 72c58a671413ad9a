"""The vision tower of KOSMOS-2: CLIP's ViT, at whose vectors trained ones look.

Source: transformers 5.23, modeling_kosmos2.py (arXiv 2306.14824).
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Size, config, derived, key
from ..interface import Array, KVCache, Weights
from ..ops import attend, heads, layer_norm, linear
from ..steps import Role, step
from . import OF_TEXT, Grid, tower
from .clip import embed
from .patches import OneSize, vit_layer


@config
class Kosmos2Vision(OneSize):
    """Hyperparameters of KOSMOS-2's vision tower, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 224)
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
    n_latents: Size = key("latent_query_num", 64)
    d_text: Size = key(OF_TEXT + "embed_dim", 2048)
    n_latent_heads: Size = key(OF_TEXT + "attention_heads", 32)

    ignored = frozenset({"projection_dim", "initializer_factor"})

    def check(self) -> None:
        super().check()
        self.must_divide("n_latent_heads", "d_text")


@tower("kosmos-2.vision_config", config=Kosmos2Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Kosmos2Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [M D]."""
    tower, projector = w.at("vision_model.model"), w.at("image_to_text_projection")
    x = embed(x, tower, c)
    for _, w_layer, _ in tower.layers("encoder.layers", ["layer"] * c.n_layers, cache):
        x = vit_layer(x, w_layer, c)
    x = layer_norm(x, tower, "post_layernorm", c.norm_eps)
    return [gather(x, projector, c.n_latents, c.d_text, c.n_latent_heads)]


@step(Role.FEED_FORWARD)
def gather(x: Array, w: Weights, number: int, wide: int, n_heads: int) -> Array:
    """Trained vectors that look at an image's, of length 1 each, and at each other: [P D] -> [M O]."""
    x = x / np.maximum(np.sqrt((x * x).sum(axis=-1, keepdims=True)), 1e-12)
    x = linear(x, w, "dense", wide, bias=True)
    latents = w("latent_query", number, wide)
    return look(latents, np.concatenate([x, latents], axis=0), w.at("x_attn"), n_heads)


@step(Role.ATTENTION)
def look(latents: Array, both: Array, w: Weights, n_heads: int) -> Array:
    """Let each trained vector gather information from all patches and trained vectors: [M D], [P+M D] -> [M D]."""
    wide = latents.shape[1]
    width = wide // n_heads
    q, k, v = (
        heads(linear(part, w, name, wide, bias=True), n_heads, width)
        for part, name in ((latents, "q_proj"), (both, "k_proj"), (both, "v_proj"))
    )
    return linear(attend(q, k, v, None, width**-0.5), w, "out_proj", wide, bias=True)
