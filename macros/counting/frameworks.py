"""Training frameworks by their own conventions: parameters, memory and FLOPs as Megatron, DeepSpeed's estimators and
torchtitan print them.

Source: Megatron-LM `megatron/training/theoretical_memory_usage.py`, whose history has the rules by version; DeepSpeed
`deepspeed/runtime/zero/stage_1_and_2.py` and `stage3.py` (`estimate_zero…_model_states_mem_needs`); torchtitan
`torchtitan/models/utils.py` (`get_nparams_and_flops`). What Megatron calls MB and DeepSpeed GB are MiB and GiB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..engine.errors import Problem
from ..engine.steps import Role
from .conditions import Conditions
from .costs import Costs
from .deployments import BY_SOURCE, PROVED, Card, Deployment, Figure, exactly
from .engine_options import DIGITS, NUMBER, SWITCH, TEXT, TOKENS, WHOLE, Option, Value, switch, text, whole
from .module_tree import Kind, modules
from .serving import window_of
from .splits import VOCABULARIES, Split

MEGATRON_VERSION, DEEPSPEED_VERSION = "0.20", "0.19"
# Megatron: an RMSNorm has no bias; routers are counted, and parameters that each rank holds whole are not divided;
# latent attention and dense layers next to experts have terms of their own; activations are always printed.
NORMS_SINCE, RANKS_SINCE, LATENTS_SINCE, ACTIVATIONS_SINCE = (0, 16), (0, 18), (0, 12), (0, 15)
# DeepSpeed's second stage also divides the 16-bit gradients; before, each GPU held all of them.
GRADIENTS_SINCE = (0, 14, 3)
VOCABULARY = 128  # rows of a table are a multiple of this times the tensor-parallel degree
MEGATRON = (
    Option("tensor", ("--tensor-model-parallel-size",), WHOLE, "ranks that share each matrix"),
    Option("pipeline", ("--pipeline-model-parallel-size",), WHOLE, "stages of layers"),
    Option("data", ("--data-parallel-size",), WHOLE, "replicas"),
    Option("optimizer", ("--use-distributed-optimizer",), SWITCH, "replicas share the optimizer's states"),
    Option("divisible", ("--make-vocab-size-divisible-by",), WHOLE, "128"),
    Option("experts", ("--expert-model-parallel-size",), WHOLE, "ranks that share the routed experts"),
    Option("expert_tensor", ("--expert-tensor-parallel-size",), WHOLE, "ranks that share each of their matrices"),
    Option("length", ("--seq-length",), TOKENS, "tokens of a sequence, for activations"),
    Option("batch", ("--micro-batch-size",), WHOLE, "sequences of a step, for activations"),
    Option("sequence", ("--sequence-parallel",), SWITCH, "with selective recompute another formula of activations"),
    Option(
        "recompute",
        ("--recompute-granularity",),
        TEXT,
        "full or selective",
        choices=("full", "selective"),
    ),
    Option("release", ("--framework-version",), TEXT, "of megatron-core: 0.20"),
)
DEEPSPEED = (
    Option("stage", ("--stage", "--zero-stage"), WHOLE, "ZeRO stage: 2 or 3"),
    Option("gpus", ("--num-gpus", "--num-gpus-per-node"), WHOLE, "GPUs of a node"),
    Option("nodes", ("--num-nodes",), WHOLE, "nodes"),
    Option("release", ("--framework-version",), TEXT, "of DeepSpeed: 0.19"),
)
TORCHTITAN = (
    Option("length", ("--training.seq-len", "--training.seq_len"), TOKENS, "tokens of a sequence"),
    Option("shards", ("--parallelism.data-parallel-shard-degree",), NUMBER, "ranks that share the parameters"),
)
OPTIONS = {"megatron": MEGATRON, "deepspeed": DEEPSPEED, "torchtitan": TORCHTITAN}


def deploy(
    name: str, costs: Costs, given: Conditions, options: Mapping[str, Value], cards: Sequence[Card], version: str = ""
) -> Deployment:
    """What a framework prints about a model. Raises `Problem`."""
    if costs.compute.reads_source and name == "megatron":
        raise Problem("no rule is known for Megatron's count of an encoder and a decoder", "leave out --framework")
    count = {"megatron": _megatron, "deepspeed": _deepspeed, "torchtitan": _torchtitan}[name]
    figures, notes = count(costs, given, options)
    return Deployment(name, version, (), tuple(figures), (), (), tuple(notes))


def _is_table(costs: Costs) -> dict[str, bool]:
    """The names of the tensors that have one row per vocabulary entry."""
    return {
        w.name: any(name in VOCABULARIES for name in w.shape[0].expr.symbols) and w.is_matrix and w.layers is None
        for w in costs.counts.weights
    }


def _release(options: Mapping[str, Value], usual: str, name: str) -> tuple[int, ...]:
    """The requested version, as numbers. Raises `Problem`."""
    parts = text(options, "release", usual).removeprefix("v").split(".")
    if not 1 < len(parts) < 5 or any(not part or len(part) > 4 or any(c not in DIGITS for c in part) for part in parts):
        raise Problem(f"--framework-version: no version of {name}", f"write it as in {usual}")
    return tuple([int(part) for part in parts])


@dataclass(frozen=True)
class Sizes:
    """The parameters in Megatron's formula: those divided over the ranks of a matrix, those that each rank holds whole,
    those of routed experts, and one table."""

    divided: int
    whole: int
    routed: int
    table: int
    tables: int

    @property
    def total(self) -> int:
        return self.divided + self.whole + self.routed + self.table * self.tables


def _sizes(costs: Costs, release: tuple[int, ...], vocabulary: int) -> Sizes:
    """A model's matrices under Megatron's formula. Raises `Problem` for a model that it does not cover."""
    layers, width = costs.devices.n_layers, costs.counts.values()["d_model"]
    is_plain = not any(node.role is Role.RMS_NORM for node in costs.trace.root.walk())
    norm = 2 if is_plain or release < NORMS_SINCE else 1
    divided, routed, routers, latents, dense = 0, 0, 0, 0, 0
    for w in costs.counts.weights:
        names = {name for d in w.shape for name in d.expr.symbols}
        if w.layers is None:
            continue
        if len(w.shape) == 2 and 1 in [int(d) for d in w.shape]:  # the gate of a shared expert
            routers += int(w.count)
        elif not w.is_matrix:
            latents += int(w.count) if "kv_lora_rank" in names or "q_lora_rank" in names else 0
            routers += int(w.count) if "n_experts" in names and w.routed is None else 0
        elif w.routed is not None:
            routed += int(w.count)
        elif any(name.startswith("n_experts") for name in names):
            routers += int(w.count)
        else:
            divided += int(w.count)
            dense += 1 if "d_ff" in names else 0
    if release < LATENTS_SINCE and (latents or (routed and dense)):
        raise Problem(
            "Megatron counts latent attention and dense layers beside experts since 0.12", "give --framework-version"
        )
    divided += latents * (norm if release >= NORMS_SINCE else 1)
    whole_of = norm * (2 * layers * width + width) + (routers if release >= RANKS_SINCE else 0)
    tied = len([name for name, is_table in _is_table(costs).items() if is_table]) == 1
    return Sizes(divided, whole_of, routed, vocabulary * width, 1 if tied else 2)


def _megatron(costs: Costs, given: Conditions, options: Mapping[str, Value]) -> tuple[list[Figure], list[str]]:
    """Its theoretical footprint, and the parameters of each rank."""
    tensor, pipeline, data = (whole(options, key, 1) for key in ("tensor", "pipeline", "data"))
    if tensor not in costs.devices.tensors or costs.devices.n_layers % pipeline:
        raise Problem(f"{tensor:,} ranks and {pipeline:,} stages: the model's sizes do not divide", "give divisors")
    if any(k.row is None for k in costs.counts.kept):
        raise Problem("Megatron prints no memory for a model with recurrent layers", "leave out --framework")
    release = _release(options, MEGATRON_VERSION, "Megatron")
    experts, expert_tensor = whole(options, "experts", 1), whole(options, "expert_tensor", tensor)
    groups = Fraction(tensor * data, expert_tensor * experts)
    if groups.denominator != 1:
        raise Problem(
            f"--expert-model-parallel-size {experts:,} × --expert-tensor-parallel-size {expert_tensor:,} do not divide "
            f"{tensor * data:,} ranks",
            "give divisors",
        )
    step = whole(options, "divisible", VOCABULARY) * tensor
    vocabulary = -(-costs.counts.values()["vocab_size"] // step) * step
    sizes = _sizes(costs, release, vocabulary)
    total, table = sizes.total, Fraction(sizes.table, tensor)
    ends = table * (2 if sizes.tables == 2 and pipeline == 1 else 1)
    if release >= RANKS_SINCE:
        of_experts = Fraction(sizes.routed, pipeline * expert_tensor * experts)
        others = (Fraction(sizes.divided, tensor) + sizes.whole) / pipeline
    else:
        of_experts, groups = Fraction(0), Fraction(data)
        others = Fraction(sizes.divided + sizes.whole + sizes.routed, pipeline * tensor)
    shard = others + ends + of_experts

    def each(copies: Fraction) -> Fraction:
        return 6 + 12 / copies if switch(options, "optimizer", False) else Fraction(18)

    memory = (others + ends) * each(Fraction(data)) + of_experts * each(groups)
    ours = costs.counts.total
    rule = "matrices of the layers, norms by its own count, the padded vocabulary; no biases, no positions"
    bytes_rule = f"{each(Fraction(data))} bytes a parameter"
    if of_experts and groups != data:
        bytes_rule += f", {each(groups)} of routed experts"
    found = [
        exactly("total", "Total number of parameters in billions", Fraction(total, 10**9), "", 2, rule, PROVED),
        exactly(
            "parameters", "parameters by its formula", total, "", 0, f"ours: {ours:,}, {total - ours:+,} here", PROVED
        ),
        exactly("shard", "Number of parameters in most loaded shard in billions", shard / 10**9, "", 4, rule, PROVED),
    ]
    if pipeline > 1:
        less = (others + of_experts) / 10**9
        found.append(exactly("others", "Number of parameters in other shards in billions", less, "", 4, rule, PROVED))
    what = "Theoretical memory footprints: weight and optimizer"
    found.append(exactly("bytes", what, memory, "MB", 2, bytes_rule, PROVED))
    found += _activations(costs, given, options, release, vocabulary, memory)
    ranks = _rank_parameters(costs, tensor, pipeline, vocabulary)
    for stage, number in enumerate(ranks):
        what = f"number of parameters on (tensor, pipeline) model parallel rank (0, {stage})"
        rule = (
            "layers of the stage; the first has the tables, the last a copy of a tied one; biases of outputs are whole"
        )
        found.append(exactly(f"rank {stage}", what, number, "", 0, rule, PROVED))
    left_out = ", and routers" if release < RANKS_SINCE and sizes.routed else ""
    notes = [
        f"Its formula leaves out biases and positions{left_out}"
        f"{' and gives each norm a bias' if release < NORMS_SINCE else ''}: {total:,} against {ours:,}. "
        f"The rules are those of megatron-core {'.'.join([str(n) for n in release])}."
    ]
    return found, notes


def _activations(
    costs: Costs,
    given: Conditions,
    options: Mapping[str, Value],
    release: tuple[int, ...],
    vocabulary: int,
    memory: Fraction,
) -> list[Figure]:
    """Megatron's estimate of activations, and the sum; empty where it prints none, or where the model has no dense
    layer."""
    tensor, pipeline = whole(options, "tensor", 1), whole(options, "pipeline", 1)
    values = costs.counts.values()
    layers, width, inner = costs.devices.n_layers, values["d_model"], values.get("d_ff", 0)
    is_parallel = switch(options, "sequence", False) and text(options, "recompute", "") == "selective"
    if not inner or (not is_parallel and release < ACTIVATIONS_SINCE):
        return []
    rows = whole(options, "length", given.tokens) * whole(options, "batch", 1)
    size = Fraction(rows * width) * (18 + Fraction(4 * inner, width) if is_parallel else 10 + Fraction(24, tensor))
    size = size * layers + 8 * rows * pipeline + rows * width * pipeline
    if is_parallel:
        if pipeline == 1:
            size += rows * width * 4 * (1 + Fraction(vocabulary, width))
        size /= tensor
        rule = "18 + 4 F ÷ D bytes for each token, layer and element of the width, ÷ ranks"
    else:
        if pipeline == 1:
            size += 2 * (Fraction(rows * vocabulary, tensor) + rows * width)
        size *= Fraction(105, 100)
        rule = "10 + 24 ÷ ranks bytes for each token, layer and element of the width, and 5% more"
    return [
        exactly("activations", "activation", size, "MB", 2, rule, BY_SOURCE),
        exactly("sum", "total", memory + size, "MB", 2, "weight and optimizer, and activation", BY_SOURCE),
    ]


def _rank_parameters(costs: Costs, tensor: int, pipeline: int, vocabulary: int) -> list[int]:
    """Parameters of a rank of each stage."""
    each = costs.devices.n_layers // pipeline
    tables = _is_table(costs)
    totals = [0] * pipeline
    width = costs.counts.values()["d_model"]
    for w, shape, layers, members in costs.devices.parts_on_rank(Split(tensor, 1, 1, 1)):
        if w.is_buffer:
            continue
        if tables[w.name]:
            shape = [vocabulary // tensor, *shape[1:]]
        elif len(shape) == 1 and w.layers is not None and width < shape[0] == int(w.shape[0]):
            shape = [shape[0] // tensor]  # the bias of queries, keys and values together
        size = members
        for n in shape:
            size *= n
        for stage in range(pipeline):
            here = [i for i in layers if stage * each <= i < (stage + 1) * each]
            totals[stage] += size * (len(here) if w.layers is not None else min(len(here), 1))
    return totals


def _deepspeed(costs: Costs, given: Conditions, options: Mapping[str, Value]) -> tuple[list[Figure], list[str]]:
    """The estimators of the memory of model states, for the whole model and for the one without its head, which
    `AutoModel` loads."""
    stage, gpus, nodes = whole(options, "stage", 3), whole(options, "gpus", 1), whole(options, "nodes", 1)
    if stage not in (2, 3):
        raise Problem(f"--stage {stage}: the estimators are for 2 and 3", "give 2 or 3")
    number, factor = gpus * nodes, Fraction(1, nodes)
    tables = _is_table(costs)
    heads = [w for w in costs.counts.weights if tables[w.name]]
    head = int(heads[-1].count) if len(heads) > 1 else 0
    release = _release(options, DEEPSPEED_VERSION, "DeepSpeed")
    found: list[Figure] = []
    largest = _largest(costs)
    for what, total in (("", costs.counts.total), (" without the head (AutoModel)", costs.counts.total - head)):
        if what and not head:
            continue
        key = "body " if what else ""
        found.append(exactly(f"{key}parameters", f"total params{what}", Fraction(total, 10**6), "M", 0, "", PROVED))
        rows = zero_2(total, gpus, number, release) if stage == 2 else zero_3(total, largest, gpus, number, factor)
        for name, said, size, rule in rows:
            found.append(exactly(key + name, f"{said}{what}", size, "GB", 2, rule, PROVED))
    if stage == 3:
        found.append(exactly("largest", "largest layer params", Fraction(largest, 10**6), "M", 0, "", PROVED))
    return found, ["What it calls GB is GiB. Activations are not among model states."]


def _largest(costs: Costs) -> int:
    """The parameters of the module that has the most of its own: a matrix with its bias, or a stack of experts."""
    if costs.formats.architecture is None:
        raise Problem("no modules are known of this model", "leave out --framework")
    sizes: dict[tuple[str, tuple[int, ...] | None], int] = {}
    for m in modules(costs.counts, costs.formats.architecture):
        end = m.holder if m.kind is Kind.STACK else m.name
        for w in m.weights:
            key = end.removesuffix(".weight").removesuffix(".bias"), w.layers
            sizes[key] = sizes.get(key, 0) + int(w.count) // max(len(w.layers or (0,)), 1)
    return max(sizes.values())


def zero_2(total: int, gpus: int, number: int, release: tuple[int, ...]) -> list[tuple[str, str, Fraction, str]]:
    """The rows of the second stage: key, label, bytes and rule."""
    cpu = Fraction(total * max(4 * number, 16) * 3, 2)
    whole_bytes = 2 if release >= GRADIENTS_SINCE else 4
    gpu = whole_bytes * total + (20 - whole_bytes) * total // number
    said = f"{whole_bytes} P + {20 - whole_bytes} P ÷ GPUs"
    return [
        ("gpu offload", "per GPU, offload_optimizer=cpu", Fraction(2 * total), "2 P"),
        ("cpu offload", "per CPU, offload_optimizer=cpu", cpu, "P × max(4 × all GPUs, 16) × 1.5"),
        ("gpu", "per GPU, offload_optimizer=none", Fraction(gpu), said),
        ("cpu", "per CPU, offload_optimizer=none", Fraction(total * 4 * gpus * 3, 2), "P × 4 GPUs × 1.5"),
    ]


def zero_3(total: int, largest: int, gpus: int, number: int, factor: Fraction) -> list[tuple[str, str, Fraction, str]]:
    """The rows of the third stage: key, label, bytes and rule."""
    half, most = Fraction(3, 2), Fraction(4 * gpus)
    both, one = max(most, 18 * factor), max(most, 16 * factor)
    said = "P × max(4 GPUs, {} ÷ nodes) × 1.5"
    return [
        ("gpu all", "per GPU, offload_param=cpu, offload_optimizer=cpu", Fraction(4 * largest), "4 × largest layer"),
        ("cpu all", "per CPU, both offloaded, zero_init=1", total * 18 * factor * half, "18 P ÷ nodes × 1.5"),
        ("cpu all whole", "per CPU, both offloaded, zero_init=0", total * both * half, said.format(18)),
        (
            "gpu offload",
            "per GPU, offload_optimizer=cpu",
            Fraction(4 * largest + 2 * total // number),
            "4 × largest + 2 P ÷ GPUs",
        ),
        (
            "cpu offload",
            "per CPU, offload_optimizer=cpu, zero_init=1",
            total * 16 * factor * half,
            "16 P ÷ nodes × 1.5",
        ),
        ("cpu offload whole", "per CPU, offload_optimizer=cpu, zero_init=0", total * one * half, said.format(16)),
        (
            "gpu",
            "per GPU, nothing offloaded",
            Fraction(4 * largest + 18 * total // number),
            "4 × largest + 18 P ÷ GPUs",
        ),
        (
            "cpu",
            "per CPU, nothing offloaded, zero_init=1",
            Fraction(largest * 4 * gpus) * half,
            "largest × 4 GPUs × 1.5",
        ),
        ("cpu whole", "per CPU, nothing offloaded, zero_init=0", total * most * half, "P × 4 GPUs × 1.5"),
    ]


def _torchtitan(costs: Costs, given: Conditions, options: Mapping[str, Value]) -> tuple[list[Figure], list[str]]:
    """torchtitan's FLOPs per token: 6 for each active parameter, norms included, plus attention; an input table counts
    only if it is also the head (`get_dense_model_nparams_and_flops` of torchtitan 0.3)."""
    length, shards = whole(options, "length", given.tokens), whole(options, "shards", 1) or 1
    counts = costs.counts
    tables = [int(w.count) for w in counts.weights if _is_table(costs)[w.name]]
    active = counts.active - (tables[0] if len(tables) > 1 else 0)
    attention = _attention(costs, length)
    flops = 6 * active + attention
    said = (
        "active parameters without the table" if len(tables) > 1 else "active parameters, whose table is the head too"
    )
    rule = f"6 × {active:,} {said}, and {attention:,} for attention in full"
    found = [
        exactly("parameters", "size: total parameters", counts.total, "", 0, "every trained parameter", PROVED),
        exactly("flops", "training FLOPs per token", flops, "", 0, rule, PROVED),
        exactly(
            "memory",
            "CUDA memory usage for model",
            Fraction(4 * counts.total, shards),
            "GiB",
            2,
            f"4 bytes a parameter ÷ {shards:,}; buffers come on top",
            BY_SOURCE,
        ),
    ]
    return found, ["Its FLOPs count norms as products; ours leave them out, and count what the mask lets through."]


def _attention(costs: Costs, length: int) -> int:
    """FLOPs of scores and weighted sums per token, forward and backward: 6 for each head, each of its widths, and each
    token seen. Every layer sees all tokens; in a model with windows, a layer with one sees its window, and any other
    layer half of the tokens.
    """
    values = costs.counts.values()
    of_latents = [values.get(name, 0) for name in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")]
    width = values.get("n_heads", 0) * (2 * values.get("d_head", 0) or sum(of_latents))
    windows: dict[int, int | None] = {}
    for k in costs.counts.kept:
        if k.row is not None:
            windows |= {layer: window_of(costs, k) for layer in k.layers}
    has_windows = any(window is not None for window in windows.values())
    seen = Fraction(0)
    for window in windows.values():
        if window is not None:
            seen += min(window, length)
        else:
            seen += Fraction(length, 2) if has_windows else length
    return int(6 * width * seen)
