"""One set of modules under two names: `macros` in the repository, `every_parameter` once it is installed.

The package takes the name under which it is imported first. The other name, if it leads to the same folder, yields the
same module objects: one cache, one error class. An unrelated folder called `macros` is left alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, cast

NAMES = "macros", "every_parameter"


class SameModule:  # not a subclass of importlib.abc.Loader, which takes a fifth of the start-up time
    """Returns the existing module under its other name."""

    def __init__(self, name: str):
        self.name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import system has just overwritten it


class OtherName:
    """Finds the package and its modules under the name that was not imported first."""

    def __init__(self, first: str):
        self.first = first
        [self.other] = {*NAMES} - {first}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, dot, below = fullname.partition(".")
        if top != self.other or self.first not in sys.modules:
            return None
        is_ours = sys.modules.get(top) is sys.modules[self.first] if dot else self.leads_here()
        known = find_spec(f"{self.first}{dot}{below}") if is_ours else None
        return ModuleSpec(fullname, cast(Any, SameModule(known.name)), origin=known.origin) if known else None

    def leads_here(self) -> bool:
        """Whether all other finders also resolve the other name to this folder."""
        others = (finder.find_spec(self.other, None) for finder in sys.meta_path if finder is not self)
        there = next(filter(None, others), None)
        here = sys.modules[self.first].__file__
        if there is None or there.origin is None or here is None:
            return False
        return os.path.realpath(there.origin) == os.path.realpath(here)


def share(name: str) -> None:
    """Make the package, imported under this name, available under both."""
    if name in NAMES and not any(getattr(finder, "first", None) == name for finder in sys.meta_path):
        sys.meta_path.insert(0, OtherName(name))


def loaded() -> dict[str, list[str]]:
    """The package's imported modules, each as `macros.…` with its names in `sys.modules`."""
    package = sys.modules[__name__.partition(".")[0]]
    named: dict[str, list[str]] = {}
    for name in list(sys.modules):
        top, dot, below = name.partition(".")
        if top in NAMES and sys.modules.get(top) is package:
            named.setdefault(f"{NAMES[0]}{dot}{below}", []).append(name)
    return named
