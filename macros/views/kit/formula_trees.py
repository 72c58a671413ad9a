"""A page's formulas as data, with some of their names left open, for an interactive figure to evaluate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from ...catalogue.models import Model
from ...counting import adapters
from ...counting.accelerators import Accelerator
from ...counting.costs import of as costs_of
from ...counting.formats import WEIGHTS
from ...data.capacity import capacity
from ...engine.errors import Problem, nearest
from .arguments import weight_format
from .values import compute, number

PER_RANK = "lora_per_rank"
IN_FORMAT, READ = "weights_in_", "read_in_"
CACHE_ITEM = 2  # bytes of an element of the cache that has no size of its own


class Tree:
    """A formula that depends on a size that varies; `data` is for `views.charts.bar_values`."""

    def __init__(self, data: list[Any]):
        self.data = data

    def __add__(self, other: object) -> Tree:
        return joined("+", self, other)

    def __radd__(self, other: object) -> Tree:
        return joined("+", other, self)

    def __sub__(self, other: object) -> Tree:
        return joined("-", self, other)

    def __rsub__(self, other: object) -> Tree:
        return joined("-", other, self)

    def __mul__(self, other: object) -> Tree:
        return joined("*", self, other)

    def __rmul__(self, other: object) -> Tree:
        return joined("*", other, self)

    def __floordiv__(self, other: object) -> Tree:
        return joined("//", self, other)

    def __rfloordiv__(self, other: object) -> Tree:
        return joined("//", other, self)

    def __mod__(self, other: object) -> Tree:
        return joined("%", self, other)

    def __neg__(self) -> Tree:
        return joined("-", 0, self)

    def __pow__(self, power: int) -> Tree:
        whole = as_tree(1)
        for _ in range(power):
            whole = whole * self
        return whole


def as_tree(value: object) -> Tree:
    """A number or a formula, as a formula. Raises ValueError for a fraction."""
    if isinstance(value, Tree):
        return value
    if not isinstance(value, int | Fraction) or value != int(value):
        raise ValueError(value)
    return Tree(["n", int(value)])


def joined(sign: str, left: object, right: object) -> Tree:
    """Two formulas with a sign between them."""
    return Tree([sign, as_tree(left).data, as_tree(right).data])


def formula_tree(
    source: str, owners: Mapping[str, Model | Accelerator], moving: Mapping[str, Sequence[int]]
) -> list[Any]:
    """A formula over models and machines, `m.n_layers * context`, as data; `moving` has the stops of each size that
    varies.

    A cost that depends on the context varies with it, if `context` is such a size, and the costs of a square image vary
    with its `side`, in pixels. `m.weights_in_q4_k_m` are the bytes of the weights in a format, `m.read_in_q4_k_m` those
    that a step with one token reads, `m.lora_per_rank` the parameters per rank of LoRA on every linear layer; a machine
    has `memory_bytes`, `bytes_per_second` and `flops_per_second`. Raises `Problem`.
    """

    def lookup(owner: str | None, name: str) -> Any:
        if owner is None and name in moving:
            return Tree(["x", list(moving).index(name)])
        if owner is None or owner not in owners:
            known = [*moving, *(f"{known}.…" for known in owners)]
            mend = nearest(owner or name, [*moving, *owners], f"use {', '.join(known) or 'whole numbers'}")
            raise Problem(f"{owner or name!r} in {source!r} is no model, machine or size that moves", mend)
        of = owners[owner]
        if isinstance(of, Accelerator):
            return _of_machine(of, name)
        if name in OF_CONTEXT and "context" in moving:
            return Tree(OF_CONTEXT[name](of, list(moving).index("context")))
        if name in OF_IMAGE and "side" in moving:
            return Tree(["table", _of_images(of, name, moving["side"]), list(moving).index("side")])
        if name == PER_RANK:
            adapter = adapters.every_linear(of.architecture, 1)
            return adapters.adapters(of.counts, of.architecture, adapter).total
        if name.startswith(IN_FORMAT):
            return costs_of(of.counts).weight_bytes(_format(name, IN_FORMAT))
        if name.startswith(READ):
            return costs_of(of.counts).traffic.weight_bytes_read(1, 1, _format(name, READ))
        return number(of, name)

    try:
        return as_tree(compute(source, lookup)).data
    except (TypeError, ValueError):
        raise Problem(f"{source!r} is no whole number", "write // instead of /") from None


def _format(name: str, prefix: str) -> str:
    """The weight format at the end of a name; a formula writes `-` as `_`. Raises `Problem`."""
    written = name.removeprefix(prefix)
    return weight_format(written.replace("_", "-") if written.replace("_", "-") in WEIGHTS else written)


def _of_machine(of: Accelerator, name: str) -> int:
    """A figure of a machine. Raises `Problem`."""
    peak = of.peak()
    known = {"memory_bytes": of.memory_bytes, "bytes_per_second": of.bytes_per_second}
    known |= {} if peak is None else {"flops_per_second": peak}
    if name not in known:
        raise Problem(f"{of.name} has no {name!r}", nearest(name, known, f"one of {', '.join(known)}"))
    return known[name]


def _of_images(model: Model, name: str, sides: Sequence[int]) -> list[list[int]]:
    """The cost of a square image at each stop of its side. Raises `Problem`."""
    towers = [component for component in model.components if component.reads == "image"]
    if not towers:
        raise Problem(f"{model.slug} reads no images", "choose a model with a vision tower")
    return [[side, getattr(towers[0].image(side, side), OF_IMAGE[name])] for side in sides]


def _cache_bytes(model: Model, place: int) -> list[Any]:
    """The KV cache at a context."""
    total = as_tree(0)
    for own, terms in capacity(model.slug)["kept"]:
        total = total + (own or CACHE_ITEM) * Tree(["terms", terms, place])
    return total.data


def _flops(which: int | None = None) -> Any:
    """The FLOPs of one new token at a context: products with weights (0), of tokens with tokens (1), or both."""

    def of(model: Model, place: int) -> list[Any]:
        forms = capacity(model.slug)["forms"][0]
        chosen = forms if which is None else [forms[which]]
        return sum((Tree(["terms", terms, place]) for terms in chosen), as_tree(0)).data

    return of


OF_IMAGE = {"image_tokens": "tokens", "image_patches": "patches", "image_flops": "flops"}
OF_CONTEXT = {
    "cache_bytes": _cache_bytes,
    "decode_flops": _flops(),
    "decode_flops_of_weights": _flops(0),
    "decode_flops_of_tokens": _flops(1),
}
