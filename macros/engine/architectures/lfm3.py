"""LFM3: LFM2's short convolutions, with windows in half of the attention layers, a gate for each head, and more norms.

Source: the code of transformers 5, which also gives the tensor names.
"""

from __future__ import annotations

from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Mixed,
    Rope,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    short_convolution,
    sigmoid,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Raw, Size, Taps, config, key, short_names
from .lfm2 import ShortConvolutions, feed_forward
from .rope_config import fold_rope_of_kinds, read_rope

# The kinds of layers by their names in `layer_types`.
MIXERS = {"full_attention": "full", "sliding_attention": "sliding", "conv": "convolution"}
ROPES: dict[str, Raw] = {
    "sliding_attention": {"rope_theta": 10_000.0},
    "full_attention": {"rope_type": "proportional", "rope_theta": 1_000_000.0, "partial_rotary_factor": 0.5},
}


@config
class LFM3(ShortConvolutions):
    """Hyperparameters of LFM3, in forward order."""

    # layers
    norm_eps: Positive = key("norm_eps", 1e-5, also=("rms_norm_eps",))
    norms_after: bool = key("use_sandwich_norm", True)
    # convolution
    d_conv: Taps = key("conv_L_cache", 7)
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 4)
    d_head: Size = key("head_dim", 128)
    attention_bias: bool = key("attention_bias", False)
    gated: bool = key("use_attention_gate", True)
    sliding_window: Size | None = key("sliding_window", 256)
    # feed-forward
    d_ff: Size = key("intermediate_size")

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return super().prepare(fold_rope_of_kinds(raw, ROPES))

    @property
    def rope(self) -> Rope:
        return self.rope_of("full")

    def rope_of(self, mixer: str) -> Rope:
        """The rotary embedding of a kind of layer with attention."""
        return read_rope(self.rope_parameters, 1e6, f"{mixer}_attention")

    @property
    def mixers(self) -> list[str]:
        usual = ["conv", "conv", "full_attention", "conv", "sliding_attention", "conv", "full_attention", "conv"]
        types = self.layer_types or [usual[i if i < 4 else 4 + i % 4] for i in range(self.n_layers)]
        if "sliding_attention" in types:
            self.size("sliding_window")
        return short_names(types, self.n_layers, MIXERS)

    @property
    def kinds(self) -> list[Mixed]:
        return [Mixed(mixer) for mixer in self.mixers]

    def mask_of(self, mixer: str) -> Mask:
        """The mask of a kind of layer with attention."""
        return SlidingWindow(self.size("sliding_window")) if mixer == "sliding" else Full()


@architecture("lfm3", config=LFM3, spellings=(("self_attn.gate_proj.", "self_attn.g_proj."),))
def forward(w: Weights, ids: Array, c: LFM3, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    attending = [mixer for mixer in dict.fromkeys(c.mixers) if mixer != "convolution"]
    tables = {mixer: rope_table(positions(ids, cache), c.d_head, c.rope_of(mixer)) for mixer in attending}
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, tables.get(kind.mixer))
    x = rms_norm(x, w, "model.embedding_norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: LFM3, kind: Mixed, table: RopeTable | None) -> Array:
    """One block, which may also normalize the added output: [T D] -> [T D]."""
    y = rms_norm(x, w, "operator_norm", c.norm_eps)
    if table is None:
        y = short_convolution(y, w.at("conv"), cache, c.d_conv, bias=c.conv_bias)
    else:
        y = attention(y, w.at("self_attn"), cache, c, c.mask_of(kind.mixer), table)
    x = x + (rms_norm(y, w, "post_operator_norm", c.norm_eps) if c.norms_after else y)
    y = feed_forward(rms_norm(x, w, "ffn_norm", c.norm_eps), w.at("feed_forward"), c.d_ff)
    return x + (rms_norm(y, w, "post_ffn_norm", c.norm_eps) if c.norms_after else y)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: LFM3, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from the tokens before it, and gate each head: [T D] -> [T N H] -> [T D]."""
    N, K, H, bias = c.n_heads, c.n_kv_heads, c.d_head, c.attention_bias
    q = rms_norm(heads(linear(x, w, "q_proj", N * H, bias=bias), N, H), w, "q_norm", c.norm_eps)
    k = rms_norm(heads(linear(x, w, "k_proj", K * H, bias=bias), K, H), w, "k_norm", c.norm_eps)
    v = heads(linear(x, w, "v_proj", K * H, bias=bias), K, H)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5)
    if c.gated:
        gate = sigmoid(linear(x, w, "g_proj", N))[:, :, None]
        mixed = (heads(mixed, N, H) * gate).reshape(x.shape[0], N * H)
    return linear(mixed, w, "o_proj", c.d_model, bias=bias)
