"""The kind and the places of a norm."""

from __future__ import annotations

from enum import Enum

from ...engine import terms
from ...engine.array import Node
from ...engine.steps import Role


def kind_of_norm(norm: Node) -> str:
    """`RMSNorm`, `RMSNorm without weights`, or `L2 normalization`, which never has weights."""
    has_none = norm.role is not Role.L2_NORM and not any(True for _ in norm.all_weights())
    return terms.of(norm) + (" without weights" if has_none else "")


class Place(Enum):
    """The place of a norm."""

    FIRST = "before the first layer"
    LAST = "after the last layer"
    READ = "after the last layer of an encoder"
    BEFORE = "before a part of a layer"
    AFTER = "after a part of a layer"
    STREAM = "in the residual stream"
