"""What a newcomer asks about a model first: which machine it runs on, and what is special about it."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from ...cache.disk import cached_on_disk
from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...counting import design
from ...engine.errors import Problem
from ..charts import memory_areas
from ..kit import disclosure, rounding, values
from ..kit.html import Html, html, joined
from .atlas import CHOICES, Choice
from .memory_figure import devices

FEWEST = 5  # minimum number of models, including itself, for one to stand out
MOST = Fraction(3, 4)  # share of the others that must be on one side of a choice that stands out


class Place(NamedTuple):
    """How a model's choice compares with the others of its size: whether it is larger or smaller than theirs, and how
    many of how many it exceeds or falls below."""

    choice: Choice
    value: Fraction
    is_large: bool
    beyond: int
    others: int


@disclosure.view("where it fits and what is unusual", with_others=True)
def model_answers(model: Model) -> Html:
    """The smallest machine that holds a model's weights as published, and the choice by which it stands out among the
    models of its size."""
    return joined([_machine(model), _special(model.slug)], " ")


def _machine(model: Model) -> Html:
    weights = int(values.number(model, "weight_bytes"))
    device = memory_areas.device_for(weights, devices())
    said = rounding.decimal_bytes(weights)
    if device is None:
        return html("Its weights are {} as published, more than {} hold.", said, devices()[-1].name)
    return html("Its weights are {} as published: they fit on {}.", said, _with_article(device.name))


def _with_article(name: str) -> str:
    return name if name[0].isdigit() else f"one {name}"


@memoized
@cached_on_disk
def _choices(slug: str) -> list[str | None]:
    """The total and each of CHOICES, as text; empty for a model whose sizes are not public, or whose preset is wrong:
    its own page reports that."""
    try:
        model = disclosure.model(slug)
    except Problem:
        model = None
    if model is None:
        return []
    found = (design.choices(model.counts)[choice.name] for choice in CHOICES)
    return [str(model.counts.total), *(None if value is None else str(Fraction(value)) for value in found)]


def _special(slug: str) -> Html:
    """A sentence on the choice by which a model stands out."""
    peers, place = _peers(slug), place_of(slug)
    if len(peers) < FEWEST:
        return html("")
    among = f"among the {len(peers)} models here of half to twice its size"
    if place is None:
        return html("Nothing about its sizes is unusual {}.", among)
    choice, value = place.choice, place.value
    is_count = value.denominator == 1 and choice.write is rounding.significant
    return html(
        "Unusual {}: its {}, {}, is {} than that of {}.",
        among, choice.phrase, f"{value.numerator:,}" if is_count else choice.write(value),
        "larger" if place.is_large else "smaller",
        f"all {place.others} others" if place.beyond == place.others else f"{place.beyond} of {place.others} others",
    )  # fmt: skip


@memoized
def _known(slug: str) -> tuple[Fraction | None, ...]:
    return tuple(None if said is None else Fraction(said) for said in _choices(slug))


def _peers(slug: str) -> list[tuple[Fraction | None, ...]]:
    """The choices of all models of half to twice a model's size, including its own."""
    total = _known(slug)[0] or 0
    return [one for other in presets.readable() if (one := _known(other)) and total <= 2 * (one[0] or 0) <= 4 * total]


@memoized
def place_of(slug: str) -> Place | None:
    """The choice that exceeds, or falls below, those of most other models of a model's size; None if no choice exceeds
    enough of them."""
    found, peers = list[Place](), _peers(slug)
    for i, choice in enumerate(CHOICES, 1):
        known, own = [value for peer in peers if (value := peer[i]) is not None], _known(slug)[i]
        if own is None or len(known) < FEWEST:
            continue
        others = len(known) - 1
        found += [
            Place(choice, own, True, sum(one < own for one in known), others),
            Place(choice, own, False, sum(one > own for one in known), others),
        ]
    most = max(found, key=lambda place: Fraction(place.beyond, place.others), default=None)
    return most if most and most.beyond >= MOST * most.others else None
