"""LoRA, DoRA and QLoRA: what is trained, held against PEFT's own count; NF4, against bitsandbytes' own tensors."""

from __future__ import annotations

import json
import math
from functools import cache
from pathlib import Path

import pytest
from reference import golden
from reference.configs import configs

import macros as ep
from macros.__main__ import main
from macros.catalogue import presets
from macros.counting.adapter_choice import ALL_LINEAR, Adapter
from macros.counting.adapters import Adapters, adapters, every_linear
from macros.counting.module_tree import Kind, modules
from macros.counting.training_setup import nf4_bytes
from macros.engine.architectures import architectures, find, llama
from macros.engine.errors import Problem
from macros.views.costs.fine_tuning import adapter_table

RECORD = json.loads((Path(__file__).parent.parent / "golden" / "adapters.json").read_text("utf-8"))
NF4 = "weights in NF4"


def trained(slug: str, adapter: Adapter) -> Adapters:
    model = presets.model(slug)
    return adapters(model.counts, model.architecture, adapter)


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
    expected, adapter = RECORD["models"][slug][name], settings(name)
    if expected is None:
        with pytest.raises(Problem):
            trained(slug, adapter)
        return
    answer = trained(slug, adapter)
    assert answer.total == expected
    if adapter.saved and not _has(slug, adapter.saved[0]):  # of which PEFT says nothing
        assert adapter.saved[0] in answer.unmatched


@pytest.mark.parametrize("slug", [slug for slug, row in RECORD["models"].items() if NF4 in row])
def test_weights_in_nf4_are_those_that_transformers_puts_there(slug):
    model = presets.model(slug)
    known = modules(model.counts, model.architecture)
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
    return model.counts, model.architecture


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
        ("mamba-130m", Adapter(8, ALL_LINEAR), "exclude_modules out_proj"),
        ("qwen3.5-9b", Adapter(8), "no default"),
        ("llama3-8b", Adapter(8, r".*\.self_attn\..*", dora=True, excluded=r".*_proj"), "no module that is left"),
        ("llama3-8b", Adapter(8, r".*mlp.*"), "model.layers.0.mlp: PEFT adapts linear layers"),
        ("mixtral-8x7b", Adapter(8, (), parameters=("experts.gate_up_proj",), dora=True), "DoRA of"),
        ("llama3-8b", Adapter(8, ("q_proj",), parameters=("q_proj.weight",)), "adapted as well"),
        ("llama3-8b", Adapter(8, (), parameters=("norm.weight",)), "1 dimensions"),
        ("llama3-8b", Adapter(8, ("q_proj",), saved=("proj",)), "which is adapted"),
        ("llama3-8b", Adapter(8, ("q_proj", "norm")), "PEFT adapts linear layers"),
        ("llama3-8b", Adapter(8, (ALL_LINEAR,), layers=(1,)), "name the targets"),
        ("llama3-8b", Adapter(8, ("q_proj",), excluded=("q_proj",)), "q_proj"),
    ],
)
def test_what_cannot_be_adapted_is_one_line(slug, adapter, said):
    with pytest.raises(Problem) as problem:
        trained(slug, adapter)
    assert said in str(problem.value) and "\n" not in str(problem.value)


def test_the_targets_where_none_is_named_are_those_of_peft():
    """By its own table, for each model type; a decoder's config has its encoder's type. Of Gemma 4 the table has an
    expression for the language model of the multimodal one."""
    table = {name: tuple(said) for name, said in RECORD["targets"].items() if not isinstance(said, str)}
    assert set(RECORD["targets"]) - set(table) == {"gemma4"}
    table["gemma4"] = ("q_proj", "v_proj")
    types = architectures()
    for model_type in types:
        assert find(model_type).peft.targets == table.get(model_type.removesuffix("_decoder"), ()), model_type
    assert set(table) - set(types) == {"blip-2", "llama4", "RefinedWebModel", "RefinedWeb", "btlm"}


SETTINGS = json.loads((Path(__file__).parent.parent / "golden" / "adapter_settings.json").read_bytes())["cases"]


def of_settings(said: dict) -> Adapter:
    """`LoraConfig`'s options as ours."""

    def listed(value, otherwise=()):
        return otherwise if value is None else value if isinstance(value, str) else tuple(value)

    layers, pattern = said.get("layers_to_transform"), said.get("layers_pattern", ())
    return Adapter(
        said["r"],
        listed(said["target_modules"], None),
        said.get("use_dora", False),
        said.get("bias", "none"),
        listed(said.get("modules_to_save")),
        listed(said.get("exclude_modules")),
        (layers,) if isinstance(layers, int) else listed(layers, None),
        (pattern,) if isinstance(pattern, str) else tuple(pattern),
        tuple(said.get("rank_pattern", {}).items()),
        listed(said.get("target_parameters")),
        tuple(said.get("alpha_pattern", {}).items()),
    )


def test_the_random_settings_are_many_and_of_many_types():
    counted = [count for cases in SETTINGS.values() for _, count in cases]
    assert len(counted) >= 2000 and len(SETTINGS) >= 35 and sum(count is not None for count in counted) >= 1000
    options = {name for cases in SETTINGS.values() for said, _ in cases for name in said}
    assert options >= {"target_parameters", "layers_to_transform", "layers_pattern", "rank_pattern", "alpha_pattern"}


@pytest.mark.every_case
@pytest.mark.parametrize("model_type", SETTINGS)
def test_a_random_setting_trains_what_peft_trains(model_type):
    """The same number, or refused by both (tests/reference/adapter_settings.py)."""
    model = presets.make("x", configs()[model_type])
    known = modules(model.counts, model.architecture)
    for said, count in SETTINGS[model_type]:
        try:
            here = adapters(model.counts, model.architecture, of_settings(said), known).total
        except Problem:
            here = None
        assert here == count, said


def test_the_options_are_those_of_the_command_and_of_the_package(capsys):
    asked = {"method": "lora", "rank": 4, "target_modules": "q_proj,v_prj", "layers_to_transform": "0-3"}
    with pytest.warns(UserWarning, match="no module's: 'v_prj'"):
        made = ep.train("llama3-8b", **asked, rank_pattern={"q_proj": 8}, exclude_modules=["layers.1.self_attn.q_proj"])
    assert made.trainable == 3 * 8 * (4096 + 4096)
    command = "train llama3-8b --method lora --rank 4 --target-modules q_proj,v_prj --layers-to-transform 0-3"
    more = ["--rank-pattern", "q_proj=8", "--exclude-modules", "layers.1.self_attn.q_proj"]
    assert main([*command.split(), *more]) == 0
    said = capsys.readouterr()
    assert f"{made.trainable:,} trainable" in said.out and "no module's: 'v_prj'" in said.err
    for wrong in (["--layers-to-transform", "x"], ["--rank-pattern", "q_proj"], ["--rank-pattern", "q_proj=0"]):
        assert main(["train", "llama3-8b", "--method", "lora", *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert main(["train", "llama3-8b", "--exclude-modules", "q_proj"]) == 2
    assert "full training has no adapters" in capsys.readouterr().err


def test_parameters_and_expressions_by_hand():
    """An expert stack as PEFT wraps a parameter; an expression means whole names, and lookaheads leave out."""
    stack = trained("mixtral-8x7b", Adapter(4, (), parameters=("experts.gate_up_proj",)))
    assert stack.total == 32 * 8 * 4 * (4096 + 2 * 14336) and stack.targets == ("experts.gate_up_proj",)
    some = trained("llama3-8b", Adapter(8, r"model\.layers\.(0|31)\.self_attn\.[qv]_proj"))
    assert some.total == 2 * 8 * (2 * 4096 + 4096 + 1024)
    without = trained("llama3-8b", Adapter(8, r"^(?!.*mlp).*(?:q|k|v|o|up)_proj", ranks=((r"\b1\..*o_proj", 2),)))
    assert without.total == 32 * 8 * (4 * 4096 + 2 * (4096 + 1024)) - 6 * (4096 + 4096) and not without.unmatched


def test_names_of_no_module_are_said():
    found = trained("llama3-8b", Adapter(8, ("q_proj", "vproj"), saved=("lm_head", "embed")))
    assert found.unmatched == ("vproj", "embed")
    assert found.total == trained("llama3-8b", Adapter(8, ("q_proj",), saved=("lm_head",))).total


@pytest.mark.parametrize("slug", sorted(slug for slug in presets.paths() if presets.preset(slug).config is not None))
def test_every_model_of_the_catalogue_can_be_adapted(slug):
    """With all linear layers: low rank is less than the whole, and grows with the rank."""
    small, large = (trained(slug, every_linear(presets.model(slug).architecture, rank)) for rank in (1, 3))
    assert 0 < small.total < presets.model(slug).counts.total
    assert large.total == 3 * small.total


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
    scale = next(m for m in modules(model.counts, model.architecture) if m.name.endswith("scale"))
    assert (scale.kind, scale.outputs, scale.inputs) == (Kind.OTHER, 1, 1)
