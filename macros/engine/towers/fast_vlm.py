"""The vision tower of FastVLM: FastViTHD, a convolutional network of five stages, the last two with attention.

Its branches of training are merged into one convolution each, as in the published files. Source: transformers 5.23,
modeling_fast_vlm.py, and timm 1.0, fastvit.py (arXiv 2303.14189, 2412.13303).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Raw, Size, Taps, config, derived, fixed, key, short_names, tabled
from ..errors import Problem, shorten
from ..interface import Array, KVCache, Weights
from ..ops import attend, gelu, heads, layer_norm, linear, relu, sigmoid
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .patches import named_activation, square_or_not, two_maps
from .sounds import convolve_plane, convolve_plane_each

SIDE = 1024  # pixels of an image's sides: the published processors'
ARGUMENTS = "model_args."
# The defaults of timm's architectures for `model_args`.
ARCHITECTURES: dict[str, tuple[list[int], list[int]]] = {
    "fastvit_mci3": ([2, 12, 24, 4, 2], [96, 192, 384, 768, 1536]),
    "fastvit_mci4": ([2, 12, 24, 4, 4], [128, 256, 512, 1024, 2048]),
}
STAGES, PLACED_FROM, PLACE = 5, 3, 7  # the first stage with a positional convolution, and its kernel size
SIDE_IN_MLP = 7
BATCH_EPS = 1e-5


@config
class FastVlmVision(TowerConfig):
    """Hyperparameters of FastVLM's vision tower and projector, in forward order. Lists have a number for each stage."""

    architecture: Literal["fastvit_mci3", "fastvit_mci4"] = key("architecture", "fastvit_mci3")
    merged: Literal[True] = key(ARGUMENTS + "inference_mode")
    n_channels: Size = fixed(3)
    depths: list[int] = key(ARGUMENTS + "layers", lambda c: ARCHITECTURES[c.architecture][0])
    widths: list[int] = key(ARGUMENTS + "embed_dims", lambda c: ARCHITECTURES[c.architecture][1])
    ratios: list[float] = key(ARGUMENTS + "mlp_ratios", lambda c: [4.0] * STAGES)
    mixers: list[str] = key(ARGUMENTS + "token_mixers", lambda c: ["repmixer"] * 3 + ["attention"] * 2)
    mixer_size: Taps = key(ARGUMENTS + "repmixer_kernel_size", 3)
    down_size: Taps = key(ARGUMENTS + "down_patch_size", 7)
    activated: bool = key(ARGUMENTS + "lkc_use_act", True)
    layer_scale: float | None = key(ARGUMENTS + "layer_scale_init_value", 1e-5)
    d_head: Size = fixed(32)
    norm_eps: Positive = fixed(1e-5)
    last_ratio: Positive = key(ARGUMENTS + "cls_ratio", 2.0)
    d_last: Size = key("hidden_size", lambda c: int(c.widths[-1] * c.last_ratio))
    # projector
    d_squeezed: Size = derived(lambda c: max(int(int(c.d_last) / 16 + 0.5), 1))
    projector_activation: str = key("projector_hidden_act", "gelu")
    bias: bool = key("multimodal_projector_bias", True)
    d_text: Size = key(TEXT_WIDTH)

    rewritten = frozenset({"model_args"})
    ignored = frozenset({"do_pooling", "num_classes", "label_names", "global_pool"})

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The arguments for timm under names of their own."""
        arguments = tabled(raw.pop("model_args", None)) or {}
        return raw | {f"{ARGUMENTS}{name}": value for name, value in arguments.items()}

    def check(self) -> None:
        named_activation(self.projector_activation)
        lists = {"layers": self.depths, "embed_dims": self.widths, "mlp_ratios": self.ratios}
        for name, numbers in lists.items():
            if len(numbers) != STAGES or not all(0 < n < 100_000 for n in numbers):
                raise Problem(f"{name} = {shorten(numbers)}", f"give a positive number for each of {STAGES} stages")
        for before, after, kind in zip(self.widths, self.widths[1:], self.kinds[1:]):
            if after % before or (kind == "attention" and after % int(self.d_head)):
                raise Problem(
                    f"embed_dims = {shorten(self.widths)}",
                    f"give widths that divide the next, multiples of {int(self.d_head)} with attention",
                )
        if self.kinds[0] == "attention" and self.widths[0] % int(self.d_head):
            raise Problem(
                f"embed_dims = {shorten(self.widths)}",
                f"give a multiple of {int(self.d_head)}, the width of a head, as the first",
            )
        if int(self.mixer_size) % 2 == 0 or int(self.down_size) % 2 == 0 or int(self.down_size) < 3:
            raise Problem("kernels have an even side", "correct repmixer_kernel_size or down_patch_size")
        if int(self.d_last) != int(self.widths[-1] * self.last_ratio) or int(self.d_last) % self.widths[-1]:
            raise Problem(f"hidden_size = {int(self.d_last)}", "it is embed_dims · cls_ratio of the last stage")

    @property
    def kinds(self) -> list[str]:
        """The token mixer of each stage."""
        return short_names(self.mixers, STAGES, {"repmixer": "convolution", "attention": "attention"})

    @property
    def unit(self) -> int:
        """The side, in pixels, of the square that becomes one vector."""
        return 4 * 2 ** (STAGES - 1)

    def grid(self, height: int, width: int) -> Grid:
        return Grid(SIDE // self.unit, SIDE // self.unit)

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return square_or_not(grid, run)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows * self.unit, grid.columns * self.unit, self.n_channels


@tower("fast_vlm.vision_config", config=FastVlmVision)
def forward(w: Weights, x: Array, grid: Grid, c: FastVlmVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [H W 3] -> [M D]."""
    tower, done, before = w.at("model.vision_tower.timm_model"), 0, c.widths[0]
    x = stem(x, tower.at("stem"), c)
    for number, (depth, kind) in enumerate(zip(c.depths, c.kinds)):
        x = stage_begins(x, tower.at(f"stages.{number}"), c, number, before)
        name = f"stage {number + 1}"
        for _, w_block, _ in tower.layers(f"stages.{number}.blocks", [name] * depth, cache, name, done):
            x = block(x, w_block, c, number, kind)
        done, before = done + depth, c.widths[number]
    x = last_convolution(x, tower.at("final_conv"), c)
    x = x.reshape(x.shape[0] * x.shape[1], c.d_last)
    act = named_activation(c.projector_activation)
    projector = w.at("model.multi_modal_projector")
    return [two_maps(x, projector, ("linear_1", "linear_2"), c.d_text, c.d_text, act, bias=c.bias)]


def convolved(x: Array, w: Weights, name: str, width: int, size: int, stride: int = 1) -> Array:
    """A convolution of all channels: [R C I] -> [R/s C/s O]."""
    return convolve_plane(x, w(f"{name}.weight", width, x.shape[2], size, size), stride) + w(f"{name}.bias", width)


def convolved_each(x: Array, w: Weights, name: str, times: int, size: int, stride: int = 1, bias: bool = True) -> Array:
    """A convolution with several output channels per channel: [R C I] -> [R/s C/s n·I]."""
    width = x.shape[2] * times
    x = np.repeat(x, times, axis=2) if times > 1 else x
    y = convolve_plane_each(x, w(f"{name}.weight", width, 1, size, size), stride)
    return y + w(f"{name}.bias", width) if bias else y


@step(Role.CONV_STEM)
def stem(x: Array, w: Weights, c: FastVlmVision) -> Array:
    """A vector for each sixteen pixels, by three convolutions: [H W 3] -> [H/4 W/4 D]."""
    x = gelu(convolved(x, w, "0.reparam_conv", c.widths[0], 3, 2))
    x = gelu(convolved_each(x, w, "1.reparam_conv", 1, 3, 2))
    return gelu(convolved(x, w, "2.reparam_conv", c.widths[0], 1))


@step(Role.CONV_STEM)
def stage_begins(x: Array, w: Weights, c: FastVlmVision, number: int, before: int) -> Array:
    """Fewer, wider vectors, and in later stages where they stand: [R C I] -> [R/2 C/2 O]."""
    if number > 0:
        x = convolved_each(x, w, "downsample.proj.0.reparam_conv", c.widths[number] // before, int(c.down_size), 2)
        x = gelu(x) if c.activated else x
        x = gelu(convolved(x, w, "downsample.proj.1.reparam_conv", c.widths[number], 1))
    return convolved_each(x, w, "pos_emb.reparam_conv", 1, PLACE) if number >= PLACED_FROM else x


@step(Role.LAYER)
def block(x: Array, w: Weights, c: FastVlmVision, number: int, kind: str) -> Array:
    """One block: [R C D] -> [R C D]."""
    if kind == "convolution":
        x = convolved_each(x, w, "token_mixer.reparam_conv", 1, int(c.mixer_size))
        return x + scaled(feed_forward(x, w.at("mlp"), c, number), w, "layer_scale", c)
    y = attention(layer_norm(x, w, "norm", c.norm_eps), w.at("token_mixer"), c)
    x = x + scaled(y, w, "layer_scale_1", c)
    return x + scaled(feed_forward(x, w.at("mlp"), c, number), w, "layer_scale_2", c)


def scaled(y: Array, w: Weights, name: str, c: FastVlmVision) -> Array:
    """A trained share of each channel: same shape."""
    width = y.shape[2]
    return y if c.layer_scale is None else y * w(f"{name}.gamma", width, 1, 1).reshape(width)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: FastVlmVision, number: int) -> Array:
    """Mix each channel over its neighborhood, then process each vector in a wider space: [R C D] -> [R C F] -> [R C
    D]."""
    width = c.widths[number]
    y = batch_norm(convolved_each(x, w, "conv.conv", 1, SIDE_IN_MLP, bias=False), w.at("conv.bn"), width)
    y = gelu(convolved(y, w, "fc1", int(width * c.ratios[number]), 1))
    return convolved(y, w, "fc2", width, 1)


@step(Role.LAYER_NORM)
def batch_norm(x: Array, w: Weights, width: int) -> Array:
    """Subtract a stored mean of each channel and divide by its deviation: same shape."""
    mean, variance = w.buffer("running_mean", width), w.buffer("running_var", width)
    w.buffer("num_batches_tracked", whole=True)
    return (x - mean) / np.sqrt(variance + BATCH_EPS) * w("weight", width) + w("bias", width)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: FastVlmVision) -> Array:
    """Let each place gather information from all: [R C D] -> [R C D]."""
    R, C, width = x.shape
    n = width // c.d_head
    parts = np.split(linear(x.reshape(R * C, width), w, "qkv", 3 * width), 3, axis=-1)
    q, k, v = (heads(part, n, c.d_head) for part in parts)
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "proj", width, bias=True).reshape(R, C, width)


@step(Role.CONV_STEM)
def last_convolution(x: Array, w: Weights, c: FastVlmVision) -> Array:
    """Wider vectors, each channel gated by its mean over the image: [R C D] -> [R C O]."""
    x = convolved_each(x, w, "reparam_conv", int(c.d_last) // c.widths[-1], 3)
    mean = x.mean(axis=1).mean(axis=0).reshape(1, 1, c.d_last)
    gate = convolved(relu(convolved(mean, w, "se.fc1", c.d_squeezed, 1)), w, "se.fc2", c.d_last, 1)
    return gelu(x * sigmoid(gate))
