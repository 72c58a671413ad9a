"""Random variants of the small towers: `python -m tests.reference.tower_variants [NAME ...]`, from the repository.

One to three keys of a small tower of `towers.py` get other values: sizes, flags, activations, lists of layers; and an
image another size. Where transformers builds and runs it, ours has to have the same tensors, FLOPs and vectors, or
refuse the config. What transformers has is written into `tests/golden/towers/variants.json`, against which the tests
hold ours.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch
from transformers import AutoConfig

from macros.catalogue.components import SECONDS
from macros.engine.architectures.config import fields_of
from macros.engine.errors import Problem
from macros.engine.ops import ACTIVATIONS
from macros.engine.rules import ShapeError
from macros.engine.towers import Grid, find, read_config, table_around
from macros.engine.towers.patches import AnySize, OneSize

from . import TESTS, changed, digest
from .towers import ALIKE, BOUNDS, TOWERS, compare, tower

FILE = TESTS / "golden" / "towers" / "variants.json"
LEAST, MOST = 12, 60

# Keys that no variant has: those of the form of the input, which the small towers' is, and no values of a tower.
GIVEN = {"num_channels", "in_channels", "num_mel_bins", "input_size", "model_type", "dtype", "torch_dtype"}
# Towers for which any form of the input will do.
OF_ANY_FORM = {"fuyu"}
# Numbers of layers: many would make single precision's errors larger than what is allowed.
DEPTHS = {"num_hidden_layers", "encoder_layers", "depth", "num_blocks"}
# What keys of words take.
CHOICES = {"vision_feature_select_strategy": ("default", "full"), "attn_type": ("vanilla", "none")}
# Keys of which one alone would not fit, by tower; behind a slash those of the whole.
TOGETHER: dict[str, list[tuple[str, ...]]] = {
    "llama4": [
        ("projector_input_dim", "projector_output_dim", "vision_output_dim"),
        ("hidden_size", "intermediate_size"),
    ],
    "kimi_k25": [("pos_emb_height", "pos_emb_width")],
    "emu3": [("base_channels", "hidden_size")],
    "nemotron_h_omni": [
        ("hidden_size", "/vision_hidden_size"),
        ("video_temporal_patch_size", "/video_temporal_patch_size"),
    ],
    "muse_spark": [("hidden_size", "/out_hidden_size"), ("pos_emb_height", "pos_emb_width")],
    "fast_vlm": [("hidden_size", "model_args.cls_ratio")],
    "pp_formulanet": [("output_channels", "post_conv_in_channels")],
    "phi4_audio": [("hidden_size", "ext_pw_out_channel", "depthwise_separable_out_channel")],
}
# Further ones, and why.
FIXED: dict[str, str] = dict.fromkeys(
    [f"{name} audio_config.n_window" for name in ("qwen3_omni_audio", "qwen3_asr")],
    "transformers 5.24 keeps as many vectors of any piece as of one of a second",
)


def values(raw: dict[str, Any], part: str, given: set[str]) -> dict[str, Any]:
    """The keys of a small tower and their values, those of tables by dots: those that ours reads, with transformers'
    defaults where the config says nothing."""
    around, key = table_around(raw, part)
    tower_class, inner = find(around, key).config, around[key]
    spellings = [(k.key, *k.also) for k in fields_of(tower_class) if k.key]
    said = [names for names in spellings if inner.keys() & {*names}]
    spelt_otherwise = {name for names in said for name in names} - inner.keys()
    known = {name for names in spellings for name in names} - spelt_otherwise
    keys = json.loads(json.dumps({name: value for name, value in raw.items() if name != "model_type"}))
    default = AutoConfig.for_model(raw["model_type"], **keys).to_dict()
    outside, _ = table_around(default, part)
    before = part.removesuffix(key)
    before_own = tower_class.of_whole
    inside = {name: value for name, value in walk(outside[key]) if name in known - before_own}
    beside = {name: v for table in tower_class.beside for name, v in walk(outside[table], f"{table}.") if name in known}
    alone = {
        name: v for name, v in outside.items() if name in known and (name in before_own or name not in outside[key])
    }
    found = {f"{part}.{name}": value for name, value in inside.items()}
    found |= {f"{before}{name}": value for name, value in (beside | alone).items()}
    return {path: value for path, value in found.items() if path.rpartition(".")[2] not in given}


def walk(table: dict[str, Any], around: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from walk(value, f"{around}{name}.")
        yield f"{around}{name}", value


def another(rng: random.Random, name: str, value: Any) -> Any:
    """Another value of a key, or the same where there is no other."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int) and value < 0:
        return rng.choice((value + 1, value - 1))
    if name in DEPTHS:
        return rng.choice((max(value - 1, 1), value + 1))
    if isinstance(value, int):
        root = math.isqrt(value)
        if value > 1 and root * root == value:
            return rng.choice((root - 1, root + 1, 2 * root)) ** 2
        return rng.choice((value + 1, value + 2, value * 2, value * 3, max(1, value // 2), max(1, value - 1)))
    if isinstance(value, float):
        return rng.choice((value * 2, value / 2))
    if isinstance(value, str) and "act" in name:
        return rng.choice(sorted({*ACTIVATIONS, "quick_gelu"}))
    if name in CHOICES:
        return rng.choice(CHOICES[name])
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return rng.sample(value, len(value))
    if isinstance(value, list) and value and all(isinstance(one, float) for one in value):
        return rng.sample(value, len(value))
    if isinstance(value, list | tuple) and value and all(type(one) is int for one in value):
        if len(value) == 2 and value[0] == value[1]:
            return [another(rng, name, value[0])] * 2
        return rng.choice((rng.sample(value, len(value)), list(value[1:]), [max(n - 1, 0) for n in value]))
    return value


def others(rng: random.Random, group: list[str], usual: dict[str, Any]) -> dict[str, Any]:
    """Other values of keys, by one factor if there are several."""
    if len(group) > 1:
        factor = rng.choice((2, 3))
        return {path: factor * usual.get(path, usual[group[0]]) for path in group}
    [path] = group
    new = another(rng, path.rpartition(".")[2], usual[path])
    return {} if new == usual[path] else {path: new}


def grid_of(name: str, raw: dict[str, Any], rng: random.Random) -> Grid:
    """The patches of an image: of the config's size, or of any. Of a sound, those of a piece."""
    make, part, usual = TOWERS[name]
    base, c = (read_config(find(*around), *around)[0] for around in (table_around(one, part) for one in (make(), raw)))
    if isinstance(c, AnySize):
        return Grid(*(int(c.merge) * rng.randint(2, 5) for _ in range(2)))
    if isinstance(c, OneSize) and isinstance(base, OneSize):
        first, of_base = c.grid(1, 1), base.grid(1, 1)
        if (of_base.rows, of_base.columns) == (usual.rows, usual.columns):
            return Grid(first.rows, first.columns)
    if c.reads == "sound" and base.moments(SECONDS).rows == usual.rows:
        return Grid(c.moments(SECONDS).rows)
    return usual


def row(name: str, new: dict[str, Any], rng: random.Random) -> list | str:
    """What transformers has of a variant; in words why it is not compared. AssertionError for a difference."""
    make, part, _ = TOWERS[name]
    raw = changed(make(), new)
    try:
        grid = grid_of(name, raw, rng)
    except Problem:
        return "ours refuses it"
    try:
        there = tower(name, raw, grid)
    except Exception:  # of many kinds: a check of the config, or a shape that does not fit
        return "transformers does not run it"
    if not len(there["read/0"]):  # such as of Gemma 4, where a pool is one patch
        return "transformers makes nothing of it"
    try:
        compare(there)
    except (Problem, ShapeError):
        return "ours refuses it"
    except AssertionError as error:
        if "differs by" not in str(error):
            raise
        compare(tower(name, raw, grid, torch.float64))  # single precision has errors of its own
    shapes = {key[2:]: a.shape for key, a in there.items() if key.startswith("w/") and not key.endswith(BOUNDS)}
    total, tokens = sum(map(math.prod, shapes.values())), len(there["read/0"])
    return [new, [grid.rows, grid.columns], total, int(there["flops"]), tokens, digest(shapes)]


def rows(name: str) -> tuple[list[list], Counter]:
    """A tower's variants that both have. Prints each that is not the same."""
    make, part, _ = TOWERS[name]
    usual = values(make(), part, set() if name in OF_ANY_FORM else GIVEN)
    together = [[f"{part}.{key}".rpartition("/")[2] for key in keys] for keys in TOGETHER.get(name, ())]
    alone = {path for path in usual if f"{name} {path}" not in FIXED}.difference(*together)
    groups = [*together, *([path] for path in sorted(alone))]
    found: dict[str, list] = {}
    count, used, tried = Counter(), set(), set()
    for number in range(MOST):
        rng = random.Random(f"{name} {number}")
        if len(found) < LEAST:
            chosen = rng.sample(groups, min(len(groups), rng.choice((1, 1, 2, 3))))
        elif lacking := [group for group in groups if not used.issuperset(group)]:
            chosen = [rng.choice(lacking)]
        else:
            break
        new = {path: value for group in chosen for path, value in others(rng, group, usual).items()}
        said = json.dumps(new, sort_keys=True)
        if not new or said in tried:
            continue
        tried.add(said)
        try:
            made = row(name, new, rng)
        except AssertionError as error:
            print(f"{name} with {new}: {str(error)[:300]}")
            made = "differ"
        if isinstance(made, str):
            count[made] += 1
        else:
            count["the same"] += 1
            used |= new.keys()
            found[said] = made
    if missing := sorted({path for group in groups for path in group} - used):
        print(f"{name} has no variant of {', '.join(missing)}")
    return list(found.values()), count


def main(names: list[str]) -> None:
    known = json.loads(FILE.read_bytes()) if FILE.exists() else {}
    together = Counter()
    for name in names or TOWERS:
        made, count = rows(name)
        together += count
        if name not in ALIKE and not count["differ"]:
            known[name] = made
            lines = (f'"{tower}": [\n' + ",\n".join(map(json.dumps, known[tower])) + "\n]" for tower in sorted(known))
            FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
        print(f"{name}: {dict(count)}", flush=True)
    print(dict(together))
    if together["differ"]:
        sys.exit("those of which some differ are not written")


if __name__ == "__main__":
    main(sys.argv[1:])
