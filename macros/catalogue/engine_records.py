"""Engines' reports of their own memory: llama.cpp's buffers as a program recorded them, vLLM's logs as users posted
them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..counting.llama_cpp import Setting
from ..engine.files import read_text
from .toml_files import read_as

BUFFERS = Path(__file__).parent / "engine_buffers.json"
LOGS = Path(__file__).parent / "engine_logs.toml"


class Buffers(NamedTuple):
    """The buffers that llama.cpp printed for a model in a setting, in bytes; None if it made no such context."""

    setting: Setting
    cache: int
    state: int
    outputs: int
    compute: int


class Log(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The cache size that vLLM printed for a model: the GiB left for it, the tokens that they hold, and the number of
    sequences of the context that fit."""

    model: str
    tokens: int
    context: int
    texts: str
    source: str
    room: str | None = None
    states: int = 2


class _Logs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    logs: list[Log]


@cache
def recorded() -> dict[str, tuple[Buffers | tuple[Setting, None], ...]]:
    """Every model with its settings, by slug."""
    said: dict[str, Any] = json.loads(read_text(BUFFERS))
    return {slug: tuple(_read(row) for row in found["rows"]) for slug, found in said.items()}


@cache
def of_each_architecture() -> tuple[str, ...]:
    """One model of each llama.cpp architecture, the first by slug."""
    said: dict[str, Any] = json.loads(read_text(BUFFERS))
    return tuple({said[slug]["architecture"]: slug for slug in sorted(said, reverse=True)}.values())


def _read(row: list[Any]) -> Buffers | tuple[Setting, None]:
    *setting, made = row
    if isinstance(made, str):
        return Setting(*setting), None
    return Buffers(Setting(*setting), made["cache"], made.get("state", 0), made["outputs"], made["compute"])


def buffers(slug: str) -> Iterator[Buffers]:
    """The printed buffers of a model, setting by setting."""
    return (row for row in recorded()[slug] if isinstance(row, Buffers))


def logs() -> tuple[Log, ...]:
    """The reports. Raises `Problem`."""
    return tuple(read_as(LOGS, _Logs).logs)
