"""MobileBERT: BERT's encoder whose layers are narrow inside, with several feed-forward networks and no real norms.

Each token is read with its two neighbors. In place of a norm, vectors are only scaled and shifted. Source: arXiv
2004.02984; tensor names as transformers' model for masked words (MobileBertForMaskedLM).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..errors import Problem
from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import attend, embed, embed_positions, embed_segments, heads, last_row, layer_norm, linear, positions
from ..steps import Role, step
from . import architecture
from .bert import Bert
from .config import Interval, Size, activation, config, derived, key
from .tasks import OF_REMBERT


@config
class MobileBert(Bert):
    """Hyperparameters of MobileBERT, in forward order."""

    d_embedding: Size = key("embedding_size", 128)
    sees_neighbors: bool = key("trigram_input", True)
    activation: str = key("hidden_act", "relu")
    is_narrow: bool = key("use_bottleneck", True)
    d_narrow: Size = key("intra_bottleneck_size", 128)
    d_inner: Size = derived(lambda c: c.d_narrow if c.is_narrow else c.d_model)
    d_head: Size = derived(lambda c: int(c.d_narrow if c.is_narrow else c.d_model) // int(c.n_heads))
    narrow_values: bool = key("use_bottleneck_attention", False)
    shares_narrow: bool = key("key_query_shared_bottleneck", True)
    n_networks: Interval = key("num_feedforward_networks", 4)
    tied: Literal[True] = key("tie_word_embeddings", True)
    kind_of_norm: Literal["no_norm"] = key("normalization_type", "no_norm")

    ignored = Bert.ignored | {"classifier_activation", "true_hidden_size"}

    def check(self) -> None:
        self.must_divide("n_heads", "d_inner")
        activation(self.activation)
        if self.d_embedding >= self.d_model:
            raise Problem(
                f"embedding_size = {int(self.d_embedding)} for hidden_size = {int(self.d_model)}: expected less",
                "correct one of the two",
            )
        if self.is_narrow and not (self.narrow_values or self.shares_narrow):
            raise Problem(
                "use_bottleneck_attention and key_query_shared_bottleneck are both false",
                "queries and keys are made of a narrow vector: make one of them true",
            )


@architecture("mobilebert", config=MobileBert, heads=OF_REMBERT, peft=Peft(tied_head="cls.predictions.decoder"))
def forward(w: Weights, ids: Array, c: MobileBert, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    tables = w.at("mobilebert.embeddings")
    x = embed(ids, tables, "word_embeddings.weight", c.vocab_size, c.d_embedding)
    if c.sees_neighbors:
        none = x[:1] * 0
        x = np.concatenate([np.concatenate([x[1:], none], axis=0), x, np.concatenate([none, x[:-1]], axis=0)], axis=-1)
    x = linear(x, tables, "embedding_transformation", c.d_model, bias=True)
    x = x + embed_positions(positions(ids, cache), tables, "position_embeddings.weight", c.n_positions, c.d_model)
    x = x + embed_segments(ids, tables, "token_type_embeddings.weight", c.n_segments, c.d_model)
    x = scaled(x, tables, "LayerNorm")
    for _, w_layer, _ in w.layers("mobilebert.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return prediction_head(x, w, c, last=last)


def scaled(x: Array, w: Weights, name: str) -> Array:
    """Scale and shift each number of a vector: [T D], [D], [D] -> [T D]."""
    return x * w(f"{name}.weight", x.shape[1]) + w(f"{name}.bias", x.shape[1])


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: MobileBert) -> Array:
    """One block, narrow inside: [T D] -> [T I] -> [T D]."""
    y, first = x, x
    if c.is_narrow:
        y = scaled(linear(x, w, "bottleneck.input.dense", c.d_narrow, bias=True), w, "bottleneck.input.LayerNorm")
        first = y
        if c.shares_narrow:
            first = linear(x, w, "bottleneck.attention.dense", c.d_narrow, bias=True)
            first = scaled(first, w, "bottleneck.attention.LayerNorm")
        first = y if c.narrow_values else first
    y = scaled(y + attention(first, y if c.narrow_values else x, w.at("attention"), c), w, "attention.output.LayerNorm")
    for number in range(int(c.n_networks) - 1):
        own = w.at(f"ffn.{number}")
        y = scaled(y + feed_forward(y, own, c), own, "output.LayerNorm")
    y = scaled(y + feed_forward(y, w, c), w, "output.LayerNorm")
    if not c.is_narrow:
        return y
    wide = linear(y, w, "output.bottleneck.dense", c.d_model, bias=True)
    return scaled(wide + x, w, "output.bottleneck.LayerNorm")


@step(Role.ATTENTION)
def attention(x: Array, values: Array, w: Weights, c: MobileBert) -> Array:
    """Let each token gather information from all tokens, including later ones: [T I], [T D] -> [T I]."""
    q, k = (heads(linear(x, w, name, c.d_inner, bias=True), c.n_heads, c.d_head) for name in ("self.query", "self.key"))
    v = heads(linear(values, w, "self.value", c.d_inner, bias=True), c.n_heads, c.d_head)
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "output.dense", c.d_inner, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: MobileBert) -> Array:
    """Process each token separately, in a wider space: [T I] -> [T F] -> [T I]."""
    wide = activation(c.activation)(linear(x, w, "intermediate.dense", c.d_ff, bias=True))
    return linear(wide, w, "output.dense", c.d_inner, bias=True)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: MobileBert, *, last: bool) -> Array:
    """Transform the vector once more, and score every token, by two tables: [T D], [V E], [D−E V] -> [T V], or [1
    V]."""
    own, E = w.at("cls.predictions"), c.d_embedding
    x = activation(c.activation)(linear(last_row(x) if last else x, own, "transform.dense", c.d_model, bias=True))
    x = layer_norm(x, own, "transform.LayerNorm", c.norm_eps)
    table = w("mobilebert.embeddings.word_embeddings.weight", c.vocab_size, E)
    logits = np.einsum("td,vd->tv", x[:, :E], table, optimize=True)
    rest = own("dense.weight", c.d_model - E, c.vocab_size)
    return logits + np.einsum("td,dv->tv", x[:, E:], rest, optimize=True) + own("bias", c.vocab_size)
