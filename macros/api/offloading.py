"""Layers or routed experts in the host's memory: whether both memories are large enough, and the minimum time per
token."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ..catalogue.models import Model
from ..counting.conditions import Conditions
from ..counting.costs import of as costs_of
from ..counting.offload import Offload, Placed, asked_offload, has_experts, placed
from ..data.costs import plain_number
from ..engine.errors import Problem
from ..views.kit.rounding import decimal_bytes, significant
from . import model as loading
from .conditions import OWN, conditions, problems_of, warn, warn_beyond
from .fits import Asked, Memory, as_conditions, memory
from .tables import Table, Tabular, table_of

HOST = "64GB,2xDDR5-5600"


@dataclass(frozen=True)
class Offloaded(Tabular):
    """The answer, true or false: the parts on the accelerator and in the host's memory, and the minimum times per
    token, in seconds; None if a machine states no bandwidth, or the host no link."""

    model: Model
    given: Conditions
    on: Memory
    host: Memory
    offload: Offload
    placed: Placed

    def __bool__(self) -> bool:
        return self.is_enough

    def __repr__(self) -> str:
        return self.sentence

    @property
    def is_enough(self) -> bool:
        return self.placed.fits(self.on.size, self.host.size)

    @property
    def gpu_layers(self) -> int:
        """The number of layers on the accelerator, whether or not their routed experts are there too."""
        return costs_of(self.model.counts).devices.n_layers - self.offload.layers

    @property
    def cpu_moe_layers(self) -> int:
        """The number of layers whose routed experts are in the host's memory."""
        return max(self.offload.expert_layers, self.offload.layers) if self._has_experts else 0

    @property
    def _has_experts(self) -> bool:
        return has_experts(costs_of(self.model.counts))

    @property
    def computed_seconds(self) -> Fraction | None:
        """The minimum time of a step if the CPU computes the host's part."""
        if self.on.accelerator is None or self.host.accelerator is None:
            return None
        return self.placed.computed_seconds(self.on.accelerator, self.host.accelerator)

    @property
    def moved_seconds(self) -> Fraction | None:
        """The minimum time of a step if the host's part is moved to the accelerator for each token."""
        if self.on.accelerator is None or self.host.accelerator is None:
            return None
        return self.placed.moved_seconds(self.on.accelerator, self.host.accelerator)

    @property
    def table(self) -> Table:
        """One row per term, in bytes, on the accelerator and in the host's memory; then the bytes per token."""
        rows = [
            {"term": name, "device_bytes": n, "host_bytes": self.placed.host.get(name, 0)}
            for name, n in self.placed.device.items()
        ]
        read = {"term": "read", "device_bytes": self.placed.device_read, "host_bytes": self.placed.host_read}
        return table_of([*rows, read], caption=self.sentence)

    def to_dict(self) -> dict[str, Any]:
        """The object that `every-parameter fits --host … --format json` prints."""
        return {
            "model": self.model.slug,
            "name": self.model.name,
            "conditions": {
                **as_conditions(self.given, self.on),
                "host": self.host.name,
                "host_memory_bytes": self.host.size,
            },
            "weights": self.model.counts.formats.said(self.given.format),
            "fits": self.is_enough,
            "gpu_layers": self.gpu_layers,
            "cpu_moe_layers": self.cpu_moe_layers,
            "device_bytes": self.placed.device,
            "host_bytes": self.placed.host,
            "device_read_bytes": self.placed.device_read,
            "host_read_bytes": self.placed.host_read,
            "computed_seconds": plain_number(self.computed_seconds),
            "moved_seconds": plain_number(self.moved_seconds),
            "sentence": self.sentence,
        }

    @property
    def what(self) -> str:
        """The host's part, in words."""
        every = costs_of(self.model.counts).devices.n_layers
        layers, experts = self.offload.layers, self.cpu_moe_layers
        said = [f"{layers:,} of {every:,} layers"] if layers else []
        if experts > layers:
            said.append(f"the routed experts of the first {experts:,} of {every:,} layers")
        return " and ".join(said) or "nothing"

    @property
    def sentence(self) -> str:
        """The answer as a sentence."""
        does = "fits on" if self.is_enough else "does not fit on"
        device, host = (sum(terms.values()) for terms in (self.placed.device, self.placed.host))
        return (
            f"{self.model.name} {self.model.counts.formats.phrase(self.given.format)} {does} {self.on.name} with "
            f"{self.what} in the host’s memory ({self.host.name}) at {self.given.sequences} "
            f"with the cache in {self.given.dtype}: {decimal_bytes(device)} on the accelerator, "
            f"{decimal_bytes(host)} on the host."
        )

    @property
    def speed(self) -> str:
        """The minimum times as a sentence; empty if there are none."""
        if self.computed_seconds is None:
            return ""
        rate = significant(self.given.batch / self.computed_seconds)
        said = f"At most {rate} tokens per second if the CPU computes the host’s part"
        if self.moved_seconds is not None and self.placed.host_read:
            moved = significant(self.given.batch / self.moved_seconds)
            said += f", and {moved} if that part is moved to the accelerator for each token"
        return f"{said}."


def offloaded(
    model: Model,
    given: Conditions,
    on: Memory,
    host: Memory,
    gpu_layers: int | None = None,
    cpu_moe: int | None = None,
) -> Offloaded:
    """The placement with this many layers on the accelerator and the routed experts of this many first layers in the
    host's memory. Without either number, the host holds as little as possible. Raises `Problem` for more layers than
    the model has."""
    costs = costs_of(model.counts)
    with problems_of(model):
        offload = asked_offload(costs, given, on.size, gpu_layers, cpu_moe)
    return Offloaded(model, given, on, host, offload, placed(costs, given, offload))


def offload(
    model: Asked,
    on: str,
    host: str = HOST,
    context: int = 4096,
    batch: int = 1,
    weights: str = OWN,
    cache: str = "bfloat16",
    gpu_layers: int | None = None,
    n_cpu_moe: int | None = None,
) -> Offloaded:
    """Whether a model fits on an accelerator with layers, or routed experts, in the host's memory, and the minimum time
    per token.

    `host` is its memory, its bandwidth and the link to it: `64GB,2xDDR5-5600,link:64GB/s`. The last `gpu_layers` layers
    stay on the accelerator with their cache, and so do tables and head; the routed experts of the first `n_cpu_moe`
    layers are in the host's memory. Without either number, the host holds as few as possible, experts first. Raises
    `Problem`.
    """
    machine, beside = memory(on), host_memory(host)
    weights = loading.own_format(model, weights)
    given = replace(conditions(context, batch, weights, cache), accelerator=machine.accelerator)
    read = loading.read(model)
    if not isinstance(model, loading.Model):
        warn(read.warnings, of=read.name)
    warn_beyond(read, given.tokens)
    return offloaded(read, given, machine, beside, gpu_layers, n_cpu_moe)


def host_memory(text: str) -> Memory:
    """The host's memory, written like an accelerator's. Raises `Problem` that names it."""
    try:
        return memory(text, "host")
    except Problem as problem:
        raise Problem(problem.what, f"write it as in {HOST}").about("host", text) from None
