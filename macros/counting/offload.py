"""Layers, or only routed experts, in the host's memory: the placement, and the minimum time per token.

As llama.cpp places them: the last layers are on the accelerator (`--n-gpu-layers`), each with its cache; routed experts
of the first layers may be in the host's memory while the rest of these layers is not (`--n-cpu-moe`). Tables, the head
and the final norm are on the accelerator.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ..engine.errors import Problem
from ..engine.tensors import Weight
from .accelerators import Accelerator
from .conditions import Conditions
from .costs import Costs
from .traffic import power


@dataclass(frozen=True)
class Offload:
    """The number of first layers in the host's memory, and the number of layers whose routed experts are there."""

    layers: int = 0
    expert_layers: int = 0

    def of(self, w: Weight) -> tuple[int, ...]:
        """The layers whose copy of a weight is in the host's memory."""
        first = max(self.layers, self.expert_layers if w.routed is not None else 0)
        return tuple([i for i in w.layers or () if i < first])


@dataclass(frozen=True)
class Placed:
    """Memory of an accelerator and its host during decode, and the bytes read there per token."""

    device: dict[str, int]
    host: dict[str, int]
    device_read: int
    host_read: int

    def fits(self, device_bytes: int, host_bytes: int | None = None) -> bool:
        """Whether both have room; the size of the host's memory may be unknown."""
        has_room = host_bytes is None or sum(self.host.values()) <= host_bytes
        return sum(self.device.values()) <= device_bytes and has_room

    def device_seconds(self, machine: Accelerator) -> Fraction:
        """The minimum time to read the part on the accelerator that a token needs."""
        return Fraction(self.device_read, machine.bytes_per_second)

    def computed_seconds(self, machine: Accelerator, host: Accelerator) -> Fraction:
        """The minimum time if the CPU computes the host's part: each layer waits for the one before it, so the two
        times add up."""
        return self.device_seconds(machine) + Fraction(self.host_read, host.bytes_per_second)

    def moved_seconds(self, machine: Accelerator, host: Accelerator) -> Fraction | None:
        """The minimum time if the accelerator computes everything, and the host's part is moved over its link for each
        token while the accelerator works. None if the host states no link."""
        if host.link is None:
            return None
        slowest = min(host.link.one_way, host.bytes_per_second)
        return max(self.device_seconds(machine), Fraction(self.host_read, slowest))


def placed(costs: Costs, given: Conditions, offload: Offload) -> Placed:
    """The placement, and the bytes that a decode step reads from each memory; the number of experts read is the
    expected one."""
    held = costs.memory.inference_bytes(1, given)
    weights = read = 0
    routed: dict[tuple[int, int], int] = {}
    for w in (*costs.counts.weights, *costs.counts.buffers):
        here = offload.of(w)
        if here:
            size = costs.formats.part_size(
                w, given.format, [int(d) for d in w.shape], here, 1 if w.members is None else int(w.members)
            )
            weights += size
            if w.routed is not None:
                key = int(w.routed[0]), int(w.routed[1])
                routed[key] = routed.get(key, 0) + size
            elif w in costs.counts.ngram_tables:
                read += costs.traffic.table_bytes_read(w, given.batch, given.format)
            elif w not in costs.traffic.of_first_step:
                read += size
    read += sum(int(size * (1 - power(1 - used / members, given.batch))) for (members, used), size in routed.items())

    def share(layers: tuple[int, ...], size: int) -> int:
        return size // len(layers) * sum(i < offload.layers for i in layers)

    cache = sum(share(k.layers, size) for k, size in costs.cache.cache_by_entry(given.tokens, given.item_bytes))
    seen = sum(share(k.layers, size) for k, size in costs.traffic.cache_reads(1, given.tokens, given.item_bytes))
    read += seen * given.batch
    everything = costs.traffic.weight_bytes_read(1, given.batch, given.format) + costs.traffic.cache_bytes_read(
        1, given.tokens, given.batch, given.item_bytes
    )
    return Placed(
        {**held, "weights": held["weights"] - weights, "cache": held["cache"] - cache * given.batch},
        {"weights": weights, "cache": cache * given.batch},
        everything - read,
        read,
    )


def asked_offload(
    costs: Costs, given: Conditions, device_bytes: int, gpu_layers: Any = None, n_cpu_moe: Any = None
) -> Offload:
    """The placement with this many layers on the accelerator and the routed experts of this many first layers in the
    host's memory; by default, the host gets as little as possible. Raises `Problem` for more layers than there are."""
    if gpu_layers is None and n_cpu_moe is None:
        return least_offload(costs, given, device_bytes) or Offload(costs.devices.n_layers, costs.devices.n_layers)
    limits = {"gpu_layers": gpu_layers, "n_cpu_moe": n_cpu_moe}
    for name, n in limits.items():
        if n is not None and not (isinstance(n, int) and not isinstance(n, bool) and 0 <= n <= costs.devices.n_layers):
            mend = f"give a whole number from 0 to {costs.devices.n_layers:,}"
            raise Problem(f"the model has {costs.devices.n_layers:,} layers", mend).about(name, n)
    if n_cpu_moe and not has_experts(costs):
        raise Problem("the model has no routed experts", "leave it out", parameter="n_cpu_moe")
    return Offload(0 if gpu_layers is None else costs.devices.n_layers - gpu_layers, n_cpu_moe or 0)


def has_experts(costs: Costs) -> bool:
    """Whether there are routed experts."""
    return any(w.routed is not None for w in costs.counts.weights)


def least_offload(costs: Costs, given: Conditions, device_bytes: int) -> Offload | None:
    """The fewest layers in the host's memory with which the rest fits on the accelerator: for a mixture of experts only
    the routed experts if that is enough, otherwise all of them and whole layers. None if even all layers are not
    enough."""
    every = costs.devices.n_layers if has_experts(costs) else 0
    steps = [Offload(expert_layers=n) for n in range(every)] + [
        Offload(n, every) for n in range(costs.devices.n_layers + 1)
    ]
    least = bisect_left(steps, True, key=lambda offload: placed(costs, given, offload).fits(device_bytes))
    return steps[least] if least < len(steps) else None
