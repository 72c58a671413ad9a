"""What transformers writes into a config.json is read: for each covered type, a file that it saved itself.

`golden/saved_configs.json` has what `save_pretrained` of transformers 5.24 wrote for the small configs of the golden
checkpoints and for a few multimodal ones around them, and the parameters of the (text) model that it made of each.
"""

from __future__ import annotations

import json

import pytest
from reference import TESTS, close, each_has, golden, goldens, in_double
from reference.configs import ABSENT

from macros.catalogue import presets
from macros.engine.architectures import architectures
from macros.engine.errors import Problem
from macros.engine.files import read_json
from macros.engine.forward import logits
from macros.engine.keys import OF_BOTH, OWN_OF_TYPE, OWN_TABLES
from macros.engine.ops import Full

SAVED = json.loads((TESTS / "golden" / "saved_configs.json").read_text("utf-8"))

DEFAULTS = json.loads((TESTS / "golden" / "defaults.json").read_text("utf-8"))


@pytest.fixture
def load(tmp_path):
    """A model from a config as the command line gets it: a file."""

    def load(raw: dict) -> presets.Model:
        (tmp_path / "config.json").write_text(json.dumps(raw))
        return presets.load(str(tmp_path))

    return load


def test_every_type_has_a_saved_config():
    types = {row["config"]["model_type"] for row in SAVED.values()}
    lacking = set(architectures()) - set(ABSENT) - types
    written = "python -m tests.reference.checkpoints tests/golden TYPE, or ABSENT of reference/configs.py says why"
    each_has(lacking, "has no config of transformers in tests/golden/saved_configs.json", written)
    assert set(ABSENT) <= set(architectures()) - types


@pytest.mark.parametrize("name", SAVED)
def test_a_saved_config_is_read_and_counted(load, name):
    model = load(SAVED[name]["config"])
    assert model.unknown == () and model.counts.total == SAVED[name]["parameters"]


@pytest.mark.parametrize("model_type", DEFAULTS)
def test_what_a_config_leaves_out_is_what_transformers_takes(load, model_type):
    """Only what a config must say is said, at the sizes of the type's own class: all else is our default."""
    row = DEFAULTS[model_type]
    assert load(row["config"]).counts.total == row["parameters"]


@pytest.mark.parametrize("name", SAVED)
def test_which_part_is_described_and_which_are_left_out(load, name):
    raw, model = SAVED[name]["config"], load(SAVED[name]["config"])
    if name == "t5gemma2":  # its tower is in its encoder's table
        assert model.parts == (None, (("encoder.vision_config", "siglip_vision_model"),))
        return
    own = OWN_TABLES.union(OWN_OF_TYPE.get(raw["model_type"], ()))
    others = {
        (key, part["model_type"])
        for key, part in raw.items()
        if key.endswith("_config") and key != "text_config" and key not in own and part
    }
    assert bool(others) == (name.startswith("multimodal") or name in OF_BOTH) == bool(model.parts)
    if model.parts:
        assert set(model.parts.left_out) == others and str(model.parts) in model.warnings[0]
        assert model.parts.described == (None if name in OF_BOTH else "text_config")
        assert model.model_type == raw.get("text_config", raw)["model_type"]


@pytest.mark.parametrize("name", ["bert", "modernbert", "llama"])
def test_an_encoder_says_that_it_writes_no_text(load, name):
    assert any("encoder" in said for said in load(SAVED[name]["config"]).warnings) == (name != "llama")


def test_parts_beside_the_language_models_own_keys_are_left_out_too(load):
    vision = {"model_type": "some_vision", "hidden_size": 7}
    model = load(with_keys("llama", vision_config=vision, audio_config={"layers": 3}, quantization_config={"bits": 4}))
    assert model.counts.total == SAVED["llama"]["parameters"] and model.unknown == ()
    assert model.parts == (None, (("vision_config", "some_vision"), ("audio_config", None)))
    assert load(with_keys("llama", vision_config=None, quantization_config={"bits": 4})).parts is None


def test_a_text_model_is_read_wherever_a_whole_has_its_keys(load):
    text = SAVED["qwen2_vl_text"]["config"] | {"architectures": None}
    vision = {"vision_config": {"model_type": "some_vision", "hidden_size": 7}}
    flat = text | vision | {"model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"]}
    inner = {"model_type": "a_chat", "architectures": ["AChatModel"], "llm_config": text, **vision}
    omni = SAVED["qwen2_5_omni_text"]["config"] | {"architectures": None}
    thinker = {"model_type": "qwen2_5_omni_thinker", "text_config": omni, **vision}
    speaker = {"model_type": "qwen2_5_omni", "architectures": ["Qwen2_5OmniModel"], "talker_config": {"a": 1}}
    for raw, name, described in (
        (flat, "qwen2_vl_text", None),
        (inner, "qwen2_vl_text", "llm_config"),
        (speaker | {"thinker_config": thinker}, "qwen2_5_omni_text", "thinker_config.text_config"),
    ):
        model = load(raw)
        assert model.model_type == name and model.head is None and model.unknown == ()
        assert model.counts.total == SAVED[name]["parameters"] and model.parts.described == described


@pytest.mark.parametrize("name", sorted(SAVED.keys() & set(goldens())))
def test_a_saved_config_computes_the_same(load, name):
    g, model = golden(name), load(SAVED[name]["config"])
    with in_double():
        scores, _ = logits(model.architecture, model.config, g.weights(), g.ids, g.start())
    close(scores, g.logits)


def with_keys(name: str, **keys: object) -> dict:
    return {**SAVED[name]["config"], **keys}


@pytest.mark.parametrize("nothing", [0, None])
@pytest.mark.parametrize("name, key", [("mistral", "sliding_window"), ("gpt_oss", "sliding_window")])
def test_a_window_of_0_is_none(load, name, key, nothing):
    types = ["full_attention"] * SAVED[name]["config"]["num_hidden_layers"]
    model = load(with_keys(name, **{key: nothing}, **({"layer_types": types} if name == "gpt_oss" else {})))
    assert {k.mask for k in model.counts.kept} == {Full()} and key not in model.config.symbols


@pytest.mark.parametrize("name, key", [("gpt_oss", "sliding_window"), ("llama4_text", "attention_chunk_size")])
def test_a_layer_that_needs_a_window_does_not_take_the_usual_one_for_0(load, name, key):
    with pytest.raises(Problem, match=f"{key} is missing"):
        load(with_keys(name, **{key: 0}))


@pytest.mark.parametrize("name", ["qwen2_moe", "qwen3_moe", "qwen3_next"])
def test_without_an_expert_every_layer_is_dense(load, name):
    """transformers makes a mixture of experts only where `num_experts > 0`."""
    dense = load(with_keys(name, num_experts=0))
    layers = range(dense.config.n_layers)
    assert load(with_keys(name, mlp_only_layers=[*layers])).counts.total == dense.counts.total == dense.counts.active
    assert load(with_keys(name, mlp_only_layers=[])).counts.active < load(SAVED[name]["config"]).counts.total


def test_jamba_with_one_expert_is_dense_however_many_a_token_would_choose(load):
    """transformers makes a mixture of experts only where `num_experts > 1`."""
    model = load(with_keys("jamba", num_experts=1, num_experts_per_tok=2))
    assert model.counts.active == model.counts.total


def test_granite_without_experts_may_still_say_how_many_a_token_chooses(load):
    model = load(with_keys("granitemoehybrid", num_local_experts=0, num_experts_per_tok=3))
    assert model.counts.active == model.counts.total


@pytest.mark.parametrize("name", ["gpt2", "openai-gpt"])
def test_an_untied_head_is_a_matrix_more(load, name):
    tied, untied = (load(with_keys(name, tie_word_embeddings=is_tied)) for is_tied in (True, False))
    c = tied.config
    assert untied.counts.total - tied.counts.total == c.vocab_size * c.d_model
    assert ("lm_head.weight", (c.vocab_size, c.d_model)) in list(untied.counts.tensors())


@pytest.mark.parametrize(
    "written, expected",
    [
        ('{"__float__": "Infinity"}', float("inf")),
        ('{"__float__": "-Infinity"}', float("-inf")),
        ('{"__float__": "one"}', {"__float__": "one"}),
        ('{"__float__": "Infinity", "more": 1}', {"__float__": "Infinity", "more": 1}),
    ],
)
def test_numbers_that_json_does_not_have(tmp_path, written, expected):
    path = tmp_path / "config.json"
    path.write_text(f'{{"a": [0.0, {written}], "b": {{"c": {written}}}}}')
    assert read_json(path) == {"a": [0.0, expected], "b": {"c": expected}}


def test_yarns_betas_of_0_are_the_usual_ones(load):
    """As in transformers, `rope_parameters.get("beta_fast") or 32`."""
    rope = SAVED["deepseek_v3_yarn"]["config"]["rope_parameters"]
    usual, zero = ({**rope, "beta_fast": fast, "beta_slow": slow} for fast, slow in ((32, 1), (0, 0)))
    configs = [load(with_keys("deepseek_v3_yarn", rope_parameters=table)).config for table in (usual, zero)]
    assert configs[0].rope == configs[1].rope
