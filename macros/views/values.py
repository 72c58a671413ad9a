"""Single figures, as they stand in a sentence."""

from __future__ import annotations

import ast
import datetime
import operator
from collections.abc import Callable
from fractions import Fraction
from math import isqrt

from ..catalogue import presets
from ..catalogue.presets import Model
from ..dependencies import remembered
from ..engine.errors import Problem, nearest
from . import rounding
from .arguments import significant_digits
from .html import text

UNDISCLOSED = "undisclosed"

# Figures that need no argument: (what a table's heading calls it, how to get it).
COUNTS = {
    "total": ("parameters", lambda m: m.counts.total),
    "parameters": ("parameters", lambda m: m.counts.total),
    "active": ("active parameters", lambda m: m.counts.active),
    "active_excluding_input_embedding": (
        "active without the input table",
        lambda m: m.counts.active_excluding_input_embedding,
    ),
    "embedding": ("embedding parameters", lambda m: m.counts.embedding),
    "non_embedding": ("non-embedding parameters", lambda m: m.counts.non_embedding),
    "in_layers": (
        "parameters in the layers",
        lambda m: sum(int(w.count) for w in m.counts.weights if w.layers is not None),
    ),
    "buffers": ("buffer elements", lambda m: m.counts.buffer_elements),
    "index_bytes_per_token": ("bytes of an indexer's keys per token", lambda m: m.counts.index_bytes_per_token()),
    "tensors": ("tensors", lambda m: sum(int(w.copies) for w in m.counts.weights + m.counts.buffers)),
    "cache_bytes_per_token": ("KV cache bytes per token", lambda m: m.counts.cache_bytes_per_token()),
    "cache_bytes_per_token_uncapped": (
        "KV cache bytes per token, windows ignored",
        lambda m: m.counts.cache_bytes_per_token_uncapped(),
    ),
    "weight_bytes": ("bytes of the weights at 2 bytes each", lambda m: 2 * m.counts.total),
}

# Figures at a context length.
AT_CONTEXT = {
    "cache_bytes": ("KV cache bytes", lambda m, context: m.counts.cache_bytes(context)),
    "decode_flops": ("FLOPs of one new token", lambda m, context: m.counts.decode_flops(context)),
    "prefill_flops": ("FLOPs of reading the whole text", lambda m, context: m.counts.prefill_flops(context)),
}

# What was published of some models only: None where it was not.
PUBLISHED = {"stored": ("numbers in the file", lambda m: in_file(m))}

# What the preset says in words.
ABOUT = ("name", "family", "organization", "released", "hub", "headline")


@remembered
def disclosed(slug: str) -> Model | None:
    """The model, or None for one whose maker disclosed nothing. Raises `Problem` for an unknown slug."""
    if not isinstance(slug, str):
        raise Problem(f"model = {slug!r}: expected a preset's slug", 'write it in quotes, such as "llama3-8b"')
    return presets.model(slug) if presets.preset(slug).config is not None else None


def in_file(model: Model) -> int | None:
    """Numbers in the model's own file, or in that of a release with the same shapes: the hub's total; None where none was found.

    The largest of several: some are published with the scales of packed weights and without.
    """
    published = model.preset.published if model.preset else None
    exact = [f for f in (published, *published.other) if f.exact] if published else []
    for repository in filter(None, (model.preset.hub, *model.preset.aliases)) if exact else ():
        if found := [f.parameters for f in exact if f.source.startswith(f"{repository} on the Hugging Face Hub")]:
            return max(found)
    return None


def number(model: Model, name: str, context: int | None = None) -> int:
    """A symbol's or count's value. Raises `Problem` with the nearest known name."""
    if name in AT_CONTEXT:
        if isinstance(context, bool) or not isinstance(context, int) or not 0 < context <= 10**9:
            raise Problem(f"{name} at context = {context!r}", "give a whole number of tokens, such as context=4096")
        return AT_CONTEXT[name][1](model, context)
    if name in COUNTS:
        return COUNTS[name][1](model)
    if name in PUBLISHED:
        if (found := PUBLISHED[name][1](model)) is None:
            raise Problem(f"{model.slug} has no {name!r}: no total of its file was published", 'write "total"')
        return found
    values = model.counts.values()
    if name in values:
        return int(values[name])
    if name == "n_kv_heads" and "n_heads" in values and "kv_lora_rank" not in values:
        return int(values["n_heads"])  # each head has keys and values of its own
    if any(p.name == name for p in model.counts.parts) or tensors(model, name):
        return count(model, name)
    known = [*values, *COUNTS, *PUBLISHED, *AT_CONTEXT, *ABOUT]
    raise Problem(f"{model.slug} has no {name!r}", nearest(name, known, f"known ones: {', '.join(known)}"))


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
    """A formula's value; `lookup(owner, name)` gives a name's, `big.d_model` being ("big", "d_model"). Raises `Problem`."""
    wrong = Problem(f"{source!r} is not a formula", "use names, whole numbers, + - * / // % ** and parentheses")

    def of(node):
        match node:
            case ast.Expression(body):
                return of(body)
            case ast.Constant(int(n)) if not isinstance(n, bool):
                return n
            case ast.Name(name) if (found := lookup(None, name)) is not None:
                return found
            case ast.Attribute(ast.Name(owner), name) if (found := lookup(owner, name)) is not None:
                return found
            case ast.UnaryOp(ast.USub(), inner):
                return -of(inner)
            case ast.BinOp(base, ast.Pow(), ast.Constant(int(power))) if 0 <= power <= 24:
                return of(base) ** power
            case ast.BinOp(base, ast.Pow(), ast.Constant(0.5)) if (x := of(base)) >= 0:
                return _root(Fraction(x))
            case ast.BinOp(left, sign, right) if type(sign) in _OPERATORS:
                return _OPERATORS[type(sign)](of(left), of(right))
        raise wrong

    try:
        return of(ast.parse(source.replace("·", "*").replace("×", "*").strip(), mode="eval"))
    except (SyntaxError, ValueError, RecursionError):
        raise wrong from None
    except ZeroDivisionError:
        raise Problem(f"{source!r} divides by zero", "correct the formula") from None


def _root(x: Fraction) -> Fraction:
    """The square root of a number that is not negative, to twelve places and exact where it is a whole one."""
    places = 10**12
    return Fraction(isqrt(x.numerator * places**2 // x.denominator), places)


def calc(
    expression: str, *, context: int | None = None, unit: str | None = None, digits: int | None = None, **models: str
) -> str:
    """A formula over one or several models, each by a name of its own: `calc("big.d_model / small.d_model", big="…", small="…")`.

    The unit `%` gives a share, `+%` a difference with its sign; a part's or tensor's name stands for its parameters.
    """
    found = {owner: disclosed(slug) for owner, slug in models.items()}
    if None in found.values():
        return UNDISCLOSED

    def lookup(owner, name):
        if owner is None:
            raise Problem(
                f"{name!r} in {expression!r} names no model",
                f"write {next(iter(models), 'm')}.{name}, and the model as an argument",
            )
        if owner not in found:
            raise Problem(
                f"{owner!r} in {expression!r} is no model", nearest(owner, found, f'add the argument {owner}="…"')
            )
        return number(found[owner], name, context)

    x = compute(str(expression), lookup)
    if unit in ("%", "+%"):
        x = Fraction(x)
        return (rounding.signed_percent if unit == "+%" else rounding.percent)(
            x.numerator, x.denominator, 1 if digits is None else significant_digits(digits) - 1
        )
    return shown(x, unit, digits)


def value(
    model: str, name: str, *, context: int | None = None, unit: str | None = None, digits: int | None = None
) -> str:
    """Any size, count or formula of them, every digit; rounded only with `unit` or `digits`."""
    found = disclosed(model)
    if not isinstance(name, str):
        raise Problem(f"name = {name!r}: expected a size or a count", 'write it in quotes, such as "d_model"')
    if name in ABOUT:
        about = getattr(presets.preset(model), name)
        return text(date(about) if name == "released" else "–" if about is None else about)
    if found is None:
        return UNDISCLOSED
    return shown(evaluate(found, name.strip(), context), unit, digits)


def shown(x: int | Fraction, unit: str | None = None, digits: int | None = None) -> str:
    """A figure in the form asked for: exact and grouped, in a unit, or to so many significant digits."""
    digits = significant_digits(digits)
    if unit is not None:
        return rounding.in_unit(x, str(unit), digits or rounding.DIGITS)
    if Fraction(x).denominator != 1:
        rounded = rounding.significant(x, digits or rounding.DIGITS)
        is_exact = digits is None and Fraction(rounded.replace(",", "").replace("−", "-")) == x
        return rounded.rstrip("0").rstrip(".") if is_exact else rounded
    return rounding.grouped(int(x)) if digits is None else rounding.significant(x, digits)


def params(model: str, what: str = "total", rounded: bool | int = False) -> str:
    """A number of parameters, every digit or `rounded`; `what` is a count, a part or a tensor's name."""
    found = disclosed(model)
    if found is None:
        return UNDISCLOSED
    n = count(found, what)
    if rounded is False:
        return rounding.grouped(n)
    return rounding.short(n, rounding.DIGITS if rounded is True else significant_digits(rounded))


COUNTABLE = (
    "total",
    "parameters",
    "active",
    "active_excluding_input_embedding",
    "embedding",
    "non_embedding",
    "in_layers",
    "stored",
    "buffers",
)


def count(model: Model, what: str) -> int:
    """Parameters: of the whole by one of the counts, of a part (`attention`), or of the tensors whose name ends so (`q_proj`)."""
    if what in COUNTABLE:
        return number(model, what)
    parts = [p for p in model.counts.parts if p.name == what]
    if parts:
        return sum(p.count for p in parts)
    found = tensors(model, what)
    if found:
        return sum(int(w.count) for w in found)
    known = [
        *COUNTABLE,
        *dict.fromkeys(p.name for p in model.counts.parts),
        *dict.fromkeys(short_name(w.name) for w in model.counts.weights),
    ]
    raise Problem(
        f"{model.slug} has no part or tensor {what!r}", nearest(str(what), known, f"known ones: {', '.join(known)}")
    )


def tensors(model: Model, tail: str) -> list:
    """The tensors whose name ends with these parts, with or without `.weight`."""
    ends = (f".{tail}", f".{tail}.weight")
    return [
        w
        for w in model.counts.weights + model.counts.buffers
        if w.name in (tail, f"{tail}.weight") or w.name.endswith(ends)
    ]


def short_name(name: str) -> str:
    """The last telling part of a tensor's name: `q_proj`."""
    return name.removesuffix(".weight").rpartition(".")[2]


def heading(name: str) -> str:
    """What a table's column is called."""
    return {**COUNTS, **PUBLISHED, **AT_CONTEXT}.get(name, (name.replace("_", " ") if name in ABOUT else name,))[0]


def date(released: object) -> str:
    """A date as 18 April 2024, `2024-04` as April 2024."""
    if isinstance(released, datetime.date):
        return f"{released.day} {released:%B %Y}"
    year, _, month = str(released).partition("-")
    return f"{datetime.date(int(year), int(month), 1):%B %Y}" if month else year
