"""The kind of a norm in words."""

from __future__ import annotations

from ...engine import terms
from ...engine.array import Node
from ...engine.steps import Role


def kind_of_norm(norm: Node) -> str:
    """`RMSNorm`, `RMSNorm without weights`, or `L2 normalization`, which never has weights."""
    has_none = norm.role is not Role.L2_NORM and not any(True for _ in norm.all_weights())
    return terms.of(norm) + (" without weights" if has_none else "")
