"""Inkling: positions encoded by learned profiles of distance, short convolutions after four maps, shared experts in the
router's softmax.

Source: the defaults of transformers' InklingTextConfig, which names thinkingmachines/Inkling; tensor names of
transformers. Layers with a window have their own number and width of heads. The text model of a multimodal one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..interface import Array, KVCache, Mask, Weights
from ..ops import (
    Full,
    Kind,
    SlidingWindow,
    causal_conv,
    causal_mask,
    combine,
    embed,
    feed_forward,
    gated_experts,
    heads,
    linear,
    masked,
    positions,
    relative_logits,
    repeat_kv,
    rms_norm,
    scores,
    sigmoid_scores,
    softmax,
    top_k,
    unembed,
    weighted_sum,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Raw, Size, Taps, activation, config, key, listed, must_name, sparse_layers
from .predicted import Module, Place
from .tensor_layouts import EXPERT, FUSED, INKLING_EXPERTS, INKLING_NAMES

# Which of a layer's convolutions a cache entry belongs to.
OF_KEYS, OF_VALUES, OF_ATTENTION, OF_FEED_FORWARD = range(4)


@config
class Inkling(Config):
    """Hyperparameters of Inkling, in forward order. d_ff is the inner width of the layers without experts."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    local_layers: list[int] | None = key("local_layer_ids", None)
    layer_types: list[str] = key("layer_types", lambda c: c.default_layer_types())
    d_conv: Taps = key("conv_kernel_size", 4, also=("sconv_kernel_size",))
    # attention
    n_heads: Size = key("num_attention_heads")
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128)
    n_window_heads: Size = key("swa_num_attention_heads")
    n_window_kv_heads: Size = key("swa_num_key_value_heads", 16)
    d_window_head: Size = key("swa_head_dim", 128)
    sliding_window: Size = key("sliding_window_size", 512, also=("sliding_window",))
    d_distance: Size = key("d_rel", 16)
    longest_distance: Size = key("rel_extent", 1024)
    grows_from: Positive | None = key("log_scaling_n_floor", None)
    growth: float = key("log_scaling_alpha", 0.1)
    # feed-forward
    n_dense: int = key("dense_mlp_idx", 0)
    mlp_layer_types: list[str] = key(
        "mlp_layer_types", lambda c: ["dense" if i < c.n_dense else "sparse" for i in range(c.n_layers)]
    )
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "silu")
    # experts
    n_experts: Size = key("n_routed_experts", also=("num_experts", "num_local_experts"))
    n_experts_per_token: Size = key("num_experts_per_tok")
    n_shared_experts: Size = key("n_shared_experts")
    d_ff_expert: Size = key("moe_intermediate_size")
    routed_scale: Positive = key("route_scale", 8.0)
    # head
    head_divisor: Positive = key("logits_mup_width_multiplier", 24.0, also=("embedding_multiplier",))
    real_vocabulary: Size | None = key("unpadded_vocab_size", None)

    rewritten = frozenset({"dense_intermediate_size"})
    ignored = frozenset(
        {
            "tie_word_embeddings",
            "shared_expert_sink",
            "rms_norm_eps_moe_gate",
            "num_mtp_layers",
            "chain_hidden_post_norm",
            "mtp_hidden_states_first",
            "mtp_local_layer_ids",
            "number_of_conv_states",
        }
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """Beside `dense_intermediate_size`, `intermediate_size` is the experts'."""
        dense = raw.pop("dense_intermediate_size", None)
        if dense is None:
            return raw
        return {**raw, "moe_intermediate_size": raw.get("intermediate_size"), "intermediate_size": dense}

    def default_layer_types(self) -> list[str]:
        """Windows in five layers of six, or in those that are listed."""
        local = [i for i in range(self.n_layers) if (i + 1) % 6] if self.local_layers is None else self.local_layers
        return ["hybrid_sliding" if i in local else "hybrid" for i in range(self.n_layers)]

    def check(self) -> None:
        activation(self.activation)
        self.must_divide("n_kv_heads", "n_heads")
        self.must_divide("n_window_kv_heads", "n_window_heads")
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts, and its mask."""
        must_name("layer_types", self.layer_types, ("hybrid", "hybrid_sliding"), self.n_layers)
        masks: dict[str, Mask] = {"hybrid": Full(), "hybrid_sliding": SlidingWindow(self.sliding_window)}
        sparse = sparse_layers(self.mlp_layer_types, self.n_layers)
        return [Kind(is_sparse, masks[a]) for is_sparse, a in zip(sparse, self.layer_types)]


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    is_near = at.k in (listed(at.raw.get("mtp_local_layer_ids")) or [])
    kind = Kind(False, SlidingWindow(c.sliding_window) if is_near else Full())
    return layer(x, w, cache, c, kind, positions(ids, cache))


MTP = Module(
    draft_layer,
    "model.mtp.layers.{k}",
    "embed_norm",
    "hidden_norm",
    "input_proj",
    "transformer_block",
    "",
    state_first=True,
    embed_norm="model.embed_tokens.embed_norm",
    chain_norm="model.mtp.chain_norm",
    divisor="head_divisor",
)


@architecture(
    "inkling_text",
    config=Inkling,
    fused=FUSED,
    in_turn=INKLING_EXPERTS
    | {
        "mlp.w13_dn.weight": ("mlp.gate_proj.weight", "mlp.up_proj.weight"),
        "mlp.shared_experts.shared_w13_weight": ("mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj"),
    },
    spellings=(
        *INKLING_NAMES,
        ("sconv.weight$", "sconv.conv1d.weight"),
        ("mlp.w2_md.", "mlp.down_proj."),
        ("mlp.shared_experts.shared_w2_weight", "mlp.shared_experts.down_proj"),
    ),
    predicts=MTP,
    windows_in_sglang=True,
    images_in_sglang=False,
)
def forward(w: Weights, ids: Array, c: Inkling, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    x = rms_norm(x, w, "model.embed_tokens.embed_norm", c.norm_eps)
    places = positions(ids, cache)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, places)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    logits = unembed(x, w, "lm_head.weight", c.vocab_size, last=last) * (1 / c.head_divisor)
    return logits if c.real_vocabulary is None else logits[:, : c.real_vocabulary]


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Inkling, kind: Kind, places: Array) -> Array:
    """One block, each half followed by a short convolution: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind.mask, places)
    x = x + blended(y, w, cache.part(OF_ATTENTION), "attn_sconv", c)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    y = mixture_of_experts(y, w.at("mlp"), c) if kind.moe else scaled_feed_forward(y, w.at("mlp"), c)
    return x + blended(y, w, cache.part(OF_FEED_FORWARD), "mlp_sconv", c)


def blended(x: Array, w: Weights, cache: KVCache, name: str, c: Inkling) -> Array:
    """A vector and its blend with the few before it: [T C] -> [T C]."""
    return x + causal_conv(x, w, cache, f"{name}.conv1d", c.d_conv, bias=False)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Inkling, mask: Mask, places: Array) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    is_window = isinstance(mask, SlidingWindow)
    N, K, H = (
        (c.n_window_heads, c.n_window_kv_heads, c.d_window_head) if is_window else (c.n_heads, c.n_kv_heads, c.d_head)
    )
    reach = c.sliding_window if is_window else c.longest_distance
    q = rms_norm(heads(linear(x, w, "q_proj", N * H), N, H), w, "q_norm", c.norm_eps)
    k = blended(linear(x, w, "k_proj", K * H), w, cache.part(OF_KEYS), "k_sconv", c)
    v = blended(linear(x, w, "v_proj", K * H), w, cache.part(OF_VALUES), "v_sconv", c)
    k = rms_norm(heads(k, K, H), w, "k_norm", c.norm_eps)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, heads(v, K, H), mask)
    distances = heads(linear(x, w, "r_proj", N * c.d_distance), N, c.d_distance)
    bias = relative_logits(distances, w("rel_logits_proj.proj", c.d_distance, reach), cache, k)
    if not is_window and c.grows_from is not None:
        growth = log_growth(places, c.grows_from, c.growth)
        q, bias = q * growth[:, None, None], bias * growth[None, :, None]
    fit = scores(q, repeat_kv(k, N), 1 / H) + bias
    mixed = weighted_sum(softmax(masked(fit, causal_mask(cache, q, k, mask))), repeat_kv(v, N))
    return linear(mixed.reshape(x.shape[0], N * H), w, "o_proj", c.d_model)


@step(Role.TEMPERATURE)
def log_growth(places: Array, start: float, slope: float) -> Array:
    """1 up to a position in the text, beyond it more with its logarithm: [T] -> [T]."""
    return (1 + slope * np.log(np.maximum((places + 1) / start, 1))).astype(np.float32)


@step(Role.FEED_FORWARD)
def scaled_feed_forward(x: Array, w: Weights, c: Inkling) -> Array:
    """The layer without experts, times a trained number: [T D] -> [T F] -> [T D]."""
    return feed_forward(x, w, c.d_ff, activation(c.activation)) * w("global_scale", 1)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Inkling) -> Array:
    """A few experts chosen for each token, and shared ones that the router weighs too: [T D] -> [T k D] -> [T D].

    Chosen and shared experts divide one whole by their sigmoids. The stored bias counts only in the selection.
    """
    E, S, act = c.n_experts, c.n_shared_experts, activation(c.activation)
    fit = linear(x, w, "gate", E + S)
    routed_fit, shared_fit = np.split(sigmoid_scores(fit), [E], axis=-1)
    chosen = top_k(routed_fit + w.buffer("gate.e_score_correction_bias", E), c.n_experts_per_token)
    both = np.concatenate([np.take_along_axis(routed_fit, chosen, axis=-1), shared_fit], axis=-1)
    shares = both / both.sum(axis=-1, keepdims=True) * w("gate.global_scale", 1) * c.routed_scale
    routed_shares, shared_shares = np.split(shares, [c.n_experts_per_token], axis=-1)
    routed = combine(gated_experts(x, chosen, w, EXPERT, E, c.d_ff_expert, act), routed_shares)
    return routed + weighed_experts(x, shared_shares, w.at("shared_experts"), c)


@step(Role.SHARED_EXPERTS)
def weighed_experts(x: Array, shares: Array, w: Weights, c: Inkling) -> Array:
    """The shared experts, each by its weight: [T D], [T S] -> [T S F] -> [T D]."""
    S, F, D = c.n_shared_experts, c.d_ff_expert, c.d_model
    gate = np.einsum("td,sfd->tsf", x, w("gate_proj", S, F, D), optimize=True)
    up = np.einsum("td,sfd->tsf", x, w("up_proj", S, F, D), optimize=True)
    wide = activation(c.activation)(gate) * up * shares[:, :, None]
    return np.einsum("tsf,sdf->td", wide, w("down_proj", S, D, F), optimize=True)
