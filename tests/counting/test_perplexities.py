"""Published measurements as figures of a sentence; the files of which perplexity was measured have our bytes."""

from __future__ import annotations

from fractions import Fraction
from html import unescape

import pytest

from macros.catalogue import perplexities, presets
from macros.counting.costs import of
from macros.counting.formats import format_meant
from macros.engine.errors import Problem
from macros.views.costs.fine_tuning import training_run
from macros.views.costs.perplexities import perplexity, perplexity_table

PUBLISHED = perplexities.published()
HEADER = Fraction(2, 100)  # GiB that a header, its vocabulary, and two printed decimals take at most


@pytest.mark.parametrize("m", PUBLISHED.measured, ids=lambda m: f"{m.format}{' matrix' * m.matrix}")
def test_the_file_that_was_measured_is_the_one_that_is_counted(m):
    counted = Fraction(of(presets.model(m.model).counts).weight_bytes(format_meant(m.format)), 2**30)
    assert Fraction(-5, 1000) <= Fraction(m.gibibytes) - counted <= HEADER


def test_all_are_compared_with_one_base_and_more_bits_lose_less():
    assert {round(m.base, 4) for m in PUBLISHED.measured} == {Fraction("6.2316")}
    usual = "q8_0 q6_k q5_k_m q4_k_m q3_k_m q2_k".split()
    k_quants = [m for m in PUBLISHED.measured if m.format in usual and not m.matrix]
    by_size = sorted(k_quants, key=lambda m: Fraction(m.gibibytes), reverse=True)
    assert len(by_size) == len(usual) and [m.increase for m in by_size] == sorted(m.increase for m in by_size)
    assert all(m.increase > 0 for m in PUBLISHED.measured)


def test_a_figure_is_the_published_one():
    """The source prints a ratio of 1.028160 for Q4_K_M and 1.564849 for Q2_K."""
    assert perplexity("Q4_K_M") == perplexity("q4_k_m", "increase") == "2.8%" and perplexity("q2_k") == "56.5%"
    assert perplexity("q4_k_m", "perplexity") == "6.41" and perplexity("q4_k_m", "base") == "6.23"
    assert perplexity("q4_k_m", "same_token") == "91.9%"
    shown = unescape(str(perplexity_table()))
    assert "91.9%" in shown and "2.82%" in shown and "with an importance matrix" in shown


@pytest.mark.parametrize(
    "given, said",
    [
        (("q4_k_m", "perplexty"), "unknown figure 'perplexty'"),
        (("nf4",), "format 'nf4' was not measured"),
        (("q4_0", "same_token"), "no same_token was measured for 'q4_0'"),
    ],
)
def test_what_was_not_measured_is_said(given, said):
    with pytest.raises(Problem, match=said):
        perplexity(*given)


def test_a_figure_of_a_published_training_run():
    assert training_run("llama3-8b", "device_hours") == "1,300,000" and training_run("llama3-8b", "tokens") == "15.0T"
    assert training_run("llama3-8b", "money", price_per_hour=2) == "2.60M"
    with pytest.raises(Problem, match="no published training run of 'llama3-8'"):
        training_run("llama3-8", "money")
    with pytest.raises(Problem, match="unknown figure 'mony'"):
        training_run("llama3-8b", "mony")
