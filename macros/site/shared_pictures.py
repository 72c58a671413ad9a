"""The preview image of a page when its link is shared (`og:image`): a model's parameters to scale, its name and three
figures; every other page shows those of one model, below the name of the page's section. Needs Pillow, the extra
`shared`.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import time
from functools import cache, partial
from pathlib import Path
from typing import Any

from ..cache.memory import memoized
from ..catalogue import page_paths, presets
from ..catalogue.models import Model
from ..counting import design
from ..views.charts import treemap
from ..views.charts.parts_chart import PARTS
from ..views.kit import rounding
from ..views.trace.parts import groups
from .model_pages import Generated

SIZE = 1200, 630  # as the sites that show them request
FOLDER = "shared"
USUAL = "llama3-8b"  # its map is used on pages without a model
_PACKAGE = Path(__file__).parent.parent
FONT = "assets/vendor/source-sans-3-latin-wght-normal.woff2"  # below docs/, or in an installed package
PAPER, INK, PALE = "#ffffff", "#1c2430", "#56606d"
LEFT, MAP, GAP = 60, (60, 230, 1140, 560), 3
seconds: list[float] = []  # that each picture took


def can_be_made() -> bool:
    """Whether Pillow is installed."""
    return importlib.util.find_spec("PIL") is not None


def pictures(name: str) -> list[Generated]:
    """The picture of every model with a config, and the site's own, whose title is `name`."""
    models = [*slugs_by_page().values()]
    usual = [slug for slug in (USUAL, *models) if slug in models][:1]
    own = [Generated(path_of(slug), partial(_timed, slug, "")) for slug in models]
    return [*own, *(Generated(path_of(None), partial(_timed, slug, name)) for slug in usual)]


def path_of(slug: str | None) -> str:
    """The path of a model's picture in the site, or of the site's own."""
    return f"{FOLDER}/{slug or 'site'}.png"


@memoized
def slugs_by_page() -> dict[str, str]:
    """The models with a picture by the sources of their pages."""
    known = [slug for slug in presets.readable() if presets.preset(slug).config is not None]
    return {page_paths.model_page(slug): slug for slug in known}


def _timed(slug: str, title: str) -> bytes:
    began = time.process_time()
    made = picture(presets.model(slug), title)
    seconds.append(time.process_time() - began)
    return made


def picture(model: Model, title: str = "") -> bytes:
    """A PNG of the map, with the model's name and figures above it, or with the title above and the model below."""
    Image, ImageDraw = (importlib.import_module(f"PIL.{name}") for name in ("Image", "ImageDraw"))
    image = Image.new("RGB", SIZE, PAPER)
    draw = ImageDraw.Draw(image)
    _line(draw, 120, title or model.name, INK, (76, 64, 54, 44, 36), 650)
    _line(draw, 190, " · ".join(figures(model)), PALE, (34, 32, 30, 28, 26, 24), 400)
    shown = sorted((group for group in groups(model) if group.count), key=lambda group: -group.count)
    for group, box in zip(shown, treemap.squarified([group.count for group in shown], MAP)):
        _field(draw, group, box)
    below = f"Where the parameters of {model.name} are" if title else "Every Parameter: where its parameters are"
    _line(draw, 605, below, PALE, (26, 22), 400)
    written = io.BytesIO()
    image.convert("P", palette=Image.Palette.ADAPTIVE, colors=64).save(written, "PNG", optimize=True)
    return written.getvalue()


def _line(draw: Any, base: int, text: str, colour: str, sizes: tuple[int, ...], weight: int) -> None:
    """A line of text in the largest of these sizes that fits the map's width."""
    fitting = (n for n in sizes if _font(n, weight).getlength(text) <= MAP[2] - LEFT)
    draw.text((LEFT, base), text, colour, _font(next(fitting, sizes[-1]), weight), "ls")


def _field(draw: Any, group: Any, box: tuple[float, float, float, float]) -> None:
    """A part of the model, with its title and parameters if there is space."""
    left, top, right, bottom = (round(n) for n in box)
    if right - left <= GAP or bottom - top <= GAP:
        return
    draw.rectangle((left, top, right - GAP, bottom - GAP), PARTS[group.parts[0].category].colour)
    for n, (text, size) in enumerate(((group.title, 30), (rounding.short(group.count), 26))):
        font = _font(size, 600 - 200 * n)
        if font.getlength(text) > right - left - 24 or top + 46 + 38 * n > bottom - 10:
            return
        draw.text((left + 12, top + 38 + 36 * n), text, PAPER, font, "ls")


def figures(model: Model) -> tuple[str, ...]:
    """Parameters, cache per token, layers and width; an encoder keeps no cache."""
    growth = design.cache_growth(model.counts)
    return (
        f"{model.counts.total:,} parameters",
        *([f"{rounding.decimal_bytes(growth)} of KV cache per token"] if growth else []),
        f"{design.n_layers(model.counts)} layers of width {int(model.trace.symbols['d_model']):,}",
    )


@cache
def _font(size: int, weight: int) -> Any:
    file = next(path for path in (_PACKAGE / FONT, _PACKAGE.parent / "docs" / FONT) if path.is_file())
    font = importlib.import_module("PIL.ImageFont").truetype(str(file), size)
    font.set_variation_by_axes([weight])
    return font
