"""The audio tower of Fun-ASR-Nano: SenseVoice's encoder over stacked frames, then a projector with layers of its own.

Beside each attention, a convolution mixes its values over moments next to each other. Source: transformers 5.24,
modeling_fun_asr_nano.py and feature_extraction_fun_asr_nano.py (arXiv 2407.04051).
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Count, Positive, Size, Taps, activation, config, derived, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import attend, heads, layer_norm, linear
from ..steps import Keeps, Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .patches import Vit, two_maps
from .sounds import convolve_each

# The feature extractor's: samples of a second, of a frame, and from one frame to the next; frames from one moment on.
SAMPLING, FRAME, HOP, STRIDE = 16_000, 400, 160, 6
ADAPTOR = "adaptor_config."


@config
class FunAsrNanoAudio(TowerConfig):
    """Hyperparameters of Fun-ASR-Nano's encoder and projector, in forward order."""

    reads = "sound"
    beside = ("adaptor_config",)

    # sound
    n_bands: Size = key("num_mel_bins", 80)
    n_stacked: Size = key("num_stacked_frames", 7)
    d_source: Size = derived(lambda c: c.n_bands * c.n_stacked)
    # layers
    d_model: Size = key("hidden_size", 512)
    n_layers: Size = key("num_hidden_layers", 70)
    n_last_layers: Count = key("num_timestamp_prediction_layers", 20)
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    n_heads: Size = key("num_attention_heads", 4)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    taps: Taps = key("fsmn_kernel_size", 11)
    d_ff: Size = key("intermediate_size", 2048)
    activation: str = key("hidden_act", "relu")
    # projector
    d_projector: Size = key(ADAPTOR + "projector_hidden_size", 2048)
    projector_activation: str = key(ADAPTOR + "projector_hidden_act", "relu")
    d_adaptor: Size = key(ADAPTOR + "hidden_size", 1024)
    n_adaptor_layers: Count = key(ADAPTOR + "num_hidden_layers", 2)
    adaptor_eps: Positive = key(ADAPTOR + "layer_norm_eps", 1e-5)
    n_adaptor_heads: Size = key(ADAPTOR + "num_attention_heads", 8)
    d_adaptor_head: Size = derived(lambda c: c.d_adaptor // c.n_adaptor_heads)
    d_ff_adaptor: Size = key(ADAPTOR + "intermediate_size", 256)
    adaptor_activation: str = key(ADAPTOR + "hidden_act", "relu")
    d_text: Size = key(TEXT_WIDTH)

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        self.must_divide("n_adaptor_heads", "d_adaptor")
        for name in (self.activation, self.projector_activation, self.adaptor_activation):
            activation(name)
        if int(self.d_source) % 2 or int(self.d_source) < 4:
            raise Problem(f"num_mel_bins = {int(self.n_bands)}", "sines and cosines need an even number, at least 4")
        if int(self.d_adaptor) != int(self.d_text):
            raise Problem(f"{ADAPTOR}hidden_size = {int(self.d_adaptor)}", "it is text_config.hidden_size")

    @property
    def kinds(self) -> list[str]:
        """The first layer, whose input is as wide as the frames, and the layers that a norm follows."""
        number = int(self.n_layers)
        normed = {number - int(self.n_last_layers) - 1, number - 1}
        return [f"{'first' if i == 0 else 'layer'}{' and norm' if i in normed else ''}" for i in range(number)]

    @property
    def adaptor(self) -> Vit:
        """The sizes of the projector's layers."""
        return Vit(
            n_channels=1,
            patch=1,
            d_model=self.d_adaptor,
            n_layers=self.n_adaptor_layers,
            norm_eps=self.adaptor_eps,
            n_heads=self.n_adaptor_heads,
            d_head=self.d_adaptor_head,
            d_ff=self.d_ff_adaptor,
            activation=self.adaptor_activation,
        )

    def moments(self, seconds: float) -> Grid:
        frames = max((int(seconds * SAMPLING) - FRAME) // HOP + 1, 1)
        return Grid(math.ceil(frames / STRIDE))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(run.declare("n_moments", grid.rows), 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows, self.d_source


@tower("fun_asr_nano.audio_config", config=FunAsrNanoAudio)
def forward(w: Weights, x: Array, grid: Grid, c: FunAsrNanoAudio, cache: KVCache) -> list[Array]:
    """The vectors of a sound for the text: [M I] -> [M D]."""
    x = x * int(c.d_model) ** 0.5 + places(x, c)
    for kind, w_layer, _ in w.layers("model.audio_tower.layers", c.kinds, cache):
        x = layer(x, w_layer, c, int(c.taps))
        x = layer_norm(x, w_layer, "final_layernorm", c.norm_eps) if kind.endswith("norm") else x
    w = w.at("model.multi_modal_projector")
    act = activation(c.projector_activation)
    x = two_maps(x, w, ("linear_1", "linear_2"), c.d_projector, c.d_adaptor, act)
    kinds = ["of the projector"] * c.n_adaptor_layers
    for _, w_layer, _ in w.layers("layers", kinds, cache, "projector", c.n_layers):
        x = layer(x, w_layer, c.adaptor)
    return [x]


@step(Role.SINUSOIDS, keeps=Keeps.NOTHING)
def places(x: Array, c: FunAsrNanoAudio) -> Array:
    """Sines and cosines of the moments' positions, from 1 on: [M I] -> [M I]."""
    half = int(c.d_source) // 2
    speeds = np.exp(np.arange(half, like=x) * (-math.log(10000.0) / (half - 1)))
    angles = (np.arange(x.shape[0], like=x) + 1)[:, None] * speeds[None, :]
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1).astype(np.float32)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: FunAsrNanoAudio | Vit, taps: int = 0) -> Array:
    """One transformer block, in which every moment sees all others: [M I] -> [M D]."""
    y = attention(layer_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), c, taps)
    x = x + y if int(x.shape[1]) == int(c.d_model) else y
    y = layer_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: FunAsrNanoAudio | Vit, taps: int) -> Array:
    """Let each moment gather information from all moments, and once more from those around: [M I] -> [M D]."""
    D, N, H = c.d_model, c.n_heads, c.d_head
    q, k, v = (linear(x, w, name, D, bias=True) for name in ("q_proj", "k_proj", "v_proj"))
    mixed = attend(heads(q, N, H), heads(k, N, H), heads(v, N, H), None, H**-0.5)
    y = linear(mixed, w, "o_proj", D, bias=True)
    return y + v + convolve_each(v, w("fsmn.conv.weight", D, 1, taps), (taps - 1) // 2) if taps else y
