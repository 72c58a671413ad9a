"""Several devices: how a model is split over them, and the bytes that they exchange, for programs and the command
line."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from ..catalogue.models import Model
from ..counting.asked import one_of, whole
from ..counting.conditions import Conditions
from ..counting.costs import of as costs_of
from ..counting.links import DISPATCH_TYPES, Transfer, transfers
from ..counting.spreads import Spread, asked_splits, chosen, spread
from ..data.costs import plain_number
from ..engine.bounds import MOST_DEVICES
from . import model as loading
from .conditions import OWN, conditions, problems_of, warn, warn_beyond
from .fits import Asked, Memory, as_conditions, memory
from .tables import Row, Table, table_of


def every_spread(
    model: Model, given: Conditions, dispatch: str = "bfloat16", degrees: tuple[int, int, int] | None = None
) -> list[Spread]:
    """The splits over the given devices, or the one with these degrees. Raises `Problem` if there is none."""
    costs = costs_of(model.counts)
    one_of("dispatch", dispatch, DISPATCH_TYPES, "type")
    with problems_of(model):
        found = asked_splits(costs, given, degrees)
    return [spread(costs, split, given, dispatch) for split in found]


def splits(
    model: Asked,
    on: str = "80GB",
    devices: int = 8,
    context: int = 4096,
    batch: int = 1,
    weights: str = OWN,
    cache: str = "bfloat16",
    dispatch: str = "bfloat16",
) -> Table:
    """The ways to split a model over several devices: one row per split, with the bytes on the fullest device, the
    bytes that one device sends in a decode step and in prefill, and the minimum times.

    `dispatch` is the type in which tokens travel to experts, `bfloat16` or `fp8`; all other messages have 16 bits.
    Times are None if `on` is only an amount of memory, and times on links if it states no links. Raises `Problem` if
    the model's sizes are not divisible by this many devices.
    """
    read, given, machine = _asked(model, on, context, batch, weights, cache, devices)
    rows = [row(one, machine) for one in every_spread(read, given, dispatch)]
    return table_of(rows, caption=f"{read.name} on {given.devices:,} × {machine.name}")


def traffic(
    model: Asked,
    tensor: int = 1,
    pipeline: int = 1,
    data: int = 1,
    context: int = 4096,
    batch: int = 1,
    new_tokens: int = 1,
    dispatch: str = "bfloat16",
) -> Table:
    """The messages between the devices of one split in a step of `new_tokens` tokens per sequence: one row per kind of
    message.

    `sent_bytes` is for one device, summed over the stages, `total_bytes` for all devices. Routed experts are divided
    over the devices of a stage. A token is sent once to each other device that has any of its experts; their expected
    number assumes that tokens choose evenly, so bytes may be fractions. Raises `Problem` for degrees by which the
    model's sizes are not divisible.
    """
    read, given, _ = _asked(model, "80GB", context, batch)
    asked = {"tensor": tensor, "pipeline": pipeline, "data": data}
    degrees = {name: whole(name, n, MOST_DEVICES) for name, n in asked.items()}
    one_of("dispatch", dispatch, DISPATCH_TYPES, "type")
    new = whole("new_tokens", new_tokens, given.tokens)
    costs = costs_of(read.counts)
    with problems_of(read):
        split = chosen(costs, **degrees, batch=given.batch)
    found = transfers(costs, split, new, given, dispatch)
    columns = ("message", "after", "times", "devices", "sent_bytes", "total_bytes")
    return Table(columns, [transfer_row(t) for t in found], caption=f"{read.name}, {split.said}")


def _asked(
    model: Asked,
    on: str,
    context: int,
    batch: int,
    weights: str = OWN,
    cache: str = "bfloat16",
    devices: int = 1,
) -> tuple[Model, Conditions, Memory]:
    machine = memory(on)
    weights = loading.own_format(model, weights)
    given = replace(conditions(context, batch, weights, cache, devices), accelerator=machine.accelerator)
    read = loading.read(model)
    if not isinstance(model, loading.Model):
        warn(read.warnings, of=read.name)
    warn_beyond(read, given.tokens)
    return read, given, machine


def whole_or_float(value: Fraction) -> int | float:
    """An expected number of bytes: exact if it is whole."""
    return int(value) if value.denominator == 1 else float(value)


def transfer_row(t: Transfer) -> Row:
    """A kind of message as a row."""
    return {
        "message": t.kind,
        "after": t.after,
        "times": t.times,
        "devices": t.among,
        "sent_bytes": whole_or_float(t.sent),
        "total_bytes": whole_or_float(t.total),
    }


def row(one: Spread, machine: Memory) -> Row:
    """A split as a row."""
    steps: Row = {}
    for name, step in (("decode", one.decode), ("prefill", one.prefill)):
        steps |= {
            f"{name}_sent_bytes": whole_or_float(step.sent),
            f"{name}_total_bytes": whole_or_float(step.total),
            f"{name}_compute_seconds": step.limits and plain_number(step.limits.compute),
            f"{name}_memory_seconds": step.limits and plain_number(step.limits.memory),
            f"{name}_link_seconds": step.limits and plain_number(step.limits.links),
        }
    return {
        "split": one.split.said,
        **one.split.degrees,
        **{f"{name}_bytes": n for name, n in one.terms.items()},
        "total_bytes": one.total,
        "fits": one.total <= machine.size,
        **steps,
    }


def as_data(model: Model, given: Conditions, on: Memory, found: list[Spread]) -> dict[str, Any]:
    """The object that `split --format json` prints."""
    return {
        "model": model.slug,
        "name": model.name,
        "conditions": as_conditions(given, on),
        "weights": model.counts.formats.said(given.format),
        "splits": [
            {
                **row(one, on),
                "decode_messages": [transfer_row(t) for t in one.decode.transfers],
                "prefill_messages": [transfer_row(t) for t in one.prefill.transfers],
            }
            for one in found
        ],
    }
