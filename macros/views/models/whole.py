"""Checks that a model's page builds and is complete: what the site's tests would find, for one model."""

from __future__ import annotations

import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

from ...catalogue import presets
from ...catalogue.models import Model
from ...counting import costs, identities
from ...engine.errors import Problem
from ..costs import flops, kv_cache, memory, overview, time_bounds, training
from ..diagrams import model_diagrams
from ..tables import formulas, parameters, size_counts
from ..trace import operations, walkthrough
from ..words import descriptions
from . import cache_peers, memory_figure, model_changes, model_page

FEWEST = 3  # other models of a family with the same value, from which on a different value is conspicuous
USUAL = "rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_eps", "hidden_act"
PACKAGE = Path(__file__).parents[2]

# The parts of a model's page, as macros/site/model_pages.py puts them together.
PARTS: dict[str, Callable[[str], object]] = {
    "model_intro": model_page.model_intro,
    "model_sources": model_page.model_sources,
    "model_checked": model_page.model_checked,
    "memory_figure": memory_figure.memory_figure,
    "cache_peers": cache_peers.cache_peers,
    "costs": overview.costs,
    "kv_cache": kv_cache.kv_cache,
    "flops": flops.flops,
    "flops_table": flops.flops_table,
    "memory_table": memory.memory_table,
    "training_memory": training.training_memory,
    "time_table": lambda slug: time_bounds.time_table(slug, ("h100",)),
    "model_changes": model_changes.model_changes,
    "formula": formulas.formula,
    "layer_table": parameters.layer_table,
    "parameter_table": parameters.parameter_table,
    "walkthrough": lambda slug: walkthrough.walkthrough(slug, tokens=5),
    "which_number": size_counts.which_number,
    "pipeline_diagram": model_diagrams.pipeline,
}


def lacking(slug: str) -> Iterator[str]:
    """A line for each thing that is missing or wrong, with its file and the fix; empty for an undisclosed model."""
    if presets.preset(slug).config is None:
        return
    model = presets.model(slug)
    yield from descriptions.lacking(model.trace) or without_terms(model)
    yield from identities.differences(costs.of(model.counts), dict(model.raw))
    if not is_drawn():
        return
    drawings = {
        f"block_diagram, {kind}": lambda slug, kind=kind: model_diagrams.block(slug, kind)
        for kind in model_diagrams.layer_kinds(model)
    }
    made: dict[str, str] = {}
    for name, part in {**PARTS, **drawings}.items():
        try:
            made[name] = str(part(slug))
        except Problem as problem:
            yield f"its page: {name}: {problem}"
        except Exception as error:
            yield f"its page: {name}: {where(error)}{type(error).__name__}: {error}; correct the line, or the config"

    if len(made) == len(PARTS) + len(drawings):
        yield from links_to_nothing(made)


def without_terms(model: Model) -> Iterator[str]:
    """A line for each step for which the field has no term, and for each term that the glossary does not explain."""
    said: dict[tuple[str, str], None] = {}  # (title, terms)
    listed: list[operations.Operation | operations.Section] = [operations.sections(model)]
    for one in listed:
        if isinstance(one, operations.Section):
            listed += one.content
        if one is not listed[0]:
            said[one.words.title, one.words.term] = None
    glossary = PACKAGE.parent / "docs/includes/glossary.md"
    explained = glossary.read_text("utf-8").lower() if glossary.is_file() else None
    for title, term in said:
        if not term:
            mend = "give its weight words with one of docs/includes/glossary.md, or its role in macros/engine/steps.py"
            yield f"macros/views/words/weights.toml: {title} has no term: {mend}"
        for name in term.split(", ") if term and explained is not None else ():
            if name.lower() not in (explained or ""):
                yield f"docs/includes/glossary.md: {name} is not explained: add an entry"


def links_to_nothing(parts: Mapping[str, str]) -> Iterator[str]:
    """A line for each part of a page that links to a missing anchor or URL."""
    there = {unescape(name) for text in parts.values() for name in _ID.findall(text)}
    for part, text in parts.items():
        wrong = [to for to in dict.fromkeys(map(unescape, _HREF.findall(text))) if not _leads_on(to, there)]
        if wrong:
            more = f" and {len(wrong) - 1} more" if wrong[1:] else ""
            mend = "correct the address in the preset" if ":" in wrong[0] else "give what it names this id"
            yield f"its page: {part}: the link {wrong[0]}{more} leads nowhere; {mend}"


_ID = re.compile(r'\bid="([^"]+)"')
_HREF = re.compile(r'\bhref="([^"]*)"')


def _leads_on(to: str, anchors: set[str]) -> bool:
    if to.startswith("#"):
        return unquote(to[1:]) in anchors or to[1:] in anchors
    if ":" in to.partition("/")[0]:
        return to.startswith("mailto:") or bool(re.match(r"https?://[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:[/?#]\S*)?$", to))
    return True  # on another page, which the site's own build checks


def is_drawn() -> bool:
    """Whether the parts of pages can be built: their formulas need V8, from the extra `site`."""
    return find_spec("py_mini_racer") is not None


def where(error: BaseException) -> str:
    """The line of the package where an error happened."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(PACKAGE)]
    return f"macros/{Path(frames[-1].filename).relative_to(PACKAGE)}:{frames[-1].lineno}: " if frames else ""


def unusual(slug: str) -> Iterator[str]:
    """A line for each value that no other model of the family and the type has, if those agree, and that the preset
    does not confirm with a source of its own."""
    preset = presets.preset(slug)
    if preset.config is None:
        return
    model = presets.model(slug)
    for key in USUAL:
        value = model.raw.get(key)
        if value is None or key in preset.sources.values:
            continue
        others = Counter(map(repr, _values(model, key)))
        if len(others) == 1 and others.total() >= FEWEST and repr(value) not in others:
            yield (
                f"{key} = {value!r}: the other {others.total()} models of the family have {next(iter(others))}; "
                "correct it, or confirm it by its source in [sources.values]"
            )


def _values(model: Model, key: str) -> Iterator[object]:
    """The values of a key in the other presets of the same family and type."""
    for slug in presets.readable():
        other = presets.preset(slug)
        if slug != model.slug and model.preset and other.family == model.preset.family and other.config:
            if other.config.get("model_type") == model.model_type and key in other.config:
                yield other.config[key]
