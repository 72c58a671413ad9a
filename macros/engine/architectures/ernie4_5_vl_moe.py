"""ERNIE 4.5 VL's text model: ERNIE 4.5 MoE, where tokens of a text and of an image have experts of their own.

Of a text, no token reaches the experts for images: they are left out, as the vision tower is. Source: ERNIE 4.5
technical report, baidu/ERNIE-4.5-VL-28B-A3B-PT by transformers 5's class, whose tensor names these are.
"""

from __future__ import annotations

from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Kind,
    combine,
    embed,
    feed_forward,
    gated_experts,
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
from .config import MEDIA_TOKENS, Raw, activation, config, dense_first, fixed, key, listed, sparse_layers
from .ernie4_5_moe import Ernie45MoE, attention
from .rope_config import fold_rope
from .tensor_layouts import EXPERT, FUSED


@config
class Ernie45VLMoE(Ernie45MoE):
    """Hyperparameters of ERNIE 4.5 VL's text model, in forward order."""

    first_moe_layer: int = fixed(1)
    last_moe_layer: int = fixed(-1)
    mlp_layer_types: list[str] = key("mlp_layer_types", lambda c: dense_first(1, c.n_layers))

    caveat = "The experts for tokens of an image are left out: no token of a text reaches them."
    ignored = (Ernie45MoE.ignored | MEDIA_TOKENS | {"moe_layer_interval"}) - {"rope_3d"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """If a width is a list, the first one is that of the text experts."""
        raw = fold_rope(raw)
        widths = listed(raw.get("moe_intermediate_size"))
        if widths is None:
            return raw
        if len(widths) != 2:
            raise Problem(f"moe_intermediate_size has {len(widths)} entries", "give one for a text, one for images")
        return {**raw, "moe_intermediate_size": widths[0]}

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts."""
        return [Kind(moe) for moe in sparse_layers(self.mlp_layer_types, self.n_layers)]


@architecture(
    "ernie4_5_vl_moe_text",
    config=Ernie45VLMoE,
    fused={
        end.replace("mlp.", "mlp.text_moe."): tuple(part.replace("mlp.", "mlp.text_moe.") for part in parts)
        for end, parts in FUSED.items()
    },
    rounds_heads={"ernie4_5_vl_moe_text": True},
)
def forward(w: Weights, ids: Array, c: Ernie45VLMoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Ernie45VLMoE, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation), bias=c.bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Ernie45VLMoE) -> Array:
    """A few experts chosen for each token, and those that all pass through: [T D] -> [T k D] -> [T D].

    The stored bias evens out how often each expert is chosen; the shares leave it out.
    """
    act, text = activation(c.activation), w.at("text_moe")
    fit = softmax(linear(x, text, "gate", c.n_experts))
    chosen = top_k(fit + text("gate.moe_statics.e_score_correction_bias", 1, c.n_experts), c.n_experts_per_token)
    shares = routing_weights(fit, chosen, normalise=True, least=c.least_share)
    routed = combine(gated_experts(x, chosen, text, EXPERT, c.n_experts, c.d_ff_expert, act), shares)
    if not c.n_shared_experts:
        return routed
    return routed + shared_experts(x, w.at("shared_experts"), c.n_shared_experts * c.d_ff_expert, act, bias=c.bias)
