"""Single figures for sentences."""

from __future__ import annotations

import ast
import datetime
import operator
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from ...catalogue import presets
from ...catalogue.models import Model
from ...counting.conditions import Conditions
from ...counting.figures import ALIASES, BYTES, FIGURES, NUMBERS, PARAMETERS, figure
from ...engine.errors import Problem, nearest
from ...engine.tensors import Weight
from . import disclosure, rounding
from .arguments import significant_digits, unknown
from .html import text

# Published for some models only.
PUBLISHED = {"stored": "numbers in the file"}

# Sums of the text part and the parts next to it.
BESIDE = {"with_components": "parameters with the towers", "with_prediction": "parameters with the MTP module"}

# Text from the preset.
ABOUT = ("name", "family", "organization", "released", "hub", "headline")


def number(model: Model, name: str, context: int | None = None, given: Conditions | None = None) -> int | Fraction:
    """The value of a figure (at a context, or under the given conditions), a symbol, a part or a tensor.

    Raises `Problem` with the nearest known name.
    """
    if known := figure(name):
        given = given or Conditions(context)
        if "context" in known.needs and (
            isinstance(given.context, bool) or not isinstance(given.context, int) or not 0 < given.context <= 10**9
        ):
            raise Problem(
                f"{name} at context = {given.context!r}", "give a whole number of tokens, such as context=4096"
            )
        if "accelerator" in known.needs and given.accelerator is None:
            raise Problem(f"{name} depends on an accelerator", "ask for it with the macro cost")
        if (amount := known.of(model.counts, given)) is None:
            raise Problem(f"{name} of {model.slug} is never reached", "ask for it alone, not in a formula")
        return amount
    if name in PUBLISHED:
        return model.stored
    if name in BESIDE:
        return getattr(model, name)
    sizes = model.counts.values()
    if name in sizes:
        return int(sizes[name])
    if name == "n_kv_heads" and "n_heads" in sizes and "kv_lora_rank" not in sizes:
        return int(sizes["n_heads"])  # each head has keys and values of its own
    if any(p.name == name for p in model.counts.parts) or tensors(model, name):
        return count(model, name)
    raise unknown(f"{model.slug} has no {name!r}", name, [*sizes, *ALIASES, *FIGURES, *PUBLISHED, *BESIDE, *ABOUT])


def depends_on_context(name: str) -> bool:
    """Whether a figure depends on the context."""
    known = figure(name)
    return known is not None and "context" in known.needs


_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: lambda a, b: Fraction(a) / b,
    ast.Mod: operator.mod,
}


def evaluate(model: Model, source: str, context: int | None = None) -> int | Fraction:
    """A name, or a formula of names such as `12 * n_layers * d_model ** 2`. Raises `Problem`."""
    if source.isidentifier():
        return number(model, source, context)
    return compute(source, lambda owner, name: number(model, name, context) if owner is None else None)


def compute(source: str, lookup: Callable[[str | None, str], int | Fraction | None]) -> int | Fraction:
    """A formula's value; `lookup(owner, name)` gives that of a name, where `big.d_model` is ("big", "d_model"). Raises
    `Problem`."""

    def of(node):
        match node:
            case ast.Expression(body):
                return of(body)
            case ast.Constant(int(n)) if not isinstance(n, bool):
                return n
            case ast.Name(name) if (figure := lookup(None, name)) is not None:
                return figure
            case ast.Attribute(ast.Name(owner), name) if (figure := lookup(owner, name)) is not None:
                return figure
            case ast.UnaryOp(ast.USub(), inner):
                return -of(inner)
            case ast.BinOp(base, ast.Pow(), ast.Constant(int(power))) if 0 <= power <= 24:
                return of(base) ** power
            case ast.BinOp(base, ast.Pow(), ast.Constant(0.5)) if (x := of(base)) >= 0:
                return _root(Fraction(x))
            case ast.BinOp(left, sign, right) if type(sign) in _OPERATORS:
                return _OPERATORS[type(sign)](of(left), of(right))
        raise ValueError

    try:
        return of(_parsed(source))
    except (SyntaxError, ValueError, RecursionError):
        how = "use names, whole numbers, + - * / // % ** and parentheses"
        raise Problem(f"{source!r} is not a formula", how) from None
    except ZeroDivisionError:
        raise Problem(f"{source!r} divides by zero", "correct the formula") from None


@lru_cache(maxsize=256)
def _parsed(source: str) -> ast.Expression:
    """A formula's syntax tree, shared by many models. Raises like `ast.parse`."""
    return ast.parse(source.replace("·", "*").replace("×", "*").strip(), mode="eval")


def _root(x: Fraction) -> Fraction:
    """The square root of a non-negative number, to twelve places, and exact if it is a whole number."""
    places = 10**12
    return Fraction(isqrt(x.numerator * places**2 // x.denominator), places)


def calc(
    expression: str, *, context: int | None = None, unit: str | None = None, digits: int | None = None, **models: str
) -> str:
    """A formula over one or several models, each under a name of your choice: `calc("big.d_model / small.d_model",
    big="…", small="…")`.

    The unit `%` gives a share, `+%` a difference with its sign; a part's or tensor's name means its parameters.
    """
    asked = {owner: known for owner, slug in models.items() if (known := disclosure.model(slug))}
    if len(asked) < len(models):
        return disclosure.UNDISCLOSED

    def lookup(owner: str | None, name: str) -> int | Fraction:
        if owner is None:
            raise Problem(
                f"{name!r} in {expression!r} names no model",
                f"write {next(iter(models), 'm')}.{name}, and the model as an argument",
            )
        if owner not in asked:
            raise Problem(
                f"{owner!r} in {expression!r} is not a model", nearest(owner, asked, f'add the argument {owner}="…"')
            )
        return number(asked[owner], name, context)

    result = compute(str(expression), lookup)
    if unit in ("%", "+%"):
        share, places = Fraction(result), 1 if digits is None else significant_digits(digits) - 1
        in_percent = rounding.signed_percent if unit == "+%" else rounding.percent
        return in_percent(share.numerator, share.denominator, places)
    return formatted(result, unit, digits)


def value(
    model: str, name: str, *, context: int | None = None, unit: str | None = None, digits: int | None = None
) -> str:
    """Any size, count or formula of them, with every digit; rounded only with `unit` or `digits`."""
    asked = disclosure.model(model)
    if not isinstance(name, str):
        raise Problem("expected a size or a count", 'write it in quotes, such as "d_model"').about("name", name)
    if name in ABOUT:
        about = getattr(presets.preset(model), name)
        return text(date(about) if name == "released" else "–" if about is None else about)
    if asked is None:
        return disclosure.UNDISCLOSED
    asked_for = name.strip()
    if unit != "B" and unit in rounding.BYTES and asked_for.isidentifier():
        known = figure(asked_for)
        if known is None or known.unit != BYTES:
            what = f"{asked_for} is a number of {known.unit if known else 'elements'}, and takes no bytes by itself"
            raise Problem(what, f'write its bytes, as in "2 * {asked_for}", or leave the unit out').about("unit", unit)
    return formatted(evaluate(asked, asked_for, context), unit, digits)


def formatted(value: int | Fraction, unit: str | None = None, digits: int | None = None) -> str:
    """A figure in the given form: exact and grouped, in a unit, or to this many significant digits."""
    digits = None if digits is None else significant_digits(digits)
    if unit is not None:
        return rounding.in_unit(value, str(unit), digits or rounding.DIGITS)
    if Fraction(value).denominator != 1:
        rounded = rounding.significant(value, digits or rounding.DIGITS)
        is_exact = digits is None and Fraction(rounded.replace(",", "").replace("−", "-")) == value
        return rounded.rstrip("0").rstrip(".") if is_exact else rounded
    return rounding.grouped(int(value)) if digits is None else rounding.significant(value, digits)


def params(model: str, what: str = "total", rounded: bool | int = False) -> str:
    """A number of parameters, with every digit or `rounded`; `what` is a count, a part or a tensor's name."""
    asked = disclosure.model(model)
    if asked is None:
        return disclosure.UNDISCLOSED
    n = count(asked, what)
    if rounded is False:
        return rounding.grouped(n)
    return rounding.short(n, rounding.DIGITS if rounded is True else significant_digits(rounded))


COUNTABLE = (*ALIASES, *(f.name for f in FIGURES.values() if f.unit in (PARAMETERS, NUMBERS)), *PUBLISHED, *BESIDE)


def count(model: Model, what: str) -> int:
    """Parameters: of the whole model by one of the counts, of a part (`attention`), or of the tensors whose name ends
    this way (`q_proj`)."""
    if what in COUNTABLE:
        return int(number(model, what))
    parts = [p for p in model.counts.parts if p.name == what]
    if parts:
        return sum(p.count for p in parts)
    named = tensors(model, what)
    if named:
        return sum(int(w.count) for w in named)
    names = [
        *COUNTABLE,
        *dict.fromkeys(p.name for p in model.counts.parts),
        *dict.fromkeys(short_name(w.name) for w in model.counts.weights),
    ]
    raise unknown(f"{model.slug} has no part or tensor {what!r}", what, names)


def tensors(model: Model, tail: str) -> list[Weight]:
    """The tensors whose name ends with these parts, with or without `.weight`."""
    return [w for w in model.counts.weights + model.counts.buffers if is_named(w.name, tail)]


def is_named(name: str, tail: str) -> bool:
    """Whether a tensor's name ends with these parts, with or without `.weight`."""
    return f".{name}".endswith((f".{tail}", f".{tail}.weight"))


@lru_cache(maxsize=4096)
def short_name(name: str) -> str:
    """The last distinctive part of a tensor's name: `q_proj`."""
    return name.removesuffix(".weight").removesuffix(".{i}").rpartition(".")[2]


def column_title(name: str) -> str:
    """The title of a table's column."""
    if known := figure(name):
        return known.title
    return {**PUBLISHED, **BESIDE}.get(name, name.replace("_", " ") if name in ABOUT else name)


def in_order(released: object) -> str:
    """A sort key for dates: a year or a month sorts after the dates within it."""
    return str(released).ljust(10, "~")


@lru_cache(maxsize=2048)
def date(released: object, is_short: bool = False) -> str:
    """A date as 18 April 2024, or in short form 18 Apr 2024; `2024-04` as April 2024."""
    month_and_year = "%b %Y" if is_short else "%B %Y"
    if isinstance(released, datetime.date):
        return f"{released.day} {released:{month_and_year}}"
    year, _, month = str(released).partition("-")
    return f"{datetime.date(int(year), int(month), 1):{month_and_year}}" if month else year
