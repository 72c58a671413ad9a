"""Fine-tuning and training in a model's object: parameters of adapters, bytes on one of several devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..counting import adapters
from ..counting.adapter_choice import ALL_LINEAR, RANK, Adapter
from ..counting.adapters import every_linear
from ..counting.costs import Costs
from ..counting.module_tree import Module, modules
from ..counting.training_setup import Setup, device_terms
from ..engine.errors import Problem

if TYPE_CHECKING:
    from ..catalogue.models import Model

# The usual starting points of fine-tuning: PEFT's default, and every linear layer at the rank of QLoRA's examples.
LORA = {"default": lambda _: Adapter(RANK), ALL_LINEAR: lambda architecture: every_linear(architecture, 16)}
ZERO = Setup(sequence=4096, devices=8, sharding="zero3")
TERMS = ("weights", "gradients", "master weights", "optimizer states", "exchange buffers", "activations", "logits")


def data(model: Model, costs: Costs) -> dict[str, Any]:
    """The keys of training among a model's costs."""
    known = modules(model.counts, model.architecture)
    return {
        "lora": {name.replace("-", "_"): _lora(model, of(model.architecture), known) for name, of in LORA.items()},
        "zero3_bytes": _zero(costs, known),
    }


def _lora(model: Model, adapter: Adapter, known: tuple[Module, ...]) -> dict[str, Any] | None:
    """The parameters of adapters as PEFT makes them; None if it finds nothing to adapt."""
    try:
        made = adapters.adapters(model.counts, model.architecture, adapter, known)
    except Problem:
        return None
    return {
        "rank": adapter.rank,
        "target_modules": list(made.targets),
        "exclude_modules": list(adapter.excluded),
        "parameters": made.total,
    }


def _zero(costs: Costs, known: tuple[Module, ...]) -> dict[str, Any] | None:
    """Bytes on each device by term; None if they are not known."""
    try:
        terms = device_terms(costs, ZERO, None, known)
    except Problem:
        return None
    return {
        "devices": ZERO.devices,
        "sequence": ZERO.sequence,
        "micro_batch": ZERO.micro_batch,
        "optimizer": ZERO.optimizer,
        "bytes": {name.replace(" ", "_"): terms[name] for name in TERMS},
        "total": sum(terms.values()),
    }
