"""The speech encoder of SeamlessM4T: a conformer over moments of two frames, and an adapter that shortens the sequence.

A score has a part by the distance of two moments. Source: transformers 5.24, modeling_seamless_m4t.py and
feature_extraction_seamless_m4t.py (arXiv 2308.11596).
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Count, Positive, Size, Taps, activation, config, derived, fixed, key
from ..errors import Problem, shorten
from ..interface import Array, KVCache, Weights
from ..ops import attend, heads, layer_norm, linear, sigmoid
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .parakeet import distance_scores, distance_vectors, pointwise
from .patches import two_maps
from .sounds import batch_norm, convolve_each, convolve_moments

SAMPLING, HOP, WINDOW = 16_000, 160, 400  # the extractor's samples per second, per frame step and per frame
NORM_EPS = 1e-5  # no key sets it


@config
class SeamlessM4TSpeech(TowerConfig):
    """Hyperparameters of SeamlessM4T's speech encoder, in forward order. They are among the whole config's keys."""

    reads = "sound"
    among_text = frozenset(
        """adaptor_kernel_size adaptor_stride add_adapter conv_depthwise_kernel_size feature_projection_input_dim
        layer_norm_eps num_adapter_layers position_embeddings_type speech_encoder_attention_heads
        speech_encoder_hidden_act speech_encoder_intermediate_size speech_encoder_layers""".split()
    )

    # sound
    n_bands: Size = key("feature_projection_input_dim", 160)  # of two frames
    norm_eps: Positive = key("layer_norm_eps", NORM_EPS)
    d_model: Size = key(TEXT_WIDTH)
    # layers
    n_layers: Size = key("speech_encoder_layers", 24)
    layer_eps: Positive = fixed(NORM_EPS)
    d_ff: Size = key("speech_encoder_intermediate_size", 4096)
    activation: str = key("speech_encoder_hidden_act", "swish")
    n_heads: Size = key("speech_encoder_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    kind: str = fixed("relative")
    distance: str | None = key("position_embeddings_type", lambda c: c.kind)
    taps: Taps = key("conv_depthwise_kernel_size", 31)
    # adapter
    adapts: bool = key("add_adapter", True)
    n_adapter_layers: Count = key("num_adapter_layers", 1)
    adapter_taps: Taps = key("adaptor_kernel_size", 8)
    stride: Size = key("adaptor_stride", 8)

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)
        if int(self.taps) % 2 == 0:
            raise Problem(f"conv_depthwise_kernel_size = {int(self.taps)}", "give an odd number")
        if self.distance not in (None, self.kind):
            raise Problem(f"position_embeddings_type = {shorten(self.distance)}", f"known is {self.kind}")
        if int(self.d_model) % 2:
            raise Problem(f"hidden_size = {int(self.d_model)}", "sines and cosines need an even number")
        if int(self.adapter_taps) > 2 * self.n_empty + 1:
            raise Problem(
                f"adaptor_kernel_size = {int(self.adapter_taps)} for adaptor_stride = {int(self.stride)}",
                "give a smaller one, which every sound fills",
            )

    @property
    def n_empty(self) -> int:
        """The empty moments that precede and follow a sound in the adapter's convolutions."""
        return int(self.stride) // 2

    @property
    def adapter_kinds(self) -> list[str]:
        """The layers of the adapter: each one reads fewer moments than the one before."""
        return [f"adapter {number + 1}" for number in range(self.n_adapter_layers if self.adapts else 0)]

    def moments(self, seconds: float) -> Grid:
        frames = max(1 + (int(seconds * SAMPLING) - WINDOW) // HOP, 1)
        return Grid((frames + 1) // 2)

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(run.declare("n_moments", grid.rows), 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows, self.n_bands

    def attention(self, x: Array, w: Weights, distances: Array | None) -> Array:
        """A layer's attention: [R D] -> [R D]."""
        return attention(x, w, self, distances)

    def around(self, x: Array, w: Weights) -> Array:
        """Each channel convolved over neighboring frames, then normalized by training's statistics: [R D] -> [R D]."""
        x = convolve_each(x, w("depthwise_conv.weight", self.d_model, 1, self.taps), int(self.taps) // 2)
        return batch_norm(x, w.at("batch_norm"), self.layer_eps)


@tower("seamless_m4t.audio_config", config=SeamlessM4TSpeech, has_table=False)
def forward(w: Weights, x: Array, grid: Grid, c: SeamlessM4TSpeech, cache: KVCache) -> list[Array]:
    """The vectors of a sound for the decoder: [R B] -> [M D]."""
    tower = w.at("speech_encoder")
    x = layer_norm(x, tower, "feature_projection.layer_norm", c.norm_eps)
    x = linear(x, tower, "feature_projection.projection", c.d_model, bias=True)
    distances = distance_vectors(x, c) if c.distance == "relative" else None  # pyright: ignore[reportArgumentType]
    for _, w_layer, _ in tower.layers("encoder.layers", ["encoder"] * c.n_layers, cache, "encoder"):
        x = layer(x, w_layer, c, distances)
    x = layer_norm(x, tower, "encoder.layer_norm", c.norm_eps)
    x = x + 0.5 * maps(x, tower.at("intermediate_ffn"), c, "relu")
    for _, w_layer, _ in tower.layers("adapter.layers", c.adapter_kinds, cache, "adapter", c.n_layers):
        x = adapter_layer(x, w_layer, c)
    return [layer_norm(x, tower, "inner_layer_norm", c.layer_eps)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: SeamlessM4TSpeech, distances: Array | None) -> Array:
    """One block of the conformer: [R D] -> [R D]."""
    x = x + 0.5 * maps(layer_norm(x, w, "ffn1_layer_norm", c.layer_eps), w.at("ffn1"), c, c.activation)
    x = x + c.attention(layer_norm(x, w, "self_attn_layer_norm", c.layer_eps), w.at("self_attn"), distances)
    x = x + convolution(x, w.at("conv_module"), c)
    x = x + 0.5 * maps(layer_norm(x, w, "ffn2_layer_norm", c.layer_eps), w.at("ffn2"), c, c.activation)
    return layer_norm(x, w, "final_layer_norm", c.layer_eps)


def maps(x: Array, w: Weights, c: SeamlessM4TSpeech, act: str) -> Array:
    """Each vector by itself, in a wider space: [R D] -> [R F] -> [R D]."""
    return two_maps(x, w, ("intermediate_dense", "output_dense"), c.d_ff, c.d_model, activation(act))


def project(x: Array, w: Weights, name: str, c: SeamlessM4TSpeech) -> Array:
    """A linear map, cut into heads: [R D] -> [R N H]."""
    return heads(linear(x, w, f"linear_{name}", c.d_model, bias=True), c.n_heads, c.d_head)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: SeamlessM4TSpeech, distances: Array | None) -> Array:
    """Let each moment gather information from all moments, also by their distance: [R D] -> [R D]."""
    N, H, scale, by_distance = c.n_heads, c.d_head, c.d_head**-0.5, None
    q, k, v = (project(x, w, name, c) for name in ("q", "k", "v"))
    if distances is not None:
        far = heads(linear(distances, w, "linear_pos", c.d_model), N, H)
        by_distance = distance_scores(q + w("pos_bias_v", N, H), far) * scale
        q = q + w("pos_bias_u", N, H)
    return linear(attend(q, k, v, None, scale, by_distance), w, "linear_out", c.d_model, bias=True)


@step(Role.SHORT_CONVOLUTION)
def convolution(x: Array, w: Weights, c: SeamlessM4TSpeech) -> Array:
    """Mix each channel over moments next to each other, gated, then all channels: [R D] -> [R 2D] -> [R D]."""
    D = c.d_model
    x = pointwise(layer_norm(x, w, "layer_norm", c.layer_eps), w, "pointwise_conv1", 2 * D, False)
    x = activation(c.activation)(c.around(gated(x), w))
    return pointwise(x, w, "pointwise_conv2", D, False)


def gated(x: Array) -> Array:
    """One half of the channels gates the other: [R 2D] -> [R D]."""
    wide, gate = np.split(x, 2, axis=-1)
    return wide * sigmoid(gate)


@step(Role.LAYER)
def adapter_layer(x: Array, w: Weights, c: SeamlessM4TSpeech) -> Array:
    """One block of the adapter, which shortens both its input and its residual path by a stride: [R D] -> [R/s D]."""
    rest = fewer(layer_norm(x, w, "residual_layer_norm", c.layer_eps), w, "residual_conv", c)
    x = fewer(layer_norm(x, w, "self_attn_layer_norm", c.layer_eps), w, "self_attn_conv", c)
    x = rest + attention(x, w.at("self_attn"), c, None)
    return x + maps(layer_norm(x, w, "ffn_layer_norm", c.layer_eps), w.at("ffn"), c, "relu")


@step(Role.CONV_STEM)
def fewer(x: Array, w: Weights, name: str, c: SeamlessM4TSpeech) -> Array:
    """One moment of several, by a convolution, gated: [R D] -> [R/s 2D] -> [R/s D]."""
    kernel = w(f"{name}.weight", 2 * c.d_model, c.d_model, c.adapter_taps)
    return gated(convolve_moments(x, kernel, int(c.stride), c.n_empty) + w(f"{name}.bias", 2 * c.d_model))
