"""OPT: GPT-2's block with ReLU; the 350M model keeps narrow embeddings and norms after each half.

Source: arXiv 2205.01068; tensor names as the published files. The position table starts two rows late.
"""

from __future__ import annotations

from ..facts import QUERY_VALUE, Peft
from ..interface import Array, KVCache, Weights
from ..ops import Full, attend, causal_mask, embed, embed_positions, heads, layer_norm, linear, positions, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Size, activation, config, derived, key

# Rows of the position table before that of the first token.
POSITION_OFFSET = 2


@config
class OPT(Config):
    """Hyperparameters of OPT, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    n_positions: Size = key("max_position_embeddings")
    d_model: Size = key("hidden_size")
    d_embedding: Size = key("word_embed_proj_dim", lambda c: c.d_model)
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_first: bool = key("do_layer_norm_before", True)
    norm_weights: bool = key("layer_norm_elementwise_affine", True)
    no_final_norm: bool = key("_remove_final_layer_norm", False)
    bias: bool = key("enable_bias", True)
    # attention
    n_heads: Size = key("num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    # feed-forward
    d_ff: Size = key("ffn_dim")
    activation: str = key("activation_function", "relu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    ignored = frozenset({"layerdrop", "init_std"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)

    def norm(self, x: Array, w: Weights, name: str) -> Array:
        """Layer norm, with or without weights."""
        return layer_norm(x, w, name, 1e-5, weight=self.norm_weights, bias=self.norm_weights)


@architecture("opt", config=OPT, optional_prefix="model.", peft=Peft(QUERY_VALUE))
def forward(w: Weights, ids: Array, c: OPT, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    table = "model.decoder.embed_tokens.weight"
    x = embed(ids, w, table, c.vocab_size, c.d_embedding)
    x = x if c.d_embedding == c.d_model else linear(x, w, "model.decoder.project_in", c.d_model)
    x = x + embed_positions(
        positions(ids, cache) + POSITION_OFFSET,
        w,
        "model.decoder.embed_positions.weight",
        c.n_positions + POSITION_OFFSET,
        c.d_model,
    )
    for _, w_layer, cache_layer in w.layers("model.decoder.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    x = c.norm(x, w, "model.decoder.final_layer_norm") if c.norm_first and not c.no_final_norm else x
    x = x if c.d_embedding == c.d_model else linear(x, w, "model.decoder.project_out", c.d_embedding)
    return unembed(x, w, table if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: OPT) -> Array:
    """One transformer block, norms before each half or after: [T D] -> [T D]."""
    if c.norm_first:
        x = x + attention(c.norm(x, w, "self_attn_layer_norm"), w.at("self_attn"), cache, c)
        return x + feed_forward(c.norm(x, w, "final_layer_norm"), w, c)
    x = c.norm(x + attention(x, w.at("self_attn"), cache, c), w, "self_attn_layer_norm")
    return c.norm(x + feed_forward(x, w, c), w, "final_layer_norm")


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: OPT) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=c.bias), c.n_heads, c.d_head)
        for name in ("q_proj", "k_proj", "v_proj")
    )
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(
        attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5), w, "out_proj", c.d_model, bias=c.bias
    )


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: OPT) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(activation(c.activation)(linear(x, w, "fc1", c.d_ff, bias=c.bias)), w, "fc2", c.d_model, bias=c.bias)
