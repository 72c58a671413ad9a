"""mBART's decoder, attending to the vectors of an image: Donut's, Nougat's, PP-FormulaNet's.

The image's vectors are this model's input beside the text, as what an encoder read would be: `t5` explains the two
lengths. Sources: transformers 5.24, models/mbart and models/pp_formulanet (arXiv 2001.08210, 2111.15664, 2308.13418);
tensor names as transformers' decoder with its head (MBartForCausalLM).
"""

from __future__ import annotations

import numpy as np

from ..interface import Array, KVCache, Weights
from ..ops import embed, embed_positions, layer_norm, unembed
from ..steps import Role, step
from . import architecture
from .bart import NORM_EPS, causal_attention, cross_attention, feed_forward
from .config import Config, Size, activation, config, derived, fixed, key
from .tasks import NONE
from .tensor_layouts import BESIDE_ENCODER
from .trocr import RESERVED, TrOCR


@config
class MBartDecoder(Config):
    """Hyperparameters of mBART's decoder, in forward order.

    `n_source`: the vectors of an image, which the encoder's sizes say (`keys.image_vectors`); without them those of
    Donut's base model, of an image of 2560 × 1920 pixels.
    """

    # embedding
    vocab_size: Size = key("vocab_size")
    n_positions: Size = key("max_position_embeddings", 1024)
    n_source: Size = key("num_image_tokens", 4800)
    d_model: Size = key("d_model", also=("hidden_size",))
    scale_embedding: bool = key("scale_embedding", False)
    # layers
    n_layers: Size = key("decoder_layers")
    n_heads: Size = key("decoder_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("decoder_ffn_dim")
    activation: str = key("activation_function", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    caveat = TrOCR.caveat
    ignored = frozenset(
        """activation_dropout add_final_layer_norm classifier_dropout decoder_layerdrop encoder_attention_heads
        encoder_ffn_dim encoder_layerdrop encoder_layers forced_bos_token_id forced_eos_token_id init_std
        num_attention_heads num_hidden_layers""".split()
    )

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)

    @property
    def source_shape(self) -> tuple[int, int] | None:
        return self.n_source, self.d_model


@config
class PPFormulaNet(MBartDecoder):
    """Hyperparameters of PP-FormulaNet's text model, in forward order; without its image's size, of 768 pixels."""

    n_positions: Size = key("max_position_embeddings", 2560)
    n_source: Size = key("num_image_tokens", 144)
    scale_embedding: bool = key("scale_embedding", True)
    tied: bool = fixed(False)

    ignored = MBartDecoder.ignored | {"tie_word_embeddings"}


@architecture("mbart_decoder", config=MBartDecoder, spellings=BESIDE_ENCODER, heads=NONE)
@architecture("pp_formulanet_text", config=PPFormulaNet, heads=NONE)
def forward(w: Weights, ids: Array, c: MBartDecoder, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T], and the image's vectors [M D] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source, c.d_model)
    read = source if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    table, stack = "model.decoder.embed_tokens.weight", w.at("model.decoder")
    x = embed(ids, w, table, c.vocab_size, c.d_model)
    x = x * c.d_model**0.5 if c.scale_embedding else x
    places = np.arange(x.shape[0], like=x) + (cache.length + RESERVED)
    x = x + embed_positions(places, stack, "embed_positions.weight", c.n_positions + RESERVED, c.d_model)
    x = layer_norm(x, stack, "layernorm_embedding", NORM_EPS)
    for _, w_layer, kept in w.layers("model.decoder.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, kept, c, read)
    x = layer_norm(x, stack, "layer_norm", NORM_EPS)
    return unembed(x, w, table if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: MBartDecoder, read: Array) -> Array:
    """One transformer block, with a norm before each part: [T D] -> [T D]."""
    N, H = c.n_heads, c.d_head
    y = layer_norm(x, w, "self_attn_layer_norm", NORM_EPS)
    x = x + causal_attention(y, w.at("self_attn"), N, H, cache)
    y = layer_norm(x, w, "encoder_attn_layer_norm", NORM_EPS)
    x = x + cross_attention(y, w.at("encoder_attn"), N, H, cache, read, c.n_source)
    return x + feed_forward(layer_norm(x, w, "final_layer_norm", NORM_EPS), w, c.d_ff, activation(c.activation))
