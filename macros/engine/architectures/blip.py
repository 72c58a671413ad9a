"""BLIP's text model: BERT's block as a decoder, which looks at an image's vectors, too.

The image's vectors are this model's input beside the text, as what an encoder read would be: `t5` explains the two
lengths. Source: arXiv 2201.12086; tensor names as transformers' text decoder alone (BlipTextLMHeadModel).
"""

from __future__ import annotations

import numpy as np

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import Full, attend, causal_mask, heads, layer_norm, linear
from ..steps import Holds, Role, step
from . import architecture
from .bert import Bert, feed_forward, prediction_head
from .config import Count, Size, config, fixed, key
from .tasks import OWN


@config
class BlipText(Bert):
    """Hyperparameters of BLIP's text model, in forward order.

    `n_source`: the vectors of an image of 384 pixels in patches of 16, which no published file of the text model says.
    """

    n_source: Size = key("num_image_tokens", 577)
    d_image: Size = key("encoder_hidden_size", 768)
    n_segments: Count = fixed(0)

    caveat = (
        "A decoder that looks at an image: the costs are those of a text behind one image, without what the vision "
        "encoder computes."
    )
    ignored = Bert.ignored | {"label_smoothing", "projection_dim", "encoder_width", "add_type_embeddings"}

    @property
    def source_shape(self) -> tuple[int, int] | None:
        return self.n_source, self.d_image


HEADS = {"LMHeadModel": OWN}


@architecture(
    "blip_text_model",
    config=BlipText,
    heads=HEADS,
    peft=Peft(tied_head="cls.predictions.decoder"),
    classes={"blip_text_model": "BlipTextLMHeadModel"},  # transformers 5.24, models/blip
)
def forward(w: Weights, ids: Array, c: BlipText, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T], and the image's vectors [M I] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source, c.d_image)
    read = source if source.shape[0] else np.zeros((0, c.d_image), np.float32)
    x = c.embedded(ids, cache, w)
    for _, w_layer, kept in w.layers("bert.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, kept, c, read)
    return prediction_head(x, w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: BlipText, read: Array) -> Array:
    """One transformer block, with a norm after each part: [T D] -> [T D]."""
    x = c.norm(x + attention(x, w.at("attention"), cache, c), w, 1)
    y = cross_attention(x, w.at("crossattention"), cache, c, read)
    x = layer_norm(x + y, w, "crossattention.output.LayerNorm", c.norm_eps)
    return c.norm(x + feed_forward(x, w, c), w, 2)


def project(x: Array, w: Weights, name: str, c: BlipText) -> Array:
    """A linear map, cut into heads: [T I] -> [T N H]."""
    return heads(linear(x, w, f"self.{name}", c.d_model, bias=True), c.n_heads, c.d_head)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: BlipText) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q, k, v = (project(x, w, name, c) for name in ("query", "key", "value"))
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5)
    return linear(mixed, w, "output.dense", c.d_model, bias=True)


@step(Role.CROSS_ATTENTION)
def cross_attention(x: Array, w: Weights, cache: KVCache, c: BlipText, read: Array) -> Array:
    """Let each token gather information from the image: [T D], [M I] -> [T D]."""
    q, k, v = project(x, w, "query", c), project(read, w, "key", c), project(read, w, "value", c)
    k, v = cache.fill(Holds.SOURCE_KEYS, k, c.n_source), cache.fill(Holds.SOURCE_VALUES, v, c.n_source)
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "output.dense", c.d_model, bias=True)
