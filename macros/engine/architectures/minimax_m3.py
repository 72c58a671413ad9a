"""MiniMax-M3: an indexer that picks blocks of tokens for each key/value head, and a clamped gate everywhere.

Source: MiniMaxAI/MiniMax-M3, config.json; tensor names of transformers. The text model of a multimodal one.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from msgspec import Struct

from ..facts import Gguf
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    PickedBlocks,
    Rope,
    apply_rope,
    attend,
    block_scores,
    block_sparse_attention,
    causal_mask,
    clipped_swiglu,
    combine,
    embed,
    expert_linear,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    routing_weights,
    sigmoid_scores,
    top_k,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Raw, Size, config, fixed, key, must_name, take_table
from .llama import Llama
from .predicted import Module, Place, angles
from .rope_config import read_rope
from .tensor_layouts import EXPERT, FUSED, NUMBERED

# What the table `sparse_attention_config` of published configs calls the keys of transformers.
OF_TABLE = {
    "index_n_heads": "sparse_num_index_heads",
    "index_head_dim": "sparse_index_dim",
    "index_block_size": "sparse_block_size",
    "index_topk_blocks": "sparse_topk_blocks",
    "index_local_blocks": "sparse_local_block",
}


class PickingKind(Struct, frozen=True):
    """Whether a layer has experts, and an indexer that picks blocks."""

    moe: bool
    picks: bool

    def __str__(self) -> str:
        return f"{'picked blocks' if self.picks else 'full'}, {'moe' if self.moe else 'dense'}"


@config
class MiniMaxM3(Llama):
    """Hyperparameters of MiniMax-M3, in forward order.

    d_ff is the inner width of one expert, d_ff_dense that of the layers without experts.
    """

    n_kv_heads: Size = key("num_key_value_heads", 4)
    d_head: Size = key("head_dim", 128)
    attention_bias: bool = fixed(False)
    layer_types: list[str] = key("layer_types", lambda c: ["full_attention"] * c.n_layers)
    index_n_heads: Size | None = key("index_n_heads", 4)
    index_head_dim: Size | None = key("index_head_dim", 128)
    block_size: Size | None = key("index_block_size", 128)
    n_blocks: Size | None = key("index_topk_blocks", 16)
    n_local_blocks: int = key("index_local_blocks", 1)
    mlp_bias: bool = fixed(False)
    mlp_layer_types: list[str] = key("mlp_layer_types", lambda c: ["sparse"] * c.n_layers)
    d_ff_dense: Size = key("dense_intermediate_size")
    gate_slope: Positive = key("swiglu_alpha", 1.702)
    gate_limit: Positive = key("swiglu_limit", 7.0)
    n_experts: Size = key("num_local_experts", also=("num_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    routed_scale: Positive = key("routed_scaling_factor", 2.0)
    d_ff_shared: Size = key("shared_intermediate_size")
    activation: str = fixed("silu")

    rewritten = Llama.rewritten | {"sparse_attention_config", "moe_layer_freq"}
    ignored = frozenset(
        {
            "hidden_act",
            "rotary_dim",
            "attention_bias",
            "mlp_bias",
            "use_qk_norm",
            "qk_norm_type",
            "use_gemma_norm",
            "use_routing_bias",
            "scoring_func",
            "n_shared_experts",
            "num_mtp_modules",
            "mtp_transformer_layers",
            "use_mtp",
            "attention_output_gate",
        }
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The keys of the table `sparse_attention_config` and the lists of 0 and 1 in transformers' spelling."""
        raw = super().prepare(raw)
        table = take_table(raw, "sparse_attention_config")
        raw |= {ours: table[theirs] for ours, theirs in OF_TABLE.items() if theirs in table}
        for name, ones, zero, one in (
            ("layer_types", table.get("sparse_attention_freq"), "full_attention", "minimax_m3_sparse"),
            ("mlp_layer_types", raw.pop("moe_layer_freq", None), "dense", "sparse"),
        ):
            if raw.get(name) is None and isinstance(ones, list):
                raw[name] = [one if on else zero for on in cast("list[int]", ones)]
        return raw

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")
        self.rope.turning(self.d_head)
        if any(kind.picks for kind in self.kinds):
            self.must_divide("n_kv_heads", "index_n_heads")
            self.must_divide("index_n_heads", "n_heads")

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=5e6)

    @property
    def kinds(self) -> list[PickingKind]:
        """In order: whether a layer has experts, and an indexer."""
        must_name("layer_types", self.layer_types, ("full_attention", "minimax_m3_sparse"), self.n_layers)
        must_name("mlp_layer_types", self.mlp_layer_types, ("dense", "sparse"), self.n_layers)
        return [
            PickingKind(m == "sparse", a != "full_attention") for m, a in zip(self.mlp_layer_types, self.layer_types)
        ]


GGUF = Gguf(
    "minimax-m3",
    {
        "mlp.gate_up_proj": "ffn_gate/ffn_up",
        "mlp.shared_experts.gate_up_proj": "ffn_gate_shexp/ffn_up_shexp",
        **{f"self_attn.indexer.{name}": f"indexer.{name}" for name in ("q_proj", "k_proj", "q_norm", "k_norm")},
    },
    native=(("indexer.q_proj.weight", "F32"), ("indexer.k_proj.weight", "F32")),
)


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    kind = PickingKind(True, True)
    return layer(x, w, cache, c, kind, angles(ids, cache, c.d_head, c.rope))


MTP = Module(draft_layer, "model.mtp.layers.{k}", block="transformer_layer", last_norm="final_layernorm", offset=1)


@architecture(
    "minimax_m3_vl_text",
    "minimax_m3",
    "minimax_m3_text",
    config=MiniMaxM3,
    fused=FUSED,
    spellings=(
        (".block_sparse_moe.e_score_correction_bias", ".mlp.gate.e_score_correction_bias"),
        (".block_sparse_moe.", ".mlp."),
        *NUMBERED,
        *(
            (f"self_attn.index_{name}.", f"self_attn.indexer.{name}.")
            for name in ("q_proj", "k_proj", "q_norm", "k_norm")
        ),
    ),
    pieces={
        f"{part}.gate_up_proj.weight": (f"{part}.gate_proj.weight", f"{part}.up_proj.weight")
        for part in ("mlp", "mlp.shared_experts")
    },
    gguf=GGUF,
    predicts=MTP,
    classes={"minimax_m3": "MiniMaxM3SparseForCausalLM"},  # vLLM, models/registry.py
)
def forward(w: Weights, ids: Array, c: MiniMaxM3, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps, offset=1)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: MiniMaxM3, kind: PickingKind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps, offset=1)
    x = x + attention(y, w.at("self_attn"), cache, c, kind, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps, offset=1)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff_dense, c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: MiniMaxM3, kind: PickingKind, table: RopeTable) -> Array:
    """Let each token gather information from all before it, or from the blocks that are picked: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = rms_norm(heads(linear(x, w, "q_proj", N * H), N, H), w, "q_norm", c.norm_eps, offset=1)
    k = rms_norm(heads(linear(x, w, "k_proj", K * H), K, H), w, "k_norm", c.norm_eps, offset=1)
    v = heads(linear(x, w, "v_proj", K * H), K, H)
    q, k = apply_rope(q, table), apply_rope(k, table)
    mask = PickedBlocks(c.size("block_size"), c.size("n_blocks")) if kind.picks else Full()
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    if isinstance(mask, PickedBlocks):
        places = indexer(x, w.at("indexer"), cache, c, mask, table)
        mixed = block_sparse_attention(q, k, v, places, cache.length, H**-0.5)
    else:
        mixed = attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5)
    return linear(mixed, w, "o_proj", c.d_model)


@step(Role.INDEXER)
def indexer(x: Array, w: Weights, cache: KVCache, c: MiniMaxM3, mask: PickedBlocks, table: RopeTable) -> Array:
    """The positions of all tokens in the blocks that each small head picks for each new one: [T D] -> [T G I]."""
    G, H = c.size("index_n_heads"), c.size("index_head_dim")
    q = rms_norm(heads(linear(x, w, "q_proj", G * H), G, H), w, "q_norm", c.norm_eps, offset=1)
    k = rms_norm(heads(linear(x, w, "k_proj", H), 1, H), w, "k_norm", c.norm_eps, offset=1)
    q, k = apply_rope(q, table), apply_rope(k, table)[:, 0]
    k = cache.extend(Holds.INDEX_KEYS, k, Full())
    T, S = q.shape[0], k.shape[0]
    query = np.arange(T, like=q) + cache.length
    fit = block_scores(q, k, query, mask.size)
    block, its = np.arange(fit.shape[2], like=q)[None, :], (query // mask.size)[:, None]
    is_near = (block <= its) & (block > its - c.n_local_blocks)
    fit = np.where(is_near[:, None, :], np.inf, fit)
    picked = top_k(fit.reshape(T * G, fit.shape[2]), mask.picks(S)).reshape(T, G, mask.picks(S))
    places = picked[..., None] * mask.size + np.arange(mask.size, like=q)
    return places.reshape(T, G, mask.picks(S) * mask.size)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, d_ff: int, c: MiniMaxM3) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T 2F] -> [T F] -> [T D]."""
    gate, up = np.split(linear(x, w, "gate_up_proj", 2 * d_ff), 2, axis=-1)
    return linear(clipped_swiglu(gate, up, c.gate_limit, c.gate_slope), w, "down_proj", c.d_model)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: MiniMaxM3) -> Array:
    """A few experts chosen for each token, and a shared one: [T D] -> [T k D] -> [T D].

    The stored bias balances the experts' load; the routing weights exclude it.
    """
    fit = sigmoid_scores(linear(x, w, "gate", c.n_experts))
    chosen = top_k(fit + w.buffer("gate.e_score_correction_bias", c.n_experts), c.n_experts_per_token)
    shares = routing_weights(fit, chosen, normalise=True, scale=c.routed_scale)
    return combine(experts(x, chosen, w, c), shares) + shared_expert(x, w.at("shared_experts"), c)


@step(Role.EXPERTS)
def experts(x: Array, chosen: Array, w: Weights, c: MiniMaxM3) -> Array:
    """Each token through its chosen experts: [T D], [T k] -> [T k F] -> [T k D]."""
    E, k, D, F = c.n_experts, c.n_experts_per_token, c.d_model, c.d_ff
    gate, up = (expert_linear(x, w.stack(name, E, F, D, used=k), chosen) for name in EXPERT[:2])
    wide = clipped_swiglu(gate, up, c.gate_limit, c.gate_slope)
    return expert_linear(wide, w.stack(EXPERT[2], E, D, F, used=k), chosen)


@step(Role.SHARED_EXPERTS)
def shared_expert(x: Array, w: Weights, c: MiniMaxM3) -> Array:
    """The shared expert: [T D] -> [T F] -> [T D]."""
    return feed_forward(x, w, c.d_ff_shared, c)
