"""The parts of a model as they are titled: `Attention, layers 0–31`."""

from __future__ import annotations

from ..catalogue.presets import Model
from ..dependencies import remembered
from ..engine.dims import Poly
from ..engine.tensors import Weight
from . import words
from .html import Html, html, text
from .layers import kinds, layer_range


class Group:
    """Rows of a parameter table that belong together: a part, in one kind of layer."""

    def __init__(self, title: str, node, weights: list[Weight], loose: bool = False):
        self.title, self.node, self.weights = title, node, weights

    @property
    def count(self) -> int:
        return sum(int(w.count) for w in self.weights)

    @property
    def poly(self) -> Poly:
        return sum((w.count.expr for w in self.weights), Poly.of(0))

    @property
    def layers(self) -> tuple[int, ...] | None:
        return self.weights[0].layers

    @property
    def layer_symbol(self) -> Poly:
        return Poly.of(self.weights[0].layer_count)


@remembered
def groups(model: Model) -> list[Group]:
    """The model's parts in forward order, the norms of a kind of layer together and last in it."""
    counts = model.counts
    found: dict[tuple, Group] = {}
    seen: set[Weight] = set()
    ordered = []
    for node in counts.trace.root.children:
        inner = node.children if node.layers is not None else [node]
        late = [n for n in inner if node.layers is not None and words.group(n.name, n.doc) == "Norms"]
        for n in [*(n for n in inner if n not in late), node, *late]:
            own = n.weights if n is node and node.layers is not None else n.all_weights()
            fresh = [w for w in own if not w.is_buffer and w not in seen]
            seen.update(fresh)
            if fresh:
                title = words.group(n.name, n.doc)
                if title == "Norms" and node.layers is None:
                    title = "Last norm" if any(g.layers for g in ordered) else "First norm"
                key = (title, fresh[0].layers)
                if key not in found:
                    found[key] = Group(title, n, [])
                    ordered.append(found[key])
                found[key].weights += fresh
    missing = [w for w in counts.weights if w not in seen]
    return ordered + ([Group("Other", counts.trace.root, missing)] if missing else [])


def group_title(group: Group, model: Model) -> Html:
    """`Attention × 32 layers`, or with the layers where there are several kinds."""
    names = {node.layers: words.of_kind(node.kind) for node in kinds(model)}
    where = layer_range(group.layers)
    if where and len(names) > 1:
        return html("{} in {} ({})", group.title, Html(where), names[group.layers])
    if where and len(group.layers) > 1:
        return html("{} × {} layers", group.title, len(group.layers))
    return text(group.title)
