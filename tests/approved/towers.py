"""How each tower cuts images, sounds and proteins of many sizes, and its config's defaults: `texts/engine/towers.txt`.

Golden towers hold the vectors of one size; the processors' constants, such as a margin or the longest piece of a sound,
show at other sizes only. `python -m tests.approved towers` writes this down; the tests of `tests/reference/towers.py`
hold the rules against the processors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from reference import TESTS

from macros.engine.architectures.config import REQUIRED, fields_of
from macros.engine.errors import Problem
from macros.engine.towers import Grid, TowerConfig, find, read_config, table_around

from . import MARK, TEXTS

FILE = TEXTS / "engine" / "towers.txt"
TOWERS = TESTS / "golden" / "towers"
NAMES = sorted(path.stem for path in TOWERS.glob("*.npz"))
IMAGES = (1, 1), (60, 80), (224, 224), (336, 1000), (384, 378), (480, 640), (1023, 2047), (1500, 300), (4000, 3000)
SECONDS = 0.1, 1, 7.3, 29.99, 30, 31.7, 61, 600, 3700
RESIDUES = 1, 70, 1025


def cut(config: TowerConfig, *size: Any) -> str:
    """The grids of one size, and the number of tokens that the text gets."""
    try:
        if config.reads == "sound":
            grids, count = [config.moments(*size)], config.sound_tokens
        elif config.reads == "image":
            grids, count = config.grids(*size), config.image_tokens
        else:
            grids, count = [config.residues(*size)], lambda length, cells: cells
        cells = sum(grid.rows * grid.columns * grid.count for grid in grids)
        return f"{' + '.join(map(written, grids))} → {count(*size, cells)}"
    except Problem as problem:
        return str(problem)


def written(grid: Grid) -> str:
    of_one = str(grid.rows) if grid.columns == 1 else f"{grid.rows}×{grid.columns}"
    return of_one if grid.count == 1 else f"{grid.count} of {of_one}"


def lines(name: str) -> Iterator[str]:
    npz = np.load(TOWERS / f"{name}.npz")
    raw, part = json.loads(str(npz["config_json"])), str(npz["part"])
    tower = find(*table_around(raw, part))
    assert tower is not None
    known = [(k.key, k.default) for k in fields_of(tower.config) if k.key and k.default is not REQUIRED]
    yield "defaults: " + ", ".join(f"{key} = {default}" for key, default in known if not callable(default))
    kind = raw.get(part, {}).get("model_type")
    bare = {"model_type": raw["model_type"], "text_config": {"hidden_size": 64}, part: {"model_type": kind}}
    for said, whole in ("small", raw), ("usual", bare):
        try:
            config = read_config(tower, *table_around(whole, part))[0]
        except (Problem, KeyError):
            continue  # sizes have no defaults
        sizes = {"image": IMAGES, "sound": [(one,) for one in SECONDS]}.get(config.reads, [(one,) for one in RESIDUES])
        for size in sizes:
            yield f"{said} {' × '.join(map(str, size))}: {cut(config, *size)}"


def shown(name: str) -> str:
    return "\n".join(lines(name))


def write() -> None:
    FILE.write_text("\n".join(f"{MARK}{name}\n{shown(name)}\n" for name in NAMES), "utf-8")
