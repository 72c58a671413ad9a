"""MiMo-V2-Flash: windows with a sink and twice the key/value heads, values narrower than keys, DeepSeek-V3's experts.

Source: XiaomiMiMo/MiMo-V2-Flash by transformers 5's class, whose tensor names these are; the published files hold each
expert by itself, and their window of W sees the token itself and W before it. MiMo-V2.5 and 2.6 are of the type
`mimo_v2`, and the larger ones have queries, keys and values in one matrix: vLLM, model_executor/models/mimo_v2.py.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..errors import Problem
from ..facts import Gguf, Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Kind,
    Rope,
    SlidingWindow,
    apply_rope,
    causal_mask,
    combine,
    embed,
    feed_forward,
    heads,
    linear,
    masked,
    packed_experts,
    positions,
    repeat_kv,
    rms_norm,
    rope_table,
    scores,
    softmax,
    softmax_with_sink,
    unembed,
    weighted_sum,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Raw, Size, activation, config, dense_first, fixed, key, listed, masks_of, sparse_layers
from .deepseek_v2 import check_groups
from .deepseek_v3 import routing
from .llama import Llama
from .otherwise import Otherwise, Table, other_than
from .predicted import Module, Place, angles
from .rope_config import fold_rope_of_kinds, read_rope, rope_of_mask
from .tensor_layouts import FUSED, PACKED


@config
class MiMoV2Flash(Llama):
    """Hyperparameters of MiMo-V2-Flash, in forward order. d_ff is the inner width of the layers without experts."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5, also=("layernorm_epsilon",))
    sliding_window: Size | None = key("sliding_window", 129)
    layer_types: list[str] = key("layer_types", lambda c: c.default_layer_types())
    mlp_layer_types: list[str] = key("mlp_layer_types", lambda c: dense_first(1, c.n_layers))
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 4)
    n_sliding_kv_heads: Size = key("swa_num_key_value_heads", lambda c: 2 * int(c.n_kv_heads))
    d_head: Size = key("head_dim", 192)
    v_head_dim: Size = key("v_head_dim", 128)
    value_scale: Positive | None = key("attention_value_scale", 0.707)
    layout: Literal["split", "fused_qkv"] = key("attention_projection_layout", "split")
    sliding_sinks: bool = key("add_swa_attention_sink_bias", True)
    full_sinks: bool = key("add_full_attention_sink_bias", False)
    # feed-forward
    mlp_bias: bool = fixed(False)
    # experts
    n_experts: Size = key("n_routed_experts", also=("num_experts", "num_local_experts"))
    n_experts_per_token: Size = key("num_experts_per_tok")
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    normalise: bool = key("norm_topk_prob", True)
    routed_scale: Positive = key("routed_scaling_factor", 1.0)
    d_ff_expert: Size = key("moe_intermediate_size")

    rewritten = Llama.rewritten | {
        "sliding_window_size",
        "hybrid_layer_pattern",
        "moe_layer_freq",
        "swa_num_attention_heads",
        "swa_head_dim",
        "swa_v_head_dim",
        "swa_rope_theta",
    }
    ignored = Llama.ignored | {
        "mlp_bias",
        "use_qk_norm",
        "scoring_func",
        "topk_method",
        "n_shared_experts",
        "attention_chunk_size",
        "hybrid_block_size",
        "num_nextn_predict_layers",
    }

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The published spelling: 1 for a window and for experts, and keys of their own for the layers with one."""
        window = raw.pop("sliding_window_size", None)
        if isinstance(window, int) and window:
            raw["sliding_window"] = window + 1
        for old, new, words in (
            ("hybrid_layer_pattern", "layer_types", ("full_attention", "sliding_attention")),
            ("moe_layer_freq", "mlp_layer_types", ("dense", "sparse")),
        ):
            pattern = listed(raw.pop(old, None))
            if pattern is not None and raw.get(new) is None:
                raw[new] = [words[1] if entry else words[0] for entry in pattern]
        for name in ("num_attention_heads", "head_dim", "v_head_dim"):
            value = raw.pop(f"swa_{name}", None)
            if value is not None and value != raw.get(name):
                raise Problem(
                    f"swa_{name} = {value} and {name} = {raw.get(name)}", "the site describes only layers of one size"
                )
        partial = {"rope_type": "default", "partial_rotary_factor": raw.pop("partial_rotary_factor", None) or 0.334}
        full, sliding = raw.pop("rope_theta", None), raw.pop("swa_rope_theta", None)
        return fold_rope_of_kinds(
            raw,
            {
                "full_attention": {**partial, "rope_theta": full or 5_000_000.0},
                "sliding_attention": {**partial, "rope_theta": sliding or 10_000.0},
            },
        )

    def default_layer_types(self) -> list[str]:
        """The first layer and every sixth one have full attention."""
        return ["full_attention" if i == 0 or (i + 1) % 6 == 0 else "sliding_attention" for i in range(self.n_layers)]

    def check(self) -> None:
        super().check()
        self.must_divide("n_sliding_kv_heads", "n_heads")
        check_groups(self)
        for kind in self.kinds:
            rope_of_mask(self.rope_parameters, kind.mask).turning(self.d_head)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, layer_type="full_attention")

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts, and its mask."""
        masks = masks_of(self.layer_types, self.n_layers, self.sliding_window)
        return [Kind(*kind) for kind in zip(sparse_layers(self.mlp_layer_types, self.n_layers), masks)]


def _own_pattern(raw: Table) -> bool:
    """Whether a config has the kinds of its layers only in the maker's spelling, and other ones than transformers."""
    kinds, experts = listed(raw.get("hybrid_layer_pattern")), listed(raw.get("moe_layer_freq"))
    usual = None if kinds is None else [0 if i == 0 or (i + 1) % 6 == 0 else 1 for i in range(len(kinds))]
    first = None if experts is None else [0 if i == 0 else 1 for i in range(len(experts))]
    return (raw.get("layer_types") is None and kinds != usual) or (
        raw.get("mlp_layer_types") is None and experts != first
    )


def _own_heads(raw: Table) -> bool:
    """Whether the layers with a window have another number of heads of keys than twice that of the others."""
    other, heads = raw.get("swa_num_key_value_heads"), raw.get("num_key_value_heads", 4)
    return other is not None and type(heads) is int and other != 2 * heads


@config
class MiMoV2FlashThere(MiMoV2Flash):
    """The same of the type that transformers has, too: it reads none of the maker's own keys of the layers' kinds."""

    otherwise = (
        Otherwise("swa_num_key_value_heads", _own_heads, "transformers 5.24 ignores it: twice num_key_value_heads"),
        Otherwise("hybrid_layer_pattern", _own_pattern, "transformers 5.24 ignores it, and moe_layer_freq"),
        Otherwise(
            "add_full_attention_sink_bias",
            other_than("add_full_attention_sink_bias", False),
            "transformers 5.24 ignores it: no sinks in those layers",
        ),
        Otherwise(
            "add_swa_attention_sink_bias",
            other_than("add_swa_attention_sink_bias", True),
            "transformers 5.24 ignores it: a sink for each head",
        ),
    )


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    masks = [kind.mask for kind in c.kinds]
    mask = next((mask for mask in masks if isinstance(mask, SlidingWindow)), masks[0])
    table = angles(ids, cache, c.d_head, rope_of_mask(c.rope_parameters, mask))
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + attention(y, w.at("self_attn"), cache, c, mask, table)
    y = rms_norm(x, w, "pre_mlp_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


MTP = Module(draft_layer, "model.mtp.layers.{k}", last_norm="final_layernorm")


@architecture(
    "mimo_v2",
    config=MiMoV2Flash,
    pieces=FUSED,
    spellings=(("self_attn.attention_sink_bias", "self_attn.sinks"),),
    kept={"mlp.gate.weight": "float32"},
    gguf=Gguf("mimo2", is_windowed=True),
    predicts=MTP,
    windows_in_sglang=True,
)
@architecture(
    "mimo_v2_flash",
    config=MiMoV2FlashThere,
    pieces=FUSED,
    spellings=(("self_attn.attention_sink_bias", "self_attn.sinks"),),
    kept={"mlp.gate.weight": "float32"},
    gguf=Gguf("mimo2", is_windowed=True),
    predicts=MTP,
    mlx=Mlx(is_windowed=True),
    windows_in_sglang=True,
    classes={"mimo_v2_flash": "MiMoV2ForCausalLM"},  # vLLM, models/registry.py
)
def forward(w: Weights, ids: Array, c: MiMoV2Flash, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    masks = dict.fromkeys(kind.mask for kind in c.kinds)
    tables = {mask: rope_table(places, c.d_head, rope_of_mask(c.rope_parameters, mask)) for mask in masks}
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, tables[kind.mask])
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: MiMoV2Flash, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind.mask, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: MiMoV2Flash, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, V = c.n_heads, c.v_head_dim
    q, k, v = queries_keys_values(x, w, c, mask, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    fit = masked(scores(q, repeat_kv(k, N), c.d_head**-0.5), causal_mask(cache, q, k, mask))
    has_sink = c.sliding_sinks if isinstance(mask, SlidingWindow) else c.full_sinks
    shares = softmax_with_sink(fit, w("sinks", N)) if has_sink else softmax(fit)
    mixed = weighted_sum(shares, repeat_kv(v, N))
    return linear(mixed.reshape(x.shape[0], N * V), w, "o_proj", c.d_model)


def queries_keys_values(
    x: Array, w: Weights, c: MiMoV2Flash, mask: Mask, table: RopeTable
) -> tuple[Array, Array, Array]:
    """Queries and keys with their positions, and values, of the new tokens: [T D] -> [T N H], [T K H], [T K V]."""
    N, H, V = c.n_heads, c.d_head, c.v_head_dim
    K = c.n_sliding_kv_heads if isinstance(mask, SlidingWindow) else c.n_kv_heads
    if c.layout == "fused_qkv":
        both = linear(x, w, "qkv_proj", N * H + K * H + K * V, bias=c.attention_bias)
        q, k, v = np.split(both, [N * H, N * H + K * H], axis=-1)
    else:
        q = linear(x, w, "q_proj", N * H, bias=c.attention_bias)
        k = linear(x, w, "k_proj", K * H, bias=c.attention_bias)
        v = linear(x, w, "v_proj", K * V, bias=c.attention_bias)
    q, k, v = apply_rope(heads(q, N, H), table), apply_rope(heads(k, K, H), table), heads(v, K, V)
    return q, k, v if c.value_scale is None else v * c.value_scale


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: MiMoV2Flash) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    chosen, shares = routing(x, w.buffer("gate.e_score_correction_bias", c.n_experts), w, c)
    act = activation(c.activation)
    return combine(packed_experts(x, chosen, w, PACKED, c.n_experts, c.d_ff_expert, act), shares)
