"""The names of the parts of a model: `Attention × 32 layers`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting.parts import LAST_NORM, Group, grouped
from ...engine.tensors import Weight
from ..kit.html import Html, html, terms_beside, text
from ..words import descriptions
from .layers import layer_range, layers_by_kind


class Groups(list[Group]):
    is_large_result: ClassVar = True  # because they hold a trace


@memoized
def groups(model: Model) -> Groups:
    """The model's parts by their titles."""
    return Groups(grouped(model.drawn.counts.parts, descriptions.group))


def group_title(group: Group, model: Model) -> Html:
    """`Attention × 32 layers · grouped-query attention`."""
    return group_name(group, model) + terms_beside(group_terms(group))


def group_name(group: Group, model: Model) -> Html:
    """`Attention × 32 layers`, or with the layers if there are several kinds."""
    if not group.layers:
        return text(group.title)
    where, n = layer_range(group.layers), len(group.layers)
    if "…" in where and model.drawn.folds:
        where = f"{n} layers"
    kinds = {node.layers: node.kind for node in layers_by_kind(model)}
    if len(kinds) > 1:
        return html("{} in {} ({})", group.title, Html(where), descriptions.of_kind(kinds[group.layers]))
    return html("{} × {} layers", group.title, n) if n > 1 else text(group.title)


def group_terms(group: Group) -> tuple[str, ...]:
    """The field's terms for the steps of a group, except those in its title."""
    terms = [descriptions.of_step(part.node).term for part in group.parts]
    return descriptions.Words(group.title, term=", ".join(terms)).terms


def group_id(group: Group, model: Model) -> str:
    """The anchor of a part in the model's table of every parameter."""
    alike = [other for other in groups(model) if other.title == group.title]
    which = f" {(group.layers or (0,))[0]}" if len(alike) > 1 else ""
    title = "last norm" if group.title == LAST_NORM else group.title  # anchors stay stable when titles change
    return re.sub(r"[^a-z0-9.]+", "-", f"{model.slug} {title}{which}".lower())


def expert_counts(weights: Iterable[Weight]) -> tuple[int, int] | None:
    """(the routed experts, those that a token uses) of the first weight that has some; None if there is none."""
    for w in weights:
        if w.routed is not None:
            held, used = w.routed
            return int(held), int(used)
    return None
