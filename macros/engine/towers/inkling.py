"""The vision tower of Inkling: each patch by itself, folded step by step into one vector; no patch sees another.

A layer joins the vectors of a square of pixels, or of two frames, and maps them. Source: transformers 5.24,
modeling_inkling.py and image_processing_inkling.py.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..architectures.config import Positive, Size, config, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import gelu, linear, rms_norm
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower

UNIT = 64  # of which widths are multiples


class Scale(NamedTuple):
    """The content of a vector (frames of a square of pixels), and its width."""

    frames: int
    side: int
    width: int


@config
class InklingVision(TowerConfig):
    """Hyperparameters of Inkling's vision tower, in forward order."""

    n_channels: Size = key("num_channels", 3)
    n_frames: Size = key("temporal_patch_size", 2)
    patch: Size = key("patch_size", 40)
    n_layers: Size = key("num_hidden_layers", 24, also=("n_layers",))
    norm_eps: Positive = fixed(1e-6)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"hidden_size", "num_attention_heads", "rms_norm_eps", "text_hidden_size"})
    checked = ("scales",)

    def check(self) -> None:
        if int(self.patch) < 2 or int(self.n_frames) < 2 or int(self.patch) > 4096 or int(self.n_frames) > 64:
            raise Problem(
                f"patch_size = {int(self.patch)}, temporal_patch_size = {int(self.n_frames)}",
                "give 2 to 4096 pixels and 2 to 64 frames, which are folded",
            )
        if int(self.n_layers) > 256:
            raise Problem(f"num_hidden_layers = {int(self.n_layers)}", "give at most 256")

    @property
    def scales(self) -> list[Scale]:
        """The content of a vector before the first layer and after each."""
        found = [Scale(1, 1, int(self.n_channels))]
        side = 1
        for factor in reversed(prime_factors(int(self.patch))):
            side *= factor
            found.append(Scale(1, side, math.ceil(side * side * int(self.n_channels) / UNIT) * UNIT))
        frames = 1
        for factor in reversed(prime_factors(int(self.n_frames))):
            frames *= factor
            found.append(Scale(frames, side, side * side * int(self.n_channels) * frames * UNIT))
        whole = math.log(int(self.patch) ** 2 * int(self.n_frames) * int(self.n_channels))
        wanted = [whole * i / int(self.n_layers) for i in range(int(self.n_layers) + 1)]
        sizes = [math.log(scale.frames * scale.side**2) for scale in found]
        chosen = nearest_places(wanted, sizes) if len(wanted) > len(sizes) else different_places(wanted, sizes)
        return [found[0], *(found[i] for i in chosen[1:-1]), found[-1]]

    def grid(self, height: int, width: int) -> Grid:
        return Grid(math.ceil(height / int(self.patch)), width // int(self.patch) + 1)

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(run.declare("n_patches", grid.rows * grid.columns), 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows * grid.columns, self.n_frames * self.patch * self.patch * self.n_channels


def prime_factors(number: int) -> list[int]:
    """The prime factors of a number, in ascending order."""
    found: list[int] = []
    factor = 2
    while factor * factor <= number:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return [*found, number] if number > 1 else found


def nearest_places(wanted: list[float], sizes: list[float]) -> list[int]:
    """The place of the nearest size for each."""
    return [min(range(len(sizes)), key=lambda i: abs(sizes[i] - size)) for size in wanted]


def different_places(wanted: list[float], sizes: list[float]) -> list[int]:
    """A different place for each, in order, such that the differences are smallest together."""
    costs = [0.0] * (len(sizes) + 1)
    steps: list[list[bool]] = []
    for size in wanted:
        before, taken = costs, [False]
        costs = [math.inf]
        for i, other in enumerate(sizes):
            with_it = before[i] + abs(other - size)
            taken.append(with_it < costs[i])
            costs.append(min(with_it, costs[i]))
        steps.append(taken)
    found: list[int] = []
    place = len(sizes)
    for taken in reversed(steps):
        while not taken[place]:
            place -= 1
        place -= 1
        found.append(place)
    return found[::-1]


@tower("inkling_mm_model.vision_config", config=InklingVision)
def forward(w: Weights, x: Array, grid: Grid, c: InklingVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P D]."""
    tower = w.at("model.vision_tower")
    P, scales = x.shape[0], c.scales
    x = x.reshape(P, c.n_frames, c.patch, c.patch, c.n_channels)
    for number, (before, after) in enumerate(zip(scales, scales[1:])):
        is_last = number == int(c.n_layers) - 1
        x = fold(x, tower.at(f"encoder_layers.{number}"), before, after, c, is_last)
    return [rms_norm(x.reshape(P, c.d_text), tower, "final_norm", c.norm_eps)]


@step(Role.FEED_FORWARD)
def fold(x: Array, w: Weights, before: Scale, after: Scale, c: InklingVision, is_last: bool) -> Array:
    """Vectors of neighboring pixels or frames joined and mapped: [P T H W I] -> [P T/t H/s W/s O]."""
    P, width = x.shape[0], x.shape[4]
    t, s = after.frames // before.frames, after.side // before.side
    frames, rows, columns = x.shape[1] // t, x.shape[2] // s, x.shape[3] // s
    x = x.reshape(P, frames, t, rows, s, columns, s, width).transpose(0, 1, 3, 5, 2, 4, 6, 7)
    out = c.d_text if is_last else after.width
    y = linear(x.reshape(P * frames * rows * columns, t * s * s * width), w, "projection", out)
    if not is_last:
        y = gelu(rms_norm(y, w, "layer_norm", c.norm_eps))
    return y.reshape(P, frames, rows, columns, out)
