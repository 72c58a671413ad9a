"""The counts that a published size such as "7B" or "A2.7B" may refer to, and how each of them yields it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..counting.figures import SCALES
from ..counting.parameters import Counts
from ..engine.errors import Problem, nearest
from .arithmetic import worked_out
from .models import Model
from .preset_file import Elsewhere, Preset

SHORT = re.compile(r"A?[~≈]?(?P<whole>\d+)(?:\.(?P<decimals>\d+))?(?P<unit>[MBT])")
NOT_REPRODUCED = "none"  # no count gives it
_IN_WORDS = {"M": "millions", "B": "billions", "T": "trillions"}
_PLACES = ("", "tens of ", "hundreds of ")


class Reading(NamedTuple):
    """A count that a published size may refer to: what it counts, its value, and its name in a preset."""

    what: str
    parameters: int
    name: str = ""


class Short(NamedTuple):
    """A published size in units of half its last digit: the size, its last digit, and the text of both."""

    figure: int
    last_digit: int
    scale: int  # the factor of a count in these units
    whole: str
    unit: str


class Headline(NamedTuple):
    """A published size of a model: the key of the preset that names its counts, the size, these names, its source."""

    key: str
    said: str
    counts: tuple[str, ...]
    source: str
    elsewhere: Elsewhere | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it is the total, or the active parameters."""
        return self.counts in (("total",), ("active",))


def is_active(said: str) -> bool:
    """Whether a published size is that of the active parameters: "A2.7B"."""
    return said.startswith("A")


def short(said: str) -> Short | None:
    """A published size; None for a name such as 8x7B."""
    if (parts := SHORT.fullmatch(said.strip())) is None:
        return None
    whole, decimals, unit = parts["whole"], parts["decimals"] or "", parts["unit"]
    last_digit = 2 * SCALES[unit]
    return Short(int(whole + decimals) * last_digit, last_digit, 2 * 10 ** len(decimals), whole, unit)


def looked_up(counts: Counts) -> str:
    """The tables that `active_excluding_input_embedding` leaves out, in words."""
    return "the token embedding and n-grams" if counts.ngram_tables else "the token embedding"


def active_readings(model: Model) -> list[Reading]:
    """The counts of the parameters that one token uses."""
    counts = model.counts
    without = f"active without {looked_up(counts)}"
    return [
        Reading("active per token", counts.active, "active"),
        Reading(without, counts.active_excluding_input_embedding, "active_excluding_input_embedding"),
        Reading("active non-embedding", counts.active_non_embedding, "active_non_embedding"),
    ]


def size_readings(model: Model) -> list[Reading]:
    """Every count that may be a model's headline: the total first, with the other contents of its file, and without
    tables."""
    counts, file, whole = model.counts, model.published_file, model.with_components
    vision, prediction = (model.published.of_part(part) if model.published else 0 for part in ("vision", "prediction"))
    prediction = prediction or model.with_prediction - counts.total
    tables = counts.active - counts.active_excluding_input_embedding
    return [
        Reading("the total", counts.total, "total"),
        Reading("the total with the vision part", counts.total + vision, "with_vision"),
        Reading("the total with the towers", whole, "with_components"),
        Reading("the total with the MTP module", counts.total + prediction, "with_prediction"),
        Reading("the total with the towers and the MTP module", whole + prediction, "with_components_and_prediction"),
        Reading("the total without n-grams", counts.excluding_ngram_tables, "excluding_ngram_tables"),
        Reading(f"the total without {looked_up(counts)}", counts.total - tables, "excluding_input_embedding"),
        Reading("non-embedding", counts.non_embedding, "non_embedding"),
        Reading(
            "non-embedding with the MTP module", counts.non_embedding + prediction, "non_embedding_with_prediction"
        ),
        *([Reading("the numbers in the published file", file.parameters, "stored")] if file else ()),
        *(active_readings(model) if counts.active != counts.total else ()),
    ]


def readings_of(model: Model, said: str) -> list[Reading]:
    """The counts that a published size of a model may mean."""
    return active_readings(model) if is_active(said) else size_readings(model)


def named_counts(model: Model) -> dict[str, int]:
    """Every count that a published size may refer to, by its name in a preset. Raises `Problem` for a wrong tower."""
    readings = (*size_readings(model), *active_readings(model))
    return {reading.name: reading.parameters for reading in readings}


def how(n: int, size: Short) -> str:
    """How a count yields a published size, at the finest digit at which it does: "rounded"; empty if it does not."""
    n *= size.scale
    for place, (step, name) in enumerate(zip(_steps(size), _PLACES)):
        ways = [
            *(["rounded"] if size.figure - step // 2 <= n < size.figure + step // 2 else []),
            *(["truncated"] if size.figure <= n < size.figure + step else []),
        ]
        if ways:
            return " or ".join(ways) + (f" to {name}{_IN_WORDS[size.unit]}" if place else "")
    return ""


def _steps(size: Short) -> Iterator[int]:
    """One unit in the last digit of a size, and in earlier digits if all later ones are zeros."""
    step = size.last_digit
    for _ in size.whole:
        yield step
        step *= 10
        if size.figure % step:
            return


def headlines_of(preset: Preset) -> list[Headline]:
    """The published sizes of a preset, each with the counts that it is taken to mean: the total and the active
    parameters unless the preset names others. A name such as 8x7B is not a size."""
    published, found = preset.published, []
    if preset.headline:
        found.append(Headline("headline_counts", preset.headline, preset.headline_counts, "its name"))
    if published and published.active:
        source, said = published.active_source or published.source, f"A{published.active}"
        found.append(Headline("published.active_counts", said, published.active_counts, source))
    for n, row in enumerate(preset.elsewhere):
        found.append(Headline(f"elsewhere[{n}].counts", row.size, row.counts, row.source, row))
    whole = ("total",), ("active",)
    return [h._replace(counts=h.counts or whole[is_active(h.said)]) for h in found if short(h.said)]


def verify(model: Model) -> None:
    """Raise `Problem` if the forward pass does not yield what is published: an exact total, or a size to its own
    digits by the count that the preset names for it."""
    model.verify()
    for headline in headlines_of(model.preset) if model.preset else ():
        _verify(headline, readings_of(model, headline.said))
        by_arithmetic(model, headline)


def by_arithmetic(model: Model, headline: Headline) -> Reading | None:
    """The result of a preset's arithmetic for a size that no count gives. Raises `Problem` if that is not the size."""
    said, size = headline.elsewhere and headline.elsewhere.arithmetic, short(headline.said)
    if not said or not size:
        return None
    key = headline.key.replace("counts", "arithmetic")
    if headline.counts != (NOT_REPRODUCED,):
        raise Problem(f"{key} beside a count that gives {headline.said}", f"remove it, or write {headline.key} = none")
    try:
        n = worked_out(said, {**model.raw, **named_counts(model)})
    except Problem as problem:
        raise problem.at(key) from None
    if not how(n, size):
        raise Problem(f"{key} gives {n:,}, and not {headline.said}", "correct it, or remove it")
    return Reading(said, n)


def _verify(headline: Headline, readings: list[Reading]) -> None:
    key, said, counts = headline[:3]
    size = short(said)
    assert size is not None
    giving = [reading.name for reading in readings if how(reading.parameters, size)]
    by_name = {reading.name: reading.parameters for reading in readings}
    mend = f'write {key} = ["{(giving or [NOT_REPRODUCED])[0]}"]'
    if counts == (NOT_REPRODUCED,):
        if giving:
            raise Problem(f"{key} is none, and {said} is given by {', '.join(giving)}", mend)
        return
    for name in counts:
        if name not in by_name:
            raise Problem(f"{key} has {name!r}", nearest(name, by_name, f"known ones: {', '.join(by_name)}"))
        if name not in giving:
            raise Problem(f"{key}: {name} is {by_name[name]:,}, and neither rounds nor truncates to {said}", mend)
