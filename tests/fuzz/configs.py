"""Configs: published ones with a key or three set to something strange, taken away, or put into a part.

Each is described within a second and 500 MB, or refused in one line; and the skeleton that `add` makes of it says the
same.
"""

from __future__ import annotations

import json
import random
import tomllib
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

from macros.catalogue import preset_file, presets
from macros.catalogue.presets import Model
from macros.cli.describe import as_table
from macros.cli.printing import plain
from macros.cli.skeleton import skeleton
from macros.data.model import as_json
from macros.engine.architectures import find
from macros.engine.architectures.config import fields_of
from macros.engine.errors import Problem

from . import Case, is_one_line, refused, within
from .texts import text

FEW = 30  # cases that take a second or two together

NUMBERS = (0, -1, 1, 2, 3, 7, 96, 10**4, 10**6, 10**9, 2**31, 2**31 - 1, 2**63, 10**30, 10**400, -(10**30))
FRACTIONS = (0.5, -0.5, 4096.5, 1e-320, 1e18, 1e308, -1e308, 1e-9, 2.0, float("nan"), float("inf"), float("-inf"))
OTHERS = (None, True, False, "", "4", "llama", "auto", "silu", "linear", "\ud800", [], {}, [[]], [None], {"a": None})
WORDS = ("full_attention", "sliding_attention", "linear_attention", "mamba", "attention", "moe", "dense", "sparse")
TABLES = (
    {"type": "linear"},
    {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096},
    {"rope_type": "llama3", "factor": 1e308, "low_freq_factor": 1.0, "high_freq_factor": 1.0},
    {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [1e300] * 64},
    {"rope_type": "dynamic", "factor": 1e18},
    {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {}},
    {"__float__": "Infinity"},
)
ADDED = (
    *("layer_types", "sliding_window", "head_dim", "rope_scaling", "rope_parameters", "text_config", "vision_config"),
    *("architectures", "num_labels", "id2label"),
)
ENDS = (
    *("Model", "ForCausalLM", "LMHeadModel", "ForSequenceClassification", "ForTokenClassification", "ForMaskedLM"),
    *("ForQuestionAnswering", "ForConditionalGeneration", "ForRewardModel", "ForPreTraining", "ForMultipleChoice"),
    *("ForCausalLMEagle3", "DraftModel", "MTP", "ForFoo", ""),
)


@cache
def bases() -> dict[str, dict[str, Any]]:
    """A published config of each model type."""
    known: dict[str, dict[str, Any]] = {}
    for slug in presets.paths():
        config = presets.preset(slug).config
        if config is not None:
            known.setdefault(config["model_type"], config)
    return known


def draw(rng: random.Random) -> Case:
    """A model type, and what becomes of its keys."""
    base = rng.choice(sorted(bases()))
    raw = bases()[base]
    fields = fields_of(find(base).config)
    keys = [*raw, *(k.key for k in fields if k.key), *(name for k in fields for name in k.also), *ADDED]
    kinds = {k.key: (k.type, k.is_size) for k in fields}
    changes = {}
    for key in rng.sample(keys, rng.choice((1, 1, 1, 2, 3))):
        is_strange = key not in kinds or rng.random() < 0.4
        changes[key] = strange(rng, raw.get(key)) if is_strange else likely(rng, raw.get(key), *kinds[key])
    if rng.random() < 0.3:
        changes["architectures"] = [base + rng.choice(ENDS)]
    without = rng.sample(list(raw), rng.choice((0, 0, 0, 1)))
    if rng.random() < 0.1:
        changes[text(rng)[:50]] = strange(rng, None)
    return {"base": base, "changes": changes, "without": without, "is_part": rng.random() < 0.1}


def likely(rng: random.Random, value: Any, kind: Any, is_size: bool) -> Any:
    """Another value of the type that a key has."""
    if value is None and rng.random() < 0.3 or (types.NoneType in get_args(kind) and rng.random() < 0.2):
        return None
    if isinstance(value, list) and value:
        return _other_list(rng, value)
    if isinstance(value, dict):
        return strange(rng, value)
    if is_size:
        near = value if isinstance(value, int) else 8
        return max(
            1, rng.choice((near + 1, near - 1, near * 2, near // 2, near * 16, 1, 2, 96, rng.randrange(1, 5000)))
        )
    if kind is bool or isinstance(value, bool):
        return rng.random() < 0.5
    if isinstance(value, str):
        return rng.choice((value, "relu", "gelu_new", "silu", "relu2"))
    return rng.choice((1, 2, 5, 1.0, 0.5, 1e-6, 1e6, 1e18, 64.0))


def strange(rng: random.Random, value: Any) -> Any:
    """Something that a key has not; often it is near to the value that it has."""
    if isinstance(value, list) and value and rng.random() < 0.6:
        return _other_list(rng, value)
    if isinstance(value, dict) and value and rng.random() < 0.6:
        key = rng.choice(list(value))
        return value | {key: strange(rng, value[key])}
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.4:
        return rng.choice((value + 1, value - 1, -value, value * 2, value // 2, value * 1000, float(value), str(value)))
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(NUMBERS)
    if kind < 0.5:
        return rng.choice(FRACTIONS)
    if kind < 0.7:
        return rng.choice(OTHERS)
    if kind < 0.78:
        return text(rng)
    if kind < 0.86:
        return rng.choice(TABLES)
    if kind < 0.94:
        n = rng.choice((1, 3, 12, 32, 61, 1000, 20_000))
        return [rng.choice(WORDS) for _ in range(n)] if rng.random() < 0.5 else rng.choice((list(range(n)), [1] * n))
    deep: Any = 1
    for _ in range(rng.choice((3, 60, 70, 600))):
        deep = [deep] if rng.random() < 0.5 else {"x": deep}
    return deep


def _other_list(rng: random.Random, values: list) -> list:
    i = rng.randrange(len(values))
    return rng.choice(
        (
            values[:-1],
            [*values, values[-1]],
            values * 2,
            values[::-1],
            [*values[:i], strange(rng, values[i]), *values[i + 1 :]],
            [rng.choice(values) for _ in values],
        )
    )


def config(case: Case) -> dict[str, Any]:
    """The config of a case."""
    raw = {k: v for k, v in bases()[case["base"]].items() if k not in case["without"]} | case["changes"]
    return {"model_type": "llava", "text_config": raw, "vision_config": {}} if case["is_part"] else raw


def smaller(case: Case) -> Iterator[Case]:
    """With one change less, or a shorter value."""
    if case["is_part"]:
        yield case | {"is_part": False}
    for name in case["without"]:
        yield case | {"without": [other for other in case["without"] if other != name]}
    for key, value in case["changes"].items():
        yield case | {"changes": {k: v for k, v in case["changes"].items() if k != key}}
        if isinstance(value, str | list) and len(value) > 1:
            yield case | {"changes": case["changes"] | {key: value[: len(value) // 2]}}


def trial(case: Case, folder: Path) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(config(case)), "utf-8")
    try:
        with within():
            model = presets.load(str(file))
            text = plain(as_table(model))
        with within():
            said = described(model)
    except Problem as problem:
        return refused(problem)
    for warning in model.warnings:
        is_one_line(warning)
    assert model.counts.total > 0 and text.isprintable() or all(map(str.isprintable, text.split("\n")))
    try:
        with within():
            written = skeleton(str(file), "a-new-one").text
    except Problem as problem:
        return refused(problem)
    again = folder / "a-new-one.toml"
    again.write_text(filled(written), "utf-8")
    preset = preset_file.read_preset(again)
    assert preset.config is not None and said == described(presets.make("a-new-one", preset.config, preset)), written


def described(model: Model) -> dict[str, Any]:
    """What `describe` says of a model beside its name and its sources."""
    said = json.loads(as_json(model, collapse=True))
    about = ("model", "name", "sources", "warnings", "part")
    return {key: value for key, value in said.items() if key not in about}


def filled(skeleton: str) -> str:
    """A skeleton with what a person has to fill in."""
    for empty, full in {
        'family = ""': 'family = "Llama"',
        'organization = ""': 'organization = "Somebody"',
        'released = ""': 'released = "2024"',
        'config = ""': 'config = "config.json"',
    }.items():
        assert empty in skeleton
        skeleton = skeleton.replace(empty, full, 1)
    skeleton = skeleton.replace('components = ""', 'components = "config.json"', 1)
    tomllib.loads(skeleton)
    return skeleton
