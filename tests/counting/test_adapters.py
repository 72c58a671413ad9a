"""LoRA, DoRA and QLoRA: what is trained, held against PEFT's own count; NF4, against bitsandbytes' own tensors."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import pytest
from reference import golden

from macros.catalogue import presets
from macros.counting.adapters import (
    ALL_LINEAR,
    MAMBA,
    RANK,
    Adapter,
    Adapters,
    Kind,
    adapters,
    default_targets,
    facts,
    modules,
)
from macros.counting.training_setup import nf4_bytes
from macros.engine.architectures import llama
from macros.engine.errors import Problem
from macros.views.costs.fine_tuning import adapter_table

RECORD = json.loads((Path(__file__).parent.parent / "golden" / "adapters.json").read_text("utf-8"))
NF4 = "weights in NF4"


def trained(slug: str, adapter: Adapter) -> Adapters:
    model = presets.model(slug)
    return adapters(model.counts, model.architecture, model.model_type, adapter)


@cache
def settings(name: str) -> Adapter:
    """A setting of the record, as ours."""
    given = RECORD["settings"][name]
    targets = given.get("target_modules")
    if targets is not None:
        targets = (targets,) if isinstance(targets, str) else tuple(targets)
    return Adapter(
        given["r"],
        targets,
        given.get("use_dora", False),
        given.get("bias", "none"),
        tuple(given.get("modules_to_save", ())),
    )


COUNTED = [(slug, name) for slug, row in RECORD["models"].items() for name in row if name != NF4]


def test_the_record_is_of_every_kind_of_model():
    """At least twenty models, of the types that the issue names, and of one setting all together."""
    models = RECORD["models"]
    assert len(models) >= 60 and len(COUNTED) >= 400
    types = {presets.model(slug).model_type for slug in models}
    assert types >= {
        *(
            "gpt2",
            "llama",
            "qwen2",
            "qwen3",
            "gemma",
            "gemma2",
            "gemma3_text",
            "phi3",
            "mixtral",
            "falcon",
            "mpt",
            "bloom",
        ),
        *("opt", "t5", "bert", "deepseek_v2", "deepseek_v3", "mamba", "gpt_oss", "qwen3_moe", "olmoe", "jamba", "bart"),
    }


@pytest.mark.parametrize("slug, name", COUNTED)
def test_trainable_parameters_are_those_that_peft_counts(slug, name):
    """Where PEFT refuses, so do we, but: where it has no default, or loses it in its search for experts (0.21.2), the
    default is all-linear; and all-linear of Mamba models leaves out the module that PEFT refuses.
    """
    expected, adapter = RECORD["models"][slug][name], settings(name)
    model_type = presets.model(slug).model_type
    is_mamba = model_type in MAMBA and adapter.targets == (ALL_LINEAR,)
    if expected is not None and adapter.saved and not _has(slug, adapter.saved[0]):  # of which PEFT says nothing
        with pytest.raises(Problem, match="modules to save"):
            trained(slug, adapter)
    elif expected is not None:
        assert trained(slug, adapter).total == expected
    elif name == "default":
        assert trained(slug, adapter).targets == (default_targets(model_type) or (ALL_LINEAR,))
    elif is_mamba:
        names = {one.module.name.rpartition(".")[2] for one in trained(slug, adapter).modules}
        assert "out_proj" not in names and "in_proj" in names
    else:
        with pytest.raises(Problem):
            trained(slug, adapter)


@pytest.mark.parametrize("slug", [slug for slug, row in RECORD["models"].items() if NF4 in row])
def test_weights_in_nf4_are_those_that_transformers_puts_there(slug):
    model = presets.model(slug)
    known = modules(model.counts, model.architecture, model.model_type)
    ours = sum(m.outputs * m.inputs * m.members * len(m.layers) for m in known if m.is_quantized)
    # transformers spares the module of the last parameter, a norm or the head: OLMo 1B, tied, with norms that have no
    # weights, loses its last down projection by this.
    spared = {"olmo-1b": 2048 * 8192}.get(slug, 0)
    assert ours - spared == RECORD["models"][slug][NF4]


def _has(slug: str, name: str) -> bool:
    return any(m.name.rpartition(".")[2] == name for m in modules(*_of(slug)))


def test_llama_by_hand():
    """Rank 16 on queries and values of Llama 3 8B: 32 layers of 16 · (4096 + 4096) and 16 · (4096 + 1024)."""
    answer = trained("llama3-8b", Adapter(16, ("q_proj", "v_proj")))
    assert answer.total == 32 * 16 * (2 * 4096 + 4096 + 1024) == 6_815_744
    assert trained("llama3-8b", Adapter(16)).total == answer.total  # PEFT's default is these two
    assert trained("llama3-8b", Adapter(16)).is_default and not answer.is_default
    assert answer.low_rank == answer.total and answer.magnitudes == 0


def test_a_magnitude_for_each_output():
    """DoRA adds a number for each output, not for each input, also where a matrix is stored [in, out]."""
    plain, dora = (trained("gpt2", Adapter(8, ("c_attn",), is_dora)) for is_dora in (False, True))
    assert dora.total - plain.total == dora.magnitudes == 12 * 3 * 768


def test_all_linear_leaves_out_the_head_and_what_is_no_linear_layer():
    known = modules(*_of("mixtral-8x7b"))
    kinds = {m.name.removeprefix("model.layers.{i}."): m.kind for m in known}
    assert kinds["mlp.experts.gate_up_proj"] is Kind.STACK and kinds["lm_head"] is Kind.HEAD
    assert kinds["self_attn.q_proj"] is Kind.LINEAR and kinds["mlp.gate"] is Kind.OTHER
    [stack] = [m for m in known if m.name.endswith("gate_up_proj")]
    assert (stack.outputs, stack.inputs, stack.members) == (2 * 14336, 4096, 8)


def _of(slug: str):
    model = presets.model(slug)
    return model.counts, model.architecture, model.model_type


def test_experts_have_a_rank_of_their_own():
    """Gate and up matrices of an expert are one parameter, with twice the rank; each expert has its own matrices."""
    answer = trained("mixtral-8x7b", Adapter(4, ("w1", "w2", "w3")))
    by_hand = 32 * 8 * (2 * 4 * (4096 + 2 * 14336) + 4 * (14336 + 4096))
    assert answer.total == by_hand == RECORD["models"]["mixtral-8x7b"]["Mixtral's names"] * 4 // 3


@pytest.mark.parametrize(
    "slug, adapter, said",
    [
        ("llama3-8b", Adapter(8, ("q_prj",)), "did you mean"),
        ("llama3-8b", Adapter(8, ("nothing",)), "q_proj, k_proj, v_proj"),
        ("mixtral-8x7b", Adapter(8, ("w1",)), "w3"),
        ("mixtral-8x7b", Adapter(8, (ALL_LINEAR,), dora=True), "DoRA"),
        ("mamba-130m", Adapter(8, ("out_proj",)), "in_proj"),
        ("llama3-8b", Adapter(8, ("q_proj",), saved=("embed",)), "embed"),
    ],
)
def test_what_cannot_be_adapted_is_one_line(slug, adapter, said):
    with pytest.raises(Problem) as problem:
        trained(slug, adapter)
    assert said in str(problem.value) and "\n" not in str(problem.value)


@pytest.mark.parametrize("slug", sorted(slug for slug in presets.paths() if presets.preset(slug).config is not None))
def test_every_model_of_the_catalogue_can_be_adapted(slug):
    """With the default and with all linear layers: low rank is less than the whole, and grows with the rank."""
    small, large = (trained(slug, Adapter(rank, (ALL_LINEAR,))) for rank in (1, 3))
    assert 0 < small.total < presets.model(slug).counts.total
    assert large.total == 3 * small.total
    assert trained(slug, Adapter()).adapter.rank == RANK


def test_the_facts_name_model_types_that_there_are():
    from macros.engine.architectures import modules_by_type

    known = modules_by_type()
    named = [*facts().defaults, *(t for one in facts().stacked for t in one.model_types)]
    assert [t for t in named if t not in known and f"{t}_text" not in known] == []


@pytest.mark.parametrize(
    "shape, single, double",  # bytes that bitsandbytes 0.50.2 gave a matrix and its scales, its tables aside
    [
        ((4096, 4096), 9_437_184, 8_654_848),
        ((1024, 4096), 2_359_296, 2_163_712),
        ((50, 70), 1_970, 1_809),
        ((768, 2304), 995_328, 912_816),
        ((11, 13), 84, 79),
        ((257, 64), 9_252, 8_489),
    ],
)
def test_nf4_is_as_bitsandbytes_stores_it(shape, single, double):
    n = math.prod(shape)
    assert nf4_bytes(n, double=False) == single
    assert nf4_bytes(n) == double


def test_a_table_takes_names_of_modules_alone():
    with pytest.raises(Problem, match="targets = 1: expected the name of a module"):
        adapter_table(["gpt2"], targets=[1, "c_attn"])


def test_a_weight_without_dimensions_is_no_matrix(monkeypatch):
    """A single number that a checkpoint stores as []."""
    feed_forward = llama.feed_forward
    monkeypatch.setattr(llama, "feed_forward", lambda x, w, c: w("scale") * feed_forward(x, w, c))
    model = presets.make("llama", golden("llama").raw)
    scale = next(m for m in modules(model.counts, model.architecture, "llama") if m.name.endswith("scale"))
    assert (scale.kind, scale.outputs, scale.inputs) == (Kind.OTHER, 1, 1)
