"""The equations of steps and weights: each is run as it is written, and gives what the step gives."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pytest

from macros.catalogue import presets
from macros.engine import ops
from macros.engine.dims import Poly
from macros.engine.ops import basic, recurrence
from macros.engine.steps import ACTIVATIONS, Role
from macros.views.trace import operations
from macros.views.trace.operations import Operation
from macros.views.words import descriptions

Value: TypeAlias = Any  # a number, or an array of two axes: a vector is a row

TOKEN = re.compile(r"\\(?:mathrm|text)\{[^}]*\}|\\[a-zA-Z]+'?|[a-zA-Z]'?|\d+(?:\.\d+)?|[-+/^_{}()|,=]")
LEFT_OUT = re.compile(r"\\left|\\right|\\[,!]|\\quad|⟨|⟩")
FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    r"\tanh": np.tanh,
    r"\sigma": lambda x: 1 / (1 + np.exp(-x)),
    r"\Phi": np.vectorize(lambda x: 0.5 * math.erfc(-x / math.sqrt(2))),
    r"\ln": np.log,
    r"\mathrm{mean}": lambda x: x.mean(axis=-1, keepdims=True),
    r"\mathrm{var}": lambda x: x.var(axis=-1, keepdims=True),
    r"\mathrm{softmax}": basic.softmax,
    r"\mathrm{silu}": lambda x: x / (1 + np.exp(-x)),
}


class Equation:
    """Runs the right side of an equation: what stands side by side is a product of matrices, or of a number and one;
    sums are of equal shapes, and ⊙ of shapes that broadcast."""

    def __init__(self, latex: str, known: Mapping[str, Value]):
        self.known = known
        self.tokens = TOKEN.findall(LEFT_OUT.sub(" ", latex))
        assert "".join(self.tokens) == re.sub(r"\s", "", LEFT_OUT.sub("", latex)), latex

    def value(self) -> Value:
        value = self.sum()
        assert not self.tokens, self.tokens
        return value

    def next(self) -> str:
        return self.tokens[0] if self.tokens else ""

    def take(self, token: str) -> bool:
        return self.next() == token and bool(self.tokens.pop(0))

    def sum(self) -> Value:
        value = -self.product() if self.take("-") else self.product()
        while self.next() in ("+", "-"):
            sign = -1 if self.tokens.pop(0) == "-" else 1
            other = sign * self.product()
            assert not (is_matrix(value) and is_matrix(other)) or fits(value, other), "a sum of other shapes"
            value = value + other
        return value

    def product(self) -> Value:
        value = self.power()
        while self.next() not in ("", "+", "-", ")", "}", "|", ",", "="):
            if self.take(r"\odot"):
                value = value * self.power()
            elif self.take("/"):
                value = value / self.power()
            else:
                self.take(r"\cdot")
                other = self.power()
                value = value @ other if is_matrix(value) and is_matrix(other) else value * other
        return value

    def power(self) -> Value:
        is_e = self.next() == "e" and self.tokens[1:2] == ["^"]
        value = self.tokens.pop(0) if is_e else self.atom()
        while self.take("^"):
            if self.tokens[:3] == ["{", r"\top", "}"]:
                del self.tokens[:3]
                value = value.T
            else:
                to = self.group()
                value = np.exp(to) if is_e else value**to
        return value

    def group(self) -> Value:
        if not self.take("{"):
            return self.atom()
        value = self.sum()
        assert self.take("}")
        return value

    def atom(self) -> Value:
        token = self.tokens.pop(0)
        if token == "(":
            value = self.sum()
            assert self.take(")")
            return value
        if token == r"\frac":
            above = self.group()
            return above / self.group()
        if token == r"\sqrt":
            return np.sqrt(self.group())
        if token == r"\max":
            assert self.take("(")
            value = self.sum()
            assert self.take(",")
            value = np.maximum(value, self.sum())
            assert self.take(")")
            return value
        if token[0].isdigit():
            return float(token)
        if token == r"\pi":
            return math.pi
        name = token
        if self.take("_"):
            name += "_" + (self.tokens.pop(0) if self.next() != "{" else self.subscript())
        if name in FUNCTIONS:
            return FUNCTIONS[name](self.group())
        return self.known[name]

    def subscript(self) -> str:
        end = self.tokens.index("}")
        said = "".join(self.tokens[: end + 1])
        del self.tokens[: end + 1]
        return said


def is_matrix(value: Value) -> bool:
    return np.ndim(value) == 2


def fits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two are of one shape; a row of weights may be added to each of several rows, a column of means too."""
    return all(m == n or 1 in (m, n) for m, n in zip(a.shape, b.shape)) and (
        a.shape[0] == b.shape[0] or b.shape[0] == 1
    )


def equation(role: Role) -> str:
    return descriptions.steps()[role].equation


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).normal(size=shape)


T, D, F, N, H, S = 3, 7, 11, 1, 5, 4
x = numbers(T, D)
weights = {"n.weight": numbers(D), "n.bias": numbers(D, 1)[:, 0], "l.weight": numbers(F, D), "c.weight": numbers(D, F)}
weights |= {"c.bias": numbers(F), "head": numbers(13, D)}
named = lambda name, *shape: weights[name]  # noqa: E731


# By the role: what the step gives, and what the letters of its equation are.
CASES: dict[Role, tuple[np.ndarray, dict[str, Value]]] = {
    Role.LINEAR: (basic.linear(x, named, "l", F), {"x": x, "W": weights["l.weight"]}),
    Role.CONV1D: (basic.conv1d(x, named, "c", F), {"x": x, "W": weights["c.weight"], "b": weights["c.bias"][None]}),
    Role.UNEMBED: (basic.unembed(x, named, "head", 13, last=True), {"x_T": x[-1:], "W_U": weights["head"]}),
    Role.SOFT_CAP: (basic.soft_cap(x, 2.0), {"x": x, "c": 2.0}),
    Role.LAYER_NORM: (
        basic.layer_norm(x, named, "n", 1e-5),
        {"x": x, "g": weights["n.weight"][None], "b": weights["n.bias"][None], r"\epsilon": 1e-5},
    ),
    Role.RMS_NORM: (basic.rms_norm(x, named, "n", 1e-5), {"x": x, "g": weights["n.weight"][None], r"\epsilon": 1e-5}),
    Role.UNIT_NORM: (basic.unit_norm(x, 1e-5), {"x": x, r"\epsilon": 1e-5}),
    Role.GELU: (basic.gelu(x), {"x": x}),
    Role.GELU_TANH: (basic.gelu_tanh(x), {"x": x}),
    Role.SILU: (basic.silu(x), {"x": x}),
    Role.RELU: (basic.relu(x), {"x": x}),
    Role.RELU_SQUARED: (basic.relu_squared(x), {"x": x}),
    Role.SIGMOID: (basic.sigmoid(x), {"g": x}),
    Role.SIGMOID_SCORES: (ops.sigmoid_scores(x), {"g": x}),
    Role.SOFTPLUS: (basic.softplus(x), {"x": x}),
    Role.SOFTMAX: (basic.softmax(x), {"s": x}),
    Role.SCORES: (
        ops.scores(numbers(T, N, H), numbers(S, N, H), 1.0)[0],
        {"q": numbers(T, N, H)[:, 0], "k": numbers(S, N, H)[:, 0]},
    ),
    Role.LATENT_QUERIES: (
        ops.latent_queries(numbers(T, N, H), numbers(N, H, F))[:, 0],
        {"q": numbers(T, N, H)[:, 0], "W_{UK}": numbers(N, H, F)[0]},
    ),
    Role.LATENT_SCORES: (
        ops.latent_scores(numbers(T, N, F), numbers(S, F), numbers(T, N, H), numbers(S, H), 1.0)[0],
        {"q'": numbers(T, N, F)[:, 0], "c": numbers(S, F), "q_R": numbers(T, N, H)[:, 0], "k_R": numbers(S, H)},
    ),
    Role.LATENT_VALUES: (
        ops.latent_values(numbers(T, N, F), numbers(N, H, F))[:, 0],
        {"c": numbers(T, N, F)[:, 0], "W_{UV}": numbers(N, H, F)[0]},
    ),
    Role.WEIGHTED_SUM: (
        ops.weighted_sum(basic.softmax(numbers(N, T, S)), numbers(S, N, H))[:, 0],
        {"s": numbers(N, T, S)[0], "v": numbers(S, N, H)[:, 0]},
    ),
}

# Those whose letters are numbers.
OF_NUMBERS = (ACTIVATIONS | {Role.SOFT_CAP, Role.SIGMOID, Role.SIGMOID_SCORES, Role.SOFTPLUS}) & CASES.keys()


@pytest.mark.parametrize("role", CASES, ids=str)
def test_an_equation_is_what_its_step_computes(role):
    given, known = CASES[role]
    right = equation(role).rpartition("=")[2]
    if role in OF_NUMBERS:
        [letter] = known.keys() - {"c"}
        value = [[Equation(right, {**known, letter: one}).value() for one in row] for row in known[letter]]
    else:
        value = Equation(right, known).value()
    np.testing.assert_allclose(value, given, atol=2e-7)


class State:
    """A cache whose state is what it was made with."""

    length = 3

    def __init__(self, state: np.ndarray | tuple[np.ndarray, ...]):
        self.given = list(state) if isinstance(state, tuple) else [state]

    def state(self, holds, *shape):
        assert self.given[0].shape == shape
        return self.given.pop(0)

    def store(self, holds, new, item_bytes=None):
        self.left = new


def carried(role: Role, known: dict[str, Value]) -> dict[str, Value]:
    """The names that the equations of a recurrence give, one after the other."""
    for one in re.split(r", *\\quad", equation(role)):
        name, right = one.split("=", 1)
        known = {**known, name.strip(): Equation(right, known).value()}
    return known


I, J, Z, C = 3, 5, 2, 7


def test_the_equations_of_recurrences_are_what_they_compute():
    """One token, after a state."""
    state, q, k, v = numbers(N, I, J), numbers(1, N, I), numbers(2, N, I)[1:], numbers(1, N, J)
    given = {"S_{t-1}": state[0], "q_t": q[0], "k_t": k[0], "v_t": v[0]}

    cache = State(state)
    y = recurrence.decaying_attention(q, k, v, np.array([[0.3]]), cache)
    said = carried(Role.DECAYING_ATTENTION, {**given, "a_t": 0.3})
    np.testing.assert_allclose(said["y_t"], y[0])
    np.testing.assert_allclose(said["S_t"], cache.left[0])

    by_channel = np.array([[0.3, 0.5, 0.9]])
    for keep, a in ((np.array([[0.3]]), 0.3), (by_channel[None], np.diag(by_channel[0]))):
        cache = State(state)
        y = recurrence.gated_delta_rule(q, k, v, keep, np.array([[0.6]]), cache)
        said = carried(Role.GATED_DELTA_RULE, {**given, "a_t": a, r"\beta_t": 0.6})
        np.testing.assert_allclose(said["y_t"], y[0])
        np.testing.assert_allclose(said["S_t"], cache.left[0])

    cache, A, x, dt = State(numbers(C, Z)), -(numbers(C, Z) ** 2), numbers(1, C), numbers(1, C) ** 2
    y = recurrence.selective_scan(x, dt, A, numbers(1, Z), numbers(1, Z) + 1, cache)
    known = {
        "h_{t-1}": numbers(C, Z),
        r"\Delta_t": dt,
        "A": A,
        "x_t": x,
        "B_t": numbers(1, Z),
        "C_t": numbers(1, Z) + 1,
    }
    said = carried(Role.SELECTIVE_SCAN, known)
    np.testing.assert_allclose(said["y_t"], y)
    np.testing.assert_allclose(said["h_t"], cache.left)

    cache, keep = State(numbers(C)), np.full((1, C), 0.4)
    y = recurrence.rg_lru(numbers(1, C), np.log(keep), cache)
    said = carried(Role.RG_LRU, {"h_{t-1}": numbers(C)[None], "a_t": keep, "x_t": numbers(1, C)})
    np.testing.assert_allclose(said["h_t"], y)


def test_an_equation_that_does_not_fit_in_its_dimensions_is_seen():
    known = {"k": numbers(1, I), "v": numbers(1, J), "S": numbers(I, J)}
    with pytest.raises(AssertionError, match="of other shapes"):
        Equation(r"S + v^{\top} k", known).value()
    with pytest.raises(ValueError, match="matmul"):
        Equation(r"v - k^{\top} S", known).value()
    with pytest.raises(ValueError, match="matmul"):
        Equation(r"k \, v^{\top}", known).value()


def linear_maps() -> Iterator[tuple[str, Operation]]:
    """Each product with one matrix that a walkthrough shows, of each model type once."""
    slugs = (slug for slug in presets.paths() if presets.preset(slug).config is not None)
    for slug in {presets.model(slug).model_type: slug for slug in slugs}.values():
        for operation, _ in operations.sections(presets.model(slug)).operations():
            if operation.node.role in (Role.LINEAR, Role.CONV1D, Role.EXPERT_LINEAR):
                yield slug, operation


def test_a_matrix_is_turned_and_a_bias_added_where_the_file_has_them_so():
    """`x Wᵀ` where the file has [out, in], `x W` where it has [in, out]; `+ b` where it has a bias."""
    seen = Counter()
    for slug, operation in linear_maps():
        biases = [w for w in operation.weights if w.name.endswith("bias")]
        matrices = [w for w in operation.weights if w not in biases]
        said, width = operation.words.equation, operation.node.inputs[0].shape[-1].expr
        for matrix in matrices:
            if matrix.name.endswith("gate_projections.{i}.weight"):  # of IQuest Coder Loop, a vector for each head
                continue
            sides = [d.expr for d in matrix.shape[-2:]]
            if matrix.name.endswith("experts.mlp.w2"):  # DBRX has those of all experts in one matrix
                sides = [Poly.of("d_ff"), Poly.of("d_model")]
            is_by_blocks = "rg_lru" in matrix.name  # a square for each head, stored [in, out]
            assert width in sides or is_by_blocks, (slug, matrix.name)
            is_turned = sides[1] == width and operation.node.role is not Role.CONV1D
            assert said.count(r"\top") == is_turned, (slug, matrix.name, said)
            assert ("+ b" in said) == bool(biases), (slug, matrix.name, said)
            seen[is_turned, bool(biases)] += 1
    assert min(seen[key] for key in ((True, False), (True, True), (False, False), (False, True))) > 3, seen


def test_a_layer_norm_shows_the_weights_that_it_has():
    """GPT-2's has both, Command R's a scale alone, OLMo's none."""
    shown = {"gpt2": r" \odot g + b", "command-r-35b": r" \odot g", "olmo-1b": "}}"}
    for slug, end in shown.items():
        said = {
            operation.words.equation
            for operation, _ in operations.sections(presets.model(slug)).operations()
            if operation.node.role is Role.LAYER_NORM
        }
        assert len(said) == 1 and said.pop().endswith(end), slug


@pytest.mark.parametrize("slug, has_encoder", [("dory1.0-4b", False), ("nanbeige4.2-3b", False), ("t5-base", True)])
def test_a_norm_between_layers_is_of_an_encoder_only_where_a_decoder_begins(slug, has_encoder):
    """Layers that run again, and so have a norm between two runs, are no encoder."""
    titles = {o.words.title for o, _ in operations.sections(presets.model(slug)).operations()}
    assert any("encoder output" in title for title in titles) == has_encoder
    assert any("of the residual stream" in title for title in titles) != has_encoder
