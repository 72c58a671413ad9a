"""The audio tower of dots3-note: an encoder with rotary embeddings of half of each head, for eight frames at a time.

Three convolutions make a vector of eight frames of a spectrogram, 80 milliseconds. A longer sound is cut into pieces of
a minute. Source: transformers 5.24, modeling_dots3_note.py and feature_extraction_dots3_note.py.
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Raw, Size, activation, config, derived, fixed, key, tabled
from ..architectures.rope_config import read_rope
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Rope, apply_rope, attend, gelu, heads, layer_norm, linear, rms_norm, rope_table
from ..steps import Role, step
from ..trace import Trace
from . import Grid, TowerConfig, tower
from .patches import two_maps
from .sounds import convolve_plane

PIECE = 60  # seconds: the feature extractor's
JOINED = 8  # frames of which a vector is made
# The sizes that a published config has in a table of Whisper's keys.
OF_WHISPER = {
    "d_model": "hidden_size",
    "encoder_attention_heads": "num_attention_heads",
    "encoder_layers": "num_hidden_layers",
    "encoder_ffn_dim": "intermediate_size",
    "num_mel_bins": "feature_size",
}


@config
class Dots3Audio(TowerConfig):
    """Hyperparameters of dots3-note's audio tower, in forward order."""

    reads = "sound"

    # spectrogram
    sampling: Size = key("sampling_rate", 16000)
    hop: Size = key("hop_length", 160)
    n_bands: Size = key("feature_size", 128)
    n_channels: Size = key("downsample_hidden_size", 480)
    d_model: Size = key("hidden_size", 1280)
    # layers
    n_layers: Size = key("num_hidden_layers", 32)
    norm_eps: Positive = fixed(1e-6)
    n_heads: Size = key("num_attention_heads", 20)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    bias: bool = key("attention_bias", True)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    share: Positive = key("partial_rotary_factor", 0.5)
    d_ff: Size = key("intermediate_size", 5120)
    activation: str = key("hidden_act", "silu")
    # adapter
    adapter_eps: Positive = fixed(1e-5)
    d_text: Size = key("adapter_out_dim", 5120, also=("whisper_adapter_out_dim", "adapter_output_size"))

    rewritten = frozenset({"whisper_config"})
    ignored = frozenset({"adapter_input_size", "whisper_adapter_in_dim", "num_key_value_heads", "head_dim"}) | {
        "conv_output_size",
        "samples_per_token",
    }

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The sizes in the table of Whisper's keys, renamed so that they clash with no other key."""
        table = tabled(raw.pop("whisper_config", None)) or {}
        return raw | {OF_WHISPER[name]: value for name, value in table.items() if name in OF_WHISPER}

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)

    @property
    def rope(self) -> Rope:
        """The rotary embedding."""
        return read_rope({"partial_rotary_factor": self.share, **self.rope_parameters}, 10000.0)

    def pieces(self, seconds: float) -> list[int]:
        """The vectors of each minute of a sound."""
        samples, piece = int(seconds * int(self.sampling)), PIECE * int(self.sampling)
        sizes = [piece] * (samples // piece) + [samples % piece]
        return [math.ceil(size / (JOINED * int(self.hop))) for size in sizes if size] or [1]

    def moments(self, seconds: float) -> Grid:
        pieces = self.pieces(seconds)
        return Grid(JOINED * max(pieces), 1, len(pieces))

    def sound_tokens(self, seconds: float, tokens: int) -> int:
        return sum(self.pieces(seconds))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(JOINED * run.declare("n_tokens", grid.rows // JOINED), 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows, self.n_bands


@tower("dots3_note.audio_config", config=Dots3Audio)
def forward(w: Weights, x: Array, grid: Grid, c: Dots3Audio, cache: KVCache) -> list[Array]:
    """The vectors of a piece of sound for the text: [R B] -> [R/8 D]."""
    tower = w.at("model.audio_tower")
    x = stem(x, tower.at("conv_stem"), c)
    table = rope_table(np.arange(x.shape[0], like=x), c.d_head, c.rope)
    for _, w_layer, _ in tower.layers("layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, table)
    x = layer_norm(rms_norm(x, tower, "layer_norm", c.norm_eps), tower, "adapter.norm", c.adapter_eps)
    return [two_maps(x, tower.at("adapter"), ("fc1", "fc2"), c.d_text, c.d_text, gelu)]


@step(Role.CONV_STEM)
def stem(x: Array, w: Weights, c: Dots3Audio) -> Array:
    """A vector for each eight frames, by three convolutions: [R B] -> [B/8 R/8 C] -> [R/8 D]."""
    x, before = x.swapaxes(0, 1)[:, :, None], 1
    for number in range(3):
        kernel = w(f"convs.{number}.weight", c.n_channels, before, 3, 3)
        x, before = gelu(convolve_plane(x, kernel, 2) + w(f"convs.{number}.bias", c.n_channels)), c.n_channels
    bands, moments = x.shape[0], x.shape[1]
    x = x.transpose(1, 2, 0).reshape(moments, c.n_channels * bands)
    return linear(x, w, "conv_out", c.d_model)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Dots3Audio, table: RopeTable) -> Array:
    """One transformer block, in which every moment sees all others: [M D] -> [M D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Dots3Audio, table: RopeTable) -> Array:
    """Let each moment gather information from all; keys have no bias: [M D] -> [M D]."""
    q, k, v = (
        heads(linear(x, w, f"{name}_proj", c.n_heads * c.d_head, bias=c.bias and name != "k"), c.n_heads, c.d_head)
        for name in ("q", "k", "v")
    )
    mixed = attend(apply_rope(q, table), apply_rope(k, table), v, None, c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.bias)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Dots3Audio) -> Array:
    """Process each vector separately, in a wider space, gated: [M D] -> [M 2F] -> [M D]."""
    gate, up = np.split(linear(x, w, "gate_up_proj", 2 * c.d_ff, bias=True), 2, axis=-1)
    return linear(activation(c.activation)(gate) * up, w, "down_proj", c.d_model, bias=True)
