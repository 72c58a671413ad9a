"""The text model of dots3-note: latent attention with a gate for each head, over picked tokens or a sliding window.

Layers with a window have heads, latents and a rotary embedding of other sizes. Queries and latents grow by √(D / their
width). Source: transformers, models/dots3_note; tensor names as transformers, an expert's as DeepSeek's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from ..errors import Problem
from ..facts import UNREAD
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    SlidingWindow,
    apply_rope_pairs,
    combine,
    embed,
    feed_forward,
    gated_experts,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    shared_experts,
    sigmoid,
    strictly_causal_mask,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import (
    MOST_LAYERS,
    Count,
    Positive,
    Raw,
    Size,
    activation,
    check_layer_types,
    config,
    fixed,
    key,
    listed,
    tabled,
)
from .deepseek_v2 import read_values_out
from .deepseek_v3 import routing
from .deepseek_v32 import DeepSeekV32, IndexedKind, indexer
from .predicted import Module, Place, angles, entry, mask_of
from .rope_config import fold_rope_of_kinds, read_rope
from .tensor_layouts import EXPERT, FUSED

INDEXED, SLIDING, FULL = LAYER_TYPES = ("indexed_attention", "sliding_attention", "full_attention")
# The sizes of a layer with a window, and their defaults.
OF_WINDOWS = {
    "num_attention_heads": 64,
    "q_lora_rank": 1024,
    "kv_lora_rank": 1024,
    "qk_nope_head_dim": 192,
    "v_head_dim": 128,
}
THETA, THETA_OF_WINDOWS = 8e7, 5e4


class Dots3Kind(IndexedKind, frozen=True):
    """Whether a layer has experts, its mask, and whether it has an indexer."""

    @property
    def layer_type(self) -> str:
        return SLIDING if isinstance(self.mask, SlidingWindow) else INDEXED if self.indexes else FULL

    def __str__(self) -> str:
        feed_forward = "moe" if self.moe else "dense"
        return feed_forward if self.indexes else f"{self.mask}, {feed_forward}"


class LatentSizes(Struct, frozen=True):
    """The sizes of latent attention in one kind of layer."""

    n_heads: int
    q_lora_rank: int
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int

    @property
    def scale(self) -> float:
        return (self.qk_nope_head_dim + self.qk_rope_head_dim) ** -0.5


@config
class Dots3Note(DeepSeekV32):
    """Hyperparameters of dots3-note, in forward order."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    sliding_window: Size = key("sliding_window", 512, also=("sliding_window_size",))
    layer_types: list[str] = key("layer_types", lambda c: default_layer_types(c.n_layers, INDEXED))
    dense_layers: int = key("first_k_dense_replace", 1)
    # attention
    n_window_heads: Size = key("swa_num_attention_heads")
    window_q_lora_rank: Size = key("swa_q_lora_rank")
    window_kv_lora_rank: Size = key("swa_kv_lora_rank")
    window_nope_head_dim: Size = key("swa_qk_nope_head_dim")
    window_rope_head_dim: Size = key("swa_qk_rope_head_dim")
    window_v_head_dim: Size = key("swa_v_head_dim")
    # indexer
    index_n_heads: Size = key("index_n_heads", 64)
    index_head_dim: Size = key("index_head_dim", 128)
    index_topk: Size = key("index_topk", 2048)
    index_rope_pairs: bool = fixed(True)
    # experts
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    routed_scale: Positive = key("routed_scaling_factor", 1.0)
    n_shared_experts: Count = key("n_shared_experts", 1)
    d_ff_shared: Size = key("shared_experts_intermediate_size", 1536, also=("moe_shared_expert_intermediate_size",))

    rewritten = DeepSeekV32.rewritten | {
        "per_layer_config",
        "use_dsa",
        "use_sliding_window",
        "swa_num_key_value_heads",
        "swa_head_dim",
        "swa_rope_theta",
    }
    ignored = DeepSeekV32.ignored | {"mlp_bias", "rope_interleave"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The published spelling: keys of their own for the layers with a window, which transformers saves by layer."""
        is_saved = "per_layer_config" in raw
        raw = _sizes_of_windows(dict(raw))
        if (each := listed(raw.get("moe_layer_freq"))) is not None:
            dense = raw.get("first_k_dense_replace")
            dense = dense if isinstance(dense, int) else 1
            words = ["sparse" if has and i >= dense else "dense" for i, has in enumerate(each)]
            raw = {"mlp_layer_types": words} | {name: value for name, value in raw.items() if name != "moe_layer_freq"}
        with_indexer, with_windows = raw.pop("use_dsa", None if is_saved else True), raw.pop("use_sliding_window", True)
        types, layers = listed(raw.get("layer_types")), raw.get("num_hidden_layers")
        if types is None and isinstance(layers, int) and layers <= MOST_LAYERS:
            wide = FULL if with_indexer is False else INDEXED
            raw["layer_types"] = default_layer_types(layers, wide) if with_windows else [wide] * layers
        elif types is not None and with_indexer is not None:
            old, new = (FULL, INDEXED) if with_indexer else (INDEXED, FULL)
            raw["layer_types"] = [new if name == old else name for name in types]
        window_theta = raw.pop("swa_rope_theta", None) or THETA_OF_WINDOWS
        theta = raw.get("rope_theta") or THETA
        if raw.get("rope_parameters") is None and raw.get("rope_scaling") is None:
            raw.pop("rope_theta", None)
        else:
            window_theta = theta
        usual: dict[str, Raw] = {
            name: {"rope_theta": window_theta if name == SLIDING else theta} for name in LAYER_TYPES
        }
        raw = fold_rope_of_kinds(raw, usual)
        for name, table in raw["rope_parameters"].items():
            if tabled(table):
                raw["rope_parameters"][name] = {k: v for k, v in table.items() if k != "partial_rotary_factor"}
        return raw

    def check(self) -> None:
        super().check()
        self.must_not_exceed("qk_rope_head_dim", "index_head_dim")
        for kind in self.kinds:
            self.rope_of(kind).turning(self.sizes(kind).qk_rope_head_dim)

    @property
    def kinds(self) -> list[Dots3Kind]:
        """In order: whether a layer has experts, its mask, and whether it has an indexer."""
        masks: list[Mask] = [SlidingWindow(self.sliding_window) if t == SLIDING else Full() for t in self.layer_types]
        return [Dots3Kind(kind.moe, mask, kind.indexes) for kind, mask in zip(super().kinds, masks)]

    @property
    def indexes(self) -> list[bool]:
        check_layer_types(self.layer_types, self.n_layers, LAYER_TYPES)
        return [name == INDEXED for name in self.layer_types]

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, THETA, INDEXED)

    def rope_of(self, kind: Dots3Kind) -> Rope:
        """The rotary embedding of a kind of layer."""
        return read_rope(self.rope_parameters, THETA, kind.layer_type)

    def sizes(self, kind: Dots3Kind) -> LatentSizes:
        """The sizes of latent attention in a kind of layer."""
        if isinstance(kind.mask, SlidingWindow):
            return LatentSizes(
                self.n_window_heads,
                self.window_q_lora_rank,
                self.window_kv_lora_rank,
                self.window_nope_head_dim,
                self.window_rope_head_dim,
                self.window_v_head_dim,
            )
        return LatentSizes(
            self.n_heads,
            self.q_lora_rank,
            self.kv_lora_rank,
            self.qk_nope_head_dim,
            self.qk_rope_head_dim,
            self.v_head_dim,
        )


def default_layer_types(n_layers: int, wide: str) -> list[str]:
    """The first two layers have full attention, and one in four of the others."""
    return [wide if i < 2 or i % 4 == 1 else SLIDING for i in range(n_layers)]


def _sizes_of_windows(raw: Raw) -> Raw:
    """The keys of the layers with a window: as published, or those of `per_layer_config`, which lists only the
    differences, and beside which the published ones are not read."""
    is_saved, given = "per_layer_config" in raw, raw.pop("per_layer_config", None)
    of_layers = [dict(table) for table in map(tabled, (tabled(given) or {}).values()) if table]
    if any(table != of_layers[0] for table in of_layers):
        raise Problem("per_layer_config has tables that differ", "give all layers with a window the same sizes")
    types = listed(raw.get("layer_types"))
    if given and types is not None and all(name in LAYER_TYPES for name in types):
        windows = {i for i, name in enumerate(types) if name == SLIDING}
        if windows != {int(i) for i in tabled(given) or {} if str(i).isdecimal()}:
            what = "per_layer_config is not of the layers that layer_types gives a window"
            raise Problem(what, "give their sizes to those alone")
    if is_saved:
        table = of_layers[0] if of_layers else {}
        sizes = {f"swa_{name}": table.get(name, raw.get(name)) for name in (*OF_WINDOWS, "qk_rope_head_dim")}
        raw = {**raw, **sizes}
    else:
        raw = {f"swa_{name}": value for name, value in OF_WINDOWS.items()} | raw
    raw = {name: value for name, value in raw.items() if value is not None}
    width, content = raw.pop("swa_head_dim", 256), raw.get("swa_qk_nope_head_dim")
    if "swa_qk_rope_head_dim" not in raw and isinstance(width, int) and isinstance(content, int):
        raw["swa_qk_rope_head_dim"] = width - content
    raw.pop("swa_num_key_value_heads", None)
    return raw


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    layer_type = entry(at, c, "layer_types", "mtp_layer_types", SLIDING)
    kind = Dots3Kind(False, mask_of(layer_type, c), layer_type == INDEXED)
    table = angles(ids, cache, c.sizes(kind).qk_rope_head_dim, c.rope_of(kind))
    return layer(x, w, cache, c, kind, table)


MTP = Module(draft_layer, usual=1, embedding="model.mtp.embed_tokens.weight")


@architecture("dots3_note_text", config=Dots3Note, fused=FUSED, gguf=UNREAD, predicts=MTP)
def forward(w: Weights, ids: Array, c: Dots3Note, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    kinds = {kind.layer_type: kind for kind in c.kinds}
    tables = {name: rope_table(places, c.sizes(kind).qk_rope_head_dim, c.rope_of(kind)) for name, kind in kinds.items()}
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, tables[kind.layer_type])
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Dots3Note, kind: Dots3Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Dots3Note, kind: Dots3Kind, table: RopeTable) -> Array:
    """Let each token gather information from the latents that it sees, and gate each head: [T D] -> [T D]."""
    s, bias = c.sizes(kind), c.attention_bias
    N, H, R, H_rope = s.n_heads, s.qk_nope_head_dim, s.kv_lora_rank, s.qk_rope_head_dim
    narrow = rms_norm(linear(x, w, "q_a_proj", s.q_lora_rank, bias=bias), w, "q_a_layernorm", c.norm_eps)
    narrow = narrow * (c.d_model / s.q_lora_rank) ** 0.5
    q, q_rope = np.split(heads(linear(narrow, w, "q_b_proj", N * (H + H_rope)), N, H + H_rope), [H], axis=-1)
    latent, k_rope = np.split(linear(x, w, "kv_a_proj_with_mqa", R + H_rope, bias=bias), [R], axis=-1)
    latent = rms_norm(latent, w, "kv_a_layernorm", c.norm_eps) * (c.d_model / R) ** 0.5
    k_rope = rms_norm(k_rope, w, "k_rope_only_layernorm", c.norm_eps)
    q_rope, k_rope = apply_rope_pairs(q_rope, table), apply_rope_pairs(k_rope[:, None, :], table)[:, 0]
    latent, k_rope = cache.extend(Holds.LATENT, latent, kind.mask), cache.extend(Holds.ROPE_KEY, k_rope, kind.mask)
    allowed = strictly_causal_mask(cache, q, latent, kind.mask)
    if kind.indexes:
        seen = indexer(x, narrow, allowed, w.at("indexer"), cache, c, table)
        latent, k_rope = np.take(latent, seen, axis=0), np.take(k_rope, seen, axis=0)
        allowed = np.take_along_axis(allowed, seen, axis=1)
    values = read_values_out(q, q_rope, latent, k_rope, allowed, w, s)
    values = values * sigmoid(linear(x, w, "g_proj", N))[:, :, None]
    return linear(values.reshape(x.shape[0], N * s.v_head_dim), w, "o_proj", c.d_model, bias=bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Dots3Note) -> Array:
    """A few experts chosen for each token, and the shared ones: [T D] -> [T k D] -> [T D].

    The stored bias balances the experts' load; the routing weights exclude it.
    """
    act = activation(c.activation)
    chosen, shares = routing(x, w.buffer("gate.e_score_correction_bias", c.n_experts), w, c)
    routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, act), shares)
    return routed + shared_experts(x, w.at("shared_experts"), c.n_shared_experts * c.d_ff_shared, act)
