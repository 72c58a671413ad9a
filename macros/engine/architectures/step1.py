"""Step-1, the text model of Step-Audio: Llama's block, in which a score falls with the square root of the distance.

Source: stepfun-ai/Step-Audio-EditX by vLLM, model_executor/models/step1.py, whose tensor names these are.
"""

from __future__ import annotations

import numpy as np

from ..interface import Array, KVCache, Weights
from ..ops import Full, alibi_slopes, attend, causal_mask, embed, feed_forward, heads, linear, rms_norm, silu, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Size, config, derived, key


@config
class Step1(Config):
    """Hyperparameters of Step-1, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    # attention
    n_heads: Size = key("num_attention_heads")
    n_kv_heads: Size = key("num_attention_groups", 1, also=("num_key_value_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    attention_bias: bool = key("attention_bias", False)
    # feed-forward
    d_ff: Size = key("intermediate_size")
    mlp_bias: bool = key("mlp_bias", False)
    # head
    tied: bool = key("tie_word_embeddings", True)

    ignored = frozenset({"max_seq_len", "hidden_act"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        self.must_divide("n_kv_heads", "n_heads")


@architecture("step1", config=Step1)
def forward(w: Weights, ids: Array, c: Step1, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    for _, w_layer, cache_layer in w.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Step1) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, silu, bias=c.mlp_bias)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Step1) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H, bias = c.n_heads, c.n_kv_heads, c.d_head, c.attention_bias
    q = heads(linear(x, w, "q_proj", N * H, bias=bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=bias), K, H)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5, root_alibi(q, k))
    return linear(mixed, w, "o_proj", c.d_model, bias=bias)


def root_alibi(q: Array, k: Array) -> Array:
    """The bias that each head adds to a score, lower the farther the key: [T N H], [S K H] -> [N T S]."""
    T, S = q.shape[0], k.shape[0]
    ago = np.arange(T, like=q)[:, None] + (S - T) - np.arange(S, like=q)[None, :]
    return (-alibi_slopes(k, q.shape[1])[:, None, None] * np.sqrt(np.maximum(ago, 0))[None]).astype(np.float32)
