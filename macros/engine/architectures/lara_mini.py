"""Lara 4 Mini: a gated delta rule in two layers of five, windows in two, experts and a shared one in every layer.

The full-attention layers have no rotary embedding. Source: transformers 5.24, models/lara_mini; tensor names of
transformers, which cuts the published files' one matrix for the inputs of the delta rule into four.
"""

from __future__ import annotations

from typing import Literal

from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Mixed,
    NoPE,
    Rope,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    heads,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    shared_experts,
    softmax_routing,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Interval, Size, activation, config, fixed, key, short_names
from .qwen3_next import DeltaRule, gated_delta_net
from .rope_config import read_rope
from .tensor_layouts import FUSED, PACKED

PATTERN = ("linear_attention", "sliding_attention", "linear_attention", "full_attention", "sliding_attention")


@config
class LaraMini(DeltaRule):
    """Hyperparameters of Lara 4 Mini, in forward order."""

    full_attention_interval: Interval = fixed(5)
    layer_types: list[str] = key("layer_types", lambda c: [PATTERN[i % len(PATTERN)] for i in range(c.n_layers)])
    sliding_window: Size = key("sliding_window", 512)
    n_kv_heads: Size = key("num_key_value_heads", 4)
    d_head: Size = key("head_dim", 128)
    state_dtype: Literal["float32"] = fixed("float32")
    d_ff: Size = fixed(0)
    n_experts: Size = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    d_ff_expert: Size = key("moe_intermediate_size")
    d_ff_shared: Count = key("shared_expert_intermediate_size")
    normalise: bool = key("norm_topk_prob", True)
    tied: bool = key("tie_word_embeddings", True)

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)

    @property
    def mixers(self) -> list[str]:
        short = {"linear_attention": "linear", "sliding_attention": "window", "full_attention": "attention"}
        return short_names(self.layer_types, self.n_layers, short)

    @property
    def kinds(self) -> list[Mixed]:
        return [Mixed(mixer, "moe") for mixer in self.mixers]

    def mask_of(self, kind: Mixed) -> Mask:
        """The tokens that a kind of layer sees."""
        return SlidingWindow(self.sliding_window) if kind.mixer == "window" else NoPE(Full())


@architecture("lara_mini", config=LaraMini, pieces=FUSED, spellings=((".linear_attn.out_norm.", ".linear_attn.norm."),))
def forward(w: Weights, ids: Array, c: LaraMini, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: LaraMini, kind: Mixed, table: RopeTable) -> Array:
    """One block: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    if kind.mixer == "linear":
        x = x + gated_delta_net(y, w.at("linear_attn"), cache, c)
    else:
        x = x + attention(y, w.at("self_attn"), cache, c, c.mask_of(kind), table)
    return x + mixture_of_experts(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: LaraMini, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = rms_norm(q, w, "q_norm", c.norm_eps), rms_norm(k, w, "k_norm", c.norm_eps)
    if not isinstance(mask, NoPE):
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: LaraMini) -> Array:
    """A few experts chosen for each token, and a shared one: [T D] -> [T k D] -> [T D]."""
    act = activation(c.activation)
    chosen, shares = softmax_routing(linear(x, w, "gate", c.n_experts), c.n_experts_per_token, normalise=c.normalise)
    routed = combine(packed_experts(x, chosen, w, PACKED, c.n_experts, c.d_ff_expert, act), shares)
    return routed + shared_experts(x, w.at("shared_expert"), c.d_ff_shared, act)
