"""Rotary position embedding (RoFormer, arXiv 2104.09864) and its published scalings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from ..errors import Problem
from ..steps import Keeps, Role, step


@dataclass(frozen=True)
class Rope:
    """How fast each pair of a head's numbers turns with the position, and how much of a head turns at all.

    `scaling` names a row of `SCALINGS`, `more` holds that row's own numbers. `partial` is the share of a head that turns,
    its first part; cosines and sines are multiplied by `amplitude`.
    """

    theta: float = 10000.0
    scaling: str = "default"
    factor: float = 1.0
    more: Mapping[str, Any] = field(default_factory=dict, hash=False)
    partial: float = 1.0
    amplitude: float = 1.0

    def turning(self, head: int) -> int:
        """How many of a head's numbers turn."""
        share = Fraction(self.partial).limit_denominator(4096)
        width = head if share == 1 else head * share.numerator // share.denominator
        if int(width) + int(width) % 2 > int(head):
            raise Problem(
                f"a head of {int(head)} numbers, of which {int(width)} turn in pairs",
                "rotary embedding needs an even number",
            )
        return width

    def frequencies(self, width: int, positions):
        """Radians per position of each pair: [width / 2]. Two scalings look at how far `positions` reach."""
        return SCALINGS[self.scaling](self, width, positions)


def _default(rope, width, positions):
    """theta^(-2i/width) for pair i (RoFormer, arXiv 2104.09864, 3.2.2)."""
    return rope.theta ** (np.arange(0, width, 2, like=positions) / -width)


def _linear(rope, width, positions):
    """Positions divided by `factor` (arXiv 2306.15595)."""
    return _default(rope, width, positions) / rope.factor


def _dynamic(rope, width, positions):
    """Past the trained length, theta grows with the text (NTK-aware, arXiv 2309.00071, appendix A and B.1)."""
    if int(width) <= 2:
        raise Problem(f"{int(width)} numbers of a head turn", "dynamic rope scaling needs more than 2")
    stretch = (
        np.maximum(positions[-1:] + 1, rope.more["max_position_embeddings"]) / rope.more["max_position_embeddings"]
    )
    growth = (rope.factor * stretch - (rope.factor - 1)) ** (width / (width - 2))
    return (rope.theta * growth) ** (np.arange(0, width, 2, like=positions) / -width)


def _llama3(rope, width, positions):
    """Pairs that turn rarely within the trained length are slowed down by `factor`, fast ones not (Llama 3.1)."""
    f, low, high = _default(rope, width, positions), rope.more["low_freq_factor"], rope.more["high_freq_factor"]
    turns = f * (rope.more["original_max_position_embeddings"] / (2 * math.pi))
    fast = np.clip((turns - low) / (high - low), 0, 1) if low != high else turns > low
    return f / rope.factor * (1 - fast) + f * fast


def _yarn(rope, width, positions):
    """The same idea with a ramp over the pair's number (YaRN, arXiv 2309.00071, 3.2)."""

    def pair_that_turns(times):
        return (
            width
            * math.log(rope.more["original_max_position_embeddings"] / (times * 2 * math.pi))
            / (2 * math.log(rope.theta))
        )

    low, high = pair_that_turns(rope.more["beta_fast"]), pair_that_turns(rope.more["beta_slow"])
    if rope.more["truncate"]:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, int(width) - 1)
    f = _default(rope, width, positions)
    slow = np.clip((np.arange(0, width, 2, like=positions) / 2 - low) / (high - low or 0.001), 0, 1)
    return f / rope.factor * slow + f * (1 - slow)


def _longrope(rope, width, positions):
    """Each pair has a divisor of its own, one for texts within the trained length and one for longer ones (arXiv 2402.13753)."""
    for name in ("short_factor", "long_factor"):
        if len(rope.more[name]) != (int(width) + 1) // 2:
            raise Problem(
                f"rope_scaling.{name} has {len(rope.more[name])} numbers", f"a head needs {(int(width) + 1) // 2}"
            )
    is_long = positions[-1:] + 1 > rope.more["original_max_position_embeddings"]
    divisor = np.where(is_long, np.array(rope.more["long_factor"]), np.array(rope.more["short_factor"]))
    return _default(rope, width, positions) / divisor


SCALINGS: dict[str, Callable] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "llama3": _llama3,
    "yarn": _yarn,
    "longrope": _longrope,
}


def yarn_mscale(factor: float, weight: float = 1.0) -> float:
    """How much YaRN sharpens attention for a text `factor` times longer (arXiv 2309.00071, 3.4)."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0


@step(Role.ROPE_TABLE)
def rope_table(positions, width: int, rope: Rope):
    """Cosine and sine of every position's angles, for the part of a head of `width` that turns: [T] -> [T W/2], [T W/2]."""
    angles = np.einsum("t,w->tw", positions, rope.frequencies(rope.turning(width), positions))
    cos, sin = np.cos(angles), np.sin(angles)
    if rope.amplitude != 1:
        cos, sin = cos * rope.amplitude, sin * rope.amplitude
    return cos.astype(np.float32), sin.astype(np.float32)


@step(Role.ROPE, keeps=Keeps.NOTHING)
def apply_rope(x, table):
    """Turn a head's pairs by the position's angle, its first half with its second half: [T N H] -> [T N H].

    A table narrower than the head turns the head's first part only.
    """
    cos, sin = (t[:, None, :] for t in table)
    turning, rest = _part(x, 2 * table[0].shape[1])
    a, b = np.split(turning, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, *rest], axis=-1)


@step(Role.ROPE_PAIRS, keeps=Keeps.NOTHING)
def apply_rope_pairs(x, table):
    """The same with neighbours as pairs (GPT-J, GLM, Cohere): [T N H] -> [T N H]."""
    cos, sin = (t[:, None, :] for t in table)
    turning, rest = _part(x, 2 * table[0].shape[1])
    pairs = turning.reshape(*turning.shape[:-1], table[0].shape[1], 2)
    a, b = pairs[..., 0], pairs[..., 1]
    turned = np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(*turning.shape)
    return np.concatenate([turned, *rest], axis=-1) if rest else turned


def _part(x, width):
    """The first `width` numbers of each head, and a list of the rest, if there is one."""
    if int(width) == int(x.shape[-1]):
        return x, []
    first, rest = np.split(x, [width], axis=-1)
    return first, [rest]
