"""Whisper's encoder as the audio tower of Audio Flamingo 3, which averages two vectors each.

A longer sound is cut into pieces of half a minute. Source: transformers 5.24, modeling_audioflamingo3.py (arXiv
2507.08128).
"""

from __future__ import annotations

import math

from ..architectures.config import Size, activation, config, derived, fixed, key
from ..interface import Array, KVCache, Weights
from . import Grid, tower
from .patches import two_maps
from .whisper import PIECE, WhisperEncoder, encode


@config
class AudioFlamingo3Encoder(WhisperEncoder):
    """Whisper's encoder and Audio Flamingo 3's projector."""

    longest: float = fixed(600)  # seconds: the processor's
    n_bands: Size = key("num_mel_bins", 128)
    d_model: Size = key("d_model", 1280, also=("hidden_size",))
    n_layers: Size = key("encoder_layers", 32, also=("num_hidden_layers",))
    n_encoder_heads: Size = key("encoder_attention_heads", 20, also=("num_attention_heads",))
    d_encoder_head: Size = derived(lambda c: c.d_model // c.n_encoder_heads)
    d_ff_encoder: Size = key("encoder_ffn_dim", 5120, also=("intermediate_size",))
    projector_activation: str = key("projector_hidden_act", "gelu")
    bias: bool = key("projector_bias", True)

    def check(self) -> None:
        super().check()
        activation(self.projector_activation)

    def moments(self, seconds: float) -> Grid:
        return Grid(2 * int(self.n_source), 1, math.ceil(min(seconds, self.longest) / PIECE))

    def sound_tokens(self, seconds: float, tokens: int) -> int:
        seconds = min(seconds, self.longest)
        whole = int(seconds // PIECE)
        return whole * super().sound_tokens(PIECE, tokens) + super().sound_tokens(seconds - whole * PIECE, tokens)


@tower("audioflamingo3.audio_config", config=AudioFlamingo3Encoder)
def forward(w: Weights, x: Array, grid: Grid, c: AudioFlamingo3Encoder, cache: KVCache) -> list[Array]:
    """The vectors of half a minute of sound for the text model: [2M B] -> [M/2 D]."""
    x = encode(x, w.at("model.audio_tower"), c, cache, pooled=True)
    act = activation(c.projector_activation)
    projector = w.at("model.multi_modal_projector")
    return [two_maps(x, projector, ("linear_1", "linear_2"), c.d_text, c.d_text, act, bias=c.bias)]
