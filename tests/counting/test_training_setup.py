"""Training on several devices: term by term against DeepSpeed's estimators, Megatron's formulas, and by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from macros.api.training import train
from macros.catalogue import presets, training_runs
from macros.counting import adapters as low_rank
from macros.counting.adapter_choice import ALL_LINEAR, Adapter
from macros.counting.adapters import every_linear
from macros.counting.costs import of as costs_of
from macros.counting.training_compute import Run, flops_per_token, implied_utilization
from macros.counting.training_setup import (
    BUCKET,
    OPTIMIZERS,
    SHARDINGS,
    Setup,
    Tensor,
    device_terms,
    nf4_bytes,
)
from macros.engine.errors import Problem

ESTIMATES = json.loads((Path(__file__).parent.parent / "golden" / "zero.json").read_text("utf-8"))["estimates"]
BY_TOTAL = {presets.model(slug).counts.total: slug for slug in ("llama3-8b", "gpt2", "llama3-70b")}
STATES = ("weights", "gradients", "master weights", "optimizer states")
EVERY = sorted(slug for slug in presets.paths() if presets.preset(slug).config is not None)


def terms(slug: str, setup: Setup, adapter: Adapter | None = None) -> dict[str, int]:
    model = presets.model(slug)
    known = low_rank.modules(model.counts, model.architecture)
    trained = None
    if adapter is not None:
        trained = low_rank.adapters(model.counts, model.architecture, adapter)
    return device_terms(costs_of(model.counts), setup, trained, known)


def sizes(slug: str) -> dict[str, int]:
    return dict(presets.model(slug).counts.values())


# --- model states -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ESTIMATES, ids=lambda row: f"{row['parameters']:,} on {row['devices']}")
def test_zero_3_is_what_deepspeed_estimates(row):
    """With gradients in 32 bits 18 bytes a parameter, divided, and 4 bytes of the largest module, gathered."""
    n = row["devices"]
    found = terms(BY_TOTAL[row["parameters"]], Setup(16, devices=n, sharding="zero3", gradients="float32"))
    states = sum(found[name] for name in STATES)
    assert abs(states - (row["zero3"] - 4 * row["largest_module"])) < len(STATES)  # each term is rounded up
    assert found["exchange buffers"] == (4 * row["largest_module"] if n > 1 else 0)


@pytest.mark.parametrize("row", ESTIMATES, ids=lambda row: f"{row['parameters']:,} on {row['devices']}")
def test_zero_2_is_what_deepspeed_estimates_but_for_a_second_copy_of_the_gradients(row):
    """DeepSpeed counts gradients in 16 and in 32 bits; we count one copy, in one of the two."""
    n, P = row["devices"], row["parameters"]
    for gradients, more in (("bfloat16", 4), ("float32", 2)):
        found = terms(BY_TOTAL[P], Setup(16, devices=n, sharding="zero2", gradients=gradients))
        assert abs(sum(found[name] for name in STATES) + more * P / n - row["zero2"]) < len(STATES)


def test_each_stage_divides_what_it_says():
    P = presets.model("llama3-8b").counts.total
    found = {name: terms("llama3-8b", Setup(16, devices=8, sharding=name)) for name in SHARDINGS}
    for name, divided in (("ddp", 0), ("zero1", 2), ("zero2", 3), ("zero3", 4), ("fsdp", 4)):
        whole = dict(zip(STATES, (2 * P, 2 * P, 4 * P, 8 * P)))
        order = ("optimizer states", "master weights", "gradients", "weights")
        for term in STATES:
            share = 8 if term in order[:divided] else 1
            assert found[name][term] == -(-whole[term] // share), (name, term)
    assert found["ddp"]["exchange buffers"] == 2 * P  # a bucket for each gradient
    assert found["zero1"]["exchange buffers"] == 2 * BUCKET
    layer = 218_112_000  # parameters of a layer of Llama 3 8B
    assert layer * 32 + 2 * 128_256 * 4096 + 4096 == P
    table = 128_256 * 4096
    assert found["zero3"]["exchange buffers"] == 4 * table
    assert found["fsdp"]["exchange buffers"] == 6 * max(layer, table)


@pytest.mark.parametrize("slug", EVERY)
def test_on_one_device_it_is_the_sixteen_bytes_and_the_activations(slug):
    costs = costs_of(presets.model(slug).counts)
    for recompute, how in (("none", {}), ("selective", {"pairs": False})):
        found = terms(slug, Setup(sequence=67, micro_batch=3, recompute=recompute))
        assert sum(found.values()) == sum(costs.training.training_bytes(67, 3, **how).values())
        assert sum(found[name] for name in STATES) == 16 * costs.counts.total
    less = terms(slug, Setup(sequence=67, micro_batch=3, recompute="full"))
    assert sum(less.values()) <= sum(costs.training.training_bytes(67, 3, recompute=True).values())


def test_optimizers_by_hand():
    """A matrix of 300 × 20, five of them, and a vector of 7."""
    matrix, vector = Tensor((300, 20), 5, True), Tensor((7,), 1, False)
    state = {name: (o.bytes_of(matrix), o.bytes_of(vector)) for name, o in OPTIMIZERS.items()}
    assert state["adamw"] == (8 * 30_000, 56)
    assert state["adamw-8bit"] == (5 * (2 * 6000 + 8 * 24), 56)  # 24 blocks of 256; small tensors stay in 32 bits
    assert state["adafactor"] == (5 * 4 * 320, 28)
    assert state["muon"] == (4 * 30_000, 56)
    assert state["sgd"] == (0, 0)
    assert state["sgd-momentum"] == (4 * 30_000, 28)
    assert OPTIMIZERS["adafactor"].bytes_of(Tensor((8, 300, 20), 1, True)) == 8 * 4 * 320
    assert OPTIMIZERS["muon"].bytes_of(replace(matrix, is_hidden=False)) == 8 * 30_000


def test_muon_of_gpt_2_keeps_one_number_of_each_matrix_inside_the_layers():
    c = sizes("gpt2")
    D, L = c["d_model"], c["n_layers"]
    hidden, total = 12 * L * D * D, presets.model("gpt2").counts.total
    assert terms("gpt2", Setup(16, optimizer="muon"))["optimizer states"] == 4 * hidden + 8 * (total - hidden)


# --- activations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug, t", [("gpt2", 3), ("gpt3-175b", 2), ("gpt3-175b", 8), ("gpt3-175b", 1)])
@pytest.mark.parametrize("is_apart", [False, True])
@pytest.mark.parametrize("recompute", ["none", "selective"])
def test_activations_are_those_of_korthikanti_without_dropout(slug, t, is_apart, recompute):
    """arXiv 2205.05198, table 2, without the two masks of sbh and the mask and the output of as²b that dropout keeps:
    sbh(10 + 24/t + 5as/ht) -> sbh(8 + 24/t + 2as/ht), with sequence parallelism sbh/t(34 + 5as/h) -> sbh/t(32 + 2as/h).
    """
    c = sizes(slug)
    s, b, h, a, L = 512, 3, c["d_model"], c["n_heads"], c["n_layers"]
    pairs = Fraction(2 * a * s, h) if recompute == "none" else Fraction(0)
    layer = s * b * h * ((32 + pairs) / t if is_apart else 8 + (24 + pairs) / t)
    ends = Fraction(2 * 2 * s * b * h, t if is_apart else 1)  # what the last norm and the head read
    found = terms(slug, Setup(s, b, devices=t, tensor=t, sequence_parallel=is_apart, recompute=recompute))
    assert found["activations"] == layer * L + ends


def test_recomputed_layers_keep_their_input_and_one_layer_is_at_work():
    c = sizes("gpt3-175b")
    s, h, L, t = 256, c["d_model"], c["n_layers"], 4
    found = terms("gpt3-175b", Setup(s, devices=t, tensor=t, recompute="full"))
    assert found["activations"] == 2 * s * h * L + s * h * (8 + 24 // t) + 4 * s * h
    apart = terms("gpt3-175b", Setup(s, devices=t, tensor=t, recompute="full", sequence_parallel=True))
    assert apart["activations"] == (2 * s * h * L + 32 * s * h + 4 * s * h) // t


def test_logits_are_divided_with_the_vocabulary():
    c = sizes("llama3-8b")
    assert terms("llama3-8b", Setup(100, 2, devices=4, tensor=4))["logits"] == 4 * 2 * 100 * c["vocab_size"] // 4


def test_the_first_stage_keeps_the_micro_batches_of_all_stages():
    """arXiv 2205.05198, 4.2.3: L/p layers of p micro-batches; the states are those of a stage."""
    whole, staged = (terms("gpt3-175b", Setup(64, devices=p, pipeline=p)) for p in (1, 8))
    c = sizes("gpt3-175b")
    layers = whole["activations"] - 4 * 64 * c["d_model"]
    assert staged["activations"] == layers
    in_layers = sum(int(w.count) for w in presets.model("gpt3-175b").counts.weights if w.layers is not None)
    tables = (c["vocab_size"] + c["n_positions"]) * c["d_model"]
    assert staged["weights"] == 2 * (in_layers // 8 + tables)
    assert staged["logits"] == 0  # the last stage has them


def test_tensor_parallelism_divides_the_weights_as_inference_does():
    costs = costs_of(presets.model("llama3-70b").counts)
    found = terms("llama3-70b", Setup(16, devices=8, tensor=8))
    assert found["weights"] == costs.devices.split_weight_bytes(8)
    assert found["gradients"] == found["weights"]


# --- adapters ---------------------------------------------------------------------------------------------------------


def test_lora_of_llama_by_hand():
    """Rank 16 on queries and values. Frozen maps keep nothing: of a layer stay the inputs of two norms, of the adapted
    maps (one array), queries, keys, values, shares, of the gate, its activation and up; 16 numbers of each adapter.
    """
    c = sizes("llama3-8b")
    S, D, F, K, L, V = 64, c["d_model"], c["d_ff"], c["n_kv_heads"] * c["d_head"], c["n_layers"], c["vocab_size"]
    N = c["n_heads"]
    found = terms("llama3-8b", Setup(S, 2, method="lora"), Adapter(16, ("q_proj", "v_proj")))
    trained = 6_815_744
    assert found["weights"] == 2 * presets.model("llama3-8b").counts.total
    assert (found["adapters"], found["gradients"]) == (4 * trained, 4 * trained)
    assert (found["master weights"], found["optimizer states"]) == (0, 8 * trained)
    layer = 2 * S * D + S * D + S * D + 2 * S * K + N * S * S + 3 * S * F + 2 * 16 * S
    assert found["activations"] == 2 * 2 * (L * layer + S * D)
    assert found["logits"] == 4 * 2 * S * V


def test_qlora_of_llama_by_hand():
    found = terms("llama3-8b", Setup(64, method="qlora"), Adapter(8, (ALL_LINEAR,)))
    D, F, K, L = 4096, 14336, 1024, 32
    matrices = [(D, D), (K, D), (K, D), (D, D), (F, D), (F, D), (D, F)]
    assert found["weights in NF4"] == L * sum(nf4_bytes(a * b) for a, b in matrices)
    rest = presets.model("llama3-8b").counts.total - L * sum(a * b for a, b in matrices)
    assert found["weights"] == 2 * rest
    assert found["dequantized matrix"] == 2 * F * D


def test_experts_in_stacks_stay_in_16_bits():
    """transformers has bitsandbytes quantize linear layers alone: the experts of Mixtral are none."""
    found = terms("mixtral-8x7b", Setup(64, method="qlora"), Adapter(8, ("q_proj",)))
    experts = 32 * 8 * 3 * 4096 * 14336
    assert found["weights"] > 2 * experts


@pytest.mark.parametrize("slug", EVERY)
def test_every_model_can_be_trained_in_every_way(slug):
    """Terms are never negative; adapters take less than training in full, and NF4 no more than 16 bits."""
    full = terms(slug, Setup(37, devices=2, sharding="zero3", optimizer="adamw-8bit", recompute="full"))
    found = {
        method: terms(
            slug,
            Setup(37, devices=2, sharding="fsdp", method=method),
            every_linear(presets.model(slug).architecture, 2),
        )
        for method in ("lora", "qlora")
    }
    for one in (full, *found.values()):
        assert all(n >= 0 for n in one.values())
    whole = sum(terms(slug, Setup(37, devices=2)).values())
    assert sum(full.values()) < whole and sum(found["lora"].values()) < whole
    stored = [found["qlora"][name] for name in ("weights", "weights in NF4")]
    assert sum(stored) <= found["lora"]["weights"]


@pytest.mark.parametrize(
    "setup, said",
    [
        (Setup(devices=6, tensor=4), "not a multiple"),
        (Setup(devices=3, tensor=3), "heads and widths"),
        (Setup(devices=3, pipeline=3), "layers do not divide"),
    ],
)
def test_a_split_that_cannot_be_is_one_line(setup, said):
    with pytest.raises(Problem, match=said):
        terms("llama3-8b", setup)
    with pytest.raises(Problem, match="adapters under tensor"):
        terms("llama3-8b", Setup(devices=2, tensor=2, method="lora"), Adapter())


# --- time and energy --------------------------------------------------------------------------------------------------


def test_flops_of_full_training_are_three_forward_passes_or_four():
    costs = costs_of(presets.model("llama3-8b").counts)
    each = costs.compute.training_flops_per_token(512)
    assert flops_per_token(costs, Setup(512)) == each
    assert flops_per_token(costs, Setup(512, recompute="full")) == each * 4 / 3
    assert flops_per_token(costs, Setup(512, recompute="selective")) == each


@pytest.mark.parametrize("slug", ["llama3-8b", "deepseek-v3", "mamba-130m"])
def test_frozen_weights_save_the_gradient_of_the_weights(slug):
    """Two passes over the maps, three over pairs of tokens, three over the adapters."""
    model = presets.model(slug)
    costs = costs_of(model.counts)
    trained = low_rank.adapters(model.counts, model.architecture, every_linear(model.architecture, 4))
    full = costs.compute.training_flops_per_token(256)
    found = flops_per_token(costs, Setup(256, method="lora"), trained)
    assert full * 2 / 3 < found < full
    if slug == "llama3-8b":
        pairs = Fraction(costs.compute.pair_flops(256, 256)[0], 256)
        assert found == full * 2 / 3 + pairs + 6 * trained.total


def test_a_run_by_hand():
    """10¹⁸ FLOPs on 4 devices of 10¹⁵ FLOP/s at a half: 500 s, 2,000 device-seconds, of 300 W 600 kJ."""
    run = Run(10**18, 4, 10**15, Fraction(1, 2), 300)
    assert (run.seconds, run.device_hours, run.joules) == (500, Fraction(2000, 3600), 600_000)
    assert implied_utilization(10**18, run.device_hours, 10**15) == Fraction(1, 2)
    assert Run(1, 1, 1, Fraction(1)).joules is None


def test_published_runs():
    """Where a maker states a utilization, ours, from the hours that it states, is within a percent of the peak of it;
    no run reaches more than three fifths of the peak.
    """
    runs = training_runs.stated().run
    assert len(runs) >= 9 and {run.model for run in runs} >= {
        "llama3.1-405b",
        "deepseek-v3",
        "llama2-70b",
        "smollm3-3b",
    }
    for run in runs:
        share = float(run.implied_utilization * 100)
        assert 15 < share < 60, run.model
        if run.utilization is not None:
            assert run.utilization[0] - 1 <= share <= run.utilization[1] + 1, run.model
    by_model = {run.model: run for run in runs}
    assert by_model["smollm3-3b"].device_hours == 384 * 24 * 24
    assert training_runs.watts_of("h100") == 700 and training_runs.watts_of("a100-80gb") == 400
    assert training_runs.watts_of("l4") is None


@pytest.mark.parametrize("zero", [0, 1, 3])
def test_expert_parallelism_divides_routed_experts_and_nothing_else(zero):
    """Mixtral by hand: 32 layers of 8 experts of 3 × 4,096 × 14,336; each of 2 copies is on 8 devices."""
    routed = 32 * 8 * 3 * 4096 * 14336
    rest = 46_702_792_704 - routed
    found = train("mixtral-8x7b", devices=16, expert=8, zero=zero).terms
    assert train("mixtral-8x7b", devices=16, expert=8).setup.said == "data parallel 16, expert parallel 8"
    dense, copies = (16, 2) if zero else (1, 1)
    assert found["optimizer states"] == 8 * rest // dense + 8 * (routed // 8) // copies
    assert found["master weights"] == 4 * rest // dense + 4 * (routed // 8) // copies
    whole = zero < 3
    assert found["weights"] == 2 * rest // (1 if whole else 16) + 2 * (routed // 8) // (1 if whole else 2)
    assert found["activations"] == train("mixtral-8x7b", devices=16, zero=zero).terms["activations"]


@pytest.mark.parametrize(
    ("model", "expert", "why"),
    [("llama3-8b", 2, "has none"), ("mixtral-8x7b", 3, "has 8"), ("mixtral-8x7b", 8, "4 data parallel do not divide")],
)
def test_an_expert_degree_that_does_not_divide_is_refused(model, expert, why):
    with pytest.raises(Problem, match=why):
        train(model, devices=4 if expert == 8 else 6, expert=expert)
