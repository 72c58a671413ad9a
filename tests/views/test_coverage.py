"""The coverage page: every type has its row, and no number in it is more than what was checked."""

from __future__ import annotations

import re
from html import unescape

import pytest

from macros.catalogue import presets, second_sources
from macros.catalogue.independent import comparison
from macros.catalogue.transformers_types import covered_as, mappings, vllm_classes, vllm_recipes
from macros.engine.architectures import architectures, is_known
from macros.views.reference import coverage


def cells(html: str) -> list[list[str]]:
    """The rows of a table, without markup."""
    rows = re.findall(r"<tr>(.*?)</tr>", html.replace("\n", ""))
    return [
        [unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in rows
    ]


def test_every_type_has_a_row_with_what_it_was_checked_against():
    rows = {row[0]: row[1:] for row in cells(coverage.coverage_types()) if row[0] in architectures()}
    assert list(rows) == list(architectures())
    made = comparison()
    for name, (forward, scores, compared, models) in rows.items():
        assert forward == architectures()[name].name
        assert (scores == "checkpoint") == (name in presets.goldens())
        assert compared == (made.types[name].by if name in made.types else made.absent.get(name, "–"))
        assert (0 if models == "–" else int(models)) == sum(m.model_type == name for m in coverage.disclosed_models())


def test_the_summary_counts_what_the_table_lists():
    numbers = {
        row[0]: int(row[1].replace(",", "")) for row in cells(coverage.coverage_summary()) if len(row) == 2 and row[0]
    }
    assert numbers["Supported model types"] == len(architectures())
    assert numbers["Types whose scores equal those of a reference checkpoint"] == len(presets.goldens())
    assert numbers["Models with known sizes"] == len(coverage.disclosed_models())


@pytest.mark.parametrize(
    "term, model_type",
    [
        ("multi-head latent attention", "deepseek_v3"),
        ("multi-query attention", "gpt_bigcode"),
        ("sinusoidal position embedding", "xglm"),
        ("sliding window", "gpt_neo"),
        ("attention sink", "gpt_oss"),
    ],
)
def test_a_mechanism_stands_where_a_model_has_it(term, model_type):
    use = coverage.mechanism_uses()[term]
    assert model_type in use.types
    assert use.models < {m.slug for m in coverage.disclosed_models()}


def test_a_term_counts_wherever_its_step_is():
    """Every model with experts has a router, whatever its step is called; an encoder hides no future."""
    uses = coverage.mechanism_uses()
    assert uses["router"].models == uses["mixture of experts"].models and len(uses["router"].models) > 50
    assert not uses["causal mask"].models & {"bert-base", "modernbert-base"}
    assert "modernbert-base" in uses["sliding window"].models and "weighted sum" not in uses


def test_every_type_of_transformers_is_covered_or_has_a_reason():
    rows = mappings().types
    assert len(rows) > 300
    for name, row in rows.items():
        assert (covered_as(name) is None) == (row.reason is not None), name
        assert not (row.incomplete and row.reason), name
        if is_known(name):
            assert row.reason is None, f"{name} is covered by now: run python -m tests.reference.mappings"


def test_every_class_of_vllm_is_read_or_has_a_reason():
    rows = vllm_classes().classes
    assert len(rows) > 350
    for name, row in rows.items():
        assert (row.type is None) == (row.reason is not None), name
        assert row.type is None or is_known(row.type), f"{name}: run python -m tests.reference.engine_lists VLLM"
    listed = cells(coverage.coverage_vllm())
    ((_, classes, covered),) = (row for row in listed if row[0] == "any of them")
    assert (int(classes), int(covered)) == (
        len(rows),
        sum(row[2].startswith("as ") for row in listed if row[0] in rows),
    )
    assert (rows["LlamaForCausalLM"].type, rows["InternVLChatModel"].type) == ("llama", "qwen2")


def test_each_model_of_the_recipes_is_in_the_catalogue_or_listed():
    made, listed = vllm_recipes().models, cells(coverage.coverage_recipes())
    hubs = {name for preset in map(presets.preset, presets.readable()) for name in (preset.hub, *preset.aliases)}
    sums = {row[0]: int(row[1]) for row in listed if row[1].isdigit()}
    reasons = {row[0]: row[1] for row in listed if row[0] in made}
    assert sum(sums.values()) == len(made) and sums["In the catalog"] == len(made) - len(reasons) > 60
    assert not hubs & reasons.keys() and hubs & made.keys() == made.keys() - reasons.keys()
    assert reasons["zai-org/GLM-Image"] == coverage.WRITES_OTHERS
    assert reasons["microsoft/Phi-4-reasoning"] == coverage.NOT_READ


def test_values_of_the_catalogue_are_said_by_a_list_or_by_one_source():
    shown = [list(map(int, row[1:])) for row in cells(coverage.coverage_values()) if len(row) == 5 and row[1].isdigit()]
    assert len(shown) == len(second_sources.KEYS)
    for key, (models, alike, unlike, alone) in zip(second_sources.KEYS, shown):
        assert models == alike + unlike + alone == len(second_sources.held(key))
        assert alone == sum(not row.alike and not row.unlike for row in second_sources.held(key)) < models


def test_the_tables_of_transformers_types_agree():
    listed = cells(coverage.coverage_mappings())
    rows = {row[0]: row for row in listed if row[0] in mappings().types and len(row) == 4}
    assert rows.keys() == mappings().types.keys()
    ((_, types, covered),) = (row for row in listed if row[0] == "any of them")
    assert int(types) == len(rows)
    assert int(covered) == sum(not row[2].startswith("no: ") for row in rows.values())
    assert (rows["paligemma"][2], rows["llama"][2]) == ("as gemma", "yes")
    assert (rows["paligemma"][3], rows["pi0"][3]) == ("counted", "not counted")
    assert (rows["llama"][3], rows["mistral4"][3]) == ("", "")  # these read text alone
    assert rows["pi0"][2] == "no: no language model"
