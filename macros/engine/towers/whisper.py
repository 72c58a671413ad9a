"""Whisper's encoder as the audio tower of Qwen2-Audio and Voxtral, with a projector.

It always reads half a minute, silence included. Qwen2-Audio averages two vectors each, and puts those of the sound
itself into the text; Voxtral cuts a longer sound into pieces, joins four vectors each, and keeps them all. Source:
transformers 5.23, modeling_qwen2_audio.py and modeling_voxtral.py.
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.bart import NORM_EPS
from ..architectures.config import Positive, Size, activation, config, derived, fixed, key
from ..architectures.whisper import conv_stem, encoder_layer
from ..interface import Array, KVCache, Weights
from ..ops import embed_positions, layer_norm, linear
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .patches import two_maps

# The feature extractor's: frames a second, seconds of a piece.
FRAMES, PIECE = 100, 30


@config
class WhisperEncoder(TowerConfig):
    """Hyperparameters of Whisper's encoder, in forward order."""

    reads = "sound"

    # sound
    n_bands: Size = key("num_mel_bins")
    n_source: Size = key("max_source_positions", 1500)
    d_model: Size = key("d_model", also=("hidden_size",))
    taps: int = fixed(3)
    # layers
    n_layers: Size = key("encoder_layers", also=("num_hidden_layers",))
    n_encoder_heads: Size = key("encoder_attention_heads", also=("num_attention_heads",))
    d_encoder_head: Size = derived(lambda c: c.d_model // c.n_encoder_heads)
    d_ff_encoder: Size = key("encoder_ffn_dim", also=("intermediate_size",))
    activation: str = key("activation_function", "gelu")
    norm_eps: Positive = fixed(NORM_EPS)
    # projector
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"activation_dropout", "encoder_layerdrop", "layerdrop", "scale_embedding", "vocab_size"})

    def check(self) -> None:
        self.must_divide("n_encoder_heads", "d_model")
        activation(self.activation)

    def moments(self, seconds: float) -> Grid:
        return Grid(2 * int(self.n_source))

    def sound_tokens(self, seconds: float, tokens: int) -> int:
        frames = math.ceil(min(seconds, PIECE) * FRAMES)
        return max(((frames - 1) // 2 + 1 - 2) // 2 + 1, 0)

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(2 * self.n_source if grid.rows == 2 * int(self.n_source) else grid.rows, 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows, self.n_bands


@tower("qwen2_audio.audio_config", config=WhisperEncoder)
def forward(w: Weights, x: Array, grid: Grid, c: WhisperEncoder, cache: KVCache) -> list[Array]:
    """The vectors of half a minute of sound for the text model: [2M B] -> [M/2 D]."""
    x = encode(x, w.at("model.audio_tower"), c, cache, pooled=True)
    return [linear(x, w, "model.multi_modal_projector.linear", c.d_text, bias=True)]


def encode(x: Array, w: Weights, c: WhisperEncoder, cache: KVCache, *, pooled: bool) -> Array:
    """Whisper's vectors of a piece of sound, or the means of two each: [2M B] -> [M D], or [M/2 D]."""
    x = conv_stem(x, w, c)  # pyright: ignore[reportArgumentType] (the same sizes as Whisper's)
    places = np.arange(x.shape[0], like=x)
    x = x + embed_positions(places, w, "embed_positions.weight", c.n_source, c.d_model)
    for _, w_layer, _ in w.layers("layers", ["layer"] * c.n_layers, cache):
        x = encoder_layer(x, w_layer, c)  # pyright: ignore[reportArgumentType]
    if pooled:
        x = x.reshape(x.shape[0] // 2, 2, c.d_model).mean(axis=1)
    return layer_norm(x, w, "layer_norm", c.norm_eps)


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, wide: int, c: WhisperEncoder, act: str) -> Array:
    """One vector for the text from several of the encoder: [M D] -> [M/4 4D] -> [M/4 O]."""
    x = x.reshape(x.shape[0] * x.shape[1] // wide, wide)
    return two_maps(x, w, ("linear_1", "linear_2"), c.d_text, c.d_text, activation(act), bias=False)
