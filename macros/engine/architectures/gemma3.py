"""Gemma 3: Gemma 2's block with norms on each head's queries and keys in place of the cap on scores. Five layers of six
see a window, with their own rotary embedding.

Source: arXiv 2503.19786; tensor names as the text model's published files.
"""

from __future__ import annotations

from ..facts import QUERY_VALUE, Gguf, Mlx, Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    linear,
    positions,
    rope_table,
    soft_cap,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Interval, Positive, Raw, config, fixed, full_every, key
from .gemma import norm
from .gemma2 import Gemma2
from .gguf_tables import AFTER
from .llama import feed_forward
from .otherwise import OLDER_SCALING, single_table
from .rope_config import fold_rope_by_layer_type, read_rope


@config
class Gemma3(Gemma2):
    """Hyperparameters of Gemma 3's text model, in forward order."""

    bidirectional: bool = fixed(False)
    window_pattern: Interval = key("sliding_window_pattern", 6, also=("_sliding_window_pattern",))
    layer_types: list[str] = key("layer_types", lambda c: full_every(c.window_pattern, c.n_layers))
    attention_cap: Positive | None = key("attn_logit_softcapping", None)
    logit_cap: Positive | None = key("final_logit_softcapping", None)

    rewritten = Gemma2.rewritten | {"rope_local_base_freq", "use_bidirectional_attention"}
    ignored = Gemma2.ignored | {"mm_tokens_per_image"}
    otherwise = (single_table(1_000_000), OLDER_SCALING)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """`rope_theta` and `rope_scaling` are the full layers', `rope_local_base_freq` the others'.

        With `use_bidirectional_attention` the window is as wide on both sides together.
        """
        if raw.get("use_bidirectional_attention") is True:
            window = raw.get("sliding_window", 4096)
            half = window // 2 if type(window) is int else window
            raw = {**raw, "sliding_window": half, "is_causal": False}
        return fold_rope_by_layer_type(raw, sliding_theta=raw.pop("rope_local_base_freq", None) or 10_000.0)

    def check(self) -> None:
        super().check()
        for mask in self.masks:
            self.rope_of(mask)

    @property
    def rope(self) -> Rope:
        return self.rope_of(Full())

    def rope_of(self, mask: Mask) -> Rope:
        """The rotary embedding of a kind of layer."""
        if isinstance(mask, SlidingWindow):
            return read_rope(self.rope_parameters, 10_000.0, "sliding_attention")
        return read_rope(self.rope_parameters, 1_000_000.0, "full_attention")


GGUF = Gguf("gemma3", AFTER, is_windowed=True, shifted=("norm.weight",), is_own_of_ollama=True)


@architecture(
    "gemma3_text",
    config=Gemma3,
    gguf=GGUF,
    peft=Peft(QUERY_VALUE),
    mlx=Mlx(is_windowed=True),
    images_in_sglang=False,
)
@architecture(
    "gemma3",
    config=Gemma3,
    gguf=GGUF,
    mlx=Mlx(is_windowed=True),
    images_in_sglang=False,
)
def forward(w: Weights, ids: Array, c: Gemma3, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.d_model**0.5
    tables = {mask: rope_table(positions(ids, cache), c.d_head, c.rope_of(mask)) for mask in dict.fromkeys(c.masks)}
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, tables[mask])
    x = norm(x, w, "model.norm", c)
    logits = unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)
    return logits if c.logit_cap is None else soft_cap(logits, c.logit_cap)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Gemma3, mask: Mask, table: RopeTable) -> Array:
    """One transformer block, with a norm before and after each half: [T D] -> [T D]."""
    y = attention(norm(x, w, "input_layernorm", c), w.at("self_attn"), cache, c, mask, table)
    x = x + norm(y, w, "post_attention_layernorm", c)
    y = feed_forward(norm(x, w, "pre_feedforward_layernorm", c), w.at("mlp"), c)
    return x + norm(y, w, "post_feedforward_layernorm", c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Gemma3, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    q, k = norm(q, w, "q_norm", c), norm(k, w, "k_norm", c)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.query_scalar**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)
