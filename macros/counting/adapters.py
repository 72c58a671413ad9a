"""Low-rank adapters: the matrices that LoRA and DoRA add to a model's own, and the number of parameters that they
train.

An adapted matrix [out, in] gets two more, [rank, in] and [out, rank] (LoRA, arXiv 2106.09685, 4.1), and with DoRA a
magnitude for each of its outputs (arXiv 2402.09353, 4.1). PEFT decides which matrices are adapted, and this module
follows it option by option (`inject_adapter` in peft/tuners/tuners_utils.py). What PEFT knows about a model type is in
that type's `Peft`, next to its forward pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from ..engine.architectures import Architecture
from ..engine.errors import Problem, nearest, shorten
from ..engine.facts import Peft, Stacked
from ..engine.tensors import Weight
from ..engine.weightless import WEIGHTLESS
from .adapter_choice import ALL_LINEAR, CHOSEN, Adapter, Choice, Names, Pieces, Tree, is_every, written
from .module_tree import Kind, Module, modules
from .parameters import Counts

BIASES = {"none": "", "all": "every bias of the model", "lora_only": "the biases of the adapted layers"}
MOST_RANK = 65_536
MOST_TARGETS = 100
ADAPTABLE = (Kind.LINEAR, Kind.EMBEDDING, Kind.HEAD, Kind.CONVOLUTION)
STACKS = "gate_up_proj", "down_proj"  # what transformers calls the parameters of stacked experts
WITHIN = "lora_dropout", "lora_A", "lora_B", "lora_embedding_A", "lora_embedding_B", "lora_magnitude_vector", "default"


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
    targets: tuple[str, ...]  # and parameters
    is_default: bool  # the targets are PEFT's defaults for the model type
    modules: tuple[Adapted, ...]
    biases: int
    saved: int
    unmatched: tuple[str, ...] = ()  # names in the options that match no module or parameter

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


def adapters(
    counts: Counts,
    architecture: Architecture,
    adapter: Adapter,
    known: tuple[Module, ...] | None = None,
) -> Adapters:
    """The trainable part of a model with an adapter; `modules` may be passed if they are known.

    Raises `Problem` for options that PEFT refuses.
    """
    known = modules(counts, architecture) if known is None else known
    adapter = _as_peft_takes_it(adapter)
    tree = Tree(known, WEIGHTLESS.get(architecture.model_types[0], ()))
    _check(adapter)
    asked, is_default = _with_targets(adapter, architecture, tree)
    chosen = [*_adapted_modules(tree, asked, architecture.peft), *_adapted_parameters(tree, asked, architecture.peft)]
    if not chosen:
        raise _not_found(known, adapter)
    saved = _saved(tree, adapter, chosen)
    shown = adapter.targets if adapter.targets is not None else architecture.peft.targets if is_default else ()
    return Adapters(
        adapter,
        (*((shown,) if isinstance(shown, str) else shown), *adapter.parameters),
        is_default,
        tuple(chosen),
        _biases(known, adapter, chosen),
        sum(saved.values()),
        (*_unmatched(tree, adapter, asked, chosen), *[name for name, count in saved.items() if not count]),
    )


def _as_peft_takes_it(adapter: Adapter) -> Adapter:
    """The adapter, with a single target turned into a string if it means all linear layers."""
    targets = adapter.targets
    if targets is not None and not isinstance(targets, str) and len(targets) == 1 and is_every(targets[0]):
        return replace(adapter, targets=targets[0])
    return adapter


def _check(adapter: Adapter) -> None:
    """Raise `Problem` for options that contradict each other (`LoraConfig.__post_init__`)."""
    if isinstance(adapter.targets, str) and (adapter.layers is not None or adapter.layers_pattern):
        raise Problem(
            f"layers to adapt with the target {shorten(adapter.targets)}: PEFT takes them with names",
            "name the targets",
        )
    if adapter.layers_pattern and adapter.layers is None:
        raise Problem("a name of layers without their numbers", "give the layers to transform too")


# --- what is adapted --------------------------------------------------------------------------------------------------


def _with_targets(adapter: Adapter, architecture: Architecture, tree: Tree) -> tuple[Adapter, bool]:
    """The adapter with the targets that PEFT looks for in the modules of transformers 5, and whether they are PEFT's
    own.

    For experts that were linear layers before they were stacked, names of modules become names of parameters
    (`_convert_peft_config_moe` in peft/utils/transformers_weight_conversion.py), and a default is lost on the way.
    """
    peft = architecture.peft
    if peft.stacked is not None:
        return _stacked(adapter, peft.stacked, tree), False
    if adapter.targets is not None or (adapter.parameters and not peft.targets):
        return adapter, False
    if not peft.targets:
        raise _without_default(adapter)
    return replace(adapter, targets=peft.targets), True


def _without_default(adapter: Adapter) -> Problem:
    return Problem("no target modules: PEFT has no default for this model type", f"name some, or {ALL_LINEAR}")


def every_linear(architecture: Architecture, rank: int) -> Adapter:
    """The adapter of all linear layers that PEFT takes; in Mamba layers, all but one."""
    refused = architecture.peft.refused
    return Adapter(rank, ALL_LINEAR, excluded=(refused,) if refused else ())


def _stacked(adapter: Adapter, rule: Stacked, tree: Tree) -> Adapter:
    """The adapter with the names of stacked parameters and their ranks."""
    fused = {rule.router: "gate.weight", rule.gate: STACKS[0], rule.up: STACKS[0], rule.down: STACKS[1]}
    targets = adapter.targets
    if targets is None and not adapter.parameters:
        raise _without_default(adapter)
    if isinstance(targets, str):
        found = _spelled_out(adapter, fused, tree)
        if not found:
            return adapter
        targets = found
    rest: list[str] = []
    parameters = list(adapter.parameters)
    matched: dict[str, bool] = {}
    for target in targets or ():
        old = next((name for name in fused if target == name or target.endswith(f".{name}")), None)
        if old is None:
            rest.append(target)
        else:
            parameters.append(fused[old])
            matched[old] = True
    if (rule.gate in matched) != (rule.up in matched):
        raise Problem(
            f"target modules {rule.gate if rule.gate in matched else rule.up}: gate and up matrices of experts are one "
            "parameter",
            f"name both {rule.gate} and {rule.up}, or neither",
        )
    ranks = dict(adapter.ranks)
    if rule.gate in matched:
        ranks[f".*\\.{STACKS[0]}"] = 2 * adapter.rank
    return replace(
        adapter,
        targets=tuple(dict.fromkeys(rest)),
        parameters=tuple(dict.fromkeys(parameters)),
        ranks=tuple(ranks.items()),
    )


def _spelled_out(adapter: Adapter, fused: dict[str, str], tree: Tree) -> tuple[str, ...]:
    """The last parts of the names that an expression, or all-linear, matches."""
    if is_every(adapter.targets):
        linear = [m.name.rpartition(".")[2] for m in tree.known if m.kind is Kind.LINEAR]
        return tuple(dict.fromkeys([*linear, *fused]))
    choice = Choice(replace(adapter, layers=None))
    found: dict[str, bool] = {}
    stacks: dict[str, list[str]] = {}
    for m in tree.known:
        for layer in m.layers:
            for e in range(m.copies):
                name = written(m.parameter, layer, e)
                before, _, last = name.rpartition(".")
                stacks.setdefault(last, []).append(before)
                for key in (name, before):
                    if choice.of(key) == CHOSEN:
                        found[key.rpartition(".")[2]] = True
    for name, layer in tree.containers():
        key = written(name, layer)
        if choice.of(key) == CHOSEN:
            found[key.rpartition(".")[2]] = True
    for old, new in fused.items():
        if old not in found and any(choice.of(f"{holder}.{old}") == CHOSEN for holder in stacks.get(new, ())):
            found[old] = True
    return tuple(found)


def _adapted_modules(tree: Tree, adapter: Adapter, peft: Peft) -> Iterator[Adapted]:
    """The modules that the targets select. Raises `Problem` if PEFT cannot adapt one of them."""
    choice, ranks = Choice(adapter), Pieces([name for name, _ in adapter.ranks])
    rank_by = dict(adapter.ranks)
    for name, layer in tree.containers():
        if choice.of(written(name, layer)) == CHOSEN:
            raise _not_adaptable(written(name, layer))
    for m in tree.known:
        if not m.is_weight:
            continue
        by_rank: dict[tuple[int, int], list[int]] = {}
        alike: list[int] | None = None
        for layer in m.layers:
            if alike is None or choice.is_by_layer:
                alike = []
                for e in range(m.copies if choice.is_by_layer else 1):
                    name = written(m.name, layer, e)
                    if choice.of(name, m.kind is Kind.LINEAR) == CHOSEN:
                        alike += [rank_by.get(ranks.first(name) or "", adapter.rank)] * (
                            1 if choice.is_by_layer else m.copies
                        )
            for rank in dict.fromkeys(alike):
                by_rank.setdefault((rank, alike.count(rank)), []).append(layer)
        if by_rank:
            _check_adaptable(m, peft)
        for (rank, members), layers in by_rank.items():
            part = m if members == m.members else replace(m, members=members)
            yield _adapted(part, tuple(layers), rank, adapter)


def _check_adaptable(m: Module, peft: Peft) -> None:
    last = m.holder.rpartition(".")[2]
    if peft.refused and last in (peft.refused, "conv1d"):
        raise Problem(f"target module {last}: PEFT refuses it in Mamba layers", f"exclude it: exclude_modules {last}")
    if m.kind not in ADAPTABLE and m.is_weight and m.kind is not Kind.STACK:
        raise _not_adaptable(m.name)
    if m.kind is Kind.STACK and m.is_weight:
        raise _not_adaptable(m.name)


def _not_adaptable(name: str) -> Problem:
    return Problem(
        f"target module {name}: PEFT adapts linear layers, tables and convolutions",
        "name others, such as those of attention",
    )


def _adapted(m: Module, layers: tuple[int, ...], rank: int, adapter: Adapter) -> Adapted:
    """A module's adapter, with this many members in each of these layers."""
    if m.kind is Kind.CONVOLUTION:
        if rank % m.groups:
            raise Problem(
                f"target module {m.name}: a convolution of {m.groups:,} groups takes a rank that they divide",
                "name others, such as those of attention",
            )
        low_rank = rank * m.inputs * m.shape[2] + rank // m.groups * m.outputs
    else:
        low_rank = rank * (m.outputs + m.inputs)
    width = m.inputs if m.kind is Kind.EMBEDDING else m.outputs
    return Adapted(m, layers, rank, low_rank * m.members, width * m.members if adapter.dora else 0)


def _adapted_parameters(tree: Tree, adapter: Adapter, peft: Peft) -> Iterator[Adapted]:
    """The parameters adapted by name, mostly stacks of experts. Raises `Problem` where PEFT cannot adapt one."""
    if not adapter.parameters:
        return
    names, ranks = Names(adapter.parameters), Pieces([name for name, _ in adapter.ranks])
    rank_by, choice = dict(adapter.ranks), Choice(adapter)
    for m in tree.known:
        by_rank: dict[int, list[int]] = {}
        for layer in m.layers:
            for e in range(m.copies):
                key = written(m.parameter, layer, e)
                if names.have(key):
                    holder = written(m.holder, layer, e)
                    _check_parameter(m, key, adapter, peft)
                    if choice.of(holder, m.kind is Kind.LINEAR) == CHOSEN:
                        raise Problem(
                            f"target parameter {key}: its module is adapted as well", "leave it out of the targets"
                        )
                    by_rank.setdefault(rank_by.get(ranks.first(key) or "", adapter.rank), []).append(layer)
        for rank, layers in by_rank.items():
            members, a, b = m.shape if len(m.shape) == 3 else (1, *m.shape)
            yield Adapted(m, tuple(layers), rank, rank * members * (a + b), 0)


def _check_parameter(m: Module, key: str, adapter: Adapter, peft: Peft) -> None:
    last = m.holder.rpartition(".")[2]
    if peft.refused and last in (peft.refused, "conv1d"):
        raise Problem(f"target parameter {key}: PEFT refuses {last} in Mamba layers", "name others")
    if adapter.dora:
        raise Problem(
            f"DoRA of {key}: PEFT has none for stacked experts and their routers",
            "name other target modules, such as those of attention, or use LoRA",
        )
    if len(m.shape) not in (2, 3):
        what = f"target parameter {key} has {len(m.shape)} dimensions: PEFT adapts parameters of two or three"
        raise Problem(what, "name others")
    if m.holder == "":
        raise Problem(f"target parameter {key} belongs to no module", "name others")


def _not_found(known: tuple[Module, ...], adapter: Adapter) -> Problem:
    ends = list(dict.fromkeys(m.name.rpartition(".")[2] for m in known if m.kind is Kind.LINEAR))
    targets = (adapter.targets,) if isinstance(adapter.targets, str) else adapter.targets or ()
    wrong = ", ".join(shorten(t) for t in (*targets, *adapter.parameters)[:5])
    mend = f"name some of {', '.join(ends[:20])}, or {ALL_LINEAR}"
    return Problem(
        f"target modules {wrong}: no module that is left has such a name",
        nearest(targets[0], ends, mend) if targets else mend,
    )


def _unmatched(tree: Tree, adapter: Adapter, asked: Adapter, chosen: list[Adapted]) -> Iterator[str]:
    """The names in the options that match no module, no parameter, or no adapted module."""
    every = [written(m.holder, layer, e) for m in tree.known for layer in m.layers for e in range(m.copies)]
    if not isinstance(adapter.targets, str):
        stacked = set(adapter.targets or ()) - set(asked.targets or ())
        for name in adapter.targets or ():
            one = Names((name,))
            if name not in stacked and not any(one.have(key) for key in every):
                yield name
    for name in adapter.parameters:
        if not any(Names((name,)).have(written(m.parameter, m.layers[0])) for m in tree.known) and not any(
            Names((name,)).have(written(m.parameter, layer, e))
            for m in tree.known
            for layer in m.layers
            for e in range(m.copies)
        ):
            yield name
    adapted = [
        written(name, layer, e)
        for one in chosen
        for name in (one.module.name, one.module.parameter)
        for layer in one.layers
        for e in range(one.module.copies)
    ]
    for name in dict.fromkeys([name for name, _ in (*adapter.ranks, *adapter.alphas)]):
        one = Pieces((name,))
        if not any(one.first(key) is not None for key in adapted):
            yield name


# --- what is trained in full ------------------------------------------------------------------------------------------


def _biases(known: tuple[Module, ...], adapter: Adapter, chosen: Iterable[Adapted]) -> int:
    """Biases that are also trained: `all` means every parameter with that name, as in PEFT."""
    if adapter.bias == "none":
        return 0
    found = [m for m in known if m.name.endswith(".bias") and not m.is_weight]
    if adapter.bias == "all":
        return sum(
            _size(m)
            for m in found
            if not m.is_copy
            for layer in m.layers
            for e in range(m.copies)
            if not _is_saved(written(m.name, layer, e), adapter.saved)
        )
    adapted: dict[str, int] = {}
    for one in chosen:
        holder = one.module.holder
        for layer in one.layers:
            adapted[f"{holder} {layer}"] = min(one.module.members, one.module.copies)
    return sum(_size(m) * adapted.get(f"{m.holder} {layer}", 0) for m in found for layer in m.layers)


def _size(m: Module) -> int:
    """The elements of a parameter in one layer, of one expert."""
    total = 1
    for size in m.shape:
        total *= size
    return total


def _above(parameter: str) -> list[str]:
    """The modules that contain a parameter."""
    parts = parameter.split(".")[:-1]
    return [".".join(parts[: n + 1]) for n in range(len(parts))]


def _is_saved(parameter: str, names: tuple[str, ...]) -> bool:
    return bool(names) and any(one.endswith(names) for one in _above(parameter))


def _saved(tree: Tree, adapter: Adapter, chosen: list[Adapted]) -> dict[str, int]:
    """Parameters of the fully trained modules, keyed by the requested name; each module counts once.

    A name matches the end of a module's name, with or without a leading dot. Raises `Problem` for a module that is
    adapted, or that is a list of modules.
    """
    found = dict.fromkeys(adapter.saved, 0)
    if not found:
        return found
    names = tuple(found)
    lists: dict[str, bool] = {}
    for m in tree.known:
        for layer in m.layers:
            for e in range(m.copies):
                key = written(m.parameter, layer, e)
                above = _above(key)
                for one, inner in zip(above, above[1:]):
                    is_numbered = one.rpartition(".")[2].isdecimal()  # modules in turn, not a list
                    if inner.rpartition(".")[2].removeprefix("expert_").isdecimal() and not is_numbered:
                        lists[one] = True
                asked = next((end for end in names if any(one.endswith(end) for one in above)), None)
                is_twice = m.is_copy and any(same.endswith(names) for w in m.weights for same in _above(w.name))
                if asked is not None and not is_twice:
                    found[asked] += _size(m)
    for name in lists:
        if name.endswith(names):
            raise Problem(f"modules to save: {name} is a list of modules, which PEFT refuses", "name what is in it")
    within = [end for end in names if any(one.endswith(end) for one in WITHIN)]
    for one in chosen:
        m = one.module
        for layer in one.layers:
            name = written(m.holder, layer)
            if twice := [*within, *[end for end in names if name.endswith(end)]]:
                raise Problem(
                    f"modules to save, {shorten(twice[0])}: ends {name}, which is adapted; PEFT refuses it",
                    "write the whole last part of the name, or leave it out",
                )
            if base := [end for end in names if "base_layer".endswith(end)]:  # PEFT's name for an adapted module
                has = [p for p in tree.known if p.holder == m.holder and layer in p.layers]
                found[base[0]] += sum(_size(p) * min(m.members, p.copies) for p in has)
    return found
