"""A config is checked whole when it is read, before anything runs: its lists by layer and its rotary embedding too."""

from __future__ import annotations

import json
from math import inf

import pytest
from reference import TESTS
from reference.configs import configs, every_type

from macros.catalogue.presets import make
from macros.engine.architectures import architectures
from macros.engine.architectures.config import fields_of
from macros.engine.errors import Problem
from macros.engine.keys import language_part

# Types that do not read a key of their small config, and why.
UNREAD = {
    ("smollm3", "layer_types"): "windows are off",
    ("modernbert", "rope_parameters"): "has a table for each kind of layer, and nothing beside these",
    ("modernbert-decoder", "rope_parameters"): "has a table for each kind of layer, and nothing beside these",
    ("step3p5", "rope_parameters"): "the same",
}
UNTIED = (("nomic_bert", "tie_word_embeddings"),)  # which is not covered
NULLS = json.loads((TESTS / "golden" / "nulls.json").read_bytes())
WRONG = {
    "rope_parameters": {"rope_type": "nonsense"},
    **dict.fromkeys(("layer_types", "mlp_layer_types", "layers_block_type", "block_types"), ["nonsense"]),
}


@pytest.mark.parametrize("key", WRONG)
def test_a_wrong_list_or_table_is_refused_when_the_config_is_read(key):
    read = set()
    for model_type, whole in configs().items():
        config, (raw, _) = architectures()[model_type].config, language_part(whole)
        if any(k.key == key for k in fields_of(config)):
            raw = {name: value for name, value in raw.items() if name != "rope_scaling"}
            try:
                config.read(raw | {key: WRONG[key]})
                read.add((model_type, key))
            except Problem as problem:
                assert "nonsense" in str(problem) or " has 1 " in str(problem)
    assert read == {one for one in UNREAD if one[1] == key}


def test_what_is_checked_is_a_property_of_some_architecture():
    classes = {architecture.config for architecture in architectures().values()}
    for checked in {config.checked for config in classes}:
        those = [config for config in classes if config.checked == checked]
        assert all(any(isinstance(getattr(config, name, None), property) for config in those) for name in checked)


def test_infinity_is_read_as_transformers_writes_it():
    raw = configs()["mamba2"]
    plain, written = (make("it", raw | {"time_step_limit": [0.0, one]}) for one in (inf, {"__float__": "Infinity"}))
    assert vars(written.config) == vars(plain.config)


def test_the_text_model_of_paligemma_is_gemma():
    text = configs()["gemma"] | {"use_bidirectional_attention": True, "num_image_tokens": 4}
    whole = make("it", {"model_type": "paligemma", "text_config": text, "vision_config": {"image_size": 28}})
    assert whole.counts.total == make("it", configs()["gemma"]).counts.total


@pytest.mark.parametrize("model_type", NULLS)
def test_a_key_that_is_null_is_read_as_transformers_reads_it(model_type):
    """As against left out: a flag is off, heads are as many or as wide as others say."""
    for name, parameters in NULLS[model_type].items():
        raw = configs()[model_type] | {name: None}
        if (model_type, name) in UNTIED:
            with pytest.raises(Problem, match=name):
                make(model_type, raw)
        else:
            assert make(model_type, raw).counts.total == parameters, name


@pytest.mark.parametrize(
    "whole, kind, total, theta",
    [("voxtral", "llama", 567616, 1e8), ("voxtral_realtime", "voxtral_realtime_text", 569664, 1e6)]
    + [("glmasr", "llama", 61760, 1e4)],
)
def test_a_whole_that_fills_its_text_model_otherwise(whole, kind, total, theta):
    """Heads of 128, not of the quotient, or fewer keys and values. The totals are transformers' own, of its model on
    the meta device."""
    sizes = {"vocab_size": 96, "hidden_size": 64, "intermediate_size": 80, "num_hidden_layers": 2}
    text = {"model_type": kind, "num_attention_heads": 8, **sizes}
    keys = {"model_type": whole, "tie_word_embeddings": whole != "voxtral"}
    made = make("it", {**keys, "text_config": text})
    assert (made.counts.total, made.config.rope.theta, made.config.norm_eps) == (total, theta, 1e-5)
    own = {**text, "head_dim": 8, "num_key_value_heads": 8}
    said, alone = (
        make("it", {**keys, "text_config": own}),
        make("it", own | {"tie_word_embeddings": made.counts.is_tied}),
    )
    assert said.counts.total == alone.counts.total


def test_a_whole_whose_head_is_null_has_one_of_its_own():
    """As transformers 5.24 makes Gemma 3: what is left out is tied."""
    whole = {"model_type": "gemma3", "text_config": configs()["gemma3_text"]}
    tied, null = (make("gemma3", whole | keys).counts.total for keys in ({}, {"tie_word_embeddings": None}))
    text = configs()["gemma3_text"]
    assert null - tied == text["vocab_size"] * text["hidden_size"]


def test_an_impossible_word_names_the_possible_ones():
    config = architectures()["granitemoehybrid"].config
    with pytest.raises(Problem) as wrong:
        config.read(configs()["granitemoehybrid"] | {"position_embedding_type": "alibi"})
    assert str(wrong.value) == "position_embedding_type = 'alibi': expected 'rope' or 'nope'; correct the value"


def test_more_layers_than_any_model_has_are_refused_by_their_key_before_they_are_made():
    for name, raw in every_type().items():
        for table in (raw, raw.get("text_config", {})):
            for key in [key for key, value in table.items() if key.endswith("layers") and type(value) is int]:
                changed = {**table, key: 2**31}
                with pytest.raises(Problem, match=rf"\b{key} = "):
                    make(name, changed if table is raw else {**raw, "text_config": changed})
