"""Facts stand on the step: no figure and no drawing depends on a function's name; one symbol has one size."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fuzzing import examples
from hypothesis import given
from hypothesis import strategies as st
from sampling import CI, fewer, sampled
from test_closed_forms import RANDOM

from macros.counting.parameters import Counts
from macros.counting.splits import INNER, STATE_GROUPS, VOCABULARIES
from macros.engine.architectures import architectures, find
from macros.engine.architectures.config import fields_of
from macros.engine.dims import Dim
from macros.engine.forward import trace
from macros.engine.ops import Full, SlidingWindow, expert_linear, linear, scan
from macros.engine.rules import ShapeError
from macros.engine.steps import Holds, Role, step
from macros.engine.trace import Trace
from macros.engine.weights import ShapeCache, ShapeWeights

ROOT = Path(__file__).parent.parent.parent

# One model of each mechanism: two norms, sinks, latents, an indexer, chunks, experts, windows, recurrences, ALiBi.
SLUGS = (
    "gpt2 llama3-8b mixtral-8x7b gemma3-1b gpt-oss-20b deepseek-v2-lite deepseek-v3.2 llama4-scout qwen3-next-80b-a3b "
    "minimax-text-01 mamba-130m rwkv-4-169m jamba-v0.1 nemotron-3-nano-30b-a3b falcon-7b bloom-560m granite-4.0-h-small"
).split()

MACROS = (
    "parameter_table layer_table which_number kv_cache flops costs flops_table cache_layers cache_formula memory_table "
    "training_memory split_table formula walkthrough parts_chart pipeline_diagram model_intro model_checked "
    "bytes_table family_changes"
).split()

# Prints everything that the site says of some models: data, tables, walkthrough, diagrams, charts.
EVERYTHING = """
import json, random, string, sys
from macros.engine import array, steps
if sys.argv[1] == "random":
    def name(*_):
        return "".join(random.choices(string.ascii_letters, k=12))
    called, made = array.Node.__init__, array.ShapeArray.__init__
    steps.Step.name = property(name, lambda *_: None)
    array.Node.__init__ = lambda self, _, *more, **named: called(self, name(), *more, **named)
    array.ShapeArray.__init__ = lambda self, *given: made(self, *given[:-1], name())
from macros.catalogue import presets
from macros.data.model import as_json
from macros.site.page_macros import macros
class Env:
    variables = {}
calls = macros(Env())
said = {}
slugs, names = (given.split() for given in sys.argv[2:])
for slug in slugs:
    said[slug, "data"] = as_json(presets.model(slug), True)
    for macro in [name for name in names if name != "family_changes"]:
        said[slug, macro] = calls[macro](slug)
    for node in presets.model(slug).trace.root.children:
        if node.layers is not None:
            said[slug, str(node.kind)] = calls["block_diagram"](slug, kind=str(node.kind))
for family in sorted({presets.preset(slug).family for slug in slugs}) if "family_changes" in names else ():
    said[family, "changes"] = calls["family_changes"](family)
json.dump({" ".join(key): value for key, value in said.items()}, sys.stdout)
"""


def everything(names: str, slugs: list[str], macros: list[str]) -> dict[str, str]:
    program = [sys.executable, "-B", "-c", EVERYTHING, names, " ".join(slugs), " ".join(macros)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.exhaustive
def test_no_figure_and_no_drawing_depends_on_a_name():
    slugs = sampled(SLUGS, 4 if CI else len(SLUGS))  # all have every mechanism
    macros = fewer(MACROS, 3)
    as_they_are, at_random = (everything(names, slugs, macros) for names in ("as they are", "random"))
    assert len(as_they_are) > len(macros) * len(slugs)
    assert [key for key in as_they_are if at_random[key] != as_they_are[key]] == []
    assert (
        hashlib.sha256(json.dumps(as_they_are).encode()).digest()
        == hashlib.sha256(json.dumps(at_random).encode()).digest()
    )


def counts_of(raw: dict) -> Counts:
    architecture = find(raw["model_type"])
    return Counts(trace(architecture, architecture.config.read(raw)[0]))


@pytest.mark.parametrize("model_type", sorted(RANDOM))
def test_the_polynomials_are_the_integers(model_type, reach):
    """Of every random config of every architecture: the total, each tensor's share, the cache, every size of the trace.

    And each step's docstring gives its shapes.
    """

    @examples(6, reach.is_far(model_type))
    @given(RANDOM[model_type], st.integers(1, 50), st.integers(1, 400))
    def check(raw, new, before):
        counts = counts_of({"model_type": model_type, **raw})
        at = counts.values(T=new, S=new + before)
        assert counts.total_poly.at(at) == counts.total
        for weight in counts.weights:
            assert weight.count.expr.at(at) == int(weight.count)
            assert weight.active.expr.at(at) == int(weight.active)
        for entry in counts.kept:
            assert all(size.expr.at(at) == int(size) for size in entry.row or ())
            assert int(entry.layer_count) == len(entry.layers) == entry.layer_count.expr.at(at)
        for node in counts.trace.root.walk():
            for array in node.outputs:
                fixed = [size for size in array.shape if not size.expr.is_free]
                assert [size.expr.at(at) for size in fixed] == list(map(int, fixed))
        steps = {node.step for node in counts.trace.root.walk()} - {None}
        assert [s.name for s in steps if "->" not in s.function.__doc__ and "same shape" not in s.doc] == []

    check()


class TwoWindows:
    """A model of two kinds of layer that print alike: windows of 128 and of 256 tokens."""

    kinds = [SlidingWindow(128), SlidingWindow(256), SlidingWindow(128), Full()]


def windows() -> Trace:
    run = Trace()
    new, context = Dim(104_729, "T"), Dim(1_299_709, "S")
    x = run.input((new, 8), np.float32, "x")
    weights, cache = ShapeWeights(run), ShapeCache(run, context - new, context)
    for mask, w, layer_cache in weights.layers("layers", TwoWindows.kinds, cache):
        x = layer(x, w, layer_cache, mask)
    run.root.inputs, run.root.outputs = [x], [x]
    return run


@step(Role.LAYER)
def layer(x, w, cache, mask):
    """A layer that keeps its keys, of a width of its own: [T D] -> [T D]."""
    cache.extend(Holds.KEYS, x, mask)
    return linear(x, w, "map", 8 if mask.size == 128 else 8) if isinstance(mask, SlidingWindow) else x


def test_kinds_that_print_alike_have_a_symbol_each():
    counts = Counts(windows())
    at = counts.values(S=100_000)
    assert {"n_sliding_1_layers": 2, "n_sliding_2_layers": 1, "n_full_layers": 1}.items() <= at.items()
    assert counts.total == 3 * 64 == counts.total_poly.at(at)
    kept = [entry.elements for entry in counts.kept]
    assert [size.at(at) for size in kept] == [2 * 128 * 8, 256 * 8, 100_000 * 8]
    assert sum(kept, 0).at(at) == (512 + 100_000) * 8
    assert len({str(n.kind) for n in counts.trace.root.children if n.layers is not None}) == 3


def test_a_symbol_that_is_taken_gets_a_number():
    run = Trace()
    assert [str(run.declare("n_layers", n)) for n in (12, 12, 6, 3)] == ["n_layers"] * 2 + ["n_2_layers", "n_3_layers"]


def test_sizes_that_are_cut_by_their_names_are_sizes():
    fields = {k.field for a in architectures().values() for k in fields_of(a.config) if k.is_size}
    named = (*INNER, STATE_GROUPS, *VOCABULARIES)
    assert [size for size in named if not any(field.startswith(size) for field in fields)] == []
    assert {"d_ff_expert", "d_ff_shared"} <= fields


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x, w: np.einsum("ti,io->to", x, w("map", 7, 8)), r"einsum\(.*\){}: axis 'i': 8 ≠ 7"),
        (lambda x, w: np.dot(x, x), r"np\.dot\(x .*\){} has no shape rule"),
        (lambda x, w: x @ x, r"np\.matmul\(x .*\){} has no shape rule"),
        (lambda x, w: x if x else x, r"x .* has a shape and no content{}: bool\(\)"),
        (lambda x, w: w("map", 7, 8) + w("map", 8, 7), r"layers\.\{i\}\.map: asked for as .* before{}"),
        (lambda x, w: scan(lambda state, row: (row, row), x, (x,)), r"scan: a state of .* becomes .*{}"),
        (lambda x, w: expert_linear(x, w("experts", 3, 8, 7), x), r"x .*{}, expert_linear: 8 ≠ 7"),
    ],
)
def test_an_error_of_a_shape_says_where(call, message):
    run = Trace()
    weights = ShapeWeights(run)
    x = run.input((Dim(5, "T"), 8), np.float32, "x")

    @step(Role.ATTENTION)
    def attention(x, w):
        """Wrong on purpose: [T D] -> [T D]."""
        return call(x, w)

    [(_, w, _)] = weights.layers("layers", ["one"] * 3, ShapeCache(run, Dim(1, "P"), Dim(6, "S")))
    with pytest.raises(ShapeError, match=message.replace("{}", " in layers 0 to 2, attention")):
        layer_of(x, w, attention)


@step(Role.LAYER)
def layer_of(x, w, inner):
    """A layer around a step: [T D] -> [T D]."""
    return inner(x, w)
