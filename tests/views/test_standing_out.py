"""What a model's page says first of its machine and of what is unusual, counted again from the catalog."""

import re
from html import unescape

import pytest

from macros.catalogue import presets
from macros.views.kit import disclosure
from macros.views.models.standing_out import model_answers, place_of


def said(slug):
    return unescape(str(model_answers(slug)))


def test_the_place_of_a_vocabulary_is_counted_again():
    """Gemma's vocabulary is larger than most: by the totals and the vocabularies of all models."""
    counts = presets.model("gemma2-9b").counts
    total, own = counts.total, counts.values()["vocab_size"]
    near = (m for m in disclosure.models(presets.paths()) if total <= 2 * m.counts.total <= 4 * total)
    others = [m for m in near if m.slug != "gemma2-9b"]
    smaller = sum(m.counts.values()["vocab_size"] < own for m in others)
    place = place_of("gemma2-9b")
    assert (place.choice.name, place.is_large, place.beyond, place.others) == ("vocabulary", True, smaller, len(others))
    assert f"256,000, is larger than that of {smaller} of {len(others)} others" in said("gemma2-9b")


@pytest.mark.parametrize(
    ("slug", "sentence"),
    [
        ("falcon-7b", r"number of query heads per KV head, 71, is larger than that of all \d+ others"),
        ("kimi-k3", r"1\.55 TB as published, more than 16 × H100 SXM hold"),
        ("gpt2", r"249 MB as published: they fit on one GeForce RTX 4090"),
        ("deepseek-v3", r"they fit on 16 × H100 SXM"),
    ],
)
def test_what_is_said(slug, sentence):
    assert re.search(sentence, said(slug)), said(slug)
