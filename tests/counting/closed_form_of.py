"""Holds presets against the closed form of their type: `python tests/counting/closed_form_of.py SLUG…`, which
`every-parameter check SLUG` runs in a clone. A line for each figure that differs, or for what the form cannot read."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

HERE = Path(__file__).parent
if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

from macros.catalogue import presets  # noqa: E402 (behind the paths)
from macros.engine.errors import Problem  # noqa: E402

FILE = "tests/counting/test_closed_forms.py"


def differences(slug: str, forms: Mapping[str, Callable], without: Collection[str] = ()) -> Iterator[str]:
    """`without` are the types that have no form of their own."""
    try:
        if (config := presets.preset(slug).config) is None:
            return
        counts = presets.model(slug).counts
    except Problem:
        return  # which `check` tells
    model_type = config.get("model_type")
    if model_type not in forms:
        if model_type not in without:
            yield f"{FILE}: {model_type} has no closed form; write one into FORMS"
        return
    try:
        form = forms[model_type](config)
    except (KeyError, TypeError) as error:
        line = next(
            f.lineno for f in reversed(traceback.extract_tb(error.__traceback__)) if HERE == Path(f.filename).parent
        )
        yield (
            f"{FILE}:{line}: the closed form of {model_type} cannot read the config: {type(error).__name__}: {error}; "
            "have it read the key as this config spells it"
        )
        return
    for what, ours, theirs in (
        ("parameters", counts.total, form.total),
        ("active parameters", counts.active, form.active),
        ("cache bytes per token, uncapped", counts.cache_bytes_per_token_uncapped(), 2 * form.cache),
    ):
        if ours != theirs:
            yield f"{FILE}: {what}: the closed form of {model_type} gives {theirs:,}, the forward pass {ours:,}"


if __name__ == "__main__":
    from test_closed_forms import ALIASES, FORMS

    for name in sys.argv[1:]:
        for line in differences(name, FORMS, ALIASES):
            print(f"{name}\t{line}")
