"""GIT: BERT's block as a decoder. An image's vectors would precede the text.

Source: arXiv 2205.14100; tensor names as the published files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import shorten
from ..interface import Array, KVCache, Weights
from ..ops import Full, attend, causal_mask, embed, embed_positions, heads, layer_norm, linear, positions, unembed
from ..steps import Holds, Role, step
from . import architecture
from .bert import Bert, feed_forward
from .config import Count, activation, config, fixed, key


@config
class Git(Bert):
    """Hyperparameters of GIT's text model, in forward order."""

    n_segments: Count = fixed(0)
    tied: bool = key("tie_word_embeddings", False)
    trunk: str = fixed("git")

    caveat = ""
    ignored = Bert.ignored | {"num_image_with_embedding"}

    @classmethod
    def read_otherwise(cls, raw: Mapping[str, Any]) -> list[str]:
        pictures = raw.get("num_image_with_embedding")
        said = (
            f"num_image_with_embedding = {shorten(pictures)}: a vector for each picture of a video is not counted here"
        )
        return super().read_otherwise(raw) + ([said] if pictures is not None else [])

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)


@architecture("git", config=Git)
def forward(w: Weights, ids: Array, c: Git, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    tables = w.at("git.embeddings")
    x = embed(ids, tables, "word_embeddings.weight", c.vocab_size, c.d_model)
    x = x + embed_positions(positions(ids, cache), tables, "position_embeddings.weight", c.n_positions, c.d_model)
    x = layer_norm(x, tables, "LayerNorm", c.norm_eps)
    for _, w_layer, cache_layer in w.layers("git.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    head = "git.embeddings.word_embeddings.weight" if c.tied else "output.weight"
    return unembed(x, w, head, c.vocab_size, last=last, bias="output.bias")


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Git) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    x = c.norm(x + attention(x, w.at("attention"), cache, c), w, 1)
    return c.norm(x + feed_forward(x, w, c), w, 2)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Git) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head)
        for name in ("self.query", "self.key", "self.value")
    )
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5)
    return linear(mixed, w, "output.dense", c.d_model, bias=True)
