"""All comparisons: `python -m tests.reference`, from the repository, writes `macros/catalogue/independent.toml`.

Needs `pip install -e '.[reference]'`; nothing is downloaded by it, torch runs on the CPU. Takes a minute. A difference
that no convention explains ends it. `python -m tests.reference TYPE ...` compares these types alone, and leaves the
others as they stand in the file.
"""

from __future__ import annotations

import datetime
import json
import math
import platform
import sys
import tomllib
from importlib.metadata import version

from transformers import CONFIG_MAPPING

from macros.catalogue.independent import FILE, comparison

from . import checkpoints, costs, tensors
from .configs import ABSENT, PROMPT, configs
from .configs import model as our_model
from .conventions import CACHE, FLOPS
from .models import build

TITLE = (
    "# Written by `python -m tests.reference`, from the repository; tests/reference says how each number came about."
)


def compare(model_type: str) -> dict[str, object]:
    """One type in all four ways. Raises AssertionError for a difference without an explanation."""
    ours, model = our_model(model_type), build(model_type)
    listed = tensors.compare(ours, model)
    row = {"class": type(model).__name__, "tensors": len(listed), "parameters": sum(map(math.prod, listed.values()))}
    row["logits"] = checkpoints.compare(ours, checkpoints.checkpoint(model))
    return row | costs.compare(ours, model)


def table(name: str, rows: dict[str, object]) -> str:
    """One table of the TOML file; what is empty is left out."""
    lines = [f"{json.dumps(key)} = {value(rows[key])}" if " " in key else f"{key} = {value(rows[key])}" for key in rows]
    return "\n".join(["", f"[{name}]", *lines])


def value(content: object) -> str:
    """A number, words, or a table in one line."""
    if isinstance(content, float):
        return f"{content:.0e}"
    if isinstance(content, dict):
        return "{ " + ", ".join(f'"{key}" = {n}' for key, n in content.items()) + " }"
    return json.dumps(content, ensure_ascii=False)


def main(model_types: list[str]) -> None:
    here = [t for t, why in ABSENT.items() if t in CONFIG_MAPPING and why.startswith("remote code")]
    assert not here, f"transformers has {here} by now: give them small configs, or say why not in ABSENT"
    versions = {"python": platform.python_version()} | {
        name: version(name).partition("+")[0] for name in ("numpy", "torch", "transformers")
    }
    before = tomllib.loads(FILE.read_text("utf-8"))
    assert not model_types or before["versions"] == versions, "other versions than the file's: compare all types"
    rows = {}
    for model_type in configs():
        if model_types and model_type not in model_types:
            rows[model_type] = before["types"][model_type]
            continue
        print(model_type, flush=True)
        rows[model_type] = {key: content for key, content in compare(model_type).items() if content != {}}
    used = {name for row in rows.values() for key in row if key.endswith("_more") for name in row[key]}
    assert used == {*FLOPS, *CACHE}, "a convention that explains nothing"
    parts = [
        f"{TITLE}\ndate = {datetime.date.today()}\ntokens = {PROMPT}",
        table("versions", versions),
        table("conventions", {name: convention.sentence for name, convention in (FLOPS | CACHE).items()}),
        table("absent", ABSENT),
        *(table(f"types.{model_type}", row) for model_type, row in rows.items()),
    ]
    FILE.write_text("\n".join(parts) + "\n", "utf-8")
    comparison()


if __name__ == "__main__":
    main(sys.argv[1:])
