"""FLOPs of a step: part by part, in full and with the causal half, with latents as they are or expanded per head."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import cache, cached_property

from msgspec import Struct

from ..engine.array import Node
from ..engine.cached_method import cached_method
from ..engine.dims import Call, Dim, Poly
from ..engine.interface import Mask
from ..engine.ops import (
    Canvas,
    CanvasAndWindow,
    Compressed,
    Full,
    Patches,
    PickedBlocks,
    PickedPools,
    Shared,
    SlidingWindow,
)
from ..engine.steps import OF_SOURCE, Holds, Role
from ..engine.tensors import SOURCE, CacheEntry
from ..engine.trace import Trace
from .arrays import varies
from .parameters import Counts
from .parts import HEAD, cut
from .weight_formats import WeightFormats


class PartFlops(Struct, frozen=True):
    """FLOPs of one step in all layers of a kind: the total, and those over (query, key) pairs, masked or not."""

    node: Node
    kind: object
    layers: int | None
    total: int
    pairs: int
    causal_pairs: int

    @property
    def name(self) -> str:
        """The name of the step in data: `attention`."""
        return str(self.node.role)

    @property
    def causal(self) -> int:
        """The FLOPs if only the pairs that the mask lets through are counted."""
        return self.total - self.pairs + self.causal_pairs


class Pairs(Struct, frozen=True):
    """A contraction over (query, key) pairs, with the mask's rule; None if nothing is hidden."""

    leaf: Node
    layers: int
    queries: Poly
    keys: Poly
    mask: Mask | None

    def flops(self, values: Mapping[str, int]) -> int:
        """FLOPs in all layers, counting every pair."""
        return self.leaf.flops.at(values) * self.layers

    def share(self, values: Mapping[str, int]) -> tuple[int, int]:
        """The pairs that the mask keeps, and all pairs: (1, 1) if it keeps every one."""
        if self.mask is None or isinstance(self.mask, (Canvas, CanvasAndWindow)):
            return 1, 1
        new, context = values["T"], values["S"]
        every = self.queries.at(values) * self.keys.at(values)
        return (self.pairs(context, values) - self.pairs(context - new, values), every) if every else (0, 1)

    def pairs(self, tokens: int, values: Mapping[str, int]) -> int:
        """Pairs of a sequence of `tokens` that the mask keeps; with an indexer, only the selected keys."""
        assert self.mask is not None
        picked = self.picked(values)
        if picked is None:
            return self.mask.pairs(tokens)
        if isinstance(rule := rule_of(self.mask), Compressed):
            return rule.picked_pairs(tokens, picked)
        return SlidingWindow(picked).pairs(tokens)

    def picked(self, values: Mapping[str, int]) -> int | None:
        """The maximum number of keys per query: `index_topk` if the keys are min(S, index_topk)."""
        call = least_of(self.keys)
        if isinstance(rule_of(self.mask), (Full, Compressed)) and call is not None:
            return min(p.at(values) for p in call.args if not p.is_free)
        return None


def rule_of(mask: Mask | None) -> Mask | None:
    """A mask's own rule, if its rows are an earlier layer's."""
    return mask.mask if isinstance(mask, Shared) else mask


class Latent(Struct, frozen=True):
    """The sizes of latent attention, and the steps that multiply queries and averages by the heads' matrices."""

    heads: Dim
    nope: Dim
    value: Dim
    rank: Dim
    reads: tuple[Node, ...]

    def written_out(self, pairs: Node) -> Dim | None:
        """The width of a head's own keys or values in a product over latents; None for any other product."""
        over_latents = any(
            int(size) == int(self.rank) and size.symbols & self.rank.symbols for size in pairs.inputs[1].shape
        )
        if not over_latents or pairs.parent is None:
            return None
        return self.nope if pairs.parent.role is Role.LATENT_SCORES else self.value


class Compute:
    """The FLOPs of one model. T new tokens end at a context of S tokens, the last new one included."""

    def __init__(self, counts: Counts):
        self.counts: Counts = counts
        self.trace: Trace = counts.trace
        self.formats: WeightFormats = counts.formats

    @cached_method
    def flops_by_part(self, new: int, context: int) -> tuple[PartFlops, ...]:
        """Each step with FLOPs, in forward order, by layer kind; the totals add up to `counts.flops_at`."""
        values = self.values(new, context)
        return tuple(
            [
                PartFlops(
                    step,
                    None if top.layers is None else top.kind,
                    None if top.layers is None else int(top.layer_count),
                    flops.at(values) * int(top.layer_count),
                    *_of_pairs(pairs, values),
                )
                for top, step, flops, pairs in self._parts
            ]
        )

    @cached_property
    def _parts(self) -> list[tuple[Node, Node, Poly, list[tuple[Pairs, Poly, int]]]]:
        """Each step with FLOPs: its layer, the step, FLOPs in one layer, and its contractions over pairs."""
        pairs = {id(p.leaf): p for p in self.pair_contractions}
        return [
            (
                top,
                step,
                flops.in_numbers(self.trace.symbols),
                self._alike([pairs[id(leaf)] for leaf in step.walk() if id(leaf) in pairs]),
            )
            for top, step in cut(self.trace)
            if (flops := step.flops).terms
        ]

    def _alike(self, pairs: Iterable[Pairs]) -> list[tuple[Pairs, Poly, int]]:
        """Group contractions with the same FLOPs over the same pairs: one of each group, its FLOPs in a layer with
        every size except T and S as a number, and the group's size."""
        found: dict[tuple[object, ...], tuple[Pairs, Poly, int]] = {}
        for p in pairs:
            flops = p.leaf.flops.in_numbers(self.trace.symbols)
            key = flops, p.layers, p.queries, p.keys, p.mask
            found[key] = p, flops, (found[key][2] if key in found else 0) + 1
        return list(found.values())

    @cached_method
    def pair_flops(self, new: int, context: int) -> tuple[int, int]:
        """FLOPs of the contractions over (query, key) pairs: scores in full, and those that the mask lets through."""
        return _of_pairs(self._pairs, self.values(new, context))

    @cached_property
    def _pairs(self) -> list[tuple[Pairs, Poly, int]]:
        return self._alike(self.pair_contractions)

    def causal_flops(self, new: int, context: int) -> int:
        """FLOPs of a step if only the pairs that the mask lets through are counted."""
        full, causal = self.pair_flops(new, context)
        return self.counts.flops_at(new, context) - full + causal

    def expanded_flops(self, new: int, context: int, *, causal: bool = False) -> int:
        """`causal_flops` with the keys and values of latent attention expanded per head; no difference without latents.

        Fewer FLOPs for long inputs, because a pair then costs the width of a head rather than of the latent; more for
        one new token, because the keys and values of the whole context are computed again.
        """
        values = self.values(new, context)
        total = self.causal_flops(new, context) if causal else self.counts.flops_at(new, context)
        for layer, latent in self.latents.items():
            for p, saved in self._over_latents(layer, latent):
                total -= int(p.flops(values) * (Fraction(*p.share(values)) if causal else 1) * saved)
            read = sum(leaf.flops.at(values) for leaf in latent.reads) * int(layer.layer_count)
            total += read * self.latent_rows(layer, new, context) // new - read
        return total

    def _over_latents(self, layer: Node, latent: Latent) -> list[tuple[Pairs, Fraction]]:
        """The products over a layer's latents, each with the share of its FLOPs that expanded keys and values save."""
        return [
            (p, 1 - Fraction(int(width), int(latent.rank)))
            for p in self.pair_contractions
            if layer in p.leaf.path() and (width := latent.written_out(p.leaf)) is not None
        ]

    def latent_rows(self, layer: Node, new: int, context: int) -> int:
        """The number of latents available to a step in a layer: the new ones, and earlier ones that the layer's mask
        lets a token see."""
        entry = self.latent_entry(layer)
        return context if entry is None or entry.mask is None else entry.mask.seen(context - new) + new

    def latent_entry(self, layer: Node) -> CacheEntry | None:
        """The latents that a layer keeps, or that another one keeps for it."""
        here = layer.layers or ()
        return next((k for k in self.trace.kept if k.layers == here and k.holds is Holds.LATENT), None)

    def least_flops(self, new: int, context: int) -> int:
        """The smaller count of the two forms of latent attention, without masked pairs: the FLOPs for a bound on
        time."""
        absorbed = self.causal_flops(new, context)
        return min(absorbed, self.expanded_flops(new, context, causal=True)) if self.latents else absorbed

    @cached_method
    def forms(self, new: int, context: int) -> tuple[tuple[int, int], ...]:
        """(FLOPs of products with weights, FLOPs of products of tokens with tokens), causal, for each form in which a
        step may be computed.

        There is one form. With latent attention there are two: latents as they are, or expanded per head.
        """
        whole, pairs = self.causal_flops(new, context), self.pair_flops(new, context)[1]
        if not self.latents:
            return ((whole - pairs, pairs),)
        values = self.values(new, context)
        written_out = pairs
        for layer, latent in self.latents.items():
            for p, saved in self._over_latents(layer, latent):
                written_out -= int(p.flops(values) * Fraction(*p.share(values)) * saved)
        expanded = self.expanded_flops(new, context, causal=True)
        return (whole - pairs, pairs), (expanded - written_out, written_out)

    def training_flops_per_token(self, context: int, *, causal: bool = False) -> Fraction:
        """FLOPs of forward and backward pass per token in sequences of `context` tokens, with the logits of every
        token.

        The backward pass costs twice the forward pass: one contraction for the inputs' gradient, one for the weights'.
        Latent attention is trained with its keys and values expanded.
        """
        flops = self.expanded_flops(context, context, causal=causal) + (context - 1) * self.head_flops
        return Fraction(3 * flops, context)

    @cached_property
    def head_flops(self) -> int:
        """FLOPs of the logits of one token."""
        return sum(n.flops.at(self.values(1, 1)) for n in self.trace.root.children if n.role is HEAD)

    @cached_property
    def pair_contractions(self) -> tuple[Pairs, ...]:
        """The contractions over (query, key) pairs: two axes that vary with T and S, in a layer that keeps rows, or
        with an encoder's input."""
        new = Poly.of(self.trace.root.inputs[0].shape[0])
        pairs: list[Pairs] = []
        for layer in self.trace.root.children:
            masks = self._masks(layer, new)
            for leaf in layer.walk() if masks or self.reads_source or not self.trace.kept else ():
                if leaf.own_flops is not None and leaf.note:
                    free = [size.expr for size in _letters(leaf).values() if varies(size.expr)]
                    of_patches = masks.get(free[1]) if len(free) == 2 else None
                    if isinstance(of_patches, Patches):
                        pairs.append(Pairs(leaf, int(layer.layer_count), free[0], free[1], of_patches))
                    elif len(free) == 2 and any(SOURCE in p.symbols for p in free):
                        pairs.append(Pairs(leaf, int(layer.layer_count), free[0], free[1], None))
                    elif len(free) == 2 and new in free:
                        keys = next((p for p in free if p != new), new)  # in an encoder-only model, each token sees all
                        call = least_of(keys)
                        behind = [m for p, m in masks.items() if call is not None and p in call.args]
                        mask = masks.get(keys) or next(iter(behind), list(masks.values())[-1] if masks else None)
                        pairs.append(Pairs(leaf, int(layer.layer_count), new, keys, mask))
        return tuple(pairs)

    @cached_property
    def reads_source(self) -> bool:
        """Whether an encoder reads an input in the first step that the layers attend to in every step."""
        return any(k.holds in OF_SOURCE for k in self.trace.kept)

    def _masks(self, layer: Node, new: Poly) -> dict[Poly, Mask]:
        """The mask rules of a layer, keyed by the number of rows that a step has for each."""
        masks: dict[Poly, Mask] = {}
        for k in self.trace.kept:
            if k.layers == (layer.layers or ()) and k.mask is not None and k.seen is not None and k.row is not None:
                rows = k.shape[0].expr if isinstance(k.mask, (Compressed, Patches)) else k.seen.expr + new
                if isinstance(k.mask, (PickedBlocks, PickedPools)):
                    masks[Poly.of(k.mask.reads(k.shape[0]))] = k.mask
                    masks[rows] = Full()
                else:
                    masks[rows] = k.mask
        return masks

    @cached_property
    def latents(self) -> dict[Node, Latent]:
        """For each kind of layer with latent attention, the widths of the latent and of the heads' keys and values."""
        latents: dict[Node, Latent] = {}
        for layer in (n for n in self.trace.root.children if n.layers is not None):
            reads = [n for n in layer.walk() if n.role in (Role.LATENT_QUERIES, Role.LATENT_VALUES)]
            steps = {n.role: n for n in reads}
            if len(steps) == 2:
                _, nope, rank = steps[Role.LATENT_QUERIES].inputs[1].shape
                heads, value, _ = steps[Role.LATENT_VALUES].inputs[1].shape
                latents[layer] = Latent(heads, nope, value, rank, tuple(reads))
        return latents

    def values(self, new: int, context: int) -> Mapping[str, int]:
        """Every size of the model, with this many new tokens and this context."""
        return self.counts.values(T=new, S=context)

    @cached_method
    def evaluated(self, new: int, context: int) -> Callable[[Poly], int]:
        """Evaluate polynomials for a step, each once, since many arrays have the same shape."""
        values = self.values(new, context)

        def value(polynomial: Poly) -> int:
            return polynomial.at(values)

        return cache(value)


def _of_pairs(alike: list[tuple[Pairs, Poly, int]], values: Mapping[str, int]) -> tuple[int, int]:
    """FLOPs of contractions over pairs: in full, and of the pairs that the mask lets through."""
    full = causal = 0
    for p, flops, number in alike:
        one, (some, every) = flops.at(values) * p.layers, p.share(values)
        full += one * number
        causal += one * some // every * number
    return full, causal


def least_of(size: Poly) -> Call | None:
    """The `min` expression that a size consists of, or None."""
    atoms = [atom for monomial in size.terms for atom, _ in monomial]
    return atoms[0] if len(atoms) == 1 and isinstance(atoms[0], Call) and atoms[0].op == "min" else None


def _letters(leaf: Node) -> dict[str, Dim]:
    """The size of each axis of an einsum's subscripts."""
    terms = leaf.note.partition("->")[0].split(",")
    return {letter: d for term, x in zip(terms, leaf.inputs) for letter, d in zip(term, x.shape)}
