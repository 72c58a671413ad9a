"""Memory for training: weights, gradients, the optimizer's state, and the activations that the backward pass needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeAlias

from ..engine.array import Node, ShapeArray
from ..engine.cached_method import cached_method
from ..engine.dims import Poly
from ..engine.steps import Keeps, Role
from .arrays import distinct, is_data, measured, new_rows, part, size
from .compute import Compute
from .parts import HEAD

Saved: TypeAlias = list[tuple[Poly, bool]]


class Training:
    """The memory that a model needs for training."""

    def __init__(self, compute: Compute):
        self.compute, self.counts, self.trace = compute, compute.counts, compute.trace

    def training_bytes(self, context: int, batch: int = 1, **how: bool) -> dict[str, int]:
        """Memory of mixed-precision AdamW (arXiv 1910.02054, 3.1): weights and gradients at 2 bytes, and at 4 bytes
        each a copy of the weights, the momentum and the variance; then the activations (`how` as in
        `activation_bytes`)."""
        n = self.counts.total
        return {
            "weights": 2 * n,
            "gradients": 2 * n,
            "master weights": 4 * n,
            "momentum": 4 * n,
            "variance": 4 * n,
            "activations": self.activation_bytes(context, batch, **how),
        }

    @cached_method
    def activation_bytes(self, context: int, batch: int = 1, *, pairs: bool = True, recompute: bool = False) -> int:
        """Bytes of activations that the backward pass needs, at 2 bytes per element (after arXiv 2205.05198, 4.1).

        Each step declares what it keeps: the arrays that it read, once if several read the same one, its result
        (softmax), or nothing (moving, adding, masking, rotating); the logits of all tokens are kept at 4 bytes. No
        dropout; a recurrence keeps its inputs and recomputes its states; latent attention is trained with its keys and
        values expanded per head. Without `pairs`, arrays over (query, key) pairs are not kept (attention computed in
        blocks). With `recompute`, only each layer's input is kept, plus once everything the largest layer keeps.
        """
        at = self.compute.evaluated(context, context)

        def elements(arrays: Saved) -> int:
            return sum([at(size) for size, is_paired in arrays if pairs or not is_paired])

        outside, layers, heads = self._saved
        kept = elements(outside)
        own = [elements(arrays) + at(written_out) for _, arrays, written_out in layers]
        if recompute:
            kept += sum(at(size(n.outputs[0])) * int(n.layer_count) for n, *_ in layers) + max(own, default=0)
        else:
            kept += sum(one * int(n.layer_count) for one, (n, *_) in zip(own, layers))
        logits = 0
        for head, arrays in heads:  # the trace computes the last token's only; training needs all tokens'
            [vectors, *_] = (at(size(x)) for x in head.inputs if is_data(x))
            kept += vectors + elements(arrays) * context
            logits += sum(at(size(x)) for x in head.outputs) * context
        return (kept * 2 + logits * 4) * batch

    @cached_property
    def _saved(self) -> tuple[Saved, list[tuple[Node, Saved, Poly]], list[tuple[Node, Saved]]]:
        """The arrays that the backward pass needs: those of the steps outside of layers, of each kind of layer with its
        additional arrays if latents are expanded, and inside each head."""
        top = self.trace.root.children
        heads = [n for n in top if n.role is HEAD]
        return (
            _sizes(x for n in top if n.layers is None and n.role is not HEAD for x in _saved(n)),
            [(n, self.saved(n), self.written_out(n)) for n in top if n.layers is not None],
            [(h, self.saved_inside(h)) for h in heads],
        )

    @cached_method
    def saved(self, *nodes: Node) -> Saved:
        """The arrays that calls keep for the backward pass, each once: elements, and whether they are over pairs."""
        return _sizes(x for node in nodes for x in _saved(node))

    def saved_inside(self, head: Node) -> Saved:
        """Like `saved`, for the calls inside a head."""
        return _sizes(x for n in head.children if n.step and n.keeps is not Keeps.NOTHING for x in _saved(n))

    def written_out(self, layer: Node) -> Poly:
        """The difference in a layer's kept elements if its latents' keys and values are expanded per head.

        A key and a value of every token replace each head's query to the latents and its average of them.
        """
        latent = self.compute.latents.get(layer)
        if latent is None:
            return Poly.of(0)
        absorbed = Poly.sum(size(x) for x in _absorbed(layer))
        tokens = self.trace.root.inputs[0].shape[0]
        return Poly.of(tokens * latent.heads * (latent.nope + latent.value)) - absorbed


def _absorbed(layer: Node) -> Iterator[ShapeArray]:
    """The arrays of latent attention that exist only if keys and values are not expanded."""
    for node in layer.walk():
        if node.role is Role.LATENT_QUERIES:
            yield node.outputs[0]
        elif node.role is Role.LATENT_VALUES:
            yield node.inputs[0]


def _sizes(arrays: Iterable[ShapeArray]) -> Saved:
    """Each array once: (elements, whether it is over pairs)."""
    return [measured(x) for x in distinct(arrays)]


def _saved(node: Node) -> list[ShapeArray]:
    """The arrays that a call keeps for the backward pass; for a step with inner steps, those that the inner steps
    keep."""
    if node.keeps is Keeps.NOTHING:
        return []
    if node.keeps is Keeps.OUTPUT:
        return [part(x) for x in node.outputs]
    if any(child.step for child in node.children):
        return [x for child in node.children if is_of_numbers(child) for x in _saved(child)]
    return [new_rows(x) for x in node.inputs if is_data(x) and x.dtype.kind == "f"]


def is_of_numbers(call: Node) -> bool:
    """Whether a call returns numbers that have a gradient, not indices or masks."""
    return bool(call.outputs) and call.outputs[0].dtype.kind == "f"
