"""Low-rank adapters: the matrices that LoRA and DoRA add to a model's own, and the number of parameters that they
train.

An adapted matrix [out, in] gets two more, [rank, in] and [out, rank] (LoRA, arXiv 2106.09685, 4.1), and with DoRA a
magnitude for each of its outputs (arXiv 2402.09353, 4.1). PEFT decides which matrices are adapted: a target is the end
of a module's name, `all-linear` is every linear layer except the output head. `adapters.toml` has its defaults.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated

import msgspec

from ..engine.architectures import Architecture
from ..engine.errors import Problem, nearest, shorten
from ..engine.files import read_text
from ..engine.steps import Role
from ..engine.tensors import Weight
from .parameters import Counts
from .parts import HEAD, LOOKED_UP

ALL_LINEAR = "all-linear"
BIASES = {"none": "", "all": "every bias of the model", "lora_only": "the biases of the adapted layers"}
RANK = 8  # where none is given, as in PEFT
MOST_RANK = 65_536
MOST_TARGETS = 100


class Kind(Enum):
    """The kind of a module, as an adapter sees it."""

    LINEAR = "linear layer"
    EMBEDDING = "embedding"
    HEAD = "output head"
    STACK = "stack of experts"
    OTHER = "other"


# What a matrix is by the steps that read it; each of the others is a linear layer.
_READERS = {
    Kind.EMBEDDING: (*LOOKED_UP, Role.RELATIVE_BIAS, Role.NGRAM_EMBEDDING),
    Kind.HEAD: (HEAD, Role.TASK_HEAD),
}
_VOCABULARY = ("vocab_size",)
# The same table under other names, for an encoder and a decoder.
TWICE = {
    "bart": ("model.encoder.embed_tokens", "model.decoder.embed_tokens"),
    "t5": ("encoder.embed_tokens", "decoder.embed_tokens"),
}
# What the head that is the input table too is called, where it is not lm_head.
TIED_HEADS = {
    "albert": "predictions.decoder",
    "bert": "cls.predictions.decoder",
    "biogpt": "output_projection",
    "distilbert": "vocab_projector",
    "electra": "generator_lm_head",
    "modernbert": "decoder",
    "modernbert_decoder": "decoder",
    "mpnet": "lm_head.decoder",
    "nomic_bert": "cls.predictions.decoder",
    "roberta": "lm_head.decoder",
    "whisper": "proj_out",
}


@dataclass(frozen=True)
class Adapter:
    """The options of an adapter. `targets` None: PEFT's default for the model type."""

    rank: int = RANK
    targets: tuple[str, ...] | None = None
    dora: bool = False
    bias: str = "none"
    saved: tuple[str, ...] = ()  # modules that are trained in full, beside the adapters


@dataclass(frozen=True)
class Module:
    """A module of one weight, or of an expert's stack, in each of its layers: its name in transformers, without
    `.weight`, and the sizes of one member."""

    name: str
    kind: Kind
    outputs: int
    inputs: int
    weights: tuple[Weight, ...]
    members: int = 1
    is_subclass: bool = False  # of a linear layer: adapted like one, but never quantized by bitsandbytes

    @property
    def layers(self) -> tuple[int, ...]:
        return self.weights[0].numbered or (0,)

    def named(self, layer: int) -> str:
        """The name in one layer."""
        return self.name.replace("{i}", str(layer))

    @property
    def elements(self) -> int:
        """The weights of one copy."""
        return self.outputs * self.inputs * self.members

    @property
    def is_quantized(self) -> bool:
        """Whether bitsandbytes quantizes it in transformers: only linear layers themselves."""
        return self.kind is Kind.LINEAR and not self.is_subclass


@dataclass(frozen=True)
class Adapted:
    """A module that is adapted in some of its layers, with the number of parameters in each."""

    module: Module
    layers: tuple[int, ...]
    rank: int
    low_rank: int
    magnitudes: int

    @property
    def count(self) -> int:
        return (self.low_rank + self.magnitudes) * len(self.layers)


@dataclass(frozen=True)
class Adapters:
    """The trained part of a model: its adapters, and the modules that are trained in full as well."""

    adapter: Adapter
    targets: tuple[str, ...]
    is_default: bool  # the targets are those of PEFT for the model type
    modules: tuple[Adapted, ...]
    biases: int
    saved: int

    @property
    def total(self) -> int:
        """Trainable parameters."""
        return sum(one.count for one in self.modules) + self.biases + self.saved

    @property
    def low_rank(self) -> int:
        """Elements of the low-rank matrices."""
        return sum(one.low_rank * len(one.layers) for one in self.modules)

    @property
    def magnitudes(self) -> int:
        """Elements of DoRA's magnitude vectors."""
        return sum(one.magnitudes * len(one.layers) for one in self.modules)

    def holds(self, weight: Weight) -> bool:
        """Whether any copy of a weight is adapted."""
        return weight in self._weights

    @cached_property
    def _weights(self) -> frozenset[Weight]:
        return frozenset(w for one in self.modules for w in one.module.weights)

    def rank_of(self, weight: Weight) -> int:
        """The rank of a weight's adapter; 0 if it has none."""
        return next((one.rank for one in self.modules if weight in one.module.weights), 0)


# --- what PEFT says ---------------------------------------------------------------------------------------------------

_Names = Annotated[list[str], msgspec.Meta(min_length=1)]


class Stacked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """PEFT's translation, for some model types, of targets that name an expert's matrix."""

    router: str
    gate: str
    up: str
    down: str
    model_types: _Names


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """PEFT's rules, from `adapters.toml`."""

    defaults: dict[str, _Names]
    stacked: list[Stacked]


@cache
def facts() -> Facts:
    """PEFT's defaults, and the model types whose experts it adapts."""
    text = read_text(Path(__file__).parent / "adapters.toml")
    return msgspec.convert(tomllib.loads(text), Facts)


def default_targets(model_type: str, peft: Facts | None = None) -> tuple[str, ...] | None:
    """The modules that PEFT adapts by default, or None if it requires targets."""
    known = (peft or facts()).defaults
    return tuple(known[model_type]) if model_type in known else None


def _stacked(model_type: str, peft: Facts | None) -> Stacked | None:
    return next((one for one in (peft or facts()).stacked if model_type in one.model_types), None)


# --- the modules of a model -------------------------------------------------------------------------------------------


# Model types whose router is a linear layer of transformers 5; of all others it is a module of another class.
LINEAR_ROUTERS = frozenset({"gemma4", "gemma4_text", "llama4", "llama4_text", "phimoe"})
# Of these it is a subclass of one, and of Falcon every linear layer is.
OWN_ROUTER, OWN_LINEAR = frozenset({"llama4", "llama4_text", "phimoe"}), frozenset({"falcon"})
# Model types whose Mamba layers read the output projection's weight themselves: PEFT refuses to adapt it.
MAMBA = frozenset({"falcon_h1", "falcon_mamba", "mamba", "mamba2", "nemotron_h"})
REFUSED = "out_proj"


def modules(counts: Counts, architecture: Architecture, model_type: str) -> tuple[Module, ...]:
    """Every module of transformers that holds weights, in the order of first use, derived from the forward pass's own
    weights.

    A linear layer is a matrix `….weight` that is neither a lookup table nor a head. For stacked experts, transformers
    has one module per parameter; a router is a module of another class.
    """
    read = {kind: _read_by(counts, roles) for kind, roles in _READERS.items()}
    transposed, grouped = _read_by(counts, (Role.CONV1D,)), _read_by(counts, (Role.GROUPED_LINEAR,))
    experts = {name for w in counts.weights if w.routed is not None for name in w.routed[0].expr.symbols}
    found: dict[tuple[str, tuple[int, ...] | None], Module] = {}
    for w in counts.weights:
        name, parts = _packed(w.name, architecture.fused)
        if w.routed is not None and (parts > 1 or "{e}" not in name) and len(_one_of_stack(w)) == 2:
            outputs, inputs = _one_of_stack(w)
            before = found.get((name, w.layers))
            if before is not None:
                joined = replace(before, outputs=before.outputs + outputs, weights=(*before.weights, w))
            else:
                joined = Module(name, Kind.STACK, outputs, inputs, (w,), int(w.routed[0]))
            found[name, w.layers] = joined
            continue
        sizes = [int(d) for d in w.shape]
        outputs, inputs = (sizes[0], sizes[1]) if len(sizes) == 2 else (sizes[0] if sizes else 1, 1)
        if w in transposed:
            outputs, inputs = inputs, outputs
        is_matrix = name.endswith(".weight") and len(sizes) == 2
        kind = next((kind for kind, weights in read.items() if w in weights), Kind.LINEAR) if is_matrix else Kind.OTHER
        rows = w.shape[0].expr.symbols if w.shape else frozenset[str]()
        if kind is Kind.HEAD and rows.isdisjoint(_VOCABULARY):
            kind = Kind.LINEAR  # what a head does before its scores
        is_router = not rows.isdisjoint(experts)
        if kind is Kind.LINEAR and is_router and model_type not in LINEAR_ROUTERS:
            kind = Kind.OTHER
        is_subclass = w in grouped or model_type in OWN_LINEAR or (is_router and model_type in OWN_ROUTER)
        members = 1 if w.members is None else int(w.members)
        module = Module(name.removesuffix(".weight"), kind, outputs, inputs, (w,), members, is_subclass)
        found[name, w.layers] = module
    for m in list(found.values()):
        if m.kind is Kind.EMBEDDING and m.weights[0] in read[Kind.HEAD]:
            head = TIED_HEADS.get(model_type, "lm_head")
            found[head, None] = replace(m, name=head, kind=Kind.HEAD)
            for name in TWICE.get(model_type, ()):
                found[name, None] = replace(m, name=name)
    return tuple(found.values())


def _read_by(counts: Counts, roles: Iterable[Role]) -> frozenset[Weight]:
    wanted = frozenset(roles)
    return frozenset(w for node in counts.trace.root.walk() if node.role in wanted for w in node.all_weights())


def _one_of_stack(w: Weight) -> list[int]:
    """The sizes of one member's matrix: [out, in]."""
    assert w.routed is not None
    sizes = [int(d) for d in w.shape]
    return sizes[1:] if w.members is None and sizes[0] == int(w.routed[0]) else sizes


def _packed(name: str, fused: Mapping[str, tuple[str, ...]]) -> tuple[str, int]:
    """The transformers name of the tensor that contains a published one, and its number of parts."""
    for packed, parts in fused.items():
        for part in parts:
            if f".{name}".endswith(f".{part}"):
                return name[: len(name) - len(part)] + packed, len(parts) + ("{e}" in part)
    return name, 1


# --- what is trained --------------------------------------------------------------------------------------------------


def adapters(
    counts: Counts,
    architecture: Architecture,
    model_type: str,
    adapter: Adapter,
    known: tuple[Module, ...] | None = None,
    peft: Facts | None = None,
) -> Adapters:
    """The trainable part of a model with an adapter; `modules` may be passed if they are known.

    Raises `Problem` for a target that the model does not have, and for modules that PEFT cannot adapt.
    """
    known = modules(counts, architecture, model_type) if known is None else known
    targets, is_default = adapter.targets, adapter.targets is None
    if targets is None:
        targets = default_targets(model_type, peft) or (ALL_LINEAR,)
        is_default = targets != (ALL_LINEAR,)
    chosen = list(_chosen(known, targets, model_type, adapter, peft))
    if not chosen:
        raise _not_found(known, targets)
    return Adapters(
        adapter,
        targets,
        is_default,
        tuple(chosen),
        _biases(counts, architecture, chosen, adapter.bias),
        _saved(counts, known, adapter.saved),
    )


def _chosen(
    known: tuple[Module, ...], targets: tuple[str, ...], model_type: str, adapter: Adapter, peft: Facts | None
) -> Iterator[Adapted]:
    rule = _stacked(model_type, peft) if any(m.kind is Kind.STACK for m in known) else None
    every = [t for t in targets if t.lower() == ALL_LINEAR]
    linear = [m for m in known if m.kind is Kind.LINEAR]
    if rule is None:
        named = [t for t in targets if t not in every]
        for m in known:
            is_refused = model_type in MAMBA and m.name.endswith(f".{REFUSED}")
            layers = _matching(m, named)
            if layers and is_refused:
                raise Problem(
                    f"target module {REFUSED}: PEFT refuses it in Mamba layers", "name others, such as in_proj"
                )
            if every and m.kind is Kind.LINEAR and not is_refused:
                layers = m.layers
            if layers and m.kind in (Kind.LINEAR, Kind.EMBEDDING, Kind.HEAD):
                yield _adapted(m, layers, adapter)
        return
    names = {t for t in targets if t not in every}
    if every:  # by the last part of each name, and the experts' matrices, as before they were stacked
        names |= {m.name.rpartition(".")[2] for m in linear} | {rule.router, rule.gate, rule.up, rule.down}

    def of(old: str) -> set[str]:
        return {name for name in names if name == old or name.endswith(f".{old}")}

    router, gate, up, down = of(rule.router), of(rule.gate), of(rule.up), of(rule.down)
    if bool(gate) != bool(up):
        raise Problem(
            f"target modules {', '.join(sorted(gate | up))}: gate and up matrices of experts are one parameter",
            f"name both {rule.gate} and {rule.up}, or neither",
        )
    rest = tuple(sorted(names - router - gate - up - down))
    parameters = {end for end, asked in (("gate_up_proj", gate), ("down_proj", down)) if asked}
    for m in known:
        if m.kind is Kind.STACK:
            if m.name.rpartition(".")[2] in parameters:
                yield _adapted(m, m.layers, adapter, 2 if m.name.endswith("gate_up_proj") else 1)
        elif router and m.name.endswith(f".{rule.router}") and m.kind is not Kind.EMBEDDING:
            yield _adapted(m, m.layers, adapter)
        elif m.kind in (Kind.LINEAR, Kind.EMBEDDING, Kind.HEAD) and (layers := _matching(m, rest)):
            yield _adapted(m, layers, adapter)


def _matching(m: Module, targets: Iterable[str]) -> tuple[int, ...]:
    """The layers in which a module's name ends in a target."""
    targets = tuple(targets)
    if not targets:
        return ()
    if "{i}" not in m.name:
        return m.layers if any(_ends(m.name, t) for t in targets) else ()
    after = m.name.rpartition("{i}")[2]
    if any(after.endswith(f".{t}") for t in targets):
        return m.layers
    with_number = [t for t in targets if len(t) >= len(after)]
    return tuple(i for i in m.layers if any(_ends(m.named(i), t) for t in with_number)) if with_number else ()


def _ends(name: str, target: str) -> bool:
    return name == target or name.endswith(f".{target}")


def _adapted(m: Module, layers: tuple[int, ...], adapter: Adapter, times: int = 1) -> Adapted:
    is_parameter = m.kind in (Kind.STACK, Kind.OTHER)
    if adapter.dora and is_parameter:
        raise Problem(
            f"DoRA of {m.name}: PEFT has none for stacked experts and their routers",
            "name other target modules, such as those of attention, or use LoRA",
        )
    rank = adapter.rank * times
    each = rank * (m.outputs + m.inputs) * m.members
    width = m.inputs if m.kind is Kind.EMBEDDING else m.outputs
    return Adapted(m, layers, rank, each, width * m.members if adapter.dora else 0)


def _not_found(known: tuple[Module, ...], targets: tuple[str, ...]) -> Problem:
    ends = list(dict.fromkeys(m.name.rpartition(".")[2] for m in known if m.kind is Kind.LINEAR))
    if not ends:
        return Problem("the model has no linear layers to adapt", "train it in full: --method full")
    wrong = ", ".join(shorten(t) for t in targets[:5])
    return Problem(
        f"target modules {wrong}: no linear layer of the model has such a name",
        nearest(targets[0], ends, f"name some of {', '.join(ends[:20])}, or {ALL_LINEAR}"),
    )


def _biases(counts: Counts, architecture: Architecture, chosen: Iterable[Adapted], which: str) -> int:
    """Biases that are also trained: `all` means every parameter with that name, as in PEFT."""
    if which == "none":
        return 0
    named = [(_packed(w.name, architecture.fused)[0], w) for w in counts.weights]
    if which == "all":
        return sum(int(w.count) for name, w in named if name.endswith(".bias"))
    total = 0
    for one in chosen:
        for name, w in named:
            if name == f"{one.module.name}.bias" and w.layers == one.module.weights[0].layers:
                total += int(w.count) // int(w.layer_count) * len(one.layers)
    return total


def _saved(counts: Counts, known: tuple[Module, ...], names: tuple[str, ...]) -> int:
    """Parameters of the modules that are trained in full. Raises `Problem` for an unknown name."""
    total = 0
    for name in names:
        below = f".{name}."
        found = sum(int(w.count) for w in counts.weights if below in f".{w.name}.")
        if not found:  # a head that is the input table too is trained as a table of its own
            found = sum(m.elements for m in known if m.kind is Kind.HEAD and _ends(m.name, name))
        if not found:
            raise Problem(f"modules to save, {shorten(name)}: the model has no such module", "correct the name")
        total += found
    return total
