"""A model's layers: their kinds, their numbers, and their ranges, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from ...catalogue.models import Model
from ...engine.array import Node
from ...engine.steps import BUFFERS, OF_SOURCE, Holds
from ..words import descriptions

ORDINALS = {
    2: "second",
    3: "third",
    4: "fourth",
    5: "fifth",
    6: "sixth",
    7: "seventh",
    8: "eighth",
    9: "ninth",
    10: "tenth",
}


def layers_by_kind(model: Model) -> list[Node]:
    """The layers as traced, one of each kind; identical kinds are merged."""
    return [node for node in model.drawn.trace.root.children if node.layers is not None]


def layer_title(node: Node, model: Model) -> tuple[str, str]:
    """(`Layer × 32`, its kind in words, which is empty if the model has only one kind)."""
    n = len(node.layers or ())
    return "Layer" + (f" × {n}" if n > 1 else ""), descriptions.of_kind(node.kind) if len(
        layers_by_kind(model)
    ) > 1 else ""


def what_alike_layers_read(node: Node, model: Model) -> str:
    """`each reads 2 to 9 earlier results, drawn with 2`; empty for a kind whose layers all read the same number."""
    one = next((fold for fold in model.drawn.folds if fold.layers == node.layers), None)
    if one is None:
        return ""
    return f"each reads {one.fewest} to {one.most} earlier results, shown with {len(node.inputs)}"


def layer_range(layers: Iterable[int] | None) -> str:
    """A range of layers, in words: `layer 0`, `layers 0–2`, `every sixth layer from 5`, `layers 0–4 and 6–10`."""
    return _range(tuple(layers or ()))


@lru_cache(maxsize=1024)
def _range(layers: tuple[int, ...]) -> str:
    indices = sorted(layers)
    if not indices:
        return ""
    if len(indices) == 1:
        return f"layer {indices[0]}"
    steps = {b - a for a, b in zip(indices, indices[1:])}
    if steps == {1}:
        return f"layers {indices[0]}–{indices[-1]}"
    if len(steps) == 1 and len(indices) > 2:
        [step] = steps
        return f"every {_ordinal(step)} layer from {indices[0]} to {indices[-1]}"
    runs = each_run(indices)
    step = _skipped(indices)
    if step and len(runs) > 3:
        return f"layers {indices[0]}–{indices[-1]} without every {_ordinal(step)}"
    if len(runs) <= 6:
        return f"layers {', '.join(runs[:-1])} and {runs[-1]}"
    return f"layers {', '.join(runs[:5])} … {runs[-1]} ({len(indices)} in all)"


def each_run(indices: Sequence[int]) -> list[str]:
    """Ascending numbers, with consecutive ones as a range: `0–2`, `5`."""
    runs, start = [], indices[0]
    for a, b in zip(indices, [*indices[1:], None]):
        if b is None or b != a + 1:
            runs.append(str(start) if start == a else f"{start}–{a}")
            start = b
    return runs


def _skipped(indices: list[int]) -> int | None:
    """n if every nth number between the first and the last is missing."""
    if indices[-1] - indices[0] >= 2 * len(indices):
        return None  # more numbers are missing than present
    present = set(indices)
    gaps = [i for i in range(indices[0], indices[-1]) if i not in present]
    steps = {b - a for a, b in zip(gaps, gaps[1:])}
    return steps.pop() if len(steps) == 1 and len(gaps) > 1 else None


def _ordinal(n: int) -> str:
    return ORDINALS.get(n, f"{n}th")


def has_fixed_state(model: Model) -> bool:
    """Whether some layers keep a state whose size does not depend on the context, other than ids of tokens and rows
    that wait for an entry of several tokens."""
    others = OF_SOURCE | BUFFERS | {Holds.TOKEN_IDS}
    return any(k.row is None and k.holds not in others for k in model.counts.kept)
