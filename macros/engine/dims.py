"""Integers that remember their origin, in one module with the polynomials that they carry.

A `Dim` is an `int`: 768 works wherever NumPy expects a size. It also carries a polynomial over named symbols, so the
same 768 prints as `d_model` or `n_heads·d_head`, and a sum of products of such dimensions is the formula of a whole
model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeAlias

# New tokens and the context: they vary after the trace, so comparisons that involve them are never decided early.
VARYING = frozenset({"T", "S"})


class Call(NamedTuple):
    """Terms beyond polynomials: `min`, floor division (`//`) or remainder (`%`) of polynomials."""

    op: str
    args: tuple[Poly, ...]

    def __str__(self) -> str:
        if self.op == "min":
            return f"min({', '.join(map(str, self.args))})"
        left, right = (f"({a})" if len(a.terms) > 1 else str(a) for a in self.args)
        return f"({left} {self.op} {right})"


Number: TypeAlias = int | Fraction
Atom: TypeAlias = str | Call
Monomial: TypeAlias = tuple[tuple[Atom, int], ...]


class Poly:
    """A polynomial with rational coefficients: {monomial: coefficient}; immutable, canonical, hashable.

    A monomial is a sorted tuple of (atom, exponent). Exponents may be negative: `n_heads / n_kv_heads`, where the sizes
    divide exactly, is a monomial too, so that n_kv_heads · (n_heads / n_kv_heads) is n_heads again.
    """

    __slots__ = ("terms", "_hash", "_symbols", "_is_free", "_text")

    def __init__(self, terms: dict[Monomial, Number]):
        if len(terms) == 1:  # the usual case
            [(m, c)] = terms.items()
            self.terms = terms if type(c) is int and c else {m: _whole(c)} if c else {}
        else:
            self.terms = {m: c if type(c) is int else _whole(c) for m, c in terms.items() if c}
        self._hash: int | None = None
        self._symbols: frozenset[str] | None = None
        self._is_free: bool | None = None
        self._text: str | None = None

    @classmethod
    def of(cls, x: Number | Atom | Poly) -> Poly:
        """The polynomial of a number, a dimension, an atom or a polynomial. Raises TypeError for anything else."""
        if isinstance(x, Poly):
            return x
        if isinstance(x, Dim):
            return x.expr
        if isinstance(x, (int, Fraction)):
            return _number(x)
        if isinstance(x, (str, Call)):  # pyright: ignore[reportUnnecessaryIsInstance] (callers may be untyped)
            return cls({((x, 1),): 1}) if isinstance(x, Call) else _symbol(x)
        raise TypeError(f"no polynomial of {x!r}")

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Poly):
            if not isinstance(other, (int, Fraction)):
                return False
            other = Poly.of(other)
        return self.terms == other.terms

    def __add__(self, other: Number | Atom | Poly) -> Poly:
        terms = dict(self.terms)
        for m, c in Poly.of(other).terms.items():
            terms[m] = terms.get(m, 0) + c
        return Poly(terms)

    __radd__ = __add__

    def __neg__(self) -> Poly:
        return Poly({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Number | Atom | Poly) -> Poly:
        terms = dict(self.terms)
        for m, c in Poly.of(other).terms.items():
            terms[m] = terms.get(m, 0) - c
        return Poly(terms)

    def __rsub__(self, other: Number | Atom | Poly) -> Poly:
        return Poly.of(other) - self

    @classmethod
    def sum(cls, polys: Iterable[Poly]) -> Poly:
        """The sum of any number of polynomials."""
        terms: dict[Monomial, Number] = {}
        for p in polys:
            for m, c in p.terms.items():
                terms[m] = terms.get(m, 0) + c
        return cls(terms)

    @classmethod
    def product(cls, factors: Iterable[Number | Poly]) -> Poly:
        """The product of any number of dimensions and polynomials."""
        polys: list[Poly] = []
        number = 1
        for factor in factors:
            if type(factor) is Dim:
                polys.append(factor.expr)
            elif type(factor) is int:
                number *= factor
            else:
                polys.append(Poly.of(factor))
        return _product(tuple(polys), number)

    def __mul__(self, other: Number | Atom | Poly) -> Poly:
        if type(other) is int:
            return Poly({m: c * other for m, c in self.terms.items()})
        terms: dict[Monomial, Number] = {}
        right = Poly.of(other).terms
        if len(self.terms) == 1 and len(right) == 1:
            [(m, c)], [(n, d)] = self.terms.items(), right.items()
            return Poly({_times((m, n)) if m and n else m or n: c * d})
        for m, c in self.terms.items():
            for n, d in right.items():
                product = _times((m, n)) if m and n else m or n
                terms[product] = terms.get(product, 0) + c * d
        return Poly(terms)

    __rmul__ = __mul__

    @property
    def constant(self) -> Number | None:
        """The number that this polynomial equals, or None if it has symbols."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def symbols(self) -> frozenset[str]:
        """Every symbol in it, including those inside `min`, `//` and `%`."""
        if self._symbols is None:
            found: set[str] = set()
            for m in self.terms:
                for a, _ in m:
                    if isinstance(a, str):
                        found.add(a)
                    else:
                        found.update(*[p.symbols for p in a.args])
            self._symbols = frozenset(found)
        return self._symbols

    @property
    def is_free(self) -> bool:
        """Whether its value varies after the trace."""
        if self._is_free is None:
            self._is_free = any(s in VARYING for s in self.symbols)
        return self._is_free

    def coefficient(self, symbol: Atom, power: int = 1) -> Poly:
        """The coefficient of symbol^power: `(2·L·S + 3).coefficient("S")` is 2·L."""
        return Poly(
            {
                tuple((a, e) for a, e in m if a != symbol): c
                for m, c in self.terms.items()
                if dict(m).get(symbol, 0) == power
            }
        )

    def at(self, values: Mapping[str, int]) -> int:
        """Its value with every symbol replaced; raises KeyError for a symbol without a value."""
        total: Number = 0
        for m, c in self.terms.items():
            below = 1
            for a, e in m:
                v = _evaluate(a, values) if type(a) is Call else values[a]  # pyright: ignore[reportArgumentType]
                if e == 1:
                    c = c * v
                elif e > 0:
                    c = c * v**e
                else:
                    below = below * v**-e
            total = total + (c if below == 1 else Fraction(c, below))
        return total if isinstance(total, int) else math.floor(total)

    def replace(self, rule: Callable[[Atom], Poly | None]) -> Poly:
        """The polynomial with every atom replaced for which `rule` returns a polynomial, also inside `min`, `//` and
        `%`."""
        terms: list[Poly] = []
        for m, c in self.terms.items():
            stays: list[tuple[Atom, int]] = []
            factors: list[Poly] = []
            for a, e in m:
                new = rule(a)
                if new is None and isinstance(a, Call):
                    new = _call(a.op, [p.replace(rule) for p in a.args])
                if new is None or e < 0:
                    stays.append((a, e))
                else:
                    factors += [new] * e
            terms.append(Poly.product((Poly({tuple(stays): c}), *factors)))
        return Poly.sum(terms)

    def in_numbers(self, values: Mapping[str, int]) -> Poly:
        """The polynomial with every symbol of `values` as a number: a few terms, quick to evaluate at many points."""
        terms: dict[Monomial, Number] = {}
        for m, c in self.terms.items():
            rest: list[tuple[Atom, int]] = []
            calls: list[Poly] = []
            for a, e in m:
                if isinstance(a, Call) and e > 0:
                    calls += [_call(a.op, [p.in_numbers(values) for p in a.args])] * e
                elif isinstance(a, Call) or a not in values:
                    rest.append((a, e))
                elif e > 0:
                    c = c * values[a] ** e
                else:
                    c = Fraction(c, values[a] ** -e)
            left = tuple(rest)
            if not calls:
                terms[left] = terms.get(left, 0) + c
                continue
            whole = Poly({left: c})
            for call in calls:
                whole = whole * call
            for n, d in whole.terms.items():
                terms[n] = terms.get(n, 0) + d
        return Poly(terms)

    def folded(self) -> Poly:
        """The polynomial with a·min(x, y) + a·k written as a·min(x + k, y + k)."""
        calls = {a for m in self.terms for a, e in m if isinstance(a, Call) and a.op == "min" and e == 1}
        for call in sorted(calls, key=str):
            factor = self.coefficient(call)
            rest = self - factor * Poly.of(call)
            monomial, coefficient = next(iter(factor.terms.items()))
            k = Fraction(rest.terms.get(monomial, 0)) / coefficient
            if k and k.denominator == 1 and all(rest.terms.get(m) == k * c for m, c in factor.terms.items()):
                return (rest - factor * k + factor * _minimum(tuple([p + k for p in call.args]))).folded()
        return self

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Poly({self})"

    def text(self, name: Callable[[str], str] = str) -> str:
        """As plain text: `n_heads·d_head`; `name` spells each symbol."""
        if name is not str:
            return self._spelled(name)
        if self._text is None:
            self._text = self._spelled(str)
        return self._text

    def _spelled(self, name: Callable[[str], str]) -> str:
        return _render(
            self,
            name,
            times="·",
            power=_superscript,
            over=lambda a, b: f"{a}/{b}" if "·" not in b else f"{a}/({b})",
            call=lambda op, args: (
                f"min({', '.join(args)})"
                if op == "min"
                else f"({_bracketed(args[0])} {_OPS[op]} {_bracketed(args[1])})"
            ),
            number=lambda n: f"{n:,}",
        )

    def latex(self, name: Callable[[str], str] | None = None) -> str:
        """As LaTeX: `\\text{n\\_heads} \\cdot \\text{d\\_head}`; `name` spells each symbol."""
        return _render(
            self,
            name or latex_name,
            times=r" \cdot ",
            power=lambda a, e: f"{{{a}}}^{{{e}}}",
            over=lambda a, b: rf"\frac{{{a}}}{{{b}}}",
            call=lambda op, args: {
                "min": rf"\min\left({', '.join(args)}\right)",
                "//": rf"\left\lfloor \frac{{{args[0]}}}{{{args[-1]}}} \right\rfloor",
                "%": rf"\left({_bracketed(args[0])} \bmod {_bracketed(args[-1])}\right)",
            }[op],
            number=lambda n: f"{n:,}".replace(",", "{,}"),
        )


class Dim(int):
    """An `int` that remembers its symbols: `Dim(768, "d_model")`. Arithmetic yields a `Dim` again.

    `exprs` holds every expression known for it: if sizes of different origin turn out equal (768 is d_model and
    n_heads·d_head), the first is its declaration.
    """

    expr: Poly  # the polynomial it was declared with
    exprs: tuple[Poly, ...]

    def __new__(cls, value: int, symbol: str | Poly | None = None, *, also: tuple[Poly, ...] = ()) -> Dim:
        self = super().__new__(cls, value)
        expr = symbol if type(symbol) is Poly else Poly.of(int(value) if symbol is None else symbol)
        self.expr, self.exprs = expr, (expr, *also) if also else (expr,)
        return self

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols of all its expressions."""
        if len(self.exprs) == 1:
            return self.expr.symbols
        return frozenset[str]().union(*(e.symbols for e in self.exprs))

    # With anything other than an `int`, a dimension acts as an ordinary integer.

    def __add__(self, other: object) -> Dim:
        if not isinstance(other, int):
            return NotImplemented
        return Dim(int.__add__(self, other), _sum(self.expr, Poly.of(other), 1))

    def __radd__(self, other: object) -> Dim:
        if not isinstance(other, int):
            return NotImplemented
        return Dim(int.__radd__(self, other), Poly.of(other) + self.expr)

    def __sub__(self, other: object) -> Dim:
        if not isinstance(other, int):
            return NotImplemented
        return Dim(int.__sub__(self, other), _sum(self.expr, Poly.of(other), -1))

    def __rsub__(self, other: object) -> Dim:
        if not isinstance(other, int):
            return NotImplemented
        return Dim(int.__rsub__(self, other), Poly.of(other) - self.expr)

    def __mul__(self, other: object) -> Dim:
        if not isinstance(other, int):
            return NotImplemented
        return Dim(int.__mul__(self, other), self.expr * other)

    def __rmul__(self, other: object) -> Dim:
        if not isinstance(other, int):
            return NotImplemented
        return Dim(int.__rmul__(self, other), Poly.of(other) * self.expr)

    def __neg__(self) -> Dim:
        return Dim(-int(self), -self.expr)

    def __floordiv__(self, other: int) -> Dim:
        return _of_ints(quotient, self, other)

    def __rfloordiv__(self, other: int) -> Dim:
        return _of_ints(quotient, other, self)

    def __mod__(self, other: int) -> Dim:
        return _of_ints(remainder, self, other)

    def __str__(self) -> str:
        return str(self.expr)

    def __repr__(self) -> str:
        return f"{int(self)} ({' = '.join(map(str, self.exprs))})"

    def __format__(self, spec: str) -> str:
        return format(int(self), spec)

    def __reduce__(self) -> tuple[type[Dim], tuple[int, Poly]]:
        return Dim, (int(self), self.expr)


@lru_cache(maxsize=1024)  # the layers of a model need the same few
def _sum(p: Poly, q: Poly, sign: int) -> Poly:
    return p + q if sign > 0 else p - q


def _of_ints(operator: Callable[[int, int], Dim], a: object, b: object) -> Dim:
    return operator(a, b) if isinstance(a, int) and isinstance(b, int) else NotImplemented


def quotient(a: int, b: int) -> Dim:
    """a // b: an exact division stays a monomial, any other becomes a floor."""
    p, q = Poly.of(a), Poly.of(b)
    if p.constant is not None and q.constant is not None:
        return Dim(int(a) // int(b))
    return Dim(int(a) // int(b), _quotient(p, q, int(a) % int(b) == 0))


@lru_cache(maxsize=1024)
def _quotient(p: Poly, q: Poly, divides: bool) -> Poly:
    if divides and len(q.terms) == 1:
        [(m, c)] = q.terms.items()
        exact = p * Poly({tuple([(atom, -e) for atom, e in m]): 1 if c == 1 else Fraction(1, c)})
        # S − T may be divisible by chance at the trace's sizes, so every term must be.
        if (
            len(p.terms) == 1
            or not p.is_free
            or all(c.denominator == 1 and all(e > 0 for _, e in m) for m, c in exact.terms.items())
        ):
            return exact
    return Poly.of(Call("//", (p, q)))


def remainder(a: int, b: int) -> Dim:
    """a % b: the content of a chunk of b after a tokens."""
    p, q = Poly.of(a), Poly.of(b)
    if p.constant is not None and q.constant is not None:
        return Dim(int(a) % int(b))
    return Dim(int(a) % int(b), Poly.of(Call("%", (p, q))))


def smallest(*dims: int) -> Dim:
    """min(dims): decided now if it always has the same result, otherwise kept as an expression.

    Sizes of a model are compared by value; one that varies (T, S) is decided only if the result is valid for every
    value.
    """
    fixed: list[int] = []
    varying: list[Poly] = []
    for d in dims:
        p = Poly.of(d)
        if p.is_free:
            varying.append(p)
        else:
            fixed.append(d)
    return Dim(min(map(int, dims)), smallest_poly(*varying, *([Poly.of(min(fixed))] if fixed else [])))


def smallest_poly(*polys: Poly) -> Poly:
    """min(polynomials), without those that are never below another one."""
    return _minimum(polys)


def same(a: int, b: int) -> Dim:
    """Two names for one size: a's expression first, then b's. Raises ValueError if the sizes differ."""
    if a is b and isinstance(a, Dim):
        return a
    if a != b:
        raise ValueError(f"{int(a)} ≠ {int(b)}")
    if isinstance(a, Dim) and isinstance(b, Dim) and a.exprs == b.exprs:
        return a
    if not isinstance(b, Dim) or b.expr.constant is not None:
        return a if isinstance(a, Dim) else Dim(a)
    if not isinstance(a, Dim) or a.expr.constant is not None:
        return b
    return Dim(int(a), a.expr, also=a.exprs[1:] + tuple(e for e in b.exprs if e not in a.exprs))


def product(dims: Iterable[int]) -> Dim:
    """The product of dimensions: the number of elements of a shape."""
    sizes = tuple(dims)
    if len(sizes) == 1 and isinstance(sizes[0], Dim):
        return sizes[0]
    return Dim(math.prod(map(int, sizes)), Poly.product(sizes))


def dims_of(shape: tuple[int, ...]) -> tuple[Dim, ...]:
    """A shape whose every size is a dimension: itself if it is one."""
    for d in shape:
        if type(d) is not Dim:
            return tuple([d if isinstance(d, Dim) else Dim(d) for d in shape])
    return shape  # pyright: ignore[reportReturnType] (each of them is one)


def latex_name(symbol: str) -> str:
    """A symbol as LaTeX in its usual spelling: d_model -> \\text{d\\_model}, T -> T."""
    spelled = symbol.replace("_", r"\_")
    return symbol if len(symbol) == 1 else rf"\text{{{spelled}}}"


_OPS = {"//": "//", "%": "mod"}


@lru_cache(maxsize=4096)
def _number(x: Number) -> Poly:
    return Poly({(): x})


@lru_cache(maxsize=4096)
def _symbol(x: str) -> Poly:
    return Poly({((x, 1),): 1})


@lru_cache(maxsize=4096)  # layers and models share products
def _product(polys: tuple[Poly, ...], number: int) -> Poly:
    monomials: list[Monomial] = []
    others: list[Poly] = []
    coefficient: Number = number
    for p in polys:
        if len(p.terms) == 1:
            [(m, c)] = p.terms.items()
            coefficient *= c
            monomials.append(m)
        else:
            others.append(p)
    whole = Poly({_times(tuple(monomials)): coefficient})
    for p in others:
        whole = whole * p
    return whole


def _whole(c: Number) -> Number:
    return c.numerator if c.denominator == 1 else c


def _order(atom: Atom) -> tuple[int, int | str]:
    """Reading order inside a product: numbers of layers, T and S, other counts and the vocabulary, dimensions,
    others."""
    if isinstance(atom, Call):
        return 4, str(atom)
    if atom.endswith("layers"):
        return 0, atom
    if len(atom) == 1:
        return 1, -ord(atom)
    return (2 if atom.startswith(("n_", "vocab")) else 3), atom


@lru_cache(maxsize=1 << 16)
def _times(monomials: tuple[Monomial, ...]) -> Monomial:
    powers: dict[Atom, int] = {}
    for m in monomials:
        for a, e in m:
            powers[a] = powers.get(a, 0) + e
    return tuple(sorted(((a, e) for a, e in powers.items() if e), key=lambda p: _order(p[0])))


def _evaluate(call: Call, values: Mapping[str, int]) -> int:
    args = [p.at(values) for p in call.args]
    return min(args) if call.op == "min" else args[0] // args[1] if call.op == "//" else args[0] % args[1]


@lru_cache(maxsize=4096)
def _minimum(args: tuple[Poly, ...]) -> Poly:
    """min(args), without those that are never below another one."""
    polys: list[Poly] = []
    for arg in args:
        polys += [p for p in _distribute(arg) if p not in polys]
    kept = [
        p
        for i, p in enumerate(polys)
        if not any(_never_below(p, q) for j, q in enumerate(polys) if j != i and (j < i or p != q))
    ]
    if len(kept) == 1:
        return kept[0]
    return Poly.of(Call("min", tuple(sorted(kept, key=lambda p: (not p.is_free, str(p))))))


def _call(op: str, args: list[Poly]) -> Poly:
    """`op` of polynomials, evaluated if all of them are numbers, or if the dividend is a multiple of the divisor."""
    if not any(p.symbols for p in args):
        return Poly.of(_evaluate(Call(op, tuple(args)), {}))
    if op == "min":
        return _minimum(tuple(args))
    return Poly.of(1) if op == "//" and args[0] == args[1] else Poly.of(Call(op, tuple(args)))


def _distribute(p: Poly) -> list[Poly]:
    """min(a, b) + c is min(a + c, b + c): the arguments that `p` represents inside another min."""
    for m, c in p.terms.items():
        if c == 1 and len(m) == 1 and m[0][1] == 1 and isinstance(m[0][0], Call) and m[0][0].op == "min":
            rest = p - Poly({m: 1})
            return [a + rest for a in m[0][0].args]
    return [p]


def _never_below(p: Poly, q: Poly) -> bool:
    """Whether p ≥ q for every symbol ≥ 1 (min, // and % ≥ 0): sufficient, not necessary."""
    least: Number = 0
    for m, c in (p - q).terms.items():
        if m and c < 0:
            return False
        if not m or all(isinstance(a, str) for a, _ in m):
            least += c
    return least >= 0


def _bracketed(text: str) -> str:
    return f"({text})" if any(sign in text for sign in (" + ", " − ", " - ")) else text


def _superscript(atom: str, power: int) -> str:
    return atom + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(d)] for d in str(power))


def _render(
    p: Poly,
    name: Callable[[str], str],
    *,
    times: str,
    power: Callable[[str, int], str],
    over: Callable[[str, str], str],
    call: Callable[[str, list[str]], str],
    number: Callable[[int], str],
) -> str:
    """A polynomial as text, with a notation for products, powers, fractions, functions and numbers."""
    if not p.terms:
        return "0"

    def atom(a: Atom) -> str:
        if isinstance(a, str):
            return name(a)
        return call(
            a.op, [_render(x, name, times=times, power=power, over=over, call=call, number=number) for x in a.args]
        )

    text = ""
    for m, c in p.terms.items():
        size = abs(c)
        above = [atom(a) if e == 1 else power(atom(a), e) for a, e in m if e > 0]
        below = [atom(a) if e == -1 else power(atom(a), -e) for a, e in m if e < 0]
        if size.numerator != 1 or not above:
            above.insert(0, number(size.numerator))
        if size.denominator != 1:
            below.insert(0, number(size.denominator))
        term = over(times.join(above), times.join(below)) if below else times.join(above)
        text += (" − " if c < 0 else " + ") + term if text else ("−" if c < 0 else "") + term
    return text.replace("−", "-") if r"\cdot" in times else text


ONE, NOTHING = Dim(1), Poly({})
# 1 if this is the first step (its new tokens are the whole context), else 0.
IN_FIRST_STEP = Call("//", (Poly.of("T"), Poly.of("S")))
