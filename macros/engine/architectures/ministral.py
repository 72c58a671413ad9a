"""Ministral: Mistral's block, with a window in some layers.

Ministral 3: queries that grow with the position past the trained length.

Sources: mistralai/Ministral-8B-Instruct-2410, mistralai/Ministral-3-8B-Instruct-2512; tensor names of transformers.
"""

from __future__ import annotations

import numpy as np

from ..facts import Gguf, Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import Rope, apply_rope, attend, causal_mask, embed, heads, linear, positions, rms_norm, rope_table, unembed
from ..steps import Holds, Role, step
from . import architecture, llama
from .config import Positive, Raw, Size, config, fixed, key, masks_of
from .llama import Mistral, feed_forward
from .rope_config import read_rope, with_rope_of_class
from .tasks import OLD_NAME
from .tensor_layouts import MISTRAL_NAMES, PAIRS


@config
class Ministral(Mistral):
    """Hyperparameters of Ministral, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 8)
    attention_bias: bool = fixed(False)
    mlp_bias: bool = fixed(False)
    sliding_window: Size | None = key("sliding_window", 4096)
    layer_types: list[str] = key(
        "layer_types", lambda c: ["sliding_attention" if c.sliding_window else "full_attention"] * c.n_layers
    )

    @property
    def masks(self) -> list[Mask]:
        return masks_of(self.layer_types, self.n_layers, self.sliding_window)


@config
class Ministral3(Mistral):
    """Hyperparameters of Ministral 3, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128)
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    attention_bias: bool = fixed(False)
    mlp_bias: bool = fixed(False)

    ignored = Mistral.ignored | {"layer_types"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The published rotary embedding if the config has none."""
        usual: Raw = {
            "type": "yarn",
            "rope_theta": 1_000_000.0,
            "factor": 16.0,
            "original_max_position_embeddings": 16384,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "llama_4_scaling_beta": 0.1,
        }
        return super().prepare(with_rope_of_class(raw, usual))

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)


architecture("ministral", config=Ministral, spellings=MISTRAL_NAMES, in_pairs=PAIRS, heads=OLD_NAME)(llama.forward)


@architecture(
    "ministral3",
    config=Ministral3,
    spellings=MISTRAL_NAMES,
    in_pairs=PAIRS,
    gguf=Gguf("mistral3", in_pairs=True),
    mlx=Mlx(is_windowed=True),
)
def forward(w: Weights, ids: Array, c: Ministral3, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    table, growth = rope_table(places, c.d_head, c.rope), query_growth(places, c.rope_parameters)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table, growth)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.TEMPERATURE)
def query_growth(places: Array, scaling: Raw) -> Array:
    """1 up to the trained length, then slowly more, so that attention stays sharp in a longer text: [T] -> [T 1 1]."""
    times = np.floor(places / scaling.get("original_max_position_embeddings", 16384))
    return (1 + scaling.get("llama_4_scaling_beta", 0.1) * np.log(1 + times)).astype(np.float32)[:, None, None]


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Ministral3, mask: Mask, table: RopeTable, growth: Array) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table, growth)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(
    x: Array, w: Weights, cache: KVCache, c: Ministral3, mask: Mask, table: RopeTable, growth: Array
) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head), c.n_kv_heads, c.d_head)
    q, k = apply_rope(q, table) * growth, apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    return linear(attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5), w, "o_proj", c.d_model)
