"""Caches the results of a method on its object."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class _Cached(cached_property[Any]):
    pass


def cached_method(method: Callable[Concatenate[Any, P], R]) -> cached_property[Callable[P, R]]:
    """A method whose results depend only on its arguments, which are hashable.

    Each object has its own cache. A lookup costs as much as one in `functools.cache`.
    """
    return _Cached(lambda self: cache(partial(method, self)))


def clear(*owners: object) -> None:
    """Drop the results of the cached methods of these objects.

    A cache refers to its object, so without this only the garbage collector frees the two.
    """
    for owner in owners:
        for name, attribute in vars(type(owner)).items():
            if isinstance(attribute, _Cached):
                vars(owner).pop(name, None)
