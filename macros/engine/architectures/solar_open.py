"""Solar Open: Llama's attention, and in every layer DeepSeek-V3's mixture of experts.

Source: upstage/Solar-Open-100B by transformers 5's class, whose tensor names these are; the published files hold each
expert by itself.
"""

from __future__ import annotations

from ..facts import NAMED_EXPERTS, Gguf, Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import Rope, embed, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .config import Count, Positive, Size, config, fixed, key
from .deepseek_v2 import check_groups
from .deepseek_v3 import mixture_of_stacked_experts
from .qwen2 import OutputBias, attention
from .rope_config import read_rope
from .tensor_layouts import FUSED


@config
class SolarOpen(OutputBias):
    """Hyperparameters of Solar Open, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128)
    d_ff: Size = fixed(0)
    mlp_bias: bool = fixed(False)
    n_experts: Size = key("n_routed_experts", also=("num_experts", "num_local_experts"))
    n_experts_per_token: Size = key("num_experts_per_tok")
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    normalise: bool = key("norm_topk_prob", True)
    routed_scale: Positive = key("routed_scaling_factor", 1.0)
    d_ff_expert: Size = key("moe_intermediate_size")
    n_shared_experts: Count = key("n_shared_experts")

    ignored = frozenset(
        {"intermediate_size", "first_k_dense_replace", "use_qk_norm", "num_nextn_predict_layers", "num_mtp_layers"}
    )

    def check(self) -> None:
        super().check()
        check_groups(self)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=1_000_000.0)


GGUF = Gguf("glm4moe", {"post_attention_layernorm": "post_attention_norm"})


@architecture("solar_open", config=SolarOpen, pieces=FUSED, gguf=GGUF, peft=Peft(stacked=NAMED_EXPERTS))
def forward(w: Weights, ids: Array, c: SolarOpen, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: SolarOpen, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + mixture_of_stacked_experts(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)
