"""The trace that has numbers in it: those of the run without a trace, for every architecture with attention."""

from __future__ import annotations

import numpy as np
import pytest
from reference import golden, goldens

from macros.engine import numbers
from macros.engine.architectures import find
from macros.engine.errors import Problem
from macros.engine.forward import logits, trace
from macros.engine.steps import Role

PLAIN = "numbers are shown only for models with plain attention"


@pytest.mark.parametrize("name", goldens())
def test_the_numbers_are_those_of_the_run_without_a_trace(name):
    """To the last bit, and so with the cache of an earlier step; what keeps no row of each token is refused."""
    g = golden(name)
    model, earlier, cache = (g.architecture, g.config, g.weights()), None, None
    kept = trace(g.architecture, g.config).kept
    if any(entry.row is None or int(entry.tokens) != 1 for entry in kept):
        with pytest.raises(Problem, match=PLAIN):
            numbers.trace(*model, g.ids)
        return
    for ids in (g.ids[:3], g.ids[3:]) if kept else (g.ids,):  # an encoder reads a text at once
        run, earlier = numbers.trace(*model, ids, earlier)
        scores, cache = logits(*model, ids, cache)
        assert np.array_equal(run.of(run.root.outputs[0]), scores)


@pytest.mark.parametrize("name", goldens())
def test_a_run_again_has_the_numbers_of_a_run_of_its_own(name):
    """Of tokens in another order; the first run keeps its own numbers."""
    g = golden(name)
    model, others = (g.architecture, g.config, g.weights()), g.ids[::-1]
    try:
        first, own = (numbers.trace(*model, ids)[0] for ids in (others, g.ids))
    except Problem:
        return
    last, before = first.root.outputs[0], first.of(first.root.outputs[0]).copy()
    assert np.array_equal(first.again(g.ids).of(last), own.of(own.root.outputs[0]))
    assert np.array_equal(first.of(last), before)


def test_the_steps_are_those_of_the_trace_of_shapes():
    """Each layer by itself, its name in its weights' names; every array with the shape that the trace says."""
    g = golden("gpt2")
    run, _ = numbers.trace(g.architecture, g.config, g.weights(), g.ids)
    shapes = trace(find("gpt2"), g.config)

    def steps(root):
        return [(n.name, n.role) for n in root.walk() if n.role not in (Role.FORWARD, Role.LAST_ROW, None)]

    def in_one_layer(root):
        return next(steps(n) for n in root.children if n.role is Role.LAYER)

    layers = [n for n in run.root.children if n.role is Role.LAYER]
    assert [n.layers for n in layers] == [(i,) for i in range(g.config.n_layers)]
    assert in_one_layer(run.root) == in_one_layer(shapes.root) == steps(layers[-1])
    assert "transformer.h.1.attn.c_attn.weight" in {w.name for w in layers[1].all_weights()}
    arrays = [a for n in run.root.walk() for a in n.outputs]
    assert [run.of(a).shape for a in arrays] == [tuple(map(int, a.shape)) for a in arrays]
