"""Towers against transformers: names, shapes, FLOPs by torch's counter, and the vectors of small random ones."""

from __future__ import annotations

import dataclasses
import json
from copy import copy
from pathlib import Path

import numpy as np
import pytest
from reference import ROUNDING, changed, close, digest, each_has, in_double
from sampling import sampled

from macros.counting.parameters import Counts
from macros.engine.errors import Problem
from macros.engine.loaded import Arrays, Cache
from macros.engine.towers import Grid, find, modules, read_config, table_around, trace

GOLDEN = Path(__file__).parent.parent / "golden" / "towers"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.npz"))
# {tower: [[what is changed in its small config, the grid, parameters, FLOPs, vectors, digest of the tensors], …]}
VARIANTS = json.loads((GOLDEN / "variants.json").read_text("utf-8"))
AT_ONCE = 4  # of the variants of a tower, one in so many


def held(name):
    """A golden tower: what its file holds, and ours of the same config."""
    npz = np.load(GOLDEN / f"{name}.npz")
    raw, part = json.loads(str(npz["config_json"])), str(npz["part"])
    tower = find(*table_around(raw, part))
    config, unknown = read_config(tower, *table_around(raw, part))
    assert not unknown
    return npz, tower, config, Grid(*map(int, npz["grid"]))


@pytest.mark.parametrize("name", NAMES)
def test_the_tensors_are_those_of_transformers(name):
    npz, tower, config, grid = held(name)
    counts = Counts(trace(tower, config, grid))
    for kind, tensors in ("w/", counts.weights), ("b/", counts.buffers):
        theirs = {
            file[2:]: npz[file].shape
            for file in npz.files
            if file.startswith(kind) and not file.endswith(("_min", "_max"))  # bounds, which no published total counts
        }
        assert dict(counts.tensors(tensors)) == theirs


@pytest.mark.parametrize("name", NAMES)
def test_the_vectors_are_those_of_transformers(name):
    npz, tower, config, grid = held(name)
    stored = {file[2:]: npz[file] for file in npz.files if file[:2] in ("w/", "b/")}
    with in_double():
        read = tower.forward(Arrays(stored), npz["input"], grid, config, Cache())
    theirs = [npz[file] for file in npz.files if file.startswith("read/")]
    for ours, reference in zip(read, theirs, strict=True):
        close(ours, reference)
    for single, ours in zip(tower.forward(Arrays(stored), npz["input"], grid, config, Cache()), read, strict=True):
        close(single, ours, ROUNDING, "in single precision: ")


# Numbers of a config that only decide a width, a choice or what training begins with, or act on codes or nothing there.
WITHOUT_EFFECT = """
deepseek_ocr2: mlp_ratio
deepseek_vl_hybrid: mlp_ratio
emu3: norm_eps
ernie4_5_vl: mlp_ratio
exaone4_5: theta
fast_vlm: last_ratio, layer_scale
gemma3n: layer_scale
idefics2: text_eps
inkling2: mlp_ratio
internvl: shuffle
janus: mlp_ratio
llama4: shuffle
nemotron_h_omni: mlp_ratio, ratio
perception_lm: layer_scale, mlp_ratio
qianfan_ocr: qk_eps, shuffle
qwen2_vl: mlp_ratio
qwen3_asr: norm_eps
qwen3_omni_audio: norm_eps
step3p7: mlp_ratio
"""


@pytest.mark.parametrize("name", NAMES)
def test_each_number_of_a_config_changes_what_is_read(name):
    """Two epsilons of the same default are told apart, and none is read in the place of another."""
    npz, tower, config, grid = held(name)
    stored = Arrays({file[2:]: npz[file] for file in npz.files if file[:2] in ("w/", "b/")})
    before = tower.forward(stored, npz["input"], grid, config, Cache())
    idle = set[str]()
    for field in dataclasses.fields(config):
        if type(value := getattr(config, field.name)) is float:
            other = copy(config)
            object.__setattr__(other, field.name, value * 3 + 0.01)
            try:
                after = tower.forward(stored, npz["input"], grid, other, Cache())
            except Problem:  # a width follows from it
                continue
            if all(np.array_equal(one, two) for one, two in zip(before, after)):
                idle.add(field.name)
    known = {line.partition(": ")[0]: line.partition(": ")[2] for line in WITHOUT_EFFECT.split("\n")}
    assert ", ".join(sorted(idle)) == known.get(name, "")


@pytest.mark.parametrize("name", NAMES)
def test_the_flops_are_those_of_torch(name):
    npz, tower, config, grid = held(name)
    run = trace(tower, config, grid)
    assert Counts(run).flops_at(1, 1) == int(npz["flops"])
    assert tuple(map(int, run.root.outputs[0].shape)) == npz["read/0"].shape


def test_each_tower_has_a_golden_one():
    assert {held(name)[1].name for name in NAMES} == set(modules())


def test_each_tower_has_ten_variants_and_they_differ():
    few = [name for name in NAMES if len(VARIANTS.get(name, ())) < 10]
    each_has(
        few,
        "fewer than ten random variants",
        "add them to tests/golden/towers/variants.json by python -m tests.reference.tower_variants TYPE",
    )
    assert VARIANTS.keys() == {*NAMES}
    assert len({listed for rows in VARIANTS.values() for *_, listed in rows}) > 4 * len(VARIANTS)


@pytest.mark.parametrize("name", NAMES)
def test_random_variants_are_those_of_transformers(name):
    raw, part = (str(held(name)[0][key]) for key in ("config_json", "part"))
    for changes, sides, parameters, flops, vectors, listed in sampled(VARIANTS[name], AT_ONCE, name):
        whole = changed(json.loads(raw), changes)
        tower = find(*table_around(whole, part))
        config, unknown = read_config(tower, *table_around(whole, part))
        counts = Counts(trace(tower, config, Grid(*sides)))
        assert not unknown
        assert (counts.total, counts.flops_at(1, 1)) == (parameters, flops), changes
        assert int(counts.trace.root.outputs[0].shape[0]) == vectors, changes
        assert digest(dict(counts.tensors())) == listed, changes
