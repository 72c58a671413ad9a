"""What others' lists say of contexts, dates and licenses: each difference has a reason."""

from __future__ import annotations

import pytest

from macros.catalogue.presets import preset
from macros.catalogue.second_sources import KEYS, agrees, held, lists, reasons


@pytest.mark.parametrize("key", KEYS)
def test_each_value_that_a_list_has_otherwise_has_a_reason(key):
    """Mend: look up the primary source; correct the preset, or say in second_sources.toml why the list differs."""
    unlike = {row.slug: row.unlike for row in held(key) if row.unlike}
    named = [slug for slugs in reasons(key) for slug in slugs.split()]
    assert {slug: said for slug, said in unlike.items() if slug not in named} == {}
    assert sorted(named) == sorted(unlike), "a reason for what no list has otherwise any more, or two for one"


@pytest.mark.parametrize("key", KEYS)
def test_a_list_that_the_value_is_from_is_no_second_one(key):
    source = {"context": "values", "released": "released_source", "licence": "licence_source"}[key]
    for row in held(key):
        one = preset(row.slug)
        said = " ".join(one.sources.values.values()) if source == "values" else getattr(one, source) or ""
        if key != "context" or list(one.sources.values) == ["max_position_embeddings"]:
            assert not any(lists().sources[name].address in said for name in (*row.alike, *row.unlike)), row


def test_spellings_and_rounded_values_agree():
    assert agrees("context", 131072, 128000) and agrees("context", 1048576, 1000000)
    assert not agrees("context", 131072, 130000) and not agrees("context", 32768, 65536)
    assert agrees("released", "2024-04-18", "2024-04") and not agrees("released", "2024-04-18", "2024-04-19")
    assert agrees("licence", "Apache 2.0", "apache-2.0") and agrees("licence", "Llama 4 Community License", "llama4")
    assert not agrees("licence", "MIT", "modified-mit")
