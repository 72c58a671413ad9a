"""FlexOlmo: OLMo 2's block, norms after each half, with experts that were trained separately and combined.

Source: arXiv 2507.07024; tensor names as the published files.
"""

from __future__ import annotations

from ..facts import NAMED_EXPERTS, Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Rope,
    combine,
    embed,
    gated_experts,
    linear,
    positions,
    rms_norm,
    rope_table,
    softmax_routing,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Positive, Size, activation, config, fixed, key
from .llama import Llama
from .olmo2 import attention
from .rope_config import read_rope
from .tensor_layouts import EXPERT, FUSED


@config
class FlexOlmo(Llama):
    """Hyperparameters of FlexOlmo, in forward order. d_ff is the inner width of one expert."""

    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    mlp_bias: bool = fixed(False)
    n_experts: Size = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    normalise: bool = key("norm_topk_prob", False)

    ignored = Llama.ignored | {"mlp_bias"}

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, 500_000.0)


@architecture(
    "flex_olmo", config=FlexOlmo, fused=FUSED, peft=Peft(stacked=NAMED_EXPERTS), rounds_heads={"flex_olmo": True}
)
def forward(w: Weights, ids: Array, c: FlexOlmo, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: FlexOlmo, mask: Mask, table: RopeTable) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    x = x + rms_norm(attention(x, w.at("self_attn"), cache, c, mask, table), w, "post_attention_layernorm", c.norm_eps)
    return x + rms_norm(mixture_of_experts(x, w.at("mlp"), c), w, "post_feedforward_layernorm", c.norm_eps)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: FlexOlmo) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    chosen, shares = softmax_routing(linear(x, w, "gate", c.n_experts), c.n_experts_per_token, normalise=c.normalise)
    return combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff, activation(c.activation)), shares)
