"""What each forward pass gives when every decimal number of its config is large and unlike all others.

`texts/engine/floats.json` has a few sums of the scores of each golden checkpoint, draft head, module for prediction and
tower. Others' scores hold the usual values of a config; an epsilon that is read in the place of another of
the same value, or not at all, changes them too little to be seen. `python -m tests.approved floats` writes the sums.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import copy
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np
from reference import TESTS, draft, drafts, drawn, golden, goldens, in_double
from reference.configs import configs

from macros.catalogue.presets import Model, make
from macros.engine.architectures import architectures
from macros.engine.architectures.predicted import OverStreams
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Arrays, Cache
from macros.engine.predictions import forward
from macros.engine.towers import Grid, find, read_config, table_around

from . import TEXTS

SUMS = TEXTS / "engine" / "floats.json"
GOLDEN = TESTS / "golden"
TOWERS = GOLDEN / "towers"
MORE = {"step5": {"mtp_layer_types": ["full_attention"]}}
LEFT_OUT = {"deepseek_v41_text"}  # whose module reads several layers: `test_predictions` has its scores


def loud(config: Any) -> Any:
    """A config whose decimal numbers differ from the usual ones and from each other, the smallest too."""
    found = copy(config)
    names = sorted(f.name for f in fields(config) if type(getattr(config, f.name)) is float)
    for n, name in enumerate(names):
        object.__setattr__(found, name, getattr(config, name) * (1.1 + 0.07 * n) + 0.01 * (1 + n))
    return found


def with_loud(config: Any, compute: Callable[[Any], Any]) -> list[float]:
    """A few sums of what a config computes, or of what it computes as it is, where widths follow from its numbers."""
    with in_double(), np.errstate(all="ignore"):
        try:
            return sums(compute(loud(config)))
        except Problem:
            return sums(compute(config))


def sums(scores: Any) -> list[float]:
    """Three sums with weights of about 1 that tell the places apart, to nine digits."""
    flat = np.concatenate([np.ravel(np.asarray(one, np.float64)) for one in scores])
    return [float(f"{np.nansum(flat * np.cos(k * np.arange(flat.size))):.9g}") for k in (0.7, 1.9, 3.1)]


def of_checkpoint(name: str) -> list[float]:
    g = golden(name)
    return with_loud(g.config, lambda c: [logits(g.architecture, c, g.weights(), g.ids, g.start())[0]])


def of_draft(name: str) -> list[float]:
    g = draft(name)
    return with_loud(g.config, lambda c: [logits(g.architecture, c, Arrays(g.tensors), g.ids, g.start())[0]])


def of_module(model_type: str) -> list[float]:
    """Of the modules for prediction of the tokens after the next."""
    model = with_modules(model_type)
    assert model.prediction is not None
    counts, ids = model.prediction.counts, np.arange(5)
    c: Any = model.config
    shapes = dict(counts.tensors()) | dict(counts.tensors(counts.buffers))
    shapes |= dict.fromkeys(("model.embed_tokens.weight", "lm_head.weight"), (c.vocab_size, c.d_model))
    shapes |= {"model.embed_tokens.embed_norm.weight": (c.d_model,)}
    shapes |= {"mtp.layers.1.mixer.gate.e_score_correction_bias": (getattr(c, "n_experts", 0),)}
    arrays = Arrays(drawn(shapes))
    modules, n = model.architecture.predicts, model.prediction.number
    streams = c.n_streams if isinstance(modules, OverStreams) else 1
    states = drawn({"states": (len(ids), c.d_model * streams)})["states"]
    return with_loud(c, lambda c: [forward(arrays, ids, c, Cache(states=states), modules, model.raw, n)])


def of_tower(name: str) -> list[float]:
    npz = np.load(TOWERS / f"{name}.npz")
    around = table_around(json.loads(str(npz["config_json"])), str(npz["part"]))
    tower, grid = find(*around), Grid(*map(int, npz["grid"]))
    assert tower is not None
    stored = Arrays({file[2:]: npz[file] for file in npz.files if file[:2] in ("w/", "b/")})
    config = read_config(tower, *around)[0]
    return with_loud(config, lambda c: tower.forward(stored, npz["input"], grid, c, Cache()))


def with_modules(model_type: str) -> Model:
    """A model of the small config of a type, with one module for prediction."""
    recorded = json.loads((GOLDEN / "predictions.json").read_bytes())
    says = recorded[model_type]["says"] if model_type in recorded else {"num_nextn_predict_layers": 1}
    return make("it", (configs().get(model_type) or golden(model_type).raw) | says | MORE.get(model_type, {}))


def all_of() -> dict[str, dict[str, Callable[[], list[float]]]]:
    types = [
        name for name, one in architectures().items() if one.predicts and name in {*configs(), *goldens()} - LEFT_OUT
    ]
    towers = sorted(path.stem for path in TOWERS.glob("*.npz"))
    every = (of_checkpoint, goldens()), (of_draft, drafts()), (of_module, types), (of_tower, towers)
    return {of.__name__: {name: partial(of, name) for name in names} for of, names in every}


def write() -> None:
    found = {of: {name: compute() for name, compute in those.items()} for of, those in all_of().items()}
    lines = ["{"]
    for of, those in found.items():
        lines += [
            f'  "{of}": {{',
            ",\n".join(f"    {json.dumps(name)}: {said}" for name, said in those.items()),
            "  },",
        ]
    SUMS.write_text("\n".join(lines).removesuffix(",") + "\n}\n", "utf-8")
