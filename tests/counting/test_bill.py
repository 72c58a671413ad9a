"""The bill of a token: held against closed forms, and published runs against it."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from html import unescape

import pytest

from macros.__main__ import main
from macros.api.bills import bill
from macros.api.training import train
from macros.catalogue import presets, served_runs
from macros.counting.accelerators import accelerators, listed
from macros.counting.bill import JOULES_PER_KWH, MILLION, Prices
from macros.engine.errors import Problem
from macros.views.costs.bills import bound_of, served_runs_table, token_bill

BATCH, INPUT, CACHED, OUTPUT = 7, 1009, 3001, 501


@pytest.fixture(scope="module")
def found():
    return bill("llama3.1-8b", "h100", INPUT, OUTPUT, CACHED, BATCH, price_per_hour="1.99", electricity="0.25")


def test_an_output_token_reads_all_weights_but_the_input_table_and_its_cache(found):
    """By hand: 16 bits for a weight, 131,072 bytes for a row of the cache, at 3.35 TB/s; a row of the table and of the
    cache are written and read besides."""
    line = found.found.line("output")
    weights = (presets.model("llama3.1-8b").counts.total - 128_256 * 4096) * 2
    rows = 131_072 * (INPUT + CACHED + 251)
    by_hand = (weights / BATCH + rows) / 3.35e12
    assert float(line.memory_seconds) == pytest.approx(by_hand, rel=1e-3)
    assert line.seconds == line.memory_seconds > line.compute_seconds and not line.is_compute_bound


def test_an_input_token_takes_two_flops_of_each_weight(found):
    line = found.found.line("input")
    by_hand = 2 * (presets.model("llama3.1-8b").counts.total - 2 * 128_256 * 4096) / 989.4e12
    assert 1 < float(line.seconds) / by_hand < 1.15 and line.is_compute_bound  # and the scores


def test_a_cached_token_adds_its_scores(found):
    """Of 32 layers with 32 heads of 128: a score and a share of the average, 4 FLOPs an element, for each new token."""
    line = found.found.line("cached")
    by_hand = INPUT * 4 * 32 * 32 * 128 / 989.4e12
    assert float(line.compute_seconds) == pytest.approx(by_hand, rel=0.02)
    assert line.seconds < found.found.line("input").seconds / 10


def test_joules_and_money_follow_from_seconds(found):
    for line in found.found.lines:
        assert line.joules == 700 * line.seconds
        assert line.money == line.seconds * Fraction("1.99") / 3600 + line.joules / JOULES_PER_KWH * Fraction("0.25")
    of_request = sum(line.tokens * line.seconds for line in found.found.lines)
    assert found.found.seconds == of_request and found.found.joules == 700 * of_request
    half = bill("llama3.1-8b", "h100", INPUT, OUTPUT, CACHED, BATCH, utilization="0.5")
    assert [2 * line.seconds for line in found.found.lines] == [line.seconds for line in half.found.lines]
    assert half.found.money is None and "Money needs a price" in " ".join(half.notes)


def test_the_sentence_is_of_a_million_tokens(found):
    line = found.found.line("output")
    amounts = [line.seconds * MILLION, line.joules * MILLION / JOULES_PER_KWH, line.money * MILLION]
    words = re.search(r"take ([\d.,]+) s, ([\d.,]+) (k?)Wh and ([\d.,]+) at the given", found.sentence)
    said = [float(n.replace(",", "")) for n in (words[1], words[2], words[4])]
    said[1] /= 1 if words[3] else 1000
    assert said == [pytest.approx(float(amount), rel=0.01) for amount in amounts]


def test_every_device_is_paid_and_draws_its_power():
    eight = bill("llama3.1-8b", "h100", INPUT, OUTPUT, CACHED, BATCH, devices=8, price_per_hour=2)
    for line in eight.found.lines:
        assert line.joules == 8 * 700 * line.seconds and line.money == 8 * line.seconds * Fraction(2, 3600)
        assert line.is_compute_bound == (line.compute_seconds == line.seconds)
    _, _, money = bill("qwen3-8b", "h100", tokens_per_second=100, devices=8, price_per_hour=2).measured
    assert money == 8 * Fraction(2, 3600) / 100


def test_prices_by_hand():
    assert Prices(per_hour=Fraction(2)).money(Fraction(7200), None) == 4
    bought = Prices(purchase=Fraction(8760), years=Fraction(1), kilowatt_hour=Fraction(3))
    assert bought.money(Fraction(3600), Fraction(2 * JOULES_PER_KWH)) == 1 + 6
    assert Prices().money(Fraction(1), Fraction(1)) is None
    with pytest.raises(Problem, match="give both"):
        Prices(years=Fraction(3))
    with pytest.raises(Problem, match="one of the two"):
        Prices(Fraction(2), Fraction(3), Fraction(4))


def test_a_measured_rate_and_one_above_the_bound():
    at = bill("qwen3-8b", "h100", batch=474, tokens_per_second=8540, price_per_hour=2)
    seconds, joules, money = at.measured
    assert seconds == Fraction(1, 8540) and joules == seconds * 700 and money == seconds * 2 / 3600
    assert not any("above the bound" in note for note in at.notes)
    assert any("above the bound" in note for note in bill("qwen3-8b", "h100", tokens_per_second=8540).notes)


def test_without_a_stated_power_there_are_no_joules():
    one = bill("llama3.1-8b", "m3-max", electricity="0.3")
    assert any("states the peak" in note for note in one.notes)
    assert one.found.watts is None and all(line.joules is None and line.money is None for line in one.found.lines)


def test_each_power_has_a_source():
    for slug, machine in accelerators().items():
        named = [key for key, figures in machine.sources.items() if "watts" in figures]
        assert bool(named) == (machine.watts is not None), slug
        assert all(key in listed().sources for key in named)


def test_published_runs_stay_within_bound_and_limit():
    runs = served_runs.published().run
    assert len(runs) >= 5 and all(run.watts or run.price_per_hour for run in runs)
    for run in runs:
        _, at = bound_of(run)
        [line] = at.lines
        assert 0.01 < run.rate * line.seconds < 1, run.model
        if run.watts:
            assert 0.5 < run.watts / at.watts <= 1, run.model
            assert run.watts / run.rate > line.joules, run.model


def test_money_that_texts_state():
    """A day of DeepSeek's service to the last unit; what SGLang's text states at about the same price of a device."""
    for day in served_runs.published().day:
        money = Prices(per_hour=Fraction(day.price_per_hour)).money(Fraction(day.devices * 86_400), None)
        assert money == day.money
    [stated] = served_runs.published().stated
    assert float(stated.implied_per_hour) == pytest.approx(2, rel=0.01)
    [priced] = [run for run in served_runs.published().run if run.price_per_hour]
    seconds = 1 / priced.rate * priced.devices
    assert float(Prices(per_hour=Fraction(2)).money(seconds * MILLION, None)) == pytest.approx(0.3, rel=0.01)


def test_a_training_run_has_its_bill():
    run = train("llama3.1-8b", on="h100", devices=64, zero=3, tokens=10**12, price_per_hour=2, electricity="0.1")
    hours, kilowatt_hours = run.run.device_hours, run.run.joules / JOULES_PER_KWH
    assert run.money == hours * 2 + kilowatt_hours / 10 and kilowatt_hours == hours * Fraction(700, 1000)
    assert "At the given prices it costs" in run.advice
    bought = train("qwen3-0.6b", on="rtx-3090", tokens=10**9)
    assert bought.run.watts == 350 and bought.money is None


def test_the_command_says_the_same(capsys):
    line = "bill llama3.1-8b --on h100 --input 1009 --output 501 --cached 3001 --batch 7 --price-per-hour 1.99"
    assert main([*line.split(), "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    same = bill("llama3.1-8b", "h100", INPUT, OUTPUT, CACHED, BATCH, price_per_hour="1.99")
    assert data == json.loads(json.dumps(same.to_dict()))
    assert data["per_million"]["output"]["bound_by"] == "memory"
    assert main(line.split()) == 0 and "A million tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options, said",
    [
        ("--on 24GB", "a figure of time needs a bandwidth"),
        ("--on h100 --price-per-hour much", "expected an amount above 0"),
        ("--on h100 --utilization 1.5", "expected a share above 0"),
        ("--on h100 --years 3", "give both"),
        ("--on h100 --price-per-hour 2 --purchase 9 --years 1", "one of the two"),
        ("--on h100 --tokens-per-second 1.2.3", "expected an amount above 0"),
        ("--on h100 --devices 7", "no split over 7 devices"),
    ],
)
def test_what_cannot_be_is_one_line(capsys, options, said):
    assert main(f"bill llama3.1-8b {options}".split()) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


def test_published_runs_of_the_model_stand_in_its_bill():
    """Joules by the source itself: 0.0701945 for an output token on an H100."""
    there = bill("llama3.1-8b", "h100", price_per_hour=2).to_dict()["published"]
    assert [one["engine"] for one in there] == ["vLLM 0.11.1"] and there[0]["source"].startswith("https://")
    assert there[0]["joules"] == pytest.approx(70_194.5) and there[0]["money"] > 0
    assert bill("llama3.1-8b", "h100", engine="sglang").runs == [] == bill("llama3.1-8b", "rtx-4090").runs


def test_a_bill_says_what_does_not_fit_and_what_an_engine_holds():
    assert not bill("llama3.1-70b", "rtx-3090").room and "does not fit" in bill("llama3.1-70b", "rtx-3090").notes[0]
    served = bill("llama3.1-8b", "h100", batch=64, engine="vllm")
    assert served.room and "served by vLLM fits" in served.notes[0]
    assert not bill("llama3.1-8b", "h100", batch=1024, engine="vllm").room
    assert "4 × H100" in bill("qwen3-32b", "h100", devices=4, engine="vllm").notes[0]


def test_the_bill_at_the_share_that_a_published_run_reaches():
    """Beside the bound and the stated utilization; the page of the runs shows the same share."""
    half = bill("llama3.1-8b", "h100", utilization="0.5")
    (at, bound), (as_run, reached) = half.others
    share = half.to_dict()["published"][0]["share_of_bound"]
    assert at == "at the bound" and bound.utilization == 1 and "as the published run of vLLM" in as_run
    assert float(reached.utilization) == pytest.approx(share) and 0.1 < share < 1
    assert f"{round(100 * share)}%" in unescape(str(served_runs_table()))
    lines = zip(half.found.lines, bound.lines, reached.lines, strict=True)
    assert all(line.seconds == 2 * one.seconds == 2 * other.seconds * reached.utilization for line, one, other in lines)


def test_an_engine_bounds_the_requests_of_a_bill():
    many = bill("llama3.1-8b", "h100", batch=1024, engine="vllm")
    assert not many.room and many.found.request.batch == many.room.largest_batch < 1024
    assert f"{many.room.largest_batch:,} requests at once" in many.notes[1] and "not of 1,024" in many.notes[1]
    assert bill("llama3.1-8b", "h100", batch=many.room.largest_batch, engine="vllm").found.lines == many.found.lines


def test_a_table_of_an_unknown_format_is_refused_in_a_line():
    with pytest.raises(Problem, match=r"^unknown format 'fp9'; did you mean"):
        token_bill("llama3.1-8b", "h100", weights="fp9")
    assert str(token_bill("llama3.1-8b", "h100", weights="FP8")) == str(
        token_bill("llama3.1-8b", "h100", weights="fp8")
    )
