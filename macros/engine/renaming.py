"""A config's keys as transformers reads them where several names are possible: for a type, for a key, for a kind of
layer.

The tables come from `names_there`. They contain: `types`, older names of types; `types_beside`, types that a key turns
into another one; `text_types` and `only_text_types`, the type of a wrapper's text model if its table has none, or
whatever its table says; `flat`, wrappers that also read the text model's keys at the top level; `layer_types`, older
words for kinds of layers; `keys`, other spellings of keys by type, which take precedence over the keys; `known`, the
types that transformers has; `shares`, those whose plain rotary embedding rotates a share of a head; `unread`, by type,
keys next to the table of a rotary embedding that go unread; `decoding`, encoders that `is_decoder` turns into decoders;
`decoders`, what transformers calls their types; `looking`, types to which `add_cross_attention` adds attention to an
encoder's output.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeAlias, cast

from .errors import Problem

# A config's keys, or transformers' tables of names.
Keys: TypeAlias = Mapping[str, Any]

LAYER_LISTS = "layer_types", "mtp_layer_types"
SHARE = "partial_rotary_factor"
ROPE_TABLES = "rope_scaling", "rope_parameters"


def with_type(raw: Keys, there: Keys) -> Keys:
    """The keys with the type as which transformers loads a file that has them."""
    kind = raw.get("model_type")
    if not isinstance(kind, str):
        return raw
    beside: list[str] = there["types_beside"].get(kind) or []
    if beside and beside[0] in raw:
        return {**raw, "model_type": beside[1]}
    return {**raw, "model_type": there["types"][kind]} if kind in there["types"] else raw


def with_text_type(raw: Keys, known: Collection[str], there: Keys) -> Keys:
    """The keys of a multimodal model with the type of its text model, if its table has none, or one that is not
    read."""
    whole, table = raw.get("model_type"), raw.get("text_config")
    if not isinstance(whole, str) or not isinstance(table, Mapping):
        return raw
    inner = cast("Keys", table)
    said, only = inner.get("model_type"), there["only_text_types"].get(whole)
    if only is not None and said is not None and said in known and said not in (only, whole):
        return {**raw, "text_config": {**inner, "model_type": only}}
    usual = only or there["text_types"].get(whole)
    unsaid = said is None and whole not in known and f"{whole}_text" not in known
    if usual is None or not (unsaid or (only is not None and said not in known and f"{said}_text" not in known)):
        return raw
    return {**raw, "text_config": {**inner, "model_type": usual}}


def unsaid_sizes(raw: Keys, there: Keys) -> dict[str, int]:
    """The sizes that the text model's table leaves out, with the values that transformers' class gives them.

    transformers saves the table of a part without those values, so published files lack them.
    """
    whole, table = raw.get("model_type"), raw.get("text_config")
    if not isinstance(table, Mapping):
        return {}
    inner = cast("Keys", table)
    kind, only = inner.get("model_type"), there["only_text_types"].get(whole)
    if kind != (only or kind) or (only is None and whole not in there["text_types"]):
        return {}
    name = whole if kind == (only or there["text_types"][whole]) else kind
    usual = next((sizes for names, sizes in there["text_sizes"] if name in names), dict[str, int]())
    said = set(inner)
    for types, spellings in there["keys"]:
        if kind in types:
            said |= {name for other, name in spellings.items() if other in inner}
    return {name: value for name, value in usual.items() if name not in said}


def with_text_sizes(raw: Keys, there: Keys) -> Keys:
    """The keys of a multimodal model with the sizes that its text model's table leaves out."""
    unsaid = unsaid_sizes(raw, there)
    return {**raw, "text_config": {**raw["text_config"], **unsaid}} if unsaid else raw


def sizes_left_out(raw: Keys, known: Collection[str], there: Keys) -> tuple[str, ...]:
    """A line if the text model's table leaves out sizes, for which its class's own are counted."""
    unsaid = unsaid_sizes(with_text_type(with_type(raw, there), known, there), there)
    said = ", ".join(f"{name} = {value}" for name, value in unsaid.items())
    return (
        (f"text_config leaves out {said}: counted, as transformers 5.24 reads it, with its class's own",)
        if said
        else ()
    )


def with_names(raw: Keys, there: Keys, *, alone: bool = True) -> Keys:
    """The keys under transformers' model type and spelling, without duplicates; an alternative spelling takes
    precedence. With `alone=False`, a key that appears only in its alternative spelling is left unchanged. Raises
    `Problem` for a key that turns the type into a different model."""
    raw = with_type(raw, there)
    kind = raw.get("model_type")
    if not isinstance(kind, str):
        return raw
    kind = there["decoders"].get(kind, kind)
    if kind not in there["known"]:
        return raw
    if raw["model_type"] == kind:
        _check_unread(raw, kind, there)
    keys = dict(raw)
    for types, spellings in there["keys"]:
        if kind not in types:
            continue
        for other, name in spellings.items():
            if keys.get(other) is not None and (alone or keys.get(name) is not None):
                keys[name] = keys.pop(other)
    for name in LAYER_LISTS:
        value: object = keys.get(name)
        if isinstance(value, list):
            layers = cast("list[object]", value)
            keys[name] = [there["layer_types"].get(one, one) if isinstance(one, str) else one for one in layers]
    unread: list[str] = there["unread"].get(kind, [])
    return with_share({name: value for name, value in keys.items() if name not in unread}, kind in there["shares"])


def _check_unread(raw: Keys, kind: str, there: Keys) -> None:
    """Raise `Problem` for a key that turns a type into a different model, which is not covered."""
    if raw.get("is_decoder") is True and kind in there["decoding"]:
        raise Problem(
            f"is_decoder = true: {kind} with causal attention is not covered",
            "leave it out for the encoder of the same weights",
        )
    if raw.get("add_cross_attention") is True and kind in there["looking"]:
        raise Problem(
            f"add_cross_attention = true: {kind} as a decoder is covered only with its encoder",
            "give the config of both, or leave it out",
        )


def with_share(raw: Keys, is_read: bool) -> Keys:
    """The keys with the share of a head that rotates, as transformers reads it: null means all of it; in a plain rotary
    embedding of a type without a share, it goes unread."""
    keys = dict(raw)
    if SHARE in keys and keys[SHARE] is None:
        keys[SHARE] = 1.0
    if is_read:
        return keys
    name = next((name for name in ROPE_TABLES if keys.get(name)), None)
    table: object = keys.get(name) if name else None
    if name is None or not isinstance(table, Mapping):
        keys.pop(SHARE, None)
        return keys
    inner = cast("Keys", table)
    if any(isinstance(part, Mapping) for part in inner.values()):
        keys[name] = {kind: _without_share(part) for kind, part in inner.items()}
        return keys
    keys[name] = _without_share(inner)
    if _is_plain(inner):
        keys.pop(SHARE, None)
    return keys


def _is_plain(table: Keys) -> bool:
    return (table.get("rope_type") or table.get("type") or "default") == "default"


def _without_share(table: object) -> Any:
    """A table of a plain rotary embedding without the share, which is not read."""
    if not isinstance(table, Mapping):
        return table
    keys = cast("Keys", table)
    return {name: value for name, value in keys.items() if name != SHARE} if _is_plain(keys) else keys
