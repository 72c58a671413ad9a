"""Published sizes: each is given by the count that its preset names, at its own digits, or by none."""

from __future__ import annotations

import json
import re
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from html import unescape

import msgspec
import pytest

from macros.api.model import load
from macros.catalogue import headlines, presets
from macros.data.components import Inputs
from macros.data.costs import Asked
from macros.data.model import as_json
from macros.engine.errors import Problem
from macros.views.tables.headlines import headlines_table

COUNTED = [slug for slug in presets.paths() if presets.preset(slug).config]
UNIT = {"M": 6, "B": 9, "T": 12}


def gives(n: int, said: str) -> bool:
    """Whether a number rounds or truncates to a size, by decimal arithmetic; a zero at its end may be no digit."""
    digits, power = said.strip("~A")[:-1], UNIT[said[-1]]
    figure, place = Decimal(digits).scaleb(power), power - len(digits.partition(".")[2])
    while True:
        if any(Decimal(n).quantize(Decimal(1).scaleb(place), mode) == figure for mode in (ROUND_HALF_UP, ROUND_DOWN)):
            return True
        place += 1
        if figure != figure.quantize(Decimal(1).scaleb(place), ROUND_DOWN):
            return False


def test_every_published_size_is_the_count_that_its_preset_names():
    for slug in COUNTED:
        model = presets.model(slug)
        for headline in headlines.headlines_of(presets.preset(slug)):
            given = {reading.name: reading.parameters for reading in headlines.readings_of(model, headline.said)}
            if headline.counts == (headlines.NOT_REPRODUCED,):
                assert not any(gives(n, headline.said) for n in given.values()), (slug, headline)
            else:
                assert all(gives(given[name], headline.said) for name in headline.counts), (slug, headline)


@pytest.mark.parametrize(
    "slug, said, parameters",
    [
        ("muse-spark-open-816b-a42b", "816B", 819_990_536_192 - 2 * 1_655_177_216),
        ("muse-spark-open-816b-a42b", "A42B", 46_091_116_544 - 2 * 1_655_177_216),
        ("sarvam-30b", "30B", 30_005_164_416),
        ("sarvam-30b", "A2.4B", 2_373_089_664),
        ("glm-5.3", "753B", 743_377_000_704 + 9_952_920_320),
        ("hy4-preview", "780B", 769_907_389_085 + 10_053_583_680),
        ("mistral-large-4-1t-a52b", "A52B", 51_840_296_448),
        ("minimax-m3", "427B", 427_040_132_864),
        ("minimax-m3", "A23B", 23_504_080_128),
    ],
)
def test_the_count_of_a_size_that_people_argue_about(slug, said, parameters):
    (found,) = (h for h in headlines.headlines_of(presets.preset(slug)) if h.said == said)
    (name,) = found.counts
    given = {reading.name: reading.parameters for reading in headlines.readings_of(presets.model(slug), said)}
    assert given[name] == parameters
    assert f"{parameters:,}" in str(headlines_table())


@pytest.mark.parametrize(
    "slug, change, expected",
    [
        ("gemma-7b", {"headline_counts": ()}, r'total is 8,537,.* 7B; write headline_counts = \["non_embedding"\]'),
        ("gemma-7b", {"headline_counts": ("none",)}, "is none, and 7B is given by non_embedding"),
        ("gemma-7b", {"headline_counts": ("non_embeding",)}, 'did you mean "non_embedding"'),
        ("whisper-tiny", {"headline_counts": ()}, r'write headline_counts = \["none"\]'),
        ("gpt-oss-20b", {"headline": "A4B", "headline_counts": ("total",)}, "has 'total'; .*active_non_embedding"),
    ],
)
def test_a_wrong_count_is_told_with_those_that_give_the_size(slug, change, expected):
    changed = msgspec.structs.replace(presets.preset(slug), **change)
    with pytest.raises(Problem, match=expected):
        headlines.verify(presets.make(slug, changed.config, changed))


@pytest.mark.parametrize(
    "arithmetic, expected",
    [
        (
            "num_local_experts * 21e9",
            "elsewhere[0].arithmetic gives 168,000,000,000, and not 176B; correct it, or remove it",
        ),
        ("elephants * 22e9", "elephants: no count and no whole number of [config]; name one"),
        ("total.__class__", "total.__class__ is not read; write numbers, counts, keys of [config], +, -, *, / and ()"),
        ("total ** 2", "total ** 2 is not read"),
        ("total / 0", "'total / 0' has no value; write numbers, counts and keys of [config]"),
        ("176B", "has no value"),
    ],
)
def test_a_size_that_no_count_gives_may_have_its_arithmetic(arithmetic, expected):
    """Held to the size's digits: numbers, counts, keys of the config and the four operations, and nothing else."""
    preset = presets.preset("mixtral-8x22b")
    (row,) = (row for row in preset.elsewhere if row.size == "176B")
    shown = unescape(str(headlines_table()))
    assert "176,000,000,000" in shown and row.arithmetic in shown

    def verify(**change):
        changed = msgspec.structs.replace(preset, elsewhere=(msgspec.structs.replace(row, **change),))
        headlines.verify(presets.make("mixtral-8x22b", changed.config, changed))

    verify()
    with pytest.raises(Problem) as problem:
        verify(arithmetic=arithmetic)
    assert expected in str(problem.value)
    with pytest.raises(Problem) as problem:
        verify(size="141B", counts=("total",))
    assert (
        "elsewhere[0].arithmetic beside a count that gives 141B; remove it, or write elsewhere[0].counts = none"
        in str(problem.value)
    )


def test_a_size_is_read_with_its_digits():
    assert headlines.short("8x7B") is None and headlines.short("30B-A3B") is None
    size = headlines.short("A2.7B")
    assert headlines.how(2_689_173_504, size) == "rounded" and headlines.how(2_600_000_000, size) == ""


def test_the_table_has_every_size_that_is_not_the_total():
    shown = re.sub(r"<[^>]+>", " ", str(headlines_table()))
    for slug in COUNTED:
        preset = presets.preset(slug)
        for headline in headlines.headlines_of(preset):
            if headline.elsewhere or headline.counts not in (("total",), ("active",)):
                assert headline.said in shown
    assert "Whisper tiny" in shown and "not reproduced" in shown and "Llama 3 8B" not in shown


@pytest.mark.parametrize(
    "n, way",
    [
        (6_499_999_999, ""),
        (6_500_000_000, "rounded"),
        (6_999_999_999, "rounded"),
        (7_000_000_000, "rounded or truncated"),
        (7_500_000_000, "truncated"),
        (7_999_999_999, "truncated"),
        (8_000_000_000, ""),
    ],
)
def test_a_half_rounds_up(n, way):
    assert headlines.how(n, headlines.short("7B")) == way


def test_counts_and_headlines_are_named_in_python_and_in_data():
    """The five sizes of DeepSeek-V4.1-Flash: with what each counts."""
    model = load("deepseek-v4.1-flash")
    counts = model.parameters.by_count
    assert counts["with_components_and_prediction"] == 748_494_654_064 + 485_268_480 + 14_225_361_762
    assert counts["excluding_ngram_tables"] == counts["total"] - 196_613_849_600
    rows = {(row["size"], row["count"]): row["parameters"] for row in model.headlines}
    assert rows["763B", "with_components_and_prediction"] == counts["with_components_and_prediction"]
    assert rows["552B", "excluding_ngram_tables"] == 551_880_804_464 and rows["522B", None] is None
    said = json.loads(as_json(model.inner, True, Asked(components=Inputs())))
    assert said["components"]["counts"] == counts
    assert {row["size"] for row in said["sources"]["headlines"]} == {size for size, _ in rows}
