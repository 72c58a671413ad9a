"""Bytes between devices: by hand, against what others publish and how others split, and for every model."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction

import pytest
from reference import TESTS

from macros.catalogue import presets
from macros.counting import links
from macros.counting.accelerators import accelerator
from macros.counting.conditions import Conditions
from macros.counting.costs import Costs
from macros.counting.costs import of as costs_of
from macros.counting.links import ALL_GATHER, ALL_REDUCE, COMBINE, DISPATCH, SEND, Transfer, link_seconds, transfers
from macros.counting.parts import cut
from macros.counting.splits import Split
from macros.engine.tensors import Weight

PLANS = json.loads((TESTS / "golden" / "tp_plans.json").read_text("utf-8"))["plans"]
COUNTED = [slug for slug in presets.paths() if presets.preset(slug).config is not None]


def of(slug: str) -> Costs:
    return costs_of(presets.model(slug).counts)


def named(found: tuple[Transfer, ...]) -> dict[tuple[str, str], Transfer]:
    return {(t.kind, t.after): t for t in found}


# --- by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("new, texts", [(1, 1), (1, 16), (500, 1), (500, 3)])
@pytest.mark.parametrize("n", [2, 8])
def test_llama_3_70b_under_tensor_parallelism(n, new, texts):
    """Two all-reduces of T·D numbers in each of 80 layers, one of the token embedding; the last row's logits."""
    D, L, V = 8192, 80, 128256
    found = named(transfers(of("llama3-70b"), Split(tensor=n), new, Conditions(1000, texts)))
    ring = Fraction(2 * (n - 1), n) * texts * new * D * 2
    logits = Fraction(n - 1, n) * texts * V * 2
    assert {key: (t.times, t.sent) for key, t in found.items()} == {
        (ALL_REDUCE, "embed"): (1, ring),
        (ALL_REDUCE, "attention"): (L, L * ring),
        (ALL_REDUCE, "feed_forward"): (L, L * ring),
        (ALL_GATHER, "unembed"): (1, logits),
    }
    assert all(t.total == t.sent * n for t in found.values())


def test_stages_hand_over_a_vector_for_each_token():
    """Five stages of one device each: four messages of D numbers for a token, and nothing else."""
    costs, given = of("llama3-70b"), Conditions(4096, 3, accelerator=accelerator("h100"))
    [send] = found = transfers(costs, Split(pipeline=5), 7, given)
    assert (send.kind, send.times, send.sent, send.total) == (SEND, 4, 4 * 7 * 3 * 8192 * 2, 4 * 7 * 3 * 8192 * 2)
    assert link_seconds(found, Split(pipeline=5), 7, given) == Fraction(send.sent, 450 * 10**9 * 5), "five at once"


def test_a_padded_vocabulary_is_gathered_with_its_padding():
    found = named(transfers(of("gpt2"), Split(tensor=3), 1, Conditions(100)))
    assert found[ALL_GATHER, "unembed"].sent == Fraction(2, 3) * 50304 * 2, "50,257 rows, padded to 64 × 3"


def test_mamba_adds_up_inside_a_layer_too():
    """Δ, B and C are narrow sums over the inner width, which is cut: an all-reduce of their own."""
    found = named(transfers(of("mamba-2.8b"), Split(tensor=4), 1, Conditions(100)))
    inside = found[ALL_REDUCE, "linear"] if (ALL_REDUCE, "linear") in found else found[ALL_REDUCE, "mamba"]
    assert sum(t.sent for key, t in found.items() if key[1] in ("mamba", "linear")) == 64 * Fraction(3, 2) * 2 * (
        2560 + 160 + 2 * 16
    )
    assert inside.times >= 64


def test_deepseek_v3_split_by_sequences():
    """Attention sends nothing; a token goes to its experts' devices and back, in 58 layers."""
    costs = of("deepseek-v3")
    found = named(transfers(costs, Split(expert=16, data=16), 1, Conditions(4096, 64)))
    assert set(found) == {(DISPATCH, "mixture_of_experts"), (COMBINE, "mixture_of_experts")}
    copies = links.devices_with_experts(256, 8, Split(expert=16, data=16))
    assert found[COMBINE, "mixture_of_experts"].sent == 58 * 4 * copies * 7168 * 2
    assert found[COMBINE, "mixture_of_experts"].total == 58 * 64 * copies * 7168 * 2


def test_experts_travel_in_their_own_width():
    """Nemotron 3 Ultra's experts work on a latent vector, and that is what is sent."""
    found = named(transfers(of("nemotron-3-ultra-550b-a55b"), Split(expert=8, data=8), 1, Conditions(4096, 8)))
    dispatch = found[DISPATCH, "mixture_of_experts"]
    copies = links.devices_with_experts(512, 22, Split(expert=8, data=8))
    assert dispatch.sent == dispatch.times * copies * 2048 * 2


@pytest.mark.parametrize("experts, chosen, degree", [(8, 2, 4), (8, 2, 8), (12, 3, 4), (6, 4, 2)])
def test_expected_devices_by_counting_every_choice(experts, chosen, degree):
    on_each, split = experts // degree, Split(expert=degree, data=degree)
    choices = list(itertools.combinations(range(experts), chosen))
    others = sum(len({e // on_each for e in choice} - {0}) for choice in choices)
    assert links.devices_with_experts(experts, chosen, split) == Fraction(others, len(choices))


# --- against others ---------------------------------------------------------------------------------------------------

# DeepEP, docs/legacy.md, "Low-latency kernels with pure RDMA": devices, µs and GB/s of a dispatch, of a combine, for
# 128 tokens on each device, 7,168 numbers, 8 experts, FP8 out and BF16 back. It sends a copy for each expert.
DEEPEP = (
    (8, 77, 98, 114, 127),
    (16, 118, 63, 195, 74),
    (32, 155, 48, 273, 53),
    (64, 173, 43, 314, 46),
    (128, 192, 39, 369, 39),
    (256, 194, 39, 360, 40),
)


@pytest.mark.parametrize("devices, out, out_rate, back, back_rate", DEEPEP)
def test_deepep_sends_these_bytes(devices, out, out_rate, back, back_rate):
    """Time × bandwidth of DeepEP's own measurements are the bytes of a layer, within what two digits leave."""
    split = Split(expert=devices, data=devices)
    found = named(transfers(of("deepseek-v3"), split, 1, Conditions(4096, 128 * devices), "fp8"))
    copies = links.devices_with_experts(256, 8, split) * 58
    for kind, micros, rate in ((DISPATCH, out, out_rate), (COMBINE, back, back_rate)):
        sent = found[kind, "mixture_of_experts"].sent / copies * 8
        assert abs(float(sent) / (micros * 1000 * rate) - 1) < 0.03, kind
    if devices == 256:  # one expert on a device: a copy for each device is a copy for each expert
        assert copies == 58 * Fraction(8 * 255, 256)


# transformers cuts the inputs of these and adds the shares; the splits have a copy on each device (vLLM of Qwen4).
COPIED = {
    "muse_spark_text": {"mlp.pre_expert_proj", "mlp.post_expert_proj"},
    "qwen4_exp_text": {f"{part}_hyper_connection.input_mix_weight_down" for part in ("attn", "mlp")},
}


@pytest.mark.parametrize("slug", [slug for slug in COUNTED if presets.model(slug).preset.config["model_type"] in PLANS])
def test_matrices_are_cut_as_transformers_cuts_them(slug):
    """A product is a sum of shares where its tensor parallel plan cuts inputs, and nowhere that it cuts outputs."""
    model = presets.model(slug)
    model_type = model.preset.config["model_type"]
    plan, copied = PLANS[model_type], COPIED.get(model_type, set())
    sums = {
        weight.name
        for _, step in cut(model.counts.trace)
        for leaf in step.walk()
        if links.is_sum_of_shares(leaf)
        for x in leaf.inputs
        if isinstance(weight := x.origin.source, Weight)
    }
    for w in model.counts.weights:
        name = w.name.partition("{i}.")[2].removesuffix(".weight")
        way = plan.get(name)
        if way and w.routed is None and w.layers:
            assert (w.name in sums) == (way != "colwise" and name not in copied), w.name


def test_many_matrices_are_held_against_transformers():
    assert len(PLANS) > 60 and sum(map(len, PLANS.values())) > 350
    assert all(PLANS[model_type][name] != "colwise" for model_type, names in COPIED.items() for name in names)


# --- for every model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", COUNTED)
def test_any_model_on_several_devices(slug):
    """One device sends nothing; more of them send more in all; a prompt sends as much as its tokens, but the logits."""
    costs, given = of(slug), Conditions(64, 64, accelerator=accelerator("h100"))
    assert transfers(costs, Split(), 1, given) == () and link_seconds((), Split(), 1, given) == 0
    before = Fraction(0)
    for n in costs.devices.tensors:
        split = next((s for s in costs.devices.splits(n) if s.tensor == n), None)
        if split is None or n == 1:
            continue
        found = transfers(costs, split, 1, given)
        assert found and all(t.sent > 0 and t.total == t.sent * n for t in found)
        total = sum(t.total for t in found)
        assert total > before
        before = total
        if not costs.compute.reads_source:
            more = named(transfers(costs, split, 10, given))
            same = {key: t.sent * (1 if t.kind == ALL_GATHER else 10) for key, t in named(found).items()}
            assert {key: t.sent for key, t in more.items()} == same
    for split in (s for n in (2, 4, 8, 16) for s in costs.devices.splits(n, 64)):
        found = transfers(costs, split, 1, given)
        assert link_seconds(found, split, 1, given) * 450 * 10**9 * min(split.pipeline, 64) == sum(
            t.sent for t in found
        )


def test_a_machine_without_links_has_no_time_on_them():
    with pytest.raises(ValueError, match="links"):
        link_seconds((), Split(2), 1, Conditions(10, accelerator=accelerator("rtx-4090")))
