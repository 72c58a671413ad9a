"""Arrays that have a shape and no content, and the trace that computing with them leaves.

`Spec` implements NumPy's `__array_ufunc__` and `__array_function__` protocols, as `jax.eval_shape` does for JAX: a function
written for arrays runs unchanged, a 405-billion-parameter model takes a millisecond and no memory, and every operation
is written down with its shapes, its weights and its multiply-adds. This module knows NumPy, and nothing of what is computed.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from .dims import Dim, Free, Poly, product, same, smallest

Shape = tuple[int, ...]
ONE = Dim(1)


class ShapeError(TypeError):
    """A call that shapes cannot follow: the message names the function, the shapes and the tensors."""


@dataclass(frozen=True)
class Weight:
    """A tensor of the checkpoint, or all its copies over `layers` and `members` (experts).

    `name` is the checkpoint's, with `{i}` for the layer and `{e}` for the member; `shape` is that of one copy. A `routed`
    weight is a stack of members of which each token uses some: (members, used).
    """

    name: str
    shape: tuple[Dim, ...]
    layers: tuple[int, ...] | None = None
    layer_count: Dim = ONE
    members: Dim | None = None
    is_buffer: bool = False
    routed: tuple[Dim, Dim] | None = None

    @cached_property
    def copies(self) -> Dim:
        """How many tensors of the checkpoint this stands for."""
        return self.layer_count * (1 if self.members is None else self.members)

    @cached_property
    def count(self) -> Dim:
        """Elements of all copies."""
        return product(self.shape) * self.copies

    @cached_property
    def active(self) -> Dim:
        """Elements that one token uses: all, or the chosen members' share."""
        return self.count if self.routed is None else self.count // self.routed[0] * self.routed[1]

    def names(self, layer: int | None = None) -> Iterator[str]:
        """The names of all copies, layer by layer; of one `layer` only, where given."""
        layers = self.layers or (None,) if layer is None else (layer,)
        for i, e in itertools.product(layers, range(self.members) if self.members is not None else (None,)):
            yield self.name.replace("{i}", str(i)).replace("{e}", str(e))

    def ranges(self) -> dict[str, list] | None:
        """What `{i}` and `{e}` of the name stand for: {"i": [[first, last, step], ...], "e": [[0, last, 1]]}."""
        found = {} if self.layers is None else {"i": runs(self.layers)}
        if self.members is not None:
            found["e"] = [[0, int(self.members) - 1, 1]]
        return found or None


@dataclass(frozen=True, slots=True)
class Kept:
    """What each of `layers` keeps from one step to the next: `shape` after the step, in terms of the context S.

    `row` is the shape of one token's part; None for a state whose size does not depend on the context. `seen` is how many
    earlier rows a step reads, and `reach` the rule that says which.
    """

    name: str
    shape: tuple[Dim, ...]
    row: tuple[Dim, ...] | None
    layers: tuple[int, ...]
    layer_count: Dim
    item_bytes: int | None = None
    seen: Dim | None = None
    reach: object = None

    @property
    def elements(self) -> Poly:
        """Elements kept by all layers, a polynomial in S."""
        return product(self.shape).expr * Poly.of(self.layer_count)

    @property
    def elements_per_token(self) -> Poly:
        """Elements that one more token adds as long as nothing is dropped."""
        return Poly.of(0) if self.row is None else product(self.row).expr * Poly.of(self.layer_count)


@dataclass(eq=False, slots=True)
class Node:
    """One call in the trace: a NumPy function, or a step with the calls inside it as `children`."""

    name: str
    parent: Node | None = None
    inputs: list[Spec] = field(default_factory=list)
    outputs: list[Spec] = field(default_factory=list)
    weights: list[Weight] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)
    note: str = ""
    doc: str = ""
    own_flops: Poly | None = None
    layers: tuple[int, ...] | None = None
    layer_count: Dim = ONE
    kind: object = None
    factor: float = 1.0  # the plain number that a product multiplies by
    _flops: Poly | None = None
    _weights: tuple[Weight, ...] | None = None

    @property
    def flops(self) -> Poly:
        """FLOPs of one run of this call: 2 for each multiply-add of its contractions, all layers of a kind included.

        Worked out once; ask after the call has ended.
        """
        if self._flops is None:
            self._flops = self._sum_of_flops()
        return self._flops

    def _sum_of_flops(self) -> Poly:
        parts = [] if self.own_flops is None else [self.own_flops]
        for child in self.children:
            one = child.flops
            if one.terms:
                parts.append(one if child.layer_count is ONE else one * child.layer_count.expr)
        return parts[0] if len(parts) == 1 else Poly.sum(parts)

    def walk(self) -> Iterator[Node]:
        """This node and all below it, in the order of the calls."""
        yield self
        for child in self.children:
            yield from child.walk()

    def path(self) -> list[Node]:
        """From the root down to this node."""
        return [*(self.parent.path() if self.parent else []), self]

    def all_weights(self) -> list[Weight]:
        """The weights that this call touched, each once, in order. Worked out once; ask after the call has ended."""
        if self._weights is None:
            self._weights = tuple(dict.fromkeys(w for n in self.walk() for w in n.weights))
        return list(self._weights)


class Trace:
    """What one run on shapes leaves: a tree of calls, the weights asked for, what was kept, and the symbols' values."""

    def __init__(self):
        self.root = Node("forward")
        self.here = self.root
        self.weights: dict[str, Weight] = {}
        self.kept: list[Kept] = []
        self.symbols: dict[str, int] = {}
        self._leaves: dict[str, Spec] = {}

    def input(self, shape: Shape, dtype=np.int64, name: str = "input") -> Spec:
        """An array that comes from outside: no weight, no operation."""
        return Spec(self, shape, np.dtype(dtype), None, name)

    def weight(self, weight: Weight, shape: Shape) -> Spec:
        """The leaf of a weight, the same one each time it is asked for (a tied head counts once)."""
        key = weight.name if weight.layers is None else f"{weight.name} {weight.layers}"
        if key not in self._leaves:
            self.weights[key] = weight
            self._leaves[key] = Spec(self, shape, np.dtype(np.float32), weight, weight.name)
        elif self.weights[key].shape != weight.shape:
            raise ShapeError(f"{weight.name}: asked for as {show(weight.shape)}, and as {show(self.weights[key].shape)} before")
        if self.weights[key] not in self.here.weights:
            self.here.weights.append(self.weights[key])
        return self._leaves[key]

    def keep(self, kept: Kept) -> None:
        """Write down what a layer keeps for the next step."""
        self.kept.append(kept)

    def call(self, function: Callable, args: tuple, kwargs: dict, rule: Callable | None = None):
        """Run a step: a node whose children are the calls that it makes."""
        node = self._open(function.__name__)
        node.doc = (function.__doc__ or "").strip().partition("\n")[0]
        for a in args:
            if getattr(a, "layers_here", None) and all(n.layers is None for n in node.path()):
                node.layers, node.layer_count, node.kind = a.layers_here, a.layer_count, a.kind
        try:
            out = function(*args, **kwargs) if rule is None else self.primitive(function, args, kwargs, rule)
        finally:
            self.here = node.parent
        node.inputs, node.outputs = _specs(args), _specs((out,))
        return out

    def primitive(self, function: Callable, args: tuple, kwargs: dict, rule: Callable):
        """An indivisible step: its own rule gives the output's shape and the multiply-adds."""
        shape, multiply_adds = rule(*args, **kwargs)
        self.here.own_flops = Poly.of(multiply_adds) * 2
        return Spec(self, shape, np.dtype(np.float32), self.here, function.__name__)

    def repeat(self, body: Callable, state, xs: tuple[Spec, ...]):
        """Run `body(state, *rows)` once, and count it for every row of `xs`: (state, [rows …] of what it gives).

        One leaf of the tree, whose FLOPs are those of one run times the rows.
        """
        node, rows = self._open("scan"), xs[0].shape[0]
        once = self.here = Node("scan", node)
        try:
            last, out = body(state, *(Spec(self, x.shape[1:], x.dtype, node, x.label) for x in xs))
        finally:
            self.here = node.parent
        before, after = _specs((state,)), _specs((last,))
        if [a.shape for a in after] != [a.shape for a in before]:
            raise ShapeError(f"scan: a state of {_argument(before)} becomes {_argument(after)}")
        node.own_flops = once.flops * rows.expr
        inside = {id(n) for n in once.walk()} | {id(node)}
        besides = {id(a): a for n in once.walk() for a in n.inputs if not (isinstance(a.source, Node) and id(a.source) in inside)}
        node.inputs = [*before, *xs, *(a for i, a in besides.items() if i not in map(id, before))]
        node.outputs = [Spec(self, a.shape, a.dtype, node, "state") for a in after]
        node.outputs.append(Spec(self, (rows, *out.shape), out.dtype, node, "scan"))
        states = node.outputs[:-1]
        return (states[0] if isinstance(state, Spec) else tuple(states)), node.outputs[-1]

    def numpy(self, name: str, function: Callable, args: tuple, kwargs: dict, rule: Callable):
        """One NumPy call: a leaf of the tree."""
        node = self._open(name)
        try:
            out = rule(node, *args, **kwargs)
        except ShapeError:
            raise
        except (ValueError, TypeError, IndexError) as error:
            raise ShapeError(f"{name}({', '.join(map(_argument, args))}): {error}") from None
        finally:
            self.here = node.parent
        node.inputs = _specs(args)
        if name == "multiply":
            node.factor = next((float(a) for a in args if isinstance(a, (int, float))), 1.0)
        node.outputs = [Spec(self, s, t, node, name) for s, t in (out if isinstance(out, list) else [out])]
        return node.outputs if isinstance(out, list) else node.outputs[0]

    def _open(self, name: str) -> Node:
        node = Node(name, self.here)
        self.here.children.append(node)
        self.here = node
        return node


class Spec(np.lib.mixins.NDArrayOperatorsMixin):
    """An array without content. Whatever would need the content raises `ShapeError`."""

    __slots__ = ("__tracer__", "shape", "dtype", "source", "label")

    def __init__(self, tracer: Trace, shape: Shape, dtype: np.dtype, source: Node | Weight | None, label: str):
        self.__tracer__, self.dtype, self.source, self.label = tracer, dtype, source, label
        self.shape = tuple([d if isinstance(d, Dim) else Dim(d) for d in shape])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Dim:
        return product(self.shape)

    @property
    def T(self) -> Spec:
        return np.transpose(self)

    def __repr__(self) -> str:
        return f"{self.label} {show(self.shape)}"

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        if method != "__call__" or ufunc.signature is not None or ufunc.nout != 1 or kwargs:
            raise ShapeError(f"np.{name}({', '.join(map(_argument, inputs))}) has no shape rule; write a contraction as np.einsum")
        return self.__tracer__.numpy(name, ufunc, inputs, {}, lambda node, *args: _elementwise(ufunc, args))

    def __array_function__(self, function, types, args, kwargs):
        rule = RULES.get(function)
        if rule is None:
            raise ShapeError(f"np.{function.__name__}({', '.join(map(_argument, args))}) has no shape rule; add one to RULES in spec.py")
        return self.__tracer__.numpy(function.__name__, function, args, kwargs, rule)

    def __getitem__(self, key) -> Spec:
        return self.__tracer__.numpy("getitem", operator.getitem, (self, key), {}, _getitem)

    def astype(self, dtype) -> Spec:
        return self.__tracer__.numpy("astype", np.astype, (self, dtype), {}, lambda node, a, t: (a.shape, np.dtype(t)))

    def reshape(self, *shape) -> Spec:
        return np.reshape(self, shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape)

    def transpose(self, *axes) -> Spec:
        return np.transpose(self, axes or None)

    def swapaxes(self, a: int, b: int) -> Spec:
        return np.swapaxes(self, a, b)

    def repeat(self, repeats: int, axis: int) -> Spec:
        return np.repeat(self, repeats, axis=axis)

    def sum(self, axis=None, keepdims=False) -> Spec:
        return np.sum(self, axis=axis, keepdims=keepdims)

    def mean(self, axis=None, keepdims=False) -> Spec:
        return np.mean(self, axis=axis, keepdims=keepdims)

    def max(self, axis=None, keepdims=False) -> Spec:
        return np.max(self, axis=axis, keepdims=keepdims)

    def _leak(self, what: str):
        raise ShapeError(f"{self!r} has a shape and no content: {what} would need its numbers")

    def __bool__(self):
        self._leak("bool()")

    def __int__(self):
        self._leak("int()")

    def __float__(self):
        self._leak("float()")

    def __complex__(self):
        self._leak("complex()")

    def __index__(self):
        self._leak("use as an index")

    def __len__(self):
        self._leak("len() (use .shape[0])")

    def __iter__(self):
        self._leak("iteration")

    def __contains__(self, item):
        self._leak("in")

    def __setitem__(self, key, value):
        self._leak("assignment")

    def __array__(self, dtype=None, copy=None):
        self._leak("conversion to a real array")

    def item(self):
        self._leak("item()")

    def tolist(self):
        self._leak("tolist()")


class SpecWeights:
    """Shape-only weights: asking for one by name and shape is what declares it.

    The same interface as the loaded weights of a checkpoint, so that one function runs on either.
    """

    def __init__(self, trace: Trace, prefix: str = "", layers: tuple[int, ...] | None = None, count: Dim = ONE, kind=None):
        self.__tracer__, self.prefix = trace, prefix
        self.layers_here, self.layer_count, self.kind = layers, count, kind
        self.index = layers[0] if layers else 0

    def __call__(self, name: str, *shape: int) -> Spec:
        """The tensor `name`, of this very shape."""
        return self._leaf(name, shape)

    def buffer(self, name: str, *shape: int, counted: bool = True) -> Spec:
        """A tensor that the checkpoint stores and training does not learn by gradient.

        Not `counted`: the published total leaves it out, so that it is no more than an input here.
        """
        if not counted:
            return self.__tracer__.input(shape, np.dtype(np.float32), self.prefix + name)
        return self._leaf(name, shape, is_buffer=True)

    def stack(self, name: str, members: int, *shape: int, used: int) -> Spec:
        """Equal tensors, one per member, of which each token uses `used`, as one array [members, *shape].

        With `{e}` in the name (the member's number) the checkpoint has one tensor per member, otherwise the stack itself.
        """
        return self._leaf(name, shape, members=members, used=used)

    def at(self, prefix: str) -> SpecWeights:
        """The same weights below `prefix`."""
        inner = SpecWeights(self.__tracer__, f"{self.prefix}{prefix}.", self.layers_here, self.layer_count, self.kind)
        inner.index = self.index
        return inner

    def layers(self, prefix: str, kinds, past: SpecPast) -> Iterator[tuple]:
        """(kind, weights, past) for each kind of layer once, in order of first appearance; real weights give every layer."""
        distinct = list(dict.fromkeys(kinds))
        for kind in distinct:
            at = tuple(i for i, k in enumerate(kinds) if k == kind)
            symbol = "n_layers" if len(distinct) == 1 else f"n_{str(kind).replace(', ', '_').replace(' ', '_')}_layers"
            self.__tracer__.symbols[symbol] = len(at)
            count = Dim(len(at), symbol)
            weights = SpecWeights(self.__tracer__, f"{self.prefix}{prefix}.{{i}}.", at, count, kind)
            yield kind, weights, SpecPast(self.__tracer__, past.length, past.context, at, count)

    def _leaf(self, name, shape, members=None, used=None, is_buffer=False) -> Spec:
        shape = tuple(d if isinstance(d, Dim) else Dim(d) for d in shape)
        whole, routed = shape, None
        if members is not None:
            members, used = (d if isinstance(d, Dim) else Dim(d) for d in (members, used))
            whole, routed = (members, *shape), (members, used)
            if "{e}" not in name:
                shape, members = whole, None
        weight = Weight(self.prefix + name, shape, self.layers_here, self.layer_count, members, is_buffer, routed)
        return self.__tracer__.weight(weight, whole)


class SpecPast:
    """Shape-only memory of earlier steps: `length` tokens came before, `context` with the new ones."""

    def __init__(self, trace: Trace, length: Dim, context: Dim, layers: tuple[int, ...] = (0,), count: Dim = ONE):
        self.__tracer__, self.length, self.context, self.layers, self.layer_count = trace, length, context, layers, count

    def extend(self, name: str, new: Spec, reach) -> Spec:
        """Earlier rows that `reach` still sees, then the new ones: [T …] -> [S …]."""
        row = new.shape[1:]
        old = self.__tracer__.input((reach.seen(self.length), *row), new.dtype, f"past {name}")
        self._keep(name, (reach.kept(self.context), *row), row, seen=old.shape[0], reach=reach)
        return np.concatenate([old, new], axis=0)

    def state(self, name: str, *shape: int) -> Spec:
        """The state that the step before left, of fixed size."""
        return self.__tracer__.input(shape, np.float32, f"past {name}")

    def store(self, name: str, new: Spec, item_bytes: int | None = None) -> None:
        """Leave a state of fixed size to the next step; `item_bytes` where its elements have a size of their own."""
        self._keep(name, new.shape, None, item_bytes)

    def _keep(self, name, shape, row, item_bytes=None, seen=None, reach=None):
        self.__tracer__.keep(Kept(name, shape, row, self.layers, self.layer_count, item_bytes, seen, reach))


def show(shape: Shape) -> str:
    """A shape in symbols and numbers: `[T=5, d_model=768]`."""
    return "[" + ", ".join(f"{d!s}={int(d)}" if isinstance(d, Dim) and d.expr.constant is None else str(int(d)) for d in shape) + "]"


def runs(numbers: tuple[int, ...]) -> list[list[int]]:
    """Ascending numbers as [first, last, step], each as long as it goes: 0 1 2 5 9 13 -> [0, 2, 1], [5, 13, 4]."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and (runs[-1][0] == runs[-1][1] or n - runs[-1][1] == runs[-1][2]):
            runs[-1] = [runs[-1][0], n, n - runs[-1][1]]
        else:
            runs.append([n, n, 1])
    return runs


# --- shape rules -----------------------------------------------------------------------------------------------------
# Each takes the node (for a note and its FLOPs) and the call's arguments, and returns (shape, dtype), or a list of them.


def _elementwise(ufunc, args):
    return _broadcast([a.shape for a in args if hasattr(a, "shape")]), _dtype(ufunc, tuple(map(_dtype_of, args)))


@lru_cache(maxsize=None)
def _dtype(ufunc, dtypes) -> np.dtype:
    return ufunc.resolve_dtypes((*dtypes, None))[-1]


def _dtype_of(a):
    return a.dtype if hasattr(a, "dtype") else np.dtype(bool) if isinstance(a, bool) else int if isinstance(a, int) else float


def _broadcast(shapes) -> Shape:
    if len(shapes) == 1:
        return shapes[0]
    out = []
    for i in range(-max(map(len, shapes)), 0):
        d = ONE
        for other in [s[i] for s in shapes if len(s) >= -i]:
            if int(d) == 1 and (int(other) != 1 or d.expr.constant is not None):  # a named 1 (one key/value head) stays named
                d = other
            elif int(other) != 1:
                d = same(d, other)
        out.append(d)
    return tuple(out)


def _einsum(node, subscripts, *operands, optimize=None):
    terms, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = terms.split(",")
    if not arrow or len(terms) != len(operands):
        raise ValueError(f"{len(operands)} operands for {subscripts!r}, which needs an explicit '->'")
    size: dict[str, Dim] = {}
    for term, operand in zip(terms, operands):
        if len(term) != len(operand.shape):
            raise ValueError(f"{term!r} names {len(term)} axes")
        for letter, d in zip(term, operand.shape):
            try:
                size[letter] = same(size[letter], d) if letter in size else d
            except ValueError as error:
                raise ValueError(f"axis {letter!r}: {error}") from None
    node.note = subscripts
    if len(operands) > 1 and set(size) - set(result):
        node.own_flops = product(size.values()).expr * 2
    return tuple(size[x] for x in result), np.result_type(*(o.dtype for o in operands))


def _getitem(node, a, key):
    key = key if isinstance(key, tuple) else (key,)
    rest = a.ndim - sum(k is not None and k is not Ellipsis for k in key)
    if rest < 0:
        raise IndexError(f"{a.ndim - rest} indices for {a.ndim} axes")
    if any(k is Ellipsis for k in key):
        at = next(i for i, k in enumerate(key) if k is Ellipsis)
        key = key[:at] + (slice(None),) * rest + key[at + 1:]
    out, axes = [], iter(a.shape)
    for k in key:
        if k is None:
            out.append(ONE)
        elif isinstance(k, slice):
            out.append(_slice(next(axes), k))
        elif isinstance(k, int) and not isinstance(k, bool):
            if not -(d := next(axes)) <= k < d:
                raise IndexError(f"index {k} of an axis of {int(d)}")
        else:
            raise ValueError(f"index {_argument(k)}: use np.take or np.take_along_axis")
    return (*out, *axes), a.dtype


def _slice(d: Dim, k: slice) -> Dim:
    start, stop, stride = k.start or 0, k.stop, k.step or 1
    if stride < 1 or (stride > 1 and stop is not None):
        raise ValueError(f"slice {k} has no shape rule")
    if start < 0:
        if stop is not None or stride > 1:
            raise ValueError(f"slice {k} has no shape rule")
        return smallest(d, -start)
    end = d if stop is None else d + stop if stop < 0 else smallest(d, stop)
    if start > end:
        raise IndexError(f"slice {k} of an axis of {int(d)}")
    n = end - start
    return n if stride == 1 else n // stride if n % stride == 0 else (n + stride - 1) // stride


def _reshape(node, a, shape, **_):
    shape = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    if -1 in [int(d) for d in shape]:
        at = [int(d) for d in shape].index(-1)
        shape[at] = a.size // product(d for i, d in enumerate(shape) if i != at)
    before, after = math.prod(map(int, a.shape)), math.prod(map(int, shape))
    if before != after:
        raise ValueError(f"{show(a.shape)} has {before} elements, {show(shape)} {after}")
    return tuple(shape), a.dtype


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} of an array with {rank} axes")
    return axis % rank


def _transpose(node, a, axes=None):
    axes = range(a.ndim)[::-1] if axes is None else [_axis(i, a.ndim) for i in axes]
    if sorted(axes) != list(range(a.ndim)):
        raise ValueError(f"axes {tuple(axes)} of an array with {a.ndim}")
    return tuple(a.shape[i] for i in axes), a.dtype


def _swapaxes(node, a, i, j):
    shape = list(a.shape)
    shape[i], shape[j] = shape[j], shape[i]
    return tuple(shape), a.dtype


def _moveaxis(node, a, source, destination):
    shape = list(a.shape)
    shape.insert(_axis(destination, a.ndim), shape.pop(_axis(source, a.ndim)))
    return tuple(shape), a.dtype


def _concatenate(node, arrays, axis=0):
    axis = _axis(axis, arrays[0].ndim)
    shape = list(arrays[0].shape)
    for other in arrays[1:]:
        if len(other.shape) != len(shape):
            raise ValueError("arrays of different rank")
        shape = [d + o if i == axis else same(d, o) for i, (d, o) in enumerate(zip(shape, other.shape))]
    return tuple(shape), np.result_type(*(a.dtype for a in arrays))


def _stack(node, arrays, axis=0):
    shape = list(_broadcast([a.shape for a in arrays]))
    shape.insert(_axis(axis, len(shape) + 1), Dim(len(arrays)))
    return tuple(shape), np.result_type(*(a.dtype for a in arrays))


def _split(node, a, sections, axis=0):
    axis = _axis(axis, a.ndim)
    d = a.shape[axis]
    if isinstance(sections, int):
        if d % sections:
            raise ValueError(f"an axis of {int(d)} in {sections} equal parts")
        parts = [d // sections] * sections
    else:
        cuts = [0, *sections, d]
        if any(int(x) > int(y) for x, y in zip(cuts, cuts[1:])):
            raise ValueError(f"cuts at {[int(c) for c in sections]} of an axis of {int(d)}")
        parts = [y - x for x, y in zip(cuts, cuts[1:])]
    return [((*a.shape[:axis], p, *a.shape[axis + 1:]), a.dtype) for p in parts]


def _repeat(node, a, repeats, axis=None):
    axis = _axis(axis, a.ndim)
    return (*a.shape[:axis], a.shape[axis] * repeats, *a.shape[axis + 1:]), a.dtype


def _take(node, a, indices, axis=None):
    axis = _axis(axis, a.ndim)
    return (*a.shape[:axis], *indices.shape, *a.shape[axis + 1:]), a.dtype


def _take_along_axis(node, a, indices, axis=-1):
    axis = _axis(axis, a.ndim)
    rest = _broadcast([s[:axis] + s[axis + 1:] for s in (a.shape, indices.shape)])
    return (*rest[:axis], indices.shape[axis], *rest[axis:]), a.dtype


def _arange(node, start, stop=None, step=1, dtype=None):
    start, stop = (0, start) if stop is None else (start, stop)
    n = stop - start
    return (n if step == 1 else n // step if n % step == 0 else (n + step - 1) // step,), np.dtype(dtype or np.int64)


def _filled(node, shape, value=None, dtype=None, **_):
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,), np.dtype(dtype or np.float64)


def _reduction(result: Callable[[np.dtype], object] = lambda dtype: dtype):
    def rule(node, a, axis=None, keepdims=False, **_):
        axes = range(a.ndim) if axis is None else [_axis(i, a.ndim) for i in (axis if isinstance(axis, tuple) else (axis,))]
        out = [ONE if i in axes else d for i, d in enumerate(a.shape) if keepdims or i not in axes]
        return tuple(out), np.dtype(result(a.dtype))
    return rule


def _summed(dtype: np.dtype):
    return np.int64 if dtype.kind == "b" else dtype


def _averaged(dtype: np.dtype):
    return np.float64 if dtype.kind in "bi" else dtype


def _broadcast_to(node, a, shape):
    out = _broadcast([a.shape, tuple(shape)])
    if tuple(map(int, out)) != tuple(map(int, shape)):
        raise ValueError(f"{show(a.shape)} does not fit into {show(shape)}")
    return out, a.dtype


def _like(node, a, *_, dtype=None, **__):
    return a.shape, np.dtype(dtype) if dtype else a.dtype


def _indices_like(node, a, *_, **__):
    return a.shape, np.dtype(np.int64)


def _pad(node, a, width, **_):
    if len(width) != a.ndim:
        raise ValueError(f"{len(width)} pairs of widths for {a.ndim} axes")
    return tuple(d + lo + hi for d, (lo, hi) in zip(a.shape, width)), a.dtype


def _expand_dims(node, a, axis):
    axis = _axis(axis, a.ndim + 1)
    return (*a.shape[:axis], ONE, *a.shape[axis:]), a.dtype


RULES: dict[Callable, Callable] = {
    np.einsum: _einsum, np.reshape: _reshape, np.transpose: _transpose, np.swapaxes: _swapaxes, np.moveaxis: _moveaxis,
    np.concatenate: _concatenate, np.stack: _stack, np.split: _split, np.repeat: _repeat, np.expand_dims: _expand_dims,
    np.take: _take, np.take_along_axis: _take_along_axis, np.arange: _arange, np.zeros: _filled, np.ones: _filled,
    np.full: _filled, np.zeros_like: _like, np.ones_like: _like, np.tril: _like, np.triu: _like, np.cumsum: _like, np.clip: _like,
    np.sort: _like, np.flip: _like, np.argsort: _indices_like, np.argpartition: _indices_like, np.pad: _pad,
    np.sum: _reduction(_summed), np.mean: _reduction(_averaged), np.max: _reduction(), np.min: _reduction(),
    np.prod: _reduction(_summed), np.any: _reduction(lambda _: bool), np.all: _reduction(lambda _: bool),
    np.argmax: _reduction(lambda _: np.int64), np.broadcast_to: _broadcast_to,
    np.where: lambda node, c, a, b: (_broadcast([getattr(x, "shape", ()) for x in (c, a, b)]),
                                     next((x.dtype for x in (a, b) if hasattr(x, "dtype")), np.dtype(np.float64))),
}


def _argument(a) -> str:
    if isinstance(a, Spec):
        return repr(a)
    if isinstance(a, (list, tuple)):
        return "[" + ", ".join(map(_argument, a)) + "]"
    return f"array {show(a.shape)}" if isinstance(a, np.ndarray) else str(a)


def _specs(args) -> list[Spec]:
    found: list[Spec] = []
    for a in args:
        if isinstance(a, Spec):
            found.append(a)
        elif isinstance(a, (list, tuple)):
            found += _specs(a)
    return found


def free(name: str, value: int) -> Dim:
    """A dimension that a reader may vary after the trace."""
    return Dim(value, Free(name))
