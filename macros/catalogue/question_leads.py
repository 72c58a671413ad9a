"""The answers to a question that need no index: the tools with its values filled in, the page that answers it, the
figure to compute, and the models that the catalog lacks."""

from __future__ import annotations

from collections.abc import Mapping

from .question_names import Absent, Named
from .question_of_model import FILLED_IN, Asked, Lead, OfModel, Value, conditions_of, link, tool
from .question_table import Grammar, Meaning
from .question_words import is_size

MOST_SIZES = 8  # of a family, one answer each
# Other names of a setting in the tools' URLs, and the conditions of figures that do not depend on all of them.
SAME = {"input": "context", "sequence": "context", "micro_batch": "batch"}
OF_PARAMETERS = ("total", "active", "embedding", "non_embedding")
CONDITIONS = {
    "cache_bytes_per_token": ("cache", "context"),
    "cache_bytes": ("cache", "context", "batch"),
    "weight_bytes": ("weights",),
    "decode_flops": ("context", "batch"),
}
OF_QLORA = ("int4", "nf4")  # formats of a frozen model that make LoRA QLoRA
OF_TRAINING = ("bfloat16", "float16")  # formats that training has anyway
METHODS = {"lora": "LoRA", "dora": "DoRA", "qlora": "QLoRA"}


def leads(meaning: Meaning, grammar: Grammar) -> list[Lead]:
    """The results of a question that need no index, best first; empty if it names nothing that a tool accepts."""
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
    said += (
        [f"{meaning.of_size[0]} names no model: {meaning.of_size[1]} is taken for its size."] if meaning.of_size else []
    )
    said += [meaning.why_on] if meaning.why_on and not meaning.absent else []
    said += [meaning.why_format] if meaning.why_format else []
    unused = [
        *meaning.unused,
        *meaning.left_out,
        *([meaning.other_card] if meaning.absent and meaning.other_card else []),
    ]
    said += [f"Not used: {', '.join(unused)}."] if unused else []
    return " ".join(said)


def _left_out(said: Meaning, found: list[Lead]) -> list[str]:
    """The values that were read but that no result uses."""
    if not found:
        several = said.devices if said.devices and said.devices > 1 else None
        numbers = ((said.context, "tokens"), (said.batch, "sequences"), (several, "devices"))
        return [f"{value:,} {unit}" for value, unit in numbers if value]
    taken = {name for lead in found for name in _choices_in(lead.address)}
    taken |= {name for lead in found if lead.compute for name in _conditions_of(lead.compute)}
    values = (
        (None if _is_of_training(said) else said.format, "weights", said.format or ""),
        (said.cache, "cache", f"cache in {said.cache}"),
        (said.context, "context", f"{said.context:,} tokens" if said.context else ""),
        (None if said.context else said.input, "context", f"input {said.input}"),
        (None if said.context and not said.is_billing else said.output, "output", f"output {said.output}"),
        (said.batch, "batch", f"{said.batch:,} sequences" if said.batch else ""),
        (said.rank, "rank", f"rank {said.rank}"),
        (said.tokens, "tokens", f"{said.tokens:,} tokens" if said.tokens else ""),
        (said.on, "on", said.on_name or ""),
        (said.devices if said.devices != 1 else None, "devices", f"{said.devices} devices"),
        (said.engine, "engine", said.engine_typed),
        (said.gpu_layers, "gpu_layers", f"{said.gpu_layers} layers on the GPU"),
        (said.zero, "zero", stage_of(said.zero)),
        (said.recompute, "recompute", "recomputation"),
        (said.utilization, "utilization", f"{said.utilization} of the peak"),
        (said.nodes, "nodes", f"{said.nodes} nodes"),
        (said.optimizer, "optimizer", said.optimizer or ""),
        (said.price_per_hour, "price_per_hour", f"{said.price_per_hour} per hour"),
        (said.electricity, "electricity", f"{said.electricity} per kWh"),
    )
    is_named = all(name not in lead.title for lead in found for name in [said.on_name or " "])
    missing = [text for value, name, text in values if value and name not in taken and (name != "on" or is_named)]
    rivals = [name for _, name, _ in said.rivals if all(name not in lead.title for lead in found)]
    titles = " ".join([lead.title for lead in found])
    is_of_all = any(lead.compute is not None and lead.compute.what in OF_PARAMETERS for lead in found)
    rivals += said.parts if is_of_all else []
    rivals += [name for name in said.formats if not any(f"in {name}" in lead.title for lead in found)]
    rivals += [f"cache in {name}" for name in said.caches if not any(f"cache in {name}" in one.title for one in found)]
    return [*[one for one in missing if one != said.engine_typed or (said.engine or "") not in titles], *rivals]


def _is_of_training(said: Meaning) -> bool:
    """Whether a training has the format that is asked for: 16 bits, or those of QLoRA."""
    return said.is_training and (said.format in OF_TRAINING or (said.method == "lora" and said.format in OF_QLORA))


def stage_of(zero: str | None) -> str:
    return "FSDP" if zero == "fsdp" else f"ZeRO-{zero}"


def _choices_in(address: str) -> list[str]:
    """The settings of a URL by their usual names."""
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
        if len(listed) > 1 and said.is_against and not said.is_reason and "compare" in self.pages:
            four = listed[:4]
            slugs = ",".join([model.slug for model in four])
            choices = {"models": slugs, "weights": said.format, "context": said.context, "on": said.on}
            title = f"Compare {' and '.join([model.title for model in four])}"
            return [tool(link(self.pages["compare"], choices), title)]
        if said.is_drafting and len(listed) == 2 and not said.is_training and "plan" in self.pages:
            return [self._of_draft(listed[0], listed[1])]
        if said.is_license and len(said.models) == 1:
            (one,) = said.models
            return [Lead("model", one.page, f"{one.title}: license", "Its page names its license.", "", None)]
        if listed and len(said.models) == 1:
            bill = self._of_bills(listed[0]) if said.is_billing and not said.is_training else []
            answers = self._of_formats(listed[0])
            answers = answers if answers else [*self._of_model(listed[0]), *self._of_rivals(listed[0])]
            if said.is_of_which_machine and said.on is None and not said.is_training and "fits" in self.pages:
                answers += OfModel(said, self.names, listed[0]).of_machines()
            is_host = said.is_offloading or said.gpu_layers is not None
            return [*bill, *engine, *answers] if is_host else [*bill, *answers, *engine]
        if listed and (said.on or said.figure or said.size or said.context) and not said.is_training:
            return [lead for one in listed[:MOST_SIZES] for lead in OfModel(said, self.names, one).found()[:1]]
        return [] if said.models else self._of_no_model()

    def _of_rivals(self, model: Named) -> list[Lead]:
        """Like `OfModel`, for each of the other machines that a question names."""
        said = self.said
        if not said.rivals or said.is_training:
            return []
        first = said.on, said.on_name, said.devices
        found: list[Lead] = []
        for slug, name, many in said.rivals:
            said.on, said.on_name, said.devices = slug, name, many
            found += OfModel(said, self.names, model).found()[:1]
        said.on, said.on_name, said.devices = first
        return found

    def _of_draft(self, model: Named, draft: Named) -> Lead:
        """The plan of a model with another one as its draft."""
        said = self.said
        fill: dict[str, Value] = {
            "task": "speculative",
            "model": model.slug,
            "draft": draft.slug,
            "weights": said.format,
            "cache": said.cache,
            "context": said.context,
            "batch": said.batch,
            "on": said.on,
            "devices": said.devices,
        }
        return tool(link(self.pages["plan"], fill), f"Plan {model.title} with {draft.title} as its draft")

    def _of_formats(self, model: Named) -> list[Lead]:
        """The first result in each of several formats of the weights or of the cache."""
        said = self.said
        if said.is_training or said.is_reason or said.size or said.changes or said.figure in OF_PARAMETERS:
            return []
        found: list[Lead] = []
        for name in said.formats:
            said.format = name
            found += OfModel(said, self.names, model).found()[:1]
        if said.formats:
            said.format = None
            return found
        for name in said.caches:
            said.cache = name
            found += OfModel(said, self.names, model).found()[:1]
        said.cache = None if said.caches else said.cache
        return found

    def _of_bills(self, model: Named | None) -> list[Lead]:
        """What a token costs on each machine that a question names."""
        said = self.said
        found = self._of_bill(model)
        first = said.on, said.on_name, said.devices, said.price_per_hour
        for slug, name, many in said.rivals:
            said.on, said.on_name, said.devices = slug, name, many
            said.price_per_hour = said.prices[slug] if slug in said.prices else None
            found += self._of_bill(model)
        said.on, said.on_name, said.devices, said.price_per_hour = first
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
            "input": said.input or said.context,
            "output": said.output,
            "on": said.on,
            "devices": said.devices,
            "price_per_hour": said.price_per_hour,
            "electricity": said.electricity,
            "utilization": said.utilization,
        }
        of = f" of {model.title}" if model else ""
        on = f" on {said.on_name}" if said.on else ""
        told = f"Seconds and energy for a million tokens, and money{said.paid or ' at your prices'}."
        return [Lead("tool", link(self.pages["plan"], fill), f"What a token{of}{on} costs", told, "", None)]

    def _of_engine(self, model: Named) -> list[Lead]:
        """The plan of a model that is served by an engine, or that keeps some layers on the host."""
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
        return [tool(link(self.pages["plan"], fill), f"Plan {model.title}{how}{conditions_of(said, False)}")]

    def _of_absent(self, one: Absent) -> list[Lead]:
        """Say first that a model is missing, then name the nearest ones, without their figures."""
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
            return self._of_trainings(model)
        is_any = said.vague and not model.is_sure and not said.sizes and said.on and said.is_fitting
        is_any = is_any and said.size in (None, "context")
        if is_any and not said.figure and not said.format and "fits" in self.pages:
            return self._of_no_model()  # `which mistral should I use on a 3080`
        is_of_each = (said.figure or said.size) and not said.why_on
        is_of_each = (is_of_each or said.on is not None) and not said.is_reason
        if said.sizes and is_of_each and not said.changes:  # for a family, the figure of each size
            found = [lead for one in said.sizes[:MOST_SIZES] for lead in OfModel(said, self.names, one).found()]
            return [lead for lead in found if lead.compute]
        return OfModel(said, self.names, model).found()

    def _of_trainings(self, model: Named | None) -> list[Lead]:
        """The plans of a training run on each machine that a question names."""
        said = self.said
        first = said.on, said.on_name, said.devices
        plan, *derived = self._of_training(model)
        plans = [plan]
        first_stage = said.zero
        for stage in said.zeros:
            said.zero = stage
            (more, *_) = self._of_training(model)
            plans.append(more)
        said.zero = first_stage
        for slug, name, many in said.rivals:
            said.on, said.on_name, said.devices = slug, name, many
            (more, *_) = self._of_training(model)
            plans.append(more)
        said.on, said.on_name, said.devices = first
        return [*plans, *derived]

    def _of_training(self, model: Named | None) -> list[Lead]:
        """The plan of a training run, and the page that derives its memory."""
        said = self.said
        method = "lora" if said.rank and said.method in (None, "full") else said.method
        method = "qlora" if method == "lora" and said.format in OF_QLORA else method
        is_adapted = method is not None and method != "full"
        page = self.pages["training"] if "training" in self.pages else None
        derivation = "Weights, gradients, optimizer states and activations."
        derived = [Lead("tool", page, "Training memory", derivation, "", None)] if page is not None else []
        fill: dict[str, Value] = {
            "task": "training",
            "model": model.slug if model else None,
            "method": method,
            "rank": said.rank if is_adapted else None,
            "target_modules": said.targets if is_adapted else None,
            "optimizer": said.optimizer,
            "zero": said.zero,
            "on": said.on,
            "devices": said.devices or (1 if is_adapted or said.on else None),
            "sequence": said.context,
            "micro_batch": said.batch,
            "recompute": said.recompute,
            "tokens": said.tokens,
            "utilization": said.utilization,
            "price_per_hour": said.price_per_hour,
            "electricity": said.electricity,
        }
        of = f" of {model.title}" if model else ""
        how = f" with {METHODS[method]}" if method is not None and is_adapted else " in full" if method else ""
        rank = f" of rank {said.rank}" if said.rank and is_adapted else ""
        tokens = f" on {said.tokens:,} tokens" if said.tokens else ""
        on = f" on {said.on_name}" if said.rivals else ""
        stage = f" with {stage_of(said.zero)}" if said.zero and said.zeros else ""
        title = f"Training{of}{how}{rank}{tokens}{stage}{on}"
        told = f"{FILLED_IN[:-1]}: its time, and its cost{said.paid}." if said.paid else FILLED_IN
        plan = [Lead("tool", link(self.pages["plan"], fill), title, told, "", None)] if "plan" in self.pages else []
        return [*plan, *derived]

    def _of_no_model(self) -> list[Lead]:
        said = self.said
        if said.is_reason:
            return []
        if said.is_training:
            is_run = said.on or said.tokens or said.rank or ((said.method or said.zero) and said.devices)
            return self._of_training(None) if is_run else []
        if said.changes and "whatIf" in self.pages and not said.is_why:
            changed = {f"set.{self.names['keys'][name]}": value for name, value in said.changes}
            title = ", ".join([f"{name} = {value:,}" for name, value in said.changes])
            choices = {"context": said.context, "on": said.on, **changed}
            return [tool(link(self.pages["whatIf"], choices), f"What if {title}")]
        if said.is_billing and said.on:
            return self._of_bills(None)
        if said.on and (said.is_of_machine or (said.rivals and not said.is_fitting)) and "machines" in self.pages:
            told = "Memory, bandwidth and peaks of each machine, with their sources."
            names = " and ".join([said.on_name or "", *[name for _, name, _ in said.rivals]])
            makers = "what their makers state" if said.rivals else "what its maker states"
            return [Lead("section", self.pages["machines"], f"{names}: {makers}", told, "", None)]
        page = self.pages["fits"] if "fits" in self.pages else self.pages["whatIf"] if "whatIf" in self.pages else None
        is_asked = said.is_amount or said.is_fitting or said.why_on
        is_asked = is_asked or (not said.figure and any(map(is_size, said.unused)))
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
            others = [_on_rival(page, choices, one) for one in said.rivals] if is_fits else []
            return [tool(link(page, choices), title), *others]
        if said.engine and not said.figure:
            title, address = self.names["engine_pages"][said.engine]
            return [Lead("section", address, title, "What the engine adds in memory, term by term.", "", None)]
        return []


def _on_rival(page: str, choices: Mapping[str, Value], rival: tuple[str, str, int | None]) -> Lead:
    """What fits on another machine."""
    slug, name, many = rival
    several = f"{many:,} × " if many and many > 1 else ""
    return tool(link(page, {**choices, "on": slug, "devices": many}), f"What fits on {several}{name}")
