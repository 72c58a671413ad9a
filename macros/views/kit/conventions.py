"""Notes about figures: the convention of FLOPs, the caveats of presets, and dependence on a class's default."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...cache.memory import memoized
from ...catalogue.models import Model
from . import disclosure
from .html import Html, html, joined, text

_LIBRARY = re.compile(r"class defaults of (?:huggingface/)?(\S+)")
DEFAULT_MARK = html('<span class="ep-mark" title="from a default of a class">§</span>')


def caveat(slugs: Iterable[str]) -> Html:
    """The costs that these models' presets exclude, each caveat once; and the models whose sizes are a class's
    defaults."""
    return _caveat(tuple(slugs))


@memoized
def _caveat(slugs: tuple[str, ...]) -> Html:
    known = disclosure.models(slugs)
    said = dict.fromkeys(m.preset.caveat for m in known if m.preset and m.preset.caveat)
    return joined(filter(None, (*map(text, said), defaults_note(known))), " ")


def defaults_note(models: Iterable[Model]) -> Html | str:
    """The models with a size or a longest context that is a class's default, because none of the maker's sources states
    it."""
    names = [m.name for m in models if m.default_sizes or m.has_default_context]
    if not names:
        return ""
    of = f" of {and_list(names)}" if len(names) < 4 else ""
    libraries = dict.fromkeys(_library(m) for m in models if m.default_sizes or m.has_default_context)
    return html(
        "§ rests on a default of a class in {}, where no source of the maker’s gives a size or the longest context{}.",
        and_list([*libraries]),
        of,
    )


def _library(model: Model) -> str:
    """The package whose class has a model's defaults."""
    found = _LIBRARY.match(model.preset.sources.config or "") if model.preset else None
    return found[1] if found else "transformers"


def marked(shown: object, is_default: bool) -> Html:
    """A figure, with a mark if it depends on a class's default."""
    return html("{} {}", shown, DEFAULT_MARK) if is_default else text(shown)


def and_list(names: list[str]) -> str:
    """`A`, `A and B`, `A, B and C`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


FLOP_CONVENTIONS = (
    html(
        "A multiply-add is 2 FLOPs; contractions and the multiply-adds of recurrences and "
        "convolutions count, a lookup is 0, other element-wise work is left out."
    ),
    html("Attention scores in full, not only their causal half; logits of the last token only."),
)
