"""Mixtral: Mistral's block, with a mixture of experts as its feed-forward network.

Source: arXiv 2401.04088; tensor names as the published files.
"""

from __future__ import annotations

from ..facts import QUERY_VALUE, W_EXPERTS, Gguf, Mlx, Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import Rope, combine, embed, gated_experts, linear, positions, rms_norm, rope_table, softmax_routing, unembed
from ..steps import Role, step
from . import architecture
from .config import Positive, Size, activation, config, key
from .llama import Mistral, attention
from .rope_config import read_rope
from .tensor_layouts import MIXTRAL_EXPERT, MIXTRAL_FUSED


@config
class Mixtral(Mistral):
    """Hyperparameters of Mixtral, in forward order. d_ff is the inner width of one expert."""

    n_kv_heads: Size = key("num_key_value_heads", 8)
    n_experts: Size = key("num_local_experts", also=("num_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    norm_eps: Positive = key("rms_norm_eps", 1e-5)

    ignored = frozenset({"attention_bias", "mlp_bias"})

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=1e6)


@architecture(
    "mixtral",
    config=Mixtral,
    fused=MIXTRAL_FUSED,
    gguf=Gguf("llama", seventy=80, in_pairs=True),
    peft=Peft(QUERY_VALUE, W_EXPERTS),
    mlx=Mlx(routers="linear"),
    rounds_heads={"mixtral": True},
)
def forward(w: Weights, ids: Array, c: Mixtral, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Mixtral, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + mixture_of_experts(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("block_sparse_moe"), c)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Mixtral) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    chosen, shares = softmax_routing(linear(x, w, "gate", c.n_experts), c.n_experts_per_token, normalise=True)
    return combine(gated_experts(x, chosen, w, MIXTRAL_EXPERT, c.n_experts, c.d_ff, activation(c.activation)), shares)
