"""DeepSeekMoE, the first: Llama's attention, many small experts chosen by a softmax, and some that all tokens pass.

So are the text models of DeepSeek-OCR 2 and of Unlimited-OCR; this one forgets what it wrote before its window, which
is left out here. Source: arXiv 2401.06066, modeling_deepseek.py of
deepseek-ai/deepseek-moe-16b-base; tensor names as the published file.
"""

from __future__ import annotations

from typing import Literal

from ..errors import only_forward
from ..facts import UNREAD, Gguf
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    combine,
    embed,
    feed_forward,
    gated_experts,
    linear,
    positions,
    rms_norm,
    rope_table,
    shared_experts,
    softmax_routing,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Count, Interval, Positive, Size, activation, config, derived, fixed, key, sparse_layers
from .llama import Llama, attention
from .tensor_layouts import EXPERT, FUSED


@config
class DeepSeekMoE(Llama):
    """Hyperparameters of DeepSeekMoE, in forward order. d_ff is the inner width of the layers without experts."""

    # layers
    dense_layers: int = key("first_k_dense_replace", 0)
    moe_layer_freq: Interval = key("moe_layer_freq", 1)
    # feed-forward
    mlp_bias: bool = fixed(False)
    # experts
    n_experts: Size = key("n_routed_experts", also=("num_experts", "num_local_experts"))
    n_experts_per_token: Size = key("num_experts_per_tok")
    scoring: Literal["softmax"] = key("scoring_func", "softmax")
    normalise: bool = key("norm_topk_prob", False)
    routed_scale: Positive = fixed(1.0)
    d_ff_expert: Size = key("moe_intermediate_size")
    n_shared_experts: Count = key("n_shared_experts")

    ignored = Llama.ignored | {"mlp_bias"}

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts."""
        return [Kind(i >= self.dense_layers and i % self.moe_layer_freq == 0) for i in range(self.n_layers)]


@config
class DeepSeekOCR2(DeepSeekMoE):
    """Hyperparameters of the text model of DeepSeek-OCR 2, in forward order."""

    d_head: Size = derived(lambda c: c.default_head_dim())
    mlp_layer_types: list[str] | None = key("mlp_layer_types", None)
    mlp_bias: bool = key("mlp_bias", False)
    routed_scale: Positive = key("routed_scaling_factor", 1.0)
    choice: Literal["greedy"] = key("topk_method", "greedy")
    normalise: bool = fixed(False)

    ignored = Llama.ignored | {"norm_topk_prob", "n_group", "topk_group", "head_dim"}

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts."""
        if self.mlp_layer_types is None:
            return [Kind(i >= self.dense_layers and i % self.moe_layer_freq == 0) for i in range(self.n_layers)]
        return [Kind(moe) for moe in sparse_layers(self.mlp_layer_types, self.n_layers)]


@config
class UnlimitedOCR(DeepSeekOCR2):
    """Hyperparameters of the text model of Unlimited-OCR, in forward order.

    Its attention sees the whole image and prompt, but only the last tokens of its own output. Here a context counts as
    a prompt.
    """

    dense_layers: int = key("first_k_dense_replace", 1)
    n_kv_heads: Size = key("num_key_value_heads", 10)

    ignored = DeepSeekOCR2.ignored | {"sliding_window", "layer_types"}
    caveat = (
        "This model keeps the whole prompt, and of the text that it writes the last `sliding_window` tokens. The "
        "figures take the context for a prompt."
    )

    def check(self) -> None:
        super().check()
        if self.looks_both_ways:
            raise only_forward("its window over what it writes")


@architecture("deepseek", config=DeepSeekMoE, fused=FUSED, gguf=Gguf("deepseek"))
@architecture("unlimited_ocr_text", config=UnlimitedOCR, fused=FUSED, gguf=Gguf("deepseek2-ocr"))
@architecture("deepseek_ocr2_text", config=DeepSeekOCR2, fused=FUSED, gguf=UNREAD)
def forward(w: Weights, ids: Array, c: DeepSeekMoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: DeepSeekMoE, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, Full(), table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation), bias=c.mlp_bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: DeepSeekMoE) -> Array:
    """A few experts chosen for each token, and those that all pass through: [T D] -> [T k D] -> [T D]."""
    act, fit = activation(c.activation), linear(x, w, "gate", c.n_experts)
    chosen, shares = softmax_routing(fit, c.n_experts_per_token, normalise=c.normalise, scale=c.routed_scale)
    routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, act), shares)
    return routed + shared_experts(x, w.at("shared_experts"), c.n_shared_experts * c.d_ff_expert, act, bias=c.mlp_bias)
