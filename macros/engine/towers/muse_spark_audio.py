"""The audio tower of Muse Spark: convolutions over a waveform, in stages that each join neighboring moments.

A moment sees those before it. Source: transformers 5.24, modeling_muse_spark.py and feature_extraction_muse_spark.py.
"""

from __future__ import annotations

import math

from ..architectures.config import Positive, Size, Taps, activation, config, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import linear, rms_norm, unit_norm
from ..steps import Role, step
from ..trace import Trace
from . import OF_TEXT, TEXT_WIDTH, Grid, TowerConfig, tower
from .patches import two_maps
from .sounds import convolve_each

SAMPLING = 24_000  # samples of a second: the feature extractor's
MOST_STAGES = 8


@config
class MuseSparkAudio(TowerConfig):
    """Hyperparameters of Muse Spark's audio tower, in forward order. Lists have a number for each stage."""

    reads = "sound"

    n_stages: Size = key("num_hidden_layers", 4)
    joined: list[int] = key("patch_sizes", lambda c: [16, 6, 5, 4])
    widths: list[int] = key("hidden_sizes", lambda c: [256, 512, 1024, 2048])
    depths: list[int] = key("depths", lambda c: [2, 2, 2, 2])
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    taps: Taps = key("conv_kernel_size", 7)
    mlp_ratio: Positive = key("mlp_ratio", 4.0)
    activation: str = key("hidden_act", "gelu")
    d_out: Size = key("out_hidden_size", 8192)
    text_eps: Positive = key(OF_TEXT + "rms_norm_eps", 1e-5)
    d_text: Size = key(TEXT_WIDTH)

    def check(self) -> None:
        activation(self.activation)
        if not self.n_stages <= MOST_STAGES:
            raise Problem(f"num_hidden_layers = {int(self.n_stages)}", f"give at most {MOST_STAGES}")
        for name, numbers in ("patch_sizes", self.joined), ("hidden_sizes", self.widths), ("depths", self.depths):
            if len(numbers) != int(self.n_stages) or not all(0 < n < 100_000 for n in numbers):
                raise Problem(f"{name} = {numbers}", "give a positive number for each of num_hidden_layers stages")
        if int(self.d_out) != int(self.d_text):
            raise Problem(f"out_hidden_size = {int(self.d_out)}", "it is text_config.hidden_size")

    def moments(self, seconds: float) -> Grid:
        return Grid(max(math.ceil(int(seconds * SAMPLING) / math.prod(self.joined)), 1))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(run.declare("n_moments", grid.rows), 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows * math.prod(self.joined), 1


@tower("muse_spark.audio_config", config=MuseSparkAudio)
def forward(w: Weights, x: Array, grid: Grid, c: MuseSparkAudio, cache: KVCache) -> list[Array]:
    """The vectors of a sound for the text: [S 1] -> [M D]."""
    tower, before = w.at("model.audio_tower"), 0
    for stage, depth in enumerate(c.depths):
        joined = grid.rows * math.prod(c.joined[stage + 1 :])
        x = join(x.reshape(joined, c.joined[stage] * x.shape[1]), tower.at(f"layers.{stage}.patch_embedder"), c, stage)
        name = f"stage {stage + 1}"
        for _, w_layer, _ in tower.layers(f"layers.{stage}.conv_blocks", [name] * depth, cache, name, before):
            x = block(x, w_layer, c)
        before += depth
    x = linear(rms_norm(x, tower, "norm", c.norm_eps), tower, "proj", c.d_out, bias=True)
    return [unit_norm(rms_norm(x, tower, "post_proj_norm", c.norm_eps), c.text_eps)]


@step(Role.CONV_STEM)
def join(x: Array, w: Weights, c: MuseSparkAudio, stage: int) -> Array:
    """A vector of the moments that a stage joins: [T I] -> [T D]."""
    return rms_norm(linear(x, w, "proj", c.widths[stage], bias=True), w, "norm", c.norm_eps)


@step(Role.LAYER)
def block(x: Array, w: Weights, c: MuseSparkAudio) -> Array:
    """Each channel mixed over the moments before, then a feed-forward network: [T D] -> [T D]."""
    width = x.shape[1]
    y = convolve_each(x, w("conv.weight", width, 1, c.taps), int(c.taps) - 1) + w("conv.bias", width)
    wide = int(int(width) * c.mlp_ratio)
    act = activation(c.activation)
    return x + two_maps(rms_norm(y, w, "norm", c.norm_eps), w.at("mlp"), ("fc1", "fc2"), wide, width, act)
