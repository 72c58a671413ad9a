"""RemBERT: BERT's encoder between a narrow input embedding and a wide head, two matrices of their own.

The text is read at once: nothing is kept for a next step. Source: arXiv 2010.12821; tensor names as transformers' model
for masked words (RemBertForMaskedLM).
"""

from __future__ import annotations

import numpy as np

from ..interface import Array, KVCache, Weights
from ..ops import embed, embed_positions, embed_segments, last_row, layer_norm, linear, positions
from ..steps import Role, step
from . import architecture
from .bert import Bert, layer
from .config import Size, activation, config, fixed, key
from .tasks import OF_REMBERT


@config
class RemBert(Bert):
    """Hyperparameters of RemBERT, in forward order."""

    d_embedding: Size = key("input_embedding_size", 256)
    d_output: Size = key("output_embedding_size", 1664)
    must_be_tied: bool | None = fixed(False)
    tied: bool = key("tie_word_embeddings", False)

    ignored = Bert.ignored | {"classifier_dropout_prob"}


@architecture("rembert", config=RemBert, heads=OF_REMBERT)
def forward(w: Weights, ids: Array, c: RemBert, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    tables = w.at("rembert.embeddings")
    x = embed(ids, tables, "word_embeddings.weight", c.vocab_size, c.d_embedding)
    x = x + embed_segments(ids, tables, "token_type_embeddings.weight", c.n_segments, c.d_embedding)
    x = x + embed_positions(positions(ids, cache), tables, "position_embeddings.weight", c.n_positions, c.d_embedding)
    x = layer_norm(x, tables, "LayerNorm", c.norm_eps)
    x = linear(x, w, "rembert.encoder.embedding_hidden_mapping_in", c.d_model, bias=True)
    for _, w_layer, _ in w.layers("rembert.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return prediction_head(x, w, c, last=last)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: RemBert, *, last: bool) -> Array:
    """Widen the vector, and score every token of the vocabulary: [T D] -> [T D'], [V D'] -> [T V], or [1 V]."""
    x = linear(last_row(x) if last else x, w, "cls.predictions.dense", c.d_output, bias=True)
    x = layer_norm(activation(c.activation)(x), w, "cls.predictions.LayerNorm", c.norm_eps)
    table = w("cls.predictions.decoder.weight", c.vocab_size, c.d_output)
    return np.einsum("td,vd->tv", x, table, optimize=True) + w("cls.predictions.decoder.bias", c.vocab_size)
