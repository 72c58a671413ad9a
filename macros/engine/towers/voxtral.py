"""Whisper's encoder as the audio tower of Voxtral, which joins several of its vectors for each of the text's."""

from __future__ import annotations

import math

from ..architectures.config import config, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from . import Grid, tower
from .whisper import PIECE, WhisperEncoder, encode, project


@config
class VoxtralEncoder(WhisperEncoder):
    """Whisper's encoder and Voxtral's projector."""

    projector_activation: str = key("projector_hidden_act", "gelu")

    ignored = WhisperEncoder.ignored | {"head_dim", "num_key_value_heads"}  # published, and read by no library

    def check(self) -> None:
        super().check()
        if int(self.n_source) * int(self.d_model) % int(self.d_ff_encoder):
            raise Problem(
                f"intermediate_size = {int(self.d_ff_encoder)}", "the projector reads as many numbers of whole vectors"
            )

    def moments(self, seconds: float) -> Grid:
        return Grid(2 * int(self.n_source), 1, math.ceil(seconds / PIECE))

    def sound_tokens(self, seconds: float, tokens: int) -> int:
        return tokens


@tower("voxtral.audio_config", config=VoxtralEncoder)
def forward(w: Weights, x: Array, grid: Grid, c: VoxtralEncoder, cache: KVCache) -> list[Array]:
    """The vectors of half a minute of sound for the text model: [2M B] -> [M/4 D]."""
    x = encode(x, w.at("model.audio_tower"), c, cache, pooled=False)
    return [project(x, w.at("model.multi_modal_projector"), c.d_ff_encoder, c, c.projector_activation)]
