"""Domyn Edge: layers with a window have rotary positions; the full-attention layers have wider heads and no positions.

Norms before and after each half; the norm of queries has no weights. Source: domyn/Domyn-Edge-Base by vLLM,
model_executor/models/domyn_edge.py, whose tensor names these are; the defaults are those of the maker's config class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..errors import Problem, shorten
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    NoPE,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    unembed,
    unit_norm,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import LARGEST_SIZE, Raw, Size, config, derived, fixed, key, listed, tabled
from .llama import Llama, feed_forward


class HeadKind(NamedTuple):
    """A layer: its mask, and the width of its heads."""

    mask: Mask
    d_head: int

    def __str__(self) -> str:
        return f"{self.mask}, heads of {int(self.d_head)}"


@config
class DomynEdge(Llama):
    """Hyperparameters of Domyn Edge, in forward order. A window of w sees w tokens before the token itself."""

    # layers
    position_layers: list[str] = key(
        "position_layers", lambda c: ["nope" if c.sees_all(i) else "rope" for i in c.all()]
    )
    window_sizes: list[Any] = key("window_sizes", lambda c: [[-1 if c.sees_all(i) else 1024, 0] for i in c.all()])
    head_sizes: list[int] | None = key("head_sizes", None)
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = derived(lambda c: min(c.widths(), default=1))
    d_global_head: Size = derived(lambda c: max(c.widths(), default=1))
    attention_bias: bool = fixed(False)
    # feed-forward
    mlp_bias: bool = fixed(False)
    # head
    tied: bool = key("tie_word_embeddings", True)

    rewritten = Llama.rewritten | {"per_layer_config"}
    ignored = Llama.ignored | {"attention_bias", "head_dim", "max_window_layers", "trained_vocab_size"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """Newer files have the widths of heads in a table for each layer."""
        raw = super().prepare(raw)
        tables = tabled(raw.pop("per_layer_config", None)) or {}
        sizes = {name: (tabled(part) or {}).get("head_dim", raw.get("head_dim")) for name, part in tables.items()}
        if not sizes or raw.get("head_sizes") is not None:
            return raw
        count = raw.get("num_hidden_layers")
        layers = range(count) if isinstance(count, int) and 0 < count <= 1000 else ()
        return {**raw, "head_sizes": [sizes.get(str(i), raw.get("head_dim")) for i in layers]}

    def all(self) -> range:
        """The numbers of the layers."""
        return range(self.n_layers)

    def widths(self) -> list[int]:
        """The width of a head in each layer."""
        if self.head_sizes is not None:
            return self.head_sizes
        return [256 if self.sees_all(i) else 64 for i in self.all()]

    def sees_all(self, i: int) -> bool:
        """Whether a layer has no window: the first and the last two, and each fourth between them."""
        return i < 2 or i >= int(self.n_layers) - 2 or (i - 2) % 4 == 3

    def check(self) -> None:
        super().check()
        lists = {
            "position_layers": self.position_layers,
            "window_sizes": self.window_sizes,
            "head_sizes": self.widths(),
        }
        for name, entries in lists.items():
            if len(entries) != self.n_layers:
                raise Problem(
                    f"{name} has {len(entries)} entries, and num_hidden_layers = {int(self.n_layers)}",
                    "correct one of the two",
                )
        for name in self.position_layers:
            if name not in ("rope", "nope"):
                raise Problem(f"position_layers has {shorten(name)}", "give rope or nope for each layer")
        for size in self.widths():
            if not 0 < size <= LARGEST_SIZE:
                raise Problem(f"head_sizes has {size}", "give the width of a head for each layer")
        if len(set(self.turning)) > 1:
            raise Problem("head_sizes differ in layers with rope", "give them one width")
        for size in set(self.turning):
            self.rope.turning(size)

    @property
    def turning(self) -> list[int]:
        """The widths of the rotary heads."""
        return [size for kind, size in zip(self.position_layers, self.widths()) if kind == "rope"]

    @property
    def kinds(self) -> list[HeadKind]:
        """In order: each layer's mask and the width of its heads."""
        known = {int(n): n for n in (self.d_global_head, self.d_head)}
        masks = [_mask(window) for window in self.window_sizes]
        return [
            HeadKind(mask if position == "rope" else NoPE(mask), known.get(size, size))
            for mask, position, size in zip(masks, self.position_layers, self.widths())
        ]


def _mask(window: object) -> Mask:
    """The mask of a window with this many tokens before and none after."""
    pair = listed(window) or []
    before = pair[0] if len(pair) == 2 and pair[1] == 0 else None
    if type(before) is not int or before > LARGEST_SIZE:
        raise Problem(f"window_sizes has {shorten(pair)}", "give each layer [tokens before, 0], or [-1, 0] for all")
    return SlidingWindow(before + 1) if before > 0 else Full()


@architecture("domynedge", config=DomynEdge)
def forward(w: Weights, ids: Array, c: DomynEdge, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    widths = {kind.d_head for kind in c.kinds if not isinstance(kind.mask, NoPE)}
    tables = {width: rope_table(positions(ids, cache), width, c.rope) for width in widths}
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, tables.get(kind.d_head))
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: DomynEdge, kind: HeadKind, table: RopeTable | None) -> Array:
    """One transformer block, with a norm before and after each half: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "pre_attention_norm", c.norm_eps), w.at("attention"), cache, c, kind, table)
    x = x + rms_norm(y, w, "post_attention_norm", c.norm_eps)
    y = feed_forward(rms_norm(x, w, "pre_feedforward_norm", c.norm_eps), w.at("feedforward"), c)
    return x + rms_norm(y, w, "post_feedforward_norm", c.norm_eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: DomynEdge, kind: HeadKind, table: RopeTable | None) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H, mask = c.n_heads, c.n_kv_heads, kind.d_head, kind.mask
    q = unit_norm(heads(linear(x, w, "q_proj", N * H), N, H), c.norm_eps)
    k = rms_norm(heads(linear(x, w, "k_proj", K * H), K, H), w, "k_norm", c.norm_eps)
    v = heads(linear(x, w, "v_proj", K * H), K, H)
    if not isinstance(mask, NoPE) and table is not None:
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    return linear(attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5), w, "o_proj", c.d_model)
