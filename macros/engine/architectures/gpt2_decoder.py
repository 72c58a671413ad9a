"""GPT-2 as a decoder whose layers also attend to the vectors of an image.

The image's vectors are this model's input beside the text, as what an encoder read would be: `t5` explains the two
lengths. Source: transformers 5.24, models/gpt2; tensor names as its GPT2LMHeadModel.
"""

from __future__ import annotations

import numpy as np

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import attend, conv1d, embed, embed_positions, heads, layer_norm, positions, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Size, config, key
from .gpt2 import GPT2, attention, feed_forward
from .tasks import NONE
from .tensor_layouts import BESIDE_ENCODER
from .trocr import TrOCR


@config
class GPT2Decoder(GPT2):
    """Hyperparameters of GPT-2 beside an encoder, in forward order.

    `n_source`: the vectors of an image, which the encoder's sizes say (`keys.image_vectors`); without them those of one
    of 224 pixels in patches of 16.
    """

    n_source: Size = key("num_image_tokens", 197)

    caveat = TrOCR.caveat

    @property
    def source_shape(self) -> tuple[int, int] | None:
        return self.n_source, self.d_model


@architecture("gpt2_decoder", config=GPT2Decoder, spellings=BESIDE_ENCODER, heads=NONE, peft=Peft(("c_attn",)))
def forward(w: Weights, ids: Array, c: GPT2Decoder, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T], and the image's vectors [M D] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source, c.d_model)
    read = source if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    x = embed(ids, w, "transformer.wte.weight", c.vocab_size, c.d_model)
    x = x + embed_positions(positions(ids, cache), w, "transformer.wpe.weight", c.n_positions, c.d_model)
    for _, w_layer, kept in w.layers("transformer.h", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, kept, c, read)
    x = layer_norm(x, w, "transformer.ln_f", c.norm_eps)
    return unembed(x, w, "transformer.wte.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GPT2Decoder, read: Array) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(layer_norm(x, w, "ln_1", c.norm_eps), w.at("attn"), cache, c)
    y = layer_norm(x, w, "ln_cross_attn", c.norm_eps)
    x = x + cross_attention(y, w.at("crossattention"), cache, c, read)
    return x + feed_forward(layer_norm(x, w, "ln_2", c.norm_eps), w.at("mlp"), c)


@step(Role.CROSS_ATTENTION)
def cross_attention(x: Array, w: Weights, cache: KVCache, c: GPT2Decoder, read: Array) -> Array:
    """Let each token gather information from the image: [T D], [M D] -> [T D]."""
    k, v = (heads(part, *c.cut) for part in np.split(conv1d(read, w, "c_attn", 2 * c.d_model), 2, axis=-1))
    q = heads(conv1d(x, w, "q_attn", c.d_model), *c.cut)
    k, v = cache.fill(Holds.SOURCE_KEYS, k, c.n_source), cache.fill(Holds.SOURCE_VALUES, v, c.n_source)
    scale = (c.cut[1] ** -0.5 if c.scale_attention else 1.0) / (w.index + 1 if c.scale_by_layer else 1)
    return conv1d(attend(q, k, v, None, scale), w, "c_proj", c.d_model)
