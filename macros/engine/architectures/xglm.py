"""XGLM: GPT-2's block in many languages, with positions that are computed and not learned.

Source: arXiv 2112.10668; tensor names as transformers 5.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import Full, attend, causal_mask, embed, heads, layer_norm, linear, positions, unembed
from ..steps import Holds, Keeps, Role, step
from . import architecture
from .config import Config, Size, activation, config, derived, fixed, key
from .opt import POSITION_OFFSET
from .otherwise import Otherwise, at_least


@config
class XGLM(Config):
    """Hyperparameters of XGLM, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("d_model", also=("hidden_size",))
    scale_embedding: bool = key("scale_embedding", True)
    # layers
    n_layers: Size = key("num_layers", also=("num_hidden_layers",))
    norm_eps: float = fixed(1e-5)
    # attention
    n_heads: Size = key("attention_heads", also=("num_attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    # feed-forward
    d_ff: Size = key("ffn_dim")
    activation: str = key("activation_function", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    ignored = frozenset({"activation_dropout", "layerdrop", "init_std"})
    otherwise = (
        Otherwise(
            "pad_token_id",
            at_least("pad_token_id", POSITION_OFFSET),
            "transformers 5.24 has no position in this row of the table",
        ),
    )

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)
        if self.d_model % 2 or self.d_model < 4:
            raise Problem(
                f"d_model = {int(self.d_model)}: expected an even number, 4 or more",
                "correct it: a position is as many sines as cosines",
            )


@architecture("xglm", config=XGLM)
def forward(w: Weights, ids: Array, c: XGLM, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    x = x * math.sqrt(c.d_model) if c.scale_embedding else x
    x = x + sinusoids(positions(ids, cache) + POSITION_OFFSET, c.d_model)
    for _, w_layer, cache_layer in w.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    x = layer_norm(x, w, "model.layer_norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.SINUSOIDS, keeps=Keeps.NOTHING)
def sinusoids(places: Array, width: int, falling: int | None = None) -> Array:
    """Each position as sines and cosines of falling frequencies: [T] -> [T D] (arXiv 1706.03762, 3.5).

    The frequency falls to a ten-thousandth of the first after `falling` steps; None: at the last one.
    """
    half = width // 2
    frequencies = 10000.0 ** (np.arange(half, like=places) / -(falling or half - 1))
    angles = np.einsum("t,w->tw", places, frequencies)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1).astype(np.float32)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: XGLM) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(layer_norm(x, w, "self_attn_layer_norm", c.norm_eps), w.at("self_attn"), cache, c)
    return x + feed_forward(layer_norm(x, w, "final_layer_norm", c.norm_eps), w, c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: XGLM) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head) for name in ("q_proj", "k_proj", "v_proj")
    )
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5)
    return linear(mixed, w, "out_proj", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: XGLM) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(activation(c.activation)(linear(x, w, "fc1", c.d_ff, bias=True)), w, "fc2", c.d_model, bias=True)
