"""Shared by image towers: configs, patches, places in a grid, attention in which every patch sees all others."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..architectures.config import Raw, activation, listed
from ..errors import Problem
from ..interface import Array, RopeTable, Weights
from ..ops import Rope, apply_rope, attend, heads, layer_norm, linear, rope_table, sigmoid
from ..ops.basic import Activation
from ..steps import Keeps, Role, step
from ..trace import Trace
from . import Grid, TowerConfig


class Patches(TowerConfig):
    """The base of configs of towers of images. Each declares these fields itself, in forward order."""

    n_channels: int
    n_frames: int = 1  # of a film in a patch; an image is shown as often
    patch: int
    d_model: int
    norm_eps: float
    n_heads: int
    d_head: int
    d_ff: int
    activation: str

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        named_activation(self.activation)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows * grid.columns, self.n_channels * self.n_frames * self.patch * self.patch


class AnySize(Patches):
    """The base for images of any size: sides are whole blocks of patches, and a token is made of each block."""

    merge: int

    def grid(self, height: int, width: int) -> Grid:
        return whole_blocks(height, width, self.patch, self.merge)

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return in_blocks(grid, self.merge, run)


class OneSize(Patches):
    """The base for images, or tiles of them, of one size; a token is made of each patch, or of each block of them."""

    image_size: int
    merge: int = 1

    def check(self) -> None:
        super().check()
        self.must_not_exceed("patch", "image_size")
        if self.merge > 1 and int(self.patch_rows) % int(self.merge):
            raise Problem(
                f"{self.key_of('image_size')} = {int(self.image_size)}, {int(self.patch_rows)} rows of patches",
                f"{int(self.merge)} must divide these",
            )

    @property
    def patch_rows(self) -> int:
        """The patches in a row."""
        return self.image_size // self.patch

    def tiles(self, height: int, width: int) -> int:
        """The tiles into which the processor cuts an image; several are followed by the whole image."""
        return 1

    def grid(self, height: int, width: int) -> Grid:
        tiles = self.tiles(height, width)
        return Grid(int(self.patch_rows), int(self.patch_rows), tiles + (tiles > 1))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        if int(self.merge) == 1:
            side = run.declare("n_patch_rows", grid.rows)
        else:
            side = run.declare("n_token_rows", grid.rows // int(self.merge)) * self.merge
        return Grid(side, side, grid.count)


def one_side(raw: Raw, *names: str) -> Raw:
    """Raw keys with a single number in place of an equal height and width."""
    for name in names:
        sides = listed(raw.get(name))
        if sides is not None and len(sides) == 2 and sides[0] == sides[1]:
            raw[name] = sides[0]
    return raw


def quick_gelu(x: Array) -> Array:
    """x · sigmoid(1.702 · x), nearly GELU: same shape (CLIP)."""
    return x * sigmoid(x * 1.702)


def named_activation(name: str) -> Activation:
    """The activation function that a config names, including one that only towers use."""
    return quick_gelu if name == "quick_gelu" else activation(name)


@step(Role.CONV_STEM)
def embed_patches(x: Array, w: Weights, name: str, width: int, shape: tuple[int, ...], *, bias: bool) -> Array:
    """A vector for each patch, by one product with all its pixels, stored as a convolution: [P I] -> [P D]."""
    kernel = w(f"{name}.weight", width, *shape).reshape(width, x.shape[1])
    y = np.einsum("pi,di->pd", x, kernel, optimize=True)
    return y + w(f"{name}.bias", width) if bias else y


def places(x: Array, rows: int, columns: int, merge: int = 1) -> tuple[Array, Array]:
    """Row and column of each patch: [P …] -> [P], [P].

    The patches that are merged later follow each other, block by block.
    """
    i = np.arange(x.shape[0], like=x)
    if merge == 1:
        return i // columns, i % columns
    block, inner = i // (merge * merge), i % (merge * merge)
    wide = columns // merge
    return (block // wide) * merge + inner // merge, (block % wide) * merge + inner % merge


@step(Role.EMBED_POSITIONS, keeps=Keeps.NOTHING)
def stretched_positions(
    row: Array,
    column: Array,
    table: Array,
    side: int,
    grid: Grid,
    *,
    to_corners: bool,
    cubic: bool = False,
    empty_around: bool = False,
) -> Array:
    """The position table, a square of `side`, stretched over the grid: each patch gets a mean of the rows around its
    place, by distance: [P], [P], [side² D] -> [P D].

    `to_corners`: corners lie on corners, otherwise borders on borders. `cubic`: of sixteen rows by Keys' kernel,
    not of the nearest four. `empty_around`: zeros stand around the table, otherwise its border goes on.
    """
    total = np.zeros((1, table.shape[1]), np.float32, like=table)
    down = taps(row, side, grid.rows, to_corners, cubic, empty_around)
    right = taps(column, side, grid.columns, to_corners, cubic, empty_around)
    for y, y_share in down:
        for x, x_share in right:
            total = total + np.take(table, y * int(side) + x, axis=0) * (y_share * x_share).astype(np.float32)[:, None]
    return total


def taps(
    place: Array, side: int, size: int, to_corners: bool, cubic: bool, empty_around: bool = False
) -> list[tuple[Array, Array]]:
    """The places on the table's axis that a patch's place is a mean of, each with its share."""
    side, size = int(side), int(size)
    at = place * ((side - 1) / max(size - 1, 1)) if to_corners else (place + 0.5) * (side / size) - 0.5
    before = np.floor(at)
    found = [
        (before + step, share_of(np.abs(at - before - step), cubic)) for step in (range(-1, 3) if cubic else range(2))
    ]
    if empty_around:
        found = [(tap, share * ((tap >= 0) & (tap < side))) for tap, share in found]
    return [(np.clip(tap, 0, side - 1).astype(np.int64), share) for tap, share in found]


def share_of(distance: Array, cubic: bool, a: float = -0.75) -> Array:
    """The share of a row at a distance: linear, or the cubic kernel of Keys with -0.75 or -0.5, as PyTorch has it."""
    if not cubic:
        return np.maximum(1 - distance, 0)
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def blocks(x: Array, grid: Grid, side: int) -> Array:
    """The patches of each block of `side` × `side` together, block by block: [R·C D] -> [M side² D]."""
    rows, columns, width = grid.rows // side, grid.columns // side, x.shape[1]
    return (
        x.reshape(rows, side, columns, side, width).transpose(0, 2, 1, 3, 4).reshape(rows * columns, side * side, width)
    )


def whole_blocks(height: int, width: int, patch: int, merge: int) -> Grid:
    """The patches of an image whose sides are rounded to whole blocks of patches, at least one."""
    block = int(patch) * int(merge)
    rows, columns = (max(round(side / block), 1) * int(merge) for side in (height, width))
    return Grid(rows, columns)


def at_least_a_block(height: int, width: int, block: int) -> tuple[int, int]:
    """The sides of an image, enlarged where one is smaller than a block of patches."""
    scale = max(block / height, block / width, 1)
    return math.floor(height * scale), math.floor(width * scale)


def in_blocks(grid: Grid, merge: int, run: Trace) -> Grid:
    """The grid in symbols: rows and columns of the blocks, which become tokens."""
    rows, columns = (
        run.declare(name, side // int(merge)) * merge
        for name, side in (("n_token_rows", grid.rows), ("n_token_columns", grid.columns))
    )
    return Grid(rows, columns, grid.count)


def square_or_not(grid: Grid, run: Trace) -> Grid:
    """The grid in symbols: one for both sides where they are equal."""
    rows = run.declare("n_token_rows", grid.rows)
    columns = rows if grid.rows == grid.columns else run.declare("n_token_columns", grid.columns)
    return Grid(rows, columns, grid.count)


def axial_rope(row: Array, column: Array, d_head: int, theta: float) -> RopeTable:
    """Cosines and sines of a patch's row for the first half of a head's pairs, and of its column for the second."""
    rope = Rope(theta)
    tables = rope_table(row, d_head // 2, rope), rope_table(column, d_head // 2, rope)
    cos, sin = (np.concatenate(both, axis=-1) for both in zip(*tables))
    return cos, sin


@step(Role.ATTENTION)
def joint_attention(
    x: Array, w: Weights, n: int, width: int, table: RopeTable | None, packed: str, output: str, bias: bool = True
) -> Array:
    """Let each patch gather information from all patches; queries, keys and values by one matrix: [P D] -> [P D]."""
    q, k, v = np.split(linear(x, w, packed, 3 * n * width, bias=bias), 3, axis=-1)
    q, k, v = (heads(part, n, width) for part in (q, k, v))
    if table is not None:
        q, k = apply_rope(q, table), apply_rope(k, table)
    return linear(attend(q, k, v, None, width**-0.5), w, output, x.shape[1], bias=bias)


@step(Role.ATTENTION)
def separate_attention(
    x: Array, w: Weights, n: int, width: int, output: str, table: RopeTable | None = None, bias: bool = True
) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    q, k, v = (heads(linear(x, w, name, n * width, bias=bias), n, width) for name in ("q_proj", "k_proj", "v_proj"))
    if table is not None:
        q, k = apply_rope(q, table), apply_rope(k, table)
    return linear(attend(q, k, v, None, width**-0.5), w, output, x.shape[1], bias=bias)


@step(Role.FEED_FORWARD)
def two_maps(
    x: Array, w: Weights, names: tuple[str, str], wide: int, width: int, act: Activation, *, bias: bool = True
) -> Array:
    """Process each vector separately, in a wider space: [P D] -> [P F] -> [P O]."""
    return linear(act(linear(x, w, names[0], wide, bias=bias)), w, names[1], width, bias=bias)


@step(Role.FEED_FORWARD)
def gated_maps(x: Array, w: Weights, wide: int, width: int, act: Activation, *, bias: bool = False) -> Array:
    """Process each vector separately, in a wider space, gated: [P D] -> [P F] -> [P O]."""
    gate = act(linear(x, w, "gate_proj", wide, bias=bias))
    return linear(gate * linear(x, w, "up_proj", wide, bias=bias), w, "down_proj", width, bias=bias)


class Vit(NamedTuple):
    """A ViT's part of a config, in a tower with a second encoder."""

    n_channels: int
    patch: int
    d_model: int
    n_layers: int
    norm_eps: float
    n_heads: int
    d_head: int
    d_ff: int
    activation: str


@step(Role.LAYER)
def vit_layer(
    x: Array, w: Weights, c: Patches | Vit, table: RopeTable | None = None, output: str = "out_proj"
) -> Array:
    """One transformer block by CLIP's names, in which every patch sees all others: [P D] -> [P D]."""
    y = layer_norm(x, w, "layer_norm1", c.norm_eps)
    x = x + separate_attention(y, w.at("self_attn"), c.n_heads, c.d_head, output, table)
    y = layer_norm(x, w, "layer_norm2", c.norm_eps)
    return x + two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))


def stored(w: Weights, name: str, *shape: int) -> None:
    """A matrix or a norm that is not used, and its bias."""
    w(f"{name}.weight", *shape)
    w(f"{name}.bias", shape[0])


def multihead_inputs(q: Array, k: Array, v: Array, w: Weights) -> tuple[Array, Array, Array]:
    """Queries, keys and values by three matrices in one tensor, as PyTorch stores them: [M D], [P D], [P D] -> the
    same."""
    width = q.shape[1]
    kernel, bias = w("in_proj_weight", 3 * width, width), w("in_proj_bias", 3 * width)
    kernels, biases = np.split(kernel, 3, axis=0), np.split(bias, 3)
    q, k, v = (np.einsum("ti,oi->to", x, m, optimize=True) + b for x, m, b in zip((q, k, v), kernels, biases))
    return q, k, v


@step(Role.ATTENTION)
def pooled(x: Array, w: Weights, c: Patches) -> Array:
    """A vector of the whole image, by a trained query, through a feed-forward network: [P D] -> [1 D] (SigLIP)."""
    probe = w("probe", 1, 1, c.d_model).reshape(1, c.d_model)
    q, k, v = (heads(part, c.n_heads, c.d_head) for part in multihead_inputs(probe, x, x, w.at("attention")))
    x = linear(attend(q, k, v, None, c.d_head**-0.5), w, "attention.out_proj", c.d_model, bias=True)
    y = layer_norm(x, w, "layernorm", c.norm_eps)
    return x + two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))


@step(Role.EMBED_POSITIONS, keeps=Keeps.NOTHING)
def averaged_positions(row: Array, column: Array, table: Array, side: int, grid: Grid, *, cubic: bool = False) -> Array:
    """The position table, a square of `side`, stretched over the grid from border to border; each patch gets a mean of
    all rows of it that it covers, by distance or by Keys' kernel: [P], [P], [side² D] -> [P D]."""
    total = np.zeros((1, table.shape[1]), np.float32, like=table)
    down, right = covered(row, side, int(grid.rows), cubic), covered(column, side, int(grid.columns), cubic)
    for y, y_share in down:
        for x, x_share in right:
            total = total + np.take(table, y * side + x, axis=0) * (y_share * x_share).astype(np.float32)[:, None]
    return total


def covered(place: Array, side: int, size: int, cubic: bool) -> list[tuple[Array, Array]]:
    """The places on the table's axis that a patch's place is a mean of, each with its share."""
    scale = side / size
    unit = max(scale, 1.0)
    reach = 2 * unit if cubic else unit
    centre = (place + 0.5) * scale
    first = np.floor(centre - reach + 0.5)
    found: list[tuple[Array, Array]] = []
    for number in range(2 * math.ceil(reach) + 1):
        at = first + number
        share = share_of(np.abs(at + 0.5 - centre) / unit, cubic, -0.5) * ((at >= 0) & (at < side))
        found.append((np.clip(at, 0, side - 1).astype(np.int64), share))
    whole: Array = found[0][1]
    for _, share in found[1:]:
        whole = whole + share
    return [(at, share / whole) for at, share in found]
