"""Dory: attention and feed-forward networks in turns, every vector of length 1, and a part of the layers in a loop.

Each part moves the residual vector on the sphere, by a trained share of the way for each element. Source: vLLM 0.33,
model_executor/models/dory.py and transformers_utils/configs/dory.py, whose tensor names these are.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from msgspec import Struct

from ..errors import Problem
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    l2_norm,
    linear,
    positions,
    rope_table,
    sigmoid,
    silu,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Interval, Positive, Raw, Size, check_layer_types, config, derived, fixed, key
from .llama import Llama
from .loops import FIRST, LATER, runs
from .rope_config import fold_rope_of_kinds, read_rope, rope_of_mask

LAYER_TYPES = ("full_attention", "sliding_attention", "mlp")


class Run(Struct, frozen=True):
    """A run of a layer: its mask, None for a feed-forward network, and its number within the loop."""

    mask: Mask | None
    run: str

    def __str__(self) -> str:
        name = "network" if self.mask is None else "sliding" if isinstance(self.mask, SlidingWindow) else "full"
        return f"{name}, {self.run}" if self.run else name


def in_turns(n_layers: int) -> list[str]:
    """Attention and feed-forward networks in alternation; every fourth attention is full."""
    return ["mlp" if i % 2 else "full_attention" if i % 8 == 6 else "sliding_attention" for i in range(n_layers)]


@config
class Dory(Llama):
    """Hyperparameters of Dory, in forward order. n_layers counts the runs of layers."""

    # layers
    n_stored_layers: Size = key("num_hidden_layers")
    layer_types: list[str] = key("layer_types", lambda c: in_turns(c.n_stored_layers))
    before: int = key("n_input_layers", 0)
    after: int = key("n_output_layers", 0)
    inside: Interval | None = key("n_recurrent_layers", None)
    loops: Interval = key("n_recurrent_loops", 1)
    n_layers: Size = derived(lambda c: c.n_stored_layers + (c.loops - 1) * c.repeated)
    norm_eps: Positive = fixed(1e-6)
    sliding_window: Size = key("sliding_window", 1024)
    # The unit of the stored scales, and the initial shares.
    unit: Positive = key("initializer_range", 0.02)
    share: Positive = key("ngpt_alpha_init", 0.05)
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 4)
    d_head: Size = key("head_dim", 256)
    attention_bias: Literal[False] = key("attention_bias", False)
    gate_scale: Positive | None = key("attention_output_gate_logit_scale_init", None)
    cached: Literal["per_loop"] = key("recurrent_kv_cache_mode", "per_loop")
    # feed-forward
    mlp_bias: Literal[False] = key("mlp_bias", False)
    activation: Literal["silu"] = key("hidden_act", "silu")
    # head
    tied: Literal[False] = key("tie_word_embeddings", False)

    caveat = (
        "Some of its layers run several times for each token. Costs count every run, but of the bytes that are read "
        "each weight once."
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The keys with a rotary embedding for each type of layer."""
        return fold_rope_of_kinds(raw, {"full_attention": {}, "sliding_attention": {}})

    def check(self) -> None:
        super().check()
        check_layer_types(self.layer_types, self.n_stored_layers, LAYER_TYPES)
        parts = self.before, self.repeated, self.after
        if min(parts) < 0 or not self.repeated or sum(parts) != self.n_stored_layers:
            raise Problem(
                f"n_input_layers, n_recurrent_layers and n_output_layers are {', '.join(map(str, parts))}, and "
                f"num_hidden_layers = {int(self.n_stored_layers)}",
                "correct one of them: they add up to it, and some layers are in the middle",
            )
        for mask in self.masks:
            rope_of_mask(self.rope_parameters, mask).turning(self.d_head)

    @property
    def repeated(self) -> int:
        """The layers that run several times."""
        return int(self.n_stored_layers) - self.before - self.after if self.inside is None else self.inside

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, layer_type="full_attention")

    @property
    def masks(self) -> list[Mask]:
        """Those of the layers with attention, in order."""
        return [run.mask for run in self.kinds if run.mask is not None]

    @property
    def order(self) -> list[int]:
        """The stored layer of each run, in order."""
        first, last = self.before, self.before + self.repeated
        loop = list(range(first, last))
        return [*range(first), *(loop * self.loops), *range(last, int(self.n_stored_layers))]

    @property
    def kinds(self) -> list[Run]:
        """In order: each run of a layer."""
        window = SlidingWindow(self.sliding_window)
        masks: dict[str, Mask | None] = {"full_attention": Full(), "sliding_attention": window, "mlp": None}
        of_runs = runs(int(self.n_layers), self.before, self.repeated, self.loops)
        return [Run(masks[self.layer_types[i]], run) for i, run in zip(self.order, of_runs)]


@architecture("dory", config=Dory)
def forward(w: Weights, ids: Array, c: Dory, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = start = embed(ids, w, "backbone.embeddings.weight", c.vocab_size, c.d_model)
    places, numbers = positions(ids, cache), dict(enumerate(c.order))
    masks = dict.fromkeys(c.masks)
    tables = {mask: rope_table(places, c.d_head, rope_of_mask(c.rope_parameters, mask)) for mask in masks}
    stored: dict[int, Weights] = {}
    for kind, w_run, cache_run in w.layers("backbone.layers", c.kinds, cache):
        number = numbers[w_run.index]
        if kind.run != LATER:
            stored[number] = w_run.beside("backbone.layers", numbers)
        if kind.run and number == c.before:
            start = x if kind.run == FIRST else start
            x = l2_norm((x if kind.run == FIRST else l2_norm(x)) + start)
        elif number == c.before + c.repeated:
            x = l2_norm(x)
        if kind.mask is None:
            x = layer_of_network(x, w_run, stored[number], c)
        else:
            x = layer_of_attention(x, w_run, stored[number], cache_run, c, kind.mask, tables[kind.mask])
    x = x if c.after else l2_norm(x)
    logits = unembed(x, w, "lm_head.weight", c.vocab_size, last=last)
    return logits * (w("lm_head.logit_scale", c.vocab_size) * (1 / c.unit))


@step(Role.LAYER)
def layer_of_attention(
    x: Array, w: Weights, of_layer: Weights, cache: KVCache, c: Dory, mask: Mask, table: RopeTable
) -> Array:
    """One run of attention; its weights are those of the first run: [T D] -> [T D]."""
    return moved(x, attention(x, of_layer.at("mixer"), cache, c, mask, table), of_layer, "attn_alpha", c)


@step(Role.LAYER)
def layer_of_network(x: Array, w: Weights, of_layer: Weights, c: Dory) -> Array:
    """One run of a feed-forward network; its weights are those of the first run: [T D] -> [T D]."""
    return moved(x, feed_forward(x, of_layer.at("mixer"), c), of_layer, "mlp_alpha", c)


def moved(x: Array, y: Array, w: Weights, name: str, c: Dory) -> Array:
    """A share of the way from one vector to another, both of length 1, for each element: [T D], [T D] -> [T D]."""
    x, y = l2_norm(x), l2_norm(y)
    return l2_norm(x + np.abs(w(name, c.d_model) * (c.share / c.unit)) * (y - x))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Dory, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from those before it, and gate each number of it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = apply_rope(heads(linear(x, w, "q_proj", N * H), N, H), table)
    k = apply_rope(heads(linear(x, w, "k_proj", K * H), K, H), table)
    v = heads(linear(x, w, "v_proj", K * H), K, H)
    q = l2_norm(q) * heads(squared_scale(w, "sqk", N * H, H**0.5 / c.unit), N, H)
    k, v = cache.extend(Holds.KEYS, l2_norm(k), mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5)
    steepness = squared_scale(w, "s_gate", N * H, (c.gate_scale or c.d_model**0.5) ** 0.5 / c.unit)
    mixed = mixed * sigmoid(linear(x, w, "g_proj", N * H) * steepness)
    return linear(l2_norm(mixed), w, "o_proj", c.d_model)


def squared_scale(w: Weights, name: str, width: int, factor: float) -> Array:
    """The square of a trained scale, times a fixed one: [N·H] -> [1 N·H]."""
    scale = w(name, width) * factor
    return (scale * scale)[None, :]


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Dory) -> Array:
    """Process each token separately, in a wider space, at length 1: [T D] -> [T F] -> [T D]."""
    gate = linear(x, w, "gate_proj", c.d_ff) * (w("suv_gate", c.d_ff) * c.d_model**0.5)
    up = linear(x, w, "up_proj", c.d_ff) * (w("suv_up", c.d_ff) * c.d_model**0.5)
    return linear(l2_norm(silu(gate) * up), w, "down_proj", c.d_model)
