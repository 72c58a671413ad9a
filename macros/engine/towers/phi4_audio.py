"""The audio tower of Phi-4 multimodal: a conformer in which each moment of a piece attends to all others.

Three convolutions make a vector of eight frames of a spectrogram, 80 milliseconds. A layer has two feed-forward
networks, attention with a number of each head for each distance, and a convolution over the moments before. A longer
sound is cut into pieces of 500 vectors, the last of which is filled up. Source: transformers 5.24,
modeling_phi4_multimodal.py and feature_extraction_phi4_multimodal.py (arXiv 2503.01743).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ..architectures.config import Positive, Size, Taps, activation, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import attend, gelu, heads, layer_norm, linear
from ..steps import Keeps, Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .patches import two_maps
from .sounds import convolve_each, convolve_plane, convolve_plane_each

PIECE = 500  # vectors
# The feature extractor's: samples a second, in a frame, and from one to the next.
SAMPLING, FRAME, HOP = 16000, 400, 160


@config
class Phi4Audio(TowerConfig):
    """Hyperparameters of Phi-4 multimodal's audio tower, in forward order."""

    reads = "sound"

    # spectrogram
    n_bands: Size = key("input_size", 80)
    reduction: Size = key("time_reduction", 8)
    n_channels: Size = key("nemo_conv_channels", 1024)
    stem_activation: str = key("nemo_activation", "relu")
    d_model: Size = key("hidden_size", 1024)
    # layers
    n_layers: Size = key("num_blocks", 24)
    norm_eps: Positive = fixed(1e-5)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    longest: Size = key("bias_max_distance", 1000)
    d_ff: Size = key("intermediate_size", 1536)
    activation: str = key("activation", "swish")
    # convolution
    gate: str = key("conv_glu_type", "swish")
    taps: Taps = key("kernel_size", 3)
    conv_activation: str = key("conv_activation", "swish")
    d_gated: Size = key("ext_pw_out_channel", 1024)
    d_convolved: Size = key("depthwise_separable_out_channel", 1024)
    # projector
    d_text: Size = key(TEXT_WIDTH)

    chunk: Literal[-1] = key("chunk_size", -1)
    multiplier: Literal[1] = key("depthwise_multiplier", 1)
    symmetric: Literal[False] = key("bias_symmetric", False)
    joined: Literal[1] = key("downsample_rate", 1)
    ignored = frozenset({"audio_token_id", "dropout_rate", "feature_layer", "left_chunk", "nemo_final_size"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        for name in (self.stem_activation, self.activation, self.gate, self.conv_activation):
            activation(name)
        if len({int(self.d_model), int(self.d_gated), int(self.d_convolved)}) > 1:
            raise Problem("the convolution's widths differ", "correct ext_pw_out_channel, or the other two")
        if int(self.reduction) < 2 or int(self.reduction) & (int(self.reduction) - 1):
            raise Problem(f"time_reduction = {int(self.reduction)}", "give a power of 2")

    @property
    def halvings(self) -> int:
        """The number of convolutions with a stride of 2."""
        return int(self.reduction).bit_length() - 1

    def moments(self, seconds: float) -> Grid:
        frames = max((int(seconds * SAMPLING) - FRAME) // HOP + 1, 1)
        pieces = math.ceil(frames / (PIECE * int(self.reduction)))
        return Grid(frames if pieces == 1 else PIECE * int(self.reduction), 1, pieces)

    def sound_tokens(self, seconds: float, tokens: int) -> int:
        return math.ceil(max((int(seconds * SAMPLING) - FRAME) // HOP + 1, 1) / int(self.reduction))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(run.declare("n_moments", grid.rows), 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows, self.n_bands


@tower("phi4_multimodal.audio_config", config=Phi4Audio)
def forward(w: Weights, x: Array, grid: Grid, c: Phi4Audio, cache: KVCache) -> list[Array]:
    """The vectors of a piece of sound for the text: [R B] -> [R/8 D]."""
    w = w.at("model.embed_tokens_extend.audio_embed")
    tower = w.at("encoder")
    scale = tower.buffer("encoder_embedding.global_invstd", c.n_bands)
    x = (x - tower.buffer("encoder_embedding.global_mean", c.n_bands)) * scale
    x = subsample(x, tower.at("embed"), c)
    by_distance = distance_scores(x, tower, c)
    for _, w_layer, _ in tower.layers("encoders", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, by_distance)
    w("up_proj_for_vision_speech.weight", c.d_text, c.d_model)  # where a text has images, too
    w("up_proj_for_vision_speech.bias", c.d_text)
    w("down_proj_for_vision_speech.weight", c.d_text, c.d_text)
    w("down_proj_for_vision_speech.bias", c.d_text)
    return [two_maps(x, w, ("up_proj_for_speech", "down_proj_for_speech"), c.d_text, c.d_text, gelu)]


@step(Role.CONV_STEM)
def subsample(x: Array, w: Weights, c: Phi4Audio) -> Array:
    """A vector for each eight frames, by convolutions; the later ones first mix each channel by itself: [R B] -> [R/8
    B/8 C] -> [R/8 D]."""
    act, C = activation(c.stem_activation), c.n_channels
    x = act(convolve_plane(x[:, :, None], w("conv.0.weight", C, 1, 3, 3), 2) + w("conv.0.bias", C))
    for number in range(2, 3 * c.halvings - 1, 3):
        x = convolve_plane_each(x, w(f"conv.{number}.weight", C, 1, 3, 3), 2) + w(f"conv.{number}.bias", C)
        kernel = w(f"conv.{number + 1}.weight", C, C, 1, 1).reshape(C, C)
        x = act(np.einsum("rbi,oi->rbo", x, kernel, optimize=True) + w(f"conv.{number + 1}.bias", C))
    x = x.swapaxes(1, 2)
    return linear(x.reshape(x.shape[0], x.shape[1] * x.shape[2]), w, "out", c.d_model, bias=True)


@step(Role.RELATIVE_BIAS, keeps=Keeps.NOTHING)
def distance_scores(x: Array, w: Weights, c: Phi4Audio) -> Array:
    """Each head's addition to a score by distance: [T], [2A N] -> [N T T]."""
    table = w("relative_attention_bias_layer.bias_values.weight", 2 * c.longest, c.n_heads)
    place = np.arange(x.shape[0], like=x)
    distance = np.clip(place[None, :] - place[:, None], -int(c.longest), int(c.longest) - 1)
    return np.take(table, distance + int(c.longest), axis=0).transpose(2, 0, 1)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Phi4Audio, by_distance: Array) -> Array:
    """One block of the conformer: [T D] -> [T D]."""
    x = x + 0.5 * feed_forward(x, w.at("feed_forward_in"), c)
    x = x + attention(layer_norm(x, w, "layer_norm_att", c.norm_eps), w.at("self_attn"), c, by_distance)
    x = x + convolution(x, w.at("conv"), c)
    return layer_norm(x + 0.5 * feed_forward(x, w.at("feed_forward_out"), c), w, "layer_norm", c.norm_eps)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Phi4Audio) -> Array:
    """Process each vector separately, in a wider space, gated: [T D] -> [T 2F] -> [T D]."""
    x = linear(layer_norm(x, w, "layer_norm", c.norm_eps), w, "gate_up_proj", 2 * c.d_ff, bias=True)
    wide, gate = np.split(x, 2, axis=-1)
    return linear(wide * activation(c.activation)(gate), w, "down_proj", c.d_model, bias=True)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Phi4Audio, by_distance: Array) -> Array:
    """Let each moment gather information from all moments of the piece: [T D] -> [T D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head) for name in ("q_proj", "k_proj", "v_proj")
    )
    return linear(attend(q, k, v, None, c.d_head**-0.5, by_distance), w, "o_proj", c.d_model, bias=True)


@step(Role.SHORT_CONVOLUTION)
def convolution(x: Array, w: Weights, c: Phi4Audio) -> Array:
    """Convolve each channel over earlier frames, with a gate, then mix the channels: [T D] -> [T 2D] -> [T D].

    Frames past the last are computed too, and dropped.
    """
    D, T = c.d_model, x.shape[0]
    x = pointwise(layer_norm(x, w, "layer_norm", c.norm_eps), w, "glu.ext_pw_conv_1d", 2 * D)
    wide, gate = np.split(x, 2, axis=-1)
    gate = activation(c.gate)(gate + w("glu.b2", 1, D, 1).reshape(D))
    x = (wide + w("glu.b1", 1, D, 1).reshape(D)) * gate
    before = int(c.taps) - 1
    x = convolve_each(np.pad(x, ((0, before), (0, 0))), w("dw_sep_conv_1d.dw_conv.weight", D, 1, c.taps), before)
    x = pointwise(x + w("dw_sep_conv_1d.dw_conv.bias", D), w, "dw_sep_conv_1d.pw_conv", D)[:T]
    return pointwise(activation(c.conv_activation)(x), w, "ext_pw_conv_1d", D)


def pointwise(x: Array, w: Weights, name: str, width: int) -> Array:
    """A linear map of each moment, stored as a convolution: [T I] -> [T O]."""
    kernel = w(f"{name}.weight", width, x.shape[1], 1).reshape(width, x.shape[1])
    return np.einsum("ti,oi->to", x, kernel, optimize=True) + w(f"{name}.bias", width)
