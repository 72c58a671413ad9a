"""Training: FLOPs per token, and from them the time and the energy of a run.

A multiply-add is 2 FLOPs; every pair of a query and a key counts, as in published utilizations (arXiv 2204.02311,
appendix B). The backward pass is twice the forward pass; the gradient of frozen weights is not computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from .adapters import Adapters
from .costs import Costs
from .training_setup import Setup

if TYPE_CHECKING:
    from .bill import Prices

SECONDS_OF_HOUR = 3600


@dataclass(frozen=True)
class Run:
    """A training run: this many tokens on this many devices, at a share of their peak; energy if their power is
    given."""

    flops: int
    devices: int
    peak: int
    utilization: Fraction
    watts: int | None = None

    @property
    def seconds(self) -> Fraction:
        """The duration from the first to the last token."""
        return self.flops / (self.devices * self.peak * self.utilization)

    @property
    def device_hours(self) -> Fraction:
        return self.seconds * self.devices / SECONDS_OF_HOUR

    @property
    def joules(self) -> Fraction | None:
        """The energy of the devices only, at this power throughout."""
        return None if self.watts is None else self.seconds * self.devices * self.watts

    def money(self, prices: Prices) -> Fraction | None:
        """The cost of all devices and of their electricity; None without a price."""
        return prices.money(self.seconds * self.devices, self.joules)


def flops_per_token(costs: Costs, setup: Setup, adapters: Adapters | None = None) -> Fraction:
    """FLOPs of training on a token: three forward passes, or four if each layer is recomputed; with frozen weights one
    fewer for all products with weights, and three for the adapters' own."""
    forward = costs.compute.training_flops_per_token(setup.sequence) / 3
    again = 1 if setup.recompute == "full" else 0
    if adapters is None:
        return forward * (3 + again)
    pairs = _pair_flops(costs, setup.sequence)
    return forward * (2 + again) + pairs + adapter_flops(adapters) * (3 + again)


def adapter_flops(adapters: Adapters) -> int:
    """FLOPs of a token through all adapters, forward only; for experts, only through the chosen ones."""
    total = 0
    for one in adapters.modules:
        routed = one.module.weights[0].routed
        share = one.low_rank if routed is None else one.low_rank // int(routed[0]) * int(routed[1])
        total += 2 * share * len(one.layers)
    return total


def _pair_flops(costs: Costs, sequence: int) -> Fraction:
    """FLOPs of a token over pairs of tokens, forward only, every pair counted: latents expanded per head."""
    full, causal = (costs.compute.expanded_flops(sequence, sequence, causal=is_causal) for is_causal in (False, True))
    return Fraction(costs.compute.forms(sequence, sequence)[-1][1] + full - causal, sequence)


def implied_utilization(flops: int, device_hours: Fraction, peak: int) -> Fraction:
    """The share of the peak that a run with this many FLOPs reached in this many device-hours."""
    return flops / (device_hours * SECONDS_OF_HOUR * peak)
