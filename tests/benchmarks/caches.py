"""What each cache saves in a build: `python -m tests.benchmarks.caches` builds the site once, without results on disk.

For each place in the code: calls, misses, the mean time of a miss, and the time that the hits save: their number times
that mean. A place below a few milliseconds is not worth a cache.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

lru_cache, cached_property = functools.lru_cache, functools.cached_property
measured: dict[str, list[float]] = {}  # calls, misses, seconds of the misses


def entry(function: Callable[..., Any], kind: str) -> list[float] | None:
    """The figures of a place in this package; None for any other."""
    if not function.__module__.startswith(("macros", "every_parameter")):
        return None
    return measured.setdefault(f"{function.__module__}:{function.__qualname__} @{kind}", [0, 0, 0.0])


def timed(found: list[float], function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    began = time.perf_counter()
    try:
        return function(*args, **kwargs)
    finally:
        found[1] += 1
        found[2] += time.perf_counter() - began


def counted(make: Callable[..., Any], kind: str) -> Callable[..., Any]:
    """A decorator that caches like `make`, and measures."""

    def decorator(function: Callable[..., Any]) -> Any:
        if not hasattr(function, "__module__") or (found := entry(function, kind)) is None:
            return make(function)
        cached = make(functools.wraps(function)(functools.partial(timed, found, function)))

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            found[0] += 1
            return cached(*args, **kwargs)

        called.cache_clear = cached.cache_clear
        return called

    return decorator


class Property(cached_property):
    """A cached property that sees its hits."""

    def __init__(self, function: Callable[[Any], Any]):
        super().__init__(function)
        self.found = entry(function, "cached_property")

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None or self.found is None:
            return super().__get__(owner, kind)
        self.found[0] += 1
        held = vars(owner)
        return held[self.attrname] if self.attrname in held else timed(self.found, super().__get__, owner, kind)

    def __set__(self, owner: Any, value: Any) -> None:
        vars(owner)[self.attrname] = value


def bounded(maxsize: Any = 128, typed: bool = False) -> Any:
    if callable(maxsize):
        return counted(lru_cache, "lru_cache")(maxsize)
    return counted(lru_cache(maxsize, typed), "lru_cache")


def main() -> None:
    functools.cache, functools.lru_cache = counted(lru_cache(None), "cache"), bounded
    functools.cached_property = Property
    from macros.cache import memory

    memory.memoized = counted(memory.memoized, "memoized")
    os.environ |= {"KEPT": "no", "PROCESSES": "1"}
    from mkdocs.__main__ import cli

    with tempfile.TemporaryDirectory() as folder:
        cli(["build", "--quiet", "--site-dir", folder], standalone_mode=False)
    rows = [
        ((calls - misses) * spent / max(misses, 1), calls, misses, spent, place)
        for place, (calls, misses, spent) in measured.items()
    ]
    print("saved, s     calls    misses  a miss, ms")
    for saved, calls, misses, spent, place in sorted(rows, reverse=True):
        print(f"{saved:8.3f} {calls:9.0f} {misses:9.0f} {1000 * spent / max(misses, 1):11.3f}  {place}")


if __name__ == "__main__":
    sys.exit(main())
