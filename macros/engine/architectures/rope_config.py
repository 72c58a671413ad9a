"""Turns a published config's rotary embedding keys into one table, and the table into a rotary embedding."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from ..errors import Problem, nearest, shorten
from ..interface import Mask
from ..ops import Rope, SlidingWindow, yarn_mscale
from .otherwise import ROUNDED

# A config's keys, or those of a table in it, as they come.
Table: TypeAlias = dict[str, Any]

# Keys from before transformers' `rope_parameters`, which configs still have next to it.
OLDER_ROPE_KEYS = frozenset({"rope_scaling", "rope_theta", "partial_rotary_factor"})


def fold_rope(raw: Table) -> Table:
    """`rope_theta` + `rope_scaling` (before transformers 5) and `rope_parameters` (since) as one `rope_parameters`.

    It is one table, or one for each layer type ("full_attention": {...}). A key next to it applies to all that lack it,
    but an `original_max_position_embeddings` next to it takes precedence over one inside. Where both tables are given,
    transformers reads the older one alone.
    """
    inside: Table = {}
    for name in ("rope_parameters", "rope_scaling"):
        part = raw.pop(name, None)
        if part is not None and not isinstance(part, Mapping):
            raise Problem(f"{name} = {shorten(part)}: expected a table of keys", "correct the value")
        inside = dict(cast("Table", part)) if part else inside
    beside = {
        "rope_theta": raw.pop("rope_theta", None),
        "partial_rotary_factor": raw.pop("partial_rotary_factor", None),
        "max_position_embeddings": raw.get("max_position_embeddings"),
    }
    before = {name: raw.get(name) for name in ("original_max_position_embeddings", ROUNDED)}

    def complete(table: Mapping[str, Any]) -> Table:
        return {k: v for part in (beside, table, before) for k, v in part.items() if v is not None}

    tables = {k: complete(cast("Table", part)) for k, part in inside.items() if isinstance(part, Mapping)}
    return {**raw, "rope_parameters": tables or complete(inside)}


def fold_rope_or(raw: Table, usual: Table) -> Table:
    """`fold_rope`, if a config without a table has the `usual` one, which goes before keys next to it."""
    has_table = raw.get("rope_parameters") is not None or raw.get("rope_scaling")
    return fold_rope(raw if has_table else {**raw, "rope_parameters": usual})


def fold_rope_by_layer_type(raw: Table, sliding_theta: float | None = None) -> Table:
    """`fold_rope`, if a single table is the full_attention layers'; the others' embedding is not scaled."""
    raw = fold_rope(raw)
    table: Table = raw["rope_parameters"]
    if any(isinstance(part, Mapping) for part in table.values()):
        return raw
    sliding_theta = table.get("rope_theta") if sliding_theta is None else sliding_theta
    sliding = {"rope_theta": sliding_theta, ROUNDED: table.get(ROUNDED)}
    return {**raw, "rope_parameters": {"full_attention": table, "sliding_attention": sliding}}


def fold_rope_of_kinds(raw: Table, usual: Mapping[str, Table]) -> Table:
    """`fold_rope`, if a config without a table for each layer type has the `usual` ones; its keys next to them take
    precedence."""
    raw = fold_rope(raw)
    table: Table = raw["rope_parameters"]
    if any(isinstance(part, Mapping) for part in table.values()):
        return raw
    return {**raw, "rope_parameters": {name: {**part, **table} for name, part in usual.items()}}


def with_rope_of_class(raw: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """The config with its class's own rotary embedding where it has no table: a `rope_theta` is not read then."""
    if raw.get("rope_parameters") is not None or raw.get("rope_scaling"):
        return dict(raw)
    return {name: value for name, value in raw.items() if name not in OLDER_ROPE_KEYS} | {"rope_parameters": usual}


def read_rope(table: Mapping[str, Any], theta: float = 10000.0, layer_type: str | None = None) -> Rope:
    """The rotary embedding that a `rope_parameters` table describes, or its part for `layer_type`.

    `theta` is the architecture's if the table has none. A layer type without a part has the default embedding. Raises
    `Problem` naming the key.
    """
    if any(isinstance(part, Mapping) for part in table.values()):
        if layer_type is None:
            raise Problem(
                f"rope_parameters has a table for each of {', '.join(table)}",
                "this architecture has one for all layers",
            )
        table = table.get(layer_type, {})
    kind = table.get("rope_type", table.get("type", "default")) or "default"
    kind = {"su": "longrope", "mrope": "default"}.get(kind, kind) if isinstance(kind, str) else kind
    if kind not in ("default", *_ROPE_KEYS):
        raise Problem(
            f"rope_scaling.rope_type = {shorten(kind)}: unknown",
            nearest(kind, _ROPE_KEYS, f"known ones: default, {', '.join(_ROPE_KEYS)}"),
        )

    def number(name: str, default: float | None = None) -> float:
        is_left_out = table.get(name) is None or (name in ("beta_fast", "beta_slow") and table[name] == 0)
        value = default if is_left_out else table[name]
        if value is None:
            raise Problem(f"rope_scaling.{name} is missing", f"rope type {kind} needs it")
        return _positive(name, value)

    theta, partial = float(number("rope_theta", theta)), float(number("partial_rotary_factor", 1.0))
    if theta == 1:
        raise Problem("rope_theta = 1: all pairs would rotate at the same speed", "correct the value")
    if partial > 1:
        raise Problem(f"partial_rotary_factor = {partial}: expected a share, at most 1", "correct the value")
    odd = table.get(ROUNDED) is True
    if kind == "default":
        return Rope(theta, partial=partial, may_be_odd=odd)
    if kind == "proportional":
        return Rope(theta, kind, float(number("factor", 1.0)), {"partial_rotary_factor": partial})
    longest = number("max_position_embeddings") if table.get("max_position_embeddings") is not None else None
    divisors = {name: _positives(name, table.get(name)) for name in _ROPE_DIVISORS.get(kind, ())}
    usual = {"original_max_position_embeddings": longest, "beta_fast": 32.0, "beta_slow": 1.0}
    more = {name: number(name, usual.get(name)) for name in _ROPE_KEYS[kind]}
    if kind == "yarn":
        truncate = True if table.get("truncate") is None else table["truncate"]
        more["truncate"] = truncate if isinstance(truncate, bool) else _positive("truncate", truncate)
    trained = more.get("original_max_position_embeddings")
    stretch = longest / trained if kind in ("yarn", "longrope") and longest and trained else None
    factor = float(number("factor", stretch))
    amplitude = _amplitude(kind, factor, more, table, number)
    return Rope(theta, kind, factor, more, partial, amplitude, divisors, may_be_odd=odd)


def rope_of_mask(table: Mapping[str, Any], mask: Mask, theta: float = 10000.0) -> Rope:
    """The rotary embedding of the layers with this mask, from `rope_parameters` with a table for each layer type."""
    return read_rope(table, theta, "sliding_attention" if isinstance(mask, SlidingWindow) else "full_attention")


# The numbers that each published kind of rope scaling reads besides `factor`, and those that it has for each pair.
_ROPE_KEYS: dict[str, tuple[str, ...]] = {
    "proportional": (),
    "linear": (),
    "dynamic": ("max_position_embeddings",),
    "llama3": ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "yarn": ("beta_fast", "beta_slow", "original_max_position_embeddings"),
    "longrope": ("original_max_position_embeddings",),
}
_ROPE_DIVISORS = {"longrope": ("short_factor", "long_factor")}


# Keys that a table may have besides those: which embedding it is, what an architecture of its own reads, the parts of
# an image's places, and what changes nothing.
_OTHER_ROPE_KEYS = frozenset(
    """rope_type type rope_theta partial_rotary_factor factor attention_factor mscale mscale_all_dim truncate
    llama_4_scaling_beta mrope_section mrope_interleaved alpha short_mscale long_mscale finetuned""".split()
)
_KNOWN_ROPE_KEYS = sorted(_OTHER_ROPE_KEYS.union(*_ROPE_KEYS.values(), *_ROPE_DIVISORS.values()))


def check_rope_tables(raw: Mapping[str, Any]) -> None:
    """Raise `Problem` for an unknown key of `rope_scaling` or `rope_parameters`, and for a YaRN without its factor,
    which would otherwise follow from the lengths."""
    for name, whole in _tables(raw):
        inner = {
            f"{name}.{kind}": cast("Mapping[str, Any]", part)
            for kind, part in whole.items()
            if isinstance(part, Mapping)
        }
        for where, table in (inner or {name: whole}).items():
            if unknown := next((key for key in table if key not in _KNOWN_ROPE_KEYS), None):
                mend = nearest(unknown, _KNOWN_ROPE_KEYS, f"known ones: {', '.join(_KNOWN_ROPE_KEYS)}")
                raise Problem(f"config.{where}.{unknown}: unknown key", mend)
            if "yarn" in (table.get("rope_type"), table.get("type")) and table.get("factor") is None:
                raise Problem(f"config.{where}.factor is missing", "rope type yarn needs it")


def check_sections(raw: Mapping[str, Any], config: Any) -> None:
    """Raise `Problem` unless the parts of an `mrope_section` are, together, the pairs of a head that turn."""
    for name, table in _tables(raw):
        parts = table.get("mrope_section")
        rope = None if parts is None else getattr(config, "rope", None)
        if not isinstance(rope, Rope):
            continue
        turning = getattr(config, "qk_rope_head_dim", None)  # of latent attention
        pairs = int(turning or rope.turning(config.d_head)) // 2
        numbers = cast("list[object]", parts) if isinstance(parts, list) else []
        if sum(_whole(name, number) for number in numbers) != pairs:
            what = f"config.{name}.mrope_section = {shorten(cast('object', parts))}"
            raise Problem(f"{what}: its sum is not {pairs}, the pairs of a head that turn", "correct the value")


def _tables(raw: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The tables of a config that describe its rotary embedding, by their keys."""
    named = ((name, raw.get(name)) for name in ("rope_scaling", "rope_parameters"))
    return [(name, cast("Mapping[str, Any]", table)) for name, table in named if isinstance(table, Mapping)]


def _whole(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Problem(f"config.{name}.mrope_section has {shorten(value)}: expected whole numbers", "correct the value")
    return value


def _amplitude(
    kind: str, factor: float, more: Mapping[str, float], table: Mapping[str, Any], number: Callable[[str], float]
) -> float:
    """The factor of cosines and sines that keeps attention sharp over a longer text."""
    if kind in ("yarn", "longrope") and table.get("attention_factor") is not None:
        return float(number("attention_factor"))
    if kind == "yarn":
        if table.get("mscale") and table.get("mscale_all_dim"):
            return yarn_mscale(factor, number("mscale")) / yarn_mscale(factor, number("mscale_all_dim"))
        return yarn_mscale(factor)
    if kind == "longrope" and factor > 1:
        return math.sqrt(1 + math.log(factor) / math.log(max(more["original_max_position_embeddings"], 2)))
    return 1.0


def _positive(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e18:
        where = name if name == "rope_theta" else f"rope_scaling.{name}"
        raise Problem(f"{where} = {shorten(value)}: expected a positive number", "correct the value")
    return value


def _positives(name: str, value: object) -> tuple[float, ...]:
    if value is None:
        raise Problem(f"rope_scaling.{name} is missing", "rope type longrope needs it")
    if not isinstance(value, (list, tuple)):
        raise Problem(f"rope_scaling.{name} = {shorten(value)}: expected a list of numbers", "correct the value")
    return tuple(_positive(name, number) for number in cast("Sequence[object]", value))
