"""Bytes that the devices of a split exchange in a step, collective by collective, and the minimum time this takes.

The messages follow from how the weights are cut. A part of a layer that is cut ends in a sum over the tensor-parallel
devices (all-reduce), as do the rows of a vocabulary that is cut; logits are gathered (all-gather). If devices have
their own sequences and experts are divided, tokens travel to the experts and back (dispatch and combine). A pipeline
stage sends its result to the next. The factors are those of NCCL's own test programs (`doc/PERFORMANCE.md`): of a
message of M bytes, each of n devices sends 2·M·(n − 1)/n in an all-reduce and M·(n − 1)/n in an all-gather.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from msgspec import Struct

from ..engine.array import Node
from ..engine.dims import Poly
from ..engine.steps import Role
from ..engine.tensors import Weight
from .arrays import size
from .conditions import Conditions
from .costs import Bound, Costs, Ratio, longer
from .devices import cut_axis, weight_axis
from .parts import HEAD, cut
from .splits import Split, padded

ALL_REDUCE, ALL_GATHER, DISPATCH, COMBINE, SEND = "all-reduce", "all-gather", "dispatch", "combine", "send"
ITEM_BYTES = 2  # bytes of an activation: 16 bits
# Types of dispatched tokens: bytes of an element, bytes of a scale, and elements per scale.
DISPATCH_TYPES: dict[str, tuple[int, int, int]] = {"bfloat16": (2, 0, 1), "fp8": (1, 4, 128)}


class Transfer(Struct, frozen=True):
    """One kind of message in a step, with all its repetitions: the bytes that one device sends, and those of all
    devices together.

    `sent` is for the device that sends the most, summed over the stages, which a token passes through one by one.
    """

    kind: str
    after: str  # the word for the step whose result travels
    times: int
    among: int  # devices that take part in one message
    sent: Fraction
    total: Fraction

    def of_texts(self, fullest: int, batch: int) -> Transfer:
        """Like this, for these numbers of sequences on the busiest devices and in total."""
        return Transfer(self.kind, self.after, self.times, self.among, self.sent * fullest, self.total * batch)


def transfers(
    costs: Costs, split: Split, new: int, given: Conditions, dispatch: str = "bfloat16"
) -> tuple[Transfer, ...]:
    """The messages between the devices of a split in a step of `new` tokens per sequence, in forward order; none on one
    device.

    Activations have 16 bits; dispatched tokens have the given type, with a scale of 4 bytes for every 128 numbers in
    FP8. A token is sent once to each other device that has any of its experts; their expected number assumes that
    tokens choose evenly.
    """
    if split.devices == 1:
        return ()
    fullest = _fullest(split, given)
    return tuple(
        t.of_texts(fullest, given.batch) for t in _messages(costs, split, new, given.tokens, dispatch).transfers
    )


def _fullest(split: Split, given: Conditions) -> int:
    """The number of sequences on the devices that have the most."""
    return -(-given.batch // split.data)


def link_seconds(found: tuple[Transfer, ...], split: Split, new: int, given: Conditions) -> Fraction:
    """The minimum time of the messages: the bytes that one device sends, divided by the one-way bandwidth of its links,
    one message after the other. Stages work at the same time if there are tokens for them.

    Raises ValueError if the machine states no link.
    """
    return Fraction(*_seconds(sum((t.sent for t in found), Fraction(0)), split, new, given))


def _seconds(sent: Fraction, split: Split, new: int, given: Conditions) -> Ratio:
    if given.machine.link is None:
        raise ValueError("a time on links needs a machine that states them")
    at_once = min(split.pipeline, new * given.batch)
    return sent.numerator, sent.denominator * given.machine.link.one_way * at_once


LINKS = "links"


class Limits(Struct, frozen=True):
    """The limits of a step on the devices of a split: seconds of compute and of memory, and those of `sending` on
    links; None if the machine states none and there is something to send."""

    bound: Bound
    sending: Ratio | None

    @property
    def compute(self) -> Fraction:
        return self.bound.compute_seconds

    @property
    def memory(self) -> Fraction:
        return self.bound.memory_seconds

    @property
    def links(self) -> Fraction | None:
        return None if self.sending is None else Fraction(*self.sending)

    @property
    def longest(self) -> Ratio:
        """The longest: at best, compute, reads and messages overlap."""
        return longer(self.bound.longest, self.sending) if self.sending else self.bound.longest

    @property
    def seconds(self) -> Fraction:
        """`longest` in lowest terms."""
        return Fraction(*self.longest)

    @property
    def limited_by(self) -> str:
        """The longest of the three: `COMPUTE`, `MEMORY` or `LINKS`."""
        return LINKS if self.longest is self.sending else self.bound.limited_by


def limits(costs: Costs, split: Split, new: int, given: Conditions, dispatch: str = "bfloat16") -> Limits:
    """The minimum times of a step of `new` tokens per sequence, with the expected number of chosen experts."""
    at_work = split.devices // split.pipeline * min(split.pipeline, new * given.batch)
    bound = costs.bound_on(at_work, new, given, expected=True)
    links: Ratio | None = 0, 1
    if split.devices > 1 and (sent := _messages(costs, split, new, given.tokens, dispatch).sent):
        links = _seconds(sent * _fullest(split, given), split, new, given) if given.machine.link else None
    return Limits(bound, links)


def devices_with_experts(experts: int, chosen: int, split: Split) -> Fraction:
    """The expected number of other devices that have any of a token's experts, if all choices are equally likely."""
    on_each = experts // split.expert
    none = Fraction(1)
    for i in range(chosen):  # each choice misses the device's experts too
        none *= Fraction(experts - on_each - i, experts - i)
    return (split.tensor * split.data - 1) * (1 - none)


# One kind of message in some layers with all its repetitions: the kind, the label of the preceding step, the
# repetitions, the devices that take part, and the total bytes over all devices; each device in a tensor-parallel group
# sends an equal share of them.
Message: TypeAlias = tuple[str, str, int, int, int | Fraction]


class Messages(NamedTuple):
    """The messages of a step with one sequence; in `total`, those with one sequence in every group; and everything that
    one device sends."""

    transfers: tuple[Transfer, ...]
    sent: Fraction


_MESSAGES: WeakKeyDictionary[Costs, dict[tuple[Split, int, int, str], Messages]] = WeakKeyDictionary()


def _messages(costs: Costs, split: Split, new: int, context: int, dispatch: str) -> Messages:
    """The messages of a step with one sequence; their size is proportional to the number of sequences."""
    kept, key = _MESSAGES.setdefault(costs, {}), (split, new, context, dispatch)
    if key not in kept:
        merged: dict[tuple[str, str], Message] = {}
        for kind, after, times, among, total in _Step(costs, split, new, context, dispatch).found():
            if total:
                _, _, times_before, _, before = merged.get((kind, after), (kind, after, 0, among, 0))
                merged[kind, after] = kind, after, times_before + times, among, before + total
        sent = Fraction(sum([total for _, _, _, _, total in merged.values()])) / split.tensor
        kept[key] = Messages(
            tuple(
                [
                    Transfer(kind, after, times, among, Fraction(total) / split.tensor, Fraction(total))
                    for kind, after, times, among, total in merged.values()
                ]
            ),
            sent,
        )
    return kept[key]


class _Step:
    """A step with one sequence on the devices of a split."""

    def __init__(self, costs: Costs, split: Split, new: int, context: int, dispatch: str):
        self.costs, self.split, self.dispatch = costs, split, DISPATCH_TYPES[dispatch]
        values = costs.counts.values(T=new, S=context)
        self.at: Callable[[Poly], int] = lambda polynomial: polynomial.at(values)

    def found(self) -> list[Message]:
        found: list[Message] = []
        for part in parts_of(self.costs):
            step, layers = part.step, part.layers
            found += [
                self._collective(ALL_REDUCE, str(leaf.role or step.role), layers, size(leaf.outputs[0]))
                for leaf in part.inside
            ]
            if step.role is HEAD and part.is_cut:
                found.append(self._collective(ALL_GATHER, str(step.role), layers, self._padded(step)))
            elif part.is_by_heads:
                pass  # each device applies its own heads
            elif part.routed and self.split.data > 1:
                found += self._to_experts(step, layers, part.routed[0])
                kind = ALL_REDUCE if part.is_cut else ALL_GATHER
                found.append(self._collective(kind, str(step.role), layers, size(step.outputs[0])))
            elif part.is_cut or part.routed:
                found.append(self._collective(ALL_REDUCE, str(step.role), layers, size(step.outputs[0])))
        if self.split.pipeline > 1:
            found.append(self._between_stages())
        return found

    def _collective(self, kind: str, after: str, times: int, elements: Poly | int) -> Message:
        """A sum over, or a gather from, the tensor-parallel devices of each group."""
        n = self.split.tensor
        message = (elements if isinstance(elements, int) else self.at(elements)) * ITEM_BYTES * times
        return kind, after, times, n, (2 if kind == ALL_REDUCE else 1) * (n - 1) * message

    def _padded(self, head: Node) -> int:
        """Logits of a sequence, including padding."""
        vocabulary = int(head.outputs[0].shape[-1])
        return self.at(size(head.outputs[0])) // vocabulary * padded(vocabulary, self.split.tensor)

    def _to_experts(self, part: Node, layers: int, weight: Weight) -> list[Message]:
        """Send each token to the devices that have its experts, and back."""
        assert weight.routed is not None
        inside = [n for n in part.walk() if any(w.routed is not None for w in n.weights)]
        devices = self.split.tensor * self.split.data
        copies = devices_with_experts(int(weight.routed[0]), int(weight.routed[1]), self.split) * layers
        tokens = self.at(inside[0].inputs[0].shape[0].expr)
        width, back = int(inside[0].inputs[0].shape[-1]), int(inside[-1].outputs[0].shape[-1])
        item, scale, block = self.dispatch
        rows = (DISPATCH, width * item + -(-width // block) * scale), (COMBINE, back * ITEM_BYTES)
        return [(kind, str(part.role), layers, devices, copies * tokens * row) for kind, row in rows]

    def _between_stages(self) -> Message:
        """The result of each stage except the last, sent from each of its devices to one of the next."""
        by_layer = {i: top for top in self.costs.trace.root.children for i in top.layers or ()}
        each = len(by_layer) // self.split.pipeline
        last = [by_layer[i * each - 1] for i in range(1, self.split.pipeline)]
        message = sum(self.at(size(top.outputs[0])) for top in last) * ITEM_BYTES
        return SEND, "stage", len(last), 2, message * self.split.tensor


class Part(NamedTuple):
    """A part of a forward pass: its layers, its routed weights, whether others of its weights are cut, whether its
    result is split by heads, and the sums inside it."""

    step: Node
    layers: int
    routed: list[Weight]
    is_cut: bool
    is_by_heads: bool
    inside: list[Node]


_PARTS: WeakKeyDictionary[Costs, list[Part]] = WeakKeyDictionary()  # freed with the model's costs


def parts_of(costs: Costs) -> list[Part]:
    """The parts of a forward pass, which are the same in every split."""
    kept = _PARTS.setdefault(costs, [])
    if not kept:
        kept.extend([_part(top, step) for top, step in cut(costs.trace)])
    return kept


def _part(top: Node, step: Node) -> Part:
    weights = step.all_weights()
    routed = [w for w in weights if w.routed is not None]
    is_cut = any(w.routed is None and weight_axis(w) is not None for w in weights)
    is_by_heads = cut_axis(step.outputs[0].shape) is not None
    return Part(
        step, 1 if top.layers is None else len(top.layers), routed, is_cut, is_by_heads, _sums_inside(step, top)
    )


def _sums_inside(step: Node, layer: Node) -> list[Node]:
    """The products inside a part that each device computes only a share of and that are narrower than the part's
    result: they are summed where they are used. Rows of n-grams are too, since each device holds only some of them."""
    of_ngrams = [leaf for leaf in step.walk() if leaf.role is Role.NGRAM_EMBEDDING]
    if layer.layers is None:
        return of_ngrams
    width = step.outputs[0].shape[-1].expr
    products = [x for x in step.walk() if x.own_flops is not None]
    shares = [x for x in products if is_sum_of_shares(x) and x.outputs[0].shape[-1].expr != width]
    return of_ngrams + shares


def is_sum_of_shares(leaf: Node) -> bool:
    """Whether a contraction sums along an axis that a weight is cut along."""
    if leaf.own_flops is None:
        return False
    subscripts, _, result = leaf.note.partition("->")
    if not result:
        return False
    for term, x in zip(subscripts.split(","), leaf.inputs):
        weight = x.origin.source
        if isinstance(weight, Weight) and weight.routed is None and len(term) == len(weight.shape):
            at = weight_axis(weight)
            if at is not None and term[at] not in result:
                return True
    return False
