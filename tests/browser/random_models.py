"""Models with random hyperparameters, formats, contexts and batches, and what Python says of each."""

from __future__ import annotations

import random
from typing import Any, get_args

from macros.catalogue import presets
from macros.counting.accelerators import accelerators
from macros.counting.conditions import Conditions
from macros.counting.figures import FIGURES
from macros.counting.formats import CACHE_BYTES, PUBLISHED, WEIGHTS
from macros.counting.parameters import Counts
from macros.engine.architectures.config import Key, fields_of
from macros.engine.errors import Problem
from macros.engine.forward import trace
from macros.engine.keys import continued
from macros.engine.ops import ACTIVATIONS
from macros.engine.rules import ShapeError


def cases(number: int, seed: int, each: int = 1) -> list[dict[str, Any]]:
    """So many cases, the models in turn, each under as many conditions: its keys, the conditions, and every figure, or
    what is wrong with them.
    """
    rng = random.Random(seed)
    slugs = [slug for slug in presets.paths() if presets.preset(slug).config is not None]
    rng.shuffle(slugs)
    given: list[dict[str, Any]] = []
    for n in range(number // each):
        model = presets.model(slugs[n % len(slugs)])
        raw = dict(model.raw) if n % 8 == 1 else varied(model, rng)
        counts = counts_of(model, raw)
        given += [case(model, raw, counts, rng, n * each + i) | {"is_another": i == 0} for i in range(each)]
    return given


def counts_of(model: presets.Model, raw: dict[str, Any]) -> Counts | str:
    """What a model's keys give, or what is wrong with them."""
    try:
        return Counts(trace(model.architecture, model.architecture.config.read(raw)[0]), raw, model.architecture)
    except Problem as problem:
        return problem.what
    except ShapeError as error:
        return type(error).__name__


def case(model: presets.Model, raw: dict[str, Any], counts: Counts | str, rng: random.Random, i: int) -> dict[str, Any]:
    """The i-th case. What is searched for (the longest context) takes longer than all the rest: in every eighth."""
    given = dict(
        context=int(2 ** rng.uniform(0, 21)),
        batch=int(2 ** rng.uniform(0, 9)),
        format=rng.choice([PUBLISHED, *WEIGHTS]),
        dtype=rng.choice(list(CACHE_BYTES)),
        devices=int(2 ** rng.uniform(0, 5)),
    )
    machine = rng.choice(list(accelerators()))
    said: dict[str, Any] = {"slug": model.slug, "raw": raw, "given": given, "accelerator": machine}
    if isinstance(counts, str):
        return {**said, "problem": counts}
    try:
        conditions = Conditions(**given, accelerator=accelerators()[machine])
        names = [name for name in FIGURES if name != "largest_context" or i % 8 == 0]
        figures = {name: FIGURES[name].of(counts, conditions) for name in names}
        shapes = [["x".join(map(str, map(int, w.shape))), str(w.count.expr)] for w in counts.trace.weights.values()]
    except Problem as problem:
        return {**said, "problem": problem.what}
    except ShapeError as error:
        return {**said, "problem": type(error).__name__}
    written = {name: None if value is None else str(value) for name, value in figures.items()}
    return {**said, "figures": written, "shapes": shapes}


def varied(model: presets.Model, rng: random.Random) -> dict[str, Any]:
    """The keys of a model with some of them changed: sizes, flags, what may be left out, lists of layers."""
    raw = dict(model.raw)
    settable = [k for k in fields_of(model.architecture.config) if k.key]
    for k in rng.sample(settable, min(len(settable), rng.choice((1, 1, 2, 3, 6)))):
        name = next((n for n in (k.key, *k.also) if n in raw), k.key)
        value = other(k, raw.get(name, getattr(model.config, k.field)), rng)
        if k.field == "n_layers" and isinstance(value, int):
            raw = {n: continued(v, int(model.config.symbols["n_layers"]), value) for n, v in raw.items()}
        if value is None and type(None) not in get_args(k.type) and rng.random() < 0.9:
            continue
        raw[name] = value
    return raw


def other(k: Key, value: Any, rng: random.Random) -> Any:
    """Another value of a hyperparameter, mostly a possible one."""
    if type(None) in get_args(k.type) and rng.random() < 0.2:
        return None
    if k.is_size:
        n = int(value or rng.choice((1, 8, 64, 1024)))
        if k.field == "n_layers":
            return rng.choice((1, n + 1, max(1, n // 2), rng.randint(1, 100)))
        return rng.choice((2 * n, 4 * n, max(1, n // 2), n, n + 1, rng.randint(1, 2 * n), 0, 1))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, 2 * value, 1, rng.randint(0, 8)))
    if isinstance(value, float):
        return rng.choice((value * 2, value / 2, 1, 0.25))
    if isinstance(value, list):
        return rng.sample(value, len(value)) if rng.random() < 0.8 else value[1:]
    if isinstance(value, str):
        return rng.choice([*ACTIVATIONS, value, value, "unheard-of"])
    return value
