"""The registry: the forward pass of each `model_type`. Every module in this folder registers itself when imported."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..errors import Problem, shorten
from ..interface import Array, KVCache, Weights
from ..mistakes import WRONG_MODULES, wrong_name
from .config import Config


class Forward(Protocol):
    """A forward pass, by its architecture's config: scores for the next token, [T] -> [T V], or [1 V] with `last`."""

    def __call__(self, w: Weights, ids: Array, c: Any, cache: KVCache, last: bool = True) -> Array: ...


ForwardT = TypeVar("ForwardT", bound=Forward)


@dataclass(frozen=True)
class Architecture:
    """One forward pass, with the config that it reads and the published model types that have it.

    `fused` says how transformers 5 names and packs the contents of the published files: each of its tensors, and the
    published ones that it is cut into, in order (`checkpoint.published_parts`). `layouts` reads this and the four
    tables after it. `kept`: ends of the names of tensors that have another format than the rest in the maker's
    quantized files, and that format.
    """

    name: str
    model_types: tuple[str, ...]
    config: type[Config]
    forward: Forward
    doc: str
    stored_prefixes: tuple[str, ...] = ()
    fused: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], compare=False)
    in_turn: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], compare=False)
    in_pairs: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    spellings: tuple[tuple[str, str], ...] = ()
    pieces: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], compare=False)
    kept: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)


_registered: dict[str, Architecture] = {}


def architecture(
    *model_types: str,
    config: type[Config],
    optional_prefix: str = "",
    fused: Mapping[str, tuple[str, ...]] | None = None,
    in_turn: Mapping[str, tuple[str, ...]] | None = None,
    in_pairs: Mapping[str, str] | None = None,
    spellings: tuple[tuple[str, str], ...] = (),
    pieces: Mapping[str, tuple[str, ...]] | None = None,
    kept: Mapping[str, str] | None = None,
) -> Callable[[ForwardT], ForwardT]:
    """Register the decorated forward pass for these model types.

    `optional_prefix` starts every tensor name here and is missing in some published files (`transformer.`).

    `fused`: the ends of transformers 5's names and of the published ones, `{e}` for an expert's number. `in_turn`: the
    same if the rows of the packed tensors are interleaved. `in_pairs`: ends of names here, and in some files: there, in
    each head, the rows that rotate together are neighbors, not half a head apart.

    `spellings`: parts of names as some files spell them, and as here, replaced in this order; `^` anchors the beginning
    of a name, `$` its end, `{0}` is the first number in it, `{0+1}` the next one. `pieces`: ends of names here, and in
    some files: the tensors of one expert, `{e}`, of a stack; parts one below the other, `{n}` for their numbers.
    `kept`: ends of the names of tensors that have another format than the rest in the maker's quantized files, and that
    format.
    """

    def register(forward: ForwardT) -> ForwardT:
        name = forward.__module__.rpartition(".")[2]
        this = Architecture(
            name,
            model_types,
            config,
            forward,
            (forward.__doc__ or "").strip(),
            (optional_prefix,) if optional_prefix else (),
            fused or {},
            in_turn or {},
            in_pairs or {},
            spellings,
            pieces or {},
            kept or {},
        )
        _registered.update(dict.fromkeys(model_types, this))
        return forward

    return register


@cache
def architectures() -> dict[str, Architecture]:
    """Every known architecture, by model type."""
    for module in pkgutil.iter_modules(__path__):
        _import(module.name)
    return dict(sorted(_registered.items()))


def _import(module: str) -> None:
    """Import a module of this folder. Raises `Problem` with the line of it that is wrong."""
    try:
        importlib.import_module(f"{__name__}.{module}")
    except WRONG_MODULES as error:
        raise wrong_name(error) from error


# The model types at the beginning of a call that registers a forward pass.
_TYPES = re.compile(r'^@?architecture\(\s*((?:"[^"]+",\s*)+)', re.M)


@cache
def modules_by_type() -> dict[str, str]:
    """The module of each model type, read from the sources: nothing is imported."""
    return {
        name: module.name
        for module in pkgutil.iter_modules(__path__)
        for types in _TYPES.findall(Path(__path__[0], f"{module.name}.py").read_text("utf-8"))
        for name in re.findall(r'"([^"]+)"', types)
    }


def is_known(model_type: str) -> bool:
    """Whether a model type is covered, as it is or as a multimodal model's whose text model is; nothing is imported."""
    known = modules_by_type()
    return model_type in known or f"{model_type}_text" in known


def unregistered(model_type: object) -> Problem | None:
    """The message about a type whose module is there, with a forward pass, and registers nothing."""
    module = next((path for path in Path(__path__[0]).glob("*.py") if path.stem == model_type), None)
    if module is None or model_type in modules_by_type().values():
        return None
    if "\ndef forward(" not in module.read_text("utf-8"):
        return None
    mend = f'add @architecture("{model_type}", config=…) above its forward pass'
    return Problem(f"{module.name} registers nothing", mend)


def find(model_type: object) -> Architecture:
    """The architecture of a model type, for a multimodal model that of its text; only its module is imported. Raises
    `Problem` for others."""
    for name in (model_type, f"{model_type}_text") if isinstance(model_type, str) else ():
        if name not in _registered and (module := modules_by_type().get(name)):
            _import(module)
        if name in _registered:
            return _registered[name]
    raise Problem(
        f"model_type = {shorten(model_type)} is not known", "every-parameter describe --types prints the known ones"
    )
