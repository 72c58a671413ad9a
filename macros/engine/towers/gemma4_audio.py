"""The audio tower of Gemma 4: a conformer, whose attention reaches back a little from each moment.

Two convolutions make a vector of four frames of a spectrogram, 40 milliseconds. A layer has two feed-forward networks,
attention with relative positions, and a convolution over the moments before. Source: transformers 5.24,
modeling_gemma4.py (Universal Speech Model, arXiv 2303.01037).
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Size, Taps, activation, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import heads, layer_norm, linear, relu, rms_norm, sigmoid, soft_cap, softmax, softplus, unit_norm
from ..steps import Role, Ruling, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .gemma4_vision import clipped_linear
from .sounds import convolve_each, convolve_plane

# The feature extractor's: samples a second, in a frame and from one to the next; the longest sound in seconds.
SAMPLING, FRAME, HOP, LONGEST = 16000, 320, 160, 30


@config
class Gemma4Audio(TowerConfig):
    """Hyperparameters of Gemma 4's audio tower, in forward order."""

    reads = "sound"

    # spectrogram
    channels: list[int] = key("subsampling_conv_channels", lambda c: [128, 32])
    n_bands: Size = derived(lambda c: c.channels[0] if c.channels else 0)  # as many as the first convolution's channels
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    inner_eps: Positive = fixed(1e-6)
    residual: Positive = key("residual_weight", 0.5)
    activation: str = key("hidden_act", "silu")
    clipped: bool = key("use_clipped_linears", True)
    # attention
    n_heads: Size = key("num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    chunk: Size = key("attention_chunk_size", 12)
    left: Size = key("attention_context_left", 13)
    cap: Positive = key("attention_logit_cap", 50.0)
    # convolution
    taps: Taps = key("conv_kernel_size", 5)
    # projector
    d_out: Size = key("output_proj_dims", 1536)
    d_text: Size = key(TEXT_WIDTH)

    right: int = key("attention_context_right", 0)
    ignored = frozenset({"attention_invalid_logits_value", "gradient_clipping"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)
        if len(self.channels) != 2 or min(self.channels) < 1 or self.channels[0] % 4:
            raise Problem(f"subsampling_conv_channels = {self.channels}", "give two, the first divisible by 4")
        if int(self.d_model) % 2:
            raise Problem(f"hidden_size = {int(self.d_model)}", "sines and cosines need an even number")
        if self.right != 0:
            raise Problem(f"attention_context_right = {self.right}", "only moments before are seen: give 0")

    @property
    def positions(self) -> int:
        """The distances that have a vector, from the longest to 0."""
        return (int(self.chunk) + int(self.left) - 1) // 2 + 1

    def moments(self, seconds: float) -> Grid:
        samples = int(min(seconds, LONGEST) * SAMPLING)
        return Grid(max((samples + FRAME // 2 - FRAME - 1) // HOP + 1, 1))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(run.declare("n_moments", grid.rows), 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows, self.n_bands


@tower("gemma4.audio_config", config=Gemma4Audio)
def forward(w: Weights, x: Array, grid: Grid, c: Gemma4Audio, cache: KVCache) -> list[Array]:
    """The vectors of a sound for the text: [R B] -> [R/4 D]."""
    tower = w.at("model.audio_tower")
    x = subsample(x, tower.at("subsample_conv_projection"), c)
    distances = distance_vectors(x, c.positions, c.d_model)
    for _, w_layer, _ in tower.layers("layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, distances)
    x = linear(x, tower, "output_proj", c.d_out, bias=True)
    return [linear(unit_norm(x, c.norm_eps), w, "model.embed_audio.embedding_projection", c.d_text)]


@step(Role.CONV_STEM)
def subsample(x: Array, w: Weights, c: Gemma4Audio) -> Array:
    """A vector for each four frames, by two convolutions: [R B] -> [R/4 B/4 C] -> [R/4 D]."""
    x, before = x[:, :, None], 1
    for number, channels in enumerate(c.channels):
        x = convolve_plane(x, w(f"layer{number}.conv.weight", channels, before, 3, 3), 2)
        x, before = relu(layer_norm(x, w, f"layer{number}.norm", c.norm_eps, bias=False)), channels
    return linear(x.reshape(x.shape[0], x.shape[1] * x.shape[2]), w, "input_proj_linear", c.d_model)


@step(Role.SINUSOIDS)
def distance_vectors(x: Array, count: int, width: int) -> Array:
    """Sines and cosines for each distance between two moments, the longest first: [A D]."""
    half = int(width) // 2
    distance = count - 1 - np.arange(count, like=x)
    speeds = np.exp(np.arange(half, like=x) * (-math.log(10000.0) / max(half - 1, 1)))
    angles = distance[:, None] * speeds[None, :]
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1).astype(np.float32)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Gemma4Audio, distances: Array) -> Array:
    """One block of the conformer: [T D] -> [T D]."""
    x = feed_forward(x, w.at("feed_forward1"), c)
    y = attention(rms_norm(x, w, "norm_pre_attn", c.inner_eps), w.at("self_attn"), c, distances)
    x = x + rms_norm(y, w, "norm_post_attn", c.inner_eps)
    x = light_convolution(x, w.at("lconv1d"), c)
    return rms_norm(feed_forward(x, w.at("feed_forward2"), c), w, "norm_out", c.inner_eps)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Gemma4Audio) -> Array:
    """Process each vector separately, four times as wide, and add a share of it: [T D] -> [T 4D] -> [T D]."""
    y = clipped_linear(rms_norm(x, w, "pre_layer_norm", c.inner_eps), w.at("ffw_layer_1"), 4 * c.d_model, c.clipped)
    y = clipped_linear(activation(c.activation)(y), w.at("ffw_layer_2"), c.d_model, c.clipped)
    return x + rms_norm(y, w, "post_layer_norm", c.inner_eps) * c.residual


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Gemma4Audio, distances: Array) -> Array:
    """Let each moment gather information from those just before it: [T D] -> [T D]."""
    q, k, v = (
        heads(clipped_linear(x, w.at(name), c.n_heads * c.d_head, c.clipped), c.n_heads, c.d_head)
        for name in ("q_proj", "k_proj", "v_proj")
    )
    scale = c.d_head**-0.5 / math.log(2)
    q, k = q * (scale * softplus(w("per_dim_scale", c.d_head))), k * (math.log(1 + math.exp(1)) / math.log(2))
    far = heads(linear(distances, w, "relative_k_proj", c.n_heads * c.d_head), c.n_heads, c.d_head)
    past = int(c.left) - 1
    mixed = local_attention(q, k, v, far, int(c.chunk), past, past, c.cap)
    return clipped_linear(mixed, w.at("post"), c.d_model, c.clipped)


def _local_rule(q: Array, k: Array, v: Array, far: Array, chunk: int, past: int, most: int, cap: float) -> Ruling:
    rows = (q.shape[0] + chunk - 1) // chunk * chunk
    width = q.shape[1] * q.shape[2]
    return (q.shape[0], width), rows * width * (2 * (chunk + past) + far.shape[0])


@step(Role.SCORES, rule=_local_rule)
def local_attention(q: Array, k: Array, v: Array, far: Array, chunk: int, past: int, most: int, cap: float) -> Array:
    """Attention to the last `most` moments, the moment itself among them, with a vector for each distance: [T N H], [T
    N H], [T N H], [A N H] -> [T N·H].

    Computed in chunks: each query of a chunk is compared with all keys of the chunk and `past` before, and those
    products count; the last chunk is filled up.
    """
    T, reach = q.shape[0], far.shape[0]
    distance = np.arange(T)[:, None] - np.arange(T)[None, :]
    at = past - distance
    relative = np.einsum("tnh,anh->nta", q, far, optimize=True)
    relative = np.where((at >= 0) & (at < reach), np.take_along_axis(relative, np.clip(at, 0, reach - 1)[None], 2), 0)
    fit = soft_cap(np.einsum("tnh,snh->nts", q, k, optimize=True) + relative, cap)
    shares = softmax(np.where((distance >= 0) & (distance < most), fit, -np.inf))
    return np.einsum("nts,snh->tnh", shares, v, optimize=True).reshape(T, q.shape[1] * q.shape[2])


@step(Role.SHORT_CONVOLUTION)
def light_convolution(x: Array, w: Weights, c: Gemma4Audio) -> Array:
    """Convolve each channel over earlier frames, with a gate: [T D] -> [T 2D] -> [T D]."""
    y = rms_norm(x, w, "pre_layer_norm", c.norm_eps)
    wide, gate = np.split(clipped_linear(y, w.at("linear_start"), 2 * c.d_model, c.clipped), 2, axis=-1)
    y = convolve_each(wide * sigmoid(gate), w("depthwise_conv1d.weight", c.d_model, 1, c.taps), int(c.taps) - 1)
    y = activation(c.activation)(rms_norm(y, w, "conv_norm", c.norm_eps))
    return x + clipped_linear(y, w.at("linear_end"), c.d_model, c.clipped)
