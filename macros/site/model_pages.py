"""The pages that are made from presets: one for each model and each family, and their place in the navigation.

Plain data, for any builder: a page is its path below `docs/` and its Markdown.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..catalogue import presets
from ..catalogue.names import family_slug
from ..cli.arguments import PROGRAM
from ..dependencies import remembered
from ..engine.errors import Problem
from ..engine.files import place
from ..kept import kept
from ..views import diagrams, sheet, values, words
from ..views.html import code, tag, text
from ..views.layers import layer_range
from ..views.models import released
from . import data_files

MODELS = "models"  # the folder, and the navigation's entry "Models"


class Generated(NamedTuple):
    """A file of the site that is not in `docs/`; what stands in it is computed when it is asked for."""

    path: str  # where it would be in `docs/`
    make: Callable[[], str | bytes]
    edit: str | None = None  # the file to edit instead, as a path from `docs/`

    @property
    def content(self) -> str | bytes:
        return self.make()


def pages(size: Callable[[str], int] | None = None) -> list[Generated]:
    """Every generated page. That of a wrong preset says what is wrong with it."""
    paths = presets.paths()
    generated = [
        # Its family cannot be read, and is the folder's by custom.
        Generated(f"{MODELS}/{paths[slug].parent.name}/{slug}.md", partial(page, slug), f"../{place(paths[slug])}")
        for slug in paths.keys() - set(presets.readable())
    ]
    for family, slugs in families(size).items():
        generated.append(Generated(page_of_family(family), partial(family_page, family, tuple(slugs))))
        generated += (Generated(page_of(slug), partial(page, slug), f"../{place(paths[slug])}") for slug in slugs)
    return generated


def data() -> list[Generated]:
    """The site as data, but for wrong presets."""
    return [Generated(*file) for file in data_files.files(slug for slug in presets.paths() if not problem(slug))]


def page(slug: str) -> str:
    """A model's page, or what is wrong with its preset."""
    wrong = problem(slug)
    return broken_page(slug, wrong) if wrong else model_page(slug)


def with_families(navigation: list[Any], size: Callable[[str], int] | None = None) -> list[Any]:
    """A navigation as in mkdocs.yml, with the families and their models below its entry "Models"."""
    entries = [
        {family: [page_of_family(family), *({presets.preset(slug).name: page_of(slug)} for slug in slugs)]}
        for family, slugs in families(size).items()
    ]
    return [
        {"Models": [*item["Models"], *entries]} if isinstance(item, dict) and "Models" in item else item
        for item in navigation
    ]


def page_of(slug: str) -> str:
    """The source path of a model's page."""
    return f"{MODELS}/{family_slug(presets.preset(slug).family)}/{slug}.md"


def page_of_family(family: str) -> str:
    """The source path of a family's page."""
    return f"{MODELS}/{family_slug(family)}/index.md"


def families(size: Callable[[str], int] | None = None) -> dict[str, list[str]]:
    """The models of each family, in the order of release, of one day the smallest first: by their totals, unless told
    another way, which may be a quicker one.
    """

    def order(slug: str) -> tuple:
        return released(presets.preset(slug)), (size or total)(slug), slug

    members: dict[str, list[str]] = {}
    for slug in sorted(presets.readable(), key=order):
        members.setdefault(presets.preset(slug).family, []).append(slug)
    return dict(sorted(members.items(), key=lambda item: item[0].lower()))


def total(slug: str) -> int:
    """How many parameters a model has; 0 where that cannot be known."""
    try:
        return _total(slug)
    except Problem:
        return 0


@kept
def _total(slug: str) -> int:
    return presets.model(slug).counts.total if presets.preset(slug).config is not None else 0


def problems() -> dict[str, Problem]:
    """What is wrong with presets, by slug: they cannot be read, or give another total than the published one."""
    return {slug: wrong for slug in presets.paths() if (wrong := problem(slug))}


@remembered
def problem(slug: str) -> Problem | None:
    """What is wrong with a preset."""
    try:
        _verified(slug)
    except Problem as wrong:
        return presets.with_file(wrong, slug)
    return None


@kept
def _verified(slug: str) -> bool:
    presets.verify_family(slug)
    if presets.preset(slug).config is not None:
        presets.model(slug).verify()
    return True


def header(title: str, description: str, is_wide: bool = False) -> str:
    """A page's metadata and its title; a wide page has no contents beside it.

    The metadata are JSON strings, which are YAML in which no name can become anything else.
    """
    hide = "hide: [toc]\n" if is_wide else ""
    return f"---\ntitle: {json.dumps(title)}\ndescription: {json.dumps(description)}\n{hide}---\n\n# {text(title)}\n\n"


def broken_page(slug: str, problem: Problem) -> str:
    """What the live preview shows for a wrong preset."""
    return (
        header(presets.preset(slug).name if slug in presets.readable() else slug, "This preset is wrong")
        + f'<p class="ep-error">{text(problem)}</p>\n'
    )


@remembered
def family_page(family: str, slugs: tuple[str, ...]) -> str:
    """The models of a family."""
    makers = ", ".join(dict.fromkeys(presets.preset(slug).organization for slug in slugs))
    said = f"Models of {text(makers)}."
    if any(presets.preset(slug).config is not None for slug in slugs):
        said += " Each leads to a page with everything that its forward pass gives."
    description = f"Every model of the family {family}, in the order of release, with exact sizes"
    return header(family, description, is_wide=True) + paragraphs(
        said,
        call("family_chart", family),
        call("family_changes", family),
        "[Every model of the catalogue](../index.md)",
    )


@remembered
@kept
def model_page(slug: str) -> str:
    """Everything that a model's trace gives: the same calls for every model."""
    preset = presets.preset(slug)
    if preset.config is None:
        description = f"{preset.name} by {preset.organization}: no size is disclosed"
        return header(preset.name, description) + paragraphs(
            call("model_intro", slug),
            "The models whose sizes are public are in [the catalogue](../index.md).",
            "## Sources",
            call("model_sources", slug),
        )
    total = values.params(slug)
    description = f"{preset.name} has {total} parameters: each of them, with its shape, its formula and what it costs"
    accelerators = "accelerators=['h100', 'mi300x', 'rtx-4090', 'tpu-v5e']"
    return header(preset.name, description) + paragraphs(
        f"<p>{call('model_intro', slug)}</p>",
        call("model_sheet", slug),
        section("The whole model", call("pipeline_diagram", slug)),
        *blocks(slug),
        folded(slug, "Every parameter", call("parameter_table", slug)),
        section("The formula", call("formula", slug)),
        folded(slug, "What happens to five tokens", call("walkthrough", slug, "tokens=5")),
        section("What it costs to run", call("costs", slug)),
        folded(slug, "KV cache", call("kv_cache", slug), level=3),
        folded(slug, "FLOPs", call("flops", slug), level=3),
        folded(slug, "Where the FLOPs go", call("flops_table", slug), level=3),
        folded(slug, "Memory", call("memory_table", slug), call("training_memory", slug), level=3),
        section("The least time", call("time_table", slug, accelerators), level=3),
        folded(slug, "Which number is meant", call("which_number", slug)),
        "## Sources",
        call("model_sources", slug),
        "## What was checked",
        call("model_checked", slug),
        section("Compute it yourself", tag("div", tag("pre", code(f"{PROGRAM} describe {slug}")), cls="highlight")),
    )


def blocks(slug: str) -> list[str]:
    """The diagram of each kind of layer, under a heading of its own where there are several."""
    kinds = diagrams.layer_kinds(presets.model(slug))
    if len(kinds) == 1:
        return [section("One layer", call("block_diagram", slug))]
    table = section("The kinds of layers", call("layer_table", slug), "A layer is drawn once for each kind.")
    drawn = []
    for kind, node in kinds.items():
        title = f"{text(kind_title(kind))}: {text(layer_range(node.layers))}"
        one = sheet.of_one_layer(presets.model(slug), node)
        drawn.append(section(title, *behind(one, call("block_diagram", slug, f"kind={literal(kind)}")), level=3))
    return [table, *drawn]


def kind_title(kind: str) -> str:
    """The kind of a layer as a heading."""
    name = words.of_kind(kind)
    return name[:1].upper() + name[1:]


def section(title: str, *content: str, level: int = 2) -> str:
    """A heading and what is below it."""
    return "\n\n".join([f"{'#' * level} {title}", *content])


def folded(slug: str, title: str, *content: str, level: int = 2) -> str:
    """A heading and a long part below it, folded behind what it comes to."""
    return section(title, *behind(sheet.result(slug, title), *content), level=level)


def behind(summary: str, *content: str) -> list[str]:
    """What is shown once somebody opens it; the summary stands there before."""
    return [f'<details class="ep-fold">\n<summary>{summary}</summary>', *content, "</details>"]


def paragraphs(*parts: str) -> str:
    return "\n\n".join(parts) + "\n"


def call(macro: str, name: str, *options: str) -> str:
    """A macro's call for a model or a family."""
    return f"{{{{ {macro}({', '.join([literal(name), *options])}) }}}}"


def literal(name: str) -> str:
    """A name as a Jinja literal that holds nothing of Jinja's own: braces, quotes and percent signs are escaped."""

    def escaped(c: str) -> str:
        if c.isalnum() or c in " .-":
            return c
        return f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}"

    return f'"{"".join(map(escaped, name))}"'
