"""LFM2: most layers are gated short convolutions over a few tokens, the others attention; one variant has experts.

Source: arXiv 2511.23404 (LFM2); tensor names as transformers 5.
"""

from __future__ import annotations

from ..errors import Problem, shorten
from ..facts import Gguf
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Mixed,
    Rope,
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    heads,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    routing_weights,
    short_convolution,
    sigmoid_scores,
    silu,
    top_k,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import LARGEST_SIZE, Config, Interval, Positive, Raw, Size, Taps, config, derived, key, short_names
from .rope_config import OLDER_ROPE_KEYS, read_rope
from .tensor_layouts import PACKED

# The kinds of layers by their names in `layer_types`.
MIXERS = {"full_attention": "attention", "conv": "convolution"}


@config
class ShortConvolutions(Config):
    """The common hyperparameters of LFM2 and its variant with experts, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("norm_eps", 1e-5)
    layer_types: list[str] | None = key("layer_types", None)
    # convolution
    d_conv: Taps = key("conv_L_cache", 3)
    conv_bias: bool = key("conv_bias", False)
    # attention
    n_heads: Size = key("num_attention_heads")
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", lambda c: c.d_model // c.n_heads)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # head
    tied: bool = key("tie_word_embeddings", True)

    rewritten = OLDER_ROPE_KEYS | {"tie_embedding", "block_ff_dim"}
    ignored = frozenset(
        """
        block_dim block_mlp_init_scale block_norm_eps block_out_init_scale block_use_swiglu block_use_xavier_init
        conv_dim conv_dim_out conv_use_xavier_init num_heads use_pos_enc
    """.split()
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        raw = super().prepare(raw)
        # If both spellings are present, the older one counts.
        for older, newer in (("tie_embedding", "tie_word_embeddings"), ("block_ff_dim", "intermediate_size")):
            value = raw.pop(older, None)
            raw = raw if value is None else {**raw, newer: value}
        return raw

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        self.rope.turning(self.d_head)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=1e6)

    @property
    def mixers(self) -> list[str]:
        """The token mixer of each layer, in order."""
        if self.layer_types is None:
            raise Problem("layer_types is missing", "add it: the kinds of layers have no default")
        return short_names(self.layer_types, self.n_layers, MIXERS)

    @property
    def kinds(self) -> list[Mixed]:
        return [Mixed(mixer) for mixer in self.mixers]


@config
class LFM2(ShortConvolutions):
    """Hyperparameters of LFM2, in forward order. The config's d_ff is the width before two thirds of it are taken and
    rounded up."""

    full_layers: list[int] | None = key("full_attn_idxs", None)
    stated_d_ff: Interval = key("intermediate_size")
    adjust_d_ff: bool = key("block_auto_adjust_ff_dim", True)
    d_ff_factor: Positive | None = key("block_ffn_dim_multiplier", 1.0)
    d_ff_multiple: Interval = key("block_multiple_of", 256)
    d_ff: Size = derived(lambda c: c.adjusted(c.stated_d_ff) if c.adjust_d_ff else c.stated_d_ff)

    def adjusted(self, width: int) -> int:
        """Two thirds of a width, times the factor, rounded up to a multiple. Raises `Problem` for zero."""
        if width > LARGEST_SIZE or (self.d_ff_factor or 1) * width > LARGEST_SIZE:
            raise Problem(
                f"intermediate_size = {shorten(width)} and block_ffn_dim_multiplier: expected at most {LARGEST_SIZE}",
                "correct those",
            )
        adjusted = int(2 * width / 3)
        if self.d_ff_factor is not None:
            adjusted = -(-int(self.d_ff_factor * adjusted) // self.d_ff_multiple) * self.d_ff_multiple
        if adjusted == 0:
            raise Problem(
                f"intermediate_size = {width} and block_ffn_dim_multiplier leave no feed-forward network",
                "correct one of them",
            )
        return adjusted

    @property
    def mixers(self) -> list[str]:
        if self.layer_types is not None or self.full_layers is None:
            types = self.layer_types or ["full_attention"] * self.n_layers
        else:
            types = ["full_attention" if i in self.full_layers else "conv" for i in range(self.n_layers)]
        return short_names(types, self.n_layers, MIXERS)


@config
class LFM2MoE(ShortConvolutions):
    """Hyperparameters of LFM2's variant with experts. d_ff is the inner width of the layers without experts."""

    d_ff: Size = key("intermediate_size")
    dense_layers: int = key("num_dense_layers", 2)
    n_experts: Size = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    d_ff_expert: Size = key("moe_intermediate_size")
    expert_bias: bool = key("use_expert_bias", True)
    normalise: bool = key("norm_topk_prob", True)
    routed_scale: Positive = key("routed_scaling_factor", 1.0)

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def kinds(self) -> list[Mixed]:
        return [Mixed(mixer, "dense" if i < self.dense_layers else "moe") for i, mixer in enumerate(self.mixers)]


_SHORT_CONVOLUTION = {
    "operator_norm": "attn_norm",
    "conv.conv": "taps:shortconv.conv",
    "conv.in_proj": "shortconv.in_proj",
    "conv.out_proj": "shortconv.out_proj",
}
GGUF_LFM2 = Gguf("lfm2", _SHORT_CONVOLUTION, {"embedding_norm": "token_embd_norm"}, is_by_layer=True)
GGUF_LFM2MOE = Gguf("lfm2moe", _SHORT_CONVOLUTION, {"embedding_norm": "token_embd_norm"}, is_by_layer=True)


@architecture("lfm2", config=LFM2, gguf=GGUF_LFM2, rounds_heads={"lfm2": True})
@architecture(
    "lfm2_moe",
    config=LFM2MoE,
    pieces={
        "experts.gate_up_proj": ("experts.{e}.w1.weight", "experts.{e}.w3.weight"),
        "experts.down_proj": ("experts.{e}.w2.weight",),
    },
    gguf=GGUF_LFM2MOE,
    rounds_heads={"lfm2_moe": True},
)
def forward(w: Weights, ids: Array, c: LFM2 | LFM2MoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.embedding_norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: LFM2 | LFM2MoE, kind: Mixed, table: RopeTable) -> Array:
    """One block: [T D] -> [T D]."""
    y = rms_norm(x, w, "operator_norm", c.norm_eps)
    if kind.mixer == "convolution":
        x = x + short_convolution(y, w.at("conv"), cache, c.d_conv, bias=c.conv_bias, centered=c.is_bidirectional)
    else:
        x = x + attention(y, w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "ffn_norm", c.norm_eps)
    if kind.feed_forward == "moe":
        assert isinstance(c, LFM2MoE)
        return x + mixture_of_experts(y, w.at("feed_forward"), c)
    return x + feed_forward(y, w.at("feed_forward"), c.d_ff)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: ShortConvolutions, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = rms_norm(heads(linear(x, w, "q_proj", N * H), N, H), w, "q_layernorm", c.norm_eps)
    k = rms_norm(heads(linear(x, w, "k_proj", K * H), K, H), w, "k_layernorm", c.norm_eps)
    v = heads(linear(x, w, "v_proj", K * H), K, H)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5), w, "out_proj", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, d_ff: int) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    return linear(silu(linear(x, w, "w1", d_ff)) * linear(x, w, "w3", d_ff), w, "w2", x.shape[-1])


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: LFM2MoE) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D].

    The stored bias balances the experts' load; the routing weights exclude it.
    """
    fit = sigmoid_scores(linear(x, w, "gate", c.n_experts))
    chosen = top_k(fit + w.buffer("expert_bias", c.n_experts) if c.expert_bias else fit, c.n_experts_per_token)
    shares = routing_weights(fit, chosen, normalise=c.normalise, scale=c.routed_scale, added=1e-6)
    return combine(packed_experts(x, chosen, w, PACKED, c.n_experts, c.d_ff_expert, silu), shares)
