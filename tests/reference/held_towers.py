"""What a file of a small tower holds, against ours: for any library that made it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from macros.counting.parameters import Counts
from macros.engine.loaded import Arrays, Cache
from macros.engine.towers import Grid, find, read_config, table_around, trace

from . import close

BOUNDS = ("_min", "_max")  # of clipped products: no published total counts them


def compare(held: dict[str, Any]) -> float:
    """The largest difference of our vectors, as a share of the largest number or 1. Raises AssertionError for any
    other difference: of names, shapes, FLOPs."""
    raw, part = json.loads(str(held["config_json"])), str(held["part"])
    around, grid = table_around(raw, part), Grid(*map(int, held["grid"]))
    ours = find(*around)
    config, unknown = read_config(ours, *around)
    assert not unknown, unknown
    counts = Counts(trace(ours, config, grid))
    for kind, tensors in ("w/", counts.weights), ("b/", counts.buffers):
        theirs = {n[2:]: list(a.shape) for n, a in held.items() if n.startswith(kind) and not n.endswith(BOUNDS)}
        here = {name: list(shape) for name, shape in counts.tensors(tensors)}
        assert here == theirs, {
            n: (here.get(n), theirs.get(n)) for n in {*here, *theirs} if here.get(n) != theirs.get(n)
        }
    assert counts.flops_at(1, 1) == int(held["flops"]), f"{counts.flops_at(1, 1)} {held['flops']}"
    stored = {name[2:]: a for name, a in held.items() if name[:2] in ("w/", "b/")}
    read = ours.forward(Arrays(stored), held["input"], grid, config, Cache())
    order = [name for name in held if name.startswith("read/")]
    assert len(read) == len(order)
    assert [int(d) for d in counts.trace.root.outputs[0].shape] == list(held["read/0"].shape)
    for name, here in zip(order, read):
        close(here, held[name])
    return max(
        float(np.abs(here - held[name]).max() / max(1, np.abs(held[name]).max())) for name, here in zip(order, read)
    )
