"""Keys of a config.json that transformers 5.24 reads differently from the forward passes here, with its behavior.

A config class lists its own as `otherwise`; `tests/reference/variants.py` checks that there are no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, cast

# A config's keys as they come.
Table: TypeAlias = Mapping[str, Any]

# Beside a width that was rounded: whether an odd one is counted, too.
ROUNDED = "head_dim_rounded_down"


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


def not_being(name: str, alike: object) -> Callable[[Table], bool]:
    """Whether a key has another value than this, or none."""

    def differs(raw: Table) -> bool:
        return raw.get(name) != alike

    return differs


def at_least(name: str, number: int) -> Callable[[Table], bool]:
    """Whether a key is this number or more."""

    def differs(raw: Table) -> bool:
        value = raw.get(name)
        return isinstance(value, int) and value >= number

    return differs


def unlike(name: str, other: str, usual: int) -> Callable[[Table], bool]:
    """Whether a key is given and differs from another one, with the usual value of that."""

    def differs(raw: Table) -> bool:
        return raw.get(name) is not None and raw[name] != raw.get(other, usual)

    return differs


def inner(table: str, name: str, *alike: object) -> Callable[[Table], bool]:
    """Whether a key of an inner table is given and has another value than these; not if the same key is next to the
    table, or in that of the rotary embedding.
    """

    def differs(raw: Table) -> bool:
        value = _table(raw.get(table)).get(name)
        others = (raw, _table(raw.get("rope_parameters")), _table(raw.get("rope_scaling")))
        return value is not None and value not in alike and all(one.get(name) is None for one in others)

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

    return Otherwise("rope_parameters", differs, "transformers 5.24 ignores it if it is one table for all layers")


def _table(value: object) -> Table:
    return cast("Table", value) if isinstance(value, Mapping) else {}


def _is_older(raw: Table) -> bool:
    table = _table(raw.get("rope_scaling"))
    return table.get("type") not in (None, "default") and table.get("rope_type") is None


OLDER_SCALING = Otherwise("rope_scaling", _is_older, "transformers 5.24 ignores it if it has type, and not rope_type")
NO_SCALING = Otherwise("rope_scaling", other_than("rope_scaling"), "transformers 5.24 ignores it")
EXPERTS_ACTIVATION = Otherwise(
    "hidden_act",
    other_than("hidden_act", "silu", "swish"),
    "transformers 5.24 has SiLU in its routed experts anyway",
)
NEVER_TIED = Otherwise(
    "tie_word_embeddings",
    other_than("tie_word_embeddings", False),
    "transformers 5.24 ties no weights of this type, and has a separate head",
)


def with_rounded_head(raw: Table, rounds_heads: Mapping[str, bool]) -> Table:
    """The keys with the width of a head that transformers rounds down, if that is how it finds one.

    `rounds_heads`: the types for which it does, and whether an odd width is possible.
    """
    kind, wide, n = raw.get("model_type"), raw.get("hidden_size"), raw.get("num_attention_heads")
    if not isinstance(kind, str) or kind not in rounds_heads or raw.get("head_dim") is not None:
        return raw
    if type(wide) is not int or type(n) is not int or not 0 < n <= wide or wide % n == 0:
        return raw
    return {**raw, "head_dim": wide // n, ROUNDED: rounds_heads[kind]}


def window_of_one(raw: Table) -> list[str]:
    """A line if a window is one token long."""
    if raw.get("sliding_window") != 1 or raw.get("use_sliding_window") is False:
        return []
    return ["sliding_window = 1: the cache of transformers 5.24 drops no rows from a window of one token"]


def rounded_head(raw: Table) -> list[str]:
    """A line if the width of a head was rounded down."""
    n, wide, head = (raw.get(name) for name in ("num_attention_heads", "hidden_size", "head_dim"))
    if ROUNDED not in raw or type(n) is not int or type(wide) is not int or head != wide // n:
        return []
    found = f"num_attention_heads = {n} does not divide hidden_size = {wide}, and head_dim is missing"
    return [f"{found}: transformers 5.24 rounds it down, to {head}"]
