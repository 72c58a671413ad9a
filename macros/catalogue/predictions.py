"""The modules for multi-token prediction as a component of a model: tensors, parameters, cost of a draft."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

from ..counting.parameters import Counts
from ..engine.architectures.config import Config
from ..engine.errors import Problem
from ..engine.rules import ShapeError

# The keys of a config with the number of modules, or of a module's layers.
KEYS = "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "num_mtp_layers"
# Inkling's names for the text part's keys in its table of the modules.
OF_TABLE = {
    "num_mtp_layers": "num_nextn_predict_layers",
    "chain_hidden_post_norm": "chain_hidden_post_norm",
    "mtp_local_layer_ids": "local_layer_ids",
}
AT = 4096  # context in tokens at which a draft's cost is given


class Prediction:
    """The modules of one model. `key` is the config.json key with their number, `where` its location. They use the
    model's embedding and head."""

    def __init__(self, key: str, number: int, where: str, module: Any, config: Config, raw: Mapping[str, Any]):
        self.key, self.number, self.where = key, number, where
        self._of = module, config, raw

    @cached_property
    def counts(self) -> Counts:
        """Their tensors, and the FLOPs and the cache of a draft that runs each of them once."""
        module, config, raw = self._of
        from ..engine.predictions import trace

        try:
            return Counts(trace(module, config, raw, self.number))
        except ShapeError as error:
            what = f"the sizes of the modules that {self.key} counts do not fit together: {error}"
            raise Problem(what, f"correct those sizes, or leave {self.key} out", self.where) from None

    @property
    def total(self) -> int:
        """Their parameters."""
        return self.counts.total


def prediction_of(model: Any) -> Prediction | None:
    """The modules of a model; None if it has none, or if none of their sources was read."""
    (key, number), module = _modules(model), model.architecture.predicts
    return Prediction(key, number, model.where, module, model.config, _keys(model)) if number and module else None


def uncounted_modules(model: Any) -> tuple[str, ...]:
    """The key of modules that are not counted because none of their sources was read."""
    key, number = _modules(model)
    return (key,) if number and model.architecture.predicts is None else ()


def _keys(model: Any) -> Mapping[str, Any]:
    """The keys of a text part, plus any outside it that describe its modules."""
    outside = {name: model.whole[name] for name in KEYS if name in model.whole}
    table = model.whole.get("mtp_config")
    if isinstance(table, Mapping):
        inside = cast("Mapping[str, Any]", table)
        outside |= {ours: inside[theirs] for ours, theirs in OF_TABLE.items() if theirs in inside}
    return {**outside, **model.raw}


def _modules(model: Any) -> tuple[str, int]:
    """The key of a config with the number of modules, and the number."""
    raw, module = _keys(model), model.architecture.predicts
    if not (module and module.usual) and not any(raw.get(name) for name in KEYS):
        return "", 0
    from ..engine.predictions import number_of  # few models have some

    try:
        return number_of(module, raw, KEYS)
    except Problem as problem:
        raise problem.at(model.where) from None
