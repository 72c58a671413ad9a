"""The modules for multi-token prediction of a model, as a component beside it: tensors, parameters, cost of a draft."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

from ..counting.parameters import Counts
from ..engine.architectures.config import Config
from ..engine.errors import Problem
from ..engine.rules import ShapeError

# The keys of a config with the number of modules, or of a module's layers; the types whose files have one without.
KEYS = "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "num_mtp_layers"
WITHOUT_A_KEY = re.compile("^(qwen3_(next|5)|qwen4_exp|dots3_note)")
# What Inkling's table of the modules calls the keys of the text part.
OF_TABLE = {
    "num_mtp_layers": "num_nextn_predict_layers",
    "chain_hidden_post_norm": "chain_hidden_post_norm",
    "mtp_local_layer_ids": "local_layer_ids",
}
AT = 4096  # the context, in tokens, that a draft is counted at


class Prediction:
    """The modules of one model; `key` is that of config.json with their number, `where` says where that is. Embedding
    and head are the model's."""

    def __init__(self, key: str, number: int, where: str, model_type: str, config: Config, raw: Mapping[str, Any]):
        self.key, self.number, self.where = key, number, where
        self._of = model_type, config, raw

    @cached_property
    def counts(self) -> Counts:
        """Their tensors, and the FLOPs and the cache of a draft with each of them once."""
        model_type, config, raw = self._of
        from ..engine.predictions import trace

        try:
            return Counts(trace(model_type, config, raw, self.number))
        except ShapeError as error:
            what = f"the sizes of the modules that {self.key} counts do not fit together: {error}"
            raise Problem(what, f"correct those sizes, or leave {self.key} out", self.where) from None

    @property
    def total(self) -> int:
        """Their parameters."""
        return self.counts.total


def prediction_of(model: Any) -> Prediction | None:
    """The modules of a model; None if it has none, or if no source of theirs was read."""
    key, number, is_known = _modules(model)
    return (
        Prediction(key, number, model.where, model.model_type, model.config, _keys(model))
        if number and is_known
        else None
    )


def uncounted_modules(model: Any) -> tuple[str, ...]:
    """The key of modules that are not counted because no source of theirs was read."""
    key, number, is_known = _modules(model)
    return (key,) if number and not is_known else ()


def _keys(model: Any) -> Mapping[str, Any]:
    """The keys of a text part, with those about its modules that stand outside of it."""
    outside = {name: model.whole[name] for name in KEYS if name in model.whole}
    table = model.whole.get("mtp_config")
    if isinstance(table, Mapping):
        inside = cast("Mapping[str, Any]", table)
        outside |= {ours: inside[theirs] for ours, theirs in OF_TABLE.items() if theirs in inside}
    return {**outside, **model.raw}


def _modules(model: Any) -> tuple[str, int, bool]:
    """The key of a config with the number of modules, the number, and whether those of the type are counted."""
    raw = _keys(model)
    if not WITHOUT_A_KEY.search(model.model_type) and not any(raw.get(name) for name in KEYS):
        return "", 0, False
    from ..engine.predictions import modules  # which needs the forward passes of a dozen makers

    try:
        key, number, module = modules(model.model_type, raw, KEYS)
    except Problem as problem:
        raise problem.at(model.where) from None
    return key, number, module is not None
