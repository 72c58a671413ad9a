"""RoBERTa, XLM-RoBERTa and CamemBERT: BERT's encoder, whose places are counted from behind the padding token's number.

The text is read at once: nothing is kept for a next step. Source: arXiv 1907.11692, 1911.02116, 1911.03894; tensor
names as transformers' model for masked words (RobertaForMaskedLM).
"""

from __future__ import annotations

import numpy as np

from ..interface import Array, KVCache, Weights
from ..ops import embed, embed_positions, gelu, last_row, layer_norm, linear, positions
from ..steps import Role, step
from . import architecture
from .bert import Bert, layer
from .config import Count, config, key


@config
class Roberta(Bert):
    """Hyperparameters of RoBERTa, in forward order."""

    padding: Count = key("pad_token_id", 1)

    def check(self) -> None:
        super().check()
        self.must_not_exceed("padding", "n_positions")


@architecture(
    "roberta",
    "xlm-roberta",
    "camembert",
    config=Roberta,
    spellings=(("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")),
)
def forward(w: Weights, ids: Array, c: Roberta, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, read in the light of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    tables = w.at("roberta.embeddings")
    x = embed(ids, tables, "word_embeddings.weight", c.vocab_size, c.d_model)
    x = x + embed(ids * 0, tables, "token_type_embeddings.weight", c.n_segments, c.d_model)
    places = positions(ids, cache) + (int(c.padding) + 1)
    x = x + embed_positions(places, tables, "position_embeddings.weight", c.n_positions, c.d_model)
    x = layer_norm(x, w, "roberta.embeddings.LayerNorm", c.norm_eps)
    for _, w_layer, _ in w.layers("roberta.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return masked_head(x, w, c, "roberta", last=last)


@step(Role.UNEMBED)
def masked_head(x: Array, w: Weights, c: Bert, trunk: str, *, last: bool) -> Array:
    """Change the vector once more, and score every token of the vocabulary: [T D], [V D] -> [T V], or [1 V]."""
    x = gelu(linear(last_row(x) if last else x, w, "lm_head.dense", c.d_model, bias=True))
    x = layer_norm(x, w, "lm_head.layer_norm", c.norm_eps)
    table = w(f"{trunk}.embeddings.word_embeddings.weight", c.vocab_size, c.d_model)
    return np.einsum("td,vd->tv", x, table, optimize=True) + w("lm_head.bias", c.vocab_size)
