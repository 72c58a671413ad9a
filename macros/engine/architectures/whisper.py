"""Whisper: an encoder reads a piece of sound, a decoder generates the words, and looks at the encoder's output.

The sound comes as a spectrogram: for each hundredth of a second the loudness of some bands. Two convolutions make half
as many vectors of it, which the encoder reads like tokens. It always reads the same length, silence included, so that
`n_source` is a fact and no choice; `t5` explains the two lengths. Norms come before the parts, and keys have no bias.
Source: arXiv 2212.04356; tensor names as transformers.
"""

from __future__ import annotations

import numpy as np

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import convolve, embed, embed_positions, gelu, layer_norm, positions, unembed
from ..steps import Role, step
from . import architecture
from .bart import NORM_EPS, attention, causal_attention, cross_attention, feed_forward
from .config import Config, Size, activation, config, derived, fixed, key
from .tasks import BASE, OWN


@config
class Whisper(Config):
    """Hyperparameters of Whisper, in forward order."""

    # sound
    n_bands: Size = key("num_mel_bins")
    n_source: Size = key("max_source_positions", 1500)
    d_model: Size = key("d_model", also=("hidden_size",))
    taps: int = fixed(3)
    # encoder
    n_encoder_layers: Size = key("encoder_layers", also=("num_hidden_layers",))
    n_encoder_heads: Size = key("encoder_attention_heads", also=("num_attention_heads",))
    d_encoder_head: Size = derived(lambda c: c.d_model // c.n_encoder_heads)
    d_ff_encoder: Size = key("encoder_ffn_dim")
    # text
    vocab_size: Size = key("vocab_size")
    n_positions: Size = key("max_target_positions", 448)
    # decoder
    n_decoder_layers: Size = key("decoder_layers")
    n_heads: Size = key("decoder_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("decoder_ffn_dim")
    activation: str = key("activation_function", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    source_kind = "a spectrogram"
    caveat = (
        "An encoder reads sound, and a decoder generates text. The context is the decoder’s. "
        "The encoder reads half a minute in the first step, silence included."
    )
    ignored = frozenset(
        """activation_dropout apply_spec_augment begin_suppress_tokens classifier_proj_size decoder_layerdrop
        encoder_layerdrop forced_decoder_ids init_std mask_feature_length mask_feature_min_masks mask_feature_prob
        mask_time_length mask_time_min_masks mask_time_prob median_filter_width num_key_value_heads scale_embedding
        suppress_tokens use_weighted_layer_sum""".split()
    )

    @property
    def source_shape(self) -> tuple[int, int] | None:
        return 2 * self.n_source, self.n_bands

    def check(self) -> None:
        self.must_divide("n_encoder_heads", "d_model")
        self.must_divide("n_heads", "d_model")
        activation(self.activation)


HEADS = {"ForConditionalGeneration": OWN, "Model": BASE}


@architecture("whisper", config=Whisper, heads=HEADS, peft=Peft(tied_head="proj_out"))
def forward(w: Weights, ids: Array, c: Whisper, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [2M B] -> [T V], or [1 V] with `last`."""
    source = cache.source(2 * c.n_source, c.n_bands)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    text = w.at("model.decoder")
    x = embed(ids, text, "embed_tokens.weight", c.vocab_size, c.d_model)
    x = x + embed_positions(positions(ids, cache), text, "embed_positions.weight", c.n_positions, c.d_model)
    for _, w_layer, kept in text.layers("layers", ["layer"] * c.n_decoder_layers, cache, "decoder", c.n_encoder_layers):
        x = decoder_layer(x, w_layer, c, kept, read)
    x = layer_norm(x, text, "layer_norm", NORM_EPS)
    head, table = (text, "embed_tokens.weight") if c.tied else (w, "proj_out.weight")
    return unembed(x, head, table, c.vocab_size, last=last)


def encode(source: Array, w: Weights, c: Whisper, cache: KVCache) -> Array:
    """The encoder's output for a sound, each vector in the context of all: [2M B] -> [M D]."""
    sound = w.at("model.encoder")
    x = conv_stem(source, sound, c)
    places = np.arange(x.shape[0], like=x)
    x = x + embed_positions(places, sound, "embed_positions.weight", c.n_source, c.d_model)
    for _, w_layer, _ in sound.layers("layers", ["layer"] * c.n_encoder_layers, cache, "encoder"):
        x = encoder_layer(x, w_layer, c)
    return layer_norm(x, sound, "layer_norm", NORM_EPS)


@step(Role.CONV_STEM)
def conv_stem(x: Array, w: Weights, c: Whisper) -> Array:
    """A vector for each two moments of sound, by two convolutions: [2M B] -> [2M D] -> [M D]."""
    kernel, bias = w("conv1.weight", c.d_model, c.n_bands, c.taps), w("conv1.bias", c.d_model)
    x = gelu(convolve(x, kernel, bias, 1))
    kernel, bias = w("conv2.weight", c.d_model, c.d_model, c.taps), w("conv2.bias", c.d_model)
    return gelu(convolve(x, kernel, bias, 2))


@step(Role.LAYER)
def encoder_layer(x: Array, w: Weights, c: Whisper) -> Array:
    """One block of the encoder: [M D] -> [M D]."""
    y = layer_norm(x, w, "self_attn_layer_norm", NORM_EPS)
    x = x + attention(y, w.at("self_attn"), c.n_encoder_heads, c.d_encoder_head, False)
    y = layer_norm(x, w, "final_layer_norm", NORM_EPS)
    return x + feed_forward(y, w, c.d_ff_encoder, activation(c.activation))


@step(Role.LAYER)
def decoder_layer(x: Array, w: Weights, c: Whisper, cache: KVCache, read: Array) -> Array:
    """One block of the decoder: [T D] -> [T D]."""
    y = layer_norm(x, w, "self_attn_layer_norm", NORM_EPS)
    x = x + causal_attention(y, w.at("self_attn"), c.n_heads, c.d_head, cache, False)
    y = layer_norm(x, w, "encoder_attn_layer_norm", NORM_EPS)
    x = x + cross_attention(y, w.at("encoder_attn"), c.n_heads, c.d_head, cache, read, c.n_source, False)
    return x + feed_forward(layer_norm(x, w, "final_layer_norm", NORM_EPS), w, c.d_ff, activation(c.activation))
