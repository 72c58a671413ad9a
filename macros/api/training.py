"""Training a model, in full or with adapters: trainable parameters, bytes on the fullest device, time and energy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from ..catalogue import training_runs
from ..catalogue.models import Model
from ..counting.adapter_choice import Adapter
from ..counting.adapters import Adapters
from ..counting.asked import whole
from ..counting.bill import Prices
from ..counting.costs import of as costs_of
from ..counting.training_compute import Run
from ..counting.training_plan import MOST_RUN, UTILIZATION, ZERO, Narrowing, Plan, asked, narrowed
from ..counting.training_plan import plan as counted
from ..counting.training_plan import run as run_of
from ..counting.training_setup import Setup
from ..data.costs import plain_number
from ..engine.errors import shorten
from ..views.kit.rounding import decimal_bytes, significant
from . import model as loading
from .bills import Number, prices_of
from .conditions import problems_of, truth, warn, warn_beyond
from .fits import Memory, memory
from .tables import Table, Tabular, table_of


@dataclass(frozen=True)
class Training(Tabular):
    """The answer of `train`: `terms` are bytes on the fullest device; true if they fit on the machine, or if none was
    named.

    `adapters` is None if every parameter is trained, `run` if no tokens were given or the machine has no peak.
    """

    model: Model
    plan: Plan
    on: Memory | None
    tokens: int | None
    run: Run | None
    prices: Prices = Prices()

    @property
    def money(self) -> Fraction | None:
        """Money for the run at the given prices; None if there are none."""
        return None if self.run is None else self.run.money(self.prices)

    def __bool__(self) -> bool:
        return self.left is None or self.left >= 0

    def __repr__(self) -> str:
        return self.sentence

    @property
    def unmatched(self) -> tuple[str, ...]:
        """A line about names that match no module, if there are any."""
        names = self.adapters.unmatched if self.adapters else ()
        return (f"names that are no module's: {', '.join(map(shorten, names[:9]))}",) if names else ()

    @property
    def table(self) -> Table:
        """One row per term, in bytes."""
        return table_of([{"term": name, "bytes": n} for name, n in self.terms.items()], caption=self.sentence)

    def to_dict(self) -> dict[str, Any]:
        """The object that `every-parameter train --format json` prints."""
        return as_data(self)

    @property
    def setup(self) -> Setup:
        """The setup of the training."""
        return self.plan.setup

    @property
    def adapters(self) -> Adapters | None:
        """The adapters that are trained next to the model's own weights, or None if all weights are trained."""
        return self.plan.adapters

    @property
    def terms(self) -> dict[str, int]:
        """Bytes on the fullest device by term."""
        return self.plan.terms

    @property
    def flops_per_token(self) -> Fraction:
        """FLOPs of training on one token."""
        return self.plan.flops_per_token

    @property
    def trainable(self) -> int:
        """Trainable parameters."""
        return self.plan.trainable

    @property
    def total(self) -> int:
        """Bytes on the fullest device."""
        return self.plan.total

    @property
    def left(self) -> int | None:
        """Bytes left on the fullest device, negative if bytes are missing; None without a machine."""
        return None if self.on is None else self.on.size - self.total

    @property
    def largest_micro_batch(self) -> int | None:
        """The largest number of sequences per step that fits; 0 if not even one does, None without a machine."""
        return None if self.on is None else self.plan.largest_micro_batch(self.on.size)

    @property
    def method(self) -> str:
        """`LoRA, rank 16, on q_proj and v_proj`."""
        if self.adapters is None:
            return "in full"
        name = {"lora": "LoRA", "dora": "DoRA", "qlora": "QLoRA"}[self.setup.method]
        return f"with {name} of rank {self.adapters.adapter.rank:,} on {', '.join(self.adapters.targets)}"

    @property
    def sentence(self) -> str:
        """The answer as a sentence."""
        setup = self.setup
        where = f" on {setup.devices:,} devices ({setup.said})" if setup.devices > 1 else ""
        each = " on the fullest device" if setup.devices > 1 else ""
        sequences = f"{setup.micro_batch:,} sequence{'s' if setup.micro_batch > 1 else ''} of {setup.sequence:,} tokens"
        said = (
            f"{self.model.name} {self.method}: {self.trainable:,} trainable parameters. Training{where} at {sequences} "
            f"takes {decimal_bytes(self.total)}{each}"
        )
        if self.on is None or self.left is None:
            return f"{said}."
        rest = "left" if self.left >= 0 else "missing"
        fits = "fits on" if self.left >= 0 else "does not fit on"
        return (
            f"{said}: it {fits} {self.on.name} ({decimal_bytes(self.on.size)}); {decimal_bytes(abs(self.left))} {rest}."
        )

    @property
    def advice(self) -> str:
        """The largest micro-batch that fits, and the time and energy of the run."""
        said: list[str] = []
        if self.largest_micro_batch is not None:
            n = self.largest_micro_batch
            said.append(f"The largest micro-batch that fits is {n:,}." if n else "No micro-batch fits.")
        if self.run is not None and self.tokens is not None:
            share = significant(self.run.utilization * 100)
            said.append(
                f"{self.tokens:,} tokens take {significant(self.run.device_hours)} device-hours at {share}% of the "
                f"peak, {significant(self.run.seconds / 3600)} hours on {self.run.devices:,}."
            )
            if self.run.joules is not None:
                said.append(
                    f"At {self.run.watts:,} W a device that is {significant(self.run.joules / 3_600_000)} kWh, without "
                    "CPUs, links and cooling."
                )
            if self.money is not None:
                said.append(f"At the given prices it costs {significant(self.money)}.")
        return " ".join(said)


Asked = str | os.PathLike[str] | Mapping[str, Any] | loading.Model


def train(
    model: Asked,
    on: str | None = None,
    devices: int = 1,
    method: str = "full",
    rank: int | None = None,
    target_modules: str | Iterable[str] | None = None,
    bias: str | None = None,
    modules_to_save: str | Iterable[str] | None = None,
    optimizer: str = "adamw",
    zero: int | str = 0,
    tensor: int = 1,
    pipeline: int = 1,
    sequence_parallel: bool = False,
    recompute: str = "none",
    sequence: int = 4096,
    micro_batch: int = 1,
    gradients: str = "bfloat16",
    master_weights: bool = True,
    tokens: int | None = None,
    utilization: float = UTILIZATION,
    watts: int | None = None,
    price_per_hour: Number | None = None,
    purchase: Number | None = None,
    years: Number | None = None,
    electricity: Number | None = None,
    exclude_modules: str | Iterable[str] | None = None,
    layers_to_transform: str | int | Iterable[int] | None = None,
    layers_pattern: str | Iterable[str] | None = None,
    rank_pattern: str | Mapping[str, int] | None = None,
    alpha_pattern: str | Mapping[str, int] | None = None,
    target_parameters: str | Iterable[str] | None = None,
    expert: int = 1,
) -> Training:
    """The cost of training a model: trainable parameters, bytes on the fullest device by term, FLOPs, the time and
    energy of a run over `tokens` on a machine, and the money at your prices: `price_per_hour` of a device, or its
    `purchase` over `years`, and `electricity` for a kilowatt-hour.

    `method` is full, lora, dora or qlora, with PEFT's names: `rank` (8), `target_modules` (`q_proj,v_proj`,
    `all-linear` or a regular expression; None: PEFT's default for the model type, if it has one), `target_parameters`
    (`experts.gate_up_proj`), `bias` (none, all, lora_only), `modules_to_save`, `exclude_modules`, `layers_to_transform`
    (`0-7`), `layers_pattern`, `rank_pattern` (`q_proj=32`), `alpha_pattern`. Warns about names that match no module.

    `zero` is the stage of ZeRO, 0 for DDP, or `fsdp`. Raises `Problem`.
    """
    setup, adapter = asked(
        Choices(
            *(devices, method, rank, target_modules, bias, modules_to_save, optimizer, zero, tensor, pipeline),
            *(truth("sequence_parallel", sequence_parallel), recompute, sequence, micro_batch, gradients),
            not truth("master_weights", master_weights),
            expert,
        )
    )
    options = Narrowing(
        some(exclude_modules),
        some(layers_to_transform),
        some(layers_pattern),
        table_in(rank_pattern),
        table_in(alpha_pattern),
        some(target_parameters),
    )
    adapter = narrowed(adapter, options)
    read = loading.read(model)
    if not isinstance(model, loading.Model):
        warn(read.warnings, of=read.name)
    warn_beyond(read, setup.sequence)
    prices = prices_of(price_per_hour, purchase, years, electricity)
    machine = memory(on) if on is not None else None
    answer = plan(read, setup, adapter, machine, on, tokens, utilization, watts, prices)
    warn(answer.unmatched)
    return answer


def some(value: Any) -> Any:
    """Strings and numbers unchanged, anything else that has members as a list."""
    return value if value is None or isinstance(value, (str, int)) else list(value)


def table_in(value: Any) -> Any:
    """A mapping as a dict, anything else unchanged."""
    return dict(value) if isinstance(value, Mapping) else value


class Choices(NamedTuple):
    """The options of a training run, from a program or a terminal; None for those that were not given."""

    devices: Any
    method: Any
    rank: Any
    target_modules: Any
    bias: Any
    modules_to_save: Any
    optimizer: Any
    zero: Any
    tensor: Any
    pipeline: Any
    sequence_parallel: Any
    recompute: Any
    sequence: Any
    micro_batch: Any
    gradients: Any
    no_master_weights: Any
    expert: Any = 1


def plan(
    model: Model,
    setup: Setup,
    adapter: Adapter | None,
    on: Memory | None,
    machine: str | None = None,
    tokens: int | None = None,
    utilization: float = UTILIZATION,
    watts: int | None = None,
    prices: Prices | None = None,
) -> Training:
    """The answer. Raises `Problem` for options that the model, the devices or PEFT do not allow."""
    with problems_of(model):
        planned = counted(costs_of(model.counts), model.architecture, setup, adapter)
    count = None if tokens is None else whole("tokens", tokens, MOST_RUN)
    power = training_runs.watts_of(machine or "") if watts is None else watts
    if power is None and on is not None and on.accelerator is not None:
        power = on.accelerator.watts  # the limit that its maker states
    accelerator = None if on is None else on.accelerator
    run = run_of(planned, accelerator, count, utilization, power)
    return Training(model, planned, on, count, run, prices or Prices())


def as_data(answer: Training) -> dict[str, Any]:
    """The answer for JSON."""
    setup, run = answer.setup, answer.run
    return {
        "model": answer.model.slug,
        "name": answer.model.name,
        "method": setup.method,
        "setup": {
            "sequence": setup.sequence,
            "micro_batch": setup.micro_batch,
            "devices": setup.devices,
            "tensor": setup.tensor,
            "pipeline": setup.pipeline,
            "expert": setup.expert,
            "data": setup.data,
            "sequence_parallel": setup.sequence_parallel,
            "zero": next(name for name, sharding in ZERO.items() if sharding == setup.sharding),
            "optimizer": setup.optimizer,
            "recompute": setup.recompute,
            "gradients": setup.gradients,
            "master_weights": setup.has_master,
        },
        "parameters": answer.model.counts.total,
        "trainable_parameters": answer.trainable,
        "adapters": None if answer.adapters is None else adapters_as_data(answer.adapters),
        "bytes": answer.terms,
        "total_bytes": answer.total,
        "on": answer.on and answer.on.name,
        "memory_bytes": answer.on and answer.on.size,
        "fits": None if answer.on is None else bool(answer),
        "left_bytes": answer.left,
        "largest_micro_batch": answer.largest_micro_batch,
        "flops_per_token": plain_number(answer.flops_per_token),
        "run": None
        if run is None
        else {
            "tokens": answer.tokens,
            "flops": run.flops,
            "peak_flops": run.peak,
            "utilization": float(run.utilization),
            "seconds": float(run.seconds),
            "device_hours": float(run.device_hours),
            "watts": run.watts,
            "kilowatt_hours": None if run.joules is None else float(run.joules / 3_600_000),
            "money": None if answer.money is None else float(answer.money),
        },
        "sentence": answer.sentence,
    }


def adapters_as_data(adapters: Adapters) -> dict[str, Any]:
    """The adapters, for JSON."""
    return {
        "rank": adapters.adapter.rank,
        "target_modules": list(adapters.targets),
        "is_default_of_peft": adapters.is_default,
        "bias": adapters.adapter.bias,
        "low_rank": adapters.low_rank,
        "magnitudes": adapters.magnitudes,
        "biases": adapters.biases,
        "saved": adapters.saved,
        "modules": [
            {
                "name": one.module.name,
                "out": one.module.outputs,
                "in": one.module.inputs,
                "members": one.module.members,
                "copies": len(one.layers),
                "rank": one.rank,
                "parameters": one.count,
            }
            for one in adapters.modules
        ],
    }
