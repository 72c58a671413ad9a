"""Configs that nobody published: each type's tensors after random changes, as transformers lists them."""

import json

import pytest
from reference import TESTS, digest, each_has
from reference.configs import ABSENT, READ_OTHERWISE, all_configs, configs

from macros.catalogue.presets import make
from macros.cli.commands import main
from macros.engine.architectures import architectures, find
from macros.engine.errors import Problem

# {type: [[what is changed in its small config, parameters, digest of the list of tensors], …]}
# Those of `deepseek_v41_text` are mlx-vlm’s, those of `naive_n05_flash` and `solar_open2` their makers’ classes’.
VARIANTS = json.loads((TESTS / "golden" / "variants.json").read_text("utf-8"))

OF_OTHERS = {"deepseek_v41_text", "naive_n05_flash", "solar_open2"}


def test_every_type_has_twelve_and_their_tensors_differ():
    known = architectures().keys() - (ABSENT.keys() - OF_OTHERS)
    assert VARIANTS.keys() <= known
    few = [name for name in known if len(VARIANTS.get(name, ())) < 12]
    each_has(
        few,
        "fewer than twelve random variants",
        "add them to tests/golden/variants.json by python -m tests.reference.variants TYPE",
    )
    assert len({listed for rows in VARIANTS.values() for *_, listed in rows}) > 3 * len(VARIANTS)


@pytest.mark.parametrize("model_type", VARIANTS)
def test_its_tensors_are_those_of_transformers(model_type):
    for changes, parameters, listed in VARIANTS[model_type]:
        counts = make(model_type, all_configs()[model_type] | changes).counts
        assert counts.total == parameters and digest(dict(counts.tensors())) == listed, changes


def test_keys_that_transformers_reads_otherwise_are_of_no_small_config_and_have_an_example():
    """`python -m tests.reference.variants` runs the examples."""
    examples = {(find(t).config, key) for t, rows in READ_OTHERWISE.items() for keys in rows for key in keys}
    compared = [a.config for name, a in architectures().items() if name in configs()]  # transformers has no others
    assert examples >= {(config, row.key) for config in compared for row in config.otherwise}
    assert not any(make(model_type, raw).read_otherwise for model_type, raw in configs().items())


@pytest.mark.parametrize("model_type, keys", [(t, keys) for t, rows in READ_OTHERWISE.items() for keys in rows])
def test_a_key_that_transformers_reads_otherwise_is_said(tmp_path, capsys, model_type, keys):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(configs()[model_type] | keys))
    name, value = next(iter(keys.items()))
    assert main(["describe", "--format", "json", str(path)]) == 0
    out, err = capsys.readouterr()
    [said] = [line for line in json.loads(out)["warnings"] if "its logits are not these" in line]
    assert said.startswith(f"{name} = {value!r}: ") and said in err


def test_a_value_that_transformers_reads_alike_is_not_said():
    alike = {
        "olmo3": [
            {"rope_theta": 500000},
            {
                "rope_parameters": {"full_attention": {"rope_theta": 7.0}, "sliding_attention": {"rope_theta": 3}},
                "rope_theta": 2.0,
            },
        ],
        "gemma3_text": [{"rope_parameters": {"rope_type": "default", "rope_theta": 1000000}}, {"rope_parameters": {}}],
        "glm4_moe_lite": [
            {"first_k_dense_replace": None},
            {"mlp_layer_types": ["dense", "dense", "sparse"], "first_k_dense_replace": 2},
        ],
        "hy_v4": [{"hidden_act": "swish"}],
        "muse_spark_text": [{"rope_theta": 1e4, "rope_parameters": {"rope_theta": 1e4}}],
    }
    for model_type, rows in alike.items():
        for keys in rows:
            assert not make(model_type, configs()[model_type] | keys).read_otherwise, (model_type, keys)


def test_what_no_published_model_does_is_refused():
    with pytest.raises(Problem, match="tie_word_embeddings = False"):
        make("mobilebert", configs()["mobilebert"] | {"tie_word_embeddings": False})
