"""RWKV-7: a matrix for each head, which fades channel by channel and takes back what it returns for a key.

Source: arXiv 2503.14456; flash-linear-attention 0.6, models/rwkv7, whose tensor names are those of the published files.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np

from ..errors import Problem
from ..facts import UNREAD, Peft
from ..interface import Array, KVCache, Weights
from ..ops import embed, heads, layer_norm, linear, relu_squared, sigmoid, token_shift, unembed, wkv7
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Size, config, key

SLOWEST = math.exp(-0.5)  # −ln of the least that a channel keeps of its past with each token


@config
class RWKV7(Config):
    """Hyperparameters of RWKV-7, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("norm_eps", 1e-5)
    has_bias: bool = key("norm_bias", True)
    normed_embedding: bool = key("norm_first", True)
    # time mixing
    d_head: Size = key("head_dim", 64)
    n_heads: Size = key("num_heads", lambda c: c.d_model // c.d_head)
    d_decay: Size = key("decay_low_rank_dim")
    d_rate: Size = key("a_low_rank_dim")
    d_value_mix: Size = key("v_low_rank_dim")
    d_gate: Size = key("gate_low_rank_dim")
    value_dim: int | list[int] | None = key("value_dim", None)
    attn: None = key("attn", None)
    # channel mixing
    times_wider: Positive = key("hidden_ratio", 4)
    d_ff: Size = key("intermediate_size", lambda c: -(-int(c.d_model * c.times_wider) // 32) * 32)
    activation: Literal["sqrelu"] = key("hidden_act", "sqrelu")
    # head
    tied: bool = key("tie_word_embeddings", False)

    ignored = frozenset({"attn_mode", "fuse_norm", "fuse_cross_entropy", "fuse_linear_cross_entropy", "use_l2warp"})

    def check(self) -> None:
        self.must_divide("d_head", "d_model")
        widths = self.value_dim if isinstance(self.value_dim, list) else [self.value_dim]
        if any(width not in (None, self.d_model) for width in widths):
            raise Problem("value_dim differs from hidden_size", "no model whose values have another width is read here")
        if self.n_heads * self.d_head != self.d_model:
            raise Problem(
                f"num_heads × head_dim = {int(self.n_heads * self.d_head)}, and hidden_size = {int(self.d_model)}",
                "correct one of them",
            )

    @property
    def kinds(self) -> list[str]:
        """The first layer has no values of an earlier one to mix with its own."""
        return ["first", *["layer"] * (self.n_layers - 1)]


@architecture(
    "rwkv7",
    config=RWKV7,
    gguf=UNREAD,
    peft=Peft(("r_proj", "k_proj", "v_proj", "o_proj", "key", "value")),
)
def forward(w: Weights, ids: Array, c: RWKV7, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embeddings.weight", c.vocab_size, c.d_model)
    if c.normed_embedding:
        x = layer_norm(x, w, "model.layers.0.pre_norm", c.norm_eps, bias=c.has_bias)
    first: Array | None = None
    for _, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x, first = layer(x, first, w_layer, cache_layer, c)
    x = layer_norm(x, w, "model.norm", c.norm_eps, bias=c.has_bias)
    return unembed(x, w, "model.embeddings.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, first: Array | None, w: Weights, cache: KVCache, c: RWKV7) -> tuple[Array, Array]:
    """One block, which also passes on the first one's values: [T D], [T D] -> [T D], [T D]."""
    y = layer_norm(x, w, "attn_norm", c.norm_eps, bias=c.has_bias)
    mixed, first = time_mix(y, first, w.at("attn"), cache, c)
    x = x + mixed
    return x + channel_mix(layer_norm(x, w, "ffn_norm", c.norm_eps, bias=c.has_bias), w.at("ffn"), cache, c), first


@step(Role.TIME_MIX)
def time_mix(x: Array, first: Array | None, w: Weights, cache: KVCache, c: RWKV7) -> tuple[Array, Array]:
    """Let each token gather information from the state of those before it: [T D], [T D] -> [T D], [T D]."""
    T, D, N, H = x.shape[0], c.d_model, c.n_heads, c.d_head
    change = token_shift(x, cache, Holds.ATTENTION_SHIFT) - x
    r, k, v = (linear(blend(x, change, w, f"x_{name}"), w, f"{name}_proj", D) for name in "rkv")
    keep = np.exp(-SLOWEST * sigmoid(low_rank(np.tanh, blend(x, change, w, "x_w"), w, "w_lora", c.d_decay, D)))
    rate = sigmoid(low_rank(None, blend(x, change, w, "x_a"), w, "a_lora", c.d_rate, D))
    gate = low_rank(sigmoid, blend(x, change, w, "x_g"), w, "g_lora", c.d_gate, D, bias=False)
    if first is None:
        first = v
    else:
        share = sigmoid(low_rank(None, blend(x, change, w, "x_v"), w, "v_lora", c.d_value_mix, D))
        v = v + (first - v) * share
    removed = unit(heads(k * w("k_k", D), N, H))
    k = heads(k * (1 + (rate - 1) * w("k_a", D)), N, H)
    r, keep, v, rate = heads(r, N, H), heads(keep, N, H), heads(v, N, H), heads(rate, N, H)
    y = head_norms(wkv7(r, keep, k, v, removed, rate, cache), w, "g_norm", c.d_head * c.norm_eps)
    newest = (r * k * w("r_k", N, H)).sum(axis=-1, keepdims=True) * v
    return linear((y + newest.reshape(T, D)) * gate, w, "o_proj", D), first


def blend(x: Array, change: Array, w: Weights, name: str) -> Array:
    """Each channel's own mixture of a token and the one before it: [T D], [T D], [1 1 D] -> [T D]."""
    return x + change * w(name, 1, 1, x.shape[1])[0]


def low_rank(
    activation: Callable[[Array], Array] | None,
    x: Array,
    w: Weights,
    name: str,
    rank: int,
    width: int,
    bias: bool = True,
) -> Array:
    """Through a narrow vector, with an activation there or none: [T D] -> [T R] -> [T D]."""
    narrow = linear(x, w, f"{name}.lora.0", rank)
    return linear(activation(narrow) if activation else narrow, w, f"{name}.lora.2", width, bias=bias)


@step(Role.L2_NORM)
def unit(x: Array) -> Array:
    """Scale each vector to length 1: [T N H] -> [T N H]."""
    return x / np.maximum(np.sqrt((x * x).sum(axis=-1, keepdims=True)), 1e-12)


@step(Role.LAYER_NORM)
def head_norms(x: Array, w: Weights, name: str, eps: float) -> Array:
    """Give each head's output mean 0 and variance 1, then scale and shift: [T N H], [D], [D] -> [T D]."""
    T, D = x.shape[0], x.shape[1] * x.shape[2]
    x = x - x.mean(axis=-1, keepdims=True)
    x = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    return x.reshape(T, D) * w(f"{name}.weight", D) + w(f"{name}.bias", D)


@step(Role.CHANNEL_MIX)
def channel_mix(x: Array, w: Weights, cache: KVCache, c: RWKV7) -> Array:
    """Process each token and the one before it, in a wider space: [T D] -> [T F] -> [T D]."""
    change = token_shift(x, cache, Holds.FEED_FORWARD_SHIFT) - x
    wide = relu_squared(linear(x + change * w("x_k", c.d_model), w, "key", c.d_ff))
    return linear(wide, w, "value", c.d_model)
