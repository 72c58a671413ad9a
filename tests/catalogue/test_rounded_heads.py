"""Heads that do not divide hidden_size, without head_dim, against what transformers builds."""

import json
import tomllib

import pytest
from reference import TESTS
from reference.rounded import WIDTHS, small
from small import random_weights

from macros.api.changes import changed
from macros.catalogue.presets import make, model
from macros.cli.skeleton import skeleton
from macros.engine.architectures import architectures
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Arrays

# {type: the parameters that transformers builds, or null, with 8 and a part of numbers for a head, and with 7}
ROUNDED = json.loads((TESTS / "golden" / "rounded.json").read_bytes())
NOT_DIVIDED = r"num_attention_heads = \d+ does not divide hidden_size = \d+"
ROUNDS_DOWN = {t: odd for one in architectures().values() for t, odd in one.rounds_heads.items()}
UNPAIRED = "a head of 7 numbers, of which 7 turn in pairs"


def test_the_types_are_those_whose_class_rounds():
    there = {name: odd is not None for name, (even, odd) in ROUNDED.items() if even}
    assert there | {"nanochat": False} == ROUNDS_DOWN  # of nanochat's rotary embedding here an odd part has no pairs


@pytest.mark.parametrize(
    "model_type, width, parameters", [(t, w, n) for t, r in ROUNDED.items() for w, n in zip(WIDTHS, r)]
)
def test_what_transformers_builds_is_counted_and_what_it_refuses_is_refused(model_type, width, parameters):
    raw = small(model_type, width)
    unpaired = not ROUNDS_DOWN.get(model_type, True) and width % 2
    if parameters is None or unpaired:
        with pytest.raises(Problem, match=UNPAIRED if unpaired else NOT_DIVIDED):
            _ = make(model_type, raw).counts
        return
    one = make(model_type, raw)
    assert one.counts.total == parameters
    [said] = [line for line in one.warnings if "rounds" in line]
    assert said.endswith(f"and head_dim is missing: transformers 5.24 rounds it down, to {width}")


@pytest.mark.parametrize("model_type, width, is_run", [("qwen2", 8, True), ("qwen2", 7, False), ("glm4_moe", 7, True)])
def test_an_odd_head_is_counted_and_runs_only_where_its_pairs_fit(model_type, width, is_run):
    one = make(model_type, small(model_type, width))
    weights = Arrays(random_weights(dict(one.raw)))
    if is_run:
        scores, _ = logits(one.architecture, one.config, weights, range(5))
        assert scores.shape == (5, one.config.vocab_size)
        return
    with pytest.raises(Problem, match=UNPAIRED):
        logits(one.architecture, one.config, weights, range(5))


@pytest.mark.parametrize("model_type, width, is_whole", [("qwen2", 8, True), ("qwen2", 7, False), ("olmo3", 7, False)])
def test_a_skeleton_has_the_rounded_head_if_its_preset_can_run(tmp_path, model_type, width, is_whole):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(small(model_type, width)), "utf-8")
    if is_whole:
        config = tomllib.loads(skeleton(str(file), "a-new-one").text)["config"]
        assert config["head_dim"] == width and make("a-new-one", config).counts.total == ROUNDED[model_type][0]
        return
    with pytest.raises(Problem, match=UNPAIRED):
        skeleton(str(file), "a-new-one")


def test_a_changed_model_is_not_rounded():
    with pytest.raises(Problem, match="num_attention_heads = 5 does not divide hidden_size = 3584"):
        changed(model("qwen2.5-7b"), {"n_heads": 5})
