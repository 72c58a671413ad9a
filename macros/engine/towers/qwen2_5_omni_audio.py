"""The audio tower of Qwen2.5-Omni: Whisper's encoder, for pieces of two seconds, whose vectors are averaged in pairs.

A moment sees those of its own piece. Two trained vectors are stored for the beginning and the end of a sound, and
nothing reads them. Source: transformers 5.24, modeling_qwen2_5_omni.py (arXiv 2503.20215).
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Size, config, fixed, key
from ..architectures.whisper import conv_stem, encoder_layer
from ..architectures.xglm import sinusoids
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import layer_norm, linear
from ..trace import Trace
from . import Grid, tower
from .whisper import FRAMES, WhisperEncoder


@config
class Qwen25OmniAudio(WhisperEncoder):
    """Whisper's encoder and Qwen2.5-Omni's projection."""

    n_bands: Size = key("num_mel_bins", 128)
    window: Size = key("n_window", 100)
    d_text: Size = key("output_dim", 3584)
    norm_eps: Positive = fixed(1e-5)

    def check(self) -> None:
        super().check()
        if int(self.d_model) % 2 or int(self.d_model) < 4:
            raise Problem(f"d_model = {int(self.d_model)}", "sines and cosines need an even number, 4 or more")
        if int(self.window) % 2:
            raise Problem(f"n_window = {int(self.window)}", "vectors are averaged in pairs: give an even number")

    @property
    def piece(self) -> int:
        """The frames of a piece."""
        return 2 * int(self.window)

    def moments(self, seconds: float) -> Grid:
        frames = math.ceil(seconds * FRAMES)
        return Grid(self.piece, 1, max(math.ceil(frames / self.piece), 1))

    def sound_tokens(self, seconds: float, tokens: int) -> int:
        frames = math.ceil(seconds * FRAMES)
        return max(((frames - 1) // 2 + 1 - 2) // 2 + 1, 0)

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(2 * self.window if grid.rows == self.piece else grid.rows, 1, grid.count)


@tower("qwen2_5_omni_thinker.audio_config", config=Qwen25OmniAudio)
def forward(w: Weights, x: Array, grid: Grid, c: Qwen25OmniAudio, cache: KVCache) -> list[Array]:
    """The vectors of a piece of sound for the text: [2M B] -> [M/2 D]."""
    tower = w.at("model.audio_tower")
    tower("audio_bos_eos_token.weight", 2, c.d_text)
    x = conv_stem(x, tower, c)  # pyright: ignore[reportArgumentType] (the same sizes as Whisper's)
    x = x + sinusoids(np.arange(x.shape[0], like=x), c.d_model)
    for _, w_layer, _ in tower.layers("layers", ["layer"] * c.n_layers, cache):
        x = encoder_layer(x, w_layer, c)  # pyright: ignore[reportArgumentType]
    x = x.reshape(x.shape[0] // 2, 2, c.d_model).mean(axis=1)
    return [linear(layer_norm(x, tower, "ln_post", c.norm_eps), tower, "proj", c.d_text, bias=True)]
