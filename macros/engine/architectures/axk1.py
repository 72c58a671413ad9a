"""A.X K1: DeepSeek-V3 with one more norm, on the output of a mixture of experts.

Source: skt/A.X-K1, config.json; tensor names of transformers. The published files have no bias for the choice of
experts, and a norm in the layer without experts that nothing uses.
"""

from __future__ import annotations

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Kind, embed, feed_forward, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .config import Size, activation, config, key
from .deepseek_v2 import attention
from .deepseek_v3 import DeepSeekV3, all_experts
from .tensor_layouts import FUSED


@config
class AXK1(DeepSeekV3):
    """Hyperparameters of A.X K1, in forward order."""

    dense_layers: int = key("first_k_dense_replace", 1)
    q_lora_rank: Size = key("q_lora_rank")


@architecture("axk1", config=AXK1, fused=FUSED, spellings=(("{0}.post_mlp_layernorm", "{0}.mlp.post_mlp_layernorm"),))
def forward(w: Weights, ids: Array, c: AXK1, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: AXK1, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: AXK1) -> Array:
    """A few experts chosen for each token, and the shared ones, normalized: [T D] -> [T k D] -> [T D]."""
    bias = w.buffer("gate.e_score_correction_bias", c.n_experts, counted=False)
    return rms_norm(all_experts(x, bias, w, c), w, "post_mlp_layernorm", c.norm_eps)
