"""Step 5: Step 3.5's block, and where a layer has no window, an indexer that picks regions for each key/value head.

A region's key is the average of its tokens', element by element by gates. Each token sees its own region besides.
Source: stepfun-ai/Step-5-Preview by vLLM 0.33, models/step5; norm weights are stored as the distance from 1. That code
keeps the keys of regions in FP8, which is left out, and loads a number for each head that it never reads. The text
model of a multimodal one, whose file calls it step4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from msgspec.structs import replace as changed

from ..errors import Problem, shorten
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    OF_INDEXER,
    Compressed,
    Full,
    PickedBlocks,
    Rope,
    apply_rope,
    block_sparse_attention,
    embed,
    heads,
    layer_norm,
    linear,
    positions,
    relu,
    rms_norm,
    rope_table,
    top_k,
    unembed,
    window_averages,
)
from ..steps import Holds, Role, step
from . import architecture, step3p5
from .config import Count, Interval, Raw, Size, config, dense_first, fixed, fold_table, key, listed, tabled
from .predicted import Place, angles
from .rope_config import rope_of_mask
from .step3p5 import (
    SPELLINGS,
    STACKS,
    ClampedKind,
    Step3p5,
    fed_forward,
    kind_of_module,
    queries_keys_values,
    read_out,
)
from .tensor_layouts import FUSED

# Redundant keys: the code reads only these.
REPEATED = {
    f"{name}_{kind}_attention": name for name in ("head_dim", "num_attention_groups") for kind in ("full", "sliding")
}


@config
class Step5(Step3p5):
    """Hyperparameters of Step 5, in forward order."""

    # layers
    layer_types: list[str] = key("layer_types")
    mlp_layer_types: list[str] = key("mlp_layer_types", lambda c: dense_first(1, c.n_layers))
    zero_centered: Literal[True] = key("zero_centered", True)
    # attention
    n_kv_heads: Size = key("num_attention_groups", 8, also=("num_key_value_heads",))
    n_sliding_heads: Size = key("num_sliding_attention_heads", lambda c: c.n_heads, also=("swa_num_attention_heads",))
    d_head: Size = key("head_dim", lambda c: c.default_head_dim())
    attention_bias: Literal[False] = key("attention_bias", False)
    has_gates: Literal[True] = key("use_head_wise_attn_gate", True)
    kind_of_attention: Literal["GQA"] = key("att_impl_type", "GQA")
    # indexer
    picks: bool = key("sparse_config.enabled", True)
    index_n_heads: Size = key("sparse_config.sparse_indexer_num_heads", 16)
    index_kv_heads: Literal[1] = key("sparse_config.sparse_indexer_num_k_heads", 1)
    index_groups: Interval = key("sparse_config.num_provider_groups", 4, also=("sparse_config.index_tp_size",))
    index_head_dim: Size = key("sparse_config.proxy_dim", 256)
    index_rotary: Interval = key("sparse_config.sparse_indexer_rope_dim", 32)
    index_turns: Literal[True] = key("sparse_config.sparse_indexer_use_rope", True)
    index_q_norm: Literal["rmsnorm"] = key("sparse_config.sparse_indexer_q_norm_type", "rmsnorm")
    index_k_norm: Literal["layernorm"] = key("sparse_config.sparse_indexer_k_norm_type", "layernorm")
    index_z_norm: Literal["none"] = key("sparse_config.sparse_indexer_csa_z_norm_type", "none")
    compression: Literal["csa_block_compress"] = key("sparse_config.compression_method", "csa_block_compress")
    implementation: Literal["sparse_gqa"] = key("sparse_config.attention_impl", "sparse_gqa")
    block_size: Size = key("sparse_config.region_block_size", 8)
    n_blocks: Size = key("sparse_config.topk", 512)
    # experts
    normalise: bool = key("norm_expert_weight", True)
    scoring: Literal["sigmoid"] = key("moe_router_activation", "sigmoid")
    balanced: Literal[True] = key("use_moe_router_bias", True)
    d_ff_shared: Count = key("share_expert_dim", lambda c: c.d_ff_expert * c.n_experts_per_token)
    activation: str = fixed("silu")

    as_transformers = False
    otherwise = ()
    rewritten = Step3p5.rewritten | {
        "layer_types_with_mtp",
        "moe_layer_list",
        "sparse_config",
        "sparse_config.apply_to_layer_types",
        "use_rope_layers",
        "yarn_only_types",
        *REPEATED,
    }
    ignored = (Step3p5.ignored - {"use_rope_layers", "yarn_only_types"}) | {
        "fp32_residual_connection",
        "hidden_act",
        "norm_dtype",
        "sparse_config.sparse_indexer_softmax_variant",
        "sparse_config.sparse_indexer_ssmax_s_granularity",
    }

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The table `sparse_config` as keys of its own, and lists under the names that Step 3.5 has for them."""
        if "num_attention_groups" in raw and raw.get("sparse_config") is None and "sparse_config.topk" not in raw:
            raise Problem("sparse_config is missing", "the published code has no Step 5 without it")
        types, experts = raw.pop("layer_types_with_mtp", None), raw.pop("moe_layer_list", None)
        if types is not None:
            raw["layer_types"] = types
        if experts is not None and raw.get("moe_layers_enum") is None:
            raw["moe_layers_enum"] = experts
        raw = fold_table(raw, "sparse_config")
        _only(raw, "sparse_config.apply_to_layer_types", [["full_attention"]])
        if raw.get("rope_scaling") is not None:
            _only(raw, "yarn_only_types", [["full_attention"]])
        raw.pop("yarn_only_types", None)
        turning = listed(raw.pop("use_rope_layers", None)) or []
        if not all(one is True for one in turning):
            raise Problem(f"use_rope_layers = {shorten(turning)}: a layer does not turn", "only true is described")
        other = tabled(raw.get("attention_other_setting")) or {}
        for name in REPEATED.values():
            given = {f"attention_other_setting.{name}": other.get(name)}
            given |= {again: raw.pop(again, None) for again, one in REPEATED.items() if one == name}
            for again, value in given.items():
                if value is not None and raw.get(name) is not None and value != raw[name]:
                    raise Problem(
                        f"{again} = {shorten(value)} and {name} = {shorten(raw[name])}", "only one width is described"
                    )
        return super().prepare(raw)

    def check(self) -> None:
        super().check()
        self.must_divide("n_kv_heads", "index_n_heads")
        if self.index_groups != self.n_kv_heads:
            raise Problem(
                f"sparse_config.num_provider_groups = {self.index_groups} and num_attention_groups = "
                f"{int(self.n_kv_heads)}",
                "give both the same",
            )
        if self.index_rotary > self.index_head_dim or self.index_rotary % 2:
            raise Problem(
                f"sparse_config.sparse_indexer_rope_dim = {self.index_rotary}: expected an even number, at most "
                f"sparse_config.proxy_dim = {int(self.index_head_dim)}",
                "correct one of the two",
            )

    @property
    def index_rope(self) -> Rope:
        """The rotary embedding of the indexer: that of the full-attention layers, over fewer dimensions."""
        rope = rope_of_mask(self.rope_parameters, Full())
        return replace(rope, partial=self.index_rotary / int(self.index_head_dim))

    @property
    def picked(self) -> Mask:
        """The mask of layers without a window."""
        return PickedBlocks(self.block_size, self.n_blocks + 1) if self.picks else Full()

    @property
    def kinds(self) -> list[ClampedKind]:
        return [
            ClampedKind(kind.moe, self.picked, kind.limit, kind.shared_limit) if kind.mask == Full() else kind
            for kind in super().kinds
        ]


def _only(raw: Raw, name: str, known: list[Any]) -> None:
    """Take a key out. Raises `Problem` for a value that is not known."""
    value = raw.pop(name, None)
    if value is not None and value not in known:
        raise Problem(f"{name} = {shorten(value)}", f"only {shorten(known[0])} is described")


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    kind = kind_of_module(at, c)
    table = angles(ids, cache, c.d_head, rope_of_mask(c.rope_parameters, kind.mask))
    of_index = angles(ids, cache, c.index_head_dim, c.index_rope)
    kind = ClampedKind(kind.moe, c.picked, kind.limit, kind.shared_limit) if kind.mask == Full() else kind
    return layer(x, w, cache, c, kind, table, of_index)


@architecture(
    "step5",
    "step4",
    config=Step5,
    fused=STACKS,
    spellings=SPELLINGS,
    pieces=FUSED,
    predicts=changed(step3p5.MTP, layer=draft_layer),
)
def forward(w: Weights, ids: Array, c: Step5, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    masks = dict.fromkeys(kind.mask for kind in c.kinds)
    tables = {mask: rope_table(places, c.d_head, rope_of_mask(c.rope_parameters, mask)) for mask in masks}
    of_index = rope_table(places, c.index_head_dim, c.index_rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, tables[kind.mask], of_index)
    x = rms_norm(x, w, "model.norm", c.norm_eps, offset=1)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(
    x: Array, w: Weights, cache: KVCache, c: Step5, kind: ClampedKind, table: RopeTable, of_index: RopeTable
) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps, offset=1)
    if isinstance(kind.mask, PickedBlocks):
        mixed = attention(y, w.at("self_attn"), cache, c, kind.mask, table, of_index)
    else:
        mixed = step3p5.attention(y, w.at("self_attn"), cache, c, kind.mask, table)
    return fed_forward(x + mixed, w, c, kind)


@step(Role.ATTENTION)
def attention(
    x: Array, w: Weights, cache: KVCache, c: Step5, mask: PickedBlocks, table: RopeTable, of_index: RopeTable
) -> Array:
    """Let each token gather information from picked regions, and gate each head's output: [T D] -> [T D]."""
    q, k, v = queries_keys_values(x, w, cache, c, mask, table)
    places = indexer(x, w, cache, c, mask, of_index)
    mixed = block_sparse_attention(q, k, v, places, cache.length, c.query_scalar**-0.5)
    return read_out(mixed, x, w, c, c.n_heads)


@step(Role.INDEXER)
def indexer(x: Array, w: Weights, cache: KVCache, c: Step5, mask: PickedBlocks, table: RopeTable) -> Array:
    """The positions of all tokens in the regions that are picked for each key/value head: [T D] -> [T G I].

    Several small heads pick together, by their weighted scores. Later positions are ignored.
    """
    T, G, N, H, every = x.shape[0], c.n_kv_heads, c.index_n_heads, c.index_head_dim, mask.size
    q = heads(linear(x, w, "sparse_indexer_q", N * H), N, H)
    q = apply_rope(rms_norm(q, w, "sparse_indexer_q_norm", c.norm_eps, offset=1), table)
    k = layer_norm(linear(x, w, "sparse_indexer_k", H), w, "sparse_indexer_k_norm", c.norm_eps)
    k = apply_rope(k[:, None, :], table)[:, 0]
    regions = window_averages(k, linear(x, w, "sparse_indexer_z", H), None, cache, OF_INDEXER, every)
    regions = cache.extend(Holds.INDEX_KEYS, regions, Compressed(every), every=every)
    weights = linear(x, w, "sparse_indexer_w", N) * (N // G) ** -0.5
    fit = relevance(q.reshape(T, G, N // G, H), regions, weights.reshape(T, G, N // G), w, c.n_heads)
    context = cache.length + T
    n = (context + every - 1) // every
    fit = np.pad(fit, ((0, 0), (0, 0), (0, n - regions.shape[0])))
    region, own = np.arange(n, like=x)[None, :], ((np.arange(T, like=x) + cache.length) // every)[:, None]
    fit = np.where((region < own)[:, None, :], fit, np.where((region == own)[:, None, :], np.inf, -np.inf))
    picked = top_k(fit.reshape(T * G, n), mask.picks(context)).reshape(T, G, mask.picks(context))
    places = picked[..., None] * every + np.arange(every, like=x)
    return places.reshape(T, G, mask.picks(context) * every)


@step(Role.INDEX_SCORES)
def relevance(q: Array, k: Array, weights: Array, w: Weights, n_heads: int) -> Array:
    """The relevance of each region to each group, by its small heads: [T G N H], [P H], [T G N] weights -> [T G P].

    The file has a number for each head of attention, for another way to score, which the published code loads alone.
    """
    w.buffer("ssmax_s", n_heads)
    return np.einsum("tgn,tgnp->tgp", weights, relu(np.einsum("tgnh,ph->tgnp", q, k, optimize=True)), optimize=True)
