"""The vision tower of Gemma 3n: MobileNetV5, a convolutional net with attention in its last stages.

The vectors of the last two stages are put side by side and averaged in squares; an image of any size puts as many
tokens into the text. Source: transformers 5.23, modeling_gemma3n.py, and timm 1.0, mobilenetv5.py.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from ..architectures.config import Positive, Raw, Size, config, fixed, key, tabled
from ..errors import Problem, shorten
from ..interface import Array, KVCache, Weights
from ..ops import gelu_tanh, rms_norm
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .convnets import (
    NORM_EPS,
    Block,
    averaged,
    convolved,
    enlarged,
    inverted_bottleneck,
    rounded,
    run_block,
    spelled,
    stages_of,
)
from .gemma3n_audio import project
from .patches import square_or_not

SIDE = 768  # pixels of an image's sides: timm's
FUSED, WIDER = 2048, 2  # the width of what is made of several stages, and how much wider it is on the way
ARCHITECTURES = {
    "mobilenetv5_300m_enc": [
        ["er_k3_s2_e4_c128", "er_k3_s1_e4_c128", "er_k3_s1_e4_c128"],
        ["uir_a3_k5_s2_e6_c256", *["uir_a5_k0_s1_e4_c256", "uir_a3_k0_s1_e4_c256"] * 2],
        [
            "uir_a5_k5_s2_e6_c640",
            *["uir_a5_k0_s1_e4_c640"] * 7,
            "uir_a0_k0_s1_e1_c640",
            *["mqa_k3_h12_v2_s1_d64_c640", "uir_a0_k0_s1_e2_c640"] * 14,
        ],
        ["uir_a5_k5_s2_e6_c1280", *["mqa_k3_h16_s1_d96_c1280", "uir_a0_k0_s1_e2_c1280"] * 19],
    ]
}
ARGUMENTS = "model_args."


@config
class Gemma3nVision(TowerConfig):
    """Hyperparameters of Gemma 3n's vision tower, in forward order."""

    architecture: Literal["mobilenetv5_300m_enc"] = key("architecture", "mobilenetv5_300m_enc")
    n_channels: Size = fixed(3)
    d_stem: Size = key(ARGUMENTS + "stem_size", 64)
    stem_bias: bool = key(ARGUMENTS + "stem_bias", True)
    multiplier: float = key(ARGUMENTS + "channel_multiplier", 1.0)
    blocks: list[list[dict[str, Any]]] = key(ARGUMENTS + "block_args", lambda c: usual_blocks(c.architecture))
    layer_scale: float | None = key(ARGUMENTS + "layer_scale_init_value", 1e-5)
    fused: list[int] = key(ARGUMENTS + "msfa_indices", lambda c: [-2, -1])
    side: Size = key(ARGUMENTS + "msfa_output_resolution", 16)
    d_model: Size = key("hidden_size", 2048)
    # projector
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    n_ids: Size = key("vocab_size", 128)
    n_tokens: Size = key("vision_soft_tokens_per_image", 256)
    d_text: Size = key(TEXT_WIDTH)

    rewritten = frozenset({"model_args"})
    ignored = frozenset({"do_pooling", "vocab_offset", "num_classes", "label_names"})
    checked = ("stages", "used")

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The arguments for timm under names of their own."""
        arguments = tabled(raw.pop("model_args", None)) or {}
        return raw | {f"{ARGUMENTS}{name}": value for name, value in arguments.items()}

    def check(self) -> None:
        if int(self.d_model) != FUSED:
            raise Problem(f"hidden_size = {int(self.d_model)}", f"this net gives vectors of {FUSED} numbers")
        if int(self.side) ** 2 != int(self.n_tokens):
            raise Problem(
                f"vision_soft_tokens_per_image = {int(self.n_tokens)}", "give the square of msfa_output_resolution"
            )
        if not 0 <= self.multiplier <= 100:
            raise Problem(f"channel_multiplier = {self.multiplier}", "give a positive number")

    @property
    def stem(self) -> int:
        """The width after the first convolution."""
        return int(self.d_stem) if self.multiplier < 1 else rounded(int(self.d_stem) * self.multiplier)

    @property
    def stages(self) -> list[list[Block]]:
        """The blocks of each stage."""
        return stages_of(self.blocks, self.stem, self.multiplier)

    @property
    def used(self) -> list[int]:
        """The stages whose vectors are put side by side, 0 for the first convolution."""
        number = len(self.stages) + 1
        found = sorted({i if i >= 0 else number + i for i in self.fused})
        if not found or not 0 <= found[0] <= found[-1] < number or len(found) != len(self.fused):
            raise Problem(f"msfa_indices = {shorten(self.fused)}", "give stages of this net, each once")
        return found

    @property
    def unit(self) -> int:
        """The side, in pixels, of the square that becomes one vector after the last stage."""
        return 2 ** (len(self.stages) + 1)

    def grid(self, height: int, width: int) -> Grid:
        side = SIDE // self.unit
        return Grid(side, side)

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return square_or_not(grid, run)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows * self.unit, grid.columns * self.unit, self.n_channels


def usual_blocks(architecture: str) -> list[list[dict[str, Any]]]:
    """The blocks of an architecture of timm, by stages."""
    return [[spelled(block) for block in stage] for stage in ARCHITECTURES[architecture]]


@tower("gemma3n.vision_config", config=Gemma3nVision)
def forward(w: Weights, x: Array, grid: Grid, c: Gemma3nVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [H W 3] -> [M D]."""
    tower, done = w.at("model.vision_tower.timm_model"), 0
    x = first_convolution(x, tower.at("conv_stem"), c)
    found = [x] if 0 in c.used else []
    for number, blocks in enumerate(c.stages):
        name = f"stage {number + 1}"
        for block, w_block, _ in tower.layers(f"blocks.{number}", blocks, cache, name, done):
            x = run_block(x, w_block, block, c.layer_scale is not None)
        done += len(blocks)
        if number + 1 in c.used:
            found.append(x)
    x = fuse(found, tower.at("msfa"), c)
    x = x.reshape(x.shape[0] * x.shape[1], c.d_model) * math.sqrt(c.d_model)
    return [project(x, w.at("model.embed_vision"), c.n_ids, c.d_text, c.norm_eps)]


@step(Role.CONV_STEM)
def first_convolution(x: Array, w: Weights, c: Gemma3nVision) -> Array:
    """A vector for each four pixels: [H W 3] -> [H/2 W/2 D]."""
    x = convolved(x, w, "conv", c.stem, 3, 2)
    x = x + w("conv.bias", c.stem) if c.stem_bias else x
    return gelu_tanh(rms_norm(x, w, "bn", NORM_EPS))


@step(Role.FEED_FORWARD)
def fuse(found: list[Array], w: Weights, c: Gemma3nVision) -> Array:
    """The vectors of several stages side by side through a wider space, averaged in squares: [R C I] … -> [S S O]."""
    rows = int(found[0].shape[0])
    x = np.concatenate([enlarged(y, rows // int(y.shape[0])) for y in found], axis=-1)
    width = int(x.shape[2])
    block = Block("uir", width, FUSED, 1, 0, 0, 0, WIDER, 1, 1, 1, 1, False)
    x = inverted_bottleneck(x, w.at("ffn"), block)
    side = int(c.side)
    if rows != int(x.shape[1]) or rows % side:
        raise Problem(f"msfa_output_resolution = {side}", f"it must divide {rows}, the rows of the largest plane")
    return rms_norm(averaged(x, rows // side) if rows > side else x, w, "norm", NORM_EPS)
