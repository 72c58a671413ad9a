"""Single numbers of a model as sentences to cite: each with its own URL, formula, version and checks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from ...cache.memory import memoized
from ...catalogue import page_paths
from ...catalogue.models import Model
from ...counting import design
from ...counting.conditions import Conditions
from ..kit import disclosure, values
from ..kit.context_limits import contexts
from ..kit.conventions import caveat
from ..kit.html import Html, block, conventions, tag

SITE = "Every Parameter"


@memoized
@disclosure.view("its numbers")
def cite_numbers(model: Model) -> Html:
    """The most cited numbers of a model, each as text to copy."""
    said = (_one(model, key, sentence, formula) for key, sentence, formula in _said(model))
    return block(*said, conventions(caveat([model.slug])))


def _said(model: Model) -> Iterable[tuple[str, str, str]]:
    """(the end of the URL, the sentence, where the formula is)."""
    counts, name = model.counts, model.name
    context = contexts(model)[min(2, len(contexts(model)) - 1)]
    given = Conditions(context)
    yield "total", f"{name} has {counts.total:,} parameters", "the-formula"
    yield "active", f"A token uses {counts.active:,} parameters of {name}", "the-formula"
    weights = values.number(model, "weight_bytes")
    yield "weights", f"The weights of {name} take {weights:,} bytes {counts.formats.phrase('published')}", "memory"
    if grows := design.cache_growth(model.counts):
        yield "kv-cache", f"A token adds {grows:,} bytes to the KV cache of {name} in bfloat16", "kv-cache"
    flops = values.number(model, "decode_flops", given=given)
    yield "flops", f"A token at a context of {context:,} takes {flops:,} FLOPs in {name}", "flops"


def _one(model: Model, key: str, said: str, formula: str) -> Html:
    page = page_paths.model_page(model.slug).removesuffix(".md")
    checked = "equal to the published total" if key == "total" and _is_published(model) else "see “What was checked”"
    at = f"{SITE}{_version()}, {page}/#cite-{key} (formula: #{formula}; {checked})"
    return tag("div", tag("pre", tag("code", f"{said}. {at}.")), id=f"cite-{key}", cls="highlight")


def _is_published(model: Model) -> bool:
    published = model.published
    return published is not None and published.exact and published.parameters == model.counts.total


@cache
def _version() -> str:
    try:
        return f" {version('every-parameter')}"
    except PackageNotFoundError:
        return ""
