"""Results that are kept, each with what it was computed from: of an edited preset, only what used it is computed again.

What was used is recorded while a result is computed, never guessed: `presets.preset("llama3-8b")` says
`use("preset", "llama3-8b")`, and each computation under way notes it. A kept result that is asked for again passes on
what it was once computed from. So a page knows every preset behind it, however deep and however often remembered.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)

Used = tuple[str, str | None]  # a kind of thing and its name: ("preset", "gpt2"), ("presets", None)

_under_way: ContextVar[set[Used] | None] = ContextVar("under way", default=None)


class Results:
    """The results of one function by its arguments: (value, what it was computed from)."""

    def __init__(self):
        self.by_arguments: dict[tuple, tuple[Any, frozenset[Used]]] = {}
        self.large: deque[tuple] = deque()  # the arguments of those that are, the oldest first

    def add(self, key: tuple, value: object, used: frozenset[Used]) -> None:
        self.by_arguments[key] = value, used
        if _most and (isinstance(value, str) and len(value) > LONG or getattr(value, "of_few_pages", False)):
            self.large.append(key)
            while len(self.large) > _most[-1]:
                self.by_arguments.pop(self.large.popleft(), None)


class Remembered(Protocol[P, T_co]):
    """A function whose results are kept."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co: ...

    def cache_clear(self) -> None:
        """Forget every result."""


LONG = 2000  # characters
_most: list[int] = []  # large results of each function, if not all are kept


def keep_few(most: int = 20) -> None:
    """From now on a long text, or a value that says `of_few_pages`, is kept for the pages next to its own: in a build
    each is asked for by few, in a row.
    """
    _most[:] = [most]


# Weak, so that the results of a module that was imported anew go with it.
_all_results: weakref.WeakSet[Results] = weakref.WeakSet()


# Called wherever a result is asked for: a computation that nobody waits for any more ends there, by what this raises.
before_each: list[Callable[[], None]] = []


def use(kind: str, name: str | None = None) -> None:
    """Note that what is being computed depends on this."""
    used = _under_way.get()
    if used is not None:
        used.add((kind, name))


@contextmanager
def recording() -> Iterator[set[Used]]:
    """Everything used inside the block; what surrounds the block used it too."""
    used: set[Used] = set()
    token = _under_way.set(used)
    try:
        yield used
    finally:
        _under_way.reset(token)
        outer = _under_way.get()
        if outer is not None:
            outer |= used


def start(used: set[Used]) -> Token[set[Used] | None]:
    """Recording into a set, where it does not end in the function that it begins in; gives what `stop` takes."""
    return _under_way.set(used)


def stop(token: Token[set[Used] | None]) -> None:
    """The end of what `start` began."""
    _under_way.reset(token)


@contextmanager
def apart() -> Iterator[None]:
    """What is used inside does not count: the caller says more exactly what it depends on."""
    token = _under_way.set(None)
    try:
        yield
    finally:
        _under_way.reset(token)


def remembered(function: Callable[P, T_co]) -> Remembered[P, T_co]:
    """A function whose results are kept until something that they were computed from changes. Errors are not kept."""
    results = Results()
    _all_results.add(results)

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T_co:
        for go_on in before_each:
            go_on()
        key = (args, tuple(sorted(kwargs.items()))) if kwargs else args
        kept = results.by_arguments.get(key)
        if kept is None:
            with recording() as used:
                for argument in args:
                    if model := getattr(argument, "depends_on", None):  # a model: its preset
                        used.add(model)
                value = function(*args, **kwargs)
            results.add(key, value, frozenset(used))
            return value
        value, used = kept
        outer = _under_way.get()
        if outer is not None:
            outer |= used
        return value

    remembering = cast(Any, wrapper)
    remembering.cache_clear = results.by_arguments.clear
    return remembering


def forget(changed: set[Used]) -> None:
    """Drop every kept result that used something of these."""
    for results in list(_all_results):
        kept = results.by_arguments
        for key in [key for key, (_, used) in kept.items() if not changed.isdisjoint(used)]:
            del kept[key]
