"""Jamba: Mamba with one layer of attention in eight, without positions, and experts in every other layer.

Source: arXiv 2403.19887; tensor names as the published files.
"""

from __future__ import annotations

from typing import Literal

from ..facts import Gguf
from ..interface import Array, KVCache, Weights
from ..ops import Mixed, combine, embed, feed_forward, gated_experts, linear, rms_norm, softmax_routing, unembed
from ..steps import Role, step
from . import architecture
from .config import Config, Interval, Offset, Positive, Raw, Size, Taps, activation, config, key
from .mamba import NOT_READ, mamba
from .nemotron_h import attention
from .tensor_layouts import EXPERT, JAMBA_FUSED


@config
class Jamba(Config):
    """Hyperparameters of Jamba, in forward order. d_ff is the inner width of a feed-forward network and of one
    expert."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    attention_period: Interval = key("attn_layer_period", 8)
    attention_offset: Offset = key("attn_layer_offset", 4)
    expert_period: Interval = key("expert_layer_period", 2)
    expert_offset: Offset = key("expert_layer_offset", 1)
    # mamba
    expand: Positive = key("mamba_expand", 2.0)
    d_inner: Size = key("mamba_d_inner", lambda c: int(c.expand * int(c.d_model)))
    bias: bool = key("mamba_proj_bias", False)
    d_conv: Taps = key("mamba_d_conv")
    conv_bias: bool = key("mamba_conv_bias", True)
    dt_rank: Size = key("mamba_dt_rank", lambda c: -(-int(c.d_model) // 16))
    d_state: Size = key("mamba_d_state")
    inner_norms: Literal[True] = key("mamba_inner_layernorms", True)
    # attention
    n_heads: Size = key("num_attention_heads")
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", lambda c: c.d_model // c.n_heads)
    # feed-forward and experts
    d_ff: Size = key("intermediate_size")
    n_experts: Size = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    activation: str = key("hidden_act", "silu")
    # head
    tied: bool = key("tie_word_embeddings", False)

    ignored = NOT_READ | {"num_logits_to_keep", "calc_logits_for_entire_prompt", "n_ctx", "sliding_window"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return {k: v for k, v in super().prepare(raw).items() if v != "auto"}

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        self.must_divide("n_kv_heads", "n_heads")
        if self.n_experts > 1:
            self.must_not_exceed("n_experts_per_token", "n_experts")
        activation(self.activation)

    @property
    def kinds(self) -> list[Mixed]:
        """In order: the token mixer, and whether a layer has experts."""
        return [
            Mixed(
                "attention" if i % self.attention_period == self.attention_offset else "mamba",
                "moe" if self.n_experts > 1 and i % self.expert_period == self.expert_offset else "dense",
            )
            for i in range(self.n_layers)
        ]

    def normed(self, x: Array, w: Weights, name: str) -> Array:
        """The processing of step sizes (dt), input map (b) and output map (c) before their use: a norm."""
        return rms_norm(x, w, f"{name}_layernorm", self.norm_eps)


GGUF = Gguf(
    "jamba",
    {
        "pre_ff_layernorm": "ffn_norm",
        "mamba.dt_layernorm": "ssm_dt_norm",
        "mamba.b_layernorm": "ssm_b_norm",
        "mamba.c_layernorm": "ssm_c_norm",
    },
    is_by_layer=True,
)


@architecture("jamba", config=Jamba, fused=JAMBA_FUSED, gguf=GGUF)
def forward(w: Weights, ids: Array, c: Jamba, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind)
    x = rms_norm(x, w, "model.final_layernorm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Jamba, kind: Mixed) -> Array:
    """One block: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + (mamba(y, w.at("mamba"), cache, c) if kind.mixer == "mamba" else attention(y, w.at("self_attn"), cache, c))
    y = rms_norm(x, w, "pre_ff_layernorm", c.norm_eps)
    if kind.feed_forward == "moe":
        return x + mixture_of_experts(y, w.at("feed_forward"), c)
    return x + feed_forward(y, w.at("feed_forward"), c.d_ff, activation(c.activation))


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Jamba) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    chosen, shares = softmax_routing(linear(x, w, "router", c.n_experts), c.n_experts_per_token, normalise=False)
    return combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff, activation(c.activation)), shares)
