"""Command A with experts: Command A's two halves in parallel on one norm, the second a mixture of experts.

Source: transformers 5's class, whose tensor names these are; the saved files hold each expert by itself.
"""

from __future__ import annotations

from typing import Literal

from ..facts import NAMED_EXPERTS, Gguf, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    NoPE,
    chosen_softmax_routing,
    combine,
    embed,
    feed_forward,
    layer_norm,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    routing_weights,
    shared_experts,
    sigmoid_scores,
    top_k,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .cohere import Cohere2, attention
from .config import (
    Count,
    Interval,
    Positive,
    Size,
    activation,
    config,
    dense_first,
    full_every,
    key,
    masks_of,
    sparse_layers,
)
from .otherwise import NO_SCALING
from .tensor_layouts import FUSED, PACKED


@config
class Cohere2MoE(Cohere2):
    """Hyperparameters of Command A with experts, in forward order. d_ff is the inner width of one expert."""

    # layers
    rms_eps: Positive | None = key("rms_norm_eps", None)
    dense_layers: int = key("first_k_dense_replace", 0)
    dense_pattern: Interval = key("prefix_dense_sliding_window_pattern", 1)
    layer_types: list[str] = key("layer_types", lambda c: c.default_layer_types())
    mlp_layer_types: list[str] = key("mlp_layer_types", lambda c: dense_first(c.dense_layers, c.n_layers))
    # attention
    d_head: Size = key("head_dim", 128)
    # feed-forward
    d_ff_dense: Size = key("prefix_dense_intermediate_size", lambda c: c.d_ff)
    # experts
    n_experts: Size = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    choice: Literal["softmax", "sigmoid"] = key("expert_selection_fn", "softmax")
    normalise: bool = key("norm_topk_prob", True)
    n_shared_experts: Count = key("num_shared_experts", 0)
    together: Literal["average", "sum"] = key("shared_expert_combination_strategy", "average")

    otherwise = (NO_SCALING,)

    def default_layer_types(self) -> list[str]:
        """The layer types: first the layers without experts, then the others."""
        behind = full_every(self.window_pattern, self.n_layers - self.dense_layers)
        return [*full_every(self.dense_pattern, self.dense_layers), *behind]

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts, and its mask; without experts it may rotate if it sees all."""
        kinds: list[Kind] = []
        published = masks_of(self.layer_types, self.n_layers, self.sliding_window)
        for moe, mask in zip(sparse_layers(self.mlp_layer_types, self.n_layers), published):
            turns = mask != Full() or (not moe and self.dense_pattern == 1)
            kinds.append(Kind(moe, mask if turns else NoPE(mask)))
        return kinds


@architecture(
    "cohere2_moe",
    config=Cohere2MoE,
    pieces=FUSED,
    gguf=Gguf("cohere2moe", is_windowed=True),
    peft=Peft(stacked=NAMED_EXPERTS),
)
def forward(w: Weights, ids: Array, c: Cohere2MoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = norm(x, w, "model.norm", c)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last) * c.logit_scale


def norm(x: Array, w: Weights, name: str, c: Cohere2MoE) -> Array:
    """The norm that the config has an epsilon for: [T D] -> [T D]."""
    if c.rms_eps is None:
        return layer_norm(x, w, name, c.norm_eps, bias=False)
    return rms_norm(x, w, name, c.rms_eps)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Cohere2MoE, kind: Kind, table: RopeTable) -> Array:
    """One transformer block, its two halves in parallel: [T D] -> [T D]."""
    y = norm(x, w, "input_layernorm", c)
    x = x + attention(y, w.at("self_attn"), cache, c, kind.mask, table)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff_dense, activation(c.activation))


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Cohere2MoE) -> Array:
    """A few experts chosen for each token, and perhaps shared ones: [T D] -> [T k D] -> [T D]."""
    act, fit = activation(c.activation), linear(x, w, "gate", c.n_experts)
    if c.choice == "softmax":
        chosen, shares = chosen_softmax_routing(fit, c.n_experts_per_token)
    else:
        chosen = top_k(fit, c.n_experts_per_token)
        shares = routing_weights(sigmoid_scores(fit), chosen, normalise=c.normalise)
    routed = combine(packed_experts(x, chosen, w, PACKED, c.n_experts, c.d_ff, act), shares)
    if not c.n_shared_experts:
        return routed
    both = routed + shared_experts(x, w.at("shared_experts"), c.n_shared_experts * c.d_ff, act)
    return both * 0.5 if c.together == "average" else both
