"""What a model changed: its traits and the steps of its layers compared with those of an older one."""

from __future__ import annotations

from urllib.parse import quote

from ...cache.memory import memoized
from ...catalogue import presets
from ...catalogue.models import Model
from ...engine.steps import EVERY_NORM
from ..kit import disclosure, rounding
from ..kit.conventions import and_list, caveat
from ..kit.html import Html, Link, anchor, block, conventions, html, joined, tag
from ..trace.operations import Section, sections
from . import gallery
from .catalogue import COMPARE
from .families import is_earlier, predecessor, released_of
from .traits import TRAITS, trait_values

COMMON = "llama3-8b"  # the layer that most later decoders are based on


@disclosure.view("what it changed", with_others=True)
def model_changes(model: Model, link: Link | None = None, page_link: Link | None = None) -> Html:
    """The differences from Llama 3 8B, and from the earlier model in its line: traits, the steps of a layer, sizes."""
    olds = [presets.model(COMMON)] if model.slug != COMMON and COMMON in presets.paths() else []
    older = predecessor(model)
    olds += [older] if older and older.slug != COMMON else []
    if not olds:
        return tag("p", html("{} is the first of its family.", model.name))
    first, *others = (_changes(old, model, page_link) for old in olds)
    folded = (tag("details", tag("summary", said), items, cls="wide") for said, items in others)
    drawn = gallery.beside_common(model, link) if olds[0].slug == COMMON else ""
    return block(tag("p", tag("strong", first[0])), first[1], drawn, *folded, conventions(caveat([model.slug])))


def _changes(old: Model, model: Model, page_link: Link | None) -> tuple[Html, Html]:
    """(from which model, to which, the number of changes, each change)."""
    changed, sizes, new, gone = _differences(old, model)
    is_older = is_earlier(released_of(model.slug), released_of(old.slug))
    start = html("{} beside {}" if is_older else "From {1} to {0}", model.name, old.name)
    said = html("{}: {}", start, _amounts(len(changed), len(sizes)))
    items = [html("{}: {}", title, how) for title, how in changed]
    items += [html("Steps that are new in a layer: {}", and_list(new))] if new else []
    items += [html("Steps that are gone: {}", and_list(gone))] if gone else []
    items += [html("Sizes: {}", joined(sizes, ", "))] if sizes else []
    compare = page_link(COMPARE) if page_link else None
    if compare:
        both = f"{compare}?models={quote(f'{old.slug},{model.slug}')}"
        items.append(anchor("Compare the two, or choose others", both))
    return said, tag("ul", *(tag("li", item) for item in items))


def _amounts(parts: int, sizes: int) -> str:
    """The numbers of parts and sizes that differ, in words."""
    said = [f"{n} {what}{'' if n == 1 else 's'}" for n, what in ((parts, "part"), (sizes, "size")) if n]
    return f"{' and '.join(said) or 'nothing'} {'differs' if parts + sizes < 2 else 'differ'}"


@memoized
def _differences(old: Model, model: Model) -> tuple[list, list, list[str], list[str]]:
    """(changed traits with their values, changed sizes, new steps of a layer, removed steps)."""
    changed, sizes = [], []
    for trait, was, now in zip(TRAITS, trait_values(old), trait_values(model)):
        if was == now or (not trait.is_known and None in (was, now)):
            continue
        if trait.column.is_number:
            sizes.append(html("{} {} (was {})", trait.column.title, _said(now), _said(was)))
        elif was is None:
            changed.append((trait.column.title, html("{}; new", now)))
        elif now is None:
            changed.append((trait.column.title, html("none; was {}", was)))
        else:
            changed.append((trait.column.title, html("{}; was {}", now, was)))
    before, after = _steps(old), _steps(model)
    new = [title for title in after if title not in before]
    gone = [title for title in before if title not in after]
    return changed, sizes, new, gone


def _said(value: int | str | None) -> str:
    return "none" if value is None else rounding.grouped(value) if isinstance(value, int) else value


@memoized
def _steps(model: Model) -> dict[str, None]:
    """The titles of the steps of a layer that hold weights, multiply or normalize, in order."""
    layers = [item for item in sections(model).content if item.node.layers is not None]
    operations = [
        operation
        for layer in layers
        for operation, _ in (layer.operations() if isinstance(layer, Section) else [(layer, 1)])
    ]
    shown = (one for one in operations if one.weights or one.flops.terms or one.node.role in EVERY_NORM)
    return dict.fromkeys(one.words.title for one in shown)
