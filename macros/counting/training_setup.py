"""Training on one device or several: bytes on the fullest device, term by term, in full or with adapters.

Mixed precision: weights and gradients in 16 bits, a copy of the weights and the optimizer's state in 32 (arXiv
1910.02054, 3.1). Adapters have 32 bits, as in PEFT, without a copy. ZeRO's stages divide the optimizer's state, the
gradients and the weights over the data-parallel devices (5). Tensor parallelism cuts arrays made of heads and inner
widths; sequence parallelism also cuts all other activations (arXiv 2205.05198, 4). With pipeline parallelism each stage
keeps the activations of as many micro-batches as there are stages from it to the end (4.2.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..engine.array import Node, ShapeArray
from ..engine.dims import Dim
from ..engine.errors import Problem
from ..engine.steps import Keeps, Role
from ..engine.tensors import Weight
from .adapters import Adapters
from .arrays import is_data, measured, new_rows, part, size
from .costs import Costs
from .module_tree import Kind, Module
from .parts import HEAD, LOOKED_UP
from .splits import Split, held, rule_of
from .training import Saved, is_of_numbers

# How training state is distributed over the data-parallel devices.
SHARDINGS = {
    "ddp": "data parallel: every device has a copy of everything",
    "zero1": "ZeRO-1: the optimizer's state is divided",
    "zero2": "ZeRO-2: gradients too",
    "zero3": "ZeRO-3: weights too, gathered module by module",
    "fsdp": "FSDP: the same, gathered layer by layer",
}
RECOMPUTED = {
    "none": "all activations are kept",
    "selective": "attention weights are recomputed, as in FlashAttention",
    "full": "each layer is recomputed from its input",
}
METHODS = {
    "full": "every parameter is trained",
    "lora": "adapters, with the weights in 16 bits",
    "dora": "the same, plus a magnitude for each output",
    "qlora": "adapters, with the weights in NF4",
}
GRADIENTS = {"bfloat16": 2, "float32": 4}
BUCKET = 500_000_000  # elements that DeepSpeed reduces at once (reduce_bucket_size)
IN_4_BYTES = 4096  # bitsandbytes keeps the state of smaller tensors in 32 bits (min_8bit_size)
OF_8_BITS = 256  # elements of a block of its state, with a scale of 32 bits
NF4_BLOCK, NF4_BLOCKS = 64, 256  # elements of a block, blocks whose scales are quantized together (arXiv 2305.14314, 3)

# Products with weights, whose inputs are needed only for the gradient of the weights.
_MAPS = frozenset(
    {
        Role.LINEAR,
        Role.CONV1D,
        Role.EXPERT_LINEAR,
        Role.GROUPED_LINEAR,
        Role.LATENT_QUERIES,
        Role.LATENT_VALUES,
    }
)


@dataclass(frozen=True)
class Tensor:
    """Trained tensors of one shape, and their number; `is_hidden`: matrices inside the layers."""

    shape: tuple[int, ...]
    copies: int
    is_hidden: bool

    @property
    def elements(self) -> int:
        return math.prod(self.shape) * self.copies


def _adamw(t: Tensor) -> int:
    return 8 * t.elements


def _adamw_8bit(t: Tensor) -> int:
    """As in arXiv 2110.02861 and bitsandbytes: two 8-bit states, with a scale for each block of each."""
    n = math.prod(t.shape)
    return t.copies * (8 * n if n < IN_4_BYTES else 2 * n + 8 * -(-n // OF_8_BITS))


def _adafactor(t: Tensor) -> int:
    """For a matrix, one number for each row and each column (arXiv 1804.04235), without momentum."""
    if len(t.shape) < 2:
        return 4 * t.elements
    *before, rows, columns = t.shape
    return 4 * t.copies * math.prod(before) * (rows + columns)


def _muon(t: Tensor) -> int:
    """Only momentum for the matrices inside the layers; AdamW for all others."""
    return (4 if t.is_hidden else 8) * t.elements


@dataclass(frozen=True)
class Optimizer:
    """An optimizer: bytes of its state for some tensors, excluding the copy of the weights."""

    said: str
    bytes_of: Callable[[Tensor], int]


OPTIMIZERS: dict[str, Optimizer] = {
    "adamw": Optimizer("AdamW: momentum and variance in 32 bits", _adamw),
    "adamw-8bit": Optimizer("8-bit AdamW: both in 8 bits, with a scale for every 256 numbers", _adamw_8bit),
    "adafactor": Optimizer("Adafactor: one number per row and column of a matrix, no momentum", _adafactor),
    "muon": Optimizer("Muon: momentum of matrices inside layers, AdamW for the rest", _muon),
    "sgd": Optimizer("SGD without momentum: no state", lambda t: 0),
    "sgd-momentum": Optimizer("SGD with momentum in 32 bits", lambda t: 4 * t.elements),
}


@dataclass(frozen=True)
class Setup:
    """The setup of a training run. `devices` are tensor × pipeline × data parallel; `expert` of the data-parallel
    groups hold the routed experts together, each group some of them."""

    sequence: int = 4096
    micro_batch: int = 1
    devices: int = 1
    tensor: int = 1
    pipeline: int = 1
    sequence_parallel: bool = False
    sharding: str = "ddp"
    optimizer: str = "adamw"
    recompute: str = "none"
    gradients: str = "bfloat16"
    has_master: bool = True
    method: str = "full"
    expert: int = 1

    @property
    def data(self) -> int:
        """The number of device groups, each with its own micro-batches."""
        return self.devices // (self.tensor * self.pipeline)

    @property
    def said(self) -> str:
        """The degrees above 1 in words."""
        split = Split(self.tensor, self.expert, self.pipeline, self.data)
        return split.said + (", sequence parallel" if self.sequence_parallel and self.tensor > 1 else "")


def check(costs: Costs, setup: Setup, adapters: Adapters | None) -> None:
    """Raise `Problem` for a split that the model's sizes or the numbers of devices do not allow."""
    if setup.devices % (setup.tensor * setup.pipeline):
        raise Problem(
            f"{setup.devices:,} devices are not a multiple of {setup.tensor:,} tensor parallel × {setup.pipeline:,} "
            "pipeline parallel",
            f"give {setup.tensor * setup.pipeline:,}, or a multiple of it",
        )
    if setup.tensor not in costs.devices.tensors:
        raise Problem(
            f"tensor parallel {setup.tensor:,}: heads and widths do not divide by it",
            f"give one of {', '.join(map(str, costs.devices.tensors))}",
        )
    if setup.pipeline not in costs.devices.stages:
        raise Problem(
            f"pipeline parallel {setup.pipeline:,}: the layers do not divide by it",
            f"give one of {', '.join(map(str, costs.devices.stages))}",
        )
    if setup.expert > 1:
        costs.devices.check_experts(setup.expert, setup.expert * setup.tensor)
        if setup.data % setup.expert:
            raise Problem(
                f"expert parallel {setup.expert:,}: {setup.data:,} data parallel do not divide by it",
                "give a divisor: experts are divided over groups of data parallelism",
            )
    if adapters is not None and setup.tensor * setup.pipeline * setup.expert > 1:
        raise Problem(
            "adapters under tensor, pipeline or expert parallelism are not counted", "split by data alone, with ZeRO"
        )


def nf4_bytes(elements: int, *, double: bool = True) -> int:
    """Bytes of a matrix in NF4: half a byte per element and a 32-bit scale for every 64 elements or, with `double`
    quantization, an 8-bit scale and a 32-bit scale for every 256 of these."""
    blocks = -(-elements // NF4_BLOCK)
    return -(-elements // 2) + (blocks + 4 * -(-blocks // NF4_BLOCKS) if double else 4 * blocks)


def device_terms(costs: Costs, setup: Setup, adapters: Adapters | None, known: Iterable[Module]) -> dict[str, int]:
    """Bytes on the fullest device by term. Raises `Problem` as `check` does."""
    check(costs, setup, adapters)
    modules = tuple(known)
    stages = _activations(costs, setup, adapters)
    if adapters is None:
        found = _full(costs, setup, modules)
    else:
        found = [_adapted(costs, setup, adapters, modules)]
    together = [{**states, **activations} for states, activations in zip(found, stages)]
    return max(together, key=lambda terms: sum(terms.values()))


def _full(costs: Costs, setup: Setup, modules: tuple[Module, ...]) -> list[dict[str, int]]:
    """The model's memory in each stage if all of it is trained."""
    split = Split(setup.tensor, setup.expert, setup.pipeline, setup.expert)
    tables = {w for n in costs.trace.root.children if n.role in (*LOOKED_UP, HEAD) for w in n.all_weights()}
    tables.update(costs.counts.ngram_tables)
    trained: list[list[Tensor]] = [[] for _ in range(setup.pipeline)]
    experts: list[list[Tensor]] = [[] for _ in range(setup.pipeline)]
    local: dict[tuple[int, Weight], int] = {}  # elements of one layer
    for stage, w, shape, here, members in costs.devices.parts_by_stage(split):
        if not w.is_buffer:
            copies = members if w.layers is None else members * len(here)
            of = experts if w.routed is not None and setup.expert > 1 else trained
            of[stage].append(Tensor(tuple(shape), copies, w.is_matrix and w not in tables))
            local[stage, w] = math.prod(shape) * members
    terms: list[dict[str, int]] = []
    for stage, tensors in enumerate(trained):
        largest = max(
            (sum(local.get((stage, w), 0) for w in group) for group in _gathered(setup, modules, costs)), default=0
        )
        n = sum(t.elements for t in tensors)
        found = {"weights": _weights(2 * n, setup), **_states(tensors, setup), **_exchanged(n, largest, setup)}
        if experts[stage]:  # with as many copies as there are groups that hold all experts
            own = replace(setup, devices=setup.devices // setup.expert)
            more = sum(t.elements for t in experts[stage])
            of_experts = {"weights": _weights(2 * more, own), **_states(experts[stage], own)}
            of_experts |= _exchanged(more, largest, own)
            buffers = found["exchange buffers"], of_experts["exchange buffers"]
            found = {key: size + of_experts[key] for key, size in found.items()}
            if setup.sharding != "ddp":  # a bucket, or the gathered weights, are used again
                found["exchange buffers"] = max(buffers)
        terms.append(found)
    return terms


def _states(tensors: list[Tensor], setup: Setup, item_bytes: int = 2) -> dict[str, int]:
    """Gradients, the copy of the weights and the optimizer's state of the trained tensors, each divided as far as ZeRO
    does."""
    n = sum(t.elements for t in tensors)
    state = sum(OPTIMIZERS[setup.optimizer].bytes_of(t) for t in tensors)
    each = max(item_bytes, GRADIENTS[setup.gradients])
    has_copy = setup.has_master and item_bytes < 4
    return {
        "gradients": _shared(each * n, setup, "zero2"),
        "master weights": _shared(4 * n, setup, "zero1") if has_copy else 0,
        "optimizer states": _shared(state, setup, "zero1"),
    }


def _weights(size: int, setup: Setup) -> int:
    return _shared(size, setup, "zero3")


def _shared(size: int, setup: Setup, stage: str) -> int:
    """Bytes on a device of the terms that this stage of ZeRO, and each later one, divides."""
    order = list(SHARDINGS)
    return -(-size // setup.data) if order.index(setup.sharding) >= order.index(stage) else size


def _exchanged(n: int, largest: int, setup: Setup, trained: int | None = None) -> dict[str, int]:
    """The communication buffers.

    DDP copies gradients into its buckets; ZeRO-1 and ZeRO-2 reduce a bucket at a time; ZeRO-3 gathers a module's
    weights next to its gradients; FSDP gathers two layers' weights, including the next one's, next to the gradients of
    one.
    """
    if setup.data == 1:
        return {"exchange buffers": 0}
    trained = n if trained is None else trained
    each = GRADIENTS[setup.gradients]
    if setup.sharding == "ddp":
        return {"exchange buffers": max(each, 2 if trained == n else 4) * trained}
    if setup.sharding in ("zero1", "zero2"):
        return {"exchange buffers": 2 * min(BUCKET, trained)}
    gradients = 2 * largest if trained == n else 0
    return {"exchange buffers": 2 * largest * (2 if setup.sharding == "fsdp" else 1) + gradients}


def _gathered(setup: Setup, modules: tuple[Module, ...], costs: Costs) -> list[tuple[Weight, ...]]:
    """The weights that are gathered together: a module's with its bias, or a layer's, and the rest."""
    groups: dict[object, list[Weight]] = {}
    if setup.sharding == "fsdp":
        for call in costs.trace.root.children:
            groups.setdefault(id(call), []).extend(w for w in call.all_weights() if not w.is_buffer)
    else:
        for m in modules:
            for w in m.weights:  # stacked experts are the parameters of one module
                end = m.name if m.kind is not Kind.STACK else m.holder
                name = end if m.kind is not Kind.OTHER else end.removesuffix(".bias").rpartition(".weight")[0] or end
                groups.setdefault((name.removesuffix(".bias"), w.layers), []).append(w)
    return [tuple(dict.fromkeys(group)) for group in groups.values()]


def _adapted(costs: Costs, setup: Setup, adapters: Adapters, modules: tuple[Module, ...]) -> dict[str, int]:
    """A device's memory for a frozen model and its adapters."""
    weights = costs.counts.weights
    quantized = [m for m in modules if m.is_quantized] if setup.method == "qlora" else []
    copies = [(m, len(m.layers) * (m.members if m.weights[0].members is not None else 1)) for m in quantized]
    in_nf4 = sum(nf4_bytes(m.outputs * m.inputs) * n for m, n in copies)
    n = sum(int(w.count) for w in weights)
    rest = 2 * (n - sum(m.outputs * m.inputs * count for m, count in copies))
    base = rest + in_nf4
    trained = _trained(adapters)
    item_bytes = 4
    count = sum(t.elements for t in trained)
    largest = max(
        (sum(int(w.count // w.layer_count) for w in group) for group in _gathered(setup, modules, costs)), default=0
    )
    return {
        "weights": _weights(rest if setup.method == "qlora" else base, setup),
        **({"weights in NF4": _weights(in_nf4, setup)} if setup.method == "qlora" else {}),
        "adapters": _weights(item_bytes * count, setup),
        **_states(trained, setup, item_bytes),
        **_exchanged(n, largest, setup, count),
        **({"dequantized matrix": max((2 * m.outputs * m.inputs for m in quantized), default=0)} if quantized else {}),
    }


def _trained(adapters: Adapters) -> list[Tensor]:
    """The tensors of adapters, and the tensors trained in addition, as vectors."""
    found: list[Tensor] = []
    for one in adapters.modules:
        n, m = len(one.layers), one.module
        rank = one.rank * m.members
        found += [Tensor((rank, m.inputs), n, True), Tensor((m.outputs, rank), n, True)]
        if one.magnitudes:
            found.append(Tensor((one.magnitudes,), n, False))
    rest = adapters.biases + adapters.saved
    return [*found, Tensor((rest,), 1, False)] if rest else found


# --- activations ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Array:
    """An array that the backward pass needs, and the shapes that it is read in."""

    array: ShapeArray
    views: list[ShapeArray]


def _activations(costs: Costs, setup: Setup, adapters: Adapters | None) -> list[dict[str, int]]:
    """Bytes of activations and logits on a device of each stage."""
    values = costs.counts.values(T=setup.sequence, S=setup.sequence)
    at = costs.compute.evaluated(setup.sequence, setup.sequence)
    cut = {name: _cut(name, n, setup.tensor) for name, n in values.items()} if setup.tensor > 1 else None
    heads = [n for n in costs.trace.root.children if n.role is HEAD]
    top = [n for n in costs.trace.root.children if n.role is not HEAD]
    last = max((i for i, n in enumerate(top) if n.layers is not None), default=-1)
    layers = 1 + max((i for n in top for i in n.layers or ()), default=-1)
    each = max(1, layers // setup.pipeline)
    apart = setup.tensor if setup.sequence_parallel else 1

    is_blocked, is_whole = setup.recompute != "none", adapters is None and cut is None

    def elements(kept: Iterable[_Array]) -> int:
        return sum(_local(one, values, cut, apart, is_blocked) for one in kept)

    def of_all(arrays: Saved) -> int:
        return sum([at(size) for size, is_paired in arrays if not (is_paired and is_blocked)])

    def kept_by(nodes: Sequence[Node]) -> int:
        if is_whole:
            return of_all(costs.training.saved(*nodes))
        return elements(_distinct(x for node in nodes for x in _kept(node, adapters)))

    stages = [0] * setup.pipeline
    largest = [0] * setup.pipeline
    outside: dict[int, list[Node]] = {}  # of the layers, by stage
    for i, node in enumerate(top):
        if node.layers is None:
            outside.setdefault(0 if i < last else setup.pipeline - 1, []).append(node)
    for stage, nodes in outside.items():
        stages[stage] += kept_by(nodes) + sum([_low_rank(node, adapters, setup) for node in nodes])
    for node in top:
        if node.layers is None:
            continue
        own = kept_by([node]) + _low_rank(node, adapters, setup)
        own += at(costs.training.written_out(node)) // (setup.tensor if setup.tensor > 1 else 1)
        entry = -(-at(size(node.outputs[0])) // apart)
        for layer in node.layers:
            stage = min(layer // each, setup.pipeline - 1)
            stages[stage] += entry if setup.recompute == "full" else own
            largest[stage] = max(largest[stage], own) if setup.recompute == "full" else 0
    terms: list[dict[str, int]] = []
    for stage, (kept, one) in enumerate(zip(stages, largest)):
        in_flight = setup.pipeline - stage
        numbers, logits = kept * in_flight + one, 0
        if stage == setup.pipeline - 1:
            for head in heads:  # the trace has the last token's; training needs all tokens'
                vectors = [_Array(x, [x]) for x in head.inputs if is_data(x)][:1] if adapters is None else []
                if is_whole:
                    inside = of_all(costs.training.saved_inside(head))
                else:
                    steps = [n for n in head.children if n.step and n.keeps is not Keeps.NOTHING]
                    inside = elements(_distinct(x for n in steps for x in _kept(n, adapters)))
                numbers += elements(vectors) + inside * setup.sequence
                out = [_Array(x, [x]) for x in head.outputs]
                logits += elements(out) * setup.sequence
        terms.append({"activations": 2 * numbers * setup.micro_batch, "logits": 4 * logits * setup.micro_batch})
    return terms


def _kept(node: Node, adapters: Adapters | None) -> list[tuple[ShapeArray, ShapeArray]]:
    """The arrays that a call keeps for the backward pass, with the shapes in which they are read. A product with frozen
    weights keeps nothing, unless it has an adapter."""
    if node.keeps is Keeps.NOTHING:
        return []
    if node.keeps is Keeps.OUTPUT:
        return [(part(x), x) for x in node.outputs]
    if adapters is not None and node.role in _MAPS and not any(map(adapters.holds, node.all_weights())):
        return []
    if any(child.step for child in node.children):
        return [x for child in node.children if is_of_numbers(child) for x in _kept(child, adapters)]
    return [(new_rows(x), x) for x in node.inputs if is_data(x) and x.dtype.kind == "f"]


def _distinct(pairs: Iterable[tuple[ShapeArray, ShapeArray]]) -> list[_Array]:
    """Each array once, with every shape that it is read in."""
    found: dict[int, _Array] = {}
    for array, view in pairs:
        found.setdefault(id(array), _Array(array, [array])).views.append(view)
    return list(found.values())


def _local(one: _Array, values: Mapping[str, int], cut: Mapping[str, int] | None, apart: int, is_blocked: bool) -> int:
    """Elements of an array on a device: for those made of heads and inner widths, `cut` has the sizes on one device;
    all others are divided by `apart`."""
    whole, is_paired = measured(one.array)
    if is_paired and is_blocked:
        return 0
    n = whole.at(values)
    if cut is None:
        return n
    shares = [Fraction(_product(x.shape, cut), _product(x.shape, values)) for x in one.views if int(x.size)]
    share = min(shares, default=Fraction(1))
    return math.ceil(n * share) if share < 1 else -(-n // apart)


def _product(shape: Iterable[Dim], values: Mapping[str, int]) -> int:
    return math.prod(max(1, d.expr.at(values)) for d in shape)


def _cut(name: str, n: int, tensor: int) -> int:
    """The part of a size that each of the tensor-parallel devices works on."""
    rule = rule_of(name)
    return n if rule is None or tensor == 1 else held(rule, n, tensor)


def _low_rank(node: Node, adapters: Adapters | None, setup: Setup) -> int:
    """Elements between the two matrices of the adapters of a call's weights, in one layer: a vector as long as the rank
    for each token, and in experts for each chosen one."""
    if adapters is None:
        return 0
    total = 0
    for w in node.all_weights():
        rank = adapters.rank_of(w)
        if rank:
            chosen = 1 if w.routed is None else int(w.routed[1])
            total += rank * chosen * setup.sequence
    return total
