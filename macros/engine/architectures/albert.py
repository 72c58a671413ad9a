"""ALBERT: BERT's encoder whose layers share one set of weights, on a narrower embedding.

The text is read at once: nothing is kept for a next step. Source: arXiv 1909.11942; tensor names as transformers' model
for masked words (AlbertForMaskedLM).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..facts import Peft, Task
from ..interface import Array, KVCache, Weights
from ..ops import (
    embed,
    embed_positions,
    embed_segments,
    heads,
    last_row,
    layer_norm,
    linear,
    positions,
    scores,
    softmax,
    weighted_sum,
)
from ..steps import Role, step
from . import architecture
from .bert import Bert
from .config import Size, activation, config, fixed, key
from .tasks import OWN


@config
class Albert(Bert):
    """Hyperparameters of ALBERT, in forward order."""

    must_be_tied: bool | None = fixed(True)
    d_embedding: Size = key("embedding_size", 128)
    n_groups: Size = key("num_hidden_groups", 1)
    inner_groups: Literal[1] = key("inner_group_num", 1)
    activation: str = key("hidden_act", "gelu_new")

    ignored = (
        Bert.ignored
        | {"classifier_dropout_prob", "down_scale_factor", "gap_size", "net_structure_type"}
        | {"num_memory_blocks"}
    )

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_groups", "n_layers")

    @property
    def kinds(self) -> list[str]:
        """In order: the group whose weights a layer has."""
        return [f"group {int(i / (int(self.n_layers) / int(self.n_groups)))}" for i in range(self.n_layers)]


HEADS = {
    "ForMaskedLM": OWN,
    "Model": Task("the last hidden states and the text's vector", "pool_alone", 0, ""),
    "ForSequenceClassification": Task("sequence classification", "classify_alone"),
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForQuestionAnswering": Task("question answering", "find_answer"),
    "ForMultipleChoice": Task("multiple choice", "classify_alone", 1),
}


@architecture("albert", config=Albert, heads=HEADS, peft=Peft(tied_head="predictions.decoder"))
def forward(w: Weights, ids: Array, c: Albert, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    tables = w.at("albert.embeddings")
    x = embed(ids, tables, "word_embeddings.weight", c.vocab_size, c.d_embedding)
    x = x + embed_segments(ids, tables, "token_type_embeddings.weight", c.n_segments, c.d_embedding)
    places = positions(ids, cache)
    x = x + embed_positions(places, tables, "position_embeddings.weight", c.n_positions, c.d_embedding)
    x = layer_norm(x, w, "albert.embeddings.LayerNorm", c.norm_eps)
    encoder = w.at("albert.encoder")
    x = linear(x, encoder, "embedding_hidden_mapping_in", c.d_model, bias=True)
    for kind, w_layer, _ in w.layers("albert.encoder.layers", c.kinds, cache):
        group = kind.removeprefix("group ")
        x = layer(x, w_layer, encoder.at(f"albert_layer_groups.{group}.albert_layers.0"), c)
    return prediction_head(x, w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, shared: Weights, c: Albert) -> Array:
    """One transformer block, with a norm after each half; its weights are those of the whole group: [T D] -> [T D]."""
    at = shared.at("attention")
    x = layer_norm(x + attention(x, at, c), at, "LayerNorm", c.norm_eps)
    return layer_norm(x + feed_forward(x, shared, c), shared, "full_layer_layer_norm", c.norm_eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Albert) -> Array:
    """Let each token gather information from all tokens, including later ones: [T D] -> [T D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head) for name in ("query", "key", "value")
    )
    mixed = weighted_sum(softmax(scores(q, k, c.d_head**-0.5)), v)
    return linear(mixed.reshape(x.shape[0], c.d_model), w, "dense", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Albert) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(
        activation(c.activation)(linear(x, w, "ffn", c.d_ff, bias=True)), w, "ffn_output", c.d_model, bias=True
    )


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: Albert, *, last: bool) -> Array:
    """Narrow the vector, and score every token of the vocabulary: [T D] -> [T D'], [V D'] -> [T V], or [1 V]."""
    x = linear(last_row(x) if last else x, w, "predictions.dense", c.d_embedding, bias=True)
    x = layer_norm(activation(c.activation)(x), w, "predictions.LayerNorm", c.norm_eps)
    table = w("albert.embeddings.word_embeddings.weight", c.vocab_size, c.d_embedding)
    return np.einsum("td,vd->tv", x, table, optimize=True) + w("predictions.bias", c.vocab_size)
