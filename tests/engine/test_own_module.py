"""The comparison with an author's own torch module: one line says what is wrong, and where."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from reference import golden, own

from macros.catalogue.presets import make
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.steps import step

MODULE = """
import torch

class Module(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.first = torch.nn.Linear(3, 3)

    def forward(self, ids):
        return WHAT

def build(config):
    return Module(config)

def none(config):
    return None

def wrong(config):
    return Module(config["n_heads"])
"""


class Tensor:
    """As much of torch's as a module below gets and gives."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.shape = self.values.shape


class Module:
    """A torch module without parameters, which nothing looks into."""

    def __call__(self, ids):
        return self.forward(ids)

    def parameters(self):
        return []

    named_modules = parameters

    def float(self):
        return self

    def eval(self):
        return self

    def requires_grad_(self, _):
        return self


STAND_IN = SimpleNamespace(
    Tensor=Tensor,
    nn=SimpleNamespace(Module=Module, Linear=lambda *_: None),
    tensor=Tensor,
    full=lambda shape, value: Tensor(np.full(shape, value)),
    isfinite=lambda tensor: np.isfinite(tensor.values),
    manual_seed=lambda _: None,
    no_grad=nullcontext,
)


@pytest.fixture
def torch(monkeypatch):
    """Itself where it is installed; its packages are larger than all others together."""
    if find_spec("torch") is not None:
        import torch

        return torch
    monkeypatch.setitem(sys.modules, "torch", STAND_IN)
    monkeypatch.setattr(own, "find_spec", lambda _: True)
    return STAND_IN


@pytest.fixture
def llama():
    g = golden("llama")
    watch = own.Named()
    reference, _ = logits(g.architecture, g.config, g.weights(watch), g.ids)
    return make("llama", g.raw), g, reference, {name: [passed] for name, passed in watch.passed}


def test_what_agrees_gives_the_difference_and_the_inputs_of_the_blocks(llama):
    model, g, reference, passed = llama
    off, paired = own.compared(model, "mine.py", g.tensors, g.ids, reference, passed)
    assert off == 0 and own.inputs(paired).shape == (3, len(g.ids), g.config.d_model)


@pytest.mark.parametrize(
    "change, said",
    [
        (
            lambda passed: passed["model.layers.1"][0].gave[2].fill(7),
            "; model.layers.1 is the first block to differ",
        ),
        (
            lambda passed: passed["model.layers.0"][0].read[2].fill(7),
            "; the input of model.layers.0 differs already: compare what comes before it",
        ),
        (lambda passed: None, "; the output of each block is the same: compare what follows the last one"),
        (
            lambda passed: passed.clear(),
            "; make each block a module named as its weights begin (model.layers.0, model.layers.1), and the first "
            "that differs is named",
        ),
    ],
)
def test_logits_that_differ_name_the_first_block_that_does(llama, change, said):
    model, g, reference, passed = llama
    copied = {name: [own.Passed(one.read.copy(), one.gave.copy()) for one in runs] for name, runs in passed.items()}
    change(copied)
    with pytest.raises(Problem) as wrong:
        own.compared(model, "mine.py:build", g.tensors, g.ids, reference * 1.5, copied)
    line = str(wrong.value)
    assert line.startswith("mine.py: the logits differ from those of macros/engine/architectures/llama.py by ")
    assert line.endswith(said)


def test_tensors_that_differ_are_listed(llama, capsys):
    model, g, reference, passed = llama
    stored = {name: array for name, array in g.tensors.items() if name != "model.norm.weight"} | {"x": np.zeros(2)}
    with pytest.raises(Problem, match="mine.py: 2 tensors differ from those of macros/engine/architectures/llama.py; "):
        own.compared(model, "mine.py", stored, g.ids, reference, passed)
    assert (
        f"model.norm.weight: ({g.config.d_model},) in the forward pass, missing in the module"
        in capsys.readouterr().out
    )


def test_a_key_that_nothing_reads_is_named():
    raw = golden("llama").raw
    with pytest.raises(Problem, match="configs.json: llama: no_such_key: llama does not read it; remove it"):
        own.own_model("llama", raw | {"no_such_key": 7})
    with pytest.raises(Problem, match="configs.json: llama: hidden_size is missing; "):
        own.own_model("llama", {key: value for key, value in raw.items() if key != "hidden_size"})
    with pytest.raises(Problem, match="configs.json: lama has no small config; add one, of unequal sizes"):
        own.own_config("lama")


@pytest.mark.parametrize(
    "where, said",
    [
        ("none.py", "none.py: there is no such Python file; name it and its function, as in my_model.py:build"),
        ("broken.py", "broken.py:2: importing it raises SyntaxError: "),
        ("mine.py:make", "mine.py: has no function make; name it after the colon"),
        ("mine.py:none", "mine.py: none(config) returns None; return a torch.nn.Module"),
        ("mine.py:wrong", "mine.py:19: wrong(config) raises KeyError: 'n_heads'; correct the line"),
        ("mine.py", "mine.py: the module returns Tensor [1, 2]; return logits [1, 2, 5], [1 T V], as they are or as "),
        ("tuple.py", "tuple.py: the module returns tuple; return logits [1, 2, 5], [1 T V], as they are or as "),
        ("names.py", "names.py:10: the module, called with token ids [1, 2], raises AttributeError: "),
        ("nan.py", "nan.py: the module's logits are not finite numbers; "),
    ],
)
def test_a_malformed_module_is_one_line(where, said, torch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text("\ndef build(config:\n", "utf-8")
    for name, what in (
        ("mine", "ids"),
        ("tuple", "(ids, ids)"),
        ("names", "self.second(ids)"),
        ("nan", "torch.full((1, 2, 5), float('nan'))"),
    ):
        (tmp_path / f"{name}.py").write_text(MODULE.replace("WHAT", what), "utf-8")
    with pytest.raises(Problem) as wrong:
        own.run(own.built(where, {}), where, torch.tensor([[1, 2]]), 5)
    assert str(wrong.value).startswith(said) and "\n" not in str(wrong.value)


def test_torch_is_asked_for(monkeypatch):
    monkeypatch.setattr(own, "find_spec", lambda name: None)
    with pytest.raises(Problem, match="torch is not installed; pip install torch"):
        own.built("mine.py", {})


def test_a_step_of_no_role_is_named():
    with pytest.raises(TypeError, match="'tide' is no Role of a step: write one of macros/engine/steps.py"):
        step("tide")  # pyright: ignore[reportArgumentType]
