"""The histograms of sizes, held against a second count from the presets."""

from __future__ import annotations

import re
from html import unescape

import pytest

from macros.catalogue import presets
from macros.engine.errors import Problem
from macros.views.charts import size_histograms
from macros.views.charts.size_histograms import SIZES, size_count


def sizes(name: str) -> list[int]:
    known = (presets.model(slug) for slug in presets.paths() if presets.preset(slug).config is not None)
    return [found[name] for model in known if name in (found := model.counts.values())]


def marked(slug: str) -> list[str]:
    """The labels of the marked bars: their counts and the model's own sizes."""
    return re.findall(r">(\d+ ◂ [\d,.]+)<", unescape(size_histograms.size_histograms(slug)))


@pytest.mark.parametrize("name", ["d_head", "vocab_size"])
def test_every_model_is_in_one_bar(name):
    """Each range of the bars, counted from the presets, less the exact sizes that have bars of their own."""
    listed, bins = sizes(name), SIZES[name].bins
    exact = {b.least for b in bins if b.least == b.most}
    counted = [sum(b.least <= n <= b.most and (b.least == b.most or n not in exact) for n in listed) for b in bins]
    assert sum(counted) == len(listed) > 300
    said = unescape(size_histograms.size_histograms("gpt2"))
    for b, n in zip(bins, counted):
        assert not n or f"<title>{b.said}: {n} models</title>" in said, b.said


def test_the_bars_of_a_model_are_marked_with_its_sizes():
    llama = [said.split(" ◂ ")[1] for said in marked("llama3-8b")]
    assert llama == ["128", "8", "3.5", "128,256"]
    assert marked("llama3-8b")[0].startswith(f"{sizes('d_head').count(128)} ")


def test_a_size_that_a_model_lacks_is_said_and_not_marked():
    """GPT-2's heads share nothing; DeepSeek-V3 is no dense model; a preset without sizes says so."""
    assert [said.split(" ◂ ")[1] for said in marked("gpt2")] == ["64", "4", "50,257"]
    assert "Not among the counted ones: its Key/value heads" in re.sub(
        "<[^>]+>", "", size_histograms.size_histograms("gpt2")
    )
    assert "disclosed" in size_histograms.size_histograms("claude-3-opus")


def test_counts_for_sentences():
    vocabularies = sizes("vocab_size")
    assert size_count("vocab_size", multiple=64) == f"{sum(n % 64 == 0 for n in vocabularies)} of {len(vocabularies)}"
    assert size_count("d_head", 128) == f"{sizes('d_head').count(128)} of {len(sizes('d_head'))}"
    between = sum(64 <= n <= 96 for n in sizes("d_head"))
    assert size_count("d_head", 64, 96) == f"{between} of {len(sizes('d_head'))}"
    with pytest.raises(Problem, match="d_heads"):
        size_count("d_heads")
    with pytest.raises(Problem, match="multiple"):
        size_count("d_head", multiple=0)
