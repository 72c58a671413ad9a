"""Coverage: every model type and every mechanism, with the reference that each was checked against."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from ...cache.memory import memoized
from ...catalogue import presets, second_sources
from ...catalogue.independent import comparison
from ...catalogue.models import Model
from ...catalogue.transformers_types import covered_as, mappings, vllm_classes, vllm_recipes
from ...catalogue.watch import last_look, watch_reasons
from ...engine import terms
from ...engine.architectures import architectures
from ...engine.architectures.predicted import Module
from ...engine.array import Node
from ...engine.steps import Role
from ...engine.towers import has_tower
from ..kit import disclosure, rounding, values
from ..kit.html import Html, block, code, conventions, html, joined, number, table, text

# Not mechanisms: steps that every model has, or that only group others.
PLAIN = {Role.FORWARD, Role.LAYER, Role.LINEAR, Role.CONV1D, Role.EMBED, Role.LAST_ROW, Role.UNEMBED, Role.WEIGHTED_SUM}
IMAGES_AND_TEXT = "image and text"
OF_ANY_MODEL = {term for role in PLAIN for term in role.term.split(", ")}


class Use(NamedTuple):
    """The use of a mechanism: the model types, and the number of models in the catalog."""

    types: set[str]
    models: set[str]


def disclosed_models() -> list[Model]:
    """The models of the catalog whose sizes are known."""
    return disclosure.models(presets.paths())


def coverage_summary() -> Html:
    """The numbers of model types, forward passes and models, and how many of them were checked in which way."""
    made, types = comparison(), architectures()
    held = presets.goldens() & types.keys()
    of_catalogue = {m.model_type for m in disclosed_models()}
    rows = (
        ("Supported model types", len(types)),
        ("Forward passes, each shared by types with the same block", len({a.forward for a in types.values()})),
        ("Types whose scores equal those of a reference checkpoint", len(held)),
        ("Types compared with transformers: tensors, scores, FLOPs, cache", len(made.types)),
        ("Types with a model in the catalog", len(of_catalogue)),
        ("Models with known sizes", len(disclosed_models())),
    )
    versions = joined((f"{name} {version}" for name, version in made.versions.items()), ", ")
    return block(
        table(
            "What is covered",
            ["", number("Number")],
            [(what, rounding.grouped(n)) for what, n in rows],
            name="Coverage",
        ),
        conventions(html("Compared on {} with {}.", values.date(made.date), versions)),
    )


def coverage_types() -> Html:
    """Every model type: its forward pass, the reference for its scores, and the number of models."""
    made, held = comparison(), presets.goldens()
    models: defaultdict[str, int] = defaultdict(int)
    for model in disclosed_models():
        models[model.model_type] += 1
    rows = [
        (
            code(name),
            code(architecture.name),
            "checkpoint" if name in held else "–",
            _class_name(made.types[name].by) if name in made.types else made.absent.get(name, "–"),
            rounding.grouped(models[name]) if models[name] else "–",
        )
        for name, architecture in architectures().items()
    ]
    columns = ["Model type", "Forward pass", "Reference scores", "Compared with transformers’", number("Models")]
    return block(
        table("Model types", columns, rows, name="Model types, and what each was checked against"),
        conventions(
            "Checkpoint: scores and hidden states of small random weights, from transformers, to one part in 100,000.",
            "Compared: names and shapes of all tensors, scores, FLOPs by torch’s counter, numbers in the cache.",
        ),
    )


def _class_name(name: str) -> Html:
    """The name of a class, which may break before its task."""
    return code(text(name).replace("For", html("<wbr>For")))


def coverage_predictions() -> Html:
    """The types whose modules for multi-token prediction are counted, and where their tensors are in a file."""
    models: defaultdict[str, int] = defaultdict(int)
    for model in disclosed_models():
        models[model.model_type] += model.prediction is not None
    alike: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for name, module in ((name, a.predicts) for name, a in architectures().items() if a.predicts):
        own = [("LM head", module.head), ("embedding", module.embedding)] if isinstance(module, Module) else []
        place = module.place.format(k="{k}", after="{n}")
        alike[place, ", ".join(word for word, tensor in own if tensor) or "–"].append(name)
    rows = [
        (
            joined(map(code, names), ", "),
            code(f"{place}.*"),
            own,
            rounding.grouped(n) if (n := sum(models[name] for name in names)) else "–",
        )
        for (place, own), names in alike.items()
    ]
    columns = ["Model types", "Tensors", "Of their own", number("Models")]
    return block(
        table(
            "Multi-token prediction", columns, rows, name="Types whose modules for multi-token prediction are counted"
        ),
        conventions(
            html("{} counts the modules from 0, {} from the number of layers on.", code("{k}"), code("{n}")),
            "The embedding and the LM head are the model’s where the modules have none of their own.",
        ),
    )


def coverage_watch() -> Html:
    """The last check of what other programs support: the versions, and everything that has no counterpart here."""
    look, reasons = last_look(), watch_reasons().reasons
    rows = [
        (package, version, *(rounding.grouped(count[package]) for count in (look.found, look.reasoned)))
        for package, version in look.versions.items()
    ]
    columns = ["Package", "Version", number("Without a counterpart or a reason"), number("With a reason")]
    why = [
        (reason.why, values.date(reason.day), joined((code(name) for name in reason.names.split()), ", "))
        for reason in reasons
    ]
    return block(
        table("The last look", columns, rows, name="What other programs know"),
        table("Why they are not read", ["Reason", "Looked at", "Types and names"], why, name="Reasons of the watch"),
        conventions(html("Looked at on {}.", values.date(look.date))),
    )


def coverage_mappings() -> Html:
    """The types of transformers' mappings of language models: how many are covered, and each of them, or why not."""
    made = mappings()
    covered = {name: covered_as(name) for name in made.types}
    tasks = [
        (task, [name for name, row in made.types.items() if task in row.tasks])
        for task in dict.fromkeys(task for row in made.types.values() for task in row.tasks)
    ]
    sums = [
        (task, *(rounding.grouped(n) for n in (len(names), sum(covered[name] is not None for name in names))))
        for task, names in [*tasks, ("any of them", list(made.types))]
    ]
    with_images = [name for name, row in made.types.items() if _reads_images(name, row.tasks)]
    with_towers = [name for name in with_images if has_tower(name)]
    reasons = dict.fromkeys(sorted(row.reason for row in made.types.values() if row.reason))
    why = [
        (reason, values.date(made.day), rounding.grouped(len(names)), joined((code(name) for name in names), ", "))
        for reason in reasons
        for names in [[name for name, row in made.types.items() if row.reason == reason]]
    ]
    rows = [
        (code(name), ", ".join(row.tasks), _coverage(name, covered[name]), _towers(name, row.tasks))
        for name, row in made.types.items()
    ]
    return block(
        table("By mapping", ["Mapping", number("Types"), number("Covered")], sums, name="Mappings of transformers"),
        table(
            "Not covered",
            ["Reason", "Looked at", number("Types"), "Which"],
            why,
            name="Types that are not covered, by reason",
        ),
        table("All types", ["Type", "Mappings", "Covered", "Towers"], rows, name="Types of transformers’ mappings"),
        conventions(
            html("The mappings are those of transformers {}.", made.version),
            "A multimodal type is covered if its text model is; each page names the parts that are left out.",
            html(
                "The towers of {} of the {} types for images and text are counted.",
                *map(len, (with_towers, with_images)),
            ),
        ),
    )


def coverage_vllm() -> Html:
    """The classes in vLLM's registry: how many of each list are covered, which ones, and why the others are not."""
    made = vllm_classes()
    lists = list(dict.fromkeys(name for row in made.classes.values() for name in row.lists))
    sums = [
        (name, *(rounding.grouped(n) for n in (len(rows), sum(row.type is not None for row in rows))))
        for name, rows in [
            *((name, [row for row in made.classes.values() if name in row.lists]) for name in lists),
            ("any of them", list(made.classes.values())),
        ]
    ]
    rows = [
        (code(name), ", ".join(row.lists), html("as {}", code(row.type)) if row.type else html("no: {}", row.reason))
        for name, row in made.classes.items()
    ]
    return block(
        table("By list", ["List", number("Classes"), number("Covered")], sums, name="Lists of vLLM’s registry"),
        table("All classes", ["Class", "Lists", "Covered"], rows, name="Classes of vLLM’s registry"),
        conventions(
            html(
                "The registry is that of vLLM {}; each reason was looked at on {}.", made.version, values.date(made.day)
            ),
            "A class is covered if a config.json that names it, and its type, is read.",
        ),
    )


# The recipes' word for models that generate images or sound.
OMNI = ["omni"]


@memoized
def coverage_recipes() -> Html:
    """The models of vLLM’s recipes: how many are in the catalog, and each of the others with the reason."""
    made, known = vllm_recipes(), set[str]()
    for preset in map(presets.preset, presets.readable()):
        known |= {name.lower() for name in (preset.hub, *preset.aliases) if name}
    missing = {name: tasks for name, tasks in made.models.items() if name.lower() not in known}
    writers = [name for name, tasks in missing.items() if tasks == OMNI]
    sums = [
        ("In the catalog", len(made.models) - len(missing)),
        (WRITES_OTHERS, len(writers)),
        (NOT_READ, len(missing) - len(writers)),
    ]
    rows = [(code(name), WRITES_OTHERS if name in writers else NOT_READ) for name in missing]
    return block(
        table("vLLM’s recipes", ["Models", number("Number")], [(a, rounding.grouped(n)) for a, n in sums], name="Sums"),
        table("Not in the catalog", ["Model", "Why"], rows, name="Recipes’ models that are not in the catalog"),
        conventions(html("The recipes are those of {}.", made.version)),
    )


def coverage_values() -> Html:
    """How many of the catalog's contexts, release dates and licenses another list confirms, and how many have a single
    source; and the reasons where a list disagrees."""
    sums = []
    for what, key in VALUES.items():
        rows = second_sources.held(key)
        alike, unlike = sum(bool(row.alike) for row in rows), sum(bool(row.unlike and not row.alike) for row in rows)
        numbers = len(rows), alike, unlike, len(rows) - alike - unlike
        sums.append((what, *(rounding.grouped(n) for n in numbers)))
    made = second_sources.lists().sources
    why = [
        (what, joined((presets.preset(slug).name for slug in slugs.split()), ", "), reason)
        for what, key in VALUES.items()
        for slugs, reason in second_sources.reasons(key).items()
    ]
    columns = [
        "Value",
        number("Models"),
        number("Confirmed by a list"),
        number("Different in a list"),
        number("Single source"),
    ]
    read = joined((f"{name} {one.version} ({values.date(one.day)})" for name, one in made.items()), ", ")
    return block(
        table("Second sources", columns, sums, name="Values that another list confirms"),
        table("Unlike", ["Value", "Models", "Why a list differs"], why, name="Where a list says something else"),
        conventions(
            html("The lists: {}.", read),
            "A list that a preset’s own value is from does not count. A context may be rounded, a date may be a month.",
        ),
    )


VALUES = {"Context": "context", "Release date": "released", "License": "licence"}
WRITES_OTHERS = "writes images or sound, no text"
NOT_READ = "no source with its config.json was found (looked for last on November 29, 2026)"


def _towers(name: str, tasks: list[str]) -> str:
    """Whether the towers of a type for images and text are counted."""
    return "" if not _reads_images(name, tasks) else "counted" if has_tower(name) else "not counted"


def _reads_images(name: str, tasks: list[str]) -> bool:
    covered = architectures().get(name)
    return IMAGES_AND_TEXT in tasks and not (covered and covered.reads_text_alone)


def _coverage(name: str, covered: str | None) -> Html:
    """The cell for one type of transformers."""
    row = mappings().types[name]
    if covered is None:
        return html("no: {}", row.reason)
    if row.incomplete:
        return html("yes, but the default config of its class is not a working model: {}", row.incomplete)
    return html("yes") if covered == name else html("as {}", code(covered))


def _terms(node: Node) -> list[str]:
    """The field's terms for a step; any step that chooses among experts is a router, even if it is a plain linear
    map."""
    said = [term for term in terms.of(node).split(", ") if term]
    return [*said, "router"] if node.role is Role.MIXTURE_OF_EXPERTS else said


@memoized
def mechanism_uses() -> dict[str, Use]:
    """Each mechanism by the field’s term, with the types and models that have it."""
    found: dict[str, Use] = {}
    for model in disclosed_models():
        nodes = (node for node in model.trace.root.walk() if node.role is not None and node.role not in PLAIN)
        for term in {term for node in nodes for term in _terms(node) if term not in OF_ANY_MODEL}:
            use = found.setdefault(term, Use(set(), set()))
            use.types.add(model.model_type)
            use.models.add(model.slug)
    return found


def coverage_mechanisms() -> Html:
    """Every mechanism that a model of the catalog has: the number of types and models, and whether it was checked."""
    held, compared = presets.goldens(), comparison().types
    rows = [
        (
            term,
            rounding.grouped(len(use.types)),
            rounding.grouped(len(use.types & held)),
            rounding.grouped(len(use.types & compared.keys())),
            rounding.grouped(len(use.models)),
        )
        for term, use in sorted(mechanism_uses().items(), key=lambda item: (-len(item[1].models), item[0].lower()))
    ]
    columns = ["Mechanism", *map(number, ("Types", "With a checkpoint", "Compared", "Models"))]
    return table("Mechanisms", columns, rows, name="Mechanisms, and how many types and models have each")
