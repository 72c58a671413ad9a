"""BERT: an encoder. Each token sees all others, before it and after it, and the scores are for the tokens themselves.

The text is read in one step: nothing is kept for a next one. Source: arXiv 1810.04805; tensor names as transformers'
model for masked words (BertForMaskedLM).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..interface import Array, KVCache, Weights
from ..ops import embed, embed_positions, heads, last_row, layer_norm, linear, positions, scores, softmax, weighted_sum
from ..steps import Role, step
from . import architecture
from .config import Config, Positive, Size, activation, config, derived, key


@config
class Bert(Config):
    """Hyperparameters of BERT, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    n_positions: Size = key("max_position_embeddings")
    n_segments: Size = key("type_vocab_size", 2)
    d_model: Size = key("hidden_size")
    positions: Literal["absolute"] = key("position_embedding_type", "absolute")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("layer_norm_eps", 1e-12)
    # attention
    n_heads: Size = key("num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    # feed-forward
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "gelu")
    # head
    tied: Literal[True] = key("tie_word_embeddings", True)

    caveat = (
        "An encoder reads a whole text in one step and generates nothing. "
        "Figures of a decode step are for a text of one token."
    )
    ignored = frozenset(
        {
            "attention_probs_dropout_prob",
            "classifier_dropout",
            "directionality",
            "gradient_checkpointing",
            "model_name",
            "pooler_fc_size",
            "pooler_num_attention_heads",
            "pooler_num_fc_layers",
            "pooler_size_per_head",
            "pooler_type",
        }
    )

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)


@architecture(
    "bert", config=Bert, spellings=(("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias"))
)
def forward(w: Weights, ids: Array, c: Bert, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    tables = w.at("bert.embeddings")
    x = embed(ids, tables, "word_embeddings.weight", c.vocab_size, c.d_model)
    x = x + embed(ids * 0, tables, "token_type_embeddings.weight", c.n_segments, c.d_model)
    places = positions(ids, cache)
    x = x + embed_positions(places, tables, "position_embeddings.weight", c.n_positions, c.d_model)
    x = layer_norm(x, w, "bert.embeddings.LayerNorm", c.norm_eps)
    for _, w_layer, _ in w.layers("bert.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return prediction_head(x, w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Bert) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    x = layer_norm(x + attention(x, w.at("attention"), c), w, "attention.output.LayerNorm", c.norm_eps)
    return layer_norm(x + feed_forward(x, w, c), w, "output.LayerNorm", c.norm_eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Bert) -> Array:
    """Let each token gather information from all tokens, also from those after it: [T D] -> [T D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head)
        for name in ("self.query", "self.key", "self.value")
    )
    mixed = weighted_sum(softmax(scores(q, k, c.d_head**-0.5)), v)
    return linear(mixed.reshape(x.shape[0], c.d_model), w, "output.dense", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Bert) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "intermediate.dense", c.d_ff, bias=True))
    return linear(wide, w, "output.dense", c.d_model, bias=True)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: Bert, *, last: bool) -> Array:
    """Transform the vector once more, and score every token of the vocabulary: [T D], [V D] -> [T V], or [1 V]."""
    x = activation(c.activation)(
        linear(last_row(x) if last else x, w, "cls.predictions.transform.dense", c.d_model, bias=True)
    )
    x = layer_norm(x, w, "cls.predictions.transform.LayerNorm", c.norm_eps)
    table = w("bert.embeddings.word_embeddings.weight", c.vocab_size, c.d_model)
    logits = np.einsum("td,vd->tv", x, table, optimize=True)
    return logits + w("cls.predictions.bias", c.vocab_size)
