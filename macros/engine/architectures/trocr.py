"""TrOCR's decoder: BART's, which looks at the vectors of an image of a line of text.

The image's vectors are this model's input beside the text, as what an encoder read would be: `t5` explains the two
lengths. Source: arXiv 2109.10282; tensor names as transformers.
"""

from __future__ import annotations

import numpy as np

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import attend, embed, embed_positions, heads, layer_norm, linear, unembed
from ..steps import Holds, Role, step
from . import architecture
from .bart import NORM_EPS, causal_attention, feed_forward, must_be_even
from .config import Config, Count, Size, activation, config, derived, key
from .tasks import OWN
from .tensor_layouts import BESIDE_ENCODER
from .xglm import sinusoids

RESERVED = 2  # rows at the head of the table of places, which no token has


@config
class TrOCR(Config):
    """Hyperparameters of TrOCR's decoder, in forward order.

    `n_source`: the vectors of an image of 384 pixels in patches of 16, which no published file of the decoder says.
    """

    # embedding
    vocab_size: Size = key("vocab_size")
    n_positions: Size = key("max_position_embeddings", 512)
    n_source: Size = key("num_image_tokens", 577)
    d_model: Size = key("d_model", also=("hidden_size",))
    d_image: Size = key("cross_attention_hidden_size", lambda c: c.d_model)
    scale_embedding: bool = key("scale_embedding", False)
    learned: bool = key("use_learned_position_embeddings", True)
    norm_embedding: bool = key("layernorm_embedding", True)
    padding: Count = key("pad_token_id", 1)
    # layers
    n_layers: Size = key("decoder_layers", also=("num_hidden_layers",))
    n_heads: Size = key("decoder_attention_heads", also=("num_attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("decoder_ffn_dim")
    activation: str = key("activation_function", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    caveat = (
        "A decoder that looks at an image: the costs are those of a text behind one image, without what the vision "
        "encoder computes."
    )
    ignored = frozenset(
        """activation_dropout classifier_dropout decoder_layerdrop init_std forced_eos_token_id
        forced_bos_token_id""".split()
    )

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)
        if not self.learned:
            must_be_even(self.d_model)

    @property
    def source_shape(self) -> tuple[int, int] | None:
        return self.n_source, self.d_image


HEADS = {"ForCausalLM": OWN}


@architecture("trocr", config=TrOCR, spellings=BESIDE_ENCODER, heads=HEADS, peft=Peft(tied_head="output_projection"))
def forward(w: Weights, ids: Array, c: TrOCR, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T], and the image's vectors [M I] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source, c.d_image)
    read = source if source.shape[0] else np.zeros((0, c.d_image), np.float32)
    table, stack = "model.decoder.embed_tokens.weight", w.at("model.decoder")
    x = embed(ids, w, table, c.vocab_size, c.d_model)
    x = x * c.d_model**0.5 if c.scale_embedding else x
    places = np.arange(x.shape[0], like=x) + cache.length
    if c.learned:
        rows = c.n_positions + RESERVED
        x = x + embed_positions(places + RESERVED, stack, "embed_positions.weight", rows, c.d_model)
    else:
        x = x + sinusoids(places + int(c.padding) + 1, c.d_model)
    x = layer_norm(x, stack, "layernorm_embedding", NORM_EPS) if c.norm_embedding else x
    for _, w_layer, kept in w.layers("model.decoder.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, kept, c, read)
    return unembed(x, w, table if c.tied else "output_projection.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: TrOCR, read: Array) -> Array:
    """One transformer block, with a norm after each part: [T D] -> [T D]."""
    y = causal_attention(x, w.at("self_attn"), c.n_heads, c.d_head, cache)
    x = layer_norm(x + y, w, "self_attn_layer_norm", NORM_EPS)
    y = cross_attention(x, w.at("encoder_attn"), c, cache, read)
    x = layer_norm(x + y, w, "encoder_attn_layer_norm", NORM_EPS)
    return layer_norm(x + feed_forward(x, w, c.d_ff, activation(c.activation)), w, "final_layer_norm", NORM_EPS)


@step(Role.CROSS_ATTENTION)
def cross_attention(x: Array, w: Weights, c: TrOCR, cache: KVCache, read: Array) -> Array:
    """Let each token gather information from the image: [T D], [M I] -> [T D]."""
    N, H = c.n_heads, c.d_head
    q = heads(linear(x, w, "q_proj", c.d_model, bias=True), N, H)
    k, v = (heads(linear(read, w, name, c.d_model, bias=True), N, H) for name in ("k_proj", "v_proj"))
    k, v = cache.fill(Holds.SOURCE_KEYS, k, c.n_source), cache.fill(Holds.SOURCE_VALUES, v, c.n_source)
    return linear(attend(q, k, v, None, H**-0.5), w, "out_proj", c.d_model, bias=True)
