"""The audio tower of Voxtral Realtime: a decoder's layers over a sound; a moment attends to those shortly before.

Four vectors are joined, and the text model adds what becomes of them to its tokens' vectors, one for each. Source:
transformers 5.24, modeling_voxtral_realtime.py.
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Raw, Size, activation, config, fixed, key
from ..architectures.rope_config import read_rope
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Rope, apply_rope, attend, convolve, gelu, heads, linear, rms_norm, rope_table
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .patches import two_maps
from .whisper import FRAMES


@config
class VoxtralRealtimeEncoder(TowerConfig):
    """Hyperparameters of Voxtral Realtime's encoder and projector, in forward order."""

    reads = "sound"

    # sound
    n_bands: Size = key("num_mel_bins", 128)
    d_model: Size = key("hidden_size", 1280, also=("d_model",))
    taps: int = fixed(3)
    # layers
    n_layers: Size = key("num_hidden_layers", 32, also=("encoder_layers",))
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_heads: Size = key("num_attention_heads", 32, also=("encoder_attention_heads",))
    d_head: Size = key("head_dim", 64)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    window: Size | None = key("sliding_window", 750)
    d_ff: Size = key("intermediate_size", 5120, also=("encoder_ffn_dim",))
    activation: str = key("hidden_act", "silu")
    # projector
    n_joined: Size = key("downsample_factor", 4)
    projector_activation: str = key("projector_hidden_act", "gelu")
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset(
        """activation_function audio_length_per_tok default_num_delay_tokens max_position_embeddings num_key_value_heads
        vocab_size layerdrop encoder_layerdrop""".split()
    )

    def check(self) -> None:
        for name in (self.activation, self.projector_activation):
            activation(name)

    @property
    def rope(self) -> Rope:
        """The rotary embedding."""
        return read_rope(self.rope_parameters, 10000.0)

    def moments(self, seconds: float) -> Grid:
        each = 2 * int(self.n_joined)
        return Grid(each * max(math.ceil(seconds * FRAMES / each), 1))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        tokens = run.declare("n_tokens", grid.rows // (2 * int(self.n_joined)))
        return Grid(2 * self.n_joined * tokens, 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows, self.n_bands


@tower("voxtral_realtime.audio_config", config=VoxtralRealtimeEncoder)
def forward(w: Weights, x: Array, grid: Grid, c: VoxtralRealtimeEncoder, cache: KVCache) -> list[Array]:
    """The vectors of a sound for the text: [2M B] -> [M/4 D]."""
    tower = w.at("model.audio_tower")
    x = stem(x, tower.at("embedder"), c)
    place = np.arange(x.shape[0], like=x)
    table = rope_table(place, c.d_head, c.rope)
    allowed = place[:, None] >= place[None, :]
    if c.window is not None:
        allowed = allowed & (place[:, None] - place[None, :] < c.window)
    for _, w_layer, _ in tower.layers("layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, table, allowed)
    x = rms_norm(x, tower, "norm", c.norm_eps)
    x = x.reshape(x.shape[0] // c.n_joined, c.n_joined * c.d_model)
    projector, act = w.at("model.multi_modal_projector"), activation(c.projector_activation)
    return [two_maps(x, projector, ("linear_1", "linear_2"), c.d_text, c.d_text, act, bias=False)]


@step(Role.CONV_STEM)
def stem(x: Array, w: Weights, c: VoxtralRealtimeEncoder) -> Array:
    """A vector for every two frames of sound, by two causal convolutions: [2M B] -> [2M D] -> [M D]."""
    kernel, bias = w("conv1.weight", c.d_model, c.n_bands, c.taps), w("conv1.bias", c.d_model)
    x = gelu(convolve(x, kernel, bias, 1, 2))
    return gelu(convolve(x, w("conv2.weight", c.d_model, c.d_model, c.taps), w("conv2.bias", c.d_model), 2, 1))


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: VoxtralRealtimeEncoder, table: RopeTable, allowed: Array) -> Array:
    """One transformer block: [M D] -> [M D]."""
    y = rms_norm(x, w, "self_attn_layer_norm", c.norm_eps)
    x = x + attention(y, w.at("self_attn"), c, table, allowed)
    return x + feed_forward(rms_norm(x, w, "final_layer_norm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: VoxtralRealtimeEncoder, table: RopeTable, allowed: Array) -> Array:
    """Let each moment gather information from those before it; keys have no bias: [M D] -> [M D]."""
    wide = c.n_heads * c.d_head
    q, k, v = (
        heads(linear(x, w, name, wide, bias=name != "k_proj"), c.n_heads, c.d_head)
        for name in ("q_proj", "k_proj", "v_proj")
    )
    mixed = attend(apply_rope(q, table), apply_rope(k, table), v, allowed, c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: VoxtralRealtimeEncoder) -> Array:
    """Process each vector separately, in a wider space, gated: [M D] -> [M F] -> [M D]."""
    gate = activation(c.activation)(linear(x, w, "gate_proj", c.d_ff))
    return linear(gate * linear(x, w, "up_proj", c.d_ff), w, "down_proj", c.d_model, bias=True)
