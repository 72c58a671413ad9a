"""Whether a model fits in memory: term by term, the memory that is left or missing, and the longest context, also as a
sentence."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias, overload

from ..catalogue.models import Model
from ..counting.accelerators import Accelerator, accelerators
from ..counting.cards import are_several
from ..counting.conditions import Conditions
from ..counting.costs import of as costs_of
from ..counting.deploying import ENGINES
from ..counting.engines import names
from ..counting.fitting import BEST, instead
from ..counting.formats import PUBLISHED
from ..counting.own_machine import Machine, memory_of, named
from ..counting.runs import left_out
from ..counting.splits import Split
from ..engine.errors import Problem
from ..views.costs.measured import measured_shares
from ..views.kit.rounding import decimal_bytes, duration, significant
from . import model as loading
from .choices import Choices, best_format, machines_that_hold, models_that_fit
from .conditions import check_split, conditions, warn, warn_beyond
from .deployments import Served, options_of, served_by
from .engines import EngineFit, as_row, engine_fit, engine_known, engine_named
from .tables import Row, Table, Tabular, table_of

TERMS = {"weights": "weights", "cache": "KV cache", "activations": "largest operation"}


class Memory(NamedTuple):
    """The memory of one device: its name, its bytes, and the accelerator, if it is a listed one."""

    name: str
    size: int
    accelerator: Accelerator | None = None


def memory(name: str, parameter: str = "on") -> Memory:
    """An accelerator's slug, an amount such as 24GB, or a machine of your own, such as `24GB,1008GB/s,165TFLOPS`.
    Raises `Problem` with the nearest known slug."""
    try:
        if not isinstance(name, str):
            raise Problem("neither an accelerator nor a size", "give text, such as h100 or 24GB")
        found = named(name, accelerators())
    except Problem as problem:
        raise problem.about(parameter, name) from None
    return Memory(found.name, found.memory_bytes, found.accelerator)


def amount(text: str, parameter: str) -> int:
    """Bytes from an amount such as 24GB. Raises `Problem`."""
    if (said := memory_of(text)) and said.size:
        return said.size
    raise Problem("not an amount of memory", "write it as in 24GB").about(parameter, text)


@dataclass(frozen=True)
class Fit(Tabular):
    """The answer, true or false: the split of the model, bytes on the fullest device by term, the longest context, and
    the number of devices needed.

    `longest_context` is None if no context fills the memory. `enough` is the split over the fewest devices that hold
    the model, or None. For a model with latents, `by_sequences` is the smallest split that divides attention by
    sequences, with the bytes on its fullest device.
    """

    model: Model
    given: Conditions
    on: Memory
    split: Split
    terms: dict[str, int]
    longest_context: int | None
    enough: Split | None
    by_sequences: tuple[Split, int] | None

    def __bool__(self) -> bool:
        return self.is_enough

    def __repr__(self) -> str:
        return self.sentence

    @property
    def table(self) -> Table:
        """One row per term, in bytes."""
        return table_of([{"term": name, "bytes": n} for name, n in self.terms.items()], caption=self.sentence)

    def to_dict(self) -> dict[str, Any]:
        """The object that `every-parameter fits --format json` prints."""
        return as_data(self)

    @property
    def enough_devices(self) -> int | None:
        """The number of devices that is enough, or None if none of the tried numbers is."""
        return self.enough and self.enough.devices

    @property
    def total(self) -> int:
        return sum(self.terms.values())

    @property
    def left(self) -> int:
        """Bytes left on the fullest device; negative if bytes are missing."""
        return self.on.size - self.total

    @property
    def is_enough(self) -> bool:
        return self.left >= 0

    @property
    def place(self) -> str:
        """`H100 SXM (80.0 GB)`, `4 × H100 SXM (80.0 GB each)`, `24 GB`."""
        size = f" ({decimal_bytes(self.on.size)}{' each' if self.given.devices > 1 else ''})"
        several = f"{self.given.devices:,} × " if self.given.devices > 1 else ""
        listed = self.on.accelerator is not None and bool(self.on.accelerator.sources)  # the name states the size
        return f"{several}{self.on.name}{size if listed else ''}"

    @property
    def weights(self) -> str:
        """The format of the weights, such as `in fp8` or `as published (experts in mxfp4, the rest in bfloat16)`."""
        return self.model.counts.formats.phrase(self.given.format)

    @property
    def sentence(self) -> str:
        """The answer as a sentence."""
        on_each = " on the fullest" if self.given.devices > 1 else ""
        rest = f"{decimal_bytes(abs(self.left))} {'left' if self.is_enough else 'missing'}"
        does = "fits" if self.is_enough else "does not fit"
        split = f", {self.split.said}," if self.given.devices > 1 else ""
        return (
            f"{self.model.name} {self.weights} {does} on {self.place}{split} at "
            f"{self.given.sequences} with the cache in {self.given.dtype}: "
            f"it takes {decimal_bytes(self.total)}{on_each}; {rest}."
        )

    @property
    def best(self) -> str:
        """If the requested format does not fit, or no engine runs it there, the first one of the ladder that does, with
        its longest context: a sentence after a space; empty if there is none."""
        counts, there = self.model.counts, replace(self.given, accelerator=self.on.accelerator)
        return instead(costs_of(counts), counts.formats, there, self.on.size)

    @property
    def _not_run(self) -> str:
        """Why no engine runs the format on the machine, as a sentence; empty if one does."""
        return left_out(self.given.format, self.on.accelerator, "", costs_of(self.model.counts).published)

    @property
    def _made_for(self) -> str:
        """The longest context of the model, if it has one."""
        if not (end := self.model.longest_context[0]):
            return ""
        by = " by its class's default" if self.model.has_default_context else ""
        return f" The model is made for {end:,}{by}."

    @property
    def decode_seconds(self) -> Fraction | None:
        """The minimum time of a decode step; None if the model does not fit, or without the machine's bandwidth."""
        if not self.is_enough or self.on.accelerator is None:
            return None
        return costs_of(self.model.counts).decode_seconds(replace(self.given, accelerator=self.on.accelerator))

    @property
    def advice(self) -> str:
        """The longest context that fits, the minimum time of a step, and the number of devices that would be enough."""
        if self.longest_context is None:
            said = "Every context fits: the cache stops growing before the memory is full."
            said += self._made_for
        elif self.longest_context == 0:
            said = "No context fits."
        else:
            said = f"The longest context that fits is {self.longest_context:,} tokens."
            if self.model.is_beyond(self.longest_context):
                said += self._made_for
        if seconds := self.decode_seconds:
            rate = significant(self.given.batch / seconds)
            said += f" A decode step takes at least {duration(seconds)}: at most {rate} tokens per second."
            said += below_the_bound(self.given.batch)
        if not self.is_enough and self.enough:
            said += f" {self.enough.devices:,} devices hold it: {self.enough.said}."
        if self._not_run:
            said += f" {self._not_run}"
        said += self.best
        if self.by_sequences and (not self.is_enough or self.given.devices > 1):
            split, size = self.by_sequences
            said += (
                f" With attention split by sequences, {split.devices:,} hold it: {split.said}, "
                f"{decimal_bytes(size)} on the "
                "fullest."
            )
        return said


def below_the_bound(batch: int) -> str:
    """How far measured speeds stay below a bound, as a sentence."""
    low, high, number = measured_shares(batch == 1)
    of = "of one sequence" if batch == 1 else "of many sequences"
    return f" Published measurements {of} reach {round(low * 100)} to {round(high * 100)}% of it ({number} of them)."


def fit(model: Model, given: Conditions, on: Memory) -> Fit:
    """Whether the model, its cache and a step's largest operation fit in the memory of each device. Raises `Problem` if
    the model's sizes allow no split over this many devices."""
    costs = costs_of(model.counts)
    check_split(model, given)
    split = costs.split(given, on.size) or Split()
    by_sequences = costs.devices.least_split_by_sequences(given, on.size) if costs.cache.has_latents else None
    return Fit(
        model,
        given,
        on,
        split,
        costs.devices.split_bytes(split, given),
        costs.largest_context(on.size, given),
        costs.devices.least_split(given, on.size),
        (by_sequences, sum(costs.devices.split_bytes(by_sequences, given).values()))
        if by_sequences and by_sequences.data > 1
        else None,
    )


Asked: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | loading.Model"


@overload
def fits(
    model: Asked,
    on: str,
    context: int = ...,
    batch: int = ...,
    weights: str | None = ...,
    cache: str = ...,
    devices: int = ...,
    engine: None = ...,
) -> Fit: ...


@overload
def fits(
    model: Asked,
    on: str,
    context: int = ...,
    batch: int = ...,
    weights: str = ...,
    cache: str = ...,
    devices: int = ...,
    *,
    engine: str,
) -> EngineFit: ...


@overload
def fits(
    model: Asked,
    on: str | None = ...,
    context: int = ...,
    batch: int = ...,
    weights: str = ...,
    cache: str = ...,
    devices: int = ...,
    *,
    engine: str,
    options: str | Sequence[str],
    version: str = ...,
) -> Served: ...


@overload
def fits(
    model: Sequence[Asked],
    on: str,
    context: int = ...,
    batch: int = ...,
    weights: str | None = ...,
    cache: str = ...,
    devices: int = ...,
    engine: str | None = ...,
) -> Table: ...


@overload
def fits(
    model: None = ...,
    *,
    on: str,
    context: int = ...,
    batch: int = ...,
    weights: str | None = ...,
    cache: str = ...,
    devices: int = ...,
) -> Choices: ...


@overload
def fits(
    model: Asked,
    on: None = ...,
    context: int = ...,
    batch: int = ...,
    weights: str | None = ...,
    cache: str = ...,
    devices: int = ...,
) -> Choices: ...


def fits(
    model: Asked | Sequence[Asked] | None = None,
    on: str | None = None,
    context: int = 4096,
    batch: int = 1,
    weights: str | None = None,
    cache: str = "bfloat16",
    devices: int = 1,
    engine: str | None = None,
    options: str | Sequence[str] | None = None,
    version: str = "",
) -> Fit | EngineFit | Served | Table | Choices:
    """Whether a model fits on an accelerator (`h100`), on a machine of your own (`24GB,1008GB/s,165TFLOPS`) or in an
    amount of memory (`24GB`) during decode. Without a model, lists the models of the catalog that fit, largest first;
    without a machine, the listed machines that hold the model.

    A model is anything that `load` accepts, or a loaded model; for several, the answer is a table with a row for each.
    Its weights are in the published format, or in the format `weights`; `best` is the first format that fits, from the
    published one to fewer bits, and the default for a list. On several devices the answer is for the fullest one of the
    split that it names, and each device holds the largest operation whole. Bytes are exact. With an `engine` (`vllm`,
    `llama.cpp`, `transformers`, `mlx`), a model and a machine, the answer adds that engine's overhead, and
    distinguishes exact figures, estimates and ranges.

    With `options` of the engine's own command line, as a string or words, or with several devices (`2xh100+l40s`,
    `rtx-4090,free:20GB+rtx-5090`), the answer for an engine (`vllm`, `sglang`, `llama.cpp`, `ollama`, `tensorrt-llm`)
    covers each device, the figures that its log prints and its command line, by the rules of `version`; without a
    machine, the figures that need none. Raises `Problem`, also if the sizes are not divisible by this many devices.
    """
    own = _own_rules(model, on, devices, engine, options is not None or version != "")
    if own is not None:
        if on is not None and not isinstance(on, str):
            memory(on)  # says what it takes
        given = conditions(context, batch, loading.own_format(model, weights) or PUBLISHED, cache, devices)
        return served_by(_read(model, given), given, own, on, options_of(options or ""), version)
    if options is not None:
        raise Problem("options without an engine and one model", "give engine='vllm', and a model")
    is_best = weights is not None and is_best_asked(weights)
    given = conditions(context, batch, PUBLISHED if weights is None or is_best else weights, cache, devices)
    asked = BEST if weights is None or is_best else given.format
    several = model if isinstance(model, Sequence) and not isinstance(model, str) else None
    if several is not None and not several or model is None and on is None:
        raise Problem("fits without a model", "give one, a list of some, or a machine to list what fits on it")
    name = None if engine is None else engine_named(engine)
    if name is not None and (model is None or on is None):
        raise Problem("engine without a model or a machine", "give both")
    if on is None:
        asked = loading.own_format(model, weights) or asked
        if several is not None:
            raise Problem("fits of several models without a machine", "give one, as on='24GB'")
        return machines_that_hold(_read(model, given), asked, given)
    machine = memory(on)
    given = replace(given, accelerator=machine.accelerator)
    if model is None:
        return models_that_fit(as_machine(machine), asked, given)
    answers: list[Fit | EngineFit] = []
    # no comprehension, which would change the warning's stack level
    for one in [model] if several is None else several:
        read = _read(one, given)
        format = given.format if is_best else conditions(weights=loading.own_format(one, weights) or PUBLISHED).format
        answers.append(_fit(read, replace(given, format=format), machine, is_best, name))
    return answers[0] if several is None else table_of([_row(answer) for answer in answers], caption=machine.name)


def _own_rules(model: Any, on: str | None, devices: int, engine: str | None, has_options: bool) -> str | None:
    """The engine if its own rules apply, because of options, a version or several devices; otherwise None."""
    if engine is None or not isinstance(model, (str, os.PathLike, Mapping, loading.Model)):
        return None
    own = engine_known(engine)
    several_devices = devices != 1 or isinstance(on, str) and are_several(on)
    is_asked = has_options or several_devices or on is None or own not in names()
    return own if own in ENGINES and is_asked else None


def is_best_asked(weights: object) -> bool:
    """Whether the format is `best`, in upper or lower case."""
    return isinstance(weights, str) and weights.lower() == BEST


def as_machine(on: Memory) -> Machine:
    """A memory as a `Machine` of `counting`."""
    return Machine(on.name, on.size, on.accelerator)


def _read(one: Any, given: Conditions) -> Model:
    """A model, after its warnings are issued."""
    read = loading.read(one)
    if not isinstance(one, loading.Model):
        warn(read.warnings, 4, of=read.name)
    warn_beyond(read, given.tokens, 5)
    return read


def _fit(model: Model, given: Conditions, machine: Memory, is_best: bool, engine: str | None) -> Fit | EngineFit:
    format = best_format(model, given, machine.size) if is_best else given.format
    at = replace(given, format=format)
    return fit(model, at, machine) if engine is None else served(model, at, machine, engine)


def served(model: Model, given: Conditions, on: Memory, engine: str) -> EngineFit:
    """Whether an engine can serve the model on a machine. Raises `Problem`."""
    return engine_fit(model, given, engine, on.name, on.size, "" if on.accelerator is None else on.accelerator.vendor)


def room(model: Model, given: Conditions, on: str, engine: str | None) -> Fit | EngineFit | Served:
    """Whether a loaded model fits on one machine or several, by the rules of an engine if one is named. Raises
    `Problem`."""
    own = None if engine is None else engine_known(engine)
    if own in ENGINES and (given.devices != 1 or own not in names()):
        return served_by(model, given, own, on, options_of(""), "")
    machine = memory(on)
    given = replace(given, accelerator=machine.accelerator)
    return _fit(model, given, machine, False, None if engine is None else engine_named(engine))


def _row(answer: Fit | EngineFit) -> Row:
    if isinstance(answer, EngineFit):
        return as_row(answer)
    return {
        "model": answer.model.slug,
        "fits": answer.is_enough,
        "weights": answer.model.counts.formats.said(answer.given.format),
        **{f"{name}_bytes": n for name, n in answer.terms.items()},
        "total_bytes": answer.total,
        "left_bytes": answer.left,
        "longest_context": answer.longest_context,
        "split": answer.split.said,
        "enough_devices": answer.enough_devices,
        "enough_split": answer.enough and answer.enough.said,
        "sentence": answer.sentence,
    }


def as_data(answer: Fit) -> dict[str, Any]:
    """The answer for JSON."""
    return {
        "model": answer.model.slug,
        "name": answer.model.name,
        "conditions": as_conditions(answer.given, answer.on),
        "weights": answer.model.counts.formats.said(answer.given.format),
        "fits": answer.is_enough,
        "bytes": answer.terms,
        "total_bytes": answer.total,
        "left_bytes": answer.left,
        "longest_context": answer.longest_context,
        "decode_seconds": None if (seconds := answer.decode_seconds) is None else float(seconds),
        "model_context": answer.model.longest_context[0],
        "split": answer.split.degrees,
        "enough_devices": answer.enough_devices,
        "enough_split": answer.enough and answer.enough.degrees,
        "by_sequences": {
            "devices": answer.by_sequences[0].devices,
            "split": answer.by_sequences[0].degrees,
            "total_bytes": answer.by_sequences[1],
        }
        if answer.by_sequences
        else None,
        "sentence": answer.sentence,
    }


def as_conditions(given: Conditions, on: Memory | None) -> dict[str, object]:
    """The conditions of an answer, for JSON."""
    return {
        "context": given.tokens,
        "batch": given.batch,
        "weights": given.format,
        "cache": given.dtype,
        "devices": given.devices,
        "on": on and on.name,
        "memory_bytes": on and on.size,
    }
