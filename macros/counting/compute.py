"""FLOPs of a step: part by part, in full and with the causal half, with latents read as they are or written out per head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, wraps

from ..engine.array import Node
from ..engine.dims import Call, Dim, Poly
from ..engine.ops import SlidingWindow
from ..engine.steps import Role
from .parameters import Counts
from .parts import HEAD, cut


@dataclass(frozen=True)
class PartFlops:
    """FLOPs of one step in all layers of a kind: everything, and what it counts over (query, key) pairs, masked or not."""

    node: Node
    kind: object
    layers: int | None
    total: int
    pairs: int
    causal_pairs: int

    @property
    def name(self) -> str:
        """The word for the step in data: `attention`."""
        return str(self.node.role)

    @property
    def causal(self) -> int:
        """The FLOPs where only the pairs that the mask lets through count."""
        return self.total - self.pairs + self.causal_pairs


@dataclass(frozen=True)
class _Pairs:
    """A contraction over (query, key) pairs, with the rule that masks it."""

    leaf: Node
    layers: int
    queries: Poly
    keys: Poly
    mask: object

    def flops(self, values: Mapping[str, int]) -> int:
        return self.leaf.own_flops.at(values) * self.layers

    def share(self, values: Mapping[str, int]) -> Fraction:
        """The share of the pairs that the mask lets through."""
        new, context = values["T"], values["S"]
        mask = SlidingWindow(self.picked(values)) if self.picks else self.mask
        return Fraction(mask.pairs(context) - mask.pairs(context - new), self.queries.at(values) * self.keys.at(values))

    @property
    def picks(self) -> bool:
        """Whether each query has keys picked for it, a fixed number at most: min(S, index_topk)."""
        [(monomial, _)] = self.keys.terms.items() if len(self.keys.terms) == 1 else [((), 0)]
        return len(monomial) == 1 and isinstance(monomial[0][0], Call) and not getattr(self.mask, "size", None)

    def picked(self, values: Mapping[str, int]) -> int:
        [(atom, _)] = next(iter(self.keys.terms))
        return min(p.at(values) for p in atom.args if not p.is_free)


@dataclass(frozen=True)
class Latent:
    """The sizes of latent attention, and the steps that turn queries and averages by the heads' matrices."""

    heads: Dim
    nope: Dim
    value: Dim
    rank: Dim
    reads: tuple[Node, ...]


def once(method):
    """Compute each figure of a model once: tables ask for the same ones again and again."""

    @wraps(method)
    def wrapper(self, *args, **kwargs):
        key = method.__name__, args, tuple(kwargs.items())
        if key not in self._memory:
            self._memory[key] = method(self, *args, **kwargs)
        return self._memory[key]

    return wrapper


class Compute:
    """The FLOPs of one model. T new tokens end at a context of S tokens, the last new one included."""

    def __init__(self, counts: Counts):
        self.counts, self.trace = counts, counts.trace
        self._memory: dict[tuple, object] = {}

    @once
    def flops_by_part(self, new: int, context: int) -> tuple[PartFlops, ...]:
        """Each step with FLOPs, in forward order, by layer kind; the totals add up to `counts.flops_at`."""
        values, rows = self._values(new, context), []
        for node, step, flops, pairs in self._parts:
            full = [p.flops(values) for p in pairs]
            rows.append(
                PartFlops(
                    step,
                    node.kind if node.layers is not None else None,
                    int(node.layer_count) if node.layers is not None else None,
                    flops.at(values) * int(node.layer_count),
                    sum(full),
                    sum(int(n * p.share(values)) for n, p in zip(full, pairs)),
                )
            )
        return tuple(rows)

    @cached_property
    def _parts(self) -> list[tuple[Node, Node, Poly, list[_Pairs]]]:
        """Each step with FLOPs: its layer, itself, FLOPs in one layer, and its contractions over pairs."""
        pairs, found = {id(p.leaf): p for p in self._pairs}, []
        for node, step in cut(self.trace):
            if (flops := step.flops).terms:
                found.append((node, step, flops, [pairs[id(leaf)] for leaf in step.walk() if id(leaf) in pairs]))
        return found

    def pair_flops(self, new: int, context: int) -> int:
        """FLOPs of the contractions over (query, key) pairs, scores in full."""
        return sum(part.pairs for part in self.flops_by_part(new, context))

    @once
    def causal_flops(self, new: int, context: int) -> int:
        """FLOPs of a step where only the pairs that the mask lets through count."""
        return sum(part.causal for part in self.flops_by_part(new, context))

    @once
    def expanded_flops(self, new: int, context: int, *, causal: bool = False) -> int:
        """The same with the keys and values of latent attention written out per head; without latents, no difference.

        Fewer FLOPs for a long text, because a pair then costs the width of a head and not of the latent; more for one new
        token, because the keys and values of the whole context are made again.
        """
        values = self._values(new, context)
        total = self.causal_flops(new, context) if causal else self.counts.flops_at(new, context)
        for node, latent in self._latents.items():
            here = [p for p in self._pairs if node in p.leaf.path()]
            for p in here:
                wide = {Role.LATENT_SCORES: latent.nope, Role.MIX_LATENTS: latent.value}.get(p.leaf.parent.role)
                if wide is not None and any(
                    int(d) == int(latent.rank) and d.symbols & latent.rank.symbols for d in p.leaf.inputs[1].shape
                ):
                    flops = p.flops(values) * (p.share(values) if causal else 1)
                    total -= int(flops - flops * Fraction(int(wide), int(latent.rank)))
            made = sum(leaf.flops.at(values) for leaf in latent.reads) * int(node.layer_count)
            total += made * context // new - made
        return total

    def least_flops(self, new: int, context: int) -> int:
        """The fewer FLOPs of the two forms of latent attention, masked pairs left out: what a bound on time may count."""
        absorbed = self.causal_flops(new, context)
        return min(absorbed, self.expanded_flops(new, context, causal=True)) if self._latents else absorbed

    def training_flops_per_token(self, context: int, *, causal: bool = False) -> Fraction:
        """FLOPs of forward and backward for one token of texts of `context` tokens, logits for all of them.

        The backward pass costs twice the forward pass: one contraction for the inputs' gradient, one for the weights'.
        Latent attention is trained with its keys and values written out.
        """
        head = sum(n.flops.at(self._values(1, 1)) for n in self.trace.root.children if n.role is HEAD)
        return Fraction(3 * (self.expanded_flops(context, context, causal=causal) + (context - 1) * head), context)

    @cached_property
    def _pairs(self) -> tuple[_Pairs, ...]:
        """The contractions over (query, key) pairs: two axes that vary with T and S, in a layer that keeps rows."""
        masks = {k.layers: k.mask for k in self.trace.kept if k.mask is not None}
        new, found = Poly.of(self.trace.root.inputs[0].shape[0]), []
        for node in self.trace.root.children:
            for leaf in node.walk() if node.layers in masks else ():
                if leaf.own_flops is not None and leaf.note:
                    free = [d.expr for d in _letters(leaf).values() if d.expr.is_free]
                    if len(free) == 2 and new in free:
                        found.append(
                            _Pairs(
                                leaf,
                                int(node.layer_count),
                                new,
                                next(p for p in free if p != new),
                                masks[node.layers],
                            )
                        )
        return tuple(found)

    @cached_property
    def _latents(self) -> dict[Node, Latent]:
        """Of each kind of layer with latent attention: how wide the latent and the heads' keys and values are."""
        found = {}
        for node in self.trace.root.children:
            steps = (
                {n.role: n for n in node.walk() if n.role in (Role.LATENT_QUERIES, Role.LATENT_VALUES)}
                if node.layers is not None
                else {}
            )
            if len(steps) == 2:
                (_, nope, rank), (heads, value, _) = (
                    steps[role].inputs[1].shape for role in (Role.LATENT_QUERIES, Role.LATENT_VALUES)
                )
                found[node] = Latent(heads, nope, value, rank, tuple(steps.values()))
        return found

    def _values(self, new: int, context: int) -> Mapping[str, int]:
        return self.counts.values(T=new, S=context)


def _letters(leaf: Node) -> dict[str, Dim]:
    """The size of each axis of an einsum's subscripts."""
    terms = leaf.note.partition("->")[0].split(",")
    return {letter: d for term, x in zip(terms, leaf.inputs) for letter, d in zip(term, x.shape)}
