"""Mistral Small 4: latent attention whose queries grow with the position, and experts chosen by a softmax in groups.

Source: mistralai/Mistral-Small-4-119B-2603, config.json; tensor names of transformers.
"""

from __future__ import annotations

from ..facts import Gguf
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    Rope,
    causal_mask,
    combine,
    embed,
    feed_forward,
    gated_experts,
    group_limited,
    linear,
    positions,
    rms_norm,
    rope_table,
    routing_weights,
    shared_experts,
    softmax,
    top_k,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Raw, Size, activation, config, key
from .deepseek_v2 import LatentMoE, compress_query, latents, queries, read_out
from .deepseek_v3 import GroupedExperts
from .ministral import query_growth
from .rope_config import read_rope, with_rope_of_class
from .tensor_layouts import EXPERT, FUSED

USUAL_ROPE: Raw = {
    "type": "yarn",
    "factor": 128.0,
    "original_max_position_embeddings": 8192,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}


@config
class Mistral4(LatentMoE):
    """Hyperparameters of Mistral Small 4, in forward order."""

    q_lora_rank: Size | None = key("q_lora_rank", 1024)
    normalise: bool = key("norm_topk_prob", True)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The published rotary embedding where the config has none; its share of a head is `qk_rope_head_dim`."""
        raw = super().prepare(with_rope_of_class(raw, USUAL_ROPE))
        table: Raw = raw["rope_parameters"]
        return {**raw, "rope_parameters": {k: v for k, v in table.items() if k != "partial_rotary_factor"}}

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)


GGUF = Gguf(
    "mistral4", {"mlp.experts.gate_proj": "doubled:ffn_gate_up_exps", "mlp.experts.up_proj": "-"}, is_latent=True
)


@architecture("mistral4", config=Mistral4, fused=FUSED, gguf=GGUF, reads_text_alone=True)
def forward(w: Weights, ids: Array, c: Mistral4, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    table, growth = rope_table(places, c.qk_rope_head_dim, c.rope), query_growth(places, c.rope_parameters)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table, growth)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Mistral4, kind: Kind, table: RopeTable, growth: Array) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table, growth)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Mistral4, table: RopeTable, growth: Array) -> Array:
    """Let each token gather information from itself and the tokens before it, kept as latents: [T D] -> [T D]."""
    q, q_rope = queries(compress_query(x, w, c), w, c, table)
    latent, k_rope = latents(x, w, cache, c, table)
    allowed = causal_mask(cache, q, latent, Full())
    return read_out(q * growth, q_rope * growth, latent, k_rope, allowed, w, c)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: GroupedExperts) -> Array:
    """A few experts chosen for each token, and the shared ones: [T D] -> [T k D] -> [T D]."""
    act = activation(c.activation)
    fit = softmax(linear(x, w, "gate", c.n_experts))
    allowed = fit if c.n_expert_groups == 1 else group_limited(fit, c.n_expert_groups, c.n_groups_kept, best=2)
    chosen = top_k(allowed, c.n_experts_per_token)
    shares = routing_weights(fit, chosen, normalise=c.normalise, scale=c.routed_scale)
    routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, act), shares)
    return routed + shared_experts(x, w.at("shared_experts"), c.n_shared_experts * c.d_ff_expert, act)
