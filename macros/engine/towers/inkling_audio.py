"""The audio tower of Inkling: for each band of a spectrogram a vector by how loud it is, added up over the bands.

No moment sees another. Source: transformers 5.24, modeling_inkling.py, processing_inkling.py and
feature_extraction_inkling.py.
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Size, config, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import rms_norm
from ..steps import Keeps, Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower

# The processor's: moments a second, and the loudness, as a power of ten, that is rounded to so many steps.
MOMENTS, QUIETEST, LOUDEST, STEPS = 20, -7.0, 2.0, 16


@config
class InklingAudio(TowerConfig):
    """Hyperparameters of Inkling's audio tower, in forward order."""

    reads = "sound"

    n_bands: Size = key("n_mel_bins", 80)
    n_steps: Size = key("mel_vocab_size", 256)
    norm_eps: Positive = fixed(1e-6)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"rms_norm_eps", "text_hidden_size"})

    def check(self) -> None:
        if int(self.n_steps) < STEPS:
            raise Problem(f"mel_vocab_size = {int(self.n_steps)}", f"give {STEPS}, the number of steps of loudness")

    def moments(self, seconds: float) -> Grid:
        return Grid(max(math.ceil(seconds * MOMENTS), 1))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(run.declare("n_moments", grid.rows), 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows, self.n_bands


@tower("inkling_mm_model.audio_config", config=InklingAudio)
def forward(w: Weights, x: Array, grid: Grid, c: InklingAudio, cache: KVCache) -> list[Array]:
    """The vectors of a sound for the text, from logarithms of its loudness: [R B] -> [R D]."""
    tower = w.at("model.audio_tower")
    return [rms_norm(added(x, tower, c), tower, "norm", c.norm_eps)]


@step(Role.EMBED, keeps=Keeps.NOTHING)
def added(x: Array, w: Weights, c: InklingAudio) -> Array:
    """The sum of a vector for each band, by its loudness: [R B], [B V D] -> [R D]."""
    at = np.floor((x - QUIETEST) / (LOUDEST - QUIETEST) * (STEPS - 1) + 0.5)
    places = np.clip(at, 0, STEPS - 1).astype(np.int64) + np.arange(x.shape[1], like=x) * c.n_steps
    table = w("embed_audio_tokens.embed_audio_tokens.weight", c.n_bands * c.n_steps, c.d_text)
    return np.take(table, places.astype(np.int64), axis=0).sum(axis=1)
