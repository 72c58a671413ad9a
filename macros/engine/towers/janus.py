"""The vision tower of Janus: a ViT for images of one size, with a vector for each patch, mapped several times.

It is for reading: the parts that draw images are not counted. Source: transformers 5.24, modeling_janus.py (arXiv
2501.17811).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Size, config, derived, key
from ..interface import Array, KVCache, Weights
from ..ops import attend, embed_positions, heads, layer_norm, linear
from ..steps import Role, step
from . import Grid, tower
from .patches import OneSize, embed_patches, named_activation, two_maps


@config
class JanusVision(OneSize):
    """Hyperparameters of Janus's vision tower and aligner, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 384)
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 1024)
    # layers
    n_layers: Size = key("num_hidden_layers", 24)
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    bias: bool = key("attention_bias", True)
    qk_norm: Literal[False] = key("use_qk_norm", False)
    mlp_ratio: Positive = key("mlp_ratio", 4.0)
    d_ff: Size = derived(lambda c: int(c.d_model * c.mlp_ratio))
    activation: str = key("hidden_act", "gelu")
    # aligner
    n_aligner: Size = key("depth", 2)
    d_text: Size = key("projection_dim", 2048)

    ignored = frozenset({"hidden_dropout_rate", "num_image_tokens", "projection_dropout"})


@tower("janus.vision_config", config=JanusVision)
def forward(w: Weights, x: Array, grid: Grid, c: JanusVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P D]."""
    tower = w.at("model.vision_model")
    kernel = c.n_channels, c.patch, c.patch
    x = embed_patches(x, tower, "embeddings.patch_embedding", c.d_model, kernel, bias=True)
    places = np.arange(x.shape[0], like=x)
    x = x + embed_positions(places, tower, "embeddings.position_embedding.weight", x.shape[0], c.d_model)
    for _, w_layer, _ in tower.layers("encoder.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return [align(layer_norm(x, tower, "post_layernorm", c.norm_eps), w.at("model.aligner"), c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: JanusVision) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    x = x + attention(layer_norm(x, w, "layer_norm1", c.norm_eps), w.at("self_attn"), c)
    y = layer_norm(x, w, "layer_norm2", c.norm_eps)
    return x + two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: JanusVision) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=c.bias), c.n_heads, c.d_head)
        for name in ("q_proj", "k_proj", "v_proj")
    )
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "projection_layer", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def align(x: Array, w: Weights, c: JanusVision) -> Array:
    """Map each vector several times: [P D] -> [P O]."""
    x = linear(x, w, "fc1", c.d_text, bias=True)
    for i in range(int(c.n_aligner) - 1):
        x = linear(named_activation(c.activation)(x), w, f"hidden_layers.{i}", c.d_text, bias=True)
    return x
