"""The value of each key that a config leaves out: `python -m tests.reference.key_defaults`, from the repository.

For each type and each key that ours may leave out, transformers' config class says its value beside the rest of the
small config: `tests/golden/key_defaults.json`, against which the tests hold ours. Where both differ, a line is printed
and nothing is written of that key: a class may have a word of its own for the same.
"""

from __future__ import annotations

import json
from copy import deepcopy

from transformers import CONFIG_MAPPING

from macros.catalogue.presets import make
from macros.engine.architectures import find
from macros.engine.architectures.config import REQUIRED, fields_of
from macros.engine.errors import Problem

from . import TESTS, models
from .configs import MULTIMODAL, configs

FILE = TESTS / "golden" / "key_defaults.json"
# Types that are always in a larger model, whose class has other defaults for them.
IN_WHOLE = {"voxtral_realtime_text": "voxtral_realtime"}


def values(model_type: str) -> dict[str, object]:
    """What transformers takes for each key that is left out, where that is a number, a word or a flag."""
    base, found = configs()[model_type], {}
    cls = CONFIG_MAPPING[models.DECODERS.get(model_type, model_type)]
    for k in fields_of(find(model_type).config):
        if k.key is None or k.default is REQUIRED:
            continue
        raw = {name: value for name, value in base.items() if name not in (k.key, *k.also)}
        try:
            if model_type in IN_WHOLE:
                there = getattr(CONFIG_MAPPING[IN_WHOLE[model_type]](text_config=deepcopy(raw)).text_config, k.key)
            else:
                there = getattr(cls(**deepcopy(raw)), k.key)
            here = getattr(make(model_type, raw).config, k.field)
        except (AttributeError, KeyError, Problem, TypeError, ValueError):
            continue
        except Exception:  # its class checks itself, in many ways
            continue
        if isinstance(there, (bool, int, float, str)):
            if here == there:
                found[k.key] = there
            else:
                print(f"{model_type} {k.key}: {there!r} there, {here!r} here", flush=True)
    return found


def main() -> None:
    rows = {name: values(name) for name in configs() if name not in MULTIMODAL}
    lines = (f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items() if row)
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print({"types": len(rows), "keys": sum(map(len, rows.values()))})


if __name__ == "__main__":
    main()
