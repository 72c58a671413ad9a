"""The files of the tools' pages: the compiled engine, the models and accelerators as data, the data that decides
whether each model fits, the small model."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from html import unescape
from typing import Any

from ..browser.bundle import files
from ..cache import memory, second_process
from ..cache.disk import cached_on_disk
from ..cache.memory import memoized
from ..catalogue import (
    capitals,
    gguf_checkpoint,
    gguf_types_of,
    merges,
    page_paths,
    presets,
    served_runs,
    training_runs,
)
from ..catalogue.transformers_types import vllm_classes
from ..counting.accelerators import accelerators
from ..counting.figures import FIGURES
from ..counting.fitting import DIVIDED_ON_SITE, LISTED
from ..data import capacity
from ..views.charts.parts_chart import PARTS
from ..views.costs import bills
from ..views.kit.conventions import defaults_note
from ..views.models.model_page import experts_and_attention, licence
from ..views.words import descriptions
from . import model_pages
from .model_pages import Generated

FOLDER = "assets/engine"


def tool_files(address: Callable[[str], str] | None = None) -> list[Generated]:
    """Every file of the tools that is not in `docs/`; `address` gives the URL of a model's page, relative to the site's
    root."""
    scripts = (Generated(f"{FOLDER}/{name}", partial(_script, name)) for name in _compiled())
    models = (
        Generated(f"{FOLDER}/models/{slug}.json", partial(_model, slug, address or _address)) for slug in _listed()
    )
    others = (Generated(f"{FOLDER}/weights/{name}.json", partial(_weights, name)) for name in LISTED)
    divided = (Generated(f"{FOLDER}/divided/{n}.json", partial(_divided, n)) for n in DIVIDED_ON_SITE)
    small = (Generated(f"{SMALL}/{name}", (capitals.FOLDER / name).read_bytes) for name in OF_SMALL)
    lists = (
        Generated(DATA, tool_data),
        Generated(f"{FOLDER}/capacity.json", _capacities),
        Generated(f"{FOLDER}/keys.json", _keys),
        Generated(f"{FOLDER}/plan.json", _plan),
        Generated(f"{FOLDER}/served.json", _served),
        Generated(f"{FOLDER}/names.json", _names),
        Generated(f"{FOLDER}/gguf_types.json", _gguf_types),
        Generated(f"{FOLDER}/vllm_classes.json", _vllm_classes),
    )
    files = (*map(merges.path, merges.names()), merges.FOLDER / LICENCE)
    vocabularies = (Generated(f"{VOCABULARIES}/{file.name}", file.read_bytes) for file in files)
    return [*scripts, *models, *lists, *others, *divided, *small, *vocabularies]


DATA = f"{FOLDER}/data.json"
# The small model's files, loaded by its page.
SMALL = "assets/capitals"
VOCABULARIES = "assets/vocabularies"
LICENCE = "license.txt"  # beside the merges
OF_SMALL = ("config.json", "tokenizer.json", "model.safetensors", "countries.csv", "sentences.txt")
ENGINE = "engine"  # the second process's task


@cached_on_disk
def compiled() -> dict[str, str]:
    """The engine for the browser, file by file."""
    return files(memory.go_on)


_compiled = cache(partial(second_process.computed, ENGINE, compiled))


def _script(name: str) -> str:
    return _compiled()[name]


@memoized
def _listed() -> list[str]:
    """The models that a page may start from, family by family, smallest first in each."""
    wrong = model_pages.problems()
    counted = (
        [slug for slug in members if slug not in wrong and presets.preset(slug).config is not None]
        for members in model_pages.families().values()
    )
    return [slug for slugs in counted for slug in sorted(slugs, key=model_pages.total)]


@memoized
@cached_on_disk
def tool_data() -> str:
    """The name and family of each model that a page may start from, whose configs' keys are separate files; the
    accelerators; the area map's title for a part, by the role of its step, and its color, by its category."""
    models = {slug: [presets.preset(slug).name, presets.preset(slug).family] for slug in _listed()}
    machines = {
        slug: {
            "name": a.name,
            "vendor": a.vendor,
            "peak_flops": a.peak_flops,
            "bytes_per_second": a.bytes_per_second,
            "memory_bytes": a.memory_bytes,
            **({} if a.kind == "GPU" else {"kind": a.kind}),
            **({} if a.watts is None else {"watts": a.watts}),
            **({} if a.capability is None else {"capability": a.capability}),
        }
        for slug, a in accelerators().items()
    }
    parts = [part for slug in models for part in presets.model(slug).counts.parts]
    titles = {str(part.role): descriptions.group(part.node) for part in parts}
    colours = {category.value: kind.colour for category, kind in PARTS.items()}
    return _json({"models": models, "accelerators": machines, "titles": titles, "colours": colours})


def _model(slug: str, address: Callable[[str], str]) -> str:
    """A tool's data of one model."""
    return _of_model(slug, address(slug))


@memoized
@cached_on_disk
def _of_model(slug: str, page: str) -> str:
    preset, model = presets.preset(slug), presets.model(slug)
    return _json(
        {
            "page": page,
            "caveat": preset.caveat,
            "context": model.longest_context[0],
            **({} if model.image_tower == [] else {"tower": model.image_tower}),
            "default_sizes": sorted(model.default_sizes),
            "default_figures": [name for name in FIGURES if model.rests_on_default(name)],
            "defaults": unescape(str(defaults_note([model]))),
            "keys": model.raw,
        }
    )


def _capacities() -> str:
    """The data that decides whether each model fits, and by which a list of models is filtered; weights as published
    refer to another format if it is the same."""
    all_traits = {slug: _traits(slug) for slug in _listed()}
    for slug, traits in all_traits.items():
        weights: dict[str, Any] = traits["weights"]
        same = [name for name, held in weights.items() if name != "published" and held == weights.get("published")]
        all_traits[slug] = {**traits, "weights": weights | ({"published": same[0]} if same else {})}
    return _json(all_traits)


@memoized
@cached_on_disk
def _traits(slug: str) -> dict[str, Any]:
    preset, model = presets.preset(slug), presets.model(slug)
    formats = model.counts.formats
    said = {name: formats.said(name) for name in capacity.capacity(slug)["weights"]}
    return {
        **capacity.capacity(slug),
        "context": model.longest_context[0],
        "kind": experts_and_attention(model)[0],
        "licence": licence(preset),
        "caveat": preset.caveat,
        "said": {name: text for name, text in said.items() if text != name},
    }


def _keys() -> str:
    """The keys of every model's config."""
    return _json({slug: presets.model(slug).raw for slug in _listed()})


def _names() -> str:
    """The names of every model that a page may start from."""
    listed = set(_listed())
    return _json({slug: list(known) for slug, known in presets.names().items() if slug in listed})


@memoized
@cached_on_disk
def _gguf_types() -> str:
    """The model types that the files of each of llama.cpp's architectures could have been converted from, most likely
    first, and those whose numbers were compared."""
    types = {name: list(gguf_types_of.likeliest(name)) for name in gguf_types_of.names()}
    return _json({"types": types, "compared": sorted(gguf_checkpoint.compared())})


def _vllm_classes() -> str:
    """The model type of each class that vLLM's and SGLang's logs name, without the suffix for a text part."""
    classes = vllm_classes().classes
    return _json({name: row.type.removesuffix("_text") for name, row in classes.items() if row.type})


def _plan() -> str:
    """The additional data for planning a deployment: the links and the stated power of accelerators."""
    return _json(
        {
            "links": {
                slug: {"name": a.link.name, "bytes_per_second": a.link.bytes_per_second}
                for slug, a in accelerators().items()
                if a.link is not None
            },
            "watts": {slug: watts for slug in accelerators() if (watts := training_runs.watts_of(slug)) is not None},
        }
    )


@memoized
@cached_on_disk
def _served() -> str:
    """Published runs of inference of the catalog's models: what they state, as text where it is exact, and the share of
    the bound that they reach."""
    listed, slugs = served_runs.published(), set(_listed())
    kept = ("model", "machine", "engine", "devices", "format", "batch", "watts")
    return _json(
        [
            {name: getattr(run, name) for name in kept}
            | {"rate": [run.rate.numerator, run.rate.denominator], "source": listed.sources[run.source].url}
            | {"share": f"{float(bills.share_of(run)):.4f}"}
            for run in listed.run
            if run.model in slugs
        ]
    )


def _weights(format: str) -> str:
    """The weights of every model in a rare format; models without it are left out."""
    of_each = {slug: capacity.other_weights(slug) for slug in _listed()}
    return _json({slug: weights[format] for slug, weights in of_each.items() if format in weights})


def _divided(devices: int) -> str:
    """Every model on several devices."""
    return _json({slug: capacity.divided(slug, devices) for slug in _listed()})


def _json(what: object) -> str:
    return json.dumps(what, ensure_ascii=False, separators=(",", ":"), default=str)


def _address(slug: str) -> str:
    """The URL of a model's page, relative to the site's."""
    return page_paths.model_page(slug).removesuffix(".md") + "/"
