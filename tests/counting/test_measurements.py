"""Throughput that was measured and published does not pass the bound, or its row says why."""

from __future__ import annotations

import datetime
from dataclasses import replace
from fractions import Fraction

import msgspec
import pytest

from macros.catalogue import measurements, presets
from macros.counting.accelerators import accelerator
from macros.counting.conditions import Conditions
from macros.counting.costs import of
from macros.engine.errors import Problem
from macros.views.costs import measured

PUBLISHED = measurements.published()
TODAY = datetime.datetime.now(datetime.UTC).date().isoformat()


def names(m):
    return f"{m.model} on {m.devices} {m.machine}, {m.format}, {m.input} and {m.output}"


@pytest.mark.parametrize("m", PUBLISHED.measured, ids=names)
def test_what_was_measured_is_below_the_bound(m):
    """Each model and machine is known; a share of the bound is between 5 and 100%, or the row explains it."""
    assert presets.model(m.model) and accelerator(m.machine)  # both raise on a slug that is unknown
    share = Fraction(m.tokens_per_second) / measured.bound(m)
    assert share > Fraction(1, 20) and (share > 1) == (m.above is not None), float(share)
    assert m.date is None or m.date <= TODAY


def test_there_are_twenty_and_each_source_is_used():
    assert len(PUBLISHED.measured) >= 20
    assert {m.source for m in PUBLISHED.measured} == set(PUBLISHED.sources)
    assert all(s.read <= TODAY for s in PUBLISHED.sources.values())


def test_the_one_that_passes_its_bound_does_not_with_fewer_bits_for_attention_and_the_head():
    (m,) = (m for m in PUBLISHED.measured if m.above)
    assert Fraction(m.tokens_per_second) < measured.bound(msgspec.structs.replace(m, format="Q4_K_M"))


def test_the_bound_of_one_text_is_that_of_one_step():
    """Of one text that is written alone: bandwidth over bytes."""
    m = next(m for m in PUBLISHED.measured if m.batch == 1)
    costs, given = of(presets.model(m.model).counts), measured.conditions(m)
    assert given == Conditions(m.input + m.output // 2, 1, m.format, m.dtype, 1, accelerator(m.machine))
    assert measured.bound(m) == 1 / costs.bound(1, given).seconds


def test_at_full_load_the_memory_is_full():
    """Weights and caches of as many texts as are written at once fit, and those of one more do not."""
    m = next(m for m in PUBLISHED.measured if m.batch is None)
    costs, given = of(presets.model(m.model).counts), measured.conditions(m)
    for batch, fits in ((given.batch, True), (given.batch + 1, False)):
        terms = costs.memory.inference_bytes(1, replace(given, batch=batch))
        assert (terms["weights"] + terms["cache"] <= given.machine.memory_bytes * m.devices) == fits


@pytest.mark.parametrize(
    "text, said", [("[[measured]]\nmodel = 3", "xpected"), ("[sources]\n", "measured"), ("[[measured", "xpected")]
)
def test_a_wrong_entry_is_one_line(tmp_path, monkeypatch, text, said):
    monkeypatch.setattr(measurements, "FILE", tmp_path / "m.toml")
    (tmp_path / "m.toml").write_text(text)
    with pytest.raises(Problem) as problem:
        measurements.published.__wrapped__()
    assert said in str(problem.value) and "\n" not in str(problem.value)
