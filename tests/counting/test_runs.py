"""Formats are offered only where an engine runs them, and what is left out has its reason."""

from __future__ import annotations

import msgspec
import pytest

from macros.api.fits import fits
from macros.catalogue import presets
from macros.counting.accelerators import accelerators
from macros.counting.capacity import Capacity
from macros.counting.cards import cards_of
from macros.counting.conditions import Conditions
from macros.counting.costs import of
from macros.counting.fitting import BEST, LADDER, chosen, smallest
from macros.counting.formats import PUBLISHED, WEIGHTS
from macros.counting.own_machine import named
from macros.counting.runs import APPLE, CPU, EVERY, GAUDI, NEURON, NVIDIA, TABLE, TPU, kinds_of, left_out, machine_of
from macros.data.capacity import capacity

MACHINES = accelerators()
PLAIN = {PUBLISHED, "bfloat16", "float16", "float32"}


def offered(slug: str) -> set[str]:
    return {one for one in LADDER if not left_out(one, MACHINES[slug])} - PLAIN


@pytest.mark.parametrize(
    ("slug", "formats"),
    [
        ("tpu-v5e", {"fp8", "int4"}),
        ("trainium2", {"fp8"}),
        ("gaudi3", {"fp8"}),
        ("v100", {"Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "int4", "Q3_K_M", "Q2_K"}),
        ("m4-max", {"Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "int4", "Q3_K_M", "Q2_K"}),
        ("epyc-9004", {"Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "int4", "Q3_K_M", "Q2_K"}),
        *[(slug, set(LADDER) - PLAIN) for slug in ("h100", "rtx-3090", "mi300x", "arc-b580")],
    ],
)
def test_the_ladder_of_a_machine(slug, formats):
    assert offered(slug) == formats


def test_each_machine_has_a_kind_and_each_format_an_engine():
    """Each GPU of NVIDIA has its compute capability; every format runs somewhere, and floats everywhere."""
    for one in MACHINES.values():
        assert machine_of(one) in (*EVERY, TPU, GAUDI, NEURON), one.name
        assert (one.capability is not None) == (machine_of(one) == NVIDIA), one.name
    known = {kind for runs in TABLE for kind in (*runs.nvidia, *(k for kinds in runs.others.values() for k in kinds))}
    assert {kind for name in WEIGHTS for kind in kinds_of(name)} - {"16 bits"} == known
    assert all(not left_out(name, one) for name in PLAIN for one in MACHINES.values())


def test_a_machine_of_ones_own_has_the_kind_of_the_listed_one_and_not_of_its_name():
    own = named("tpu-v5e,24GB", MACHINES).accelerator
    assert own is not None and machine_of(own) == TPU
    (card,) = cards_of("tpu-v5e", MACHINES, 1)
    assert machine_of(card) == TPU
    assert machine_of(msgspec.structs.replace(MACHINES["h100"], name="TPU of NVIDIA")) == NVIDIA


def test_every_format_runs_on_a_recent_gpu_of_nvidia():
    """The tools load the tables only for other machines (docs/assets/tools/runs.mjs)."""
    recent = [one for one in MACHINES.values() if machine_of(one) == NVIDIA and one.capability >= 80]
    assert len(recent) > 20 and not any(left_out(name, one) for name in WEIGHTS for one in recent)


@pytest.mark.parametrize(
    ("format", "slug", "engine", "said"),
    [
        ("Q2_K", "tpu-v5e", "", "No engine runs Q2_K on TPU v5e: SGLang runs Q2_K on NVIDIA from"),
        ("nvfp4", "h100", "SGLang", "SGLang does not run nvfp4 on H100 SXM: it runs it on NVIDIA from compute"),
        ("fp8", "a100-80gb", "TensorRT-LLM", "it runs it on NVIDIA from compute capability 8.9."),
        ("gptq-4bit-g128", "b200", "TensorRT-LLM", "from compute capability 8.0 to 9.0."),
        ("mlx-4bit", "mi300x", "", "MLX runs mlx-4bit on NVIDIA from compute capability 7.5 and Apple."),
        ("Q4_K_M", "h100", "vLLM", "vLLM does not run Q4_K_M on H100 SXM."),
    ],
)
def test_what_is_left_out_has_its_reason(format, slug, engine, said):
    assert said in left_out(format, MACHINES[slug], engine)


@pytest.mark.parametrize(
    ("format", "slug", "engine"),
    [
        ("nvfp4", "b200", "SGLang"),
        ("fp8", "h100", "TensorRT-LLM"),
        ("Q2_K", "m1", "llama.cpp"),
        ("awq-4bit-g128", "t4", "vLLM"),
    ],
)
def test_what_an_engine_runs_has_no_word(format, slug, engine):
    assert left_out(format, MACHINES[slug], engine) == ""
    assert left_out(format, None, engine) == ""


def test_an_answer_takes_a_format_that_the_machine_runs():
    """And says of the one that was asked why not; the last format of the ladder is one of the machine's."""
    answer = fits("llama3.3-70b", on="tpu-v5e", weights="Q2_K")
    assert "No engine runs Q2_K on TPU v5e" in answer.advice
    sized = fits("llama3-8b", on="tpu-v5e")
    assert "No engine" not in sized.advice
    costs_fit = fits("llama3-8b", on="tpu-v5e", weights="Q8_0")
    assert costs_fit.is_enough and "fp8 fits" in costs_fit.advice
    costs = of(sized.model.counts)
    given = Conditions(4096, 1, PUBLISHED, "bfloat16", 1, MACHINES["tpu-v5e"])
    assert chosen(costs, BEST, given, 95 * 10**8) == "fp8"
    assert chosen(costs, BEST, Conditions(4096), 95 * 10**8) == "Q8_0"
    assert smallest(costs, MACHINES["tpu-v5e"]) == "int4"
    assert smallest(costs) == "Q2_K"
    assert machine_of(MACHINES["m1"]) == APPLE and machine_of(MACHINES["epyc-7003"]) == CPU


def test_an_engine_says_what_it_does_not_run_there():
    """In its notes, for its newest version; an older one may have run it."""
    there = fits("llama3-8b", on="2xh100", weights="nvfp4", engine="sglang", devices=2)
    assert there.deployment.notes[0].startswith("SGLang does not run nvfp4 on H100 SXM")
    older = fits("llama3-8b", on="2xh100", weights="nvfp4", engine="sglang", devices=2, version="0.5.3")
    assert not any("does not run" in note for note in older.deployment.notes)


@pytest.mark.parametrize(
    ("model", "slug", "said"),
    [
        ("deepseek-v3", "v100", "No engine runs fp8 on V100"),
        ("deepseek-v3", "m4-max", "No engine runs fp8 on M4 Max"),
        ("gpt-oss-20b", "trainium2", "No engine runs mxfp4 on Trainium2"),
        ("deepseek-v3", "h100", ""),
        ("gpt-oss-20b", "v100", ""),  # llama.cpp does
        ("llama3-8b", "trainium2", ""),
    ],
)
def test_a_published_format_is_checked_too(model, slug, said):
    """For the model itself, for its data without a trace, and for what is tried first."""
    answer, costs = fits(model, on=slug), of(presets.model(model).counts)
    assert (said in answer.advice) if said else ("No engine" not in answer.advice)
    assert tuple(Capacity(capacity(model)).published) == costs.published
    huge = Conditions(4096, 1, PUBLISHED, "bfloat16", 1, MACHINES[slug])
    assert chosen(costs, BEST, huge, 10**13) == ("bfloat16" if said else PUBLISHED)


def test_an_engine_alone_does_not_run_a_published_format():
    assert "MLX does not run fp8 on M4 Max" in fits("deepseek-v3", on="m4-max", engine="mlx").advice
    assert "does not run" not in fits("deepseek-v3", on="h200", engine="vllm").advice


def test_an_engine_without_a_machine_is_offered_only_what_it_runs_somewhere():
    assert left_out("Q2_K", None, "vLLM") == "vLLM does not run Q2_K."
    assert not any(
        left_out(format, None, engine) for format, engine in (("Q2_K", "llama.cpp"), ("fp8", "vLLM"), ("Q2_K", ""))
    )
