"""The audio tower of Nemotron 3 Omni: Parakeet's conformer, over moments of eight frames, projected.

A score has a part by the distance of two moments. Source: transformers 5.24, modeling_parakeet.py,
feature_extraction_parakeet.py and modeling_nemotron_h_omni.py (arXiv 2305.05084).
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Size, Taps, activation, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import attend, heads, layer_norm, linear, relu, relu_squared, rms_norm, sigmoid
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .patches import two_maps
from .sounds import batch_norm, convolve_each, convolve_plane, convolve_plane_each

SAMPLING, HOP = 16_000, 160  # samples of a second and of a frame: the feature extractor's


@config
class ParakeetAudio(TowerConfig):
    """Hyperparameters of Parakeet's encoder and the projector of Nemotron 3 Omni, in forward order."""

    reads = "sound"

    # sound
    n_bands: Size = key("num_mel_bins", 80)
    n_channels: Size = key("subsampling_conv_channels", 256)
    stem_taps: Taps = key("subsampling_conv_kernel_size", 3)
    stride: Size = key("subsampling_conv_stride", 2)
    reduction: Size = key("subsampling_factor", 8)
    is_scaled: bool = key("scale_input", False)
    d_model: Size = key("hidden_size", 1024)
    # layers
    n_layers: Size = key("num_hidden_layers", 24)
    norm_eps: Positive = fixed(1e-5)
    d_ff: Size = key("intermediate_size", 4096)
    activation: str = key("hidden_act", "silu")
    n_heads: Size = key("num_attention_heads", 8)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    bias: bool = key("attention_bias", False)
    taps: Taps = key("conv_kernel_size", 9)
    conv_bias: bool = key("convolution_bias", True)
    # projector
    projector_eps: Positive = fixed(1e-5)
    d_projector: Size = key("projection_hidden_size")
    projector_bias: bool = key("projection_bias", False)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"dropout_positions", "layerdrop", "activation_dropout", "num_key_value_heads"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)
        if int(self.d_model) % 2:
            raise Problem(f"hidden_size = {int(self.d_model)}", "sines and cosines need an even number")
        for name in ("stem_taps", "taps"):
            if int(getattr(self, name)) % 2 == 0:
                raise Problem(f"{self.key_of(name)} = {int(getattr(self, name))}", "give an odd number")
        if int(self.reduction) < 2:
            raise Problem(f"subsampling_factor = {int(self.reduction)}", "give at least 2")
        if int(self.n_bands) % int(self.stride) ** self.n_reductions:
            raise Problem(f"num_mel_bins = {int(self.n_bands)}", "the first convolutions leave whole bands of them")

    @property
    def n_reductions(self) -> int:
        """The number of strided convolutions."""
        return int(self.reduction).bit_length() - 1

    def moments(self, seconds: float) -> Grid:
        return Grid(1 + int(seconds * SAMPLING) // HOP)

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(run.declare("n_moments", grid.rows), 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows, self.n_bands


@tower("nemotron_h_omni.audio_config", "nemotron_h_omni.sound_config", config=ParakeetAudio)
def forward(w: Weights, x: Array, grid: Grid, c: ParakeetAudio, cache: KVCache) -> list[Array]:
    """The vectors of a sound for the text: [R B] -> [R/8 D]."""
    tower = w.at("audio_tower")
    x = subsample(x, tower.at("subsampling"), c)
    distances = distance_vectors(x, c)
    for _, w_layer, _ in tower.layers("layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, distances)
    return [project(x, w.at("embed_audio"), c)]


@step(Role.CONV_STEM)
def subsample(x: Array, w: Weights, c: ParakeetAudio) -> Array:
    """A vector for each eight frames, by convolutions; the later ones first mix each channel by itself: [R B] -> [R/8
    B/8 C] -> [R/8 D]."""
    C, K, s = c.n_channels, c.stem_taps, int(c.stride)
    x = relu(convolve_plane(x[:, :, None], w("layers.0.weight", C, 1, K, K), s) + w("layers.0.bias", C))
    for number in range(2, 3 * c.n_reductions - 1, 3):
        x = convolve_plane_each(x, w(f"layers.{number}.weight", C, 1, K, K), s) + w(f"layers.{number}.bias", C)
        kernel = w(f"layers.{number + 1}.weight", C, C, 1, 1).reshape(C, C)
        x = relu(np.einsum("rbi,oi->rbo", x, kernel, optimize=True) + w(f"layers.{number + 1}.bias", C))
    x = x.swapaxes(1, 2)
    x = linear(x.reshape(x.shape[0], x.shape[1] * x.shape[2]), w, "linear", c.d_model, bias=True)
    return x * int(c.d_model) ** 0.5 if c.is_scaled else x


@step(Role.SINUSOIDS)
def distance_vectors(x: Array, c: ParakeetAudio) -> Array:
    """Sines and cosines in turns for each distance between two moments, the longest first: [T D] -> [2T - 1 D]."""
    T, half = x.shape[0], c.d_model // 2
    distance = T - 1 - np.arange(2 * T - 1, like=x)
    speeds = 10000.0 ** (np.arange(half, like=x) * (-2 / int(c.d_model)))
    angles = distance[:, None] * speeds[None, :]
    both = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return both.reshape(2 * T - 1, c.d_model).astype(np.float32)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: ParakeetAudio, distances: Array) -> Array:
    """One block of the conformer: [T D] -> [T D]."""
    act, names = activation(c.activation), ("linear1", "linear2")
    y = layer_norm(x, w, "norm_feed_forward1", c.norm_eps)
    x = x + 0.5 * two_maps(y, w.at("feed_forward1"), names, c.d_ff, c.d_model, act, bias=c.bias)
    x = x + attention(layer_norm(x, w, "norm_self_att", c.norm_eps), w.at("self_attn"), c, distances)
    x = x + convolution(layer_norm(x, w, "norm_conv", c.norm_eps), w.at("conv"), c)
    y = layer_norm(x, w, "norm_feed_forward2", c.norm_eps)
    x = x + 0.5 * two_maps(y, w.at("feed_forward2"), names, c.d_ff, c.d_model, act, bias=c.bias)
    return layer_norm(x, w, "norm_out", c.norm_eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: ParakeetAudio, distances: Array) -> Array:
    """Let each moment gather information from all moments, also by their distance: [T D] -> [T D]."""
    N, H, scale = c.n_heads, c.d_head, c.d_head**-0.5
    q, k, v = (heads(linear(x, w, name, c.d_model, bias=c.bias), N, H) for name in ("q_proj", "k_proj", "v_proj"))
    far = heads(linear(distances, w, "relative_k_proj", c.d_model), N, H)
    by_distance = distance_scores(q + w("bias_v", N, H), far) * scale
    mixed = attend(q + w("bias_u", N, H), k, v, None, scale, by_distance)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.bias)


@step(Role.RELATIVE_LOGITS)
def distance_scores(q: Array, far: Array) -> Array:
    """Each head's addition to a score by the distance of two moments: [T N H], [2T - 1 N H] -> [N T T]."""
    T = q.shape[0]
    scores = np.einsum("tnh,anh->tna", q, far, optimize=True)
    place = np.arange(T, like=q)
    at = T - 1 - place[:, None] + place[None, :]
    return np.take_along_axis(scores, at[:, None, :], axis=2).swapaxes(0, 1)


@step(Role.SHORT_CONVOLUTION)
def convolution(x: Array, w: Weights, c: ParakeetAudio) -> Array:
    """Convolve each channel over neighboring frames, with a gate, then mix the channels: [T D] -> [T 2D] -> [T D]."""
    D = c.d_model
    wide, gate = np.split(pointwise(x, w, "pointwise_conv1", 2 * D, c.conv_bias), 2, axis=-1)
    x = convolve_each(wide * sigmoid(gate), w("depthwise_conv.weight", D, 1, c.taps), int(c.taps) // 2)
    x = batch_norm(x + w("depthwise_conv.bias", D) if c.conv_bias else x, w.at("norm"), c.norm_eps)
    return pointwise(activation(c.activation)(x), w, "pointwise_conv2", D, c.conv_bias)


def pointwise(x: Array, w: Weights, name: str, width: int, bias: bool) -> Array:
    """A linear map of each moment, stored as a convolution: [T I] -> [T O]."""
    kernel = w(f"{name}.weight", width, x.shape[1], 1).reshape(width, x.shape[1])
    y = np.einsum("ti,oi->to", x, kernel, optimize=True)
    return y + w(f"{name}.bias", width) if bias else y


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, c: ParakeetAudio) -> Array:
    """Vectors normalized and mapped twice: [T D] -> [T F] -> [T O]."""
    x = rms_norm(x, w, "layer_norm", c.projector_eps)
    names = "linear_1", "linear_2"
    return two_maps(x, w, names, c.d_projector, c.d_text, relu_squared, bias=c.projector_bias)
