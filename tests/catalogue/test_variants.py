"""Configs that nobody published: each type's tensors after random changes, as transformers lists them."""

import json

import pytest
from reference import TESTS, digest
from reference.configs import ABSENT, configs

from macros.catalogue.presets import make
from macros.engine.architectures import architectures
from macros.engine.errors import Problem

# {type: [[what is changed in its small config, parameters, digest of the list of tensors], …]}
VARIANTS = json.loads((TESTS / "golden" / "variants.json").read_text("utf-8"))


def test_each_type_has_some_and_their_tensors_differ():
    assert VARIANTS.keys() <= architectures().keys() - ABSENT.keys() and all(VARIANTS.values())
    assert len({listed for rows in VARIANTS.values() for *_, listed in rows}) > 3 * len(VARIANTS)


@pytest.mark.parametrize("model_type", VARIANTS)
def test_its_tensors_are_those_of_transformers(model_type):
    for changes, parameters, listed in VARIANTS[model_type]:
        counts = make(model_type, configs()[model_type] | changes).counts
        assert counts.total == parameters and digest(dict(counts.tensors())) == listed, changes


def test_what_no_published_model_does_is_refused():
    with pytest.raises(Problem, match="tie_word_embeddings = False"):
        make("bart", configs()["bart"] | {"tie_word_embeddings": False})
