"""Flint: Qwen3's normalized heads with a sink in each, rotary embedding in windows alone, and separate expert scores.

Source: RecursiveSI/flint, config.json; tensor names of transformers.
"""

from __future__ import annotations

from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    NoPE,
    apply_rope,
    causal_mask,
    combine,
    embed,
    feed_forward,
    gated_experts,
    heads,
    linear,
    masked,
    positions,
    repeat_kv,
    rms_norm,
    rope_table,
    routing_weights,
    scores,
    shared_experts,
    sigmoid_scores,
    softmax_with_sink,
    top_k,
    unembed,
    weighted_sum,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Interval, Size, activation, config, expert_layers, fixed, key, masks_of
from .llama import Llama
from .tensor_layouts import EXPERT, FUSED


@config
class Flint(Llama):
    """Hyperparameters of Flint, in forward order. d_ff is the inner width of the layers without experts."""

    n_kv_heads: Size = key("num_key_value_heads", 4)
    d_head: Size = key("head_dim", 128)
    sliding_window: Size = key("sliding_window", 513)
    layer_types: list[str] = key("layer_types", lambda c: c.default_layer_types())
    mlp_bias: bool = fixed(False)
    decoder_sparse_step: Interval = key("decoder_sparse_step", 1)
    mlp_only_layers: list[int] = key("mlp_only_layers", lambda c: [0, 1])
    n_experts: Count = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    normalise: bool = key("norm_topk_prob", True)
    d_ff_expert: Size = key("moe_intermediate_size")
    d_ff_shared: Count = key("shared_expert_intermediate_size")

    def default_layer_types(self) -> list[str]:
        """Windows in three of four layers; the first two and the last have full attention."""
        return [
            "full_attention" if i < 2 or i % 4 == 1 or i == self.n_layers - 1 else "sliding_attention"
            for i in range(self.n_layers)
        ]

    def check(self) -> None:
        super().check()
        if self.n_experts:
            self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts, and its mask."""
        masks = masks_of(self.layer_types, self.n_layers, self.sliding_window)
        moe = expert_layers(self.n_layers, self.n_experts, self.decoder_sparse_step, self.mlp_only_layers)
        return [Kind(m, NoPE(mask) if mask == Full() else mask) for m, mask in zip(moe, masks)]


@architecture("flint", config=Flint, fused=FUSED, spellings=(("self_attn.softmax_offset", "self_attn.sinks"),))
def forward(w: Weights, ids: Array, c: Flint, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Flint, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind.mask, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Flint, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it, or from nothing: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = rms_norm(q, w, "q_norm", c.norm_eps), rms_norm(k, w, "k_norm", c.norm_eps)
    if not isinstance(mask, NoPE):
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    fit = masked(scores(q, repeat_kv(k, N), H**-0.5), causal_mask(cache, q, k, mask))
    mixed = weighted_sum(softmax_with_sink(fit, w("sinks", N)), repeat_kv(v, N))
    return linear(mixed.reshape(mixed.shape[0], N * H), w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Flint) -> Array:
    """A few experts chosen by separate scores, and a shared one: [T D] -> [T k D] -> [T D]."""
    act = activation(c.activation)
    fit = sigmoid_scores(linear(x, w, "gate", c.n_experts))
    chosen = top_k(fit, c.n_experts_per_token)
    shares = routing_weights(fit, chosen, normalise=c.normalise)
    routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, act), shares)
    return routed + shared_experts(x, w.at("shared_expert"), c.d_ff_shared, act)
