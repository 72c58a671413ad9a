"""A model's hyperparameters, and a changed model: by this site's name, its letter or the key of config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..catalogue.models import Model
from ..engine.architectures.config import Key, fields_of
from ..engine.errors import Problem, named, nearest, shorten
from ..engine.keys import continued
from ..views.words import notation


def hyperparameters(model: Model) -> dict[str, bool | float | str]:
    """The hyperparameters that have a single value, in forward order."""
    values: dict[str, bool | float | str] = {}
    for k in fields_of(type(model.config)):
        value = getattr(model.config, k.field)
        if k.is_size and value is not None:
            values[k.field] = int(value)
        elif isinstance(value, (bool, int, float, str)):
            values[k.field] = value
    return values


def changed(model: Model, settings: Mapping[str, Any]) -> Model:
    """The model with these hyperparameters in its config, and all others unchanged.

    If the number of layers changes, a list with an entry per layer continues its own pattern. Raises `Problem` for a
    name that the architecture does not have, and for sizes that do not fit together.
    """
    fields = {name: _field(model, name) for name in settings}
    if doubled := [name for name in fields if [*fields.values()].count(fields[name]) > 1]:
        raise Problem(f"{' and '.join(map(named, doubled))} are the same hyperparameter", "leave one of them out")
    keys = {str(field.key): settings[name] for name, field in fields.items()}
    raw = {**model.raw, **keys}
    layers = next((settings[name] for name, field in fields.items() if field.field == "n_layers"), None)
    if layers and isinstance(layers, int):
        before = int(model.config.symbols["n_layers"])
        raw |= {key: continued(value, before, layers) for key, value in model.raw.items() if key not in keys}
    said = ", ".join(f"{field.field} = {named(settings[name])}" for name, field in fields.items())
    try:
        config, _ = model.architecture.config.read(raw)
        for name, field in fields.items():
            if (value := getattr(config, field.field)) != settings[name] and field.is_size:
                raise Problem(
                    f"{named(name)} stays {value}, whatever {field.key} says", "change the sizes it follows from"
                )
        other = Model(
            f"{model.slug} with {said}", raw, model.architecture, config, None, model.unknown, None, model.head
        )
        other.files = model.files and model.files.changed()
        _ = other.trace  # raises if sizes do not fit together
    except Problem as problem:
        raise Problem(problem.what, problem.mend, f"{model.slug} with {said}") from None
    return other


def _field(model: Model, name: str) -> Key:
    """The hyperparameter with this name, letter or key of config.json."""
    fields = fields_of(type(model.config))
    settable = [k for k in fields if k.key]
    letters = {k.field: notation.letter(k.field) for k in fields}
    for k in settable:
        if name in (k.field, k.key, letters[k.field], *k.also):
            return k
    for k in fields:
        if name in (k.field, letters[k.field]):
            raise Problem(f"{k.field} of {model.slug} follows from other sizes", "change those")
    known = {k.field for k in settable} | {str(k.key) for k in settable}
    otherwise = f"{model.architecture.name} has {', '.join(k.field for k in settable if k.is_size)}"
    raise Problem(f"{model.slug} has no hyperparameter {shorten(name)}", nearest(name, known, otherwise))
