"""Granite 3: Llama's block with four multipliers, so that one learning rate suits every size.

Source: ibm-granite/granite-3.0-language-models (paper.pdf), after arXiv 2203.03466 (muP); tensor names as the published files.
"""

from __future__ import annotations

from ..ops import attend, causal_mask, embed, heads, linear, positions, rms_norm, rope_table, rotate, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, config, key
from .llama import Llama, feed_forward


@config
class Granite(Llama):
    """Hyperparameters of Granite, in forward order."""

    embedding_multiplier: float = key("embedding_multiplier", 1.0)
    attention_multiplier: float = key("attention_multiplier", 1.0)
    residual_multiplier: float = key("residual_multiplier", 1.0)
    logits_divisor: Positive = key("logits_scaling", 1.0)


@architecture("granite", config=Granite)
def forward(w, ids, c: Granite, past, last=True):
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.embedding_multiplier
    table = rope_table(positions(ids, past), c.d_head, c.rope)
    for reach, w_layer, past_layer in w.layers("model.layers", c.kinds, past):
        x = layer(x, w_layer, past_layer, c, reach, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last) / c.logits_divisor


@step(Role.LAYER)
def layer(x, w, past, c: Granite, reach, table):
    """One transformer block: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), past, c, reach, table)
    x = x + y * c.residual_multiplier
    return (
        x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c) * c.residual_multiplier
    )


@step(Role.ATTENTION)
def attention(x, w, past, c: Granite, reach, table):
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    if table is not None:
        q, k = rotate(q, table), rotate(k, table)
    k, v = past.extend(Holds.KEYS, k, reach), past.extend(Holds.VALUES, v, reach)
    mixed = attend(q, k, v, causal_mask(past, q, k, reach), c.attention_multiplier)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)
