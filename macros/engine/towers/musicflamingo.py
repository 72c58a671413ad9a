"""The audio tower of Music Flamingo: Audio Flamingo 3's, whose vectors are turned by the time at which they sound.

A part of each vector turns: its first half by the piece of half a minute, here the first one, its second half by the
time within the piece. Source: transformers 5.23, modeling_musicflamingo.py.
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Raw, activation, config, key
from ..errors import Problem, shorten
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import apply_rope_pairs
from ..steps import Role, step
from . import Grid, theta_of
from .audioflamingo3 import AudioFlamingo3Encoder
from .patches import two_maps
from .whisper import encode

JOINED = 4  # frames of which a vector is made


@config
class MusicFlamingoEncoder(AudioFlamingo3Encoder):
    """Whisper's encoder and Music Flamingo's rotary embedding and projector."""

    longest = 1200

    share: Positive = key("partial_rotary_factor", 0.2)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    frame_step: Positive = key("audio_frame_step", 0.01)

    checked = ("theta",)

    def check(self) -> None:
        super().check()
        kind, width = self.rope_parameters.get("rope_type", "default"), self.turning
        if kind != "default" or not 0 < 2 * width <= self.d_model or width % 2:
            raise Problem(
                f"rope_parameters = {shorten(self.rope_parameters)}",
                "give the default type and a share that turns pairs of up to half of each vector, twice",
            )

    @property
    def theta(self) -> float:
        """The base of the rotary embedding, which is also the number of places."""
        return theta_of(self.rope_parameters, 1200.0)

    @property
    def turning(self) -> int:
        """How many numbers turn by the time, and how many by the piece."""
        share = self.rope_parameters.get("partial_rotary_factor", self.share)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
            raise Problem(f"partial_rotary_factor = {shorten(share)}", "give a share")
        return int(int(self.d_model) * share)


CONFIG = MusicFlamingoEncoder


def forward(w: Weights, x: Array, grid: Grid, c: MusicFlamingoEncoder, cache: KVCache) -> list[Array]:
    """The vectors of half a minute of sound for the text: [2M B] -> [M/2 D]."""
    x = encode(x, w.at("model.audio_tower"), c, cache, pooled=True)
    x = apply_rope_pairs(x[:, None, :], times(x, c)).reshape(*x.shape)
    act = activation(c.projector_activation)
    projector = w.at("model.multi_modal_projector")
    return [two_maps(x, projector, ("linear_1", "linear_2"), c.d_text, c.d_text, act, bias=c.bias)]


@step(Role.ROPE_TABLE)
def times(x: Array, c: MusicFlamingoEncoder) -> RopeTable:
    """Cosines and sines of the time at which each vector sounds, in the first piece: [M] -> [M W], [M W]."""
    half = c.turning // 2
    place = np.arange(x.shape[0], like=x)
    speeds = c.theta ** (np.arange(half, like=x) * (-2 / c.turning))
    angles = (place * (2 * math.pi / c.theta))[:, None] * speeds[None, :]
    angles = angles * (place * (-2 * math.pi * JOINED * c.frame_step))[:, None]
    angles = np.concatenate([angles * 0, angles], axis=-1)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
