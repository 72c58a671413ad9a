"""DiffLlama: Llama's block whose heads come in pairs, with the second's output subtracted from the first's.

Source: arXiv 2410.05258 (Differential Transformer); tensor names as transformers 5.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import Problem
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    apply_rope,
    causal_mask,
    embed,
    heads,
    linear,
    masked,
    positions,
    repeat_kv,
    rms_norm,
    rope_table,
    scores,
    softmax,
    unembed,
    unit_norm,
    weighted_sum,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, config, fixed, key
from .llama import Llama, feed_forward
from .tasks import OLD_NAME


@config
class DiffLlama(Llama):
    """Hyperparameters of DiffLlama, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    mlp_bias: bool = fixed(False)

    ignored = Llama.ignored | {"mlp_bias", "lambda_std_dev"}

    def check(self) -> None:
        super().check()
        if self.n_kv_heads % 2:
            raise Problem(
                f"num_key_value_heads = {int(self.n_kv_heads)}: expected an even number",
                "correct it: heads come in pairs",
            )


@architecture("diffllama", config=DiffLlama, heads=OLD_NAME, rounds_heads={"diffllama": False})
def forward(w: Weights, ids: Array, c: DiffLlama, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: DiffLlama, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: DiffLlama, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    T, N, K, H = x.shape[0], c.n_heads, c.n_kv_heads, c.d_head
    q = apply_rope(heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H), table)
    k = apply_rope(heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H), table)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    shares = softmax(masked(scores(q, repeat_kv(k, N), H**-0.5), causal_mask(cache, q, k, mask)))
    wide = wide_values(v)
    answers = weighted_sum(shares, repeat_kv(wide, N))
    first, second = np.split(answers, 2, axis=1)
    start = 0.8 - 0.6 * math.exp(-0.3 * w.index)
    difference = unit_norm(first - second * differential_lambda(w, H, start), c.norm_eps) * (1 - start)
    return linear(difference.reshape(T, N * H), w, "o_proj", c.d_model, bias=c.attention_bias)


def wide_values(v: Array) -> Array:
    """Each value concatenated with its partner's, for both of the pair: [S K H] -> [S K 2H]."""
    pairs = np.concatenate(np.split(v, 2, axis=1), axis=-1)
    return np.concatenate([pairs, pairs], axis=1)


@step(Role.DIFFERENTIAL_LAMBDA)
def differential_lambda(w: Weights, width: int, start: float) -> Array:
    """The factor of the second head's output: [H], [H], [H], [H] -> [1] (arXiv 2410.05258, 2.1)."""
    first, second = (
        np.exp((w(f"lambda_q{i}", width) * w(f"lambda_k{i}", width)).sum(axis=-1, keepdims=True)) for i in (1, 2)
    )
    return first - second + start
