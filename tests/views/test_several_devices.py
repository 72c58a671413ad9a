"""Tables and pictures of several devices, drafts and throughput: for every kind of model, and what they refuse."""

from __future__ import annotations

import re

import pytest

from macros.catalogue import presets
from macros.engine.errors import Problem
from macros.views.costs.several_devices import message_table, offload_table, prefix_table, traffic_table
from macros.views.costs.speculative import speculative_table
from macros.views.costs.throughput_chart import throughput_chart

COUNTED = [slug for slug in presets.paths() if presets.preset(slug).config is not None]


@pytest.mark.parametrize("slug", COUNTED)
def test_any_model(slug):
    """Nothing raises, and every picture has a name, a description and its table."""
    chart = str(throughput_chart(slug))
    assert chart.count("<svg") == chart.count("<title>") == chart.count("<desc>") >= 2 and "<table" in chart
    assert "nan" not in re.sub(r"<[^>]+>", "", chart).lower().split() and "style=" not in chart
    for view in (traffic_table(slug, devices=1), message_table(slug), offload_table(slug), speculative_table(slug)):
        assert "<table" in view
    assert "<table" in prefix_table(slug, prefixes=100, context=400)


def test_links_are_a_line_on_several_devices():
    one, eight = throughput_chart("llama3-70b", devices=1), throughput_chart("llama3-70b", devices=8)
    assert ">links<" in eight and ">links<" not in one
    assert "tensor parallel 8" in eight


def test_messages_add_up():
    """The last row is the sum of those above it: 161 all-reduces and one all-gather."""
    text = re.sub(r"<[^>]+>", " ", str(message_table("llama3-70b", tensor=8)))
    assert re.search(r"together\s+162\s", text)


@pytest.mark.parametrize(
    "call",
    [
        lambda: traffic_table("llama3-70b", devices=7),
        lambda: traffic_table("llama3-70b", on="h1000"),
        lambda: traffic_table("llama3-70b", dispatch="int3"),
        lambda: message_table("llama3-70b", tensor=3),
        lambda: message_table("llama3-70b", tensor=0),
        lambda: offload_table("llama3-70b", host="64GB"),
        lambda: prefix_table("llama3-8b", prefixes=400, context=400),
        lambda: speculative_table("llama3-8b", acceptances=["1.5"]),
        lambda: speculative_table("llama3-8b", lengths=[0]),
        lambda: throughput_chart("llama3-8b", devices=7),
    ],
)
def test_what_cannot_be_is_a_problem(call):
    with pytest.raises(Problem):
        call()
