"""The language model of Voxtral Realtime: Mistral's block, the second norm's output scaled by how far the text lags.

Vectors of the sound are added to the text's, and are left out here. The scale of a layer comes from the number of
tokens by which the text follows the speech, 6 in the published config. Source: transformers, models/voxtral_realtime;
tensor names as transformers' language model.
"""

from __future__ import annotations

import numpy as np

from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import Rope, embed, feed_forward, gelu, linear, positions, rms_norm, rope_table, unembed
from ..steps import Keeps, Role, step
from . import architecture
from .config import Positive, Size, activation, config, fixed, key
from .llama import Mistral, attention
from .rope_config import read_rope

DELAY = 6


@config
class VoxtralRealtime(Mistral):
    """Hyperparameters of the language model of Voxtral Realtime, in forward order, with the defaults of the whole."""

    sliding_window: Size | None = key("sliding_window", 8192)
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    d_delay: Size = fixed(32)
    tied: bool = key("tie_word_embeddings", True)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=1e6)


@architecture("voxtral_realtime_text", config=VoxtralRealtime)
def forward(w: Weights, ids: Array, c: VoxtralRealtime, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table, delay = rope_table(positions(ids, cache), c.d_head, c.rope), delay_embedding(ids, c.d_model)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table, delay)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.SINUSOIDS, keeps=Keeps.NOTHING)
def delay_embedding(ids: Array, width: int) -> Array:
    """The delay as cosines and sines of falling frequencies, the same for all tokens: [T] -> [1 D]."""
    half = width // 2
    angles = DELAY * 10000.0 ** (np.arange(half, like=ids) / -half)
    return np.concatenate([np.cos(angles), np.sin(angles)], axis=-1).reshape(1, width).astype(np.float32)


@step(Role.LAYER)
def layer(
    x: Array, w: Weights, cache: KVCache, c: VoxtralRealtime, mask: Mask, table: RopeTable, delay: Array
) -> Array:
    """One transformer block: [T D], [1 D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps) * (1 + delay_scale(delay, w.at("ada_rms_norm"), c))
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


def delay_scale(delay: Array, w: Weights, c: VoxtralRealtime) -> Array:
    """A layer's answer to the delay, through a narrow pair of matrices: [1 D] -> [1 D]."""
    return linear(gelu(linear(delay, w, "linear1", c.d_delay)), w, "linear2", c.d_model)
