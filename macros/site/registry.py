"""The macros that a page may call: one list, with the errors of a call turned into one line that names the page."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path

from .. import dependencies as remember
from ..catalogue import presets
from ..engine.errors import Problem, nearest
from ..views import catalogue as catalogues
from ..views import (
    charts,
    claims,
    diagrams,
    families,
    formulas,
    matmul,
    model_size,
    models,
    tables,
    values,
    walkthrough,
)
from ..views import costs as cost_views
from ..views.catalogue import family_slug
from ..views.figure_table import figure_table
from ..views.html import Html, anchor, code, html, table, tag, text
from ..views.layers import layer_range as which_layers
from . import large_html as blocks

FOLDER = Path(__file__).parent.parent


def macros(env) -> dict[str, Callable]:
    """Every macro by name; `env` gives the page that a link starts from."""

    def to_model(slug):
        return link_to_model(env, slug)

    def to_page(source):
        return link_to_page(env, source)

    def to_family(family):
        return link_to_page(env, f"models/{family_slug(family)}/index.md")

    def comparison(models, columns, context=None):
        """Models side by side: a row a model, a column for any figure that `value` gives."""
        return tables.comparison(models, columns, context, link=to_model)

    def catalogue(family=None):
        """The models of the site, or of one family, as a table."""
        return catalogues.catalogue(to_model, family, to_family)

    def family_changes(family):
        """The models of a family in the order of release, and what each changed."""
        return families.changes(family, to_model)

    def family_chart(family):
        """A family’s parameters by the date of release."""
        return families.chart(family, to_model)

    def pipeline_diagram(model, highlight="d_model"):
        """A whole model from token ids to scores as a diagram; what depends on the size `highlight` is marked."""
        return diagrams.pipeline(model, highlight, link=to_page)

    def block_diagram(model, kind=None, highlight=None):
        """One layer with every step in it as a diagram; `kind` chooses where a model has several."""
        return diagrams.block(model, kind, highlight, link=to_page)

    def layer_range(layers):
        """Which layers, in words: `layers 0–2`, `every sixth layer from 5 to 23`."""
        return text(which_layers(layers))

    def macro_table():
        """Every macro: how it is called, what it gives, and a page with a live call."""
        return listing(env, macros(env))

    def model_cards(slugs):
        """A few models as cards, each the way to its page."""
        return models.cards(slugs, to_model)

    def with_links(function):
        @wraps(function)
        def macro(*args, **kwargs):
            return function(*args, **{"link": to_model, **kwargs})

        return macro

    return {
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
        "cost": cost_views.cost,
        "figure_table": figure_table,
        "flops_table": cost_views.flops_table,
        "training_flops": with_links(cost_views.training_flops),
        "bytes_table": cost_views.bytes_table,
        "cache_table": with_links(cost_views.cache_table),
        "cache_layers": cost_views.cache_layers,
        "cache_formula": cost_views.cache_formula,
        "cache_chart": with_links(cost_views.cache_chart),
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
        "pipeline_diagram": pipeline_diagram,
        "block_diagram": block_diagram,
        "catalogue": catalogue,
        "family_changes": family_changes,
        "family_chart": family_chart,
        "model_intro": models.intro,
        "model_sources": models.sources,
        "model_checked": models.checked,
        "model_cards": model_cards,
        "how_many": models.how_many,
        "verification": models.verification,
        "preset_file": models.preset_file,
        "layer_range": layer_range,
        "macro_table": macro_table,
        "calc": values.calc,
        "model_link": with_links(model_size.model_link),
        "config_file": model_size.config_file,
        "parts_chart": with_links(charts.parts_chart),
        "size_chart": charts.size_chart,
        "shape_history_chart": charts.shape_history_chart,
        "growth_figure": charts.growth_figure,
        "formula_error_chart": with_links(claims.formula_error_chart),
        "formula_result": with_links(claims.formula_result),
        "formulas_table": with_links(claims.formulas_table),
        "formula_against_parts": model_size.formula_against_parts,
        "common_widths": model_size.common_widths,
        "width_result": with_links(model_size.width_result),
        "scaling_table": with_links(model_size.scaling_table),
        "claims_table": with_links(claims.claims_table),
        "token_ids_claim": claims.token_ids_claim,
    }


def register(env) -> None:
    """Register every macro with mkdocs-macros, and how their errors look."""
    for name, function in macros(env).items():
        env.macro(guarded(name, function, lambda: where(env)), name)
    show_errors(set(macros(env)))


def guarded(name: str, function: Callable, place: Callable[[], str]) -> Callable:
    """The macro with a wrong call and every `Problem` as one `Problem` that names the page and the macro."""
    signature = inspect.signature(function)

    @wraps(function)
    def macro(*args, **kwargs):
        try:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise Problem(str(error), f"write {name}{_usage(signature)}") from None
            return blocks.put(function(*_plain(args), **{k: v for k, v in zip(kwargs, _plain(kwargs.values()))}))
        except Problem as problem:
            raise problem.at(f"{place()}: {name}({_call(args, kwargs)})") from None

    return macro


def listing(env, known: dict[str, Callable]) -> Html:
    """The macros in the order of the alphabet, each with what its documentation says first and the first page that
    calls it."""
    rows = []
    for name, function in sorted(known.items()):
        page = next((src for src, text in _sources(env) if calls(text, name)), None)
        target = link_to_page(env, page) if page else None
        rows.append(
            [
                html("{} {}", code(name), tag("small", _usage(inspect.signature(function)))),
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
    try:
        files = [f for f in env.variables["files"].documentation_pages() if f.abs_src_path]
    except (AttributeError, KeyError):
        return []
    return sorted((f.src_uri, f.content_string) for f in files)


def _plain(arguments) -> list:
    """Lists as tuples, so that a call can be remembered."""
    return [tuple(a) if isinstance(a, list) else a for a in arguments]


def _usage(signature: inspect.Signature) -> str:
    return (
        "("
        + ", ".join(
            ("**" if p.kind is p.VAR_KEYWORD else "") + p.name if p.default is p.empty else f"{p.name}={p.default!r}"
            for p in signature.parameters.values()
            if p.name != "link"
        )
        + ")"
    )


def _call(args, kwargs) -> str:
    shown = ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in kwargs.items())])
    return shown if len(shown) <= 80 else shown[:79] + "…"


def where(env) -> str:
    """The page that is being built, as its author knows it."""
    try:
        return f"docs/{env.page.file.src_path}"
    except (AttributeError, KeyError):
        return "a page"


def show_errors(names: set[str]) -> None:
    """One line for an error in a page: mkdocs-macros prints it, and under live preview shows it in the page's place.

    Indented, so that Markdown takes it as code and nothing in it as markup.
    """
    from jinja2 import TemplateSyntaxError, UndefinedError
    from mkdocs_macros.errors import format_error

    def line(page, message: str, mend: str = "", at: int | None = None) -> str:
        remember.use("error")  # what is wrong on a page is looked at again in each build
        return "    " + str(Problem(message, mend, f"docs/{page.file.src_path}" + (f":{at}" if at else "")))

    def problem(error, markdown, page):
        remember.use("error")
        source = f"docs/{page.file.src_path}"
        return "    " + str(error).replace(f"{source}: ", f"{source}:{line_of(error, markdown, page)}: ", 1)

    def unexpected(error, markdown, page):
        """An error of ours: the line of the package that it happened on."""
        inside = [
            f
            for f in traceback.extract_tb(error.__traceback__)
            if Path(f.filename).is_relative_to(FOLDER)
            and not Path(f.filename).is_relative_to(FOLDER / "site" / "preview")
            and Path(f.filename) != Path(__file__)
        ]
        where = f"macros/{Path(inside[-1].filename).relative_to(FOLDER)}:{inside[-1].lineno}: " if inside else ""
        return line(
            page,
            f"{where}{type(error).__name__}: {error}",
            f"mend {inside[-1].line}" if inside else "correct the call",
            line_of(error, markdown, page),
        )

    def undefined(error, markdown, page):
        found = re.search(r"'([^']*)' is undefined", str(error))
        mend = (
            nearest(
                found[1],
                names,
                "the macro reference lists the macros; write {% raw %} around braces that are meant as text",
            )
            if found
            else ""
        )
        return line(page, str(error), mend, line_of(error, markdown, page))

    def syntax(error, markdown, page):
        lines = markdown.splitlines()
        source = lines[error.lineno - 1].strip() if 0 < error.lineno <= len(lines) else ""
        return line(
            page,
            f"{error.message}: {source[:100]}",
            "close the braces, or write {% raw %} around them",
            error.lineno + header_lines(markdown, page),
        )

    format_error.register(Exception, unexpected)
    format_error.register(Problem, problem)
    format_error.register(UndefinedError, undefined)
    format_error.register(TemplateSyntaxError, syntax)


def header_lines(markdown: str, page) -> int:
    """How many lines of the page's file stand before its text."""
    whole, text = (s.rstrip("\n").count("\n") for s in (page.file.content_string, markdown))
    return max(0, whole - text)


def line_of(error: Exception, markdown: str, page) -> int:
    """The line of the page's file that an error came from: Jinja's frame is the one that is in no file."""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename in ("<template>", "<unknown>")]
    return (lines[-1] if lines else 1) + header_lines(markdown, page)


def link_to_model(env, slug: str) -> str | None:
    """The way from the page being built to a model's page; None where that page is not part of the build."""
    try:
        files, page = env.variables["files"], env.page
    except (AttributeError, KeyError):
        return None
    try:
        target = files.get_file_from_path(f"models/{family_slug(presets.preset(slug).family)}/{slug}.md")
    except Problem:
        return None
    return target.url_relative_to(page.file) if target else None


def link_to_page(env, source: str) -> str | None:
    """The way from the page being built to another, by its source path; None where the build has no such page."""
    try:
        target = env.variables["files"].get_file_from_path(source)
        return target.url_relative_to(env.page.file) if target else None
    except (AttributeError, KeyError):
        return None
