"""The audio tower of Qwen3-Omni: three convolutions make thirteen vectors a second, which are read in windows.

A convolution sees the frames of its own second, a layer the moments of its window. Keys have a bias here, unlike
Whisper's. Source: transformers 5.24, modeling_qwen3_omni_moe.py (arXiv 2509.17765).
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.bart import NORM_EPS, attention, feed_forward
from ..architectures.config import Size, activation, config, derived, key
from ..architectures.xglm import sinusoids
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import gelu, layer_norm, linear
from ..steps import Role, step
from ..trace import Trace
from . import Grid, tower
from .patches import two_maps
from .sounds import convolve_planes
from .whisper import FRAMES, WhisperEncoder


@config
class Qwen3OmniAudio(WhisperEncoder):
    """Hyperparameters of Qwen3-Omni's audio tower, in forward order."""

    n_bands: Size = key("num_mel_bins", 128)
    piece: Size = key("n_window", 50)
    n_channels: Size = key("downsample_hidden_size", 480)
    window: Size = key("n_window_infer", 800)
    d_text: Size = key("output_dim", 3584)
    n_left: Size = derived(lambda c: halved(c.n_bands, 3))

    ignored = WhisperEncoder.ignored | {"conv_chunksize"}

    def check(self) -> None:
        super().check()
        if int(self.d_model) % 2 or int(self.d_model) < 4:
            raise Problem(f"d_model = {int(self.d_model)}", "sines and cosines need an even number, 4 or more")
        if int(self.window) % (2 * int(self.piece)):
            raise Problem(f"n_window_infer = {int(self.window)}", "give a multiple of twice n_window")

    def moments(self, seconds: float) -> Grid:
        frames = max(math.ceil(seconds * FRAMES), 1)
        pieces = math.ceil(frames / (2 * int(self.piece)))
        whole = int(self.window) // (2 * int(self.piece))
        return Grid(2 * int(self.piece) * min(pieces, whole), 1, math.ceil(pieces / whole))

    def sound_tokens(self, seconds: float, tokens: int) -> int:
        frames, piece = math.ceil(seconds * FRAMES), 2 * int(self.piece)
        rest = frames % piece
        return frames // piece * halved(piece, 3) + (halved(rest, 3) if rest else 0)

    def declared(self, grid: Grid, run: Trace) -> Grid:
        pieces = grid.rows // (2 * int(self.piece))
        return Grid(2 * self.piece * pieces, 1, grid.count)


def halved(length: int, times: int) -> int:
    """The number of moments left after convolutions with stride 2."""
    for _ in range(times):
        length = (length + 1) // 2
    return length


@tower("qwen3_omni_moe_thinker.audio_config", config=Qwen3OmniAudio)
def forward(w: Weights, x: Array, grid: Grid, c: Qwen3OmniAudio, cache: KVCache) -> list[Array]:
    """The vectors of a window of sound for the text: [R B] -> [M D]."""
    tower = w.at("model.audio_tower")
    x = encode(x, tower, c, cache)
    return [two_maps(x, tower, ("proj1", "proj2"), c.d_model, c.d_text, activation(c.activation))]


def encode(x: Array, tower: Weights, c: Qwen3OmniAudio, cache: KVCache) -> Array:
    """The vectors of a window of sound before they are projected: [R B] -> [M D]."""
    x = stem(x, tower, c)
    for _, w_layer, _ in tower.layers("layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return layer_norm(x, tower, "ln_post", NORM_EPS)


@step(Role.CONV_STEM)
def stem(x: Array, w: Weights, c: Qwen3OmniAudio) -> Array:
    """The vectors of each piece, by three convolutions and a linear map: [R B] -> [M C·B/8] -> [M D]."""
    frames = 2 * c.piece
    pieces = x.shape[0] // frames
    x, before = x.reshape(pieces, frames, c.n_bands, 1).transpose(0, 2, 1, 3), 1
    for number in (1, 2, 3):
        kernel = w(f"conv2d{number}.weight", c.n_channels, before, 3, 3)
        x, before = gelu(convolve_planes(x, kernel, 2) + w(f"conv2d{number}.bias", c.n_channels)), c.n_channels
    bands, moments = x.shape[1], x.shape[2]
    x = x.transpose(0, 2, 3, 1).reshape(pieces * moments, c.n_channels * bands)
    x = linear(x, w, "conv_out", c.d_model)
    places = np.arange(x.shape[0], like=x)
    return x + sinusoids(places % int(moments), c.d_model)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Qwen3OmniAudio) -> Array:
    """One block of the encoder: [M D] -> [M D]."""
    y = layer_norm(x, w, "self_attn_layer_norm", NORM_EPS)
    x = x + attention(y, w.at("self_attn"), c.n_encoder_heads, c.d_encoder_head)
    y = layer_norm(x, w, "final_layer_norm", NORM_EPS)
    return x + feed_forward(y, w, c.d_ff_encoder, activation(c.activation))
