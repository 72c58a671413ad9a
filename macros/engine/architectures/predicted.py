"""A forward pass's description of its modules for multi-token prediction, which `engine.predictions` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import Full, SlidingWindow, positions, rope_table
from ..ops.rope import Rope
from .config import listed


class Place(NamedTuple):
    """The keys of the config, and the number of the module."""

    raw: Mapping[str, Any]
    k: int


Layer = Callable[[Array, Weights, KVCache, Any, Array, Place], Array]


class Module(Struct, frozen=True):
    """A maker's module: its layer, and the names of its tensors, below `place` with the number of the module."""

    layer: Layer
    place: str = "model.layers.{after}"
    token_norm: str = "enorm"
    state_norm: str = "hnorm"
    projection: str = "eh_proj"
    block: str = ""
    last_norm: str = "shared_head.norm"  # none if it is empty
    offset: int = 0
    is_one: bool = False  # one projection and one norm around all layers
    usual: int = 0  # modules of a config that does not say it
    head: str = ""  # a module's own LM head; the model's if it is empty
    embedding: str = ""  # an embedding of the modules' own
    state_first: bool = False  # in what the projection reads
    embed_norm: str = ""  # of the model's, after its embedding
    chain_norm: str = ""  # after each module's layers, where the config asks for it
    divisor: str = ""  # of the scores, by the config's name for it


class OverStreams(Struct, frozen=True):
    """A maker's module over residual streams: [T D], [T M D] -> [T M D], and what becomes of them: -> [T D]."""

    layer: Callable[[Array, Array, Weights, KVCache, Any, Array, Place], Array]
    last: Callable[[Array, Weights, Any], Array]
    place: str
    usual: int = 0


class OfBlock(Struct, frozen=True):
    """A maker's modules that draft a block of tokens at once, after the hidden states of several of the target's
    layers: token ids, the config, the keys, the number of modules -> scores [B V]."""

    scores: Callable[[Array, Weights, KVCache, Any, Mapping[str, Any], int], Array]
    place: str
    usual: int = 0


def angles(ids: Array, cache: KVCache, width: int, rope: Rope) -> RopeTable:
    """The rotary embedding of a module\'s tokens."""
    return rope_table(positions(ids, cache), width, rope)


def entry(at: Place, c: Any, name: str, own: str, usual: Any) -> Any:
    """A module's entry in a list by layer: in a list of the modules' own, or after the model's layers."""
    entries, behind = listed(at.raw.get(own)) or [], listed(at.raw.get(name)) or []
    if at.k < len(entries):
        return entries[at.k]
    return behind[c.n_layers + at.k] if c.n_layers + at.k < len(behind) else usual


def mask_of(layer_type: Any, c: Any) -> Mask:
    """The mask of a layer type."""
    return SlidingWindow(c.sliding_window) if layer_type == "sliding_attention" else Full()
