"""The model types that llama.cpp's converter turns into files of one architecture."""

from __future__ import annotations

from collections.abc import Iterator

from ..engine.architectures import architectures, find, is_known, modules_by_type
from ..engine.errors import Problem, nearest, shorten
from ..engine.facts import Gguf as Converted


def _of_architectures() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for model_type, one in architectures().items():
        if isinstance(one.gguf, Converted):
            for name in {one.gguf.name, *(other.name for _, other in one.gguf.becomes)}:
                found.setdefault(name, []).append(model_type)
    return found


def names() -> list[str]:
    """llama.cpp's names of all architectures that the rules of model types mention."""
    return sorted(_of_architectures())


def types_of(architecture: str) -> list[str]:
    """The model types whose files, as llama.cpp's converter writes them, have this architecture. Raises `Problem` if
    there is none."""
    known = _of_architectures()
    if architecture not in known:
        raise Problem(
            f"general.architecture = {shorten(architecture)}: no rules are known for it",
            nearest(architecture, sorted(known), "the coverage page lists those that are"),
        )
    return sorted(known[architecture], key=lambda name: name != architecture)  # a type with the same name comes first


def likeliest(architecture: str) -> Iterator[str]:
    """Like `types_of`, starting with the type of the architecture's own name; the others are looked up only afterwards.
    Raises `Problem`."""
    first = architecture if architecture in modules_by_type() else f"{architecture}_text"
    facts = find(first).gguf if is_known(architecture) else None
    is_called_so = isinstance(facts, Converted) and facts.name == architecture
    if is_called_so:
        yield first
    for name in types_of(architecture):
        if not (is_called_so and name == first):
            yield name
