"""RWKV-4: no attention, but a weighted average of all values so far, with fading weights.

The feed-forward network sees the token before, too.

Source: arXiv 2305.13048; tensor names as transformers 5.
"""

from __future__ import annotations

import numpy as np

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import embed, layer_norm, linear, relu_squared, sigmoid, token_shift, unembed, wkv
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Size, config, key


@config
class RWKV(Config):
    """Hyperparameters of RWKV-4, in forward order."""

    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    n_layers: Size = key("num_hidden_layers")
    d_inner: Size = key("attention_hidden_size", lambda c: c.d_model)
    d_ff: Size = key("intermediate_size", lambda c: 4 * c.d_model)
    norm_eps: Positive = key("layer_norm_epsilon", 1e-5)
    rescale_every: int = key("rescale_every", 6)
    tied: bool = key("tie_word_embeddings", False)

    ignored = frozenset({"context_length"})

    def halved(self, x: Array, times: int) -> Array:
        """x / 2ᵗⁱᵐᵉˢ: same shape.

        After every `rescale_every` layers the stream, and everything added to it from then on, is halved against
        overflow in float16. The norms undo this, except for their epsilon.
        """
        return x / 2**times

    def halvings(self, layers: int) -> int:
        """The number of times that the stream was halved after this many layers."""
        return layers // self.rescale_every if self.rescale_every > 0 else 0


@architecture(
    "rwkv",
    config=RWKV,
    gguf="llama.cpp converts RWKV 6 and 7, and this is RWKV 4",
    peft=Peft(("key", "value", "receptance", "output")),
)
def forward(w: Weights, ids: Array, c: RWKV, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "rwkv.embeddings.weight", c.vocab_size, c.d_model)
    x = layer_norm(x, w, "rwkv.blocks.0.pre_ln", c.norm_eps)
    for _, w_layer, cache_layer in w.layers("rwkv.blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
        x = c.halved(x, c.halvings(w_layer.index + 1) - c.halvings(w_layer.index))
    x = layer_norm(x, w, "rwkv.ln_out", 1e-5)
    return unembed(x, w, "rwkv.embeddings.weight" if c.tied else "head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: RWKV) -> Array:
    """One block: [T D] -> [T D]."""
    halvings = c.halvings(w.index)
    x = x + c.halved(time_mix(layer_norm(x, w, "ln1", c.norm_eps), w.at("attention"), cache, c), halvings)
    return x + c.halved(channel_mix(layer_norm(x, w, "ln2", c.norm_eps), w.at("feed_forward"), cache, c), halvings)


def blend(x: Array, before: Array, w: Weights, name: str) -> Array:
    """Each channel's own mixture of a token and the one before it: [T D], [T D], [1 1 D] -> [T D]."""
    share = w(name, 1, 1, x.shape[1])[0]
    return x * share + before * (1 - share)


@step(Role.TIME_MIX)
def time_mix(x: Array, w: Weights, cache: KVCache, c: RWKV) -> Array:
    """Let each token gather information from the state of those before it: [T D] -> [T C] -> [T D]."""
    before = token_shift(x, cache, Holds.ATTENTION_SHIFT)
    k = linear(blend(x, before, w, "time_mix_key"), w, "key", c.d_inner)
    v = linear(blend(x, before, w, "time_mix_value"), w, "value", c.d_inner)
    gate = sigmoid(linear(blend(x, before, w, "time_mix_receptance"), w, "receptance", c.d_inner))
    y = wkv(k, v, np.exp(w("time_decay", c.d_inner)), w("time_first", c.d_inner), cache)
    return linear(gate * y, w, "output", c.d_model)


@step(Role.CHANNEL_MIX)
def channel_mix(x: Array, w: Weights, cache: KVCache, c: RWKV) -> Array:
    """Process each token and the one before it, in a wider space: [T D] -> [T F] -> [T D]."""
    before = token_shift(x, cache, Holds.FEED_FORWARD_SHIFT)
    wide = relu_squared(linear(blend(x, before, w, "time_mix_key"), w, "key", c.d_ff))
    gate = sigmoid(linear(blend(x, before, w, "time_mix_receptance"), w, "receptance", c.d_model))
    return gate * linear(wide, w, "value", c.d_model)
