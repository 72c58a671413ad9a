"""Attention that looks both ways because a config says so: against transformers' scores, and nothing is kept."""

from __future__ import annotations

import numpy as np
import pytest
from reference import BOTH_WAYS_FILE, KEY_OF_GEMMA, LFM2_CLASS, close, golden, goldens, in_double

from macros.catalogue.presets import Model, make
from macros.counting.costs import of
from macros.engine.errors import Problem
from macros.engine.forward import logits, trace
from macros.engine.loaded import Arrays
from macros.engine.steps import Role

SCORES = np.load(BOTH_WAYS_FILE)
KEY = {"is_causal": False}
OF_LFM2 = {"architectures": [LFM2_CLASS]}
VOYAGE = {"architectures": ["VoyageQwen3BidirectionalEmbedModel"], "num_labels": 5}


def roles(model: Model) -> set[Role | None]:
    return {node.role for node in model.trace.root.walk()}


@pytest.mark.parametrize("label", SCORES.files)
def test_scores_are_those_of_transformers(label):
    name = label.partition(" ")[0]
    g = golden(name)
    model = make(name, g.raw | (KEY if label == name else {KEY_OF_GEMMA: True} if "key" in label else OF_LFM2))
    with in_double():
        ours, cache = logits(model.architecture, model.config, g.weights(), g.ids)
    close(ours[[0, -1]], SCORES[label])
    assert not cache.kept


@pytest.mark.parametrize("name", goldens())
def test_a_text_is_read_at_once_or_the_type_is_refused(name):
    """Nothing is kept and nothing hidden but by windows, and each part costs what it costs with the mask."""
    try:
        model = make(name, golden(name).raw | KEY)
    except Problem as problem:
        assert "looks both ways" in str(problem)
        return
    assert not model.counts.kept
    assert Role.CAUSAL_MASK not in roles(model)
    assert model.config.said_of_costs
    causal = make(name, golden(name).raw)
    assert model.counts.total == causal.counts.total
    assert dict(model.counts.tensors()) == dict(causal.counts.tensors())
    costs = of(model.counts)
    if Role.WINDOW_MASK not in roles(model):
        assert model.counts.flops_at(40, 40) == causal.counts.flops_at(40, 40)
        assert costs.compute.causal_flops(40, 40) == costs.counts.flops_at(40, 40)


def test_a_type_without_attention_is_refused():
    with pytest.raises(Problem, match="without attention"):
        make("mamba", golden("mamba").raw | KEY)


def test_names_of_types_and_classes_say_it():
    raw = golden("llama").raw
    by_key = make("key", raw | KEY | {"architectures": ["LlamaModel"]})
    by_class = make("class", raw | {"architectures": ["LlamaBidirectionalModel"]})
    by_type = make("type", raw | {"model_type": "llama_bidirec", "architectures": ["LlamaBidirectionalModel"]})
    assert all(one.config.looks_both_ways for one in (by_key, by_class, by_type))
    own = [dict(one.counts.tensors()) for one in (by_key, by_class, by_type)]
    assert own[0] == own[1] == own[2]
    assert "embed_tokens.weight" in dict(by_type.counts.tensors())
    assert make("other", golden("deepseek_v3").raw | {"model_type": "deepseek_v3_bidirec"}).config.looks_both_ways
    assert not make("plain", raw).config.looks_both_ways


@pytest.mark.parametrize(
    "pooling, read", [("avg", lambda x: x.mean(0)), ("cls", lambda x: x[0]), ("last", lambda x: x[-1])]
)
def test_a_reranker_scores_what_its_config_pools(pooling, read):
    g = golden("llama")
    raw = g.raw | {"model_type": "llama_bidirec", "pooling": pooling, "num_labels": 1}
    model = make("reranker", raw | {"architectures": ["LlamaBidirectionalForSequenceClassification"]})
    score = np.random.default_rng(3).normal(size=(1, g.raw["hidden_size"])).astype(np.float32)
    weights = Arrays(g.tensors | {"score.weight": score})
    ours, _ = logits(model.architecture, model.config, weights, g.ids, head=model.head)
    hidden = make("embedder", raw | {"architectures": ["LlamaBidirectionalModel"]})
    rows, _ = logits(hidden.architecture, hidden.config, g.weights(), g.ids, head=hidden.head)
    close(ours[0], score @ read(rows))


def test_an_unknown_pooling_is_refused():
    raw = golden("llama").raw | {"architectures": ["LlamaBidirectionalForSequenceClassification"], "pooling": "most"}
    with pytest.raises(Problem, match="pooling = 'most'"):
        make("reranker", raw)


def test_voyage_narrows_the_vectors():
    model = make("voyage", golden("qwen3").raw | VOYAGE)
    own = dict(model.counts.tensors())
    assert own["linear.weight"] == (5, golden("qwen3").raw["hidden_size"])
    assert model.config.looks_both_ways and "model.embed_tokens.weight" in own and "lm_head.weight" not in own


def test_a_traced_window_hides_both_sides():
    model = make("gemma", golden("gemma3_text").raw | {KEY_OF_GEMMA: True})
    found = trace(model.architecture, model.config)
    assert {node.role for node in found.root.walk()} >= {Role.WINDOW_MASK}
