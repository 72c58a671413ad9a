"""The audio tower of VibeVoice-ASR: two encoders of a waveform, one for its sound and one for its words, projected.

Each is a stack of convolutions, of which a moment sees those before it. Source: transformers 5.24,
modeling_vibevoice_acoustic_tokenizer.py and modeling_vibevoice_asr.py (arXiv 2508.19205).
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from ..architectures.config import Positive, Size, Taps, activation, config, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import convolve, linear, rms_norm
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .patches import two_maps
from .sounds import convolve_each

SAMPLING = 24_000  # samples of a second: the feature extractor's
WORDS = "semantic_tokenizer_encoder_config."
MOST_STAGES = 12


class Encoder(NamedTuple):
    """The hyperparameters of one of the two encoders."""

    d_base: int
    taps: int
    ratios: list[int]
    depths: list[int]
    norm_eps: float
    d_ff_factor: int
    activation: str
    d_latent: int


@config
class VibeVoiceAudio(TowerConfig):
    """Hyperparameters of VibeVoice-ASR's two encoders and projector, in forward order."""

    reads = "sound"
    beside = ("semantic_tokenizer_encoder_config",)

    # the sound's encoder
    n_channels: Literal[1] = key("channels", 1)
    d_base: Size = key("num_filters", 32)
    taps: Taps = key("kernel_size", 7)
    ratios: list[int] = key("downsampling_ratios", lambda c: [2, 2, 4, 5, 5, 8])
    depths: list[int] = key("depths", lambda c: [3, 3, 3, 3, 3, 3, 8])
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    d_ff_factor: Size = key("ffn_expansion", 4)
    activation: str = key("hidden_act", "gelu")
    d_latent: Size = key("hidden_size", 64)
    # the words' encoder
    n_word_channels: Literal[1] = key(WORDS + "channels", 1)
    d_word_base: Size = key(WORDS + "num_filters", 32)
    word_taps: Taps = key(WORDS + "kernel_size", 7)
    word_ratios: list[int] = key(WORDS + "downsampling_ratios", lambda c: [2, 2, 4, 5, 5, 8])
    word_depths: list[int] = key(WORDS + "depths", lambda c: [3, 3, 3, 3, 3, 3, 8])
    word_eps: Positive = key(WORDS + "rms_norm_eps", 1e-5)
    d_word_ff_factor: Size = key(WORDS + "ffn_expansion", 4)
    word_activation: str = key(WORDS + "hidden_act", "gelu")
    d_word_latent: Size = key(WORDS + "hidden_size", 128)
    # projector
    projector_eps: Positive = fixed(1e-6)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"layer_scale_init_value", "vae_std", "acoustic_tokenizer_chunk_size"})

    def check(self) -> None:
        for encoder, before in (self.sounds, ""), (self.words, WORDS):
            activation(encoder.activation)
            numbers = [*encoder.ratios, *encoder.depths]
            if len(encoder.ratios) > MOST_STAGES or not all(0 < n <= 1000 for n in numbers):
                raise Problem(f"{before}downsampling_ratios = {encoder.ratios}", f"give at most {MOST_STAGES}, above 0")
            if len(encoder.depths) != len(encoder.ratios) + 1:
                raise Problem(f"{before}depths = {encoder.depths}", "give one more than downsampling_ratios has")
        if math.prod(self.ratios) != math.prod(self.word_ratios):
            raise Problem(f"{WORDS}downsampling_ratios = {self.word_ratios}", "both encoders have as many vectors")

    @property
    def sounds(self) -> Encoder:
        """The sound's encoder."""
        return Encoder(
            d_base=self.d_base,
            taps=self.taps,
            ratios=self.ratios,
            depths=self.depths,
            norm_eps=self.norm_eps,
            d_ff_factor=self.d_ff_factor,
            activation=self.activation,
            d_latent=self.d_latent,
        )

    @property
    def words(self) -> Encoder:
        """The words' encoder."""
        return Encoder(
            d_base=self.d_word_base,
            taps=self.word_taps,
            ratios=self.word_ratios,
            depths=self.word_depths,
            norm_eps=self.word_eps,
            d_ff_factor=self.d_word_ff_factor,
            activation=self.word_activation,
            d_latent=self.d_word_latent,
        )

    def moments(self, seconds: float) -> Grid:
        return Grid(max(math.ceil(int(seconds * SAMPLING) / math.prod(self.ratios)), 1))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(run.declare("n_moments", grid.rows), 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows * math.prod(self.ratios), 1


@tower("vibevoice_asr.acoustic_tokenizer_encoder_config", config=VibeVoiceAudio)
def forward(w: Weights, x: Array, grid: Grid, c: VibeVoiceAudio, cache: KVCache) -> list[Array]:
    """The vectors of a sound for the text: [S 1] -> [M D]."""
    sounds = encode(x, w.at("model.acoustic_tokenizer_encoder"), c.sounds, cache, "sound", 0)
    words = encode(x, w.at("model.semantic_tokenizer_encoder"), c.words, cache, "words", sum(c.depths))
    projector = w.at("model.multi_modal_projector")
    return [project(sounds, projector, "acoustic", c) + project(words, projector, "semantic", c)]


def encode(x: Array, w: Weights, c: Encoder, cache: KVCache, name: str, before: int) -> Array:
    """An encoder's vectors of a sound: [S 1] -> [M L]."""
    for stage, depth in enumerate(c.depths):
        place = f"conv_layers.{stage - 1}" if stage else "stem"
        ratio = c.ratios[stage - 1] if stage else 1
        x = slower(x, w.at(f"{place}.conv.conv"), c.d_base * 2**stage, 2 * ratio if stage else int(c.taps), ratio)
        kind = f"{name}, stage {stage}"
        for _, w_layer, _ in w.layers(f"{place}.stage", [kind] * depth, cache, kind, before):
            x = block(x, w_layer, c)
        before += depth
    return slower(x, w.at("head.conv"), c.d_latent, int(c.taps), 1)


@step(Role.CONV_STEM)
def slower(x: Array, w: Weights, width: int, taps: int, ratio: int) -> Array:
    """A vector of the moments before, at every `ratio`-th: [T I] -> [T/r O]."""
    return convolve(x, w("weight", width, x.shape[1], taps), w("bias", width), ratio, taps - ratio)


@step(Role.LAYER)
def block(x: Array, w: Weights, c: Encoder) -> Array:
    """Each channel mixed over the moments before, then a feed-forward network, both scaled: [T D] -> [T D]."""
    width = x.shape[1]
    y = rms_norm(x, w, "norm", c.norm_eps)
    y = convolve_each(y, w("mixer.conv.weight", width, 1, c.taps), int(c.taps) - 1) + w("mixer.conv.bias", width)
    x = x + y * w("gamma", width)
    names, act = ("linear1", "linear2"), activation(c.activation)
    y = two_maps(rms_norm(x, w, "ffn_norm", c.norm_eps), w.at("ffn"), names, c.d_ff_factor * width, width, act)
    return x + y * w("ffn_gamma", width)


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, name: str, c: VibeVoiceAudio) -> Array:
    """Vectors mapped, normalized and mapped again: [M L] -> [M D]."""
    x = rms_norm(linear(x, w, f"{name}_linear_1", c.d_text, bias=True), w, f"{name}_norm", c.projector_eps)
    return linear(x, w, f"{name}_linear_2", c.d_text, bias=True)
