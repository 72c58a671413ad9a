"""Wholes of an encoder and a decoder of any type against transformers: all tensors, and what the decoder looks at."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest
from reference import TESTS, changed, digest

from macros.catalogue.presets import make
from macros.engine.errors import Problem

ROWS = json.loads((TESTS / "golden" / "two_models.json").read_text("utf-8"))
IMAGES, TEXTS = "images by default", "texts by default"


@pytest.mark.parametrize("name", ROWS)
def test_the_tensors_of_both_are_those_of_transformers(name):
    row = ROWS[name]
    model = make(name, row["config"])
    prefix = "decoder." if row["config"]["model_type"] == "vision-encoder-decoder" else ""
    tensors = {f"{prefix}{tensor}": shape for tensor, shape in model.counts.tensors()}
    for component in model.components:
        assert component.unknown == []
        tensors |= component.counts.tensors()
    assert model.unknown == () and model.uncounted_parts == ()
    assert model.counts.total + sum(one.total for one in model.components) == row["parameters"]
    assert digest(tensors) == row["tensors"]


@pytest.mark.parametrize("name", [name for name in ROWS if "vectors" in ROWS[name]])
def test_the_decoder_looks_at_as_many_vectors_as_the_encoder_makes(name):
    model = make(name, ROWS[name]["config"])
    assert int(model.config.n_source) == ROWS[name]["vectors"] == model.components[0].image(1000, 700).tokens


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        (IMAGES, {"decoder.model_type": "opt"}, "decoder.model_type = 'opt': not known as a decoder"),
        (IMAGES, {"decoder.model_type": ["bert"]}, "not known as a decoder"),
        (IMAGES, {"decoder.add_cross_attention": False}, "decoder.add_cross_attention is not true"),
        (IMAGES, {"encoder": "vit"}, "encoder = 'vit': expected a table"),
        (IMAGES, {"encoder.model_type": "beit"}, "how many vectors it makes of an image is not known"),
        (IMAGES, {"decoder": None}, "has no table for its text part"),
        (TEXTS, {"decoder.add_cross_attention": False}, "decoder.add_cross_attention is not true"),
        (TEXTS, {"encoder": [1]}, r"encoder = \[1\]: expected a table"),
        (TEXTS, {"encoder.model_type": "electra"}, "encoder.model_type = 'electra'"),
    ],
)
def test_what_no_whole_is_made_of_is_refused_in_a_line(name, changes, said):
    with pytest.raises(Problem, match=said):
        make(name, changed(ROWS[name]["config"], changes))


def test_an_encoder_of_another_type_is_named_where_the_decoder_says_what_it_looks_at():
    raw = changed(ROWS[IMAGES]["config"], {"encoder.model_type": "beit", "decoder.num_image_tokens": 7})
    model = make(IMAGES, raw)
    assert model.config.n_source == 7 and model.components == () and model.uncounted_parts == ("encoder",)


def test_a_tower_must_be_as_wide_as_the_decoder_says():
    raw = changed(ROWS["as wide as TrOCR says"]["config"], {"decoder.cross_attention_hidden_size": 385})
    with pytest.raises(Problem, match="cross_attention_hidden_size = 385 in the decoder, and the encoder's vectors"):
        make(IMAGES, raw).components


def test_both_stacks_are_counted_where_a_config_says_that_they_are_tied():
    raw = deepcopy(ROWS[TEXTS]["config"]) | {"tie_encoder_decoder": True}
    tied, apart = make(TEXTS, raw), make(TEXTS, ROWS[TEXTS]["config"])
    assert tied.counts.total == apart.counts.total
    assert any("keeps the weights of both stacks apart" in line for line in tied.warnings)
