"""Llama 3.2 Vision's text model: Llama 3.1's, with layers between that look at an image's vectors and not at the text.

The image's vectors are this model's input beside the text, as what an encoder read would be: `t5` explains the two
lengths. Their keys and values are made once, and gates weigh what they add. Source: arXiv 2407.21783;
meta-llama/Llama-3.2-11B-Vision by transformers 5's class, whose tensor names these are.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..interface import Array, KVCache, Weights
from ..ops import Full, attend, embed, heads, linear, positions, rms_norm, rope_table, unembed
from ..steps import Holds, Role, step
from . import architecture, llama
from .config import Positive, Size, config, fixed, key
from .llama import Llama, feed_forward

MORE = 8  # rows of the embedding behind the vocabulary, for the image's token
CROSS = (3, 8, 13, 18, 23, 28, 33, 38)


@config
class Mllama(Llama):
    """Hyperparameters of Llama 3.2 Vision's text model, in forward order.

    `n_source`: the vectors of an image of four tiles, which no published file of the text model says.
    """

    n_source: Size = key("num_image_tokens", 4 * 1601)
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_kv_heads: Size = key("num_key_value_heads", 8)
    attention_bias: bool = fixed(False)
    cross: list[int] = key("cross_attention_layers", lambda c: list(CROSS))
    mlp_bias: bool = fixed(False)
    tied: Literal[False] = key("tie_word_embeddings", False)

    caveat = (
        "Some layers look at an image: the costs are those of a text behind one image of four tiles, without what the "
        "vision tower computes."
    )

    @property
    def source_shape(self) -> tuple[int, int] | None:
        return self.n_source, self.d_model

    @property
    def kinds(self) -> list[str]:
        """Whether each layer looks at the text or at the image."""
        return ["image" if i in self.cross else "layer" for i in range(self.n_layers)]


@architecture(
    "mllama_text_model",
    config=Mllama,
    rounds_heads={"mllama_text_model": True},
    classes={"mllama_text_model": "MllamaForCausalLM"},  # transformers 5.24, models/mllama
)
def forward(w: Weights, ids: Array, c: Mllama, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T], and the image's vectors [M D] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source, c.d_model)
    read = source if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size + MORE, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        if kind == "layer":
            x = llama.layer(x, w_layer, cache_layer, c, Full(), table)
        else:
            x = cross_layer(x, w_layer, cache_layer, c, read)
    return unembed(rms_norm(x, w, "model.norm", c.norm_eps), w, "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def cross_layer(x: Array, w: Weights, cache: KVCache, c: Mllama, read: Array) -> Array:
    """One block that attends to the image, with a gate on both halves: [T D], [M D] -> [T D]."""
    y = cross_attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("cross_attn"), cache, c, read)
    x = x + np.tanh(w("cross_attn_attn_gate", 1)) * y
    y = feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)
    return x + np.tanh(w("cross_attn_mlp_gate", 1)) * y


@step(Role.CROSS_ATTENTION)
def cross_attention(x: Array, w: Weights, cache: KVCache, c: Mllama, read: Array) -> Array:
    """Let each token gather information from the image: [T D], [M D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = rms_norm(heads(linear(x, w, "q_proj", N * H), N, H), w, "q_norm", c.norm_eps)
    k = rms_norm(heads(linear(read, w, "k_proj", K * H), K, H), w, "k_norm", c.norm_eps)
    k = cache.fill(Holds.SOURCE_KEYS, k, c.n_source)
    v = cache.fill(Holds.SOURCE_VALUES, heads(linear(read, w, "v_proj", K * H), K, H), c.n_source)
    return linear(attend(q, k, v, None, H**-0.5), w, "o_proj", c.d_model)
