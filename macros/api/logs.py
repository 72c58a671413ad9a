"""An engine's start-up log, line by line: each figure next to the computed one, and what to change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any

from ..catalogue import presets
from ..catalogue.models import Model
from ..catalogue.names import is_hub_name
from ..catalogue.resolving import Meant
from ..catalogue.transformers_types import vllm_classes
from ..counting import deploying
from ..counting.conditions import Conditions
from ..counting.costs import of as costs_of
from ..counting.formats import PUBLISHED, WEIGHTS, format_meant
from ..counting.log_reader import Log
from ..counting.log_reader import read_log as facts_of
from ..counting.log_replay import Replay, format_in, nearest_mix, replay, title_of
from ..counting.log_rows import OWN_MIX, State, is_counted
from ..engine.errors import Problem, shorten
from . import model as loading
from .conditions import conditions
from .deployments import command_of, devices, hub_of, options_of
from .tables import Row, Table, Tabular, table_of

LARGEST = 64 * 2**20  # bytes of a log


@dataclass(frozen=True)
class LogReading(Tabular):
    """A log that was parsed: the model and the options that it names, and each figure with the computed one and how the
    two compare: `equal`, `inside` the rounding of what is given, `explained`, `different`, `given`, `measured` by the
    engine, or `not counted`. Nothing else in the log is kept.
    """

    model: Model
    weights: str
    log: Log
    replay: Replay
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return self.sentence

    @property
    def engine(self) -> str:
        """The engine that wrote the log."""
        return self.log.engine

    @property
    def understood(self) -> int:
        """The number of figures that have a computed counterpart, or from which others follow."""
        return len(self.replay.rows) - self.replay.number(State.ALONE)

    @property
    def sentence(self) -> str:
        """The reading as a sentence."""
        title = title_of(self.log, self.replay.deployment)
        rows = self.replay.rows
        counts = [
            (self.replay.number(State.EQUAL), "equal"),
            (self.replay.number(State.INSIDE), "inside the rounding or a range"),
            (self.replay.number(State.EXPLAINED), "explained"),
            (self.replay.number(State.DIFFERENT), "different"),
        ]
        said = ", ".join(f"{n} {how}" for n, how in counts if n)
        figures = "figure" if len(rows) == 1 else "figures"
        return f"{title} with {self.model.name}: {len(rows)} {figures}{f': {said}' if said else ''}."

    @property
    def command(self) -> str:
        """The engine's command line for this deployment."""
        return command_of(self.engine, self._named, self.replay.deployment.command)

    @property
    def _named(self) -> str:
        """The model as the log names it: a hub's name that means it, or the file; otherwise as the catalog names it."""
        if self.engine == "llama.cpp" and self.log.file:
            return f"{self.log.file}.gguf"
        name = self.log.model
        is_meant = is_hub_name(name) and presets.meant(name).slug == self.model.slug
        return name if is_meant else hub_of(self.model)

    @property
    def table(self) -> Table:
        """One row per figure of the log."""
        rows: list[Row] = [
            {
                "line": row.line,
                "figure": row.what,
                "printed": row.printed,
                "counted": row.counted,
                "state": row.state.value,
                "why": row.why,
            }
            for row in self.replay.rows
        ]
        columns = ("line", "figure", "printed", "counted", "state", "why")
        return table_of(rows, caption=self.sentence) if rows else Table(columns, [], caption=self.sentence)

    def to_dict(self) -> dict[str, Any]:
        """The object that `every-parameter log --format json` prints."""
        return {
            "engine": self.engine,
            "version": self.replay.deployment.version,
            "model": self.model.slug,
            "name": self.model.name,
            "weights": self.weights,
            "options": list(self.replay.words),
            "lines": self.log.lines,
            "figures": self.rows(),
            "advice": list(self.replay.advice),
            "notes": [*self.notes, *self.replay.deployment.notes],
            "command": self.command,
            "sentence": self.sentence,
        }


def read_log(
    file: str | os.PathLike[str],
    model: Any = None,
    on: str | None = None,
    weights: str | None = None,
    engine: str | None = None,
    options: str | Sequence[str] = "",
    version: str = "",
    start: int = 0,
) -> LogReading:
    """Read the start-up log of vLLM, SGLang, llama.cpp or Ollama: a path, or the text itself if it has several lines.

    The model, the options and the devices are those that the log names, unless they are given here; `options` are words
    of the engine's command line that the log does not show. Of several starts in a log, the one with the most figures
    is read, or the one with the number `start`, counted from 1. Raises `Problem` if the file, the engine or the model
    is not known.
    """
    text = file if isinstance(file, str) and "\n" in file else read_file(file)
    return reading(text, model, on, weights, engine, options, version, start)


def reading(
    text: str,
    model: Any = None,
    on: str | None = None,
    weights: str | None = None,
    engine: str | None = None,
    options: str | Sequence[str] = "",
    version: str = "",
    start: int = 0,
) -> LogReading:
    """Like `read_log`, for a string. Raises `Problem`."""
    name = "" if engine is None else deploying.named(engine)
    found = facts_of(text, name, start)
    if not found.engine:
        raise Problem("no line that an engine prints", "give a start-up log of vLLM, SGLang, llama.cpp or Ollama")
    if not 0 <= start <= found.starts:
        raise Problem(f"start = {start}: the log has {found.starts:,}", f"give a number from 1 to {found.starts:,}")
    notes = [f"The log has {found.starts:,} starts: this is number {found.start:,}."] if found.starts > 1 else []
    format = ""
    if model is None:
        meant = _model_of(found)
        if not meant.slug:
            meant = _by_figures(
                meant,
                [
                    (slug, reading(text, slug, on, weights, engine, options, version, start))
                    for slug in meant.candidates
                ],
            )
        model, format = meant.slug, meant.format
        if "its own format is not counted" in meant.why and found.quantization in ("", "None"):
            found = replaced(found, quantization=OWN_MIX)
        if meant.why.startswith(TAKEN):
            notes.append(f"{meant.why[:1].upper()}{meant.why[1:]}: its figures hold if the shapes are the same.")
    read = model if isinstance(model, Model) else loading.read(model)
    said = weights or format_in(found, read.counts.formats.names, format)
    if said == PUBLISHED and found.engine in ("llama.cpp", "ollama"):
        said = nearest_mix(found, found.file or found.model) or said
    meant_format = format_meant(said)
    if not isinstance(meant_format, str) or meant_format not in WEIGHTS:
        raise Problem(f"weights = {shorten(weights)}: no such format", "give one such as Q4_K_M or fp8")
    given: Conditions = conditions(4096, 1, meant_format)
    asked, _ = deploying.options(found.engine, options_of(options))
    asked = deploying.with_tower(found.engine, asked, read.image_tower)
    cards = [] if on is None else devices(on)
    length = read.longest_context[0] or 0
    answer = replay(found, costs_of(read.counts), given, cards, length, asked, version, parts_of(read))
    return LogReading(read, meant_format, found, answer, tuple(notes))


TAKEN = "taken for"
MOST_CANDIDATES = 6  # candidates for a name, each of which is compared with the log


def parts_of(model: Model) -> list[tuple[str, int]]:
    """Bytes in 16 bits of the parts that an engine loads in addition to the text part: towers and multi-token
    prediction layers."""
    towers = sum(component.total for component in model.components)
    drafts = model.prediction.total if model.prediction else 0
    named = (("the towers of images and sound", towers), ("the layers of multi-token prediction", drafts))
    return [(name, total * 2) for name, total in named if total]


def _by_figures(several: Meant, readings: Sequence[tuple[str, LogReading]]) -> Meant:
    """Among several models that a name could mean, the only one with which no figure differs and most agree. Raises
    `Problem`."""
    scores: dict[str, int] = {}
    for slug, one in readings:
        if not one.replay.number(State.DIFFERENT):
            scores[slug] = len([row for row in one.replay.rows if is_counted(row.state)])
    best = [slug for slug, n in scores.items() if n and n == max(scores.values())]
    if len(best) == 1:
        title = presets.model(best[0]).name
        return Meant(
            best[0], several.format, f"{TAKEN} {title}, of those that its name could mean the one whose figures agree"
        )
    raise Problem(
        f"the log names its model {shorten(several.why)}, which could be several models",
        f"name it with --model {' or '.join(several.candidates)}",
    )


def _model_of(found: Log) -> Meant:
    """The model that a log names, or one whose name it contains and whose architecture it has, or one with the sizes
    that it prints; and the format that its name states. Several candidates, and the name, if the name could mean
    several models. Raises `Problem`."""
    said = [name for name in (found.model, found.file, found.model.rpartition("/")[2]) if name]
    said += [found.served] if found.served and found.architecture else []
    for name in said:
        meant = presets.meant(name)
        if meant.slug and _is_of(presets.model(meant.slug), found):
            return meant
    for name in said:
        for meant in presets.inside(name):
            if found.architecture and _is_of(presets.model(meant.slug), found):
                return meant
    several = _of_several(said, found)
    if several.slug:
        return several
    if len(found.sizes) > 4:
        for slug in presets.of_sizes(dict(found.sizes)):
            model = presets.model(slug)
            if _is_of(model, found):
                return Meant(slug, "", f"{TAKEN} {model.name}, which has the sizes that the log prints")
    if not said:
        raise Problem("the log names no model", "name it with --model")
    if several.candidates:
        return several
    problem = presets.unknown(said[0])
    raise Problem(f"the log names a model that is not known here: {problem.what}", "name it with --model")


def _of_several(said: Sequence[str], found: Log) -> Meant:
    """Among the models that a name could mean, the only one that matches what the log prints about it; a few that
    match; or none."""
    for name in said:
        candidates = presets.meant(name).candidates
        own = tuple([slug for slug in candidates if _is_of(presets.model(slug), found)])
        alike = set(presets.of_sizes(dict(found.sizes))) & set(own)  # with the vocabulary, which a file may pad
        own = tuple([slug for slug in own if slug in alike or not alike])
        if len(own) == 1:
            title = presets.model(own[0]).name
            return Meant(own[0], "", f"{TAKEN} {title}, of those that its name could mean the one with the log’s sizes")
        if 1 < len(own) <= MOST_CANDIDATES:
            return Meant("", "", name, own)
    return Meant("")


def _is_of(model: Model, found: Log) -> bool:
    """Whether a model has the architecture and the sizes that a log prints, as far as it prints any."""
    text = model.raw
    for key, n in found.sizes:
        of_model = text.get(key)
        if isinstance(of_model, int) and of_model != n and key in ("hidden_size", "num_hidden_layers"):
            return False
    if not found.architecture:
        return True
    if found.engine in ("llama.cpp", "ollama"):
        return found.architecture == model.counts.formats.gguf.architecture
    listed = vllm_classes().classes.get(found.architecture)
    if listed is None or listed.type is None:
        return True
    whole = model.whole.get("model_type") if model.whole else None
    own = {str(name).removesuffix("_text") for name in (model.model_type, whole) if name}
    meant = listed.type.removesuffix("_text")  # SGLang's class for DeepSeek-V3 also reads 3.2
    return any(name == meant or name.removeprefix(meant).isdigit() for name in own)


def read_file(file: str | os.PathLike[str]) -> str:
    """The text of a log, whatever its bytes. Raises `Problem`."""
    path = Path(file)
    try:
        if path.stat().st_size > LARGEST:
            raise Problem(f"{shorten(str(file))}: more than {LARGEST:,} bytes", "give the start of the log")
        return path.read_bytes().decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Problem(f"{shorten(str(file))}: cannot be read: {why}", "check the path") from None
