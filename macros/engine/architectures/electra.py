"""ELECTRA: BERT's encoder on an embedding that may be narrower; it tells which tokens another model replaced.

The forward pass is that of the model for masked words (the generator); the discriminator, the model in use, has another
head on the same trunk. Source: arXiv 2003.10555; tensor names as transformers' files.
"""

from __future__ import annotations

import numpy as np

from ..facts import Peft, Task
from ..interface import Array, KVCache, Weights
from ..ops import embed, embed_positions, embed_segments, gelu, last_row, layer_norm, linear, positions
from ..steps import Role, step
from . import architecture
from .bert import Bert, layer
from .config import Size, config, fixed, key
from .tasks import BASE, OWN


@config
class Electra(Bert):
    """Hyperparameters of ELECTRA, in forward order."""

    must_be_tied: bool | None = fixed(True)
    d_embedding: Size = key("embedding_size", 128)

    ignored = Bert.ignored | {"summary_last_dropout", "generator_size", "attention_size"}


HEADS = {
    "ForMaskedLM": OWN,
    "Model": BASE,
    "ForPreTraining": Task("replaced tokens", "find_replaced", 1),
    "ForSequenceClassification": Task("sequence classification", "classify_gelu"),
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForQuestionAnswering": Task("question answering", "find_answer"),
}


@architecture("electra", config=Electra, heads=HEADS, peft=Peft(("query", "value"), tied_head="generator_lm_head"))
def forward(w: Weights, ids: Array, c: Electra, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    tables = w.at("electra.embeddings")
    x = embed(ids, tables, "word_embeddings.weight", c.vocab_size, c.d_embedding)
    x = x + embed_segments(ids, tables, "token_type_embeddings.weight", c.n_segments, c.d_embedding)
    places = positions(ids, cache)
    x = x + embed_positions(places, tables, "position_embeddings.weight", c.n_positions, c.d_embedding)
    x = layer_norm(x, w, "electra.embeddings.LayerNorm", c.norm_eps)
    if c.d_embedding != c.d_model:
        x = linear(x, w, "electra.embeddings_project", c.d_model, bias=True)
    for _, w_layer, _ in w.layers("electra.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return prediction_head(x, w, c, last=last)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: Electra, *, last: bool) -> Array:
    """Narrow the vector, and score every token of the vocabulary: [T D] -> [T D'], [V D'] -> [T V], or [1 V]."""
    x = gelu(linear(last_row(x) if last else x, w, "generator_predictions.dense", c.d_embedding, bias=True))
    x = layer_norm(x, w, "generator_predictions.LayerNorm", c.norm_eps)
    table = w("electra.embeddings.word_embeddings.weight", c.vocab_size, c.d_embedding)
    return np.einsum("td,vd->tv", x, table, optimize=True) + w("generator_lm_head.bias", c.vocab_size)
