"""Gear: Gemma 3's block, in which most layers mix tokens by short convolutions of keys and values, gated by a query.

Source: mlx-lm 0.32, models/gear.py, whose tensor names are those of the published files.
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem
from ..facts import Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    linear,
    positions,
    repeat_kv,
    rope_table,
    sigmoid,
    soft_cap,
    unembed,
)
from ..ops.recurrence import CONVOLUTION_BYTES
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Size, Taps, check_layer_types, config, key
from .gemma import norm
from .gemma3 import Gemma3
from .llama import feed_forward

CONV = "convolution"


@config
class Gear(Gemma3):
    """Hyperparameters of Gear, in forward order."""

    layer_types: list[str] = key("layer_types", lambda c: ["full_attention"] * c.n_layers)
    sliding_window: Size | None = key("sliding_window", 512)
    query_scalar: Positive = key("query_pre_attn_scalar", lambda c: int(c.d_head))
    conv_width: Taps = key("conv_L_cache", 3)

    def check(self) -> None:
        super().check()
        if self.conv_width < 2:
            raise Problem(f"conv_L_cache = {int(self.conv_width)}: expected at least 2", "correct the value")

    @property
    def masks(self) -> list[Mask]:
        """The masks of the layers with attention."""
        return [mask for mask in self.kinds if not isinstance(mask, str)]

    @property
    def kinds(self) -> list[Mask | str]:
        """What each layer does, in order: the mask of its attention, or a convolution."""
        by_name: dict[str, Mask | str] = {
            "full_attention": Full(),
            "sliding_attention": SlidingWindow(self.size("sliding_window")),
            "conv_mixer": CONV,
        }
        check_layer_types(self.layer_types, self.n_layers, by_name)
        return [by_name[name] for name in self.layer_types]


@architecture("gear", config=Gear, mlx=Mlx(is_windowed=True))
def forward(w: Weights, ids: Array, c: Gear, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.d_model**0.5
    tables = {mask: rope_table(positions(ids, cache), c.d_head, c.rope_of(mask)) for mask in dict.fromkeys(c.masks)}
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, tables)
    x = norm(x, w, "model.norm", c)
    logits = unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)
    return logits if c.logit_cap is None else soft_cap(logits, c.logit_cap)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Gear, kind: Mask | str, tables: dict[Mask, RopeTable]) -> Array:
    """One transformer block, with a norm before and after each half: [T D] -> [T D]."""
    y = norm(x, w, "input_layernorm", c)
    if isinstance(kind, str):
        y = mixer(y, w.at("local_mixer"), cache, c)
    else:
        y = attention(y, w.at("self_attn"), cache, c, kind, tables[kind])
    x = x + norm(y, w, "post_attention_layernorm", c)
    y = feed_forward(norm(x, w, "pre_feedforward_layernorm", c), w.at("mlp"), c)
    return x + norm(y, w, "post_feedforward_layernorm", c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Gear, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q, k, v = (projected(x, w, name, n, c) for name, n in (("q", c.n_heads), ("k", c.n_kv_heads), ("v", c.n_kv_heads)))
    q, k = apply_rope(norm(q, w, "q_norm", c), table), apply_rope(norm(k, w, "k_norm", c), table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.query_scalar**-0.5, cap=c.attention_cap)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.SHORT_CONVOLUTION)
def mixer(x: Array, w: Weights, cache: KVCache, c: Gear) -> Array:
    """Mix keys and values of the last few tokens, and let the query gate each channel: [T D] -> [T N H] -> [T D]."""
    T, K, H = x.shape[0], c.n_kv_heads, c.d_head
    q, k = norm(projected(x, w, "q", c.n_heads, c), w, "q_norm", c), norm(projected(x, w, "k", K, c), w, "k_norm", c)
    v = linear(x, w, "v_proj", K * H, bias=c.attention_bias)
    both = convolved(np.concatenate([k.reshape(T, K * H), v], axis=1), w, cache, c)
    k, v = (repeat_kv(part.reshape(T, K, H), c.n_heads) for part in np.split(both, 2, axis=1))
    mixed = (sigmoid(q * k) * v).reshape(T, c.n_heads * H)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.CAUSAL_CONV)
def convolved(kv: Array, w: Weights, cache: KVCache, c: Gear) -> Array:
    """Mix each channel of keys and values over the last `width` tokens: [T 2KH], [KH 1 W] twice -> [T 2KH]."""
    T, W, C = kv.shape[0], c.conv_width, c.n_kv_heads * c.d_head
    rows = np.concatenate([cache.state(Holds.CONVOLUTION, W - 1, 2 * C), kv], axis=0)
    cache.store(Holds.CONVOLUTION, rows[T:], item_bytes=CONVOLUTION_BYTES)
    windows = np.stack([rows[tap : tap + T] for tap in range(W)], axis=1)
    taps = np.concatenate([w("key_conv.weight", C, 1, W), w("value_conv.weight", C, 1, W)], axis=0)[:, 0]
    y = np.einsum("twc,cw->tc", windows, taps, optimize=True)
    return y + np.concatenate([w("key_conv.bias", C), w("value_conv.bias", C)]) if c.attention_bias else y


def projected(x: Array, w: Weights, name: str, n: int, c: Gear) -> Array:
    """Queries, keys or values, head by head: [T D] -> [T N H]."""
    return heads(linear(x, w, f"{name}_proj", n * c.d_head, bias=c.attention_bias), n, c.d_head)
