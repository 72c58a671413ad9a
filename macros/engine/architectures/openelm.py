"""OpenELM: Llama's block with a norm on each head's queries and keys; deeper layers have more heads, and are wider.

Sources: arXiv 2404.14619; mlx-lm 0.32, models/openelm.py, whose tensor names are those of the published files.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from ..errors import Problem
from ..facts import UNREAD
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    silu,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Interval, Positive, Size, config, derived, key
from .rope_config import read_rope


class Wide(NamedTuple):
    """A layer: its heads, its key/value heads, and its inner width."""

    n_heads: int
    n_kv_heads: int
    d_ff: int

    def __str__(self) -> str:
        return "whole"


def divisible(width: float, divisor: int) -> int:
    """The nearest multiple of the divisor that is at most a tenth below the width."""
    near = max(divisor, int(width + divisor / 2) // divisor * divisor)
    return near + divisor if near < 0.9 * width else near


@config
class OpenELM(Config):
    """Hyperparameters of OpenELM, in forward order. n_heads, n_kv_heads and d_ff are those of which each layer has a
    multiple."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("model_dim")
    # layers
    n_layers: Size = key("num_transformer_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    # attention
    all_heads: list[Interval] = key("num_query_heads")
    all_kv_heads: list[Interval] = key("num_kv_heads")
    n_heads: Size = derived(lambda c: math.gcd(*c.all_heads) or 1)
    n_kv_heads: Size = derived(lambda c: math.gcd(*c.all_kv_heads) or 1)
    d_head: Size = key("head_dim", 128)
    qk_norm: bool = key("normalize_qk_projections", True)
    rope_theta: Positive = key("rope_freq_constant", 10_000.0)
    # feed-forward
    multipliers: list[Positive] = key("ffn_multipliers")
    divisor: Interval = key("ffn_dim_divisor", 256)
    d_ff: Size = derived(lambda c: math.gcd(*c.inner_widths()) or 1)
    has_gate: Literal[True] = key("ffn_with_glu", True)
    activation: Literal["swish"] = key("activation_fn_name", "swish")
    norms: Literal["rms_norm"] = key("normalization_layer_name", "rms_norm")
    # head
    tied: bool = key("share_input_output_layers", True)

    ignored = frozenset({"max_context_length", "rope_max_length", "num_gqa_groups", "qkv_multipliers"})

    def inner_widths(self) -> list[int]:
        """The inner width of each layer."""
        return [divisible(times * int(self.d_model), int(self.divisor)) for times in self.multipliers]

    def check(self) -> None:
        for name, one in (("num_query_heads", self.all_heads), ("num_kv_heads", self.all_kv_heads)):
            self._must_be_for_each(name, len(one))
        self._must_be_for_each("ffn_multipliers", len(self.multipliers))
        if any(n % k for n, k in zip(self.all_heads, self.all_kv_heads)):
            raise Problem("num_kv_heads does not divide num_query_heads in each layer", "correct one of the two")
        self.rope.turning(self.d_head)

    def _must_be_for_each(self, name: str, entries: int) -> None:
        if entries != self.n_layers:
            what = f"{name} has {entries} entries, and num_transformer_layers = {int(self.n_layers)}"
            raise Problem(what, "correct one of the two")

    @property
    def rope(self) -> Rope:
        return read_rope({"rope_theta": self.rope_theta})

    @property
    def kinds(self) -> list[Wide]:
        """The sizes of each layer, in order, by those of which they have a multiple."""
        units = int(self.n_heads), int(self.n_kv_heads), int(self.d_ff)
        return [
            Wide(n // units[0] * self.n_heads, k // units[1] * self.n_kv_heads, f // units[2] * self.d_ff)
            for n, k, f in zip(self.all_heads, self.all_kv_heads, self.inner_widths())
        ]


@architecture("openelm", config=OpenELM, gguf=UNREAD)
def forward(w: Weights, ids: Array, c: OpenELM, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.token_embeddings.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("transformer.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "transformer.norm", c.norm_eps)
    name = "transformer.token_embeddings.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, name, c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: OpenELM, kind: Wide, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "attn_norm", c.norm_eps), w.at("attn"), cache, c, kind, table)
    return x + network(rms_norm(x, w, "ffn_norm", c.norm_eps), w.at("ffn"), c, kind.d_ff)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: OpenELM, kind: Wide, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = kind.n_heads, kind.n_kv_heads, c.d_head
    q, k, v = np.split(linear(x, w, "qkv_proj", (N + 2 * K) * H), [N * H, (N + K) * H], axis=-1)
    q, k, v = heads(q, N, H), heads(k, K, H), heads(v, K, H)
    if c.qk_norm:
        q, k = rms_norm(q, w, "q_norm", c.norm_eps), rms_norm(k, w, "k_norm", c.norm_eps)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5), w, "out_proj", c.d_model)


@step(Role.FEED_FORWARD)
def network(x: Array, w: Weights, c: OpenELM, width: int) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T 2F] -> [T F] -> [T D]."""
    gate, up = np.split(linear(x, w, "proj_1", 2 * width), 2, axis=-1)
    return linear(silu(gate) * up, w, "proj_2", c.d_model)
