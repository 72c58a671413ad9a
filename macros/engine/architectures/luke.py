"""LUKE: RoBERTa that also reads the entities of a text, as tokens with queries of their own.

No text here has entities: their tables and maps are counted, and not read. Source: arXiv 2010.01057; tensor names as
transformers' model for masked words (LukeForMaskedLM).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import gelu, last_row, layer_norm, linear
from ..steps import Role, step
from . import architecture
from .bert import layer as bert_layer
from .config import Size, config, fixed, key
from .roberta import Roberta
from .tasks import OF_REMBERT


@config
class Luke(Roberta):
    """Hyperparameters of LUKE, in forward order."""

    n_entities: Size = key("entity_vocab_size", 500_000)
    d_entity: Size = key("entity_emb_size", 256)
    has_queries: bool = key("use_entity_aware_attention", True)
    tied: Literal[True] = key("tie_word_embeddings", True)
    trunk: str = fixed("luke")

    caveat = Roberta.caveat + " No text here names entities."
    ignored = Roberta.ignored | {"bert_model_name", "cls_entity_prediction"}


@architecture(
    "luke",
    config=Luke,
    spellings=(("lm_head.decoder.bias", "lm_head.bias"),),
    heads=OF_REMBERT,
    peft=Peft(tied_head="entity_predictions.decoder"),
)
def forward(w: Weights, ids: Array, c: Luke, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    x = c.embedded(ids, cache, w, c.first_row)
    entities(w, c)
    for _, w_layer, _ in w.layers("luke.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return prediction_head(x, w, c, last=last)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: Luke, *, last: bool) -> Array:
    """Change the vector once more, and score every token of the vocabulary: [T D], [V D] -> [T V], or [1 V]."""
    x = gelu(linear(last_row(x) if last else x, w, "lm_head.dense", c.d_model, bias=True))
    x = layer_norm(x, w, "lm_head.layer_norm", c.norm_eps)
    table = w("lm_head.decoder.weight", c.vocab_size, c.d_model)
    return np.einsum("td,vd->tv", x, table, optimize=True) + w("lm_head.bias", c.vocab_size)


def entities(w: Weights, c: Luke) -> None:
    """Declare what reads and names entities, and the text's vector."""
    D, E = c.d_model, c.d_entity
    tables, head = w.at("luke.entity_embeddings"), w.at("entity_predictions")
    tables("entity_embeddings.weight", c.n_entities, E)
    if E != D:
        tables("entity_embedding_dense.weight", D, E)
    tables("position_embeddings.weight", c.n_positions, D)
    tables("token_type_embeddings.weight", c.n_segments, D)
    for at, width in ((tables.at("LayerNorm"), D), (head.at("transform.LayerNorm"), E)):
        at("weight", width)
        at("bias", width)
    w("luke.pooler.dense.weight", D, D)
    w("luke.pooler.dense.bias", D)
    head("transform.dense.weight", E, D)
    head("transform.dense.bias", E)
    head("bias", c.n_entities)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Luke) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    for name in ("w2e_query", "e2w_query", "e2e_query") if c.has_queries else ():
        w(f"attention.self.{name}.weight", c.d_model, c.d_model)
        w(f"attention.self.{name}.bias", c.d_model)
    return bert_layer(x, w, c)
