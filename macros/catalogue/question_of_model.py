"""The results of a question for one model: a figure to compute, or a tool that opens with the question's values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .question_names import Named
from .question_table import Meaning

CONTEXT = 8192  # the tools' own
FILLED_IN = "Opens with these values filled in."
WHOLE = "the-whole-model"  # the section of a model's page that has its sizes
BATCH = "largest_batch"
OF_TIME = ("tokens_per_second", "prefill_seconds")

Value = str | int | None


class Asked(NamedTuple):
    """The figure to compute: a figure or a size of a model under these conditions; without either, whether it fits."""

    slug: str
    title: str
    what: str | None
    size: str | None
    format: str | None
    cache: str | None
    on: str | None
    context: int
    batch: int
    devices: int
    changes: list[tuple[str, str, int]]
    engine: str | None = None


class Lead(NamedTuple):
    """A result: its kind, URL and title, the line below, and a note on assumptions and unused values."""

    kind: str
    address: str
    title: str
    said: str
    note: str
    compute: Asked | None


class OfModel:
    """The results for one model: a figure to compute, or a tool that opens with the question's values."""

    def __init__(self, meaning: Meaning, names: Mapping[str, Any], model: Named) -> None:
        self.said, self.model = meaning, model
        # a name without a generation is answered for the assumed model, which the note names
        is_figure = (meaning.figure or meaning.size) and not meaning.is_reason
        self.is_sure = model.is_sure or bool(meaning.vague and is_figure)
        self.pages: Mapping[str, str] = names["tools"]
        row = names["models"][model.record]
        of_architecture = row[3] if len(row) > 3 else {}
        usual = names["keys"]
        self.keys = [
            (name, of_architecture[name] if name in of_architecture else usual[name], value)
            for name, value in meaning.changes
            if name in of_architecture or name in usual
        ]
        self.choices: dict[str, Value] = {
            "model": model.slug,
            "weights": meaning.format,
            "cache": meaning.cache,
            "context": meaning.context,
            "batch": meaning.batch,
            "on": meaning.on,
            "devices": meaning.devices,
        }
        filled_in = {**self.choices, **{f"set.{key}": value for _, key, value in self.keys}}
        self.what_if = link(self.pages["whatIf"], filled_in) if "whatIf" in self.pages else None
        self.named = f"{model.title}{conditions_of(meaning)}"

    def found(self) -> list[Lead]:
        said, model = self.said, self.model
        if said.is_reason and (self.keys or said.size) and said.on is None:
            return []  # `why 128256 vocab llama 3`: a page explains why
        if self.keys:
            changed = ", ".join([f"{name} = {value:,}" for name, _, value in self.keys])
            what = "total" if said.figure in ("size", None) else said.figure
            return self._lead(self.what_if, f"{model.title} with {changed}", self._computed(what))
        if said.on is not None:
            return self._on_machine()
        if said.why_on and "fits" in self.pages:
            return self.of_machines()
        if not self.is_sure:
            is_asked = said.figure or said.size or said.is_reason or not (said.format or said.context)
            return [] if is_asked else self._lead(self.what_if, self.named)
        is_length = said.size == "context" or said.figure == "largest_context"
        if is_length and said.context is None:
            return self._lead(f"{model.page}#{WHOLE}", f"{model.title}: context", self._computed(None, "context"))
        if said.size and not is_length:
            return self._lead(f"{model.page}#{WHOLE}", f"{model.title}: {said.size}", self._computed(None, said.size))
        return self._figure(is_length)

    def of_machines(self) -> list[Lead]:
        """The machines that hold the model."""
        choices = {name: self.choices[name] for name in ("model", "weights", "cache", "context", "batch")}
        return [tool(link(self.pages["fits"], choices), f"What holds {self.named}")]

    def _on_machine(self) -> list[Lead]:
        """The model on the machine that the question names."""
        said = self.said
        title = f"{self.named} on {said.on_name}"
        if said.figure in OF_TIME or not self.is_sure:
            return self._lead(self.what_if, title, self._computed(said.figure) if self.is_sure else None)
        first = {**self.choices, "context": said.context or CONTEXT, "devices": None}
        # Several devices are a case for What if, which splits the model over them.
        is_one = "fits" in self.pages and (said.devices or 1) == 1
        asked = self._computed(said.figure if said.figure == BATCH else None)
        return self._lead(link(self.pages["fits"], first) if is_one else self.what_if, title, asked)

    def _figure(self, is_length: bool) -> list[Lead]:
        """A figure of only the model, derived on its page."""
        said = self.said
        is_of_format = said.format is not None and not said.is_reason  # `why does gpt-oss use mxfp4`
        of_format = ("device_bytes" if said.context or said.cache else "weight_bytes") if is_of_format else None
        what = said.figure if said.figure and not is_length and said.figure != BATCH else of_format
        if what is None:
            is_split = said.devices is not None and said.devices > 1
            asked = self._computed("cache_bytes") if said.context and not is_split else None
            return self._lead(self.what_if, self.named, asked) if said.context or is_split else []
        is_file = said.format is not None and (what == "size" or (what == "device_bytes" and not said.context))
        section = "memory" if is_file or not said.figure or is_length else said.section
        asked = ("weight_bytes" if is_file else "total") if what == "size" else what
        more = self._lead(self.what_if, f"What if: {self.named}") if said.format or said.context else []
        return [*self._lead(f"{self.model.page}#{section}", self.named, self._computed(asked)), *more]

    def _computed(self, what: str | None, size: str | None = None) -> Asked:
        said = self.said
        return Asked(
            self.model.slug,
            self.model.title,
            what,
            size,
            said.format,
            said.cache,
            said.on,
            said.context or CONTEXT,
            said.batch or 1,
            said.devices or 1,
            self.keys,
            said.engine,
        )

    def _lead(self, address: str | None, title: str, asked: Asked | None = None) -> list[Lead]:
        if address is None:
            return []
        return [Lead("answer", address, title, FILLED_IN, "", asked)] if asked else [tool(address, title)]


def conditions_of(said: Meaning, has_devices: bool = True) -> str:
    """The conditions of a question in words: ` in Q4_K_M with 16,384 tokens of context`."""
    parts = [
        f" in {said.format}" if said.format else "",
        f" with {said.context:,} tokens of context" if said.context else "",
        f" with its cache in {said.cache}" if said.cache else "",
        f" for {said.batch:,} sequences" if said.batch and said.batch > 1 else "",
        f" on {said.devices:,} devices" if has_devices and said.devices and said.devices > 1 else "",
    ]
    return "".join(parts)


def tool(address: str, title: str) -> Lead:
    return Lead("tool", address, title, FILLED_IN, "", None)


def with_format(lead: Lead, format: str) -> Lead:
    """A URL that opens a tool as a lead does, with the weights in another format."""
    page, _, given = lead.address.partition("?")
    kept = [choice for choice in given.split("&") if choice and not choice.startswith("weights=")]
    return tool(f"{page}?{'&'.join([*kept, f'weights={format}'])}", f"The same in {format}")


def link(page: str, choices: Mapping[str, Any]) -> str:
    """A URL with settings, which consist of letters, digits and `-._,`."""
    given = "&".join([f"{name}={choices[name]}" for name in choices if choices[name] is not None])
    return f"{page}?{given}" if given else page
