"""Convolutional nets as timm describes them: stages of blocks, whose planes of vectors get smaller and wider.

The blocks are those of MobileNetV5: an edge residual, a universal inverted bottleneck and multi-query attention.
Source: timm 1.0, _efficientnet_blocks.py and _efficientnet_builder.py (arXiv 2404.10518).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..architectures.config import listed, tabled
from ..errors import Problem, shorten
from ..interface import Array, Weights
from ..ops import attend, gelu_tanh, heads, rms_norm
from ..steps import Role, step
from .sounds import convolve_plane, convolve_plane_each

NORM_EPS = 1e-6
# The kinds of blocks, by timm's letters.
LETTERS = {
    "er": {"k": "exp_kernel_size", "s": "stride", "e": "exp_ratio", "c": "out_chs"},
    "uir": {
        "a": "dw_kernel_size_start",
        "k": "dw_kernel_size_mid",
        "s": "stride",
        "e": "exp_ratio",
        "c": "out_chs",
    },
    "mqa": {"k": "dw_kernel_size", "h": "num_heads", "v": "kv_stride", "s": "stride", "d": "key_dim", "c": "out_chs"},
}
# The keys of a block's first, middle and last kernel.
KERNELS = {
    "er": ("exp_kernel_size", "", ""),
    "uir": ("dw_kernel_size_start", "dw_kernel_size_mid", "dw_kernel_size_end"),
    "mqa": ("", "dw_kernel_size", ""),
}
MOST_BLOCKS, MOST_STAGES = 1000, 8


class Block(NamedTuple):
    """A block: its kind, the widths before and after, the stride, the kernels' sides, how much wider it is inside; of
    attention the heads, the widths of keys and values, and their stride."""

    kind: str
    before: int
    after: int
    stride: int
    first: int
    middle: int
    last: int
    wider: float
    n_heads: int
    d_key: int
    d_value: int
    kv_stride: int
    adds: bool

    @property
    def inner(self) -> int:
        """The width inside."""
        return rounded(self.before * self.wider)

    def __str__(self) -> str:
        return f"{self.kind} {self.first} {self.middle} {self.last}"


def rounded(width: float) -> int:
    """A width as a multiple of 8, and not much less."""
    number = max(8, int(width + 4) // 8 * 8)
    return number + 8 if number < 0.9 * width else number


def spelled(text: str) -> dict[str, Any]:
    """A block of timm's spelling, such as `uir_a3_k5_s2_e6_c256`, as a table."""
    kind, *parts = text.split("_")
    found: dict[str, Any] = {"block_type": kind}
    for part in parts:
        name = LETTERS[kind][part[0]]
        found[name] = float(part[1:]) if name == "exp_ratio" else int(part[1:])
    if "key_dim" in found:
        found["value_dim"] = found["key_dim"]
    return found


def stages_of(described: object, stem: int, multiplier: float) -> list[list[Block]]:
    """The blocks of each stage. Raises `Problem` for any that timm would not build of the known kinds."""
    stages = listed(described) or []
    tables = [[tabled(one) or {} for one in listed(stage) or []] for stage in stages]
    if not tables or len(tables) > MOST_STAGES or not all(tables) or sum(map(len, tables)) > MOST_BLOCKS:
        raise Problem(f"block_args = {shorten(described)}", f"give one to {MOST_STAGES} stages of blocks")
    found: list[list[Block]] = []
    width = stem
    for table in tables:
        blocks: list[Block] = []
        for one in table:
            blocks.append(block_of(one, width, 1 if blocks else 2, multiplier))
            width = blocks[-1].after
        found.append(blocks)
    return found


def block_of(table: Mapping[str, Any], before: int, stride: int, multiplier: float) -> Block:
    """A block that follows vectors of this width; the first of a stage halves rows and columns."""
    kind = str(table.get("block_type"))
    known = kind in KERNELS and not any(table.get(name) for name in ("se_ratio", "force_in_chs", "s2d", "act_layer"))
    if not known or table.get("pw_kernel_size", 1) != 1 or (stride == 2 and table.get("stride") != 2):
        raise Problem(f"a block {shorten(dict(table))}", "give er, uir or mqa, and the first of a stage a stride of 2")
    usual = 0 if kind == "uir" else 3
    first, middle, last = (number(table, name, usual, 0) if name else 0 for name in KERNELS[kind])
    if any(size % 2 == 0 and size or size > 31 for size in (first, middle, last)):
        raise Problem(f"a block {shorten(dict(table))}", "give odd sizes of kernels, up to 31")
    wider = table.get("exp_ratio", 1.0)
    if isinstance(wider, bool) or not isinstance(wider, int | float) or not 0 < wider <= 100:
        raise Problem(f"exp_ratio = {shorten(wider)}", "give a positive number")
    if stride == 2 and (kind == "mqa" or not first + middle + last):
        raise Problem(
            f"a block {shorten(dict(table))}", "begin a stage with er, or with uir and a kernel for the stride"
        )
    after = number(table, "out_chs", 0, 1)
    after = rounded(after * multiplier) if multiplier else after
    heads, kv_stride = (number(table, name, 1, 1) for name in ("num_heads", "kv_stride"))
    d_key, d_value = (number(table, name, 64, 1) for name in ("key_dim", "value_dim"))
    adds = before == after and stride == 1 and not table.get("noskip")
    sizes = first, middle, last
    return Block(kind, before, after, stride, *sizes, float(wider), heads, d_key, d_value, kv_stride, adds)


def number(table: Mapping[str, Any], name: str, usual: int, least: int) -> int:
    """A size of a block. Raises `Problem` unless it is a whole number."""
    found = table.get(name, usual)
    if isinstance(found, bool) or not isinstance(found, int) or not least <= found < 100_000:
        raise Problem(f"{name} = {shorten(found)}", f"give a whole number, {least} or more")
    return found


@step(Role.LAYER)
def run_block(x: Array, w: Weights, b: Block, scaled: bool) -> Array:
    """One block: [R C I] -> [R/s C/s O]."""
    y = {"er": edge_residual, "uir": inverted_bottleneck, "mqa": multi_query}[b.kind](x, w, b)
    if scaled and b.kind != "er":
        y = y * w("layer_scale.gamma", b.after)
    return x + y if b.adds else y


def convolved(x: Array, w: Weights, name: str, width: int, size: int, stride: int = 1, *, each: bool = False) -> Array:
    """A convolution, of all channels or of each by itself, with as much padding as its stride needs: [R C I] -> [R/s
    C/s O]."""
    R, C = (int(side) for side in x.shape[:2])
    above, left = (max((-(-side // stride) - 1) * stride + size - side, 0) // 2 for side in (R, C))
    kernel = w(f"{name}.weight", width, 1 if each else x.shape[2], size, size)
    return (convolve_plane_each if each else convolve_plane)(x, kernel, stride, (above, left))


def normed(
    x: Array, w: Weights, name: str, width: int, size: int, stride: int = 1, *, each: bool = False, act: bool = True
) -> Array:
    """A convolution with its norm, and an activation function: [R C I] -> [R/s C/s O]."""
    y = rms_norm(convolved(x, w, f"{name}.conv", width, size, stride, each=each), w, f"{name}.bn", NORM_EPS)
    return gelu_tanh(y) if act else y


@step(Role.FEED_FORWARD)
def edge_residual(x: Array, w: Weights, b: Block) -> Array:
    """A convolution of all channels into a wider space, and a map: [R C I] -> [R/s C/s F] -> [R/s C/s O]."""
    y = gelu_tanh(rms_norm(convolved(x, w, "conv_exp", b.inner, b.first, b.stride), w, "bn1", NORM_EPS))
    return rms_norm(convolved(y, w, "conv_pwl", b.after, 1), w, "bn2", NORM_EPS)


@step(Role.FEED_FORWARD)
def inverted_bottleneck(x: Array, w: Weights, b: Block) -> Array:
    """Map into a wider space and back, with depthwise convolutions before, between or after the maps:
    [R C I] -> [R/s C/s F] -> [R/s C/s O].
    """
    if b.first:
        x = normed(x, w, "dw_start", b.before, b.first, 1 if b.middle else b.stride, each=True, act=False)
    x = normed(x, w, "pw_exp", b.inner, 1)
    if b.middle:
        x = normed(x, w, "dw_mid", b.inner, b.middle, b.stride, each=True)
    x = normed(x, w, "pw_proj", b.after, 1, act=False)
    if b.last:
        stride = 1 if b.first or b.middle else b.stride
        x = normed(x, w, "dw_end", b.after, b.last, stride, each=True, act=False)
    return x


@step(Role.ATTENTION)
def multi_query(x: Array, w: Weights, b: Block) -> Array:
    """Let each place gather information from all places, or from every second one: [R C D] -> [R C O].

    The heads share keys and values."""
    R, C, _ = x.shape
    y = rms_norm(x, w, "norm", NORM_EPS)
    q = convolved(y, w, "attn.query.proj", b.n_heads * b.d_key, 1)
    k, v = (_shared(y, w, f"attn.{name}", b, width) for name, width in (("key", b.d_key), ("value", b.d_value)))
    q = heads(q.reshape(R * C, b.n_heads * b.d_key), b.n_heads, b.d_key)
    mixed = attend(q, k, v, None, b.d_key**-0.5)
    return convolved(mixed.reshape(R, C, b.n_heads * b.d_value), w, "attn.output.proj", b.after, 1)


def _shared(x: Array, w: Weights, name: str, b: Block, width: int) -> Array:
    """Keys or values, one for all heads: [R C D] -> [R/s·C/s 1 H]."""
    if b.kv_stride > 1:
        x = convolved(x, w, f"{name}.down_conv", b.before, b.middle, b.kv_stride, each=True)
        x = rms_norm(x, w, f"{name}.norm", NORM_EPS)
    x = convolved(x, w, f"{name}.proj", width, 1)
    return x.reshape(x.shape[0] * x.shape[1], 1, width)


def enlarged(x: Array, times: int) -> Array:
    """Each vector of a plane repeated in both directions: [R C D] -> [R·n C·n D]."""
    return np.repeat(np.repeat(x, times, axis=0), times, axis=1) if times > 1 else x


def averaged(x: Array, times: int) -> Array:
    """The mean of each square of vectors: [R·n C·n D] -> [R C D]."""
    R, C, D = x.shape
    return x.reshape(R // times, times, C // times, times, D).mean(axis=3).mean(axis=1)
