"""Results that are kept, each with what it was computed from: when a preset changes, only what used it is computed again.

What was used is recorded while a result is computed, never guessed: `presets.preset("llama3-8b")` says `use("preset", "llama3-8b")`,
and each computation under way notes it. A kept result that is asked for again passes on what it was once computed from.
So a page knows every preset behind it, however deep and however often remembered.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps

Used = tuple[str, str | None]  # a kind of thing and its name: ("preset", "gpt2"), ("presets", None)

_under_way: ContextVar[set[Used] | None] = ContextVar("under way", default=None)


class CacheEntry(dict):
    """The results of one function by its arguments: (value, what it was computed from)."""

    __slots__ = ("__weakref__",)


# Weak, so that the results of a module that was imported anew go with it.
_kept: weakref.WeakSet = weakref.WeakSet()
CacheEntry.__hash__ = object.__hash__


def use(kind: str, name: str | None = None) -> None:
    """Note that what is being computed depends on this."""
    found = _under_way.get()
    if found is not None:
        found.add((kind, name))


@contextmanager
def recording() -> Iterator[set[Used]]:
    """Everything used inside the block; what surrounds the block used it too."""
    found: set[Used] = set()
    token = _under_way.set(found)
    try:
        yield found
    finally:
        _under_way.reset(token)
        outer = _under_way.get()
        if outer is not None:
            outer |= found


def start(found: set[Used]):
    """Recording into a set, where it does not end in the function that it begins in; gives what `stop` takes."""
    return _under_way.set(found)


def stop(token) -> None:
    _under_way.reset(token)


@contextmanager
def apart() -> Iterator[None]:
    """What is used inside does not count: the caller says more exactly what it depends on."""
    token = _under_way.set(None)
    try:
        yield
    finally:
        _under_way.reset(token)


def remembered(function: Callable) -> Callable:
    """A function whose results are kept until something that they were computed from changes. Errors are not kept."""
    kept = CacheEntry()
    _kept.add(kept)

    @wraps(function)
    def wrapper(*args, **kwargs):
        key = (args, tuple(sorted(kwargs.items()))) if kwargs else args
        found = kept.get(key)
        if found is None:
            with recording() as used:
                for a in args:
                    if model := getattr(a, "depends_on", None):  # a model: its preset
                        used.add(model)
                value = function(*args, **kwargs)
            kept[key] = value, frozenset(used)
            return value
        value, used = found
        outer = _under_way.get()
        if outer is not None:
            outer |= used
        return value

    wrapper.cache_clear = kept.clear
    return wrapper


def forget(changed: set[Used]) -> None:
    """Drop every kept result that used something of these."""
    for kept in list(_kept):
        for key in [key for key, (_, used) in kept.items() if not changed.isdisjoint(used)]:
            del kept[key]
