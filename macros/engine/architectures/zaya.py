"""ZAYA: attention whose queries and keys a convolution mixes, and a router that remembers its result of the previous
layer.

One of the places that the router may choose is no expert: such a token skips the layer's second half.

Sources: arXiv 2510.04476 (compressed convolutional attention), 2511.17127 (ZAYA1); tensor names as transformers 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct

from ..facts import Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    gelu,
    grouped_conv,
    heads,
    linear,
    packed_experts,
    positions,
    repeat_kv,
    rms_norm,
    rope_table,
    routing_weights,
    softmax,
    token_shift,
    top_k,
    unembed,
)
from ..ops.recurrence import CONVOLUTION_BYTES
from ..steps import Holds, Role, step
from . import architecture
from .config import Interval, Positive, Raw, Size, Taps, activation, config, fixed, key, short_names
from .llama import Llama
from .rope_config import fold_rope_of_kinds, read_rope
from .tensor_layouts import PACKED

# The kinds of layers by their names in `layer_types`, and their usual rotary embeddings.
MIXERS = {"hybrid": "full", "hybrid_sliding": "sliding"}
ROPES: dict[str, Raw] = {
    "hybrid": {"rope_theta": 5_000_000.0, "partial_rotary_factor": 0.5},
    "hybrid_sliding": {"rope_theta": 10_000.0, "partial_rotary_factor": 0.5},
}
# The least length of a query or key that is divided by it.
LEAST_LENGTH = 2.0**-23


class ZayaLayer(Struct, frozen=True):
    """The mask of a layer's attention, and whether it is the first, whose router has no earlier state."""

    mask: Mask
    is_first: bool

    def __str__(self) -> str:
        return f"{self.mask}, first" if self.is_first else str(self.mask)


@config
class Zaya(Llama):
    """Hyperparameters of ZAYA, in forward order."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    layer_types: list[str] | None = key("layer_types", None)
    # attention
    n_heads: Size = key("num_attention_heads", 8)
    n_kv_heads: Size = key("num_key_value_heads", 2)
    d_head: Size = key("head_dim", 128)
    sliding_window: Size | None = key("sliding_window", None)
    d_conv: Taps = key("cca_time0", 2)
    d_head_conv: Annotated[int, Meta(gt=0, le=255)] = key("cca_time1", 2)
    # experts
    d_router: Interval = key("router_hidden_size", 256)
    n_experts: Size = key("num_experts", 16, also=("num_local_experts",))
    n_experts_per_token: Literal[1] = key("num_experts_per_tok", 1)
    d_ff: Size = key("moe_intermediate_size")
    mlp_bias: bool = fixed(False)
    # head
    head_bias: bool = key("lm_head_bias", False)
    tied: bool = key("tie_word_embeddings", True)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return fold_rope_of_kinds(raw, ROPES)

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        activation(self.activation)
        for mixer in self.mixers:
            self.rope_of(mixer).turning(self.d_head)

    @property
    def rope(self) -> Rope:
        return self.rope_of("full")

    def rope_of(self, mixer: str) -> Rope:
        """The rotary embedding of a kind of layer."""
        return read_rope(self.rope_parameters, layer_type="hybrid" if mixer == "full" else "hybrid_sliding")

    @property
    def mixers(self) -> list[str]:
        """The mask of each layer, in short, in order."""
        return short_names(self.layer_types or ["hybrid"] * self.n_layers, self.n_layers, MIXERS)

    @property
    def kinds(self) -> list[ZayaLayer]:
        return [
            ZayaLayer(SlidingWindow(self.size("sliding_window")) if mixer == "sliding" else Full(), i == 0)
            for i, mixer in enumerate(self.mixers)
        ]


@architecture("zaya", config=Zaya, peft=Peft(linear_router=True))
def forward(w: Weights, ids: Array, c: Zaya, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    x = (x + w("model.input_hidden_states_bias", c.d_model)) * w("model.input_hidden_states_scale", c.d_model)
    tables = {mixer: rope_table(positions(ids, cache), c.d_head, c.rope_of(mixer)) for mixer in dict.fromkeys(c.mixers)}
    remembered: Array | None = None
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x, remembered = layer(x, w_layer, cache_layer, c, kind, tables, remembered)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last, bias="lm_head.bias" if c.head_bias else None)


@step(Role.LAYER)
def layer(
    x: Array,
    w: Weights,
    cache: KVCache,
    c: Zaya,
    kind: ZayaLayer,
    tables: Mapping[str, RopeTable],
    remembered: Array | None,
) -> tuple[Array, Array]:
    """One block, which also passes on its router's result: [T D], [T R] -> [T D], [T R]."""
    table = tables["sliding" if isinstance(kind.mask, SlidingWindow) else "full"]
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind.mask, table)
    x = weighed(x, y, w.at("post_attention_residual_scale"))
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    y, remembered = mixture_of_experts(y, w.at("mlp"), c, None if kind.is_first else remembered)
    return weighed(x, y, w.at("post_mlp_residual_scale")), remembered


def weighed(x: Array, y: Array, w: Weights) -> Array:
    """A residual connection both of whose sides are shifted and scaled, channel by channel: [T D], [T D] -> [T D]."""
    D = x.shape[1]
    y = (y + w("hidden_states_bias", D)) * w("hidden_states_scale", D)
    return (x + w("residual_bias", D)) * w("residual_scale", D) + y


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Zaya, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information, by queries and keys that see the tokens just before: [T D] -> [T D]."""
    T, N, K, H = x.shape[0], c.n_heads, c.n_kv_heads, c.d_head
    q, k, v = queries_keys_values(x, w.at("qkv_proj"), cache, c)
    q = to_length(q, H**0.5)
    k = to_length(k, H**0.5) * w("qk_norm.temp", K)[:, None]
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5)
    return linear(mixed.reshape(T, N * H), w, "o_proj", c.d_model, bias=c.attention_bias)


def queries_keys_values(x: Array, w: Weights, cache: KVCache, c: Zaya) -> tuple[Array, Array, Array]:
    """Queries and keys that two convolutions mix, and values half of which are the token's before.

    [T D] -> [T N H], [T K H], [T K H]. The convolutions keep the rows that the next token's need.
    """
    T, N, K, H, bias = x.shape[0], c.n_heads, c.n_kv_heads, c.d_head, c.attention_bias
    q, k = linear(x, w, "q_proj", N * H, bias=bias), linear(x, w, "k_proj", K * H, bias=bias)
    both = np.concatenate([q, k], axis=-1)
    # the rows before, of what the first convolution reads and of what the second does, where the bias is not yet added
    first, second = c.d_conv - 1, c.d_head_conv - 1
    kept = cache.state(Holds.CONVOLUTION, first + second, (N + K) * H)
    rows = np.concatenate([kept[:first], both], axis=0)
    made = grouped_conv(rows, w, "conv_qk_depthwise", c.d_conv, (N + K) * H)
    made = np.concatenate([kept[first:], made], axis=0)
    kept = np.concatenate([rows[rows.shape[0] - first :], made[made.shape[0] - second :]], axis=0)
    cache.store(Holds.CONVOLUTION, kept, item_bytes=CONVOLUTION_BYTES)
    made = made + w("conv_qk_depthwise.bias", (N + K) * H)
    made = grouped_conv(made, w, "conv_qk_grouped", c.d_head_conv, N + K) + w("conv_qk_grouped.bias", (N + K) * H)
    mixed_q, mixed_k = np.split(made, [N * H], axis=-1)
    beside_q = (heads(q, N, H) + repeat_kv(heads(k, K, H), N)) * 0.5
    beside_k = beside_q.reshape(T, K, N // K, H).mean(axis=2)
    now = linear(x, w, "v_proj_current", K * H // 2, bias=bias)
    delayed = token_shift(linear(x, w, "v_proj_delayed", K * H // 2), cache, Holds.ATTENTION_SHIFT)
    delayed = delayed + w("v_proj_delayed.bias", K * H // 2) if bias else delayed
    v = heads(np.concatenate([now, delayed], axis=-1), K, H)
    return heads(mixed_q, N, H) + beside_q, heads(mixed_k, K, H) + beside_k, v


@step(Role.L2_NORM)
def to_length(x: Array, length: float) -> Array:
    """Bring each vector to a length: [… H] -> [… H]."""
    return x * (length / np.maximum(np.sqrt((x * x).sum(axis=-1, keepdims=True)), LEAST_LENGTH))


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Zaya, remembered: Array | None) -> tuple[Array, Array]:
    """Each token is sent to one expert, or to none: [T D], [T R] -> [T D], [T R].

    The stored bias balances the load; the routing weight excludes it.
    """
    E = c.n_experts
    fit, remembered = router(x, w.at("gate"), c, remembered)
    chosen = top_k(fit + w.buffer("gate.balancing_biases", E + 1), c.n_experts_per_token)
    is_skipped = chosen >= E
    shares = np.where(is_skipped, 0, routing_weights(fit, chosen))
    chosen = np.where(is_skipped, 0, chosen)
    said = packed_experts(x, chosen, w, PACKED, E, c.d_ff, activation(c.activation))
    return combine(said, shares), remembered


def router(x: Array, w: Weights, c: Zaya, remembered: Array | None) -> tuple[Array, Array]:
    """A weight for each expert and for none, and the input of the next layer's router: [T D] -> [T E+1], [T R]."""
    R = c.d_router
    made = linear(x, w, "down_proj", R, bias=True)
    made = made if remembered is None else made + remembered * w("router_states_scale", R)
    y, inside = rms_norm(made, w, "router_mlp.norm", c.norm_eps), w.at("router_mlp")
    y = gelu(linear(gelu(linear(y, inside, "fc1", R, bias=True)), inside, "fc2", R, bias=True))
    return softmax(linear(y, inside, "out_proj", c.n_experts + 1)), made
