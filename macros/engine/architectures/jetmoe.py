"""JetMoE: experts in attention too. Each makes queries and reads the result; keys and values are all experts'.

Source: arXiv 2404.07413; tensor names as transformers 5.
"""

from __future__ import annotations

import numpy as np

from ..facts import Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope,
    attend,
    causal_mask,
    chosen_softmax_routing,
    combine,
    embed,
    expert_linear,
    heads,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Raw, Size, activation, config, derived, key
from .rope_config import OLDER_ROPE_KEYS, read_rope
from .tensor_layouts import JETMOE_PACKED

# The norms inside the layers have an epsilon of their own, that no config key sets.
LAYER_EPS = 1e-6


@config
class JetMoE(Config):
    """Hyperparameters of JetMoE, in forward order. d_ff is the inner width of one expert."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers", also=("num_layers",))
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    # experts, of attention as of the feed-forward part
    n_experts: Size = key("num_local_experts", 8, also=("num_experts", "moe_num_experts"))
    n_experts_per_token: Size = key("num_experts_per_tok", 2, also=("moe_top_k",))
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 16)
    n_heads: Size = derived(lambda c: c.n_kv_heads * c.n_experts_per_token)
    d_head: Size = key("kv_channels", 128, also=("head_dim",))
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # feed-forward
    d_ff: Size = key("intermediate_size", also=("ffn_hidden_size",))
    activation: str = key("activation_function", "silu", also=("hidden_act",))
    # head
    tied: bool = key("tie_word_embeddings", True)

    rewritten = OLDER_ROPE_KEYS
    ignored = frozenset("num_attention_heads aux_loss_coef bias glu layer_norm_epsilon length rotary_percent".split())

    def check(self) -> None:
        activation(self.activation)
        self.must_not_exceed("n_experts_per_token", "n_experts")
        self.rope.turning(self.d_head)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)


@architecture("jetmoe", config=JetMoE, peft=Peft(linear_router=True))
def forward(w: Weights, ids: Array, c: JetMoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: JetMoE, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", LAYER_EPS), w.at("self_attention"), cache, c, table)
    return x + mixture_of_experts(rms_norm(x, w, "post_attention_layernorm", LAYER_EPS), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: JetMoE, table: RopeTable) -> Array:
    """Let each token gather information by the queries of its experts: [T D] -> [T k K·H] -> [T k D] -> [T D]."""
    T, D = x.shape
    E, k, K, H = c.n_experts, c.n_experts_per_token, c.n_kv_heads, c.d_head
    inside = w.at("experts")
    chosen, shares = chosen_softmax_routing(linear(x, inside, "router.layer", E), k)
    q = expert_linear(x, inside.stack("input_linear.weight", E, K * H, D, used=k), chosen)
    # The queries of all chosen experts that have a key/value head in common side by side.
    q = q.reshape(T, k, K, H).transpose(0, 2, 1, 3).reshape(T, c.n_heads, H)
    keys, values = np.split(linear(x, w, "kv_proj", 2 * K * H), 2, axis=-1)
    q, keys = apply_rope(q, table), apply_rope(heads(keys, K, H), table)
    keys, values = cache.extend(Holds.KEYS, keys, Full()), cache.extend(Holds.VALUES, heads(values, K, H), Full())
    mixed = attend(q, keys, values, causal_mask(cache, q, keys, Full()), H**-0.5)
    mixed = mixed.reshape(T, K, k, H).transpose(0, 2, 1, 3).reshape(T, k, K * H)
    said = expert_linear(mixed, inside.stack("output_linear.weight", E, D, K * H, used=k), chosen)
    return combine(said, shares) + inside("bias", D)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: JetMoE) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    chosen, shares = chosen_softmax_routing(linear(x, w, "router.layer", c.n_experts), c.n_experts_per_token)
    said = packed_experts(x, chosen, w, JETMOE_PACKED, c.n_experts, c.d_ff, activation(c.activation))
    return combine(said, shares) + w("bias", x.shape[1])
