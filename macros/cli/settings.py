"""The names and values of `what-if --set`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ..engine.errors import Problem, named
from ..engine.json_data import check_data


def read(settings: Iterable[str]) -> dict[str, Any]:
    """`["n_layers=64", "tie_word_embeddings=true"]` -> names and values: JSON if possible, otherwise text. Raises
    `Problem`."""
    values: dict[str, Any] = {}
    for setting in settings:
        name, sign, text = (part.strip() for part in setting.partition("="))
        if not (name and sign and text):
            raise Problem("", "write a name, = and a value, such as n_layers=64").about("set", setting)
        if name in values:
            raise Problem(f"{named(name)} is given twice", "leave one of them out", parameter="set")
        try:
            values[name] = json.loads(text)
        except (ValueError, RecursionError):
            values[name] = text
    check_data(values)
    return values
