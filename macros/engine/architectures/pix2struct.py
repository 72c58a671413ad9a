"""Pix2Struct's text model: T5's decoder, which looks at the vectors of an image.

The image's vectors are this model's input beside the text, as what an encoder read would be: `t5` explains the two
lengths. Source: arXiv 2210.03347; tensor names as transformers' text decoder alone (Pix2StructTextModel).
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import Full, attend, causal_mask, embed, heads, linear, positions, relative_bias, rms_norm, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Size, activation, config, key
from .otherwise import Otherwise, not_being, other_than
from .tasks import NONE

FIRST = "layer.0.self_attention.attention"  # which has the table of distances of all layers


OTHER_WAY = "transformers 5.24 reads the text in another way then"


@config
class Pix2StructText(Config):
    """Hyperparameters of Pix2Struct's text model, in forward order.

    `n_source`: the patches of an image, which no published file of the text model says.
    """

    # embedding
    vocab_size: Size = key("vocab_size")
    n_source: Size = key("num_image_tokens", 2048)
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_layers", also=("num_hidden_layers",))
    norm_eps: Positive = key("layer_norm_epsilon", 1e-6)
    # attention
    n_heads: Size = key("num_heads", also=("num_attention_heads",))
    d_head: Size = key("d_kv")
    n_buckets: Size = key("relative_attention_num_buckets", 32)
    longest_distance: Size = key("relative_attention_max_distance", 128)
    # feed-forward
    d_ff: Size = key("d_ff")
    activation: str = key("dense_act_fn", "gelu_new")
    # head
    tied: bool = key("tie_word_embeddings", False)

    caveat = (
        "A decoder that looks at an image: the costs are those of a text behind one image, without what the vision "
        "encoder computes."
    )
    ignored = frozenset({"dropout_rate", "feed_forward_proj", "is_gated_act", "encoder_hidden_size"})

    otherwise = (
        Otherwise("is_decoder", other_than("is_decoder", True), OTHER_WAY),
        Otherwise("is_encoder_decoder", not_being("is_encoder_decoder", True), OTHER_WAY),
    )

    def check(self) -> None:
        activation(self.activation)
        self.must_not_exceed("n_buckets", "longest_distance")
        if self.n_heads * self.d_head != self.d_model:
            raise Problem(
                f"num_heads · d_kv = {int(self.n_heads * self.d_head)} for hidden_size = {int(self.d_model)}",
                "correct one of them: the heads together are as wide as the vector",
            )

    @property
    def source_shape(self) -> tuple[int, int] | None:
        return self.n_source, self.d_model


@architecture(
    "pix2struct_text_model",
    config=Pix2StructText,
    heads=NONE,
    classes={"pix2struct_text_model": "Pix2StructTextModel"},  # transformers 5.24, models/pix2struct
)
def forward(w: Weights, ids: Array, c: Pix2StructText, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T], and the image's vectors [M D] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source, c.d_model)
    read = source if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    x = embed(ids, w, "embed_tokens.weight", c.vocab_size, c.d_model)
    seen, name = np.arange(ids.shape[0] + cache.length, like=ids), f"{FIRST}.relative_attention_bias.weight"
    bias = relative_bias(
        positions(ids, cache), seen, w, name, c.n_buckets, c.n_heads, c.longest_distance, to_both_sides=False
    )
    for _, w_layer, kept in w.layers("layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, kept, c, bias, read)
    x = rms_norm(x, w, "final_layer_norm", c.norm_eps)
    return unembed(x, w, "embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Pix2StructText, bias: Array, read: Array) -> Array:
    """One transformer block: [T D] -> [T D]."""
    own, cross, mlp = w.at("self_attention"), w.at("encoder_decoder_attention"), w.at("mlp")
    x = x + causal_attention(rms_norm(x, own, "layer_norm", c.norm_eps), own.at("attention"), cache, c, bias)
    x = x + cross_attention(rms_norm(x, cross, "layer_norm", c.norm_eps), cross.at("attention"), cache, c, read)
    return x + feed_forward(rms_norm(x, mlp, "layer_norm", c.norm_eps), mlp.at("DenseReluDense"), c)


def project(x: Array, w: Weights, name: str, c: Pix2StructText) -> Array:
    """A linear map, cut into heads: [T D] -> [T N H]."""
    return heads(linear(x, w, name, c.d_model), c.n_heads, c.d_head)


@step(Role.ATTENTION)
def causal_attention(x: Array, w: Weights, cache: KVCache, c: Pix2StructText, bias: Array) -> Array:
    """Let each token gather information from itself and those before it: [T D] -> [T D]."""
    q, k, v = (project(x, w, name, c) for name in ("query", "key", "value"))
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), 1.0, bias), w, "output", c.d_model)


@step(Role.CROSS_ATTENTION)
def cross_attention(x: Array, w: Weights, cache: KVCache, c: Pix2StructText, read: Array) -> Array:
    """Let each token gather information from the image: [T D], [M D] -> [T D]."""
    q, k, v = project(x, w, "query", c), project(read, w, "key", c), project(read, w, "value", c)
    k, v = cache.fill(Holds.SOURCE_KEYS, k, c.n_source), cache.fill(Holds.SOURCE_VALUES, v, c.n_source)
    return linear(attend(q, k, v, None, 1.0), w, "output", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Pix2StructText) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "wi_0", c.d_ff)) * linear(x, w, "wi_1", c.d_ff)
    return linear(wide, w, "wo", c.d_model)
