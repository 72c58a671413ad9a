"""GPT-NeoX Japanese: attention and feed-forward in sequence, without biases except in the last layer.

Source: transformers, models/gpt_neox_japanese; tensor names as transformers has them.
"""

from __future__ import annotations

from ..facts import Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Full, apply_rope, attend, causal_mask, embed, layer_norm, linear, positions, rope_table, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Interval, Positive, Size, activation, config, derived, fixed, key
from .gpt_neox import GPTNeoX


@config
class GPTNeoXJapanese(GPTNeoX):
    """Hyperparameters of GPT-NeoX Japanese, in forward order."""

    parallel: bool = fixed(False)
    attention_bias: bool = fixed(False)
    rotary_pct: Positive = key("rotary_pct", 1.0)
    times_wider: Interval = key("intermediate_multiple_size", 4)
    d_ff: Size = derived(lambda c: c.d_model * c.times_wider)
    tied: bool = key("tie_word_embeddings", True)

    @property
    def kinds(self) -> list[str]:
        """The last layer has a bias, the others have none."""
        return ["plain"] * (self.n_layers - 1) + ["shifted"]


@architecture("gpt_neox_japanese", config=GPTNeoXJapanese, peft=Peft(tied_head="embed_out"))
def forward(w: Weights, ids: Array, c: GPTNeoXJapanese, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "gpt_neox_japanese.embed_in.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("gpt_neox_japanese.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = layer_norm(x, w, "gpt_neox_japanese.final_layer_norm", c.norm_eps)
    head = "gpt_neox_japanese.embed_in.weight" if c.tied else "embed_out.weight"
    return unembed(x, w, head, c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GPTNeoXJapanese, kind: str, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = attention(layer_norm(x, w, "input_layernorm", c.norm_eps), w.at("attention"), cache, c, table)
    x = x + (shift(y, w, "attention.dense_bias") if kind == "shifted" else y)
    return x + feed_forward(layer_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: GPTNeoXJapanese, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    qkv = linear(x, w, "query_key_value", 3 * c.n_heads * c.d_head).reshape(x.shape[0], c.n_heads, 3, c.d_head)
    q, k, v = apply_rope(qkv[:, :, 0], table), apply_rope(qkv[:, :, 1], table), qkv[:, :, 2]
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5), w, "dense", c.d_model)


@step(Role.SHIFT)
def shift(x: Array, w: Weights, name: str) -> Array:
    """Add a trained vector to each token's: [T D], [D] -> [T D]."""
    return x + w(name, x.shape[-1])


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: GPTNeoXJapanese) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "dense_h_to_4h", c.d_ff))
    return linear(wide, w, "dense_4h_to_h", c.d_model)
