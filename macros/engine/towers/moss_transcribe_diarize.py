"""Whisper's encoder as the audio tower of MOSS-Transcribe-Diarize, which joins several of its vectors for each token.

A longer sound is cut into pieces of half a minute. Source: transformers 5.24, modeling_moss_transcribe_diarize.py.
"""

from __future__ import annotations

import math

from ..architectures.config import Positive, Size, activation, config, derived, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import layer_norm
from . import OF_TEXT, Grid, tower
from .patches import two_maps
from .whisper import FRAMES, PIECE, WhisperEncoder, encode


@config
class MossEncoder(WhisperEncoder):
    """Whisper's encoder and MOSS-Transcribe-Diarize's projector."""

    n_bands: Size = key("num_mel_bins", 80)
    d_model: Size = key("d_model", 1024, also=("hidden_size",))
    n_layers: Size = key("encoder_layers", 24, also=("num_hidden_layers",))
    n_encoder_heads: Size = key("encoder_attention_heads", 16, also=("num_attention_heads",))
    d_encoder_head: Size = derived(lambda c: c.d_model // c.n_encoder_heads)
    d_ff_encoder: Size = key("encoder_ffn_dim", 4096, also=("intermediate_size",))
    joined: Size = key("audio_merge_size", 4)
    projector_activation: str = key("projector_hidden_act", "silu")
    bias: bool = key("projector_bias", True)
    text_eps: Positive = key(OF_TEXT + "rms_norm_eps", 1e-6)

    ignored = WhisperEncoder.ignored | {"audio_chunk_size"}

    def check(self) -> None:
        super().check()
        activation(self.projector_activation)
        if int(self.n_source) % int(self.joined):
            raise Problem(f"audio_merge_size = {int(self.joined)}", "it must divide max_source_positions")

    def moments(self, seconds: float) -> Grid:
        return Grid(2 * int(self.n_source), 1, math.ceil(seconds / PIECE))

    def sound_tokens(self, seconds: float, tokens: int) -> int:
        whole = int(seconds // PIECE)
        pieces = [PIECE] * whole + ([seconds - whole * PIECE] if seconds > whole * PIECE else [])
        vectors = [(math.ceil(piece * FRAMES) - 1) // 2 + 1 for piece in pieces]
        return sum(math.ceil(number / int(self.joined)) for number in vectors)


@tower("moss_transcribe_diarize.audio_config", config=MossEncoder)
def forward(w: Weights, x: Array, grid: Grid, c: MossEncoder, cache: KVCache) -> list[Array]:
    """The vectors of half a minute of sound for the text model: [2M B] -> [M/4 D]."""
    x = encode(x, w.at("model.audio_tower"), c, cache, pooled=False)
    x = x.reshape(x.shape[0] // c.joined, c.joined * c.d_model)
    names, act = ("linear_1", "linear_2"), activation(c.projector_activation)
    projector = w.at("model.multi_modal_projector")
    x = two_maps(x, projector, names, c.d_text, c.d_text, act, bias=c.bias)
    return [layer_norm(x, projector, "norm", c.text_eps)]
