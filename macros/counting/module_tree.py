"""The modules of a model in transformers, as PEFT and bitsandbytes see them: their names, kinds and sizes, derived from
the weights of the forward pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from ..engine.architectures import Architecture
from ..engine.steps import Role
from ..engine.tensors import Weight
from .parameters import Counts
from .parts import HEAD, LOOKED_UP


class Kind(Enum):
    """The kind of a module, as an adapter sees it."""

    LINEAR = "linear layer"
    EMBEDDING = "embedding"
    HEAD = "output head"
    CONVOLUTION = "convolution"
    STACK = "stack of experts"
    OTHER = "other"


# The kind of a matrix by the steps that read it; any other is a linear layer.
_READERS = {
    Kind.EMBEDDING: (*LOOKED_UP, Role.RELATIVE_BIAS, Role.NGRAM_EMBEDDING),
    Kind.HEAD: (HEAD, Role.TASK_HEAD),
}
_VOCABULARY = ("vocab_size",)


@dataclass(frozen=True)
class Module:
    """A parameter of transformers in each of its layers, and the sizes of one member.

    A weight is named after its module, without `.weight`. Any other parameter, such as an expert stack or a bias, keeps
    its own name. `groups`: those of a convolution.
    """

    name: str
    kind: Kind
    outputs: int
    inputs: int
    weights: tuple[Weight, ...]
    members: int = 1
    is_subclass: bool = False  # subclass of a linear layer: adapted like one, but never quantized by bitsandbytes
    is_weight: bool = True
    shape: tuple[int, ...] = ()
    groups: int = 1
    is_copy: bool = False  # another name of a module that several layers share

    @property
    def layers(self) -> tuple[int, ...]:
        return self.weights[0].numbered or (0,)

    @property
    def holder(self) -> str:
        """The module that has the parameter."""
        return self.name if self.is_weight else self.name.rpartition(".")[0]

    @property
    def parameter(self) -> str:
        """The parameter's own name."""
        return f"{self.name}.weight" if self.is_weight else self.name

    @property
    def copies(self) -> int:
        """How many parameters have this name in each layer: one per expert if experts are separate modules."""
        return self.members if "{e}" in self.name else 1

    @property
    def elements(self) -> int:
        """The weights of one copy."""
        return self.outputs * self.inputs * self.members

    @property
    def is_quantized(self) -> bool:
        """Whether bitsandbytes quantizes it in transformers: only linear layers themselves."""
        return self.kind is Kind.LINEAR and not self.is_subclass and not self.is_copy


def modules(counts: Counts, architecture: Architecture) -> tuple[Module, ...]:
    """Every parameter of transformers, in the order of first use.

    A linear layer is a matrix `….weight` that is neither a lookup table nor a head. For stacked experts, transformers
    has one parameter for all; a router is a module of another class.
    """
    peft = architecture.peft
    read = {kind: _read_by(counts, roles) for kind, roles in _READERS.items()}
    transposed, grouped = _read_by(counts, (Role.CONV1D,)), _read_by(counts, (Role.GROUPED_LINEAR,))
    stems = _read_by(counts, (Role.CONV_STEM,))
    experts = {
        name for w in counts.weights if w.routed is not None and w.is_matrix for name in w.routed[0].expr.symbols
    }
    found: dict[tuple[str, tuple[int, ...] | None], Module] = {}
    for w in counts.weights:
        name, parts = packed(w.name, architecture.fused)
        is_weight = name.endswith(".weight")
        short = name.removesuffix(".weight")
        sizes = [int(d) for d in w.shape]
        if w.routed is not None and (parts > 1 or "{e}" not in name) and len(_one_of_stack(w)) == 2:
            outputs, inputs = _one_of_stack(w)
            before = found.get((short, w.layers))
            if before is not None:
                outputs += before.outputs
            weights = (*before.weights, w) if before is not None else (w,)
            members = int(w.routed[0])
            shape = (members, outputs, inputs) if parts > 1 or len(sizes) < 3 else tuple(sizes)
            found[short, w.layers] = Module(
                short, Kind.STACK, outputs, inputs, weights, members, is_weight=is_weight, shape=shape
            )
            continue
        outputs, inputs = (sizes[0], sizes[1]) if len(sizes) == 2 else (sizes[0] if sizes else 1, 1)
        if w in transposed:
            outputs, inputs = inputs, outputs
        is_matrix = is_weight and len(sizes) == 2
        kind = next((kind for kind, weights in read.items() if w in weights), Kind.LINEAR) if is_matrix else Kind.OTHER
        rows = w.shape[0].expr.symbols if w.shape else frozenset[str]()
        if kind is Kind.HEAD and rows.isdisjoint(_VOCABULARY):
            kind = Kind.LINEAR  # the part of a head before its scores
        is_router = not rows.isdisjoint(experts)
        if kind is Kind.LINEAR and is_router and not peft.linear_router:
            kind = Kind.OTHER
        if kind is Kind.LINEAR and short.rpartition(".")[2] in peft.tables:
            kind = Kind.EMBEDDING
        if kind is not Kind.OTHER and peft.foreign and short.startswith(peft.foreign):
            kind = Kind.OTHER
        is_subclass = w in grouped or peft.own_linear or (is_router and peft.own_router)
        groups = 1
        if is_weight and len(sizes) == 3:
            kind = Kind.CONVOLUTION
            groups = 1 if w in stems or sizes[0] % sizes[1] else sizes[0] // sizes[1]
            inputs = sizes[1] * groups
        members = 1 if w.members is None else int(w.members)
        module = Module(
            *(short, kind, outputs, inputs, (w,), members, is_subclass, is_weight, tuple(sizes), groups),
        )
        found[short, w.layers] = module
    for m in list(found.values()):
        if m.kind is Kind.EMBEDDING and m.weights[0] in read[Kind.HEAD]:
            found[peft.tied_head, None] = replace(m, name=peft.tied_head, kind=Kind.HEAD)
            bias = found.get((f"{peft.tied_head.rpartition('.')[0]}.bias", None))
            if bias is not None and (f"{peft.tied_head}.bias", None) not in found:  # one of what the head is in
                found[f"{peft.tied_head}.bias", None] = replace(bias, name=f"{peft.tied_head}.bias", is_copy=True)
            for name in peft.tied_tables:
                found[name, None] = replace(m, name=name)
    shared = _shared(counts, peft.shared, tuple(found.values())) if peft.shared else ()
    return (*found.values(), *shared)


def _shared(counts: Counts, part: str, known: tuple[Module, ...]) -> Iterator[Module]:
    """The additional names of modules that layers share, in the part with this name: transformers has one in each."""
    used: dict[Weight, list[int]] = {}
    for call in counts.trace.root.children:
        for w in call.all_weights() if call.layers is not None and len(call.layers) > 1 else ():
            used.setdefault(w, []).extend(call.layers or ())
    for m in known:
        before, first, after = _first_number(m.name)
        if first is not None and f".{part}." in m.name:
            for layer in used.get(m.weights[0], ()):
                if layer != first:
                    yield replace(m, name=f"{before}{layer}{after}", is_copy=True)


def _first_number(name: str) -> tuple[str, int | None, str]:
    """A name's beginning, the number that it contains, and the rest."""
    parts = name.split(".")
    at = next((n for n, part in enumerate(parts) if part.isdecimal()), None)
    if at is None or "{i}" in ".".join(parts[:at]):
        return name, None, ""
    return "".join(f"{part}." for part in parts[:at]), int(parts[at]), "".join(f".{part}" for part in parts[at + 1 :])


def _read_by(counts: Counts, roles: Iterable[Role]) -> frozenset[Weight]:
    wanted = frozenset(roles)
    return frozenset(w for node in counts.trace.root.walk() if node.role in wanted for w in node.all_weights())


def _one_of_stack(w: Weight) -> list[int]:
    """The sizes of one member's matrix: [out, in]."""
    assert w.routed is not None
    sizes = [int(d) for d in w.shape]
    return sizes[1:] if w.members is None and sizes[0] == int(w.routed[0]) else sizes


def packed(name: str, fused: Mapping[str, tuple[str, ...]]) -> tuple[str, int]:
    """The transformers name of the tensor that contains a published one, and its number of parts."""
    for whole, parts in fused.items():
        for part in parts:
            if f".{name}".endswith(f".{part}"):
                return name[: len(name) - len(part)] + whole, len(parts) + ("{e}" in part)
    return name, 1
