"""Molmo 2's text model: Qwen3's block or OLMo 2's, with rows for a few more tokens in the embedding than in the head.

Source: allenai/Molmo2-8B by transformers 5's class, whose tensor names these are.
"""

from __future__ import annotations

from typing import Literal

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Full, Rope, embed, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture, olmo2, qwen3
from .config import Count, Size, config, fixed, key
from .llama import Llama, feed_forward


@config
class Molmo2(Llama):
    """Hyperparameters of Molmo 2's text model, in forward order."""

    n_added: Count = key("additional_vocab_size", 128)
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128)
    attention_bias: Literal[False] = key("attention_bias", False)
    qk_norm: Literal["qwen3", "olmo"] = key("qk_norm_type", "qwen3")
    stretched: list[int] = key("rope_scaling_layers", lambda c: list(range(c.n_layers)))
    norm_after: bool = key("norm_after", False)
    mlp_bias: bool = fixed(False)
    tied: Literal[False] = key("tie_word_embeddings", False)

    @property
    def kinds(self) -> list[str]:
        """Whether the positions of each layer are stretched beyond the trained length."""
        if self.rope.scaling == "default":
            return ["layer"] * self.n_layers
        return ["layer" if i in self.stretched else "unscaled" for i in range(self.n_layers)]


@architecture("molmo2_text", config=Molmo2)
def forward(w: Weights, ids: Array, c: Molmo2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size + c.n_added, c.d_model)
    places, plain = positions(ids, cache), Rope(c.rope.theta)
    tables = {k: rope_table(places, c.d_head, c.rope if k == "layer" else plain) for k in dict.fromkeys(c.kinds)}
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, tables[kind])
    return unembed(rms_norm(x, w, "model.norm", c.norm_eps), w, "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Molmo2, table: RopeTable) -> Array:
    """One transformer block, with a norm before or after each half: [T D] -> [T D]."""
    attention = qwen3.attention if c.qk_norm == "qwen3" else olmo2.attention
    if c.norm_after:
        y = attention(x, w.at("self_attn"), cache, c, Full(), table)
        x = x + rms_norm(y, w, "input_layernorm", c.norm_eps)
        return x + rms_norm(feed_forward(x, w.at("mlp"), c), w, "post_attention_layernorm", c.norm_eps)
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, Full(), table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)
