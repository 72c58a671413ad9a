"""The audio tower of Gemma 3n: a conformer, whose attention reaches back a little from each moment.

Two convolutions make a vector of four frames of a spectrogram, whose norm is that of all moments until then; behind the
layers each fourth vector is kept. A sound puts as many tokens into the text as the longest one would. Source:
transformers 5.23, modeling_gemma3n.py and feature_extraction_gemma3n.py (Universal Speech Model, arXiv 2303.01037).
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Count, Positive, Size, Taps, config, derived, fixed, key
from ..errors import Problem, shorten
from ..interface import Array, KVCache, Weights
from ..ops import heads, linear, relu, rms_norm, sigmoid, silu, softplus, unit_norm
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .gemma4_audio import distance_vectors, local_attention
from .sounds import convolve_each, convolve_plane

# The feature extractor's: samples a second, in a frame, from one to the next, of which padding makes multiples; the
# longest sound in seconds.
SAMPLING, FRAME, HOP, MULTIPLE, LONGEST = 16000, 512, 160, 128, 30


@config
class Gemma3nAudio(TowerConfig):
    """Hyperparameters of Gemma 3n's audio tower, in forward order."""

    reads = "sound"

    # spectrogram
    n_bands: Size = key("input_feat_size", 128)
    channels: list[int] = key("sscp_conv_channel_size", lambda c: [128, 32])
    kernels: list[list[int]] = key("sscp_conv_kernel_size", lambda c: [[3, 3], [3, 3]])
    strides: list[list[int]] = key("sscp_conv_stride_size", lambda c: [[2, 2], [2, 2]])
    group_eps: Positive = key("sscp_conv_group_norm_eps", 1e-3)
    d_model: Size = key("hidden_size", 1536)
    # layers
    n_layers: Size = key("conf_num_hidden_layers", 12)
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    inner_eps: Positive = fixed(1e-6)
    residual: Positive = key("conf_residual_weight", 0.5)
    # attention
    n_heads: Size = key("conf_num_attention_heads", 8)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    chunk: Size = key("conf_attention_chunk_size", 12)
    left: Size = key("conf_attention_context_left", 13)
    right: int = key("conf_attention_context_right", 0)
    cap: Positive = key("conf_attention_logit_cap", 50.0)
    # convolution
    taps: Taps = key("conf_conv_kernel_size", 5)
    # projector
    reduction: Size = key("conf_reduction_factor", 4)
    n_ids: Size = key("vocab_size", 128)
    n_tokens: Count = key("audio_soft_tokens_per_image", 188)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"gradient_clipping", "vocab_offset", "conf_attention_invalid_logits_value", "sscp_conv_eps"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        if len(self.channels) != 2 or min(self.channels) < 1:
            raise Problem(f"sscp_conv_channel_size = {shorten(self.channels)}", "give two positive numbers")
        for name, sizes, usual in (("kernel", self.kernels, 3), ("stride", self.strides, 2)):
            if [list(pair) for pair in sizes] != [[usual, usual]] * 2:
                raise Problem(f"sscp_conv_{name}_size = {shorten(sizes)}", f"give {usual} × {usual} twice")
        if int(self.d_model) % 2:
            raise Problem(f"hidden_size = {int(self.d_model)}", "sines and cosines need an even number")
        if self.right != 0:
            raise Problem(f"conf_attention_context_right = {self.right}", "only moments before are seen: give 0")

    def moments(self, seconds: float) -> Grid:
        samples = math.ceil(int(min(seconds, LONGEST) * SAMPLING) / MULTIPLE) * MULTIPLE
        return Grid(max((samples - FRAME - 1) // HOP + 1, 1))

    def sound_tokens(self, seconds: float, tokens: int) -> int:
        return int(self.n_tokens)

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(run.declare("n_moments", grid.rows), 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows, self.n_bands


@tower("gemma3n.audio_config", config=Gemma3nAudio)
def forward(w: Weights, x: Array, grid: Grid, c: Gemma3nAudio, cache: KVCache) -> list[Array]:
    """The vectors of a sound for the text: [R B] -> [R/4 D] -> [R/16 D]."""
    tower = w.at("model.audio_tower")
    x = subsample(x, tower.at("subsample_conv_projection"), c)
    distances = distance_vectors(x, int(c.left), c.d_model)
    for _, w_layer, _ in tower.layers("conformer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, distances)
    x = x[:: int(c.reduction)] if int(c.reduction) > 1 else x
    return [project(x, w.at("model.embed_audio"), c.n_ids, c.d_text, c.norm_eps)]


@step(Role.CONV_STEM)
def subsample(x: Array, w: Weights, c: Gemma3nAudio) -> Array:
    """A vector for each four frames, by two convolutions: [R B] -> [R/4 B/4 C] -> [R/4 D]."""
    x, before = x[:, :, None], 1
    for number, channels in enumerate(c.channels):
        x = convolve_plane(x, w(f"conv_{number}.conv.weight", channels, before, 3, 3), 2, (0, 1))
        x, before = relu(norm_until_then(x, w, f"conv_{number}.norm", c.group_eps)), channels
    return linear(x.reshape(x.shape[0], x.shape[1] * x.shape[2]), w, "input_proj_linear", c.d_model)


@step(Role.LAYER_NORM)
def norm_until_then(x: Array, w: Weights, name: str, eps: float) -> Array:
    """Subtract the mean of all numbers until this moment and divide by their deviation: [R B C] -> [R B C]."""
    R, B, C = x.shape
    count = ((np.arange(R, like=x) + 1) * (B * C)).astype(np.float32)
    mean = np.cumsum(x.reshape(R, B * C).sum(axis=1), axis=0) / count
    x = x - mean[:, None, None]
    variance = np.cumsum((x * x).reshape(R, B * C).sum(axis=1), axis=0) / count
    return x / np.sqrt(variance + eps)[:, None, None] * w(f"{name}.weight", C)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Gemma3nAudio, distances: Array) -> Array:
    """One block of the conformer: [T D] -> [T D]."""
    x = feed_forward(x, w.at("ffw_layer_start"), c)
    x = attention(x, w.at("attention"), c, distances)
    x = light_convolution(x, w.at("lconv1d"), c)
    return rms_norm(feed_forward(x, w.at("ffw_layer_end"), c), w, "norm", c.inner_eps)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Gemma3nAudio) -> Array:
    """Process each vector separately, four times as wide, and add a share of it: [T D] -> [T 4D] -> [T D]."""
    y = silu(linear(rms_norm(x, w, "pre_layer_norm", c.inner_eps), w, "ffw_layer_1", 4 * c.d_model))
    y = linear(y, w, "ffw_layer_2", c.d_model)
    return x + rms_norm(y, w, "post_layer_norm", c.inner_eps) * c.residual


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Gemma3nAudio, distances: Array) -> Array:
    """Let each moment gather information from those just before it: [T D] -> [T D]."""
    y, inner, width = rms_norm(x, w, "pre_attn_norm", c.inner_eps), w.at("attn"), c.n_heads * c.d_head
    q, k, v = (heads(linear(y, inner, f"{name}_proj", width), c.n_heads, c.d_head) for name in ("q", "k", "v"))
    q = q * (c.d_head**-0.5 / math.log(2) * softplus(inner("per_dim_scale", c.d_head)))
    far = heads(linear(distances, inner, "relative_position_embedding.pos_proj", width), c.n_heads, c.d_head)
    mixed = local_attention(q, k, v, far, int(c.chunk), int(c.left) - 1, int(c.left), c.cap)
    return x + rms_norm(linear(mixed, w, "post", c.d_model), w, "post_norm", c.inner_eps)


@step(Role.SHORT_CONVOLUTION)
def light_convolution(x: Array, w: Weights, c: Gemma3nAudio) -> Array:
    """Convolve each channel over earlier frames, with a gate: [T D] -> [T 2D] -> [T D]."""
    y = rms_norm(x, w, "pre_layer_norm", c.norm_eps)
    wide, gate = np.split(linear(y, w, "linear_start", 2 * c.d_model), 2, axis=-1)
    y = convolve_each(wide * sigmoid(gate), w("depthwise_conv1d.weight", c.d_model, 1, c.taps), int(c.taps) - 1)
    return x + linear(silu(rms_norm(y, w, "conv_norm", c.norm_eps)), w, "linear_end", c.d_model)


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, n_ids: int, width: int, eps: float) -> Array:
    """Vectors in the text model's width: [M D] -> [M O]. The tower also has vectors of ids that stand in for such
    inputs.
    """
    w("embedding.weight", n_ids, x.shape[1])
    w("hard_embedding_norm.weight", x.shape[1])
    return unit_norm(linear(rms_norm(x, w, "soft_embedding_norm", eps), w, "embedding_projection", width), eps)
