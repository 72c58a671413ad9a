"""Which models of the catalog fit on a machine, and which machines hold a model, each in the best format that fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from ..catalogue import presets
from ..catalogue.models import Model
from ..counting.accelerators import accelerators
from ..counting.conditions import Conditions
from ..counting.costs import of as costs_of
from ..counting.fitting import (
    BEST,
    DIVIDED,
    LADDER,
    Fitting,
    Sized,
    chosen,
    fitting,
    in_order,
    order_of_machines,
    smallest,
)
from ..counting.formats import PUBLISHED
from ..counting.own_machine import Machine
from ..data.listed import divided, listed
from ..views.kit.rounding import decimal_bytes
from .tables import Row, Table, Tabular, table_of


@dataclass(frozen=True)
class Choices(Tabular):
    """The answer in order: one row for each model of the catalog, or for each listed machine."""

    sentence: str
    conditions: dict[str, object]
    of: str  # kind of the rows: "model" or "machine"
    found: list[Row]
    left_out: dict[str, Any]  # the omitted ones, by reason

    @property
    def table(self) -> Table:
        return table_of(self.found, caption=self.sentence) if self.found else Table((self.of,), [])

    def __repr__(self) -> str:
        return f"{self.sentence}\n{self.table!r}" if self.found else self.sentence

    def __bool__(self) -> bool:
        return any(row["fits"] for row in self.found)

    def __len__(self) -> int:
        return len(self.found)

    def to_dict(self) -> dict[str, Any]:
        """The object that `every-parameter fits --format json` prints."""
        return {
            "conditions": self.conditions,
            f"{self.of}s": self.found,
            **self.left_out,
            "sentence": self.sentence,
        }


class _Candidate(NamedTuple):
    """A model that a list may include, and its formats in words."""

    slug: str
    name: str
    family: str
    context: int | None
    sized: Sized
    said: Callable[[str], str]


def _candidates(weights: str, given: Conditions, memory_bytes: int) -> Iterable[_Candidate]:
    """Every model of the catalog with a config: without its trace for the formats of the ladder on one device or on a
    number of devices in `DIVIDED`, and if the weights alone are too large."""
    is_kept = weights in (BEST, *LADDER)
    several = divided(given.devices) if is_kept and given.devices in DIVIDED else {}
    for one in listed():
        sized: Sized = one.capacity
        said: Callable[[str], str] = partial(_in_words, one.said)
        formats = one.capacity.weights if weights == BEST else [name for name in (weights,) if sized.is_there(name)]
        is_large = not any(sized.weight_bytes(name) <= memory_bytes * given.devices for name in formats)
        if one.slug in several:
            sized = several[one.slug]
        elif not (is_kept and (given.devices == 1 or is_large)):
            counts = presets.model(one.slug).counts
            sized, said = costs_of(counts), counts.formats.said
        yield _Candidate(one.slug, one.name, one.family, one.context, sized, said)


def _in_words(said: Mapping[str, str], format: str) -> str:
    return said.get(format, format)


def models_that_fit(machine: Machine, weights: str, given: Conditions) -> Choices:
    """The models of the catalog that fit on a machine and are made for the context, largest first."""
    found: list[tuple[str, int, Fitting]] = []
    known: dict[str, _Candidate] = {}
    too_short: list[str] = []
    too_large: list[str] = []
    for one in _candidates(weights, given, machine.memory_bytes):
        said = fitting(one.sized, weights, given, machine)
        if said is None:
            too_large.append(one.slug)
        elif one.context is not None and given.tokens > one.context:
            too_short.append(one.slug)
        else:
            known[one.slug] = one
            found.append((one.slug, one.sized.total, said))
    number = len(found) + len(too_short) + len(too_large)
    what = f"{len(found)} of {number} models fit on {place(machine, given)} at {_sequences(given)}"
    shorter = f"; {len(too_short)} more would, and are made for a shorter context" if too_short else ""
    return Choices(
        f"{what}, {_how(weights)}{shorter}.",
        conditions_of(machine, weights, given),
        "model",
        [_model_row(known[slug], said) for slug, _, said in in_order(found)],
        {"made_for_shorter_contexts": too_short, "too_large": too_large},
    )


def machines_that_hold(model: Model, weights: str, given: Conditions) -> Choices:
    """The listed machines that hold the model, with the format that fits on each; then the machines that do not, with
    the number of devices that would. Raises `Problem` if the model has no such format."""
    costs, asked = costs_of(model.counts), PUBLISHED if weights == BEST else weights
    costs.weight_bytes(asked)  # raises if there is none
    model.counts.check_cache(given.item_bytes)
    machines = {slug: Machine(a.name, a.memory_bytes, a) for slug, a in accelerators().items()}
    rows: list[tuple[tuple[bool, int, int], str, Row]] = []
    for slug, machine in machines.items():
        said = fitting(costs, weights, given, machine)
        enough = costs.devices.least_split(replace(given, format=asked), machine.memory_bytes)
        row: Row = {
            "machine": slug,
            "name": machine.name,
            "memory_bytes": machine.memory_bytes,
            "fits": said is not None,
            **_row(model.counts.formats.said, said),
            "enough_devices": enough and enough.devices,
            "enough_split": enough and enough.said,
        }
        rows.append((order_of_machines(said, enough, machine), slug, row))
    rows.sort(key=lambda one: one[:2])
    able = sum(bool(row[-1]["fits"]) for row in rows)
    several = f"{given.devices:,} devices of " if given.devices > 1 else ""
    what = f"{model.name} fits on {several}{able} of {len(rows)} machines at {_sequences(given)}"
    return Choices(
        f"{what}, {_how(weights)}.",
        {"model": model.slug, **conditions_of(None, weights, given)},
        "machine",
        [row[-1] for row in rows],
        {},
    )


def best_format(model: Model, given: Conditions, memory_bytes: int) -> str:
    """The first format of the ladder that fits, or the last one if none does."""
    costs = costs_of(model.counts)
    return chosen(costs, BEST, given, memory_bytes) or smallest(costs, given.accelerator)


def conditions_of(machine: Machine | None, weights: str, given: Conditions) -> dict[str, object]:
    """The conditions of an answer, for JSON."""
    said: dict[str, object] = {
        "context": given.tokens,
        "batch": given.batch,
        "weights": weights,
        "cache": given.dtype,
        "devices": given.devices,
    }
    return said if machine is None else {**said, "on": machine.name, "memory_bytes": machine.memory_bytes}


def place(machine: Machine, given: Conditions) -> str:
    """`24 GB`, `4 × H100 SXM (80.0 GB each)`."""
    size = f" ({decimal_bytes(machine.memory_bytes)}{' each' if given.devices > 1 else ''})"
    several = f"{given.devices:,} × " if given.devices > 1 else ""
    listed = machine.accelerator is not None and bool(machine.accelerator.sources)
    return f"{several}{machine.name}{size if listed else ''}"


def _sequences(given: Conditions) -> str:
    return f"{given.sequences} with the cache in {given.dtype}"


def _how(weights: str) -> str:
    if weights == BEST:
        return "each in the first format that fits, from the published one to fewer bits"
    return "with weights as published" if weights == PUBLISHED else f"with weights in {weights}"


def _model_row(one: _Candidate, said: Fitting) -> Row:
    return {
        "model": one.slug,
        "name": one.name,
        "family": one.family,
        "parameters": int(one.sized.total),
        "fits": True,
        **_row(one.said, said),
        "model_context": one.context,
    }


def _row(in_words: Callable[[str], str], said: Fitting | None) -> Row:
    """One format that fits, as a row."""
    if said is None:
        return dict.fromkeys(COLUMNS)
    seconds = said.seconds
    values: Mapping[str, Any] = {
        "weights": said.format,
        "format": in_words(said.format),
        "bits_per_weight": float(said.bits_per_weight),
        **{f"{name}_bytes": size for name, size in said.terms.items()},
        "total_bytes": said.total,
        "left_bytes": said.left,
        "longest_context": said.longest_context,
        "largest_batch": said.largest_batch,
        "decode_seconds": None if seconds is None else float(seconds),
        "split": said.split.said,
    }
    return {name: values[name] for name in COLUMNS}


COLUMNS = (
    *("weights", "format", "bits_per_weight", "weights_bytes", "cache_bytes", "activations_bytes", "total_bytes"),
    *("left_bytes", "longest_context", "largest_batch", "decode_seconds", "split"),
)
