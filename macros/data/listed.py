"""The data for a list of all models, without their traces: names, longest contexts, capacities."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NamedTuple

from ..cache.disk import cached_on_disk, for_commands
from ..cache.memory import memoized
from ..catalogue import presets
from ..counting.capacity import Capacity
from ..counting.divided import Divided
from . import capacity


class Listed(NamedTuple):
    """A model of the list: `context` is the longest that it is made for, `said` describes its formats if they have
    other descriptions than their names."""

    slug: str
    name: str
    family: str
    context: int | None
    capacity: Capacity
    said: dict[str, str]


def listed() -> list[Listed]:
    """Every model with a config. Raises `Problem` for a preset that cannot be counted."""
    with nullcontext() if presets.also else for_commands():  # what other folders hold is not compared
        known = _packed()
    return [
        Listed(slug, name, family, context, Capacity(data), said) for slug, name, family, context, data, said in known
    ]


def divided(devices: int) -> dict[str, Divided]:
    """Every model with a config on several devices, by its slug. Raises `Problem` as `listed` does."""
    with nullcontext() if presets.also else for_commands():
        known = _divided(devices)
    return {one.slug: Divided(one.capacity, known[one.slug]) for one in listed()}


@memoized
@cached_on_disk
def _packed() -> list[list[Any]]:
    """The model in `listed`, as data."""
    slugs = [slug for slug in presets.readable() if presets.preset(slug).config is not None]
    return [[slug, *_of_model(slug)] for slug in slugs]


@memoized
@cached_on_disk
def _divided(devices: int) -> dict[str, dict[str, Any]]:
    """The model in `divided`, as data."""
    return {slug: capacity.divided(slug, devices) for slug, *_ in _packed()}


def _of_model(slug: str) -> list[Any]:
    preset, model = presets.preset(slug), presets.model(slug)
    data, formats = capacity.capacity(slug), model.counts.formats
    said = {name: words for name in data["weights"] if (words := formats.said(name)) != name}
    return [preset.name, preset.family, model.longest_context[0], data, said]
