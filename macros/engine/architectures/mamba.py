"""Mamba and Falcon Mamba: no attention and no feed-forward network, only a state space that each token controls.

Sources: arXiv 2312.00752 (Mamba), 2410.05355 (Falcon Mamba); tensor names as transformers 5.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..facts import Gguf, Peft
from ..interface import Array, KVCache, Weights
from ..ops import causal_conv, embed, linear, rms_norm, selective_scan, silu, softplus, unembed, unit_norm
from ..steps import Role, step
from . import architecture
from .config import Config, Positive, Raw, Size, Taps, activation, config, key

# How weights are initialized and which kernel runs; inference does not depend on either.
NOT_READ = frozenset(
    """
    residual_in_fp32 rescale_prenorm_residual use_mambapy use_falcon_mambapy use_associative_scan use_mamba_kernels
    time_step_scale time_step_min time_step_max time_step_init_scheme time_step_floor mamba_chunk_size chunk_size
""".split()
)


@config
class Mamba(Config):
    """Hyperparameters of Mamba, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("layer_norm_epsilon", 1e-5)
    # mixer
    expand: Positive = key("expand", 2.0)
    d_inner: Size = key("intermediate_size", lambda c: int(c.expand * int(c.d_model)))
    bias: bool = key("use_bias", False)
    d_conv: Taps = key("conv_kernel")
    conv_bias: bool = key("use_conv_bias", True)
    dt_rank: Size = key("time_step_rank", lambda c: -(-int(c.d_model) // 16))
    d_state: Size = key("state_size")
    activation: str = key("hidden_act", "silu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    ignored = NOT_READ | set("d_model n_layer d_inner fused_add_norm rms_norm ssm_cfg pad_vocab_size_multiple".split())

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return {k: v for k, v in super().prepare(raw).items() if v != "auto"}

    def check(self) -> None:
        activation(self.activation)

    def normed(self, x: Array, w: Weights, name: str) -> Array:
        """The processing of step sizes (dt), input map (b) and output map (c) before their use: nothing."""
        return x


@config
class FalconMamba(Mamba):
    """Falcon Mamba's: step sizes, input and output maps are normalized, without weights."""

    mixer_eps: Positive = key("mixer_rms_eps", 1e-6)

    def normed(self, x: Array, w: Weights, name: str) -> Array:
        return unit_norm(x, self.mixer_eps)


@architecture("falcon_mamba", config=FalconMamba, gguf=Gguf("mamba"), peft=Peft(refused="out_proj"))
@architecture("mamba", config=Mamba, gguf=Gguf("mamba"), peft=Peft(refused="out_proj"))
def forward(w: Weights, ids: Array, c: Mamba, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "backbone.embeddings.weight", c.vocab_size, c.d_model)
    for _, w_layer, cache_layer in w.layers("backbone.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    x = rms_norm(x, w, "backbone.norm_f", c.norm_eps)
    return unembed(x, w, "backbone.embeddings.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Mamba) -> Array:
    """One block, only a mixer: [T D] -> [T D]."""
    return x + mamba(rms_norm(x, w, "norm", c.norm_eps), w.at("mixer"), cache, c)


class MambaMixer(Protocol):
    """A config of Mamba's mixer."""

    @property
    def d_model(self) -> int: ...
    @property
    def d_inner(self) -> int: ...
    @property
    def d_conv(self) -> int: ...
    @property
    def d_state(self) -> int: ...
    @property
    def dt_rank(self) -> int: ...
    @property
    def bias(self) -> bool: ...
    @property
    def conv_bias(self) -> bool: ...
    @property
    def activation(self) -> str: ...

    def normed(self, x: Array, w: Weights, name: str) -> Array: ...


@step(Role.MAMBA)
def mamba(x: Array, w: Weights, cache: KVCache, c: MambaMixer) -> Array:
    """Let each token gather information from the state of those before it: [T D] -> [T C] -> [T D]."""
    x, gate = np.split(linear(x, w, "in_proj", 2 * c.d_inner, bias=c.bias), 2, axis=-1)
    x = activation(c.activation)(causal_conv(x, w, cache, "conv1d", c.d_conv, bias=c.conv_bias))
    maps = linear(x, w, "x_proj", c.dt_rank + 2 * c.d_state)
    dt, B, C = (
        c.normed(part, w, name)
        for part, name in zip(np.split(maps, [c.dt_rank, c.dt_rank + c.d_state], axis=-1), "dt b c".split())
    )
    dt = softplus(linear(dt, w, "dt_proj", c.d_inner, bias=True))
    y = selective_scan(x, dt, -np.exp(w("A_log", c.d_inner, c.d_state)), B, C, cache)
    return linear((y + w("D", c.d_inner) * x) * silu(gate), w, "out_proj", c.d_model, bias=c.bias)
