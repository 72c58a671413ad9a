"""Granite with windows: Granite's block, sinks that take a share of each head's attention, a window in most layers.

Layers may have a theta of their own, and 0 is no rotation at all. Source: transformers 5, models/granite_swa and
models/granitemoe_swa; tensor names as it writes them.
"""

from __future__ import annotations

from ..errors import Problem
from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    NoPE,
    Rope,
    apply_rope,
    causal_mask,
    embed,
    heads,
    linear,
    masked,
    positions,
    repeat_kv,
    rms_norm,
    rope_table,
    scores,
    softmax_with_sink,
    unembed,
    weighted_sum,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Positive, Size, config, key, masks_of
from .gguf_tables import GRANITE_MOE
from .granite import Granite
from .granitemoe import mixture_of_experts
from .granitemoeshared import GraniteMoEShared, shared_expert
from .llama import feed_forward
from .rope_config import read_rope
from .tensor_layouts import GRANITE_FUSED


def default_layer_types(n_layers: int) -> list[str]:
    """The first of every four layers has full attention, the others a window."""
    return ["sliding_attention" if i % 4 else "full_attention" for i in range(n_layers)]


@config
class GraniteSWA(Granite):
    """Hyperparameters of Granite with windows, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_kv_heads: Size = key("num_key_value_heads", 4)
    tied: bool = key("tie_word_embeddings", True)
    sliding_window: Size | None = key("sliding_window", 128)
    layer_types: list[str] = key("layer_types", lambda c: default_layer_types(c.n_layers))
    thetas: list[float] | None = key("layer_rope_theta", None)

    def check(self) -> None:
        super().check()
        check_ropes(self)

    @property
    def masks(self) -> list[Mask]:
        return masks_with_thetas(self)


@config
class GraniteMoESWA(GraniteMoEShared):
    """Hyperparameters of Granite MoE with windows, in forward order. d_ff is the inner width of one routed expert."""

    d_ff_shared: Count = key("shared_intermediate_size", 0)
    sliding_window: Size | None = key("sliding_window", 128)
    layer_types: list[str] = key("layer_types", lambda c: default_layer_types(c.n_layers))
    thetas: list[float] | None = key("layer_rope_theta", None)

    def check(self) -> None:
        super().check()
        check_ropes(self)

    @property
    def masks(self) -> list[Mask]:
        return masks_with_thetas(self)


def masks_with_thetas(c: GraniteSWA | GraniteMoESWA) -> list[Mask]:
    """The mask of each layer, and whether it is rotary. Raises `Problem` if layers with equal masks have several
    thetas.
    """
    masks = masks_of(c.layer_types, c.n_layers, c.sliding_window)
    if c.thetas is None:
        return masks
    if len(c.thetas) != c.n_layers:
        raise Problem(
            f"layer_rope_theta has {len(c.thetas)} entries, and num_hidden_layers = {int(c.n_layers)}",
            "correct one of the two",
        )
    turning = {(mask, theta) for mask, theta in zip(masks, c.thetas) if theta}
    if len(turning) > len({mask for mask, _ in turning}):
        raise Problem("layer_rope_theta has several numbers for layers that see as much", "correct the list")
    return [mask if theta else NoPE(mask) for mask, theta in zip(masks, c.thetas)]


def rope_of(c: GraniteSWA | GraniteMoESWA, mask: Mask) -> Rope:
    """The rotary embedding of the layers with this reach."""
    own = [t for m, t in zip(c.masks, c.thetas or []) if m == mask]
    return read_rope(c.rope_parameters | {"rope_theta": own[0]} if own and own[0] else c.rope_parameters)


def check_ropes(c: GraniteSWA | GraniteMoESWA) -> None:
    """Raise `Problem` for a rotary embedding that is not a table."""
    for mask in c.masks:
        rope_of(c, mask)


GGUF = Gguf(
    "granite_swa",
    GRANITE_MOE | {"block_sparse_moe.input_linear": "ffn_gate_up_exps", "shared_mlp.input_linear": "ffn_up_shexp"},
    in_pairs=True,
)


@architecture("granite_swa", config=GraniteSWA, gguf=GGUF, rounds_heads={"granite_swa": True})
def forward(w: Weights, ids: Array, c: GraniteSWA, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    return run(w, ids, c, cache, last)


@architecture(
    "granitemoe_swa", config=GraniteMoESWA, fused=GRANITE_FUSED, gguf=GGUF, rounds_heads={"granitemoe_swa": True}
)
def forward_with_experts(w: Weights, ids: Array, c: GraniteMoESWA, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token, with experts: [T] -> [T V], or [1 V] with `last`."""
    return run(w, ids, c, cache, last)


def run(w: Weights, ids: Array, c: GraniteSWA | GraniteMoESWA, cache: KVCache, last: bool) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.embedding_multiplier
    places, kinds = positions(ids, cache), dict.fromkeys(c.masks)
    tables = {m: None if isinstance(m, NoPE) else rope_table(places, c.d_head, rope_of(c, m)) for m in kinds}
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, tables[mask])
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last) / c.logits_divisor


@step(Role.LAYER)
def layer(
    x: Array, w: Weights, cache: KVCache, c: GraniteSWA | GraniteMoESWA, mask: Mask, table: RopeTable | None
) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    x = x + y * c.residual_multiplier
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if isinstance(c, GraniteSWA):
        return x + feed_forward(y, w.at("mlp"), c) * c.residual_multiplier
    both = mixture_of_experts(y, w.at("block_sparse_moe"), c)
    if c.d_ff_shared:
        both = both + shared_expert(y, w.at("shared_mlp"), c)
    return x + both * c.residual_multiplier


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Granite, mask: Mask, table: RopeTable | None) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    if table is not None:
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    fit = masked(scores(q, repeat_kv(k, N), c.attention_multiplier), causal_mask(cache, q, k, mask))
    mixed = weighted_sum(softmax_with_sink(fit, w("sinks", N)), repeat_kv(v, N))
    return linear(mixed.reshape(mixed.shape[0], N * H), w, "o_proj", c.d_model, bias=c.attention_bias)
