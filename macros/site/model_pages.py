"""The pages that are generated from presets: one for each model and each family, and their place in the navigation.

Plain data, for any builder: a page consists of its path below `docs/` and its Markdown.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..cache.disk import cached_on_disk
from ..cache.memory import memoized
from ..catalogue import headlines, page_paths, presets
from ..catalogue.families import verify_family, wrong_about
from ..cli.arguments import PROGRAM
from ..counting import design
from ..engine.array import Node
from ..engine.errors import Problem
from ..engine.files import place
from ..views.diagrams import model_diagrams
from ..views.kit import values
from ..views.kit.html import code, tag, text
from ..views.models import fact_sheet, standing_out
from ..views.models.model_page import release_sort_key
from ..views.trace.layers import layer_range
from ..views.trace.parts import groups
from ..views.words import descriptions
from . import data_files
from .extensions.glossary import term_anchor


class Generated(NamedTuple):
    """A file of the site that is not in `docs/`; its content is computed on demand."""

    path: str  # its path, as if in `docs/`
    make: Callable[[], str | bytes]
    edit: str | None = None  # the file to edit instead, as a path from `docs/`

    @property
    def content(self) -> str | bytes:
        return self.make()


def pages(size: Callable[[str], int] | None = None) -> list[Generated]:
    """Every generated page. The page of a wrong preset shows the error."""
    paths = presets.paths()
    generated = [
        Generated(page_paths.page_of_file(paths[slug]), partial(page, slug), f"../{place(paths[slug])}")
        for slug in paths.keys() - set(presets.readable())
    ]
    for family, slugs in families(size).items():
        generated.append(Generated(page_paths.family_page(family), partial(family_page, family, tuple(slugs))))
        generated += (
            Generated(page_paths.model_page(slug), partial(page, slug), f"../{place(paths[slug])}") for slug in slugs
        )
    return generated


def data() -> list[Generated]:
    """The site as data; for a wrong preset, its files hold the error, since pages may link to them."""
    wrong = problems()
    of_models = [Generated(*file) for file in data_files.files(slug for slug in presets.paths() if slug not in wrong)]
    return of_models + [
        Generated(address(slug), partial(str, wrong[slug]))
        for slug in wrong
        for address in (data_files.json_address, data_files.csv_address)
    ]


def page(slug: str) -> str:
    """A model's page, or the error of its preset."""
    wrong = problem(slug)
    return broken_page(slug, wrong) if wrong else model_page(slug)


def with_families(navigation: list[Any], size: Callable[[str], int] | None = None) -> list[Any]:
    """A navigation as in mkdocs.yml, with the families and their models below its entry "Models"."""
    entries = [
        {
            family: [
                page_paths.family_page(family),
                *({presets.preset(slug).name: page_paths.model_page(slug)} for slug in slugs),
            ]
        }
        for family, slugs in families(size).items()
    ]
    return [
        {"Models": [*item["Models"], *entries]} if isinstance(item, dict) and "Models" in item else item
        for item in navigation
    ]


def families(size: Callable[[str], int] | None = None) -> dict[str, list[str]]:
    """The models of each family, in the order of release; within a day smallest first, by their totals or by another,
    perhaps faster, key."""

    def order(slug: str) -> tuple:
        return release_sort_key(presets.preset(slug)), (size or total)(slug), slug

    members: dict[str, list[str]] = {}
    for slug in sorted(presets.readable(), key=order):
        members.setdefault(presets.preset(slug).family, []).append(slug)
    return dict(sorted(members.items(), key=lambda item: item[0].lower()))


def total(slug: str) -> int:
    """The number of parameters of a model; 0 if unknown."""
    try:
        return _total(slug)
    except Problem:
        return 0


@memoized
@cached_on_disk
def _total(slug: str) -> int:
    return presets.model(slug).counts.total if presets.preset(slug).config is not None else 0


def problems() -> dict[str, Problem]:
    """The errors of presets, by slug: they cannot be read, or `check` rejects them."""
    return {slug: wrong for slug in presets.paths() if (wrong := problem(slug))}


@memoized
def problem(slug: str) -> Problem | None:
    """The error of a preset, or None."""
    try:
        _verified(slug)
    except Problem as wrong:
        return presets.with_file(wrong, slug)
    wrong = wrong_about(slug)
    return wrong and presets.with_file(wrong, slug)


@memoized
@cached_on_disk
def _verified(slug: str) -> bool:
    verify_family(slug)
    if presets.preset(slug).config is not None:
        headlines.verify(presets.model(slug))
    return True


def header(title: str, description: str, is_wide: bool = False) -> str:
    """A page's metadata and its title; a wide page has no table of contents next to it.

    The metadata are JSON strings, which YAML reads as strings whatever they contain.
    """
    hide = "hide: [toc]\n" if is_wide else ""
    return f"---\ntitle: {json.dumps(title)}\ndescription: {json.dumps(description)}\n{hide}---\n\n# {text(title)}\n\n"


def broken_page(slug: str, problem: Problem) -> str:
    """The live preview's page for a wrong preset."""
    return (
        header(presets.preset(slug).name if slug in presets.readable() else slug, "This preset is wrong")
        + f'<p class="ep-error">{text(problem)}</p>\n'
    )


@memoized
def family_page(family: str, slugs: tuple[str, ...]) -> str:
    """The models of a family."""
    makers = ", ".join(dict.fromkeys(presets.preset(slug).organization for slug in slugs))
    said = f"Models by {text(makers)}."
    if any(presets.preset(slug).config is not None for slug in slugs):
        said += " Each leads to a page with everything that its forward pass gives."
    chart = macro_call("family_chart", family)
    description = f"Every model of the family {family}, in the order of release, with exact sizes"
    return header(family, description, is_wide=True) + paragraphs(
        # In an element above a chart, so that all families with a chart share a frame.
        f"<p>{said}</p>\n{chart}" if len(slugs) > 1 else f"{said}\n\n{chart}",
        macro_call("family_changes", family),
        "[Every model of the catalog](../index.md)",
    )


@memoized
def model_page(slug: str) -> str:
    """The whole page of a model: the same macro calls for every model.

    How it compares with all others is computed here: as a call, an edit of any preset would rebuild every page.
    """
    is_disclosed = presets.preset(slug).config is not None
    return _model_page(slug, str(standing_out.model_answers(slug)) if is_disclosed else "")


@memoized
@cached_on_disk
def _model_page(slug: str, answers: str) -> str:
    preset = presets.preset(slug)
    if preset.config is None:
        description = f"{preset.name} by {preset.organization}: no size is disclosed"
        return header(preset.name, description) + paragraphs(
            macro_call("model_intro", slug),
            "The models whose sizes are public are in [the catalog](../index.md).",
            "## Sources",
            macro_call("model_sources", slug),
        )
    total = values.params(slug)
    description = f"{preset.name} has {total} parameters: each of them, with its shape, its formula and what it costs"
    accelerators = f"accelerators={list(fact_sheet.TIMED)}"
    return header(preset.name, description) + paragraphs(
        f"<p>{macro_call('model_intro', slug)} {answers}</p>",
        macro_call("model_sheet", slug),
        section("What it costs to run", macro_call("memory_figure", slug)),
        folded_section(slug, "By context", macro_call("costs", slug), level=3),
        folded_section(slug, "KV cache", macro_call("kv_cache", slug), macro_call("cache_peers", slug), level=3),
        folded_section(slug, "FLOPs", macro_call("flops", slug), level=3),
        folded_section(slug, "Where the FLOPs go", macro_call("flops_table", slug), level=3),
        folded_section(
            slug,
            "Memory",
            *([macro_call("published_table", slug)] if presets.model(slug).counts.formats.is_stated else []),
            macro_call("memory_table", slug),
            macro_call("training_memory", slug),
            level=3,
        ),
        folded_section(slug, "Minimum time { #the-least-time }", macro_call("time_table", slug, accelerators), level=3),
        section("What it changed", macro_call("model_changes", slug)),
        *whole_model(slug),
        *([section("The kinds of layers", macro_call("layer_table", slug))] if len(kinds(slug)) > 1 else []),
        folded_section(slug, "Every parameter", macro_call("parameter_table", slug)),
        *tower_section(slug),
        formula_section(slug),
        folded_section(slug, "What happens to five tokens", macro_call("walkthrough", slug, "tokens=5")),
        folded_section(slug, "Which number is meant", macro_call("which_number", slug)),
        "## What was checked",
        macro_call("model_checked", slug),
        folded_section(slug, "Sources", macro_call("model_sources", slug)),
        folded_section(slug, "Cite a number", macro_call("cite_numbers", slug)),
        section("Compute it yourself", tag("div", tag("pre", code(f"{PROGRAM} describe {slug}")), cls="highlight")),
    )


def tower_section(slug: str) -> list[str]:
    """The towers next to the text part and the modules that draft tokens, for a model that has any."""
    model = presets.model(slug)
    towers = folded_section(slug, "Towers beside the text part", macro_call("tower_table", slug, "tensors=True"))
    drafts = folded_section(slug, "Multi-token prediction", macro_call("prediction_table", slug))
    return [towers] * bool(model.components) + [drafts] * bool(model.prediction)


def formula_section(slug: str) -> str:
    """The formula part by part, collapsed if it is long."""
    drawn = macro_call("formula", slug)
    is_long = len(groups(presets.model(slug))) > MOST_PARTS
    return folded_section(slug, "The formula", drawn) if is_long else section("The formula", drawn)


USUAL = 7  # matrices of a layer: four of attention, three of a gated feed-forward network
MOST_PARTS = 18  # of a formula that is not collapsed


def n_matrices(layer: Node) -> int:
    """The matrices of a layer that have a name of their own."""
    return len({w.name for w in layer.all_weights() if len(w.shape) > 1})


def kinds(slug: str) -> dict[str, Node]:
    """The layers by their kinds."""
    return model_diagrams.layer_kinds(presets.model(slug))


def whole_model(slug: str) -> list[str]:
    """The drawing of the whole model, collapsed if it is long."""
    drawn = macro_call("pipeline_diagram", slug)
    model, layers = presets.model(slug), kinds(slug).values()
    is_long = len(layers) > 1 or design.is_sparse(model.counts) or any(n_matrices(one) > USUAL for one in layers)
    is_long |= bool(model.components)  # which get an additional section
    content = details(fact_sheet.layers_summary(model), drawn) if is_long else [drawn]
    return [section("The whole model", former_anchors(slug), *content)]


def former_anchors(slug: str) -> str:
    """Anchors of former sections about each kind of layer."""
    titles = [f"{kind_title(kind)}: {layer_range(node.layers)}" for kind, node in kinds(slug).items()]
    former = ["One layer"] if len(titles) == 1 else titles
    return "".join(tag("span", id=term_anchor(title)) for title in former)


def kind_title(kind: str) -> str:
    """The kind of a layer as a heading."""
    name = descriptions.of_kind(kind)
    return name[:1].upper() + name[1:]


def section(title: str, *content: str, level: int = 2) -> str:
    """A heading and its content."""
    return "\n\n".join([f"{'#' * level} {title}", *content])


def folded_section(slug: str, title: str, *content: str, level: int = 2) -> str:
    """A heading and a long part, collapsed behind a summary of its result."""
    return section(title, *details(fact_sheet.section_summary(slug, title), *content), level=level)


def details(summary: str, *content: str) -> list[str]:
    """Collapsible content with a summary."""
    return [f'<details class="ep-fold">\n<summary>{summary}</summary>', *content, "</details>"]


def paragraphs(*parts: str) -> str:
    return "\n\n".join(parts) + "\n"


def macro_call(macro: str, name: str, *options: str) -> str:
    """A macro's call for a model or a family."""
    return f"{{{{ {macro}({', '.join([jinja_literal(name), *options])}) }}}}"


def jinja_literal(name: str) -> str:
    """A name as a Jinja literal without Jinja syntax of its own: braces, quotes and percent signs are escaped."""

    def escaped(c: str) -> str:
        if c.isalnum() or c in " .-":
            return c
        return f"\\x{ord(c):02x}" if ord(c) < 256 else f"\\u{ord(c):04x}"

    return f'"{"".join(map(escaped, name))}"'
