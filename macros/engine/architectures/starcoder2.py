"""StarCoder2: a Llama-like block with layer norms, biases and a plain two-matrix feed-forward.

Source: arXiv 2402.19173; tensor names as the published files.
"""

from __future__ import annotations

from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import embed, layer_norm, linear, positions, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .config import Positive, Size, activation, config, key
from .llama import Mistral, attention


@config
class StarCoder2(Mistral):
    """Hyperparameters of StarCoder2, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 2)
    norm_eps: Positive = key("norm_epsilon", 1e-5)
    attention_bias: bool = key("use_bias", True)
    mlp_bias: bool = key("use_bias", True)
    activation: str = key("hidden_act", "gelu_pytorch_tanh")
    tied: bool = key("tie_word_embeddings", True)

    ignored = frozenset({"norm_type", "mlp_type"})


@architecture(
    "starcoder2", config=StarCoder2, scaled_by_awq="c_fc", gguf=Gguf("starcoder2"), rounds_heads={"starcoder2": True}
)
def forward(w: Weights, ids: Array, c: StarCoder2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = layer_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: StarCoder2, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(layer_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(layer_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: StarCoder2) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "c_fc", c.d_ff, bias=c.mlp_bias))
    return linear(wide, w, "c_proj", c.d_model, bias=c.mlp_bias)
