"""The audio tower of GLM-ASR: Whisper's encoder with rotary embeddings of half of each head; four vectors are joined.

A longer sound is cut into pieces of half a minute. Source: transformers 5.24, modeling_glmasr.py and
processing_glmasr.py.
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Raw, Size, activation, config, derived, fixed, key
from ..architectures.rope_config import read_rope
from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Rope, apply_rope, attend, convolve, gelu, heads, layer_norm, linear, rope_table
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .patches import two_maps
from .whisper import FRAMES, PIECE

LONGEST = 655  # seconds: the processor's
JOINED = 4  # vectors: the processor's


@config
class GlmAsrEncoder(TowerConfig):
    """Hyperparameters of GLM-ASR's encoder and projector, in forward order."""

    reads = "sound"

    # sound
    n_bands: Size = key("num_mel_bins", 128)
    d_model: Size = key("hidden_size", 1280)
    taps: int = fixed(3)
    # layers
    n_layers: Size = key("num_hidden_layers", 32)
    norm_eps: Positive = fixed(1e-5)
    n_heads: Size = key("num_attention_heads", 20)
    n_kv_heads: Size = key("num_key_value_heads", lambda c: c.n_heads)
    d_head: Size = key("head_dim", lambda c: c.d_model // c.n_heads)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    share: Positive = key("partial_rotary_factor", 0.5)
    d_ff: Size = key("intermediate_size", 5120)
    activation: str = key("hidden_act", "gelu")
    # projector
    n_joined: Size = fixed(JOINED)
    projector_activation: str = key("projector_hidden_act", "gelu")
    d_projector: Size = derived(lambda c: 2 * c.d_text)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"max_position_embeddings"})

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        for name in (self.activation, self.projector_activation):
            activation(name)
        if int(self.n_joined) * int(self.d_model) != int(self.d_ff):
            raise Problem(
                f"intermediate_size = {int(self.d_ff)}",
                f"give the width of {JOINED} vectors side by side, which the projector reads",
            )

    @property
    def rope(self) -> Rope:
        """The rotary embedding."""
        return read_rope({"partial_rotary_factor": self.share, **self.rope_parameters}, 10000.0)

    def moments(self, seconds: float) -> Grid:
        return Grid(FRAMES * PIECE, 1, math.ceil(min(seconds, LONGEST) / PIECE))

    def sound_tokens(self, seconds: float, tokens: int) -> int:
        frames = math.ceil(min(seconds, LONGEST) * FRAMES)
        whole, rest = divmod(frames, FRAMES * PIECE)
        return sum(((piece - 1) // 2 + 1) // JOINED for piece in [FRAMES * PIECE] * whole + [rest] * (rest > 0))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        each = 2 * int(self.n_joined)
        return Grid(2 * self.n_joined * run.declare("n_tokens", grid.rows // each), 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows, self.n_bands


@tower("glmasr.audio_config", config=GlmAsrEncoder)
def forward(w: Weights, x: Array, grid: Grid, c: GlmAsrEncoder, cache: KVCache) -> list[Array]:
    """The vectors of half a minute of sound for the text model: [2M B] -> [M/4 D]."""
    tower = w.at("model.audio_tower")
    x = stem(x, tower, c)
    table = rope_table(np.arange(x.shape[0], like=x), c.d_head, c.rope)
    for _, w_layer, _ in tower.layers("layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, table)
    x = layer_norm(x, tower, "norm", c.norm_eps)
    x = x.reshape(x.shape[0] // c.n_joined, c.n_joined * c.d_model)
    projector, act = w.at("model.multi_modal_projector"), activation(c.projector_activation)
    return [two_maps(x, projector, ("linear_1", "linear_2"), c.d_projector, c.d_text, act)]


@step(Role.CONV_STEM)
def stem(x: Array, w: Weights, c: GlmAsrEncoder) -> Array:
    """A vector for each two moments of sound, by two convolutions: [2M B] -> [2M D] -> [M D]."""
    x = gelu(convolve(x, w("conv1.weight", c.d_model, c.n_bands, c.taps), w("conv1.bias", c.d_model), 1))
    return gelu(convolve(x, w("conv2.weight", c.d_model, c.d_model, c.taps), w("conv2.bias", c.d_model), 2))


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: GlmAsrEncoder, table: RopeTable) -> Array:
    """One transformer block, in which every moment sees all others: [M D] -> [M D]."""
    x = x + attention(layer_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), c, table)
    y = layer_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: GlmAsrEncoder, table: RopeTable) -> Array:
    """Let each moment gather information from all; keys have no bias: [M D] -> [M D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=True), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=True), c.n_kv_heads, c.d_head)
    mixed = attend(apply_rope(q, table), apply_rope(k, table), v, None, c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=True)
