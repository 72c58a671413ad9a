"""Views of models whose sizes are published; for any other model, a sentence replaces the view instead of a guess."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import Concatenate, ParamSpec

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.beside import beside
from ...catalogue.models import Model
from ...engine.errors import Problem
from .html import Html, html, tag

UNDISCLOSED = "undisclosed"

P = ParamSpec("P")


@memoized
def model(slug: str) -> Model | None:
    """The model, or None if its maker disclosed nothing. Raises `Problem` for an unknown slug."""
    if not isinstance(slug, str):
        raise Problem("expected a preset's slug", 'write it in quotes, such as "llama3-8b"').about("model", slug)
    return presets.model(slug) if presets.preset(slug).config is not None else None


def models(slugs: Iterable[str]) -> list[Model]:
    """The models among these whose sizes are known."""
    return [known for slug in slugs if (known := model(slug))]


def undisclosed(slug: str, what: str) -> Html:
    """The sentence that replaces a view of a model without sizes."""
    preset = presets.preset(slug)
    sentence = "{} has not disclosed the sizes of {}: {} is {}."
    return tag("p", html(sentence, preset.organization, preset.name, what, UNDISCLOSED), cls="ep-undisclosed")


def view(
    what: str, with_others: bool = False
) -> Callable[[Callable[Concatenate[Model, P], Html]], Callable[Concatenate[str, P], Html]]:
    """Decorate a view of a model so that it takes the model's slug; for a model without sizes, it says that `what` is
    undisclosed. `with_others`: the view shows other models next to it."""

    def make(of_model: Callable[Concatenate[Model, P], Html]) -> Callable[Concatenate[str, P], Html]:
        @wraps(of_model)
        def of_slug(slug: str, *args: P.args, **kwargs: P.kwargs) -> Html:
            known = model(slug)
            if known is None:
                return undisclosed(slug, what)
            if not with_others:
                return of_model(known, *args, **kwargs)
            with beside(slug):
                return of_model(known, *args, **kwargs)

        takes = signature(of_model)
        first, *others = takes.parameters.values()
        # The signature that the macro reference prints and calls are checked against.
        setattr(of_slug, "__signature__", takes.replace(parameters=[first.replace(name="slug"), *others]))  # noqa: B010
        return of_slug

    return make
