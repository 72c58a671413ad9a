"""ERNIE 4.5 MoE: Llama's attention on neighboring pairs, experts chosen by a softmax and a load-balancing bias.

Source: ERNIE 4.5 technical report, baidu/ERNIE-4.5-21B-A3B-PT; tensor names as transformers 5 (the published files
store the bias one level up, as mlp.moe_statics).
"""

from __future__ import annotations

from typing import Any

from ..facts import NAMED_EXPERTS, Gguf, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    Rope,
    apply_rope_pairs,
    attend,
    causal_mask,
    combine,
    embed,
    feed_forward,
    gated_experts,
    heads,
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
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Count, Interval, Positive, Raw, Size, activation, config, key
from .predicted import Module, Place, angles
from .rope_config import OLDER_ROPE_KEYS, read_rope
from .tensor_layouts import EXPERT, FUSED


@config
class Ernie45MoE(Config):
    """Hyperparameters of ERNIE 4.5 MoE, in forward order. d_ff is the inner width of the layers without experts."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    bias: bool = key("use_bias", False)
    first_moe_layer: int = key("moe_layer_start_index", 1)
    last_moe_layer: int = key("moe_layer_end_index", -1)
    moe_interval: Interval = key("moe_layer_interval", 1)
    # attention
    n_heads: Size = key("num_attention_heads")
    n_kv_heads: Size = key("num_key_value_heads", 4)
    d_head: Size = key("head_dim", lambda c: c.default_head_dim())
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # feed-forward
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "silu")
    # experts
    n_experts: Size = key("moe_num_experts", also=("num_experts", "num_local_experts"))
    n_experts_per_token: Size = key("moe_k", also=("num_experts_per_tok",))
    least_share: Positive = key("moe_norm_min", 1e-12)
    d_ff_expert: Size = key("moe_intermediate_size")
    n_shared_experts: Count = key("moe_num_shared_experts")
    # head
    tied: bool = key("tie_word_embeddings", True)

    rewritten = OLDER_ROPE_KEYS
    ignored = frozenset(
        {
            "moe_capacity",
            "moe_gate",
            "moe_use_aux_free",
            "moe_group",
            "moe_aux_loss_lambda",
            "use_rmsnorm",
            "num_nextn_predict_layers",
            "multi_token_pred_lambda",
            "compression_ratio",
            "fuse_rope",
            "freq_allocation",
            "moe_multimodal_dispatch_use_allgather",
            "moe_use_hard_gate",
            "moe_gate_act",
            "moe_orthogonal_loss_lambda",
            "moe_z_loss_lambda",
            "moe_dropout_prob",
            "rope_3d",
        }
    )

    def default_head_dim(self) -> int:
        """head_dim if the config leaves it out: d_model / n_heads."""
        self.must_divide("n_heads", "d_model")
        return self.d_model // self.n_heads

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        self.must_not_exceed("n_experts_per_token", "n_experts")
        activation(self.activation)
        self.rope.turning(self.d_head)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=500000.0)

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts."""
        last = self.n_layers - 1 if self.last_moe_layer == -1 else self.last_moe_layer
        return [
            Kind((i + 1) % self.moe_interval == 0 and self.first_moe_layer <= i <= last) for i in range(self.n_layers)
        ]


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    return layer(x, w, cache, c, Kind(False), angles(ids, cache, c.d_head, c.rope))


MTP = Module(
    draft_layer,
    "model",
    "mtp_emb_norm.{k}",
    "mtp_hidden_norm.{k}",
    "mtp_linear_proj.{k}",
    "mtp_block.{k}",
    "",
)


@architecture(
    "ernie4_5_moe",
    config=Ernie45MoE,
    fused=FUSED,
    spellings=(("mlp.moe_statics", "mlp.gate.moe_statics"),),
    gguf=Gguf("ernie4_5-moe"),
    predicts=MTP,
    peft=Peft(stacked=NAMED_EXPERTS),
    rounds_heads={"ernie4_5_moe": True},
)
def forward(w: Weights, ids: Array, c: Ernie45MoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(
        x,
        w,
        "model.embed_tokens.weight" if c.tied else "lm_head.weight",
        c.vocab_size,
        last=last,
        bias="lm_head.bias" if c.bias else None,
    )


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Ernie45MoE, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation), bias=c.bias)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Ernie45MoE, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.bias), c.n_kv_heads, c.d_head)
    q, k = apply_rope_pairs(q, table), apply_rope_pairs(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(
        attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5), w, "o_proj", c.d_model, bias=c.bias
    )


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Ernie45MoE) -> Array:
    """A few experts chosen for each token, and the shared ones: [T D] -> [T k D] -> [T D].

    The stored bias balances the experts' load; the routing weights exclude it. It counts as a parameter: the published
    total does so.
    """
    act = activation(c.activation)
    fit = softmax(linear(x, w, "gate", c.n_experts))
    chosen = top_k(fit + w("gate.moe_statics.e_score_correction_bias", 1, c.n_experts), c.n_experts_per_token)
    shares = routing_weights(fit, chosen, normalise=True, least=c.least_share)
    routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, act), shares)
    if not c.n_shared_experts:
        return routed
    return routed + shared_experts(x, w.at("shared_experts"), c.n_shared_experts * c.d_ff_expert, act, bias=c.bias)
