"""Compares a preset with the published figures and with its reference tensor list, in both directions."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from ..counting.parameters import Counts
from ..engine.errors import Problem, nearest, shorten
from ..engine.tensors import Weight
from . import headlines
from .families import verify_about, verify_family
from .models import Model
from .presets import NAMES, model, preset, read_also, with_file

REFERENCES = Path(__file__).parent / "references"

# A published figure that is rounded ("2.7B") may differ by this much.
ROUNDING = 0.05

MANY = 50  # number of presets from which a second process pays off

Row = tuple[str, tuple, tuple[int, ...]]


class Result(Struct, frozen=True):
    """The result of a check: `ok`, `off`, `counted` without a published total, `undisclosed` if there is nothing to
    count; and the rest of its line."""

    state: Literal["ok", "off", "counted", "undisclosed"]
    text: str


def check(slug: str) -> Result:
    """Compare one preset with its published figures and, if there is one, its reference list."""
    try:
        verify_family(slug)
        verify_about(slug)
        verify_names(slug)
        if preset(slug).config is None:
            return Result("undisclosed", "undisclosed, nothing to count")
        counted = model(slug)
        said = [f"{counted.counts.total:,}", published(counted)]
        listed = reference(slug)
        if listed is not None:
            said.append(compare(counted.counts, listed))
        return Result("ok" if counted.published else "counted", "; ".join(said))
    except Problem as problem:
        return Result("off", str(with_file(problem, slug)))


def verify_names(slug: str) -> None:
    """Raise `Problem` if the tensor names are neither the published file's nor those of its program."""
    if (names := preset(slug).sources.names) not in NAMES:
        raise Problem(
            f"sources.names = {shorten(names)}",
            nearest(names, NAMES, 'write "published", "transformers" or "own"'),
        )


def check_file(path: Path) -> Result:
    """Compare the preset in a file that is not ours with its published figures, with our presets loaded too."""
    read_also(path)
    try:
        return check(path.stem)
    except Problem as problem:  # not a valid slug
        return Result("off", str(problem))
    finally:
        read_also(None)


def results(slugs: list[str]) -> Generator[Result, None, None]:
    """`check` of each preset, in order; if there are many, a second process checks some of them, unless a build has
    one."""
    from ..cache import second_process  # imported here, since most commands check nothing

    is_shared = len(slugs) > MANY and not second_process.is_under_way()
    try:
        if is_shared:
            second_process.start({slug: partial(check, slug) for slug in reversed(slugs)})
        for slug in slugs:
            yield second_process.computed(slug, partial(check, slug))
    finally:
        if is_shared:
            second_process.end()


def published(counted: Model) -> str:
    """How the published figure agrees. Raises `Problem` if it does not."""
    headlines.verify(counted)
    figure = counted.published
    if figure is None:
        return "no total published"
    if figure.exact:
        more = figure.parameters - counted.counts.total
        return (
            f"exact, {abs(more):,} {'more' if more > 0 else 'fewer'} than the parameters by name" if more else "exact"
        )
    share = counted.counts.total / figure.parameters - 1
    if abs(share) > ROUNDING:
        raise Problem(
            f"published.parameters = {figure.parameters:,}, and the forward pass gives {counted.counts.total:,} "
            f"({share:+.1%})",
            "correct [config] or the figure",
        )
    return f"{share:+.2%} of the rounded {figure.parameters:,}"


def reference(slug: str) -> dict | None:
    """The reference list of a slug, or None."""
    path = REFERENCES / f"{slug}.json"
    return msgspec.json.decode(path.read_bytes()) if path.exists() else None


def compare(counts: Counts, listed: dict) -> str:
    """Compare names and shapes, in both directions, and the other figures of a reference list.

    Raises `Problem` at the first difference.
    """
    ours, theirs = rows_of(counts.weights), rows(listed["tensors"])
    if ours != theirs:
        here, there = dict(counts.tensors()), dict(expand(listed["tensors"]))
        _both_ways(here, there)
    if rows_of(counts.buffers) != rows(listed["buffers"]):
        _both_ways(dict(counts.tensors(counts.buffers)), dict(expand(listed["buffers"])))
    for name, value in (
        ("total", counts.total),
        ("active", counts.active),
        ("active_excluding_input_embedding", counts.active_excluding_input_embedding),
        ("kv_cache_bytes_per_token", counts.cache_bytes_per_token_uncapped()),
    ):
        if listed[name] is not None and listed[name] != value:
            raise Problem(
                f"{name}: {listed[name]:,} in the reference list, {value:,} by the forward pass",
                "find out which is right",
            )
    tensors = sum(int(w.copies) for w in counts.weights)
    return f"{tensors:,} tensors as in the reference list"


def rows_of(weights: Iterable[Weight]) -> set[Row]:
    """Collapsed weights in one canonical form; kinds of layers with the same tensor are merged."""
    layers: dict[tuple, set] = {}
    for w in weights:
        key = w.name, int(w.members) if w.members is not None else None, tuple(map(int, w.shape))
        layers.setdefault(key, set()).update(w.numbered or ())
    return {(name, (tuple(sorted(which)), members), shape) for (name, members, shape), which in layers.items()}


def rows(listed: Iterable[Sequence]) -> set[Row]:
    """Like `rows_of`, for a list's rows [pattern, ranges, shape]."""
    return {
        (
            name,
            (
                tuple(_numbers(ranges["i"])) if ranges else (),
                ranges["e"][-1][1] + 1 if ranges and "e" in ranges else None,
            ),
            tuple(shape),
        )
        for name, ranges, shape in listed
    }


def _numbers(ranges: Iterable[Sequence[int]]) -> list[int]:
    return [n for first, last, step in ranges for n in range(first, last + 1, step)]


def expand(listed: Iterable[Sequence]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every name of collapsed rows [pattern, ranges, shape], with its shape."""
    for name, ranges, shape in listed:
        for i in _numbers(ranges["i"]) if ranges else [0]:
            for e in _numbers(ranges["e"]) if ranges and "e" in ranges else [0]:
                yield name.replace("{i}", str(i)).replace("{e}", str(e)), tuple(shape)


def _both_ways(here: dict, there: dict) -> None:
    for name, shape in there.items():
        if name not in here:
            raise Problem(
                f"the reference list has {name} {list(shape)}, and the forward pass does not ask for it",
                "correct one of the two",
            )
        if here[name] != shape:
            raise Problem(
                f"{name} is {list(shape)} in the reference list and {list(here[name])} by the forward pass",
                "correct one of the two",
            )
    for name in here:
        if name not in there:
            raise Problem(
                f"the forward pass asks for {name} {list(here[name])}, and the reference list does not have it",
                "correct one of the two",
            )
