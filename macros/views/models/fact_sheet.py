"""The fact sheet at the top of a model's page: a map of its parameters and its key figures, on one screen.

Every figure is on the list of figures, a size of the trace, or a trait by which families are compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...catalogue.preset_file import Preset
from ...counting import design
from ...counting.accelerators import accelerator
from ...counting.conditions import Conditions
from ...counting.formats import PUBLISHED
from ..charts import area_map
from ..costs.predictions import prediction_result
from ..costs.towers import tower_result
from ..kit import disclosure, rounding, values
from ..kit.context_limits import contexts
from ..kit.conventions import and_list, caveat, marked
from ..kit.html import Html, anchor, block, conventions, html, joined, made, small, tag, text
from ..kit.shapes import var
from ..trace.layers import layers_by_kind
from ..trace.operations import sections
from ..trace.parts import groups
from . import traits
from .model_page import cache_growth_text, licence

HUB = "https://huggingface.co"
GITHUB = "https://github.com"
PAPERS = "https://arxiv.org/abs"

NONE = "none"
TIMED = ("h100", "mi300x", "rtx-4090", "tpu-v5e")  # the accelerators of a model's page


@disclosure.view("its sizes")
def model_fact_sheet(model: Model, ways: Iterable[tuple[str, str | None]] = ()) -> Html:
    """A model on one screen: a map of its parameters, its sizes, its sources; `ways` are links to its sections."""
    return block(
        tag("div", area_map.area_map_of_model_page(model), _facts(model), cls="ep-sheet"),
        _links(model, tuple(ways)),
        conventions(caveat([model.slug])),
    )


@memoized
def _facts(model: Model) -> Html:
    facts = [f"<div><dt>{name}</dt><dd>{text(content)}</dd></div>" for name, content in _said(model)]
    return tag("dl", made("".join(facts)), cls="ep-sizes")


def _said(model: Model) -> Iterable[tuple[Html, object]]:
    """(the label of a size, the size)."""
    counts, sizes = model.counts, model.counts.values()

    def size(title: str, name: str) -> tuple[Html, object]:
        said = marked(rounding.grouped(sizes[name]), name in model.default_sizes) if name in sizes else NONE
        return html("{} {}", title, var(name)), said

    def figure(n: int, name: str) -> Html:
        return marked(tag("strong", rounding.grouped(n)), model.rests_on_default(name))

    yield html("Parameters"), figure(counts.total, "total")
    yield html("Active per token"), figure(counts.active, "active")
    of_kinds = f"of {len(layers_by_kind(model))} kinds" if len(layers_by_kind(model)) > 1 else ""
    yield html("Layers"), _with(_size(model, rounding.grouped(design.n_layers(model.counts)), "n_layers"), of_kinds)
    yield size("Width", "d_model")
    yield html("Heads / KV heads"), _heads(model)
    yield _feed_forward(model)
    yield html("Experts per token"), _size(model, traits.experts(model) or NONE, "n_experts", "n_experts_per_token")
    yield size("Vocabulary", "vocab_size")
    yield html("Context"), _context(model)
    yield html("Positions"), traits.positions(model)
    yield html("Norm"), traits.norms(model) or NONE
    yield html("Activation"), traits.activation(model) or NONE
    yield html("KV cache, bytes per token"), _cache(model)
    memory, formats = rounding.decimal_bytes(values.number(model, "weight_bytes")), counts.formats
    several = html("{}: {}", memory, small(formats.said(PUBLISHED))) if formats.names else text(memory)
    title = "Memory as published" if formats.names else f"Memory in {formats.said(PUBLISHED)}"
    yield html("{}", title), marked(several, model.rests_on_default("weight_bytes"))
    if preset := model.preset:
        yield html("License"), licence(preset)
        yield html("Released"), values.date(preset.released)


def _size(model: Model, said: object, *names: str) -> Html:
    """A size, with a mark if it is a class's default."""
    return marked(said, not model.default_sizes.isdisjoint(names))


def _with(said: object, more: object) -> Html:
    return html("{} {}", said, small(more)) if more else text(said)


def _heads(model: Model) -> Html:
    sizes, shared = model.counts.values(), traits.n_kv_heads(model)
    if "n_heads" not in sizes:
        return text(NONE)
    said = html("{:,} / {}", sizes["n_heads"], "latents" if shared is None else rounding.grouped(shared))
    return _size(model, said, "n_heads", "n_kv_heads")


def _feed_forward(model: Model) -> tuple[Html, Html]:
    """The inner width of the feed-forward network, of one expert, or both if there are both."""
    sizes = model.counts.values()
    known = [name for name in ("d_ff_expert", "d_ff", "d_ff_dense") if name in sizes]
    if "d_ff_unit" in sizes:  # differs between layers
        return html("Feed-forward widths"), html("multiples of {:,}", sizes["d_ff_unit"])
    if not known:
        return html("Feed-forward width"), text(NONE)
    first, *others = known
    more = joined((_size(model, html("{} {:,}", var(name), sizes[name]), name) for name in others), ", ")
    title = "Width of an expert" if first == "d_ff_expert" else "Feed-forward width"
    return html("{} {}", title, var(first)), _with(
        _size(model, rounding.grouped(sizes[first]), first), html("and {}", more) if more else ""
    )


def _context(model: Model) -> Html:
    end, _ = model.longest_context
    return text("not in the config") if end is None else marked(f"{end:,} tokens", model.has_default_context)


def _cache(model: Model) -> Html:
    early, later = design.cache_growth(model.counts), values.number(model, "cache_bytes_per_token")
    shown = marked(rounding.grouped(early), model.rests_on_default("cache_bytes_per_token"))
    return _with(shown, f"until windows are full, then {rounding.grouped(later)}" if later != early else "")


# Further reading


def _links(model: Model, ways: tuple[tuple[str, str | None], ...]) -> Html:
    links = [tag("li", anchor(said, address)) for said, address in (*_elsewhere(model.preset), *ways) if address]
    return tag("ul", *links, cls="ep-ways") if links else Html()


def _elsewhere(preset: Preset | None) -> Iterable[tuple[str, str]]:
    """The model's page on the hub, its config, the source of its license, and the papers that its sources name."""
    if preset is None:
        return
    if preset.hub:
        yield f"{preset.hub} on the hub", f"{HUB}/{preset.hub}"
        if preset.sources.config.startswith(f"{preset.hub}, config.json"):
            yield "config.json", f"{HUB}/{preset.hub}/blob/main/config.json"
    if stands_at := licence_address(preset):
        yield "text of the license", stands_at
    for paper in arxiv_papers(preset):
        yield f"arXiv {paper}, a source", f"{PAPERS}/{paper}"


def licence_address(preset: Preset) -> str | None:
    """The URL of the source that states the license of a model's weights, if it is a file on GitHub or a page of the
    hub."""
    source = preset.licence_source or ""
    if on_github := re.match(r"([\w.-]+/[\w.-]+) on GitHub, ([\w./-]*\w)", source):
        return f"{GITHUB}/{on_github[1]}/blob/HEAD/{on_github[2]}"
    on_hub = re.match(r"([\w.-]+/[\w.-]+) on the Hugging Face Hub", source)
    return f"{HUB}/{on_hub[1]}" if on_hub else None


def arxiv_papers(preset: Preset) -> list[str]:
    """The papers on arXiv that a preset's sources name, by number."""
    published = preset.published
    figures = (published, *published.other) if published else ()
    sources = [preset.sources.config, preset.released_source, *(figure.source for figure in figures)]
    return list(dict.fromkeys(re.findall(r"arXiv[: ](\d{4}\.\d{4,5})", " ".join(filter(None, sources)))))


# The results of the long parts of a page


def section_summary(slug: str, name: str) -> Html:
    """The result of a long section of a model's page, in a line that is visible while the section is collapsed."""
    return RESULTS[name.partition(" {")[0]](presets.model(slug))


def _context_of_results(model: Model) -> int:
    """4,096 tokens, or up to the end of the position table."""
    return contexts(model)[min(2, len(contexts(model)) - 1)]


def _figure(model: Model, name: str) -> int:
    return int(values.number(model, name, given=Conditions(_context_of_results(model))))


def _every_parameter(model: Model) -> Html:
    n = _figure(model, "tensors")
    return html("{:,} tensors, {:,} parameters", n, model.counts.total)


def _five_tokens(model: Model) -> Html:
    n = len(sections(model).operations())
    return html("{:,} steps, each kind of layer once", n)


def _formula(model: Model) -> Html:
    return html("{:,} parameters in {:,} parts, in symbols and in numbers", model.counts.total, len(groups(model)))


def _kv_cache(model: Model) -> Html:
    size = rounding.decimal_bytes(_figure(model, "cache_bytes"))
    return html("{}; {} at {:,} tokens", cache_growth_text(model, "bytes per token"), size, _context_of_results(model))


def _flops(model: Model) -> Html:
    one, whole = (rounding.flops(_figure(model, name)) for name in ("decode_flops", "prefill_flops"))
    return html("{} per token at a context of {:,}, {} for its prefill", one, _context_of_results(model), whole)


def _where_the_flops_go(model: Model) -> Html:
    share = rounding.percent(_figure(model, "score_flops"), _figure(model, "prefill_flops"))
    return html("{} for pairs of tokens in a prefill of {:,}", share, _context_of_results(model))


def _memory(model: Model) -> Html:
    weights, training = (rounding.decimal_bytes(_figure(model, name)) for name in ("weight_bytes", "training_bytes"))
    return html("{} of weights; {} to train on a sequence of {:,}", weights, training, _context_of_results(model))


def _which_number(model: Model) -> Html:
    counts = model.counts
    said = [
        html("{:,} in all", counts.total),
        html("{:,} active", counts.active) if design.is_sparse(model.counts) else "",
        html("{:,} without the tables", counts.non_embedding) if counts.embedding else "",
    ]
    return joined(filter(None, said), ", ")


def _sources(model: Model) -> Html:
    sources = presets.preset(model.slug).sources
    config = joined(sources.config.split("/"), html("/<wbr>"))  # allows a line break after each part of the path
    return html("{}; last verified {}", config, values.date(sources.verified))


def _by_context(model: Model) -> Html:
    weights, cache = (rounding.decimal_bytes(_figure(model, name)) for name in ("weight_bytes", "cache_bytes"))
    return html("{} of weights, {} of KV cache at {:,} tokens", weights, cache, _context_of_results(model))


def _least_time(model: Model) -> Html:
    names = (accelerator(slug).name for slug in TIMED)
    return html("Prefill and decode on {}, with the number of devices", and_list(list(names)))


def _cited(model: Model) -> Html:
    return html("{:,} parameters and others, each as a sentence with its address", model.counts.total)


def layers_summary(model: Model) -> Html:
    """The number of layers and of their kinds."""
    kinds = len(layers_by_kind(model))
    if kinds == 1:
        return html("{:,} layers of one kind, drawn once", design.n_layers(model.counts))
    return html("{:,} layers of {:,} kinds, each kind drawn once", design.n_layers(model.counts), kinds)


RESULTS: dict[str, Callable[[Model], Html]] = {
    "By context": _by_context,
    "Minimum time": _least_time,
    "Every parameter": _every_parameter,
    "The formula": _formula,
    "What happens to five tokens": _five_tokens,
    "KV cache": _kv_cache,
    "FLOPs": _flops,
    "Where the FLOPs go": _where_the_flops_go,
    "Memory": _memory,
    "Which number is meant": _which_number,
    "Sources": _sources,
    "Cite a number": _cited,
    "Towers beside the text part": tower_result,
    "Multi-token prediction": prediction_result,
}
