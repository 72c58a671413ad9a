"""What the tools' pages load: the compiled engine, the models and accelerators as data, the small model."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from html import unescape

from ..browser.bundle import files
from ..cache.disk import cached_on_disk
from ..cache.memory import memoized
from ..catalogue import capitals, page_paths, presets
from ..counting.accelerators import accelerators
from ..counting.figures import FIGURES
from ..views.charts.parts_chart import PARTS
from ..views.kit.conventions import defaults_note
from ..views.words import descriptions
from . import model_pages
from .model_pages import Generated

FOLDER = "assets/engine"


def tool_files(address: Callable[[str], str] | None = None) -> list[Generated]:
    """Every file of the tools that is not in `docs/`; `address` says where a model's page is, below the site's root."""
    scripts = (Generated(f"{FOLDER}/{name}", partial(_script, name)) for name in _compiled())
    models = (
        Generated(f"{FOLDER}/models/{slug}.json", partial(_model, slug, address or _address)) for slug in _listed()
    )
    small = (Generated(f"{SMALL}/{name}", (capitals.FOLDER / name).read_bytes) for name in OF_SMALL)
    return [*scripts, *models, Generated(DATA, tool_data), *small]


DATA = f"{FOLDER}/data.json"
# The small model: what its page loads, and anybody may.
SMALL = "assets/capitals"
OF_SMALL = ("config.json", "tokenizer.json", "model.safetensors", "countries.csv", "sentences.txt")
_compiled = cache(cached_on_disk(files))


def _script(name: str) -> str:
    return _compiled()[name]


def _listed() -> list[str]:
    """The models that a page may start from, family by family."""
    wrong = model_pages.problems()
    slugs = [slug for members in model_pages.families().values() for slug in members]
    return [slug for slug in slugs if slug not in wrong and presets.preset(slug).config is not None]


@memoized
@cached_on_disk
def tool_data() -> str:
    """The models that a page may start from, whose configs' keys are files of their own; the accelerators; what the
    area map says of a part, by the role of its step, and its colour, by what it does.
    """
    models = {
        slug: {
            "name": presets.preset(slug).name,
            "family": presets.preset(slug).family,
        }
        for slug in _listed()
    }
    machines = {
        slug: {
            "name": a.name,
            "vendor": a.vendor,
            "peak_flops": a.peak_flops,
            "bytes_per_second": a.bytes_per_second,
            "memory_bytes": a.memory_bytes,
            "source": "",  # which no tool shows
        }
        for slug, a in accelerators().items()
    }
    parts = [part for slug in models for part in presets.model(slug).counts.parts]
    titles = {str(part.role): descriptions.group(part.node) for part in parts}
    colours = {category.value: kind.colour for category, kind in PARTS.items()}
    return _json({"models": models, "accelerators": machines, "titles": titles, "colours": colours})


def _model(slug: str, address: Callable[[str], str]) -> str:
    """What a tool needs of one model."""
    preset, model = presets.preset(slug), presets.model(slug)
    return _json(
        {
            "page": address(slug),
            "caveat": preset.caveat,
            "context": model.longest_context[0],
            "default_sizes": sorted(model.default_sizes),
            "default_figures": [name for name in FIGURES if model.rests_on_default(name)],
            "defaults": unescape(str(defaults_note([model]))),
            "keys": model.raw,
        }
    )


def _json(what: object) -> str:
    return json.dumps(what, ensure_ascii=False, separators=(",", ":"), default=str)


def _address(slug: str) -> str:
    """The address of a model's page below the site's."""
    return page_paths.model_page(slug).removesuffix(".md") + "/"
