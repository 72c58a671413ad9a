"""At every operation, the shape that the shape-only run records is the one that the real run has.

The real arrays are carried along: each NumPy call of a shape-only run is made on them too, at once, and compared. What
comes out at the end is held against the reference logits, so it is the real run.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import given
from hypothesis import strategies as st
from reference import BOTH_WAYS, BY_TEXT, DYNAMIC, IN_ONE, close, draft, drafts, golden, goldens, in_double
from small import configs, random_weights

from macros.counting.parameters import Counts
from macros.engine.architectures import find
from macros.engine.array import Node, ShapeArray
from macros.engine.dims import Dim
from macros.engine.forward import logits, trace
from macros.engine.loaded import Arrays, Cache
from macros.engine.trace import Trace
from macros.engine.weights import ShapeCache, ShapeWeights


class Carrying(Trace):
    """A trace that makes every call on real arrays too and compares the shapes."""

    def __init__(self):
        super().__init__()
        self.pairs: dict[int, tuple[ShapeArray, np.ndarray]] = {}
        self.compared = 0
        self.past_rows: np.ndarray | None = None

    def carry(self, spec: ShapeArray, real) -> ShapeArray:
        real = np.asarray(real)
        assert np.shape(real) == tuple(map(int, spec.shape)), f"{spec!r} is {np.shape(real)} on real arrays"
        assert real.dtype.kind == spec.dtype.kind, f"{spec!r} is {spec.dtype}, {real.dtype} on real arrays"
        self.pairs[id(spec)] = spec, real
        self.compared += 1
        return spec

    def real(self, x):
        """The real counterpart of anything that a call may be given."""
        if isinstance(x, ShapeArray):
            return self.pairs[id(x)][1]
        if isinstance(x, (list, tuple)):
            return type(x)(map(self.real, x))
        return x.arrays if isinstance(x, CarryingWeights) else x

    def input(self, shape, dtype=np.int64, name="input", cached=None):
        spec = super().input(shape, dtype, name, cached)
        return spec if self.past_rows is None else self.carry(spec, self.past_rows)

    def numpy(self, name, function, args, kwargs, rule):
        out = super().numpy(name, function, args, kwargs, rule)
        with np.errstate(all="ignore"):
            real = function(*self.real(args), **{k: self.real(v) for k, v in kwargs.items()})
        for s, r in zip(out, real, strict=True) if isinstance(out, list) else [(out, real)]:
            self.carry(s, r)
        return out

    def elementwise(self, ufunc, args):
        out = super().elementwise(ufunc, args)
        with np.errstate(all="ignore"):
            return self.carry(out, ufunc(*self.real(args)))

    def primitive(self, step, args, kwargs):
        out = super().primitive(step, args, kwargs)
        real = step.function(*self.real(args), **kwargs)
        for s, r in zip(out, real, strict=True) if isinstance(out, (list, tuple)) else [(out, real)]:
            self.carry(s, r)
        return out

    def repeat(self, body, state, xs):
        """Every token's run is made and compared, where the shape-only run makes one."""
        left = []

        def every_token(state, *rows):
            given = []
            for t in range(int(xs[0].shape[0])):
                rows = [
                    self.carry(ShapeArray(self, row.shape, row.dtype, row.source, row.label), self.real(x)[t])
                    for row, x in zip(rows, xs)
                ]
                state, out = body(state, *rows)
                given.append(self.real(out))
            left.extend([state if isinstance(state, tuple) else (state,), np.stack(given)])
            return state, out

        states, out = super().repeat(every_token, state, xs)
        for new, last in zip(states if isinstance(states, tuple) else (states,), left[0], strict=True):
            self.carry(new, self.real(last))
        return states, self.carry(out, left[1])


class CarryingWeights(ShapeWeights):
    """Shape-only weights with a checkpoint's arrays behind them; every layer by itself."""

    def __init__(self, trace, arrays: Arrays, prefix="", layers=None, count=1, kind=None):
        super().__init__(trace, prefix, layers, Dim(count), kind)
        self.arrays = arrays

    def at(self, prefix):
        return CarryingWeights(
            self.__tracer__,
            self.arrays.at(prefix),
            f"{self.prefix}{prefix}.",
            self.layers_here,
            self.layer_count,
            self.kind,
        )

    def beside(self, prefix, numbers):
        real, name = self.arrays.beside(prefix, numbers), f"{prefix}.{{i}}."
        return CarryingWeights(self.__tracer__, real, name, self.layers_here, self.layer_count, self.kind)

    def of_target(self):
        borrowing = CarryingWeights(self.__tracer__, self.arrays.of_target())
        borrowing.is_borrowed = True
        return borrowing

    def layers(self, prefix, kinds, cache, stack="", after=0, numbered=True):
        for i, kind in enumerate(kinds, int(after)):
            own = f"{prefix}.{i - after}" if numbered else prefix
            real, name = self.arrays.at(own, i), f"{self.prefix}{own}."
            yield kind, CarryingWeights(self.__tracer__, real, name, (i,), Dim(1), kind), cache.layer(i)

    def _leaf(self, name, shape, members=None, used=None, is_buffer=False, below=False, dtype=np.float32):
        spec = super()._leaf(name, shape, members, used, is_buffer, below, dtype)
        if dtype is not np.float32:
            real = self.arrays.buffer(name, *shape, whole=True)
        elif members is None:
            real = self.arrays(name, *shape)
        else:
            real = self.arrays.stack(name, members, *shape, used=used, below=below)
        return self.__tracer__.carry(spec, real)

    def buffer(self, name, *shape, counted=True, whole=False):
        spec = super().buffer(name, *shape, counted=counted, whole=whole)
        return spec if counted else self.__tracer__.carry(spec, self.arrays.buffer(name, *shape))


class CarryingCache(ShapeCache):
    """Shape-only memory beside a real one."""

    def __init__(self, trace, real: Cache, length, context, layers=(0,)):
        super().__init__(trace, length, context, layers)
        self.cache = real

    def layer(self, i):
        return CarryingCache(self.__tracer__, self.cache.layer(i), self.length, self.context, (i,))

    def extend(self, name, new, mask, every=None):
        return self.beside("extend", name, new, mask, *([] if every is None else [every]))

    def hold_back(self, name, new, mask):
        return self.beside("hold_back", name, new, mask)

    def beside(self, method, name, new, *more):
        """Call the same method of the real cache, and compare what is returned and what is left."""
        carrying = self.__tracer__
        rows = getattr(self.cache, method)(name, carrying.real(new), *more)
        carrying.past_rows = rows[: len(rows) - len(carrying.real(new))]
        try:
            out = getattr(super(), method)(name, new, *more)
        finally:
            carrying.past_rows = None
        assert np.array_equal(carrying.real(out), rows)
        left, kept = self.cache.left[self.cache.index, name, self.cache.number], carrying.kept[-1]
        assert left.shape == tuple(map(int, kept.shape)), f"{self.layers} keep {left.shape}, traced as {kept.shape}"
        return out

    def source(self, rows, *row):
        """What is read, or nothing; its length is as the trace has it, and the arrays' is that of this step."""
        real = self.cache.source(rows, *row)
        length = Dim(len(real), self._in_first_step(rows).expr)
        return self.__tracer__.carry(self.__tracer__.input((length, *row), real.dtype, "source"), real)

    def hidden_states(self, tokens, width):
        return self.__tracer__.carry(super().hidden_states(tokens, width), self.cache.hidden_states(tokens, width))

    def target_rows(self, name, tokens, mask, *row):
        real = self.cache.target_rows(name, tokens, mask, *row)
        return self.__tracer__.carry(super().target_rows(name, tokens, mask, *row), real)

    def fill(self, name, new, rows):
        new = new if isinstance(new, ShapeArray) else self.__tracer__.carry(new, new)
        return self.beside("fill", name, new, rows)

    def part(self, number):
        return CarryingCache(self.__tracer__, self.cache.part(number), self.length, self.context, self.layers)

    def reread(self, name, rows, mask):
        assert self.cache.reread(name, self.__tracer__.real(rows), mask) is self.__tracer__.real(rows)
        out = super().reread(name, rows, mask)
        assert (self.cache.index, name, self.cache.number) not in self.cache.left
        assert self.__tracer__.kept[-1].is_shared and int(self.__tracer__.kept[-1].shape[0]) == 0
        return out

    def state(self, name, *shape):
        self.__tracer__.past_rows = self.cache.state(name, *shape)
        try:
            return super().state(name, *shape)
        finally:
            self.__tracer__.past_rows = None

    def store(self, name, new, item_bytes=None):
        super().store(name, new, item_bytes)
        self.cache.store(name, self.__tracer__.real(new), item_bytes)


def carry(architecture, config, tensors, ids, cache=None):
    """One step on shapes and arrays together: (trace, real logits, memory for the next step)."""
    cache = cache or Cache()
    run = Carrying()
    new, context = Dim(len(ids), "T"), Dim(cache.length + len(ids), "S")
    shaped = CarryingCache(run, cache, context - new, context)
    spec = run.input((new,), np.int64, "token ids")
    run.carry(spec, np.asarray(ids, np.int64))
    out = architecture.forward(CarryingWeights(run, Arrays(tensors)), spec, config, shaped, last=False)
    return run, run.real(out), cache.after(len(ids))


def calls(node: Node, weight=lambda name: name):
    """The calls below a node, with their weights and output shapes in symbols."""
    return [
        (n.name, [weight(w.name) for w in n.weights], [[str(d) for d in o.shape] for o in n.outputs])
        for n in node.walk()
    ]


def same_sequence(architecture, config, run: Carrying):
    """Every layer of the carrying run makes the calls of its kind in the shape-only run."""
    shaped = trace(architecture, config)
    kinds = {i: node for node in shaped.root.children if node.layers is not None for i in node.layers}
    per_layer = [node for node in run.root.children if node.layers is not None]
    assert len(per_layer) >= len(kinds)
    seen = set()
    for node in per_layer:
        [i] = node.layers
        twins = [n for n in shaped.root.children if n.layers is not None and i in n.layers]
        number = sum(1 for n in per_layer[: per_layer.index(node)] if n.layers == node.layers)
        names = lambda n: n if "{i}" in n else re.sub(r"\.\d+\.", ".{i}.", n, count=1)  # noqa: E731
        assert calls(node, names) == calls(twins[number], names)
        seen.add(i)
    assert seen == set(kinds)


@pytest.mark.parametrize("name", [name for name in goldens() if name not in BY_TEXT])
def test_shapes_at_every_operation(name):
    g = golden(name)
    with in_double():
        run, out, _ = carry(g.architecture, g.config, g.tensors, g.ids, g.start())
    assert run.compared > 20 * len(g.blocks)
    close(out, g.logits)
    same_sequence(g.architecture, g.config, run)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", [name for name in goldens() if name not in (DYNAMIC, *BOTH_WAYS, *BY_TEXT, *IN_ONE)])
def test_shapes_at_every_operation_of_a_later_step(name):
    g, rows = golden(name), []
    cache = g.start()
    for part in np.split(g.ids, (4, 6)):
        with in_double():
            _, out, cache = carry(g.architecture, g.config, g.tensors, part, cache)
        rows.append(out)
    close(np.concatenate(rows), g.logits)


@pytest.mark.parametrize("name", drafts())
def test_shapes_at_every_operation_of_a_draft_head(name):
    g = draft(name)
    run, out, _ = carry(g.architecture, g.config, g.tensors, g.ids, g.start())
    assert run.compared > 10
    close(out, g.logits)
    if g.architecture.name != "medusa":
        same_sequence(g.architecture, g.config, run)


@pytest.mark.exhaustive
@examples(25)
@given(configs(), st.integers(1, 9), st.integers(1, 9))
def test_shapes_of_random_configs(raw, before, after):
    architecture = find(raw["model_type"])
    config, _ = architecture.config.read(raw)
    tensors = random_weights(raw)
    ids = np.arange(before + after) % raw["vocab_size"]
    _, first, cache = carry(architecture, config, tensors, ids[:before])
    run, second, cache = carry(architecture, config, tensors, ids[before:], cache)
    whole, _ = logits(architecture, config, Arrays(tensors), ids)
    close(np.concatenate([first, second]), whole, 1e-4)
    assert Counts(run).total == sum(t.size for t in tensors.values())
    _, out, _ = carry(architecture, config, tensors, ids)
    close(out, whole)


def test_a_wrong_rule_would_be_seen():
    """The comparison itself: a rule that gets an axis wrong fails."""
    from macros.engine import rules

    right = rules.RULES[np.repeat]
    rules.RULES[np.repeat] = lambda node, a, repeats, axis=None: (a.shape, a.dtype)
    g = golden("llama")
    try:
        with pytest.raises((AssertionError, rules.ShapeError)):
            carry(g.architecture, g.config, g.tensors, g.ids)
    finally:
        rules.RULES[np.repeat] = right


def test_one_memory_may_be_continued_twice():
    g = golden("llama")
    _, cache = logits(g.architecture, g.config, g.weights(), g.ids[:3])
    first, after = logits(g.architecture, g.config, g.weights(), g.ids[3:5], cache)
    logits(g.architecture, g.config, g.weights(), g.ids[:2], cache)
    last, _ = logits(g.architecture, g.config, g.weights(), g.ids[5:], after)
    close(np.concatenate([first, last]), g.logits[3:])
