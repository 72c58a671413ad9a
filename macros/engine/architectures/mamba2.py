"""Mamba 2: only a state space, whose heads each have one rate of forgetting and a state of a whole matrix.

Source: arXiv 2405.21060; tensor names as transformers 5.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from ..errors import Problem
from ..facts import Gguf, Peft
from ..interface import Array, KVCache, Weights
from ..ops import causal_conv, decaying_attention, embed, gated_rms_norm, heads, linear, rms_norm, softplus, unembed
from ..ops.recurrence import STATE_BYTES
from ..steps import Role, step
from . import architecture
from .config import Config, Positive, Size, Taps, activation, config, key
from .gguf_tables import STATE_SPACE_2, below
from .mamba import NOT_READ


@config
class Mamba2(Config):
    """Hyperparameters of Mamba 2, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("layer_norm_epsilon", 1e-5)
    # mixer
    expand: Positive = key("expand", 2.0)
    n_mamba_heads: Size = key("num_heads", 128)
    d_mamba_head: Size = key("head_dim", 64)
    n_groups: Size = key("n_groups", 8)
    d_state: Size = key("state_size", 128)
    bias: bool = key("use_bias", False)
    d_conv: Taps = key("conv_kernel", 4)
    conv_bias: bool = key("use_conv_bias", True)
    activation: str = key("hidden_act", "silu")
    dt_limits: tuple[float, float] = key("time_step_limit", lambda c: (0.0, math.inf))
    # head
    tied: bool = key("tie_word_embeddings", False)

    ignored = NOT_READ | frozenset("rms_norm norm_before_gate time_step_rank intermediate_size layer_types".split())

    def check(self) -> None:
        activation(self.activation)
        self.must_divide("n_groups", "n_mamba_heads")
        width, expanded = int(self.n_mamba_heads * self.d_mamba_head), int(self.expand * int(self.d_model))
        if width != expanded:
            raise Problem(
                f"num_heads × head_dim = {width}, and expand × hidden_size = {expanded}", "correct one of them"
            )


@architecture(
    "mamba2",
    config=Mamba2,
    spellings=(("^backbone.embedding.", "backbone.embeddings."),),
    gguf=Gguf("mamba2", below("mixer", STATE_SPACE_2)),
    peft=Peft(refused="out_proj"),
)
def forward(w: Weights, ids: Array, c: Mamba2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "backbone.embeddings.weight", c.vocab_size, c.d_model)
    for _, w_layer, cache_layer in w.layers("backbone.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    x = rms_norm(x, w, "backbone.norm_f", c.norm_eps)
    return unembed(x, w, "backbone.embeddings.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Mamba2) -> Array:
    """One block, only a mixer: [T D] -> [T D]."""
    y = rms_norm(x, w, "norm", c.norm_eps)
    return x + mamba2(y, w.at("mixer"), cache, c, c.activation, c.norm_eps, STATE_BYTES)


class StateSpaces(Protocol):
    """A config of Mamba 2's heads."""

    @property
    def n_mamba_heads(self) -> int: ...
    @property
    def d_mamba_head(self) -> int: ...
    @property
    def n_groups(self) -> int: ...
    @property
    def d_state(self) -> int: ...
    @property
    def d_conv(self) -> int: ...
    @property
    def conv_bias(self) -> bool: ...
    @property
    def dt_limits(self) -> tuple[float, float]: ...


class Mamba2Mixer(StateSpaces, Protocol):
    """A config of Mamba 2's mixer."""

    @property
    def d_model(self) -> int: ...
    @property
    def bias(self) -> bool: ...


@step(Role.MAMBA2)
def mamba2(x: Array, w: Weights, cache: KVCache, c: Mamba2Mixer, act: str, eps: float, item_bytes: int) -> Array:
    """Let each token gather information from the state of those before it: [T D] -> [T N H] -> [T D].

    The state is kept in float32 unless the config says otherwise, as in transformers and mamba_ssm.
    """
    N, H, G, Z = c.n_mamba_heads, c.d_mamba_head, c.n_groups, c.d_state
    gate, x, dt = np.split(
        linear(x, w, "in_proj", 2 * N * H + 2 * G * Z + N, bias=c.bias), [N * H, 2 * N * H + 2 * G * Z], axis=-1
    )
    y = state_spaces(x, dt, w, cache, c, act, item_bytes)
    return linear(gated_rms_norm(y, gate, w, "norm", eps, G), w, "out_proj", c.d_model, bias=c.bias)


def state_spaces(x: Array, dt: Array, w: Weights, cache: KVCache, c: StateSpaces, act: str, item_bytes: int) -> Array:
    """Each head's reading of its state, plus the input: [T N·H+2·G·Z], [T N] step sizes -> [T N·H]."""
    T, N, H, G, Z = x.shape[0], c.n_mamba_heads, c.d_mamba_head, c.n_groups, c.d_state
    x = activation(act)(causal_conv(x, w, cache, "conv1d", c.d_conv, bias=c.conv_bias))
    x, *maps = np.split(x, [N * H, N * H + G * Z], axis=-1)
    x = heads(x, N, H)
    B, C = (np.repeat(heads(part, G, Z), N // G, axis=1) for part in maps)
    dt = np.clip(softplus(dt + w("dt_bias", N)), *c.dt_limits)
    y = decaying_attention(C, B, x * dt[:, :, None], np.exp(-np.exp(w("A_log", N)) * dt), cache, item_bytes)
    return (y + x * w("D", N)[:, None]).reshape(T, N * H)
