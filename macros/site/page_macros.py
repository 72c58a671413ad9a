"""The macros that a page may call: one list, with the errors of a call turned into one line that names the page."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache, wraps
from html import unescape
from pathlib import Path
from urllib.parse import quote

from .. import kept
from ..catalogue.names import family_slug
from ..engine.errors import Problem
from ..views import area_map as area_maps
from ..views import (
    arithmetic,
    capitals,
    charts,
    claims,
    coverage,
    designs,
    diagrams,
    excerpts,
    families,
    formulas,
    independent,
    matmul,
    model_size,
    models,
    real_numbers,
    rooms,
    rows_read,
    sheet,
    stations,
    tables,
    values,
    walkthrough,
    ways,
)
from ..views import catalogue as catalogues
from ..views import costs as cost_views
from ..views.figure_table import figure_table
from ..views.html import Html, anchor, code, html, table, tag, text
from ..views.layers import layer_range as which_layers
from . import data_files, page_arguments, page_errors
from .extensions.glossary import anchor as anchor_of_term
from .extensions.glossary import anchors_of_terms
from .extensions.large_blocks import marked
from .links import as_written, link_to_model, link_to_page, listed, reads_sources, source_of
from .model_pages import MODELS
from .page_arguments import plain, usage
from .terminal import terminal

GLOSSARY, TERMS_FILE, COMPARE = "reference/glossary.md", "includes/glossary.md", "tools/compare.md"
OF_MORE = {"macro_table", "terminal"}  # macros that look at other pages, or at any file
PACKAGE = __name__.split(".")[0] + "."
OUR_STYLES = re.compile(r"assets(-\w+)?/(components|styles)\.css")
TERMS = re.compile(r'(<span class="ep-term">· )([^<]+)')  # as `beside` writes them


def macros(env, prefix: str = "") -> dict[str, Callable]:
    """Every macro by name, with what a site writes before it; `env` gives the page that a link starts from."""

    def to_model(slug):
        return link_to_model(env, slug)

    def to_page(source):
        return link_to_page(env, source)

    def to_family(family):
        return link_to_page(env, f"models/{family_slug(family)}/index.md")

    def asked_of(tool, name, slug):
        """The address of a tool that starts with a model."""
        address = to_page(tool)
        return address and f"{address}?{name}={quote(slug)}"

    def comparison(models: Iterable[str], columns: Iterable[str | tuple[str, str]], context: int | None = None):
        """Models side by side: a row a model, a column for any figure that `value` gives."""
        return tables.comparison(models, columns, context, link=to_model)

    def catalogue(family: str | None = None):
        """The models of the site, or of one family, as a table."""
        return catalogues.catalogue(to_model, family, to_family, to_page(COMPARE))

    def family_changes(family: str):
        """The models of a family in the order of release, and what each changed."""
        return families.changes(family, to_model, to_page(COMPARE))

    def family_chart(family: str):
        """A family’s parameters by the date of release."""
        return families.chart(family, to_model)

    def pipeline_diagram(model: str, highlight: str = "d_model"):
        """A whole model from token ids to scores as a diagram; what depends on the size `highlight` is marked."""
        return diagrams.pipeline(model, highlight, link=to_page)

    def block_diagram(model: str, kind: str | None = None, highlight: str | None = None):
        """One layer with every step in it as a diagram; `kind` chooses where a model has several."""
        return diagrams.block(model, kind, highlight, link=to_page)

    def layer_drawing(folder: str = real_numbers.FOLDER):
        """One layer of a checkpoint with every step in it as a diagram."""
        return real_numbers.layer_drawing(folder, to_page)

    def layer_range(layers: Iterable[int]):
        """Which layers, in words: `layers 0–2`, `every sixth layer from 5 to 23`."""
        return text(which_layers(layers))

    def macro_table():
        """Every macro: how it is called, what it gives, and a page with a live call."""
        return listing(env, macros(env, prefix))

    def model_cards(slugs: Iterable[str]):
        """A few models as cards, each the way to its page."""
        return models.cards(slugs, to_model)

    def area_map(model: str):
        """A model’s parameters to scale; each field leads to the page that explains the part."""
        return area_maps.area_map(model, to_page)

    def model_sheet(slug: str):
        """What a model is on one screen: a map of its parameters, its sizes, its sources, the ways to more."""
        ways = (
            ("Change it", asked_of("tools/what-if.md", "model", slug)),
            ("Compare it", asked_of(COMPARE, "models", slug)),
            ("All of this as data (JSON)", link_to_page(env, data_files.json_of(slug))),
            ("Its tensors as a table (CSV)", link_to_page(env, data_files.csv_of(slug))),
        )
        return sheet.sheet(slug, ways)

    def with_links(function):
        @wraps(function)
        def macro(*args, **kwargs):
            return function(*args, **{"link": to_model, **kwargs})

        return macro

    named = {
        "value": values.value,
        "params": values.params,
        "parameter_table": tables.parameter_table,
        "layer_table": tables.layer_table,
        "which_number": tables.which_number,
        "comparison": comparison,
        "kv_cache": tables.kv_cache,
        "flops": tables.flops,
        "costs": tables.costs,
        "notation_table": tables.notation_table,
        "terms_table": tables.terms_table,
        "cost": cost_views.cost,
        "figure_table": figure_table,
        "flops_table": cost_views.flops_table,
        "training_flops": with_links(cost_views.training_flops),
        "bytes_table": cost_views.bytes_table,
        "cache_table": with_links(cost_views.cache_table),
        "cache_layers": cost_views.cache_layers,
        "cache_formula": cost_views.cache_formula,
        "cache_chart": with_links(cost_views.cache_chart),
        "read_chart": rows_read.read_chart,
        "format_table": cost_views.format_table,
        "memory_table": with_links(cost_views.memory_table),
        "inference_table": with_links(cost_views.inference_table),
        "training_memory": cost_views.training_memory,
        "split_table": cost_views.split_table,
        "fits_table": with_links(cost_views.fits_table),
        "published_costs": cost_views.published_costs,
        "accelerator": cost_views.accelerator,
        "accelerator_table": cost_views.accelerator_table,
        "time_table": cost_views.time_table,
        "formula": formulas.formula,
        "parameter_formula": formulas.parameter_formula,
        "walkthrough": walkthrough.walkthrough,
        "matmul": matmul.matmul,
        "matmul_figure": matmul.matmul_figure,
        "one_head": matmul.one_head,
        "recap": walkthrough.recap,
        "shape_after": walkthrough.shape_after,
        "dot_product": arithmetic.dot_product,
        "matrix_product": arithmetic.matrix_product,
        "matrix_cell": arithmetic.matrix_cell,
        "token_rows": real_numbers.token_rows,
        "number_matrix": real_numbers.number_matrix,
        "number_walk": real_numbers.number_walk,
        "layer_drawing": layer_drawing,
        "attention_table": real_numbers.attention_table,
        "worked_score": real_numbers.worked_score,
        "top_words": real_numbers.top_words,
        "logit_lens": real_numbers.logit_lens,
        "real_number": real_numbers.real_number,
        "capitals_figure": capitals.capitals_figure,
        "sentence_table": capitals.sentence_table,
        "head_habits": capitals.head_habits,
        "head_that_looks_at": capitals.head_that_looks_at,
        "attention_of": capitals.attention_of,
        "choose_country": capitals.choose_country,
        "pipeline_diagram": pipeline_diagram,
        "block_diagram": block_diagram,
        "catalogue": catalogue,
        "family_changes": family_changes,
        "family_chart": family_chart,
        "area_map": area_map,
        "model_intro": models.intro,
        "model_sheet": model_sheet,
        "model_sources": models.sources,
        "model_checked": models.checked,
        "model_cards": model_cards,
        "how_many": models.how_many,
        "verification": models.verification,
        "published_origins": models.published_origins,
        "coverage_summary": coverage.coverage_summary,
        "coverage_types": coverage.coverage_types,
        "coverage_mechanisms": coverage.coverage_mechanisms,
        "independent_summary": independent.independent_summary,
        "independent_table": independent.independent_table,
        "preset_file": models.preset_file,
        "layer_range": layer_range,
        "macro_table": macro_table,
        "calc": values.calc,
        "model_link": with_links(model_size.model_link),
        "config_file": model_size.config_file,
        "parts_chart": with_links(charts.parts_chart),
        "size_chart": with_links(charts.size_chart),
        "shape_history_chart": with_links(charts.shape_history_chart),
        "growth_figure": charts.growth_figure,
        "formula_error_chart": with_links(claims.formula_error_chart),
        "formula_result": with_links(claims.formula_result),
        "formulas_table": with_links(claims.formulas_table),
        "formula_against_parts": model_size.formula_against_parts,
        "common_widths": model_size.common_widths,
        "widths_at_a_glance": model_size.widths_at_a_glance,
        "python_config": model_size.python_config,
        "design_table": designs.design_table,
        "design_result": designs.design_result,
        "width_result": with_links(model_size.width_result),
        "scaling_table": with_links(model_size.scaling_table),
        "claims_table": with_links(claims.claims_table),
        "token_ids_claim": claims.token_ids_claim,
        "rooms_picture": rooms.rooms_picture,
        "room": rooms.room,
        "excerpt": excerpts.excerpt,
        "html_source": excerpts.html_source,
        "trace_steps": stations.trace_steps,
        "part_formula": stations.part_formula,
        "terminal": terminal,
        "what_if": ways.what_if,
        "compare": with_links(ways.compare),
        "any_config": ways.any_config,
        "data_fields": data_files.data_fields,
    }
    return {prefix + name: function for name, function in named.items()}


def is_elsewhere(env) -> bool:
    """Whether MkDocs builds somebody else's site: ours names the styles itself, in a published one by a moved name."""
    styles = map(str, env.conf.get("extra_css", ()))
    return not reads_sources(env) and not any(map(OUR_STYLES.fullmatch, styles))


def prepare(env) -> None:
    """Before a page: what is no text is not printed as if it were; on another site, none of our macros is."""
    theirs = env.env.finalize
    if getattr(theirs, "__module__", "") == __name__:
        return  # since the page before

    elsewhere = is_elsewhere(env)

    def printed(value: object) -> object:
        if not elsewhere or str(getattr(value, "__module__", "")).startswith(PACKAGE):
            return page_errors.printed(value, page_errors.page_name(env))
        return theirs(value) if theirs else value

    env.env.finalize = printed


def note(env) -> None:
    """After a page of another site: what it needs besides."""
    if is_elsewhere(env):
        from .mkdocs_elsewhere import note_tools

        note_tools(env.markdown)


def finish(env) -> None:
    """After a build of another site: the files that its pages load."""
    if is_elsewhere(env):
        from .mkdocs_elsewhere import write_files

        write_files(env.conf, env.variables["files"])


def register(env) -> None:
    """Register every macro with mkdocs-macros or with who reads the same settings, and how their errors look."""

    def place() -> str:
        return page_errors.page_name(env)

    if reads_sources(env):
        env.variables["files"] = listed(str(docs_of(env)))
    if is_elsewhere(env):
        from .mkdocs_elsewhere import start  # there is no MkDocs where another engine builds

        known = macros(env, start(env.conf).prefix)  # another site's glossary is not ours: no term leads there
    else:
        known = {name: kept_of(name, explained(function, env), place) for name, function in macros(env).items()}
    for name, function in known.items():
        env.macro(guarded(name, function, place), name)
    page_errors.register(set(known), only_ours=is_elsewhere(env))


def explained(function: Callable, env) -> Callable:
    """The macro, with each of the field's terms that the glossary has as the way to its entry there."""

    terms = cache(lambda: anchors_of_terms(docs_of(env) / TERMS_FILE))

    @wraps(function)
    def macro(*args, **kwargs):
        result = function(*args, **kwargs)
        if not isinstance(result, Html):
            return result
        if TERMS.search(result) is not None and (page := link_to_page(env, GLOSSARY)):
            result = Html(TERMS.sub(lambda m: m[1] + linked_terms(m[2], page, terms()), result))
        if reads_sources(env):
            files = env.variables["files"]
            return Html(as_written(result, source_of(env), files, env.conf.get("use_directory_urls", True)))
        return result

    return macro


@lru_cache(maxsize=4096)
def linked_terms(terms: str, page: str, known: frozenset[str]) -> str:
    """Terms of the field, those that the glossary has as ways to it."""
    return ", ".join(
        f'<a href="{page}#{anchor}">{term}</a>' if (anchor := anchor_of_term(unescape(term))) in known else term
        for term in terms.split(", ")
    )


def kept_of(name: str, function: Callable, place: Callable[[], str]) -> Callable:
    """The macro, with results that outlive the build where they come from presets, the code and the page's place."""
    takes = inspect.signature(function)
    takes_folder = "folder" in takes.parameters

    @wraps(function)
    def macro(*args, **kwargs):
        def computed():
            result = function(*args, **kwargs)
            return isinstance(result, Html), result

        if name in OF_MORE or (takes_folder and "folder" in takes.bind(*args, **kwargs).arguments):
            return function(*args, **kwargs)
        is_html, content = kept.result(name, (place(), args, kwargs), computed, is_part=True)
        return Html(content) if is_html else content

    return macro


def guarded(name: str, function: Callable, place: Callable[[], str]) -> Callable:
    """The macro with a wrong call and every `Problem` as one `Problem` that names the page and the macro."""
    signature = inspect.signature(function)

    @wraps(function)
    def macro(*args, **kwargs):
        try:
            args, kwargs = tuple(map(plain, args)), {key: plain(value) for key, value in kwargs.items()}
            page_arguments.check(name, signature, args, kwargs)
            return marked(function(*args, **kwargs))
        except Problem as problem:
            raise problem.at(f"{place()}: {name}({page_arguments.shown(args, kwargs)})") from None

    macro.__name__ = name
    return macro


def listing(env, known: dict[str, Callable]) -> Html:
    """The macros in the order of the alphabet, each with what its documentation says first and the first page that
    calls it."""
    rows = []
    for name, function in sorted(known.items()):
        page = next((source for source, markdown in _sources(env) if calls(markdown, name)), "")
        target = link_to_page(env, page) if page else None
        rows.append(
            [
                html("{} {}", code(name), tag("small", usage("", inspect.signature(function)))),
                _with_code(" ".join((function.__doc__ or "").partition("\n\n")[0].split())),
                anchor(page.removesuffix(".md"), target) if target else "–",
            ]
        )
    return table("Every macro", ["Call", "Gives", "Live on"], rows, name="Every macro", cls="ep-table ep-macros")


def _with_code(doc: str) -> Html:
    """Documentation, what stands between backticks as code."""
    return Html(re.sub("`([^`]*)`", lambda m: code(m[1]), doc))


def calls(page: str, name: str) -> bool:
    """Whether a page's Markdown calls a macro, beside showing how."""
    return bool(re.search(rf"{{{{-? *{name}\(", re.sub(r"{% raw %}.*?{% endraw %}", "", page, flags=re.S)))


def _sources(env) -> list[tuple[str, str]]:
    """(path, Markdown) of each hand-written page."""
    files = env.variables.get("files", ())
    if hasattr(files, "documentation_pages"):
        pages = [(f.src_uri, f.content_string) for f in files.documentation_pages() if f.abs_src_path]
    else:
        pages = [(source, (docs_of(env) / source).read_text("utf-8")) for source in files if source.endswith(".md")]
    return sorted(page for page in pages if not re.match(f"includes/|{MODELS}/.*/", page[0]))


def docs_of(env) -> Path:
    """The folder of the pages' sources, which its settings name from where they stand."""
    return Path(getattr(env, "project_dir", ""), env.conf.get("docs_dir", "docs"))
