"""Layers that differ only in how many earlier results they read: drawn once, counted each."""

import re
from html import unescape

import pytest
from reference import golden

from macros.catalogue import presets
from macros.catalogue.folded import folds, in_folds
from macros.views.costs import flops
from macros.views.diagrams import model_diagrams
from macros.views.tables import parameters
from macros.views.trace import walkthrough
from macros.views.trace.layers import layers_by_kind

DEEP = "kimi-k3"


def of(slug):
    return presets.model(slug)


def plain(view):
    return unescape(re.sub("<[^>]+>", "", str(view)))


def test_every_layer_is_named_and_every_number_is_the_models():
    model = of(DEEP)
    drawn = model.drawn.counts
    assert len(layers_by_kind(model)) == 4 < len(model.trace.root.children) / 5
    assert sorted(i for node in layers_by_kind(model) for i in node.layers) == list(range(93))
    assert sorted(drawn.tensors()) == sorted(model.counts.tensors())
    assert (drawn.active, drawn.buffer_elements) == (model.counts.active, model.counts.buffer_elements)
    assert drawn.cache_bytes(131_072) == model.counts.cache_bytes(131_072)
    values = model.counts.values(T=3, S=4099) | model.drawn.counts.values()
    merged = in_folds(model.counts.flops, model.trace, model.drawn.folds)
    assert merged.at(values) == model.counts.flops.at(values)
    assert min(merged.terms.values()) > 0
    assert len(merged.terms) < len(model.counts.flops.terms) / 3


def test_how_many_results_a_layer_reads_is_said():
    said = "each reads 2 to 9 earlier results, shown with 2"
    for view in (model_diagrams.pipeline, walkthrough.walkthrough):
        assert said in plain(view(DEEP))
    table = plain(parameters.layer_table(DEEP))
    assert "layers 1–2, 4–6, 8–10" in table and "…" not in table
    total = f"{of(DEEP).counts.flops.at(of(DEEP).counts.values(T=5, S=5)):,} FLOPs for 5 new tokens"
    assert total in plain(walkthrough.walkthrough(DEEP))


def test_a_layer_that_is_not_drawn_gives_on_what_it_is_given():
    drawing = model_diagrams.whole(of(DEEP), None)
    items = list(drawing.top.items())
    [last] = [i for i in items if i.node and i.node.parent is of(DEEP).drawn.trace.root and "residuals" in i.title]
    kinds = [box for box in drawing.top.content if not hasattr(box, "sign") and box.node.layers]
    inside = {id(item): n for n, box in enumerate(kinds) for item in box.items()}
    assert {inside.get(id(i)) for i in last.inputs} == {None, 2, 3}  # sums before and after a block begins
    assert [i.title for i in last.inputs if id(i) not in inside] == ["Token embedding"]


def test_the_parts_of_alike_layers_are_one_row():
    table = plain(flops.flops_table(DEEP))
    assert "61 layers: linear attention, mixture of experts, block 1–8" in table
    assert "block 2" not in table


@pytest.mark.parametrize("name", ["kimi_k3", "inkling2_text"])
def test_only_a_count_may_differ(name):
    made = presets.make(name, golden(name).raw)
    for fold in folds(made.trace):
        nodes = [n for n in made.trace.root.children if n.layers in fold.kinds]
        assert len({tuple(w.name for w in n.all_weights()) for n in nodes}) == 1
        assert len({len(n.inputs) for n in nodes}) == len(nodes) == len(fold.kinds)
    assert folds(made.trace)


def test_other_models_are_drawn_as_they_are():
    for slug in ("gpt2", "gemma3-27b", "deepseek-v3", "kimi-linear-48b-a3b", "gemma-4-e2b"):
        assert of(slug).drawn is of(slug)
