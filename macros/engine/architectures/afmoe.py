"""AFMoE (Trinity): a gate on each element of the attention output, norms around each half, windows in three layers of
four.

The fourth layer has full attention and no rotary embedding. Source: arcee-ai/Trinity-Nano-Preview, -Mini and -Large by
transformers 5's class, whose tensor names these are; the published files hold each expert by itself.
"""

from __future__ import annotations

from ..facts import NAMED_EXPERTS, Gguf, Mlx, Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    NoPE,
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
    sigmoid,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Interval, Positive, Size, activation, config, fixed, full_every, key, masks_of
from .llama import Llama
from .tensor_layouts import FUSED, PACKED


@config
class Afmoe(Llama):
    """Hyperparameters of AFMoE, in forward order. d_ff is the inner width of the layers without experts."""

    # embedding
    scaled: bool = key("mup_enabled", False)
    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    dense_layers: int = key("num_dense_layers", 1)
    full_interval: Interval = key("global_attn_every_n_layers", 4)
    sliding_window: Size | None = key("sliding_window", 1024)
    layer_types: list[str] = key("layer_types", lambda c: full_every(c.full_interval, c.n_layers))
    # attention
    d_head: Size = key("head_dim", 128)
    # feed-forward
    mlp_bias: bool = fixed(False)
    # experts
    n_experts: Size = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    routed_scale: Positive = key("route_scale", 1.0)
    d_ff_expert: Size = key("moe_intermediate_size")
    n_shared_experts: Count = key("num_shared_experts")

    ignored = Llama.ignored | {
        "score_func",
        "route_norm",
        "n_group",
        "topk_group",
        "num_expert_groups",
        "num_limited_groups",
        "load_balance_coeff",
        "use_grouped_mm",
    }

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts, and its mask."""
        masks = masks_of(self.layer_types, self.n_layers, self.sliding_window)
        return [Kind(i >= self.dense_layers, NoPE(mask) if mask == Full() else mask) for i, mask in enumerate(masks)]


GGUF = Gguf(
    "afmoe",
    {
        "post_attention_layernorm": "post_attention_norm",
        "pre_mlp_layernorm": "ffn_norm",
        "post_mlp_layernorm": "post_ffw_norm",
        "self_attn.gate_proj": "attn_gate",
        "mlp.router.gate": "ffn_gate_inp",
    },
    is_windowed=True,
)


@architecture(
    "afmoe",
    config=Afmoe,
    pieces=FUSED,
    gguf=GGUF,
    peft=Peft(stacked=NAMED_EXPERTS, linear_router=True),
    mlx=Mlx(is_windowed=True),
)
def forward(w: Weights, ids: Array, c: Afmoe, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    if c.scaled:
        x = x * c.d_model**0.5
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Afmoe, kind: Kind, table: RopeTable) -> Array:
    """One transformer block, with a norm before and after each half: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind.mask, table)
    x = x + rms_norm(y, w, "post_attention_layernorm", c.norm_eps)
    y = rms_norm(x, w, "pre_mlp_layernorm", c.norm_eps)
    if kind.moe:
        y = mixture_of_experts(y, w.at("mlp"), c)
    else:
        y = feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))
    return x + rms_norm(y, w, "post_mlp_layernorm", c.norm_eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Afmoe, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from those before it, and gate each head's output: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = rms_norm(q, w, "q_norm", c.norm_eps), rms_norm(k, w, "k_norm", c.norm_eps)
    if not isinstance(mask, NoPE):
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5)
    mixed = mixed * sigmoid(linear(x, w, "gate_proj", N * H))
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Afmoe) -> Array:
    """A few experts chosen for each token, and the shared ones: [T D] -> [T k D] -> [T D].

    The load-balancing bias is a parameter here, and counts as one.
    """
    E, act = c.n_experts, activation(c.activation)
    scores = linear(x, w, "router.gate", E)
    chosen, shares = balanced_routing(scores, w("expert_bias", E), c.n_experts_per_token, scale=c.routed_scale)
    routed = combine(packed_experts(x, chosen, w, PACKED, E, c.d_ff_expert, act), shares)
    return routed + shared_experts(x, w.at("shared_experts"), c.n_shared_experts * c.d_ff_expert, act)
