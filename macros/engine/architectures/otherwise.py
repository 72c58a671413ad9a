"""Keys of a config.json that transformers 5.23 reads differently from the forward passes here, with its behavior.

A config class lists its own as `otherwise`; `tests/reference/variants.py` checks that there are no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

# A config's keys as they come.
Table: TypeAlias = Mapping[str, Any]


class Otherwise(NamedTuple):
    """A key of a config with which transformers computes something else, when, and what."""

    key: str
    differs: Callable[[Table], bool]
    says: str


def other_than(name: str, *alike: object, unless: str = "") -> Callable[[Table], bool]:
    """Whether a key is given and has another value than these; not where the key `unless` is, too."""

    def differs(raw: Table) -> bool:
        return raw.get(name) is not None and raw[name] not in alike and (not unless or raw.get(unless) is None)

    return differs


def theta_beside(usual: float, part: str = "") -> Callable[[Table], bool]:
    """Whether `rope_theta` is given, is not the `usual` one, and is next to the table that would need it.

    `part`: the kind of layers whose table that is, where each has one.
    """

    def differs(raw: Table) -> bool:
        whole = _table(raw.get("rope_parameters"))
        table = _table(whole.get(part)) if part else whole
        return raw.get("rope_theta") not in (None, usual) and table.get("rope_theta") is None

    return differs


def single_table(usual: float) -> Otherwise:
    """When `rope_parameters` is one table, and not one for each kind of layers: scaled, or not the `usual` theta."""

    def differs(raw: Table) -> bool:
        table = _table(raw.get("rope_parameters"))
        if any(isinstance(part, Mapping) for part in table.values()):
            return False
        plain = {"rope_type": "default", "type": "default", "rope_theta": raw.get("rope_theta", usual)}
        return any(value != plain.get(name) for name, value in table.items())

    return Otherwise("rope_parameters", differs, "transformers 5.23 ignores it if it is one table for all layers")


def _table(value: object) -> Table:
    return cast("Table", value) if isinstance(value, Mapping) else {}


EXPERTS_ACTIVATION = Otherwise(
    "hidden_act",
    other_than("hidden_act", "silu", "swish"),
    "transformers 5.23 has SiLU in its routed experts anyway",
)
NEVER_TIED = Otherwise(
    "tie_word_embeddings",
    other_than("tie_word_embeddings", False),
    "transformers 5.23 ties no weights of this type, and has a separate head",
)
