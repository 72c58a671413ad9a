"""BART: an encoder reads a text at once, in both directions; a decoder generates another, and looks at the encoder's
output.

The norms follow the parts, each stack has a table of places, and the encoder's length is that of its table; `t5`
explains the two lengths. Source: arXiv 1910.13461; tensor names as transformers.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..interface import Array, KVCache, Weights
from ..ops import (
    Activation,
    Full,
    attend,
    causal_mask,
    embed,
    embed_positions,
    heads,
    layer_norm,
    linear,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Size, activation, config, derived, key
from .t5 import T5

NORM_EPS = 1e-5  # no key sets it
RESERVED = 2  # rows at the head of each table of places, which no token has


@config
class Bart(Config):
    """Hyperparameters of BART, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    n_positions: Size = key("max_position_embeddings")
    n_source: Size = derived(lambda c: c.n_positions)
    d_model: Size = key("d_model", also=("hidden_size",))
    scale_embedding: bool = key("scale_embedding", False)
    # encoder
    n_encoder_layers: Size = key("encoder_layers", also=("num_hidden_layers",))
    n_encoder_heads: Size = key("encoder_attention_heads", also=("num_attention_heads",))
    d_encoder_head: Size = derived(lambda c: c.d_model // c.n_encoder_heads)
    d_ff_encoder: Size = key("encoder_ffn_dim")
    # decoder
    n_decoder_layers: Size = key("decoder_layers")
    n_heads: Size = key("decoder_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("decoder_ffn_dim")
    activation: str = key("activation_function", "gelu")
    # head
    tied: Literal[True] = key("tie_word_embeddings", True)

    caveat = T5.caveat
    ignored = frozenset(
        """activation_dropout add_bias_logits add_final_layer_norm classif_dropout classifier_dropout decoder_layerdrop
        encoder_layerdrop extra_pos_embeddings force_bos_token_to_be_generated forced_bos_token_id forced_eos_token_id
        init_std normalize_before normalize_embedding num_labels output_past save_step
        static_position_embeddings""".split()
    )

    def check(self) -> None:
        self.must_divide("n_encoder_heads", "d_model")
        self.must_divide("n_heads", "d_model")
        activation(self.activation)

    def embedded(self, ids: Array, earlier: int, w: Weights, stack: Weights) -> Array:
        """The vector of each token plus that of its position, after `earlier` ones, normalized: [T] -> [T D]."""
        x = embed(ids, w, "model.shared.weight", self.vocab_size, self.d_model)
        x = x * self.d_model**0.5 if self.scale_embedding else x
        rows = self.n_positions + RESERVED
        places = np.arange(ids.shape[0], like=ids) + (earlier + RESERVED)
        x = x + embed_positions(places, stack, "embed_positions.weight", rows, self.d_model)
        return layer_norm(x, stack, "layernorm_embedding", NORM_EPS)


@architecture("bart", config=Bart)
def forward(w: Weights, ids: Array, c: Bart, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    x = c.embedded(ids, cache.length, w, w.at("model.decoder"))
    for _, w_layer, kept in w.layers(
        "model.decoder.layers", ["layer"] * c.n_decoder_layers, cache, "decoder", c.n_encoder_layers
    ):
        x = decoder_layer(x, w_layer, c, kept, read)
    logits = unembed(x, w, "model.shared.weight", c.vocab_size, last=last)
    return logits + w.buffer("final_logits_bias", 1, c.vocab_size, counted=False)


def encode(source: Array, w: Weights, c: Bart, cache: KVCache) -> Array:
    """The encoder's output for a text, each token in the context of all: [M] -> [M D]."""
    x = c.embedded(source, 0, w, w.at("model.encoder"))
    for _, w_layer, _ in w.layers("model.encoder.layers", ["layer"] * c.n_encoder_layers, cache, "encoder"):
        x = encoder_layer(x, w_layer, c)
    return x


@step(Role.LAYER)
def encoder_layer(x: Array, w: Weights, c: Bart) -> Array:
    """One block of the encoder, with a norm after each part: [M D] -> [M D]."""
    mixed = attention(x, w.at("self_attn"), c.n_encoder_heads, c.d_encoder_head)
    x = layer_norm(x + mixed, w, "self_attn_layer_norm", NORM_EPS)
    return layer_norm(x + feed_forward(x, w, c.d_ff_encoder, activation(c.activation)), w, "final_layer_norm", NORM_EPS)


@step(Role.LAYER)
def decoder_layer(x: Array, w: Weights, c: Bart, cache: KVCache, read: Array) -> Array:
    """One block of the decoder, with a norm after each part: [T D] -> [T D]."""
    mixed = causal_attention(x, w.at("self_attn"), c.n_heads, c.d_head, cache)
    x = layer_norm(x + mixed, w, "self_attn_layer_norm", NORM_EPS)
    looked_up = cross_attention(x, w.at("encoder_attn"), c.n_heads, c.d_head, cache, read, c.n_source)
    x = layer_norm(x + looked_up, w, "encoder_attn_layer_norm", NORM_EPS)
    return layer_norm(x + feed_forward(x, w, c.d_ff, activation(c.activation)), w, "final_layer_norm", NORM_EPS)


def project(x: Array, w: Weights, name: str, n: int, width: int, bias: bool = True) -> Array:
    """A linear map as wide as the vector, cut into heads: [T D] -> [T N H]."""
    return heads(linear(x, w, name, x.shape[1], bias=bias), n, width)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, n: int, width: int, key_bias: bool = True) -> Array:
    """Let each token gather information from all tokens, also from those after it: [M D] -> [M D]."""
    q = project(x, w, "q_proj", n, width)
    k = project(x, w, "k_proj", n, width, key_bias)
    v = project(x, w, "v_proj", n, width)
    return linear(attend(q, k, v, None, width**-0.5), w, "out_proj", x.shape[1], bias=True)


@step(Role.ATTENTION)
def causal_attention(x: Array, w: Weights, n: int, width: int, cache: KVCache, key_bias: bool = True) -> Array:
    """Let each token gather information from itself and those before it: [T D] -> [T D]."""
    q = project(x, w, "q_proj", n, width)
    k = cache.extend(Holds.KEYS, project(x, w, "k_proj", n, width, key_bias), Full())
    v = cache.extend(Holds.VALUES, project(x, w, "v_proj", n, width), Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), width**-0.5)
    return linear(mixed, w, "out_proj", x.shape[1], bias=True)


@step(Role.CROSS_ATTENTION)
def cross_attention(
    x: Array, w: Weights, n: int, width: int, cache: KVCache, read: Array, rows: int, key_bias: bool = True
) -> Array:
    """Let each token gather information from the encoder's output: [T D], [M D] -> [T D]."""
    q = project(x, w, "q_proj", n, width)
    k = cache.fill(Holds.SOURCE_KEYS, project(read, w, "k_proj", n, width, key_bias), rows)
    v = cache.fill(Holds.SOURCE_VALUES, project(read, w, "v_proj", n, width), rows)
    return linear(attend(q, k, v, None, width**-0.5), w, "out_proj", x.shape[1], bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, width: int, act: Activation) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(act(linear(x, w, "fc1", width, bias=True)), w, "fc2", x.shape[1], bias=True)
