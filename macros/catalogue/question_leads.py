"""The answers to a question that need no index: the tools with its values filled in, the page that answers it, the
figure to compute, and the models that the catalog lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .question_names import Absent, Named
from .question_table import Grammar, Meaning

CONTEXT = 8192  # the tools' own
FILLED_IN = "Opens with these values filled in."
MOST_SIZES = 8  # of a family, one answer each
WHOLE = "the-whole-model"  # the section of a model's page that has its sizes
# Other names of a choice in the addresses of tools, and the conditions of figures that do not depend on all of them.
SAME = {"input": "context", "sequence": "context", "micro_batch": "batch"}
OF_PARAMETERS = ("total", "active", "embedding", "non_embedding")
CONDITIONS = {
    "cache_bytes_per_token": ("cache", "context"),
    "cache_bytes": ("cache", "context", "batch"),
    "weight_bytes": ("weights",),
    "decode_flops": ("context", "batch"),
}
METHODS = {"lora": "LoRA", "dora": "DoRA", "qlora": "QLoRA"}

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
    """A result: its kind, address and title, the line below, and a note on assumptions and unused values."""

    kind: str
    address: str
    title: str
    said: str
    note: str
    compute: Asked | None


def leads(meaning: Meaning, grammar: Grammar) -> list[Lead]:
    """The results of a question that need no index, the best first; empty if it names nothing that a tool takes."""
    found = _Leads(meaning, grammar).found()
    meaning.left_out = _left_out(meaning, found)
    note = note_of(meaning)
    return [
        Lead(one.kind, one.address, one.title, one.said, "" if n else note, one.compute) for n, one in enumerate(found)
    ]


def note_of(meaning: Meaning) -> str:
    """The corrections and the values that were not used."""
    said = [f"Read as {meant} for “{typed}”." for typed, meant in meaning.corrected]
    said += [f"{typed} has the shapes of {title}." for typed, title in meaning.alike]
    add = "a size" if meaning.sizes else "a generation"
    said += [f"{typed} names several models, and {title} is taken: add {add}." for typed, title in meaning.vague]
    said += [meaning.why_on] if meaning.why_on and not meaning.absent else []
    unused = [*meaning.unused, *meaning.left_out]
    said += [f"Not used: {', '.join(unused)}."] if unused else []
    return " ".join(said)


def _left_out(said: Meaning, found: list[Lead]) -> list[str]:
    """The values that were read and that no result takes."""
    if not found:
        return []
    taken = {name for lead in found for name in _choices_in(lead.address)}
    taken |= {name for lead in found if lead.compute for name in _conditions_of(lead.compute)}
    values = (
        (said.format, "weights", said.format or ""),
        (said.cache, "cache", f"cache in {said.cache}"),
        (said.context, "context", f"{said.context:,} tokens" if said.context else ""),
        (said.batch, "batch", f"{said.batch:,} sequences" if said.batch else ""),
        (said.rank, "rank", f"rank {said.rank}"),
        (said.tokens, "tokens", f"{said.tokens:,} tokens" if said.tokens else ""),
        (said.on, "on", said.on_name or ""),
        (said.devices if said.devices != 1 else None, "devices", f"{said.devices} devices"),
        (said.engine, "engine", said.engine_typed),
        (said.gpu_layers, "gpu_layers", f"{said.gpu_layers} layers on the GPU"),
    )
    is_named = all(name not in lead.title for lead in found for name in [said.on_name or " "])
    missing = [text for value, name, text in values if value and name not in taken and (name != "on" or is_named)]
    rivals = [name for _, name, _ in said.rivals if all(name not in lead.title for lead in found)]
    titles = " ".join([lead.title for lead in found])
    return [*[one for one in missing if one != said.engine_typed or (said.engine or "") not in titles], *rivals]


def _choices_in(address: str) -> list[str]:
    """The choices of an address by their usual names."""
    names = [choice.partition("=")[0] for choice in address.partition("?")[2].split("&")]
    found = [SAME[name] if name in SAME else name for name in names]
    found += ["on", "devices"] if "cards" in found else []
    return [*found, "engine"] if "task=offload" in address else found  # which is llama.cpp's


def _conditions_of(asked: Asked) -> list[str]:
    """The conditions on which a figure depends."""
    if asked.size or asked.what in OF_PARAMETERS:
        return []
    if asked.what in CONDITIONS:
        return [*CONDITIONS[asked.what]]
    return ["weights", "cache", "context", "batch", "on", "devices"]


class _Leads:
    def __init__(self, meaning: Meaning, grammar: Grammar) -> None:
        self.said, self.names = meaning, grammar.names
        self.pages: Mapping[str, str] = grammar.names["tools"]

    def found(self) -> list[Lead]:
        said = self.said
        if said.absent:
            return [lead for one in said.absent for lead in self._of_absent(one)]
        listed = [model for model in said.models if model.is_listed]
        engine = self._of_engine(listed[0]) if len(said.models) == 1 and listed and not said.is_training else []
        if len(listed) > 1 and said.is_against and "compare" in self.pages:
            four = listed[:4]
            slugs = ",".join([model.slug for model in four])
            choices = {"models": slugs, "weights": said.format, "context": said.context, "on": said.on}
            title = f"Compare {' and '.join([model.title for model in four])}"
            return [_tool(_link(self.pages["compare"], choices), title)]
        if listed and len(said.models) == 1:
            bill = self._of_bill(listed[0]) if said.is_billing and not said.is_training else []
            answers = [*self._of_model(listed[0]), *self._of_rivals(listed[0])]
            is_host = said.is_offloading or said.gpu_layers is not None
            return [*bill, *engine, *answers] if is_host else [*bill, *answers, *engine]
        if listed and (said.on or said.figure or said.size or said.context) and not said.is_training:
            return [lead for one in listed[:MOST_SIZES] for lead in _OfModel(said, self.names, one).found()[:1]]
        return [] if said.models else self._of_no_model()

    def _of_rivals(self, model: Named) -> list[Lead]:
        """The same of the further machines that a question names."""
        said = self.said
        if not said.rivals or said.is_training:
            return []
        first = said.on, said.on_name, said.devices
        found: list[Lead] = []
        for slug, name, many in said.rivals:
            said.on, said.on_name, said.devices = slug, name, many
            found += _OfModel(said, self.names, model).found()[:1]
        said.on, said.on_name, said.devices = first
        return found

    def _of_bill(self, model: Named | None) -> list[Lead]:
        """What a token costs."""
        said = self.said
        if "plan" not in self.pages:
            return []
        fill: dict[str, Value] = {
            "task": "bill",
            "model": model.slug if model else None,
            "weights": said.format,
            "cache": said.cache,
            "batch": said.batch,
            "input": said.context,
            "on": said.on,
            "devices": said.devices,
            "price_per_hour": said.price_per_hour,
            "electricity": said.electricity,
        }
        of = f" of {model.title}" if model else ""
        on = f" on {said.on_name}" if said.on else ""
        told = f"Seconds and energy for a million tokens, and money{said.paid or ' at your prices'}."
        return [Lead("tool", _link(self.pages["plan"], fill), f"What a token{of}{on} costs", told, "", None)]

    def _of_engine(self, model: Named) -> list[Lead]:
        """The plan of a model that an engine serves, or that keeps some layers on the host."""
        said = self.said
        is_offload = said.gpu_layers is not None or said.is_offloading
        if "plan" not in self.pages or (said.engine is None and not is_offload):
            return []
        many = said.devices or 1
        fill: dict[str, Value] = {
            "task": "offload" if is_offload else "engine",
            "model": model.slug,
            "engine": said.engine.lower() if said.engine is not None and not is_offload else None,
            "weights": said.format,
            "cache": said.cache,
            "context": said.context,
            "batch": said.batch,
            "on": said.on if many == 1 else None,
            "cards": f"{many}x{said.on}" if many > 1 and said.on and not is_offload else None,
            "gpu_layers": said.gpu_layers,
        }
        layers = f"{said.gpu_layers} layers on the GPU" if said.gpu_layers is not None else "a part on the host"
        how = f" with {layers if is_offload else said.engine}"
        return [_tool(_link(self.pages["plan"], fill), f"Plan {model.title}{how}{conditions_of(said, False)}")]

    def _of_absent(self, one: Absent) -> list[Lead]:
        """That a model is not there, first; then the nearest, without their figures."""
        by = f" Its name on the hub is {one.hub}." if one.hub else ""
        how = (
            "Its type is covered: fetch or paste its config." if one.is_of_type else "Any config takes its config.json."
        )
        said = f"{one.title} is not in the catalog.{by} {how}"
        nearest = [
            Lead(
                "model",
                near.page,
                f"Nearest in the catalog: {near.title}",
                f"Another model than {one.title}.",
                "",
                None,
            )
            for near in one.nearest
        ]
        page = self.pages["config"] if "config" in self.pages else "models/"
        return [Lead("absent", page, f"{one.title} is not in the catalog", said, "", None), *nearest]

    def _of_model(self, model: Named) -> list[Lead]:
        said = self.said
        if said.is_training:
            return self._of_training(model)
        is_of_each = (said.figure or said.size) and not said.why_on
        is_of_each = (is_of_each or said.on is not None) and not said.is_reason
        if said.sizes and is_of_each and not said.changes:  # of a family, the figure of each size
            found = [lead for one in said.sizes[:MOST_SIZES] for lead in _OfModel(said, self.names, one).found()]
            return [lead for lead in found if lead.compute]
        return _OfModel(said, self.names, model).found()

    def _of_training(self, model: Named | None) -> list[Lead]:
        """The plan of a training run, and the page that derives its memory."""
        said = self.said
        method = said.method or ("lora" if said.rank else None)
        page = self.pages["training"] if "training" in self.pages else None
        derivation = "Weights, gradients, optimizer states and activations."
        derived = [Lead("tool", page, "Training memory", derivation, "", None)] if page is not None else []
        fill: dict[str, Value] = {
            "task": "training",
            "model": model.slug if model else None,
            "method": method,
            "rank": said.rank if method else None,
            "on": said.on,
            "devices": said.devices or (1 if method or said.on else None),
            "sequence": said.context,
            "micro_batch": said.batch,
            "tokens": said.tokens,
        }
        of = f" of {model.title}" if model else ""
        how = f" with {METHODS[method]}" if method else ""
        rank = f" of rank {said.rank}" if said.rank and method else ""
        tokens = f" on {said.tokens:,} tokens" if said.tokens else ""
        title = f"Training{of}{how}{rank}{tokens}"
        plan = [_tool(_link(self.pages["plan"], fill), title)] if "plan" in self.pages else []
        return [*plan, *derived]

    def _of_no_model(self) -> list[Lead]:
        said = self.said
        if said.is_training:
            is_run = said.on or said.tokens or said.rank or (said.method and said.devices)
            return self._of_training(None) if is_run else []
        if said.changes and "whatIf" in self.pages and not said.is_why:
            changed = {f"set.{self.names['keys'][name]}": value for name, value in said.changes}
            title = ", ".join([f"{name} = {value:,}" for name, value in said.changes])
            choices = {"context": said.context, "on": said.on, **changed}
            return [_tool(_link(self.pages["whatIf"], choices), f"What if {title}")]
        if said.is_billing and said.on:
            return self._of_bill(None)
        if said.on and (said.is_of_machine or said.rivals) and "machines" in self.pages:
            told = "Memory, bandwidth and peaks of each machine, with their sources."
            names = " and ".join([said.on_name or "", *[name for _, name, _ in said.rivals]])
            makers = "what their makers state" if said.rivals else "what its maker states"
            return [Lead("section", self.pages["machines"], f"{names}: {makers}", told, "", None)]
        page = self.pages["fits"] if "fits" in self.pages else self.pages["whatIf"] if "whatIf" in self.pages else None
        is_asked = said.is_amount or said.context or said.format or said.devices or said.is_fitting or said.why_on
        is_asked = is_asked or (said.is_bare and not said.figure and not said.is_against)
        if said.on and page is not None and (is_asked or said.devices == 1):
            several = f"{said.devices:,} × " if said.devices and said.devices > 1 else ""
            is_fits = "fits" in self.pages
            title = f"{'What fits on' if is_fits else 'What if on'} {several}{said.on_name}{conditions_of(said, False)}"
            choices = {
                "on": said.on,
                "weights": said.format,
                "cache": said.cache,
                "context": said.context,
                "batch": (said.batch or 1) if is_fits else said.batch,
                "devices": said.devices,
            }
            return [_tool(_link(page, choices), title)]
        if said.engine and not said.figure:
            title, address = self.names["engine_pages"][said.engine]
            return [Lead("section", address, title, "What the engine adds in memory, term by term.", "", None)]
        return []


class _OfModel:
    """The results for one model: a figure to compute, or a tool that opens with the question's values."""

    def __init__(self, meaning: Meaning, names: Mapping[str, Any], model: Named) -> None:
        self.said, self.model = meaning, model
        # a name without a generation is answered for the model that is taken, which the note says
        is_figure = (meaning.figure or meaning.size) and not meaning.is_reason
        self.is_sure = model.is_sure or bool(meaning.vague and is_figure)
        self.pages: Mapping[str, str] = names["tools"]
        row = names["models"][model.record]
        of_architecture = row[2] if len(row) > 2 else {}
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
        self.what_if = _link(self.pages["whatIf"], filled_in) if "whatIf" in self.pages else None
        self.named = f"{model.title}{conditions_of(meaning)}"

    def found(self) -> list[Lead]:
        said, model = self.said, self.model
        if self.keys:
            changed = ", ".join([f"{name} = {value:,}" for name, _, value in self.keys])
            what = "total" if said.figure in ("size", None) else said.figure
            return self._lead(self.what_if, f"{model.title} with {changed}", self._computed(what))
        if said.on is not None:
            return self._on_machine()
        if said.why_on and "fits" in self.pages:
            choices = {name: self.choices[name] for name in ("model", "weights", "cache", "context", "batch")}
            return [_tool(_link(self.pages["fits"], choices), f"What holds {self.named}")]
        if not self.is_sure:
            is_asked = said.figure or said.size or said.is_reason or not (said.format or said.context)
            return [] if is_asked else self._lead(self.what_if, self.named)
        is_length = said.size == "context" or said.figure == "largest_context"
        if is_length and said.context is None:
            return self._lead(f"{model.page}#{WHOLE}", f"{model.title}: context", self._computed(None, "context"))
        if said.size and not is_length:
            return self._lead(f"{model.page}#{WHOLE}", f"{model.title}: {said.size}", self._computed(None, said.size))
        return self._figure(is_length)

    def _on_machine(self) -> list[Lead]:
        """The model on the machine that the question names."""
        said = self.said
        title = f"{self.named} on {said.on_name}"
        if said.figure == "tokens_per_second" or not self.is_sure:
            return self._lead(self.what_if, title, self._computed(said.figure) if self.is_sure else None)
        first = {**self.choices, "context": said.context or CONTEXT, "devices": None}
        # Several devices are What if's: it splits the model over them.
        is_one = "fits" in self.pages and (said.devices or 1) == 1
        return self._lead(_link(self.pages["fits"], first) if is_one else self.what_if, title, self._computed(None))

    def _figure(self, is_length: bool) -> list[Lead]:
        """A figure of the model alone, derived on its page."""
        said = self.said
        is_of_format = said.format is not None and not said.is_reason  # `why does gpt-oss use mxfp4`
        of_format = ("device_bytes" if said.context or said.cache else "weight_bytes") if is_of_format else None
        what = said.figure if said.figure and not is_length else of_format
        if what is None:
            return self._lead(self.what_if, self.named, self._computed("cache_bytes")) if said.context else []
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
        return [Lead("answer", address, title, FILLED_IN, "", asked)] if asked else [_tool(address, title)]


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


def _tool(address: str, title: str) -> Lead:
    return Lead("tool", address, title, FILLED_IN, "", None)


def with_format(lead: Lead, format: str) -> Lead:
    """What opens a tool as a lead does, with the weights in another format."""
    page, _, given = lead.address.partition("?")
    kept = [choice for choice in given.split("&") if choice and not choice.startswith("weights=")]
    return _tool(f"{page}?{'&'.join([*kept, f'weights={format}'])}", f"The same in {format}")


def _link(page: str, choices: Mapping[str, Any]) -> str:
    """An address with choices, which are of letters, digits and `-._,`."""
    given = "&".join([f"{name}={choices[name]}" for name in choices if choices[name] is not None])
    return f"{page}?{given}" if given else page
