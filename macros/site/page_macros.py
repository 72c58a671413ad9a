"""The macros that a page may call: one list, with the errors of a call turned into one line that names the page."""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial, wraps
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..cache import disk
from ..cache.memory import depends_on
from ..catalogue import page_paths
from ..engine.errors import Problem
from ..views.charts import area_map as area_maps
from ..views.charts import catalogue_charts, device_chart, parts_chart, size_histograms
from ..views.costs import (
    bills,
    bytes_moved,
    chunked_reads,
    draft_heads,
    engines,
    fine_tuning,
    flops,
    kv_cache,
    kv_cache_chart,
    measured,
    memory,
    memory_chart,
    overview,
    perplexities,
    predictions,
    published_costs,
    several_devices,
    speculative,
    stacked,
    throughput_chart,
    time_bounds,
    towers,
    training,
    weight_files,
)
from ..views.diagrams import model_diagrams
from ..views.guide import (
    ablations,
    arithmetic,
    ask_first,
    attention,
    attention_masks,
    capitals,
    designs,
    expert_tiles,
    growing_map,
    growth,
    matmul,
    model_size,
    moving_bars,
    real_numbers,
    recorded,
    stations,
    token_pieces,
    tools,
    writing,
)
from ..views.kit import excerpts, values
from ..views.kit.html import Html, Link, anchor, code, html, table, tag, text
from ..views.models import (
    atlas,
    cache_kinds,
    cache_peers,
    catalogue,
    cited_numbers,
    fact_sheet,
    families,
    gallery,
    memory_figure,
    model_changes,
    model_page,
    standing_out,
)
from ..views.reference import benchmarks, claims, coverage, figure_table, independent, notation_tables, rooms, style
from ..views.tables import comparison, formulas, headlines, parameters, size_counts
from ..views.trace import trace_steps, walkthrough
from ..views.trace.layers import layer_range as which_layers
from . import data_files, page_arguments, page_errors, python_examples, terminal
from .extensions.glossary import term_anchor, term_anchors
from .extensions.large_blocks import is_block, marked
from .links import current_source, files_below, link_to_model, link_to_page, reads_sources, with_source_links
from .page_arguments import hashable, usage

log = logging.getLogger("mkdocs.macros.site")

GLOSSARY, TERMS_FILE = "reference/glossary.md", "includes/glossary.md"
OF_MORE = {"macro_table"}  # macros that read other pages
OF_ANY_FILE: dict[str, Callable[[dict[str, Any]], bool]] = {  # macros that may read any file, and whether a call does
    "terminal": lambda given: not terminal.is_of_presets(given["call"]),
    "python_example": lambda given: not python_examples.is_of_presets(f"{given.get('given', '')}\n{given['lines']}"),
}
PACKAGE = __name__.split(".")[0] + "."
OUR_STYLES = re.compile(r"assets(-\w+)?/(components|styles)\.css")
# How the field's terms start, as `terms_beside` and walkthroughs write them.
BEFORE_TERMS = ('<span class="ep-term">· ', '<strong class="ep-name">')
TERMS = re.compile(rf"({'|'.join(BEFORE_TERMS)})([^<]+)")


# Views that are macros unchanged, by module.
VIEWS = {
    ablations: "ablated ablation_chart ablation_table",
    ask_first: "ask_first",
    arithmetic: "dot_product matrix_cell matrix_product product_steps",
    atlas: "choice_chart timeline",
    benchmarks: "benchmark benchmarks_table",
    bytes_moved: "bytes_table",
    cache_kinds: "cache_kinds_chart",
    cache_peers: "cache_peers",
    attention: "attention_heads",
    attention_masks: "attention_count attention_kinds attention_masks",
    capitals: "attention_of capitals_figure choose_country head_habits head_that_looks_at learned_grid sentence_table",
    catalogue: "catalogue",
    catalogue_charts: "shape_history_chart size_chart",
    chunked_reads: "read_chart",
    cited_numbers: "cite_numbers",
    claims: "claims_table formula_error_chart formula_result formulas_table token_ids_claim",
    comparison: "comparison",
    coverage: (
        "coverage_mappings coverage_mechanisms coverage_predictions coverage_recipes coverage_summary coverage_types "
        "coverage_values coverage_vllm coverage_watch"
    ),
    data_files: "data_fields",
    designs: "design_result design_table",
    draft_heads: "draft_head_table",
    engines: "engine_buffers_table engine_logs_table engine_options engine_table",
    excerpts: "excerpt html_source",
    expert_tiles: "expert_tiles",
    families: "family_changes family_chart",
    figure_table: "figure_table",
    fine_tuning: "adapter_table fine_tuning_fits fine_tuning_memory training_run training_runs training_split",
    flops: "flops flops_table",
    formulas: "formula parameter_formula",
    gallery: "architecture_gallery gallery_summary",
    growing_map: "grows_with",
    growth: "growth_figure",
    headlines: "headlines_table",
    independent: "independent_summary independent_table",
    kv_cache: "cache_formula cache_layers cache_table kv_cache",
    kv_cache_chart: "cache_chart",
    matmul: "matmul matmul_figure one_head",
    bills: "served_runs_table token_bill",
    measured: "measured_table",
    memory: "fits_table format_table inference_table memory_table published_table split_table",
    memory_chart: "memory_chart",
    memory_figure: "memory_figure",
    model_changes: "model_changes",
    model_page: (
        "how_many model_cards model_checked model_intro model_sources preset_file published_origins verification"
    ),
    model_size: (
        "common_widths config_file formula_against_parts model_link python_config scaling_table width_result "
        "widths_at_a_glance"
    ),
    moving_bars: "moving_bars",
    notation_tables: "notation_table terms_table",
    overview: "cost costs",
    parameters: "layer_table parameter_table",
    device_chart: "device_chart",
    parts_chart: "parts_chart",
    perplexities: "perplexity perplexity_table",
    published_costs: "published_costs",
    python_examples: "python_example python_names",
    real_numbers: (
        "attention_table layer_drawing logit_lens number_matrix number_walk real_number token_rows top_words "
        "worked_score"
    ),
    recorded: (
        "embedding_map recorded_engine recorded_engines recorded_layers recorded_map_figure recorded_near "
        "recorded_next recorded_share"
    ),
    rooms: "room rooms_picture rooms_table",
    several_devices: "message_table offload_table prefix_table traffic_table",
    size_counts: "which_number",
    size_histograms: "size_count size_histograms",
    speculative: "speculative_table",
    stacked: "flops_chart training_chart",
    throughput_chart: "throughput_chart",
    stations: "station",
    standing_out: "model_answers",
    style: "style_table",
    terminal: "terminal",
    time_bounds: "accelerator accelerator_table time_table",
    token_pieces: "token_pieces",
    tools: "any_config compare plan_deployment read_log run_checkpoint what_fits what_if",
    predictions: "prediction_table",
    towers: "tower_list tower_table tower_types",
    trace_steps: "part_formula trace_steps",
    training: "training_flops training_memory",
    values: "calc params value",
    walkthrough: "recap shape_after walkthrough",
    writing: "writing_loop",
    weight_files: "bits_per_weight_table fitting_file_table quantizer_table weights_table",
}
MACROS: dict[str, Callable] = {name: getattr(view, name) for view, names in VIEWS.items() for name in names.split()}


def macro(function: Callable) -> Callable:
    """Make a function callable from pages, by its name."""
    MACROS[function.__name__] = function
    return function


@macro
def pipeline_diagram(model: str, highlight: str = "d_model", page_link: Link | None = None) -> Html:
    """A whole model from token ids to scores as a diagram, marking the operations that depend on `highlight`."""
    return model_diagrams.pipeline(model, highlight, page_link)


@macro
def block_diagram(
    model: str, kind: str | None = None, highlight: str | None = None, page_link: Link | None = None
) -> Html:
    """One layer with every step in it as a diagram; `kind` chooses one if a model has several kinds."""
    return model_diagrams.block(model, kind, highlight, page_link)


@macro
def area_map(model: str, tall: bool = False, page_link: Link | None = None) -> Html:
    """A model’s parameters to scale, `tall` for the top of a page; each field links to the page that explains it."""
    return area_maps.area_map(model, page_link, tall)


@macro
def layer_range(layers: Iterable[int]) -> Html:
    """A range of layers, in words: `layers 0–2`, `every sixth layer from 5 to 23`."""
    return text(which_layers(layers))


@macro
def model_sheet(slug: str, page_link: Link) -> Html:
    """A model on one screen: a map of its parameters, its sizes, its sources, links to its sections."""
    tools_of_model = {
        "Change it": ("tools/what-if.md", f"?model={quote(slug)}"),
        "Where it fits": ("tools/fits.md", f"?model={quote(slug)}"),
        "Compare it": (catalogue.COMPARE, f"?models={quote(slug)}"),
        "All of this as data (JSON)": (data_files.json_address(slug), ""),
        "Its tensors as a table (CSV)": (data_files.csv_address(slug), ""),
    }
    ways = ((title, page_link(page), query) for title, (page, query) in tools_of_model.items())
    return fact_sheet.model_fact_sheet(slug, [(title, address + query) for title, address, query in ways if address])


@macro
def macro_table(env: Any, prefix: str) -> Html:
    """Every macro: its signature, its result, and a page with a live call."""
    return every_macro(env, macros(env, prefix))


def macros(env, prefix: str = "") -> dict[str, Callable]:
    """Every macro by name, with a site's prefix. Pages do not pass the links and the site: these are filled in."""
    of_site = {
        "link": partial(link_to_model, env),
        "page_link": partial(link_to_page, env),
        "env": env,
        "prefix": prefix,
    }
    return {prefix + name: with_arguments(function, of_site) for name, function in MACROS.items()}


def with_arguments(function: Callable, known: dict[str, object]) -> Callable:
    """The function with those arguments that it accepts, which are removed from its signature."""
    signature = inspect.signature(function)
    given = {name: known[name] for name in signature.parameters if name in known}
    left = [parameter for name, parameter in signature.parameters.items() if name not in given]
    bound = wraps(function)(partial(function, **given))
    setattr(bound, "__signature__", signature.replace(parameters=left))  # noqa: B010
    return bound


def is_elsewhere(env) -> bool:
    """Whether MkDocs builds another site; ours names our styles itself, under a hashed path once published."""
    styles = map(str, env.conf.get("extra_css", ()))
    return not reads_sources(env) and not any(map(OUR_STYLES.fullmatch, styles))


def prepare(env) -> None:
    """Before a page: refuse to print values that are not text; on another site, only our macros."""
    theirs = env.env.finalize
    if getattr(theirs, "__module__", "") == __name__:
        return  # since the previous page

    elsewhere = is_elsewhere(env)

    def printed(value: object) -> object:
        if not elsewhere or str(getattr(value, "__module__", "")).startswith(PACKAGE):
            return page_errors.printable(value, page_errors.page_name(env))
        return theirs(value) if theirs else value

    env.env.finalize = printed


def note(env) -> None:
    """After a page of another site: record which additional files it needs."""
    if is_elsewhere(env):
        from .mkdocs.other_sites import note_tools

        note_tools(env.markdown)


def finish(env) -> None:
    """After a build of another site: the files that its pages load."""
    if is_elsewhere(env):
        from .mkdocs.other_sites import write_files

        write_files(env.conf, env.variables["files"])


def register(env) -> None:
    """Register every macro, and the display of errors, with mkdocs-macros or another reader of the same settings."""

    def place(name: str = "", args: tuple = (), kwargs: Mapping[str, Any] | None = None) -> str:
        return page_errors.place_of_call(env, name, (*args, *(kwargs or {}).values()))

    def around(name: str, args: tuple, kwargs: Mapping[str, Any]) -> str:
        return page_errors.around_call(env, name, (*args, *kwargs.values()))

    if reads_sources(env):
        env.variables["files"] = files_below(str(docs_folder(env)))
    if is_elsewhere(env):
        from .mkdocs.other_sites import start  # other builders do not have MkDocs

        known = macros(env, start(env.conf).prefix)  # our terms are not in another site's glossary
    else:
        known = {
            name: cached_on_disk(name, with_glossary_links(function, env), place)
            for name, function in macros(env).items()
        }
        if reads_sources(env):
            known = {name: with_links_of_sources(function, env) for name, function in known.items()}
    for name, function in known.items():
        env.macro(with_call_errors(name, function, place, around), name)
    page_errors.register(set(known), env.variables, only_ours=is_elsewhere(env))


def with_glossary_links(function: Callable, env) -> Callable:
    """The macro, with each of the field's terms in the glossary as a link to its entry there."""

    terms = cache(lambda: term_anchors(docs_folder(env) / TERMS_FILE))

    @wraps(function)
    def macro(*args, **kwargs):
        result = function(*args, **kwargs)
        if not isinstance(result, Html):
            return result
        if any(before in result for before in BEFORE_TERMS) and (page := link_to_page(env, GLOSSARY)):
            result = Html(TERMS.sub(lambda m: m[1] + linked_terms(m[2], page, terms()), result))
        return result

    return macro


def with_links_of_sources(function: Callable, env) -> Callable:
    """The macro, with each link as a path between sources, for a builder that reads them. Not cached on disk, where
    builders share results."""
    has_folders = env.conf.get("use_directory_urls", True)

    @wraps(function)
    def macro(*args, **kwargs):
        result = function(*args, **kwargs)
        if not isinstance(result, Html):
            return result
        return Html(with_source_links(result, current_source(env), env.variables["files"], has_folders))

    return macro


@lru_cache(maxsize=4096)
def linked_terms(terms: str, page: str, known: frozenset[str]) -> str:
    """Terms of the field, with those in the glossary as links to it."""
    return ", ".join(
        f'<a href="{page}#{anchor}">{term}</a>' if (anchor := term_anchor(unescape(term))) in known else term
        for term in terms.split(", ")
    )


def cached_on_disk(name: str, function: Callable, place: Callable[[], str]) -> Callable:
    """The macro, with results that outlive the build if they depend on presets, the code and the page's place."""
    takes = inspect.signature(function)
    reads_files = (lambda given: "folder" in given) if "folder" in takes.parameters else OF_ANY_FILE.get(name)

    @wraps(function)
    def macro(*args, **kwargs):
        def computed():
            result = function(*args, **kwargs)
            return isinstance(result, Html), result

        if name in OF_MORE or (reads_files and reads_files(takes.bind(*args, **kwargs).arguments)):
            return function(*args, **kwargs)
        is_html, content = disk.get_or_compute(name, (place(), args, kwargs), computed, is_part=True)
        return Html(content) if is_html else content

    return macro


def with_call_errors(
    name: str, function: Callable, place: Callable[..., str], around: Callable[..., str] = lambda *call: ""
) -> Callable:
    """The macro, with a wrong call and every `Problem` as one `Problem` that names the page and the macro; a step's old
    name gives a warning."""
    signature = inspect.signature(function)

    @wraps(function)
    def macro(*args, **kwargs):
        try:
            args, kwargs = tuple(map(hashable, args)), {key: hashable(value) for key, value in kwargs.items()}
            given, notes = page_arguments.with_todays_roles(page_arguments.check(name, signature, args, kwargs))
            for note in notes:
                log.warning(f"{place(name, args, kwargs)}: {name}: {note}", extra={"is_of_page": True})
            result = function(*given.args, **given.kwargs)
            if not isinstance(result, Html) and (beyond := page_arguments.beyond_context(given)):
                depends_on("error")
                wrong = Problem(beyond, "write a context that it supports", place(name, args, kwargs))
                log.warning("%s", wrong, extra={"is_of_page": True})
            if isinstance(result, Html) and is_block(result) and (inside := around(name, args, kwargs)):
                raise Problem(f"a block stands inside {inside}", "write the call in a line of its own")
            return marked(result) if isinstance(result, Html) else Figure.of(result, place())
        except Problem as problem:
            raise problem.at(f"{place()}: {name}({page_arguments.arguments_text(args, kwargs)})") from None

    macro.__name__ = name
    return macro


class Figure(str):
    """A figure as a macro writes it: text. Raises `Problem` where a page calculates with it: `8 * 2` would be `88`."""

    __slots__ = ("page",)
    page: str

    @classmethod
    def of(cls, result: object, page: str) -> object:
        if type(result) is not str:
            return result
        figure = cls(result)
        figure.page = page
        return figure

    def _refuse(self, other: object) -> Figure:
        what = f"{self} is text, and no number to count with"
        raise Problem(what, 'write {{ calc("2 * m.total", m="…") }}, or another formula in it', self.page)

    def __add__(self, other: object):
        return self._refuse(other) if isinstance(other, Figure | int | float) else str.__add__(self, str(other))

    __mul__ = __rmul__ = __sub__ = __truediv__ = __floordiv__ = __pow__ = __radd__ = _refuse  # pyright: ignore[reportAssignmentType]


def every_macro(env, known: dict[str, Callable]) -> Html:
    """The macros in alphabetical order, each with the first paragraph of its docs and the first page that calls it."""
    rows, live = [], {name: source for source, markdown in reversed(_sources(env)) for name in called(markdown)}
    for name, function in sorted(known.items()):
        page = live.get(name, "")
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
    """Documentation, with the parts between backticks as code."""
    return Html(re.sub("`([^`]*)`", lambda m: code(m[1]), doc))


def called(page: str) -> list[str]:
    """The macros that a page's Markdown calls, other than to show how."""
    return re.findall(r"{{-? *(\w+)\(", re.sub(r"{% raw %}.*?{% endraw %}", "", page, flags=re.S))


def _sources(env) -> list[tuple[str, str]]:
    """(path, Markdown) of each hand-written page."""
    files = env.variables.get("files", ())
    if hasattr(files, "documentation_pages"):
        pages = [(f.src_uri, f.content_string) for f in files.documentation_pages() if f.abs_src_path]
    else:
        pages = [
            (source, (docs_folder(env) / source).read_text("utf-8-sig")) for source in files if source.endswith(".md")
        ]
    return sorted(page for page in pages if not re.match(f"includes/|{page_paths.MODELS}/.*/", page[0]))


def docs_folder(env) -> Path:
    """The folder of the pages' sources, relative to the settings that name it."""
    return Path(getattr(env, "project_dir", ""), env.conf.get("docs_dir", "docs"))
