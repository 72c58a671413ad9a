"""The audio tower of Music Flamingo: Audio Flamingo 3's, with numbers that rotate with time.

A longer sound is cut into pieces of half a minute; of later ones, further numbers are turned by the piece's place.
Source: transformers 5.24, modeling_musicflamingo.py (arXiv 2511.10289).
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Raw, Size, activation, config, derived, fixed, key
from ..errors import Problem, shorten
from ..interface import Array, KVCache, Weights
from ..ops import apply_rope_pairs
from ..steps import Role, step
from . import Grid, theta_of, tower
from .audioflamingo3 import AudioFlamingo3Encoder
from .patches import two_maps
from .whisper import encode


@config
class MusicFlamingoEncoder(AudioFlamingo3Encoder):
    """Whisper's encoder and Music Flamingo's projector."""

    longest: float = fixed(1200)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    frame_step: Positive = key("audio_frame_step", 0.01)
    d_turned: Size = derived(lambda c: int(int(c.d_model) * c.share))

    checked = ("theta", "share")

    def check(self) -> None:
        super().check()
        if self.rope_parameters.get("rope_type", "default") != "default":
            raise Problem(f"rope_parameters.rope_type = {self.rope_parameters['rope_type']}", "give default")
        if int(self.d_turned) % 2 or 2 * int(self.d_turned) > int(self.d_model):
            raise Problem(
                f"rope_parameters.partial_rotary_factor rotates {int(self.d_turned)} numbers of {int(self.d_model)}",
                "rotate an even number of them, at most half",
            )

    @property
    def theta(self) -> float:
        """The base of the rotary embedding, and the number of moments that turn once."""
        return theta_of(self.rope_parameters, 1200.0)

    @property
    def share(self) -> float:
        """The share of the numbers that time turns."""
        share = self.rope_parameters.get("partial_rotary_factor", 0.2)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 0.5:
            raise Problem(
                f"rope_parameters.partial_rotary_factor = {shorten(share)}", "give a number above 0, at most 0.5"
            )
        return float(share)


@tower("musicflamingo.audio_config", config=MusicFlamingoEncoder)
def forward(w: Weights, x: Array, grid: Grid, c: MusicFlamingoEncoder, cache: KVCache) -> list[Array]:
    """The vectors of the first half minute of sound for the text: [2M B] -> [M/2 D]."""
    x = turned(encode(x, w.at("model.audio_tower"), c, cache, pooled=True), c)
    act = activation(c.projector_activation)
    projector = w.at("model.multi_modal_projector")
    return [two_maps(x, projector, ("linear_1", "linear_2"), c.d_text, c.d_text, act, bias=c.bias)]


@step(Role.ROPE_PAIRS)
def turned(x: Array, c: MusicFlamingoEncoder) -> Array:
    """Pairs of numbers turned by the square of a moment's place, those for the piece's place aside: [M D] -> [M D]."""
    W, half = c.d_turned, int(c.d_turned) // 2
    place = np.arange(x.shape[0], like=x)
    speeds = c.theta ** (np.arange(half, like=x) * (-2 / int(W)))
    seconds = place * (4 * c.frame_step)
    angles = (place / c.theta * (2 * math.pi))[:, None] * speeds[None, :] * (-2 * math.pi * seconds)[:, None]
    table = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    middle = apply_rope_pairs(x[:, W : 2 * W].reshape(x.shape[0], 1, W), table).reshape(x.shape[0], W)
    return np.concatenate([x[:, :W], middle, x[:, 2 * W :]], axis=-1)
