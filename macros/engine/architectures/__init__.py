"""The registry: which forward pass a `model_type` has. Every module beside this one registers itself when imported."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from ..errors import Problem, shorten
from ..interface import Array, KVCache, Weights
from .config import Config


class Forward(Protocol):
    """A forward pass, by its architecture's config: scores for the next token, [T] -> [T V], or [1 V] with `last`."""

    def __call__(self, w: Weights, ids: Array, c: Any, cache: KVCache, last: bool = True) -> Array: ...


ForwardT = TypeVar("ForwardT", bound=Forward)


@dataclass(frozen=True)
class Architecture:
    """One forward pass, with the config it reads and the published model types that have it.

    `fused` says how transformers 5 names and packs what the published files hold: each of its tensors, and the
    published ones that it is cut into, in order (`checkpoint.unfuse`).
    """

    name: str
    model_types: tuple[str, ...]
    config: type[Config]
    forward: Forward
    doc: str
    stored_prefixes: tuple[str, ...] = ()
    fused: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], compare=False)
    spellings: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    pieces: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]], compare=False)


_registered: dict[str, Architecture] = {}


def architecture(
    *model_types: str,
    config: type[Config],
    optional_prefix: str = "",
    fused: Mapping[str, tuple[str, ...]] | None = None,
    spellings: Mapping[str, str] | None = None,
    pieces: Mapping[str, tuple[str, ...]] | None = None,
) -> Callable[[ForwardT], ForwardT]:
    """Register the decorated forward pass for these model types.

    `optional_prefix` starts every tensor name here and is left out by some published files (`transformer.`). `fused`:
    the ends of transformers 5's names and of the published ones, `{e}` for an expert's number. `spellings`: parts of
    names that some published files spell in another way. `pieces`: ends of stacks here, and of the tensors of one
    expert that some files have instead.
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
            spellings or {},
            pieces or {},
        )
        _registered.update(dict.fromkeys(model_types, this))
        return forward

    return register


@lru_cache(maxsize=1)
def architectures() -> dict[str, Architecture]:
    """Every known architecture, by model type."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(_registered.items()))


def find(model_type: object) -> Architecture:
    """The architecture of a model type, a multimodal model's being that of its text. Raises `Problem` that names near
    ones, at most five.
    """
    known = architectures()
    if isinstance(model_type, str) and model_type not in known and f"{model_type}_text" in known:
        return known[f"{model_type}_text"]
    if not isinstance(model_type, str) or model_type not in known:
        near = [f'"{name}"' for name in difflib.get_close_matches(str(model_type), known, n=5)]
        perhaps = (
            f"did you mean {' or '.join([', '.join(near[:-1]), near[-1]] if near[1:] else near)}? " if near else ""
        )
        raise Problem(
            f"model_type = {shorten(model_type)} is not known",
            f"{perhaps}every-parameter describe --types prints the known ones",
        )
    return known[model_type]
