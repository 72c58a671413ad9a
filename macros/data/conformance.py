"""The conformance file: the exact integers that a calculator must give for each model of the catalog.

Authors of calculators pass in each model's `config` and compare the answers with its figures, key by key. The
conventions behind each figure are in the same file.
"""

from __future__ import annotations

from typing import Any

from ..catalogue.models import Model
from ..counting.costs import of as costs_of
from ..counting.figures import FIGURES
from ..counting.formats import FORMATS, PUBLISHED
from .costs import Asked, keyed
from .model import VERSION, line

# Tokens: one, the last that a short window holds and the first that it drops, and the usual lengths.
CONTEXTS = 1, 4096, 4097, 32768, 131072
ASKED = Asked(CONTEXTS)
PLACES = "parameters", "kv_cache", "flops"
CONVENTIONS = {
    "context": "figures whose keys are numbers hold a value for each context, in tokens, for one sequence",
    "weight_bytes": "every tensor once: matrices in the format with its scales, norms and biases in 16 bits",
    "published_weight_bytes": "every trained tensor once, in the format that quantization_config says, with its "
    "scales; the rest in 16 bits",
    "kv_cache": "2 bytes for each element, except states that the architecture keeps in another type",
    "parameters.stored": "the numbers in the published file, scales included; without one, parameters and buffers",
}


def of_model(model: Model) -> dict[str, Any]:
    """One model's config and figures. Parameters in numbers, weights and cache in bytes, FLOPs at 2 per
    multiply-add."""
    costs = costs_of(model.counts)
    return {
        "model": model.slug,
        "name": model.name,
        "hub": model.preset and model.preset.hub,
        "config": dict(model.raw),
        "parameters": {
            **keyed(costs, "parameters", ASKED),
            "stored": model.stored,
            "stored_is_computed": model.is_stored_computed,
        },
        "weight_bytes": {name: costs.memory.converted_weight_bytes(name) for name in FORMATS},
        "published_weight_bytes": costs.weight_bytes(PUBLISHED),
        "kv_cache": keyed(costs, "kv_cache", ASKED),
        "flops": keyed(costs, "flops", ASKED),
    }


def conventions() -> dict[str, str]:
    """The convention of each figure, by its key, and those that several share."""
    listed = {figure.key: figure.convention for figure in FIGURES.values() if figure.key.partition(".")[0] in PLACES}
    return CONVENTIONS | {key: convention for key, convention in listed.items() if convention}


def as_json(models: list[dict[str, Any]]) -> str:
    """The file, on one line."""
    return line({"version": VERSION, "contexts": CONTEXTS, "conventions": conventions(), "models": models})
