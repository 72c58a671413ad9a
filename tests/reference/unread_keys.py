"""Keys that are read here and that transformers' class ignores: `python -m tests.reference.unread_keys`, from the
repository.

Each key of a type's own config here that transformers' class does not list gets other values in the small config. If
the parameters change here, and not there on the meta device, it is written to `macros/catalogue/unread_there.json`:
makers' code, or engines, read it. A config with one of them says so above the figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from importlib.metadata import version
from typing import Any

import torch

from macros.catalogue.presets import make
from macros.catalogue.unread_there import FILE
from macros.engine.architectures import find
from macros.engine.architectures.config import fields_of
from macros.engine.errors import Problem

from . import every_key, models
from .configs import MULTIMODAL, configs

MOST = 3  # values of a key


def parameters(raw: dict[str, Any]) -> int:
    with torch.device("meta"):
        model = models.unfilled(every_key.as_loaded(deepcopy(raw)))
    return sum(p.numel() for p in models.text_part(dict(model.named_parameters())).values())


def unread(model_type: str) -> Iterator[str]:
    """The keys of one type."""
    base, cls = configs()[model_type], every_key.class_of(model_type)
    first, known = make(model_type, base), {*every_key.keys(model_type), *every_key.OLDER}
    if any(line for line in first.config.read_otherwise(base)):
        return
    there = None
    for k in fields_of(find(model_type).config):
        for name in (k.key, *k.also):
            value = getattr(first.config, k.field, None)
            if not name or "." in name or name in known or f"{model_type} {name}" in every_key.FIXED or value is None:
                continue
            value = int(value) if hasattr(value, "__int__") and not isinstance(value, (bool, float)) else value
            for new in [one for one in every_key.others(cls, name, value) if one is not None][:MOST]:
                raw = {**base, name: new}
                try:
                    ours = make(model_type, raw)
                    more = int(ours.counts.total) - int(first.counts.total)
                except Problem:
                    continue
                if more == 0 or ours.config.read_otherwise(raw):
                    continue
                there = parameters(base) if there is None else there
                try:
                    if parameters(raw) - there != more:
                        yield name
                except Exception:  # of many kinds: a check of the config, or a shape that does not fit
                    continue
                break


def main() -> None:
    rows: dict[str, list[str]] = {}
    for model_type in sorted(set(configs()) - set(MULTIMODAL)):
        if found := sorted(set(unread(model_type))):
            rows[model_type] = found
            print(model_type, found, flush=True)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found)}" for name, found in rows.items())
    FILE.write_text(f'{{"version": "{version("transformers")}", "types": {{\n{lines}\n}}}}\n', "utf-8")


if __name__ == "__main__":
    main()
