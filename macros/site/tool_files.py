"""What the tools' pages load: the compiled engine, and the models and accelerators as data."""

from __future__ import annotations

import json
from functools import cache

from ..browser.bundle import files
from ..catalogue import presets
from ..counting.accelerators import accelerators
from ..dependencies import remembered
from ..views import words
from ..views.charts import PARTS
from . import model_pages
from .model_pages import Generated

FOLDER = "assets/engine"


def generated() -> list[Generated]:
    """Every file of the tools that is not in `docs/`."""
    return [*(Generated(f"{FOLDER}/{name}", text) for name, text in _compiled().items()), Generated(DATA, data())]


DATA = f"{FOLDER}/data.json"
_compiled = cache(files)


@remembered
def data() -> str:
    """The models that a page may start from, with the keys of their configs; the accelerators; what the area map says
    of a part, by the role of its step, and its colour, by what it does.
    """
    wrong = model_pages.problems()
    models = {
        slug: {
            "name": presets.preset(slug).name,
            "family": family,
            "page": _address(slug),
            "caveat": presets.preset(slug).caveat,
            "context": presets.model(slug).longest_context[0],
            "keys": presets.model(slug).raw,
        }
        for family, slugs in model_pages.families().items()
        for slug in slugs
        if slug not in wrong and presets.preset(slug).config is not None
    }
    machines = {
        slug: {
            "name": a.name,
            "vendor": a.vendor,
            "peak_flops": a.peak_flops,
            "bytes_per_second": a.bytes_per_second,
            "memory_bytes": a.memory_bytes,
            "source": a.source,
        }
        for slug, a in accelerators().items()
    }
    parts = [part for slug in models for part in presets.model(slug).counts.parts]
    titles = {str(part.role): words.group(part.node) for part in parts}
    colours = {category.value: kind.colour for category, kind in PARTS.items()}
    return json.dumps(
        {"models": models, "accelerators": machines, "titles": titles, "colours": colours},
        ensure_ascii=False,
        separators=(",", ":"),
        default=str,
    )


def _address(slug: str) -> str:
    """The address of a model's page below the site's."""
    return model_pages.page_of(slug).removesuffix(".md") + "/"
