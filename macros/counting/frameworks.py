"""Training frameworks by their own conventions: parameters, memory and FLOPs as Megatron, DeepSpeed's estimators and
torchtitan print them.

Source: Megatron-LM `megatron/training/theoretical_memory_utils.py`; DeepSpeed `deepspeed/runtime/zero/stage_1_and_2.py`
and `stage3.py` (`estimate_zero…_model_states_mem_needs`); torchtitan `torchtitan/models/utils.py`
(`get_nparams_and_flops`). What Megatron calls MB and DeepSpeed GB are MiB and GiB.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from ..engine.errors import Problem
from .conditions import Conditions
from .costs import Costs
from .deployments import BY_SOURCE, PROVED, Card, Deployment, Figure, exactly
from .engine_options import NUMBER, SWITCH, TOKENS, WHOLE, Option, Value, switch, whole
from .serving import window_of
from .splits import VOCABULARIES, Split

VOCABULARY = 128  # rows of a table are a multiple of this times the tensor-parallel degree
MEGATRON = (
    Option("tensor", ("--tensor-model-parallel-size",), WHOLE, "ranks that share each matrix"),
    Option("pipeline", ("--pipeline-model-parallel-size",), WHOLE, "stages of layers"),
    Option("data", ("--data-parallel-size",), WHOLE, "replicas"),
    Option("optimizer", ("--use-distributed-optimizer",), SWITCH, "replicas share the optimizer's states"),
    Option("divisible", ("--make-vocab-size-divisible-by",), WHOLE, "128"),
)
DEEPSPEED = (
    Option("stage", ("--stage", "--zero-stage"), WHOLE, "ZeRO stage: 2 or 3"),
    Option("gpus", ("--num-gpus", "--num-gpus-per-node"), WHOLE, "GPUs of a node"),
    Option("nodes", ("--num-nodes",), WHOLE, "nodes"),
)
TORCHTITAN = (
    Option("length", ("--training.seq-len", "--training.seq_len"), TOKENS, "tokens of a sequence"),
    Option("shards", ("--parallelism.data-parallel-shard-degree",), NUMBER, "ranks that share the parameters"),
)
OPTIONS = {"megatron": MEGATRON, "deepspeed": DEEPSPEED, "torchtitan": TORCHTITAN}


def deploy(
    name: str, costs: Costs, given: Conditions, options: Mapping[str, Value], cards: Sequence[Card], version: str = ""
) -> Deployment:
    """What a framework prints of a model. Raises `Problem`."""
    if costs.compute.reads_source and name == "megatron":
        raise Problem("no rule is known for Megatron's count of an encoder and a decoder", "leave out --framework")
    count = {"megatron": _megatron, "deepspeed": _deepspeed, "torchtitan": _torchtitan}[name]
    figures, notes = count(costs, given, options)
    return Deployment(name, version, (), tuple(figures), (), (), tuple(notes))


def _is_table(costs: Costs) -> dict[str, bool]:
    """The tensors whose rows are the vocabulary's, by name."""
    return {
        w.name: any(name in VOCABULARIES for name in w.shape[0].expr.symbols) and w.is_matrix and w.layers is None
        for w in costs.counts.weights
    }


def _megatron(costs: Costs, given: Conditions, options: Mapping[str, Value]) -> tuple[list[Figure], list[str]]:
    """Its theoretical footprint, and the parameters of each rank."""
    tensor, pipeline, data = (whole(options, key, 1) for key in ("tensor", "pipeline", "data"))
    if tensor not in costs.devices.tensors or costs.devices.n_layers % pipeline:
        raise Problem(f"{tensor:,} ranks and {pipeline:,} stages: the model's sizes do not divide", "give divisors")
    values = costs.counts.values()
    layers, width = costs.devices.n_layers, values["d_model"]
    step = whole(options, "divisible", VOCABULARY) * tensor
    vocabulary = -(-values["vocab_size"] // step) * step
    tables = _is_table(costs)
    tied = len([name for name, is_table in tables.items() if is_table]) == 1
    matrices = sum(int(w.count) for w in costs.counts.weights if w.layers is not None and w.is_matrix)
    in_layers = matrices + 4 * layers * width + 2 * width
    embedding = vocabulary * width
    total = in_layers + embedding * (1 if tied else 2)
    shard = Fraction(in_layers, pipeline) / tensor + Fraction(embedding, tensor)
    if not tied and pipeline == 1:
        shard += Fraction(embedding, tensor)
    each = 6 + Fraction(12, data) if switch(options, "optimizer", False) else Fraction(18)
    ours = costs.counts.total
    rule = "matrices of the layers, each norm with a weight and a bias, the padded vocabulary; no biases, no positions"
    found = [
        exactly("total", "Total number of parameters in billions", Fraction(total, 10**9), "", 2, rule, PROVED),
        exactly(
            "parameters", "parameters by its formula", total, "", 0, f"ours: {ours:,}, {total - ours:+,} here", PROVED
        ),
        exactly("shard", "Number of parameters in most loaded shard in billions", shard / 10**9, "", 4, rule, PROVED),
        exactly(
            "bytes",
            "Theoretical memory footprints: weight and optimizer",
            shard * each,
            "MB",
            2,
            f"{each} bytes a parameter",
            PROVED,
        ),
    ]
    ranks = _rank_parameters(costs, tensor, pipeline, vocabulary)
    for stage, number in enumerate(ranks):
        what = f"number of parameters on (tensor, pipeline) model parallel rank (0, {stage})"
        rule = (
            "layers of the stage; the first has the tables, the last a copy of a tied one; biases of outputs are whole"
        )
        found.append(exactly(f"rank {stage}", what, number, "", 0, rule, PROVED))
    notes = [
        f"Its formula gives each norm a bias and leaves out other biases and positions: {total:,} against {ours:,}."
    ]
    return found, notes


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
    found: list[Figure] = []
    largest = max(
        int(w.count) // max(len(w.layers or (0,)), 1) // (1 if w.members is None else int(w.members))
        for w in costs.counts.weights
    )
    for what, total in (("", costs.counts.total), (" without the head (AutoModel)", costs.counts.total - head)):
        if what and not head:
            continue
        key = "body " if what else ""
        found.append(exactly(f"{key}parameters", f"total params{what}", Fraction(total, 10**6), "M", 0, "", PROVED))
        rows = _zero_2(total, gpus, number, factor) if stage == 2 else _zero_3(total, largest, gpus, number, factor)
        for name, said, size, rule in rows:
            found.append(exactly(key + name, f"{said}{what}", size, "GB", 2, rule, PROVED))
    if stage == 3:
        found.append(exactly("largest", "largest layer params", Fraction(largest, 10**6), "M", 0, "", PROVED))
    return found, ["What it calls GB is GiB. Activations are not among model states."]


def _zero_2(total: int, gpus: int, number: int, factor: Fraction) -> list[tuple[str, str, Fraction, str]]:
    cpu = total * max(Fraction(4 * gpus), 16 * factor) * Fraction(3, 2)
    return [
        ("gpu offload", "per GPU, offload_optimizer=cpu", Fraction(2 * total), "2 P"),
        ("cpu offload", "per CPU, offload_optimizer=cpu", cpu, "P × max(4 GPUs, 16 ÷ nodes) × 1.5"),
        ("gpu", "per GPU, offload_optimizer=none", 4 * total + Fraction(16 * total, number), "4 P + 16 P ÷ GPUs"),
        ("cpu", "per CPU, offload_optimizer=none", Fraction(total * 4 * gpus * 3, 2), "P × 4 GPUs × 1.5"),
    ]


def _zero_3(total: int, largest: int, gpus: int, number: int, factor: Fraction) -> list[tuple[str, str, Fraction, str]]:
    half = Fraction(3, 2)
    return [
        ("gpu all", "per GPU, offload_param=cpu, offload_optimizer=cpu", Fraction(4 * largest), "4 × largest layer"),
        ("cpu all", "per CPU, both offloaded, zero_init=1", total * 18 * factor * half, "18 P ÷ nodes × 1.5"),
        (
            "gpu offload",
            "per GPU, offload_optimizer=cpu",
            4 * largest + Fraction(2 * total, number),
            "4 × largest + 2 P ÷ GPUs",
        ),
        (
            "cpu offload",
            "per CPU, offload_optimizer=cpu, zero_init=1",
            total * 16 * factor * half,
            "16 P ÷ nodes × 1.5",
        ),
        ("gpu", "per GPU, nothing offloaded", 4 * largest + Fraction(18 * total, number), "4 × largest + 18 P ÷ GPUs"),
        (
            "cpu",
            "per CPU, nothing offloaded, zero_init=1",
            Fraction(largest * 4 * gpus) * half,
            "largest × 4 GPUs × 1.5",
        ),
    ]


def _torchtitan(costs: Costs, given: Conditions, options: Mapping[str, Value]) -> tuple[list[Figure], list[str]]:
    """Its FLOPs of a token: 6 for each active parameter, norms included, and attention; an input table counts only if
    it is the head too (`get_dense_model_nparams_and_flops` of torchtitan 0.3)."""
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
    """FLOPs of scores and weighted sums of a token, forward and backward: 6 for each head, its widths and token seen.
    Every layer sees all tokens; in a model with windows, a layer with one sees that, and any other half of the tokens.
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
