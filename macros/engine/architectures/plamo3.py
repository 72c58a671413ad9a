"""PLaMo 3: a window in most layers, norms before and after each half, queries, keys and values in one matrix.

Norms store the distance from 1 before a half, from 1/5 after attention and from 1/√125 after the feed-forward network.
Source: pfnet/plamo-3-nict-8b-base by vLLM, model_executor/models/plamo3.py, whose tensor names these are.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..errors import Problem
from ..facts import Gguf, Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
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
from .config import Interval, Raw, Size, config, fixed, full_every, key, masks_of
from .gguf_tables import ATTENTION, below
from .llama import Llama
from .rope_config import fold_rope_of_kinds, read_rope, rope_of_mask


@config
class Plamo3(Llama):
    """Hyperparameters of PLaMo 3, in forward order."""

    # layers
    sliding_window: Size | None = key("window_size", 2048, also=("sliding_window",))
    period: Interval = key("sliding_window_pattern", 8)
    layer_types: list[str] = key("layer_types", lambda c: full_every(c.period, c.n_layers))
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 4)
    d_head: Size = key("head_dim", 128)
    attention_bias: Literal[False] = key("attention_bias", False)
    # feed-forward
    mlp_bias: bool = fixed(False)
    activation: str = fixed("silu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    rewritten = Llama.rewritten | {"rope_local_theta", "rope_scaling_factor", "initial_context_length"}
    ignored = Llama.ignored | {
        "hidden_act",
        "hidden_activation",
        "image_feature_size",
        "image_proj_type",
        "image_token_id",
        "interleaved_sliding_window",
        "linear_type",
        "mlp_bias",
    }

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """A base of the angles for each kind of layers; those of a longer text for the layers that see all of it."""
        full, sliding = raw.pop("rope_theta", None), raw.pop("rope_local_theta", None)
        longer, trained = raw.pop("rope_scaling_factor", None), raw.pop("initial_context_length", None)
        table: Raw = {"rope_type": "default", "rope_theta": full or 1_000_000.0}
        if longer not in (None, 1):
            if trained is None:
                raise Problem("initial_context_length is missing", "rope_scaling_factor needs it")
            table |= {
                "rope_type": "yarn",
                "factor": longer,
                "original_max_position_embeddings": trained,
                "truncate": False,
            }
        return fold_rope_of_kinds(
            raw,
            {
                "full_attention": table,
                "sliding_attention": {"rope_type": "default", "rope_theta": sliding or 10_000.0},
            },
        )

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, layer_type="full_attention")

    @property
    def masks(self) -> list[Mask]:
        return masks_of(self.layer_types, self.n_layers, self.sliding_window)


GGUF = Gguf(
    "plamo3",
    {
        **below("mixer", ATTENTION),
        "pre_mixer_norm": "attn_norm",
        "post_mixer_norm": "=post_attention_norm",
        "pre_mlp_norm": "ffn_norm",
        "post_mlp_norm": "=post_ffw_norm",
    },
    is_windowed=True,
)


@architecture("plamo3", config=Plamo3, gguf=GGUF, mlx=Mlx(is_windowed=True))
def forward(w: Weights, ids: Array, c: Plamo3, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    tables = {m: rope_table(places, c.d_head, rope_of_mask(c.rope_parameters, m)) for m in dict.fromkeys(c.masks)}
    for mask, w_layer, cache_layer in w.layers("model.layers.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, tables[mask])
    x = rms_norm(x, w, "model.norm", c.norm_eps, offset=1)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Plamo3, mask: Mask, table: RopeTable) -> Array:
    """One transformer block, with a norm before and after each half: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "pre_mixer_norm", c.norm_eps, offset=1), w.at("mixer"), cache, c, mask, table)
    x = x + rms_norm(y, w, "post_mixer_norm", c.norm_eps, offset=1 / 5)
    y = feed_forward(rms_norm(x, w, "pre_mlp_norm", c.norm_eps, offset=1), w.at("mlp"), c)
    return x + rms_norm(y, w, "post_mlp_norm", c.norm_eps, offset=5**-1.5)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Plamo3, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q, k, v = np.split(linear(x, w, "qkv_proj", N * H + 2 * K * H), [N * H, N * H + K * H], axis=-1)
    q = rms_norm(heads(q, N, H), w, "q_norm", c.norm_eps, offset=1)
    k = rms_norm(heads(k, K, H), w, "k_norm", c.norm_eps, offset=1)
    q, k, v = apply_rope(q, table), apply_rope(k, table), heads(v, K, H)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    return linear(attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5), w, "o_proj", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Plamo3) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T 2F] -> [T F] -> [T D]."""
    gate, up = np.split(linear(x, w, "gate_up_proj", 2 * c.d_ff), 2, axis=-1)
    return linear(silu(gate) * up, w, "down_proj", c.d_model)
