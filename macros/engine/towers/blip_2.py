"""The vision tower of BLIP-2: a ViT for images of one size, from whose vectors a Q-Former's few gather information.

Source: transformers 5.23, modeling_blip_2.py (arXiv 2301.12597).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Size, activation, config, derived, fixed, key
from ..interface import Array, KVCache, Weights
from ..ops import layer_norm, linear
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .patches import OneSize, embed_patches, joint_attention, named_activation, two_maps
from .qformer import QFormer, qformer_of
from .qformer import encode as gather

QFORMER = "qformer_config."


@config
class Vit(OneSize):
    """Hyperparameters of BLIP-2's ViT, in forward order."""

    # patches
    n_channels: Size = fixed(3)
    image_size: Size = key("image_size", 224)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("hidden_size", 1408)
    # layers
    n_layers: Size = key("num_hidden_layers", 39)
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 6144)
    activation: str = key("hidden_act", "gelu")


@config
class Blip2Vision(Vit):
    """BLIP-2's ViT and Q-Former."""

    beside = ("qformer_config",)

    bias: Literal[True] = key("qkv_bias", True)
    n_queries: Size = key("num_query_tokens", 32)
    d_qformer: Size = key(QFORMER + "hidden_size", 768)
    n_qformer_layers: Size = key(QFORMER + "num_hidden_layers", 12)
    period: Size = key(QFORMER + "cross_attention_frequency", 2)
    n_qformer_heads: Size = key(QFORMER + "num_attention_heads", 12)
    qformer_eps: Positive = key(QFORMER + "layer_norm_eps", 1e-12)
    d_qformer_ff: Size = key(QFORMER + "intermediate_size", 3072)
    qformer_activation: str = key(QFORMER + "hidden_act", "gelu")
    reads_text: bool = key(QFORMER + "use_qformer_text_input", False)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset(
        f"""image_text_hidden_size {QFORMER}encoder_hidden_size {QFORMER}hidden_dropout_prob
        {QFORMER}attention_probs_dropout_prob {QFORMER}max_position_embeddings {QFORMER}vocab_size""".split()
    )

    def check(self) -> None:
        super().check()
        self.must_divide("n_qformer_heads", "d_qformer")
        activation(self.qformer_activation)

    @property
    def qformer(self) -> QFormer:
        """The sizes of the Q-Former."""
        return qformer_of(self, self.n_qformer_heads, self.reads_text)


@tower("blip-2.vision_config", config=Blip2Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Blip2Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [M D]."""
    x = encode(w.at("vision_model"), x, c, cache)
    y = w("query_tokens", 1, c.n_queries, c.d_qformer)[0]
    y = layer_norm(y, w, "qformer.layernorm", c.qformer_eps)
    y = gather(y, x, w.at("qformer"), c.qformer, cache)
    return [linear(y, w, "language_projection", c.d_text, bias=True)]


def encode(w: Weights, x: Array, c: Vit, cache: KVCache) -> Array:
    """The ViT's vectors of an image, after one of the whole: [P I] -> [P + 1 D]."""
    x = embed_patches(x, w, "embeddings.patch_embedding", c.d_model, (c.n_channels, c.patch, c.patch), bias=True)
    x = np.concatenate([w("embeddings.class_embedding", 1, 1, c.d_model)[0], x], axis=0)
    x = x + w("embeddings.position_embedding", 1, x.shape[0], c.d_model)[0]
    for _, w_layer, _ in w.layers("encoder.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return layer_norm(x, w, "post_layernorm", c.norm_eps)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Vit) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    y = layer_norm(x, w, "layer_norm1", c.norm_eps)
    x = x + joint_attention(y, w.at("self_attn"), c.n_heads, c.d_head, None, "qkv", "projection")
    y = layer_norm(x, w, "layer_norm2", c.norm_eps)
    return x + two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))
