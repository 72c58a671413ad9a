"""Rotary position embedding (RoFormer, arXiv 2104.09864) and its published scalings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from ..errors import Problem
from ..interface import Array, RopeTable
from ..steps import Keeps, Role, step


@dataclass(frozen=True)
class Rope:
    """How fast each pair of a head's elements rotates with the position, and the part of a head that rotates.

    `scaling` names a row of `SCALINGS`, `more` holds that row's own numbers and `divisors` its numbers for each pair.
    `partial` is the share of a head that rotates, its first part; cosines and sines are multiplied by `amplitude`, or
    beyond the trained length by `longer` if that is another number. With `may_be_odd`, a head of odd width is counted,
    though it cannot run.
    """

    theta: float = 10000.0
    scaling: str = "default"
    factor: float = 1.0
    more: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    partial: float = 1.0
    amplitude: float = 1.0
    divisors: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]], hash=False)
    may_be_odd: bool = False
    longer: float | None = None

    def turning(self, head: int, counted: bool = True) -> int:
        """The number of a head's elements that rotate. Raises `Problem` if they do not form pairs."""
        share = Fraction(self.partial).limit_denominator(4096)
        width = head if share == 1 else head * share.numerator // share.denominator
        if int(width) + int(width) % 2 > int(head):
            if self.may_be_odd and counted:
                return width - 1
            raise Problem(
                f"a head of {int(head)} numbers, of which {int(width)} turn in pairs",
                "rotary embedding needs an even number",
            )
        return width

    def frequencies(self, width: int, positions: Array) -> Array:
        """Radians per position of each pair: [width / 2]. Two scalings depend on the range of `positions`."""
        return SCALINGS[self.scaling](self, width, positions)


def _default(rope: Rope, width: int, positions: Array) -> Array:
    """theta^(-2i/width) for pair i (RoFormer, arXiv 2104.09864, 3.2.2)."""
    return rope.theta ** (np.arange(0, width, 2, like=positions) / -width)


def _proportional(rope: Rope, width: int, positions: Array) -> Array:
    """A share of the pairs of a whole head rotates, each at the speed that it has among all of them; the others do not
    (Gemma 4)."""
    pair = np.arange(0, width, 2, like=positions) / 2
    turning = int(rope.more["partial_rotary_factor"] * int(width) // 2)
    return np.where(pair < turning, _default(rope, width, positions) / rope.factor, 0)


def _linear(rope: Rope, width: int, positions: Array) -> Array:
    """Positions divided by `factor` (arXiv 2306.15595)."""
    return _default(rope, width, positions) / rope.factor


def _dynamic(rope: Rope, width: int, positions: Array) -> Array:
    """Past the trained length, theta grows with the text (NTK-aware, arXiv 2309.00071, appendix A and B.1)."""
    if int(width) <= 2:
        raise Problem(f"{int(width)} numbers of a head turn", "dynamic rope scaling needs more than 2")
    trained = rope.more["max_position_embeddings"]
    stretch = np.maximum(positions[-1:] + 1, trained) / trained
    growth = (rope.factor * stretch - (rope.factor - 1)) ** (width / (width - 2))
    return (rope.theta * growth) ** (np.arange(0, width, 2, like=positions) / -width)


def _llama3(rope: Rope, width: int, positions: Array) -> Array:
    """Pairs that rotate slowly within the trained length are slowed down further by `factor`, fast ones not (Llama
    3.1)."""
    f, low, high = _default(rope, width, positions), rope.more["low_freq_factor"], rope.more["high_freq_factor"]
    turns = f * (rope.more["original_max_position_embeddings"] / (2 * math.pi))
    fast = np.clip((turns - low) / (high - low), 0, 1) if low != high else turns > low
    return f / rope.factor * (1 - fast) + f * fast


def _yarn(rope: Rope, width: int, positions: Array) -> Array:
    """Like `_llama3`, with a ramp over the pair's index (YaRN, arXiv 2309.00071, 3.2)."""

    trained = rope.more["original_max_position_embeddings"]
    if int(width) % 2:
        raise Problem(f"rope type yarn on {int(width)} numbers of a head", "an even number of them has to turn")

    def pair_with_turns(times: float) -> float:
        return width * math.log(trained / (times * 2 * math.pi)) / (2 * math.log(rope.theta))

    low, high = pair_with_turns(rope.more["beta_fast"]), pair_with_turns(rope.more["beta_slow"])
    if rope.more["truncate"]:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, int(width) - 1)
    f = _default(rope, width, positions)
    slow = np.clip((np.arange(0, width, 2, like=positions) / 2 - low) / (high - low or 0.001), 0, 1)
    return f / rope.factor * slow + f * (1 - slow)


def _longrope(rope: Rope, width: int, positions: Array) -> Array:
    """Each pair has two divisors, one within the trained length and one beyond it (arXiv 2402.13753)."""
    for name in ("short_factor", "long_factor"):
        if len(rope.divisors[name]) != (int(width) + 1) // 2:
            raise Problem(
                f"rope_scaling.{name} has {len(rope.divisors[name])} numbers", f"a head needs {(int(width) + 1) // 2}"
            )
    is_long = positions[-1:] + 1 > rope.more["original_max_position_embeddings"]
    divisor = np.where(is_long, np.array(rope.divisors["long_factor"]), np.array(rope.divisors["short_factor"]))
    return _default(rope, width, positions) / divisor


# Each of these: radians per position of each pair of the `width` numbers that rotate: [width / 2].
Scaling: TypeAlias = Callable[[Rope, int, Array], Array]

SCALINGS: dict[str, Scaling] = {
    "default": _default,
    "proportional": _proportional,
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
}


def yarn_mscale(factor: float, weight: float = 1.0) -> float:
    """YaRN's sharpening of attention for a text `factor` times longer (arXiv 2309.00071, 3.4)."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0


@step(Role.ROPE_TABLE)
def rope_table(positions: Array, width: int, rope: Rope, faster: Array | None = None) -> RopeTable:
    """Cosine and sine of every position's angles: [T] -> [T W/2], [T W/2].

    W is the part of a head of `width` elements that rotates, `faster` a factor for each pair's speed: [W/2].
    """
    frequencies = rope.frequencies(rope.turning(width), positions)
    angles = np.einsum("t,w->tw", positions, frequencies if faster is None else frequencies * faster)
    cos, sin = np.cos(angles), np.sin(angles)
    if rope.longer is not None:
        is_long = positions[-1:] + 1 > rope.more["original_max_position_embeddings"]
        amplitude = np.where(is_long, rope.longer, rope.amplitude)
        cos, sin = cos * amplitude, sin * amplitude
    elif rope.amplitude != 1:
        cos, sin = cos * rope.amplitude, sin * rope.amplitude
    return cos.astype(np.float32), sin.astype(np.float32)


@step(Role.ROPE, keeps=Keeps.NOTHING)
def apply_rope(x: Array, table: RopeTable) -> Array:
    """Rotate a head's pairs by the position's angle, its first half with its second half: [T N H] -> [T N H].

    A table narrower than the head rotates only the head's first part.
    """
    cos, sin = (t[:, None, :] for t in table)
    turning, rest = _part(x, table[0].shape[1])
    a, b = np.split(turning, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, *rest], axis=-1)


@step(Role.ROPE_PAIRS, keeps=Keeps.NOTHING)
def apply_rope_pairs(x: Array, table: RopeTable) -> Array:
    """Like `apply_rope`, with neighbors as pairs (GPT-J, GLM, Cohere): [T N H] -> [T N H]."""
    cos, sin = (t[:, None, :] for t in table)
    turning, rest = _part(x, table[0].shape[1])
    pairs = turning.reshape(*turning.shape[:-1], table[0].shape[1], 2)
    a, b = pairs[..., 0], pairs[..., 1]
    turned = np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(*turning.shape)
    return np.concatenate([turned, *rest], axis=-1) if rest else turned


def _part(x: Array, pairs: int) -> tuple[Array, list[Array]]:
    """The elements of a head that rotate, which come first, and the rest, if any: [T N H] -> [T N W], [[T N H−W]]."""
    if 2 * int(pairs) == int(x.shape[-1]):
        return x, []
    first, rest = np.split(x, [2 * pairs], axis=-1)
    return first, [rest]
