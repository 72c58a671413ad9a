"""The shape-only arrays: every rule against NumPy itself; every leak and unknown call an error that names it."""

from __future__ import annotations

import copy
import json
import math
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from macros.engine.array import Node, ShapeArray
from macros.engine.dims import Dim, same
from macros.engine.rules import RULES, ShapeError
from macros.engine.tensors import Weight
from macros.engine.trace import Trace
from macros.engine.weights import ShapeWeights

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)


def specs(*arrays):
    """Shape-only arrays like real ones, in one trace."""
    trace = Trace()
    return [trace.input(a.shape, a.dtype, f"input {i}") for i, a in enumerate(arrays)]


def agree(call, *arrays):
    """`call` on arrays and on their shapes: the same shapes and types."""
    real, shaped = call(*arrays), call(*specs(*arrays))
    for r, s in zip(real, shaped, strict=True) if isinstance(real, (list, tuple)) else [(real, shaped)]:
        assert isinstance(s, ShapeArray) and all(isinstance(d, Dim) for d in s.shape)
        assert tuple(map(int, s.shape)) == np.shape(r)
        assert s.dtype == r.dtype


# Each function of RULES: axes of its operands (one letter, one prime; i before the colon: whole numbers, b: truth
# values),
# and calls of it. `n` is the prime of each letter.
CASES = {
    np.einsum: [
        ("ab cb", lambda n, x, y: np.einsum("ab,cb->ac", x, y)),
        ("abc dbc", lambda n, x, y: np.einsum("abc,dbc->bad", x, y)),
        ("ab", lambda n, x: np.einsum("ab->ba", x)),
        ("a b", lambda n, x, y: np.einsum("a,b->ab", x, y)),
        ("ab bc cd", lambda n, x, y, z: np.einsum("ab,bc,cd->ad", x, y, z)),
        ("a a", lambda n, x, y: np.einsum("a,a->", x, y)),
        ("ab cb", lambda n, x, y: np.einsum("ab, cb -> ac", x, y, optimize=True)),
    ],
    np.reshape: [
        ("ab", lambda n, x: np.reshape(x, (n["b"], n["a"]))),
        ("abc", lambda n, x: x.reshape(n["a"], n["b"] * n["c"])),
        ("abc", lambda n, x: x.reshape((n["a"], -1))),
        ("ab", lambda n, x: x.reshape(-1)),
        ("ab", lambda n, x: x.reshape(n["b"], 1, n["a"])),
    ],
    np.transpose: [
        ("abc", lambda n, x: np.transpose(x)),
        ("abc", lambda n, x: x.transpose(1, 2, 0)),
        ("ab", lambda n, x: x.T),
        ("abc", lambda n, x: np.transpose(x, (2, 0, 1))),
        ("abc", lambda n, x: np.transpose(x, (-1, 0, 1))),
    ],
    np.swapaxes: [("abc", lambda n, x: np.swapaxes(x, 0, 2)), ("abc", lambda n, x: x.swapaxes(-1, -2))],
    np.moveaxis: [
        ("abcd", lambda n, x: np.moveaxis(x, 0, 2)),
        ("abcd", lambda n, x: np.moveaxis(x, -1, 1)),
        ("abcd", lambda n, x: np.moveaxis(x, 1, -1)),
    ],
    np.concatenate: [
        ("ab cb", lambda n, x, y: np.concatenate([x, y])),
        ("ab ac", lambda n, x, y: np.concatenate((x, y), axis=-1)),
        ("abc adc aec", lambda n, x, y, z: np.concatenate([x, y, z], axis=1)),
        ("ab i:cb", lambda n, x, y: np.concatenate([x, y])),
    ],
    np.stack: [
        ("ab ab", lambda n, x, y: np.stack([x, y])),
        ("ab ab", lambda n, x, y: np.stack([x, y, x], axis=-1)),
        ("ab ab", lambda n, x, y: np.stack((x, y), axis=1)),
    ],
    np.split: [
        ("ab", lambda n, x: np.split(x, n["b"], axis=-1)),
        ("ab", lambda n, x: np.split(x, [1, 2], axis=1)),
        ("ab", lambda n, x: np.split(x, 1)),
        ("ab", lambda n, x: np.split(x, [n["a"] - 1])),
    ],
    np.repeat: [
        ("ab", lambda n, x: np.repeat(x, 3, axis=0)),
        ("abc", lambda n, x: x.repeat(n["a"], axis=1)),
        ("abc", lambda n, x: np.repeat(x, 2, axis=-1)),
    ],
    np.expand_dims: [
        ("ab", lambda n, x: np.expand_dims(x, 0)),
        ("ab", lambda n, x: np.expand_dims(x, -1)),
        ("ab", lambda n, x: np.expand_dims(x, 1)),
    ],
    np.take: [
        ("ab i:c", lambda n, x, i: np.take(x, i, axis=0)),
        ("ab i:cd", lambda n, x, i: np.take(x, i, axis=1)),
        ("abc i:d", lambda n, x, i: np.take(x, i, axis=-2)),
    ],
    np.take_along_axis: [
        ("ab i:ac", lambda n, x, i: np.take_along_axis(x, i, axis=-1)),
        ("ab i:cb", lambda n, x, i: np.take_along_axis(x, i, axis=0)),
    ],
    np.arange: [
        ("a", lambda n, x: np.arange(n["a"], like=x)),
        ("a", lambda n, x: np.arange(2, 3 * n["a"], like=x)),
        ("a", lambda n, x: np.arange(0, n["a"], 2, like=x)),
        ("a", lambda n, x: np.arange(1, 4 * n["a"], 3, dtype=np.float32, like=x)),
    ],
    np.zeros: [
        ("a", lambda n, x: np.zeros((3, n["a"]), like=x)),
        ("a", lambda n, x: np.zeros(n["a"], dtype=np.float32, like=x)),
    ],
    np.ones: [("a", lambda n, x: np.ones((n["a"], 2), np.float32, like=x))],
    np.full: [
        ("a", lambda n, x: np.full((n["a"], 2), 7.5, like=x)),
        ("a", lambda n, x: np.full(n["a"], 7.5, dtype=np.float32, like=x)),
    ],
    np.zeros_like: [("ab", lambda n, x: np.zeros_like(x)), ("ab", lambda n, x: np.zeros_like(x, dtype=bool))],
    np.ones_like: [("i:ab", lambda n, x: np.ones_like(x))],
    np.tril: [("ab", lambda n, x: np.tril(x)), ("aa", lambda n, x: np.tril(x, -1))],
    np.triu: [("ab", lambda n, x: np.triu(x, 1))],
    np.cumsum: [("ab", lambda n, x: np.cumsum(x, axis=-1)), ("ab", lambda n, x: np.cumsum(x, axis=0))],
    np.clip: [("ab", lambda n, x: np.clip(x, 0, 1)), ("ab", lambda n, x: np.clip(x, None, 1.5))],
    np.sort: [("ab", lambda n, x: np.sort(x)), ("ab", lambda n, x: np.sort(x, axis=0))],
    np.flip: [("ab", lambda n, x: np.flip(x, axis=-1))],
    np.argsort: [
        ("ab", lambda n, x: np.argsort(x, axis=-1)),
        ("ab", lambda n, x: np.argsort(-x, axis=0, kind="stable")),
    ],
    np.argpartition: [("ab", lambda n, x: np.argpartition(x, 1, axis=-1))],
    np.pad: [
        ("ab", lambda n, x: np.pad(x, ((1, 0), (0, 3)))),
        ("ab", lambda n, x: np.pad(x, [(n["b"], 0), (0, 0)], mode="constant")),
    ],
    np.sum: [
        ("abc", lambda n, x: np.sum(x)),
        ("abc", lambda n, x: x.sum(axis=-1)),
        ("abc", lambda n, x: x.sum(axis=1, keepdims=True)),
        ("abc", lambda n, x: np.sum(x, axis=(0, -1))),
        ("b:ab", lambda n, x: np.sum(x, axis=0)),
        ("i:ab", lambda n, x: np.sum(x, axis=0)),
    ],
    np.mean: [
        ("abc", lambda n, x: x.mean(axis=-1, keepdims=True)),
        ("abc", lambda n, x: np.mean(x, axis=0)),
        ("i:ab", lambda n, x: np.mean(x, axis=0)),
    ],
    np.max: [("abc", lambda n, x: x.max(axis=-1)), ("abc", lambda n, x: np.max(x, axis=(1, 2), keepdims=True))],
    np.min: [("abc", lambda n, x: np.min(x, axis=-1))],
    np.prod: [("abc", lambda n, x: np.prod(x, axis=-1))],
    np.any: [("b:ab", lambda n, x: np.any(x, axis=-1)), ("ab", lambda n, x: np.any(x))],
    np.all: [("b:ab", lambda n, x: np.all(x, axis=0, keepdims=True))],
    np.argmax: [("ab", lambda n, x: np.argmax(x, axis=-1))],
    np.broadcast_to: [
        ("b", lambda n, x: np.broadcast_to(x, (n["a"], n["b"]))),
        ("ab", lambda n, x: np.broadcast_to(x[:, None], (n["a"], 3, n["b"]))),
    ],
    np.where: [
        ("b:ab ab", lambda n, c, x: np.where(c, x, -np.inf)),
        ("b:ab ab b", lambda n, c, x, y: np.where(c, x, y)),
        ("b:cab ab", lambda n, c, x: np.where(c, 0.0, x)),
        ("b:ab i:ab", lambda n, c, x: np.where(c, x, 0)),
    ],
}


def arrays(terms: str, sizes: dict[str, int], seed: int):
    rng = np.random.default_rng(seed)
    smallest = min(sizes[x] for x in "ab")  # indices that fit both axes
    out = []
    for term in terms.split():
        kind, _, axes = term.rpartition(":")
        shape = tuple(sizes[x] for x in axes)
        out.append(
            {
                "": lambda: rng.normal(size=shape).astype(np.float32),
                "i": lambda: rng.integers(0, smallest, shape),
                "b": lambda: rng.random(shape) < 0.5,
            }[kind]()
        )
    return out


@pytest.mark.parametrize("function", list(RULES), ids=lambda f: f.__name__)
@given(data=st.data())
def test_every_rule_is_numpys(function, data):
    assert function in CASES, f"no case for np.{function.__name__}: add one to CASES"
    sizes = dict(zip("abcde", data.draw(st.permutations(PRIMES[1:]))))
    for terms, call in CASES[function]:
        agree(lambda *x: call(sizes, *x), *arrays(terms, sizes, 3))


def test_no_case_is_stale():
    assert set(CASES) == set(RULES)


UFUNCS = {
    1: [
        np.negative,
        np.exp,
        np.sqrt,
        np.tanh,
        np.sin,
        np.cos,
        np.abs,
        np.sign,
        np.log,
        np.square,
        np.log1p,
        np.isfinite,
        np.rint,
        np.floor,
    ],
    2: [
        np.add,
        np.subtract,
        np.multiply,
        np.divide,
        np.power,
        np.maximum,
        np.minimum,
        np.less,
        np.less_equal,
        np.greater,
        np.equal,
        np.not_equal,
        np.floor_divide,
        np.remainder,
        np.logical_and,
    ],
}


@pytest.mark.parametrize("ufunc", [u for us in UFUNCS.values() for u in us], ids=lambda u: u.__name__)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_elementwise(ufunc):
    x, y = np.ones((3, 5), np.float32), np.ones(5, np.float32)
    i = np.ones((3, 5), np.int64)
    if ufunc.nin == 1:
        agree(ufunc, x), agree(ufunc, i)
        return
    for a, b in [
        (x, x),
        (x, y),
        (y, x),
        (x, np.ones((7, 3, 5), np.float32)),
        (x, np.ones((3, 1), np.float32)),
        (i, i),
        (i, x),
    ]:
        agree(ufunc, a, b)
    for number in (2, 2.5, True):
        agree(lambda a: ufunc(a, number), x), agree(lambda a: ufunc(number, a), x), agree(lambda a: ufunc(a, number), i)


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor], ids=lambda o: o.__name__)
def test_truth_values(op):
    b = np.ones((3, 5), bool)
    agree(op, b, b), agree(op, b, b[0]), agree(operator.invert, b)


def test_a_real_constant_beside_shapes():
    x = np.ones((3, 5), np.float32)
    agree(lambda a: a * np.float32(2), x), agree(lambda a: np.arange(5, dtype=np.float32) * a, x)


SLICES = [
    np.s_[0],
    np.s_[-1],
    np.s_[1:],
    np.s_[-1:],
    np.s_[:2],
    np.s_[:-2],
    np.s_[1:3],
    np.s_[:, 1],
    np.s_[..., 0],
    np.s_[..., 1:],
    np.s_[:, None],
    np.s_[None],
    np.s_[..., None],
    np.s_[:, ::2],
    np.s_[..., 1::2],
    np.s_[1:, :, None, 2],
    np.s_[0, ...],
    np.s_[:],
    np.s_[::3],
    np.s_[-2:],
    np.s_[:100],
    np.s_[-100:],
    np.s_[0:0],
    np.s_[2:-1],
]


@pytest.mark.parametrize("key", SLICES, ids=str)
def test_slices(key):
    agree(lambda x: x[key], np.ones((5, 7, 11), np.float32))


@pytest.mark.parametrize(
    "key",
    [np.s_[9], np.s_[-9], np.s_[0, 0, 0, 0], np.s_[[1, 2]], np.s_[1:3:2], np.s_[::-1], np.s_[..., ...], np.s_[True]],
    ids=str,
)
def test_keys_without_a_rule(key):
    [x] = specs(np.ones((5, 7, 11)))
    with pytest.raises(ShapeError, match=r"getitem\(input 0 \[5, 7, 11\]"):
        x[key]


@given(st.integers(-9, 9) | st.none(), st.integers(-9, 9) | st.none(), st.sampled_from([None, 1, 2, 3]))
def test_any_slice_is_numpys_or_an_error(start, stop, stride):
    key, x = slice(start, stop, stride), np.ones((7, 2))
    try:
        ours = specs(x)[0][key]
    except ShapeError:
        return
    assert tuple(map(int, ours.shape)) == x[key].shape


def test_types():
    agree(lambda x: x.astype(np.float32), np.ones((2, 3), np.int64))
    agree(lambda x: x.astype(np.float16), np.ones((2, 3), np.float32))


@pytest.mark.parametrize(
    "call, found",
    [
        (lambda x, y: x + y, r"add\(input 0 \[3, 5\], input 1 \[7, 5\]\): 3 ≠ 7"),
        (
            lambda x, y: np.einsum("ab,ab->a", x, y),
            r"einsum\(ab,ab->a, input 0 \[3, 5\], input 1 \[7, 5\]\): axis 'a': 3 ≠ 7",
        ),
        (lambda x, y: np.einsum("abc,ab->a", x, y), r"einsum\(.*'abc' names 3 axes"),
        (lambda x, y: np.einsum("ab", x), r"einsum\(.*explicit '->'"),
        (lambda x, y: np.einsum("ab,cb->ac", x), r"einsum\(.*1 operands"),
        (lambda x, y: x.reshape(4, 4), r"reshape\(input 0 \[3, 5\], .*15 elements, \[4, 4\] 16"),
        (lambda x, y: np.reshape(x, (2, -1)), r"reshape\(input 0 \[3, 5\]"),
        (lambda x, y: np.concatenate([x, y], axis=1), r"concatenate\(\[input 0 \[3, 5\], input 1 \[7, 5\]\]\): 3 ≠ 7"),
        (lambda x, y: np.split(x, 2), r"split\(input 0 \[3, 5\], 2\): an axis of 3 in 2 equal parts"),
        (lambda x, y: np.split(x, [2, 1]), r"split\(input 0 \[3, 5\].*cuts at \[2, 1\]"),
        (lambda x, y: x.sum(axis=2), r"sum\(input 0 \[3, 5\].*axis 2"),
        (lambda x, y: np.take(x, y, axis=5), r"take\(input 0 \[3, 5\], input 1 \[7, 5\]\): axis 5"),
        (lambda x, y: np.transpose(x, (0, 2)), r"transpose\(input 0 \[3, 5\]"),
        (lambda x, y: np.transpose(x, (0, 0)), r"transpose\(input 0 \[3, 5\]"),
        (lambda x, y: np.swapaxes(x, 0, 4), r"swapaxes\(input 0 \[3, 5\], 0, 4\): axis 4 of an array with 2 axes"),
        (lambda x, y: np.broadcast_to(x, (3, 7)), r"broadcast_to\(input 0 \[3, 5\]"),
        (lambda x, y: np.broadcast_to(x, (5,)), r"broadcast_to\(input 0 \[3, 5\]"),
        (lambda x, y: np.pad(x, ((1, 1),)), r"pad\(input 0 \[3, 5\]"),
        (lambda x, y: np.take(x, y), r"take\(input 0 \[3, 5\], input 1 \[7, 5\]"),
        (lambda x, y: np.repeat(x, 2), r"repeat\(input 0 \[3, 5\]"),
        (lambda x, y: np.where(x, y, 0), r"where\(input 0 \[3, 5\], input 1 \[7, 5\]"),
        (lambda x, y: np.stack([x, y]), r"stack\(\[input 0 \[3, 5\], input 1 \[7, 5\]\]"),
        (lambda x, y: x.mean(axis="a"), r"mean\(input 0 \[3, 5\]"),
    ],
)
def test_wrong_shapes_name_the_function_the_shapes_and_the_tensors(call, found):
    with pytest.raises(ShapeError, match=found):
        call(*specs(np.ones((3, 5)), np.ones((7, 5))))


@pytest.mark.parametrize(
    "call, found",
    [
        (lambda x: np.outer(x, x), r"np\.outer\(input 0 \[3, 5\], input 0 \[3, 5\]\) has no shape rule"),
        (lambda x: np.linalg.norm(x), r"np\.norm\(input 0 \[3, 5\]\) has no shape rule"),
        (lambda x: np.dot(x, x), r"np\.dot\(.*no shape rule"),
        (lambda x: x @ x, r"np\.matmul\(input 0 \[3, 5\], .*no shape rule.*np\.einsum"),
        (lambda x: np.add.reduce(x), r"np\.add\.reduce\(input 0 \[3, 5\]\) has no shape rule"),
        (lambda x: np.add.outer(x, x), r"np\.add\.outer\("),
        (lambda x: np.modf(x), r"np\.modf\(input 0 \[3, 5\]\) has no shape rule"),
        (lambda x: np.exp(x, out=np.ones((3, 5))), r"np\.exp\(input 0 \[3, 5\]\) has no shape rule"),
        (lambda x: np.array_equal(x, x), r"np\.array_equal\("),
        (lambda x: np.nonzero(x), r"np\.nonzero\(input 0 \[3, 5\]\)"),
        (lambda x: np.copyto(np.ones((3, 5)), x), r"np\.copyto\("),
        (lambda x: np.unique(x), r"np\.unique\("),
        (lambda x: np.vstack([x, x]), r"np\.vstack\(\[input 0 \[3, 5\], input 0 \[3, 5\]\]\)"),
    ],
)
def test_a_call_without_a_rule_names_itself_and_the_shapes(call, found):
    with pytest.raises(ShapeError, match=found):
        call(*specs(np.ones((3, 5))))


def _for(x):
    for _ in x:
        pass


def _assign(x):
    x[0] = 1


def _add_in_place(x):
    real = np.ones((3, 5))
    real += x


LEAKS = {
    "bool": bool,
    "not": operator.not_,
    "if": lambda x: 1 if x else 2,
    "if x > 0": lambda x: 1 if x > 0 else 2,
    "and": lambda x: x and 1,
    "int": int,
    "float": float,
    "complex": complex,
    "index": operator.index,
    "len": len,
    "iter": iter,
    "for": _for,
    "list": list,
    "tuple": tuple,
    "unpack": lambda x: [*x],
    "in": lambda x: 1 in x,
    "in a list": lambda x: 5 in [x],
    "asarray": np.asarray,
    "asarray of float": lambda x: np.asarray(x, np.float32),
    "array": np.array,
    "array of list": lambda x: np.array([x]),
    "array of nested list": lambda x: np.array([[x, x], [x, x]]),
    "asarray of list": lambda x: np.asarray([x, 1.0]),
    "object array": lambda x: np.array(x, dtype=object),
    "ascontiguousarray": np.ascontiguousarray,
    "range": range,
    "item": lambda x: x.item(),
    "tolist": lambda x: x.tolist(),
    "math.sqrt": math.sqrt,
    "math.exp": math.exp,
    "round": round,
    "as an index": lambda x: [1, 2, 3][x],
    "index of a real array": lambda x: np.ones(9)[x],
    "assign": _assign,
    "assign into a real array": lambda x: np.ones((3, 5)).__setitem__(0, x),
    "in place on a real array": _add_in_place,
    "np.float64": np.float64,
    "np.int64": np.int64,
    "json": json.dumps,
    "min": lambda x: min(x, 3),
    "max": lambda x: max(1, x),
    "sum": sum,
    "sorted": sorted,
    "zip": lambda x: list(zip(x, x)),
    "isfinite": lambda x: math.isfinite(x),
    "fromiter": lambda x: np.fromiter(x, float),
    "format": lambda x: f"{x:.3f}",
    "real reshape": lambda x: np.ones(15).reshape(x),
    "frombuffer": np.frombuffer,
    "memoryview": memoryview,
    "equals": lambda x: bool(x == x),
    "shape of zeros": np.zeros,
    "save": lambda x: np.save("/nonexistent/x.npy", x),
    "reversed": lambda x: list(reversed(x)),
    "any": any,
    "all": all,
    "divmod": lambda x: divmod(x, 2),
    "set": lambda x: {x} and set(x),
    "asfortranarray": np.asfortranarray,
    "stack of a list": lambda x: np.array(list(x)),
    "fill": lambda x: np.ones((3, 5)).fill(x),
    "asanyarray": np.asanyarray,
    "np.float32": np.float32,
    "linspace": lambda x: np.linspace(0, x, 3),
    "real arange": lambda x: np.arange(x),
    "like a real one": lambda x: np.array([1.0, x]),
}


@pytest.mark.parametrize("leak", list(LEAKS.values()), ids=list(LEAKS))
@pytest.mark.parametrize("shape", [(3, 5), (), (1,)], ids=str)
def test_every_leak_raises(leak, shape):
    with pytest.raises((ShapeError, TypeError, ValueError)):
        leak(*specs(np.ones(shape)))


@pytest.mark.parametrize(
    "name", ["bool", "float", "int", "len", "iter", "asarray", "array of list", "in", "index", "as an index"]
)
def test_a_leak_names_the_tensor_and_its_shape(name):
    trace = Trace()
    w = ShapeWeights(trace)("model.norm.weight", Dim(5, "d_model"))
    with pytest.raises(ShapeError, match=r"model\.norm\.weight \[d_model=5\] has a shape and no content"):
        LEAKS[name](w)


def test_a_copy_leaks_nothing():
    [x] = specs(np.ones((3, 5)))
    for copied in (copy.copy(x),):
        with pytest.raises(ShapeError):
            bool(copied)
    with pytest.raises((ShapeError, TypeError, AttributeError, pickle.PicklingError)):
        np.asarray(pickle.loads(pickle.dumps(x)))


# --- symbols through the rules ---------------------------------------------------------------------------------------

D, N, H, F = Dim(77, "d_model"), Dim(7, "n_heads"), Dim(11, "d_head"), Dim(13, "d_ff")


def test_symbols_survive():
    trace = Trace()
    T = Dim(101, "T")
    x = trace.input((T, N * H), np.float32)
    assert [str(d) for d in x.reshape(T, N, H).shape] == ["T", "n_heads", "d_head"]
    assert [str(d) for d in x.reshape(T, N, -1).shape] == ["T", "n_heads", "d_head"]
    assert [str(d) for d in np.split(x, [H], axis=1)[1].shape] == ["T", "n_heads·d_head − d_head"]
    assert [str(d) for d in np.concatenate([x, x], axis=-1).shape] == ["T", "2·n_heads·d_head"]
    assert [str(d) for d in x[-1:].shape] == ["1", "n_heads·d_head"]
    assert [str(d) for d in x[:, : N * 3].shape] == ["T", "3·n_heads"]


def test_equal_sizes_keep_both_names():
    trace = Trace()
    x, w = trace.input((3, D), np.float32), ShapeWeights(trace)("w", F, N * H)
    assert [str(e) for e in (x * trace.input((N * H,), np.float32)).shape[-1].exprs] == ["d_model", "n_heads·d_head"]
    node = np.einsum("td,fd->tf", x, w).source
    assert str(node.own_flops) == "6·d_ff·d_model"
    assert same(D, N * H).symbols == {"d_model", "n_heads", "d_head"}


@pytest.mark.parametrize(
    "subscripts, shapes, multiply_adds",
    [
        ("ab,cb->ac", [(3, 5), (7, 5)], 105),
        ("a,b->ab", [(3,), (5,)], 0),
        ("ab->a", [(3, 5)], 0),
        ("ab,ab->a", [(3, 5), (3, 5)], 15),
        ("abc,dbc->bad", [(2, 3, 5), (7, 3, 5)], 210),
    ],
)
def test_flops_are_two_per_distinct_axis_product(subscripts, shapes, multiply_adds):
    trace = Trace()
    node = np.einsum(subscripts, *[trace.input(s, np.float32) for s in shapes]).source
    assert node.flops == 2 * multiply_adds


# --- weights ---------------------------------------------------------------------------------------------------------


def test_the_same_weight_twice_counts_once():
    trace = Trace()
    w = ShapeWeights(trace)
    assert w("table", 3, 5) is w("table", 3, 5) and len(trace.weights) == 1
    with pytest.raises(ShapeError, match=r"table: asked for as \[5, 3\], and as \[3, 5\] before"):
        w("table", 5, 3)


@pytest.mark.parametrize(
    "weight, names",
    [
        (Weight("a", (D,)), ["a"]),
        (Weight("h.{i}.a", (D,), (1, 4), Dim(2, "n_layers")), ["h.1.a", "h.4.a"]),
        (
            Weight("h.{i}.{e}.a", (D,), (1, 4), Dim(2, "n_layers"), Dim(2, "n_experts")),
            ["h.1.0.a", "h.1.1.a", "h.4.0.a", "h.4.1.a"],
        ),
        (Weight("{e}.a", (D,), None, Dim(1), Dim(3, "n_experts")), ["0.a", "1.a", "2.a"]),
    ],
)
def test_names(weight, names):
    assert list(weight.names()) == names and weight.copies == len(names) and weight.count == 77 * len(names)


@pytest.mark.parametrize(
    "layers, runs",
    [
        ((0, 1, 2, 3), [[0, 3, 1]]),
        ((5,), [[5, 5, 1]]),
        ((0, 2, 4, 7), [[0, 4, 2], [7, 7, 1]]),
        ((3, 5, 6), [[3, 5, 2], [6, 6, 1]]),
    ],
)
def test_ranges(layers, runs):
    assert Weight("h.{i}.a", (D,), layers).ranges() == {"i": runs}
    assert sorted(n for a, b, s in runs for n in range(a, b + 1, s)) == list(layers)


def test_nodes_are_a_tree():
    trace = Trace()
    x = trace.input((3, D), np.float32)
    x + x
    assert [n.name for n in trace.root.walk()] == ["forward", "add"] and trace.root.children[0].path()[0] is trace.root
    assert isinstance(trace.root.children[0], Node)
