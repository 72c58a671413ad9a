"""A model served by an engine on one or several devices, with the engine's own options: the memory of each device, the
figures that its log prints, and the command line."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ..catalogue.models import Model
from ..counting import deploying
from ..counting.accelerators import accelerators
from ..counting.cards import cards_of
from ..counting.conditions import Conditions
from ..counting.costs import of as costs_of
from ..counting.deployments import Card, Deployment, Figure, Place, quoted
from ..counting.engine_options import Value, words_of
from ..counting.serving import How, Term
from ..counting.vllm_options import MODEL_DRAFTS
from ..engine.errors import Problem, nearest, shorten
from ..views.kit.rounding import decimal_bytes, decimal_range
from . import model as loading
from .conditions import conditions
from .tables import Row, Table, Tabular, table_of


@dataclass(frozen=True)
class Served(Tabular):
    """The answer: true if even the upper bound fits on every device.

    `deployment.places` are the devices, each with its terms; `deployment.figures` are those of the engine's log, in
    order; `command` is the command line for this deployment.
    """

    model: Model
    given: Conditions
    cards: tuple[Card, ...]
    deployment: Deployment

    def __bool__(self) -> bool:
        return self.is_enough

    def __repr__(self) -> str:
        return self.sentence

    @property
    def engine(self) -> str:
        """The engine's name."""
        return self.deployment.engine

    @property
    def version(self) -> str:
        """The version whose rules and defaults were used."""
        return self.deployment.version

    @property
    def is_enough(self) -> bool:
        """Whether even the upper bound fits on every device; without devices, whether there is an answer."""
        return self.deployment.is_enough

    @property
    def title(self) -> str:
        """The engine with its version."""
        return f"{deploying.TITLES[self.engine]} {self.version}".strip()

    @property
    def place(self) -> str:
        """The devices: `2 × RTX 3090`, `RTX 4090 + RTX 5090`."""
        return place_of(self.cards)

    @property
    def sentence(self) -> str:
        """The answer as a sentence."""
        weights = self.model.counts.formats.phrase(self.given.format)
        if self.engine in deploying.FRAMEWORKS:
            return f"{self.model.name} as {deploying.TITLES[self.engine]} counts it."
        if not self.cards:
            return f"{self.model.name} {weights} served by {self.title}: the figures that need no device."
        does = "fits" if self.is_enough else "may fit" if self.deployment.may_be_enough else "does not fit"
        host = self.deployment.host
        places = self.deployment.places if host is None or host.limit is None else (*self.deployment.places, host)
        fullest = max(places, key=lambda place: place.most - (place.limit or 0))
        takes = said(fullest.least, fullest.most)
        each = " on the fullest device" if len(self.cards) > 1 else ""
        if fullest is host:
            each = " of the host’s memory"
        return (
            f"{self.model.name} {weights} served by {self.title} {does} on {self.place}: it takes {takes} of "
            f"{decimal_bytes(fullest.limit or 0)}{each}."
        )

    @property
    def command(self) -> str:
        """The engine's command line for this deployment; empty for a framework."""
        if self.engine in deploying.FRAMEWORKS:
            return ""
        return command_of(self.engine, hub_of(self.model), self.deployment.command)

    @property
    def table(self) -> Table:
        """One row per device and term, and one per figure of the log."""
        rows: list[Row] = [
            {
                "device": f"{i} {place.name}",
                "term": t.name,
                "least_bytes": t.least,
                "most_bytes": t.most,
                "known": t.how.value,
                "rule": t.rule,
            }
            for i, place in enumerate(self.deployment.places)
            for t in place.terms
        ]
        return table_of(rows, caption=self.sentence) if rows else self.figures

    @property
    def figures(self) -> Table:
        """One row per figure of the engine's log."""
        rows: list[Row] = [
            {
                "device": f.place,
                "figure": f.what,
                "text": f.text,
                "least": plain(f.least),
                "most": plain(f.most),
                "rule": f.rule,
                "proof": f.proof,
            }
            for f in self.deployment.figures
        ]
        return table_of(rows, caption=f"The log of {self.title}")

    def to_dict(self) -> dict[str, Any]:
        """The object that `every-parameter fits --engine … --format json` prints."""
        return as_data(self)


def hub_of(model: Model) -> str:
    """The name under which an engine finds the model."""
    return (model.preset.hub if model.preset else None) or model.slug


def place_of(cards: Sequence[Card]) -> str:
    """Devices in words, with equal ones counted."""
    found: list[tuple[str, int]] = []
    for card in cards:
        name = card.name
        if card.free_bytes != card.memory_bytes:
            name += f" ({decimal_bytes(card.free_bytes)} free)"
        if found and found[-1][0] == name:
            found[-1] = name, found[-1][1] + 1
        else:
            found.append((name, 1))
    return " + ".join(name if n == 1 else f"{n} × {name}" for name, n in found)


def said(least: int, most: int) -> str:
    """Bytes in a readable unit, both bounds if they differ."""
    return decimal_range(least, most, "" if least == most else "about ")


def plain(value: Fraction) -> int | float:
    """A number for data: an int if it is whole."""
    return int(value) if value.denominator == 1 else float(value)


def command_of(engine: str, model: str, words: Sequence[str]) -> str:
    """A command line to paste; Ollama's server takes environment variables."""
    if engine == "ollama":
        return " ".join([*words, "ollama serve"])
    return " ".join([deploying.COMMANDS[engine], quoted((model,)), quoted(tuple(words))]).strip()


def served_by(
    model: Model,
    given: Conditions,
    engine: str,
    on: str | None,
    words: Sequence[str],
    version: str = "",
    host_bytes: int | None = None,
) -> Served:
    """A model served by an engine with options given as words of its command line, next to a host with this much
    memory. Raises `Problem`."""
    values, _ = deploying.options(engine, words)
    values = deploying.with_tower(engine, values, model.image_tower)
    cards = [] if on is None else devices(on, given.devices)
    deployment = deploying.deploy(
        engine,
        costs_of(model.counts),
        given,
        values,
        cards,
        version,
        model.longest_context[0] or 0,
        _draft(values, is_needed=engine != "sglang"),
        model.counts.formats,
    )
    if host_bytes is not None:
        if deployment.host is None:
            raise Problem(
                f"--host with --engine {engine}: it keeps the whole model on the devices", "leave out one of the two"
            )
        deployment = replace(deployment, host=replace(deployment.host, limit=host_bytes))
    return Served(model, given, tuple(cards), deployment)


def as_printed(model: Any, framework: str, options: str | Sequence[str] = "", context: int = 4096) -> Served:
    """What a training framework prints about a model: parameters, memory or FLOPs as `megatron`, `deepspeed` (its
    estimators) or `torchtitan` counts them, with its own options as a string or words. Raises `Problem`.
    """
    name = framework.lower() if isinstance(framework, str) else ""
    if name not in deploying.FRAMEWORKS:
        known = deploying.FRAMEWORKS
        raise Problem(
            f"framework = {shorten(framework)}: no such framework",
            nearest(str(framework), known, f"one of {', '.join(known)}"),
        )
    read = model if isinstance(model, Model) else loading.read(model)
    return served_by(read, conditions(context, 1, "published"), name, None, options_of(options))


def _draft(values: Mapping[str, Value], is_needed: bool = True) -> Any:
    """The costs of a draft that an option names; unless it `is_needed`, None for one that is not known here. Raises
    `Problem`."""
    name = values.get("draft_model")
    said = values.get("draft")
    if isinstance(said, dict) and said.get("method") in MODEL_DRAFTS:
        name = said.get("model")
    if not isinstance(name, str) or not name:
        return None
    try:
        return costs_of(loading.read(name).counts)
    except Problem:
        if is_needed:
            raise
        return None


def devices(on: str, number: int = 1) -> list[Card]:
    """Devices as in `--on`. Raises `Problem`."""
    try:
        return cards_of(on, accelerators(), number)
    except Problem as problem:
        raise problem.at(f"--on {shorten(on)}") from None


def options_of(text: str | Sequence[str] | os.PathLike[str]) -> list[str]:
    """The words of options from a string, or from a list of words. Raises `Problem`."""
    if isinstance(text, str):
        return words_of(text)
    if isinstance(text, Sequence) and all(isinstance(word, str) for word in text):
        return list(text)
    raise Problem(f"options = {shorten(text)}: neither text nor words", 'give them as in "--max-model-len 8192"')


def _term(t: Term) -> dict[str, Any]:
    known = (
        {"least_bytes": t.least, "most_bytes": t.most}
        if t.how is How.RANGE
        else {"bytes" if t.how is How.EXACT else "estimated_bytes": t.least}
    )
    return {"key": t.key, "name": t.name, "known": t.how.value, **known, "rule": t.rule, "source": t.source or None}


def _place(place: Place) -> dict[str, Any]:
    return {
        "limit_bytes": place.limit,
        "least_bytes": place.least,
        "most_bytes": place.most,
        "terms": [_term(t) for t in place.terms],
    }


def _figure(f: Figure) -> dict[str, Any]:
    return {
        "key": f.key,
        "figure": f.what,
        "device": f.place or None,
        "text": f.text,
        "least": plain(f.least),
        "most": plain(f.most),
        "printed_unit": f.unit or None,
        "rule": f.rule,
        "proof": f.proof,
    }


def as_data(answer: Served) -> dict[str, Any]:
    """The answer for JSON."""
    deployment = answer.deployment
    return {
        "model": answer.model.slug,
        "name": answer.model.name,
        "engine": answer.engine,
        "version": answer.version,
        "conditions": {
            "context": answer.given.tokens,
            "batch": answer.given.batch,
            "weights": answer.given.format,
            "cache": answer.given.dtype,
            "on": answer.place or None,
        },
        "weights": answer.model.counts.formats.said(answer.given.format),
        "fits": answer.is_enough if answer.cards else None,
        "may_fit": deployment.may_be_enough if answer.cards else None,
        "devices": [
            {
                "name": place.name,
                "memory_bytes": card.memory_bytes,
                "free_bytes": card.free_bytes,
                **_place(place),
            }
            for card, place in zip(answer.cards, deployment.places)
        ],
        "host": None if deployment.host is None else _place(deployment.host),
        "figures": [_figure(f) for f in deployment.figures],
        "command": answer.command,
        "advice": list(deployment.advice),
        "notes": list(deployment.notes),
        "sentence": answer.sentence,
    }
