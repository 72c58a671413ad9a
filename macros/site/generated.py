"""What MkDocs is told besides the pages of `docs/`: a page for each model and each family, and their place in the navigation."""

from __future__ import annotations

import json
import logging

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

from ..catalogue import presets
from ..cli.describe import as_json
from ..dependencies import remembered
from ..engine.errors import Problem
from ..engine.files import place
from ..views import diagrams, values, words
from ..views.catalogue import family_slug
from ..views.html import text
from ..views.layers import layer_range
from ..views.models import released

log = logging.getLogger("mkdocs.macros.site")

MODELS = "models"  # the folder, and the navigation's entry "Models"


def page_of(slug: str) -> str:
    """The source path of a model's page."""
    return f"{MODELS}/{family_slug(presets.preset(slug).family)}/{slug}.md"


def families() -> dict[str, list[str]]:
    """The models of each family, in the order of release, of one day the smallest first."""

    def order(slug: str) -> tuple:
        try:
            size = presets.model(slug).counts.total if presets.preset(slug).config is not None else 0
        except Problem:
            size = 0
        return released(presets.preset(slug)), size, slug

    found: dict[str, list[str]] = {}
    for slug in sorted(readable(), key=order):
        found.setdefault(presets.preset(slug).family, []).append(slug)
    return dict(sorted(found.items(), key=lambda kv: kv[0].lower()))


def readable() -> list[str]:
    """The slugs whose preset can be read; the others are among `problems`."""
    found = []
    for slug in presets.paths():
        try:
            presets.preset(slug)
            found.append(slug)
        except Problem:
            pass
    return found


def problems() -> dict[str, Problem]:
    """What is wrong with presets, by slug: they cannot be read, or give another total than the published one."""
    return {slug: found for slug in presets.paths() if (found := problem(slug))}


@remembered
def problem(slug: str) -> Problem | None:
    """What is wrong with a preset."""
    try:
        if presets.preset(slug).config is not None:
            presets.model(slug).verify()
    except Problem as found:
        return found if found.where else found.at(place(presets.file_of(slug)))
    return None


def on_config(config):
    """The families below "Models" in the navigation."""
    if config.nav:
        entries = [
            {
                family: [
                    f"{MODELS}/{family_slug(family)}/index.md",
                    *({presets.preset(s).name: page_of(s)} for s in slugs),
                ]
            }
            for family, slugs in families().items()
        ]
        config.nav = [
            {"Models": [*item["Models"], *entries]} if isinstance(item, dict) and "Models" in item else item
            for item in config.nav
        ]
    return config


def on_files(files, config):
    """The generated pages. A wrong preset refuses the build; under live preview its page shows what is wrong."""
    wrong = problems()
    if wrong and config.plugins["macros"].config["on_error_fail"]:
        raise PluginError("\n".join(map(str, wrong.values())))
    for problem in wrong.values():
        log.error(problem)
    for slug in wrong.keys() - set(readable()):
        path = presets.file_of(slug)  # its family cannot be read, and is the folder's by custom
        add(
            files,
            config,
            f"{MODELS}/{path.parent.name}/{slug}.md",
            broken_page(slug, wrong[slug]),
            edit=f"../{place(path)}",
        )
    for family, slugs in families().items():
        add(files, config, f"{MODELS}/{family_slug(family)}/index.md", family_page(family, tuple(slugs)))
        for slug in slugs:
            content = broken_page(slug, wrong[slug]) if slug in wrong else model_page(slug)
            add(files, config, page_of(slug), content, edit=f"../{place(presets.paths()[slug])}")
            if slug not in wrong and presets.preset(slug).config is not None:
                add(files, config, data_file(slug), data(slug))
    return files


@remembered
def data(slug: str) -> str:
    """A model as one JSON object, for download."""
    return as_json(presets.model(slug), True, costs=False) + "\n"


def add(files, config, path: str, content: str, edit: str | None = None) -> None:
    """A generated page, whose edit link leads to `edit`; a page of that path in `docs/` is written by hand and stays."""
    if files.get_file_from_path(path) is None:
        file = File.generated(config, path, content=content)
        file.edit_uri = edit
        files.append(file)


def header(title: str, description: str, is_wide: bool = False) -> str:
    """A page's metadata; JSON strings are YAML, and in them no name can become anything else. A wide page has no contents beside it."""
    return f"---\ntitle: {json.dumps(title)}\ndescription: {json.dumps(description)}\n{'hide: [toc]' + chr(10) if is_wide else ''}---\n\n# {text(title)}\n\n"


def broken_page(slug: str, problem: Problem) -> str:
    """What the live preview shows for a wrong preset."""
    return (
        header(presets.preset(slug).name if slug in readable() else slug, "This preset is wrong")
        + f'<p class="ep-error">{text(problem)}</p>\n'
    )


@remembered
def family_page(family: str, slugs: tuple[str, ...]) -> str:
    """The models of a family."""
    return (
        header(family, f"Every model of the family {family}, in the order of release, with exact sizes", is_wide=True)
        + "\n\n".join(
            [
                f"Models of {text(', '.join(dict.fromkeys(presets.preset(s).organization for s in slugs)))}. Each leads to a page with everything that its forward pass gives.",
                f"{{{{ family_chart({literal(family)}) }}}}",
                f"{{{{ family_changes({literal(family)}) }}}}",
                "[Every model of the catalogue](../index.md)",
            ]
        )
        + "\n"
    )


def literal(s: str) -> str:
    """A string as a Jinja literal that holds nothing of Jinja's own: braces, quotes and percent signs are escaped."""
    return (
        '"'
        + "".join(
            c if c.isalnum() or c in " .-" else f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}" for c in s
        )
        + '"'
    )


@remembered
def model_page(slug: str) -> str:
    """Everything that a model's trace gives: the same calls for every model."""
    preset, s = presets.preset(slug), literal(slug)
    if preset.config is None:
        return header(preset.name, f"{preset.name} by {preset.organization}: no size is disclosed") + (
            f"{{{{ model_intro({s}) }}}}\n\nThe models whose sizes are public are in [the catalogue](../index.md).\n\n"
            f"## Sources\n\n{{{{ model_sources({s}) }}}}\n"
        )
    total = values.params(slug)
    parts = [
        f"{{{{ model_intro({s}) }}}}",
        f"{{{{ parts_chart({s}) }}}}",
        section("The whole model", f"{{{{ pipeline_diagram({s}) }}}}"),
        *blocks(slug),
        section("Every parameter", f"{{{{ parameter_table({s}) }}}}"),
        section("The formula", f"{{{{ formula({s}) }}}}"),
        section("What happens to five tokens", f"{{{{ walkthrough({s}, tokens=5) }}}}"),
        section("What it costs to run", f"{{{{ costs({s}) }}}}"),
        section("KV cache", f"{{{{ kv_cache({s}) }}}}", level=3),
        section("FLOPs", f"{{{{ flops({s}) }}}}", level=3),
        section("Where the FLOPs go", f"{{{{ flops_table({s}) }}}}", level=3),
        section("Memory", f"{{{{ memory_table({s}) }}}}\n\n{{{{ training_memory({s}) }}}}", level=3),
        section(
            "The least time",
            f"{{{{ time_table({s}, accelerators=['h100', 'mi300x', 'rtx-4090', 'tpu-v5e']) }}}}",
            level=3,
        ),
        section("Which number is meant", f"{{{{ which_number({s}) }}}}"),
        f"## Sources\n\n{{{{ model_sources({s}) }}}}",
        f"## What was checked\n\n{{{{ model_checked({s}) }}}}",
        section(
            "Compute it yourself",
            f"```sh\nevery-parameter describe {slug}\n```\n\n"
            f"The same as data: [{slug}.json]({slug}.json), one object with every tensor’s name pattern, shape and layers.",
        ),
    ]
    return (
        header(
            preset.name,
            f"{preset.name} has {total} parameters: each of them, with its shape, its formula and what it costs",
        )
        + "\n\n".join(parts)
        + "\n"
    )


def section(title: str, content: str, level: int = 2) -> str:
    """A heading and what is below it, left out of the search: words that every model's page has find none of them."""
    return f"{'#' * level} {title} {{ data-search-exclude }}\n\n{content}"


def blocks(slug: str) -> list[str]:
    """The diagram of each kind of layer, under a heading of its own where there are several."""
    kinds, s = diagrams.layer_kinds(presets.model(slug)), literal(slug)
    if len(kinds) == 1:
        return [section("One layer", f"{{{{ block_diagram({s}) }}}}")]
    return [
        section("The kinds of layers", f"{{{{ layer_table({s}) }}}}\n\nA layer is drawn once for each kind."),
        *(
            section(
                f"{text(kind_title(kind))}: {text(layer_range(node.layers))}",
                f"{{{{ block_diagram({s}, kind={literal(kind)}) }}}}",
                level=3,
            )
            for kind, node in kinds.items()
        ),
    ]


def kind_title(kind: str) -> str:
    """The kind of a layer as a heading."""
    name = words.of_kind(kind)
    return name[:1].upper() + name[1:]


def data_file(slug: str) -> str:
    """The path of a model's JSON, beside its page."""
    return page_of(slug).removesuffix(".md") + ".json"
