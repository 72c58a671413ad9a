"""A ViT as the image encoder of a decoder: TrOCR's. A token for the whole image precedes the patches.

Its vector is computed, and not used. Source: transformers 5.24, modeling_vit.py (arXiv 2010.11929).
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Raw, Size, config, derived, fixed, key
from ..interface import Array, KVCache, Weights
from ..ops import attend, heads, layer_norm, linear
from ..steps import Role, step
from . import Grid, tower
from .encoders import Encoder, seen
from .patches import OneSize, embed_patches, named_activation, one_side, two_maps


@config
class ViT(Encoder, OneSize):
    """Hyperparameters of a ViT, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 224)
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 768)
    tokens: tuple[str, ...] = fixed(("cls_token",))  # those before the patches
    # layers
    n_layers: Size = key("num_hidden_layers", 12)
    norm_eps: Positive = key("layer_norm_eps", 1e-12)
    n_heads: Size = key("num_attention_heads", 12)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    bias: bool = key("qkv_bias", True)
    d_ff: Size = key("intermediate_size", 3072)
    activation: str = key("hidden_act", "gelu")
    # pooler
    d_pooled: Size = key("pooler_output_size", lambda c: c.d_model)

    ignored = Encoder.ignored | frozenset({"attention_probs_dropout_prob", "encoder_stride", "pooler_act"})

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return one_side(raw, "image_size", "patch_size")

    def check(self) -> None:
        super().check()
        self.must_be_seen(self.d_model)


@tower("vision-encoder-decoder.encoder", config=ViT, of_type="vit")
def forward(w: Weights, x: Array, grid: Grid, c: ViT, cache: KVCache) -> list[Array]:
    """The vectors of an image for the decoder: [P I] -> [P + 1 D]."""
    tower = w.at("encoder")
    tables = tower.at("embeddings")
    shape = c.n_channels, c.patch, c.patch
    x = embed_patches(x, tables, "patch_embeddings.projection", c.d_model, shape, bias=True)
    x = np.concatenate([*(tables(name, 1, 1, c.d_model).reshape(1, c.d_model) for name in c.tokens), x], axis=0)
    places = np.arange(x.shape[0], like=x)
    x = x + np.take(tables("position_embeddings", 1, x.shape[0], c.d_model).reshape(*x.shape), places, axis=0)
    for _, w_layer, _ in tower.layers("layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    x = layer_norm(x, tower, "layernorm", c.norm_eps)
    linear(x[:1], tower, "pooler.dense", c.d_pooled, bias=True)  # a vector of the whole image, which nothing reads
    return [seen(x, w, c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: ViT) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    x = x + attention(layer_norm(x, w, "layernorm_before", c.norm_eps), w.at("attention"), c)
    y = layer_norm(x, w, "layernorm_after", c.norm_eps)
    return x + two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: ViT) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=c.bias), c.n_heads, c.d_head)
        for name in ("q_proj", "k_proj", "v_proj")
    )
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "o_proj", c.d_model, bias=True)
