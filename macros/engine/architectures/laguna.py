"""Laguna: a gate on each head, more query heads in layers with a window, and experts scored separately.

Source: poolside/Laguna-XS-2.1 by transformers 5's class, whose tensor names these are; the published files hold each
expert by itself, and the router's bias among them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from ..errors import Problem
from ..facts import Gguf, Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Kind,
    apply_rope,
    attend,
    balanced_routing,
    causal_mask,
    combine,
    embed,
    feed_forward,
    heads,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    shared_experts,
    soft_cap,
    softplus,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import (
    Count,
    Positive,
    Raw,
    Size,
    activation,
    config,
    dense_first,
    derived,
    expert_layers,
    fixed,
    key,
    listed,
    masks_of,
    sparse_layers,
)
from .llama import Llama
from .rope_config import fold_rope_of_kinds, rope_of_mask
from .tensor_layouts import FUSED, PACKED

ROPES: dict[str, Raw] = {
    "full_attention": {"rope_type": "default", "rope_theta": 500_000.0, "partial_rotary_factor": 0.5},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 1.0},
}


class KindWithHeads(Struct, frozen=True):
    """Whether a layer has experts, its mask, and its number of query heads."""

    moe: bool
    mask: Mask
    n_heads: int

    def __str__(self) -> str:
        return str(Kind(self.moe, self.mask))


@config
class Laguna(Llama):
    """Hyperparameters of Laguna, in forward order. d_ff is the inner width of the layers without experts."""

    # layers
    sliding_window: Size | None = key("sliding_window", 512)
    layer_types: list[str] = key("layer_types", lambda c: ["full_attention"] * c.n_layers)
    mlp_layer_types: list[str] = key("mlp_layer_types", lambda c: dense_first(1, c.n_layers))
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 8)
    heads_of_layers: list[int] = key("num_attention_heads_per_layer", lambda c: [int(c.n_heads)] * c.n_layers)
    n_other_heads: Size | None = derived(lambda c: c.other_heads())
    d_head: Size = key("head_dim", 128)
    gating: bool | Literal["per-head", "per-element"] = key("gating", True)
    # feed-forward
    mlp_bias: bool = fixed(False)
    # experts
    n_experts: Size = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    router_cap: float = key("moe_router_logit_softcapping", 0.0)
    routed_scale: Positive = key("moe_routed_scaling_factor", 1.0)
    d_ff_expert: Size = key("moe_intermediate_size")
    d_ff_shared: Count = key("shared_expert_intermediate_size")
    weighs_input: Literal[False] = key("moe_apply_router_weight_on_input", False)

    rewritten = Llama.rewritten | {"mlp_only_layers"}
    ignored = Llama.ignored | {
        "norm_topk_prob",
        "decoder_sparse_step",
        "qkv_bias",
        "moe_router_score_func",
        "moe_router_use_sigmoid",
        "swa_attention_sink_enabled",
    }

    checked = ("kinds",)  # and the rotary embedding of each, in `check`

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """Some files list the layers without experts instead of a word for each layer."""
        raw = fold_rope_of_kinds(raw, ROPES)
        dense, layers = listed(raw.pop("mlp_only_layers", None)), raw.get("num_hidden_layers")
        if dense is not None and isinstance(layers, int) and raw.get("mlp_layer_types") is None:
            raw["mlp_layer_types"] = ["sparse" if moe else "dense" for moe in expert_layers(layers, 1, 1, dense)]
        return raw

    def other_heads(self) -> int | None:
        """The query heads of the layers that do not have the usual number, where these have one number."""
        others = sorted({n for n in self.heads_of_layers if n != self.n_heads})
        return others[0] if len(others) == 1 else None

    def check(self) -> None:
        activation(self.activation)
        self.must_not_exceed("n_experts_per_token", "n_experts")
        for kind in self.kinds:
            if kind.n_heads < 1 or int(kind.n_heads) % int(self.n_kv_heads):
                raise Problem(
                    f"num_attention_heads_per_layer has {int(kind.n_heads)}, and num_key_value_heads = "
                    f"{int(self.n_kv_heads)} does not divide it",
                    "correct one of the two",
                )
            rope_of_mask(self.rope_parameters, kind.mask).turning(self.d_head)

    @property
    def kinds(self) -> list[KindWithHeads]:
        """In order: whether a layer has experts, its mask, and its query heads."""
        if len(self.heads_of_layers) != self.n_layers:
            raise Problem(
                f"num_attention_heads_per_layer has {len(self.heads_of_layers)} entries, and num_hidden_layers = "
                f"{int(self.n_layers)}",
                "correct one of the two",
            )
        known = {int(n): n for n in (self.n_heads, self.n_other_heads) if n is not None}
        n_heads = [known.get(n, n) for n in self.heads_of_layers]
        moe = sparse_layers(self.mlp_layer_types, self.n_layers)
        masks = masks_of(self.layer_types, self.n_layers, self.sliding_window)
        return [KindWithHeads(*kind) for kind in zip(moe, masks, n_heads)]


GGUF = Gguf("laguna", {"self_attn.g_proj": "attn_gate"}, is_by_layer=True, is_windowed=True)


@architecture(
    "laguna",
    config=Laguna,
    pieces=FUSED,
    spellings=(
        ("mlp.experts.e_score_correction_bias", "mlp.gate.e_score_correction_bias"),
        ("mlp.shared_expert.", "mlp.shared_experts."),
    ),
    gguf=GGUF,
    mlx=Mlx(is_windowed=True),
    windows_in_sglang=True,
)
def forward(w: Weights, ids: Array, c: Laguna, cache: KVCache, last: bool = True) -> Array:
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
def layer(x: Array, w: Weights, cache: KVCache, c: Laguna, kind: KindWithHeads, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Laguna, kind: KindWithHeads, table: RopeTable) -> Array:
    """Let each token gather information from those before it, and gate each head's output: [T D] -> [T D]."""
    N, K, H, mask = kind.n_heads, c.n_kv_heads, c.d_head, kind.mask
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = rms_norm(q, w, "q_norm", c.norm_eps), rms_norm(k, w, "k_norm", c.norm_eps)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5)
    if c.gating in (True, "per-head"):
        mixed = (heads(mixed, N, H) * softplus(linear(x, w, "g_proj", N))[:, :, None]).reshape(x.shape[0], N * H)
    else:
        mixed = mixed * softplus(linear(x, w, "g_proj", N * H))
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Laguna) -> Array:
    """A few experts chosen for each token, and a shared one: [T D] -> [T k D] -> [T D].

    The load-balancing bias is a parameter here, and counts as one.
    """
    E, act = c.n_experts, activation(c.activation)
    scores = linear(x, w, "gate", E)
    if c.router_cap > 0:
        scores = soft_cap(scores, c.router_cap)
    bias = w("gate.e_score_correction_bias", E)
    chosen, shares = balanced_routing(scores, bias, c.n_experts_per_token, scale=c.routed_scale)
    routed = combine(packed_experts(x, chosen, w, PACKED, E, c.d_ff_expert, act), shares)
    return routed + shared_experts(x, w.at("shared_experts"), c.d_ff_shared, act)
