"""RoFormer: BERT's encoder with rotary positions, whose sines and cosines are in its file.

The text is read at once: nothing is kept for a next step. Source: arXiv 2104.09864; tensor names as transformers' model
for masked words (RoFormerForMaskedLM).
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem
from ..facts import Peft, Task
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    apply_rope_pairs,
    attend,
    embed,
    embed_positions,
    embed_segments,
    heads,
    last_row,
    layer_norm,
    linear,
    positions,
)
from ..steps import Role, step
from . import architecture
from .bert import Bert, feed_forward
from .config import Size, activation, config, fixed, key
from .tasks import BASE, OWN


@config
class RoFormer(Bert):
    """Hyperparameters of RoFormer, in forward order."""

    must_be_tied: bool | None = fixed(True)
    d_embedding: Size = key("embedding_size", lambda c: c.d_model)
    turns_values: bool = key("rotary_value", False)
    trunk: str = fixed("roformer")

    def check(self) -> None:
        super().check()
        if self.d_head % 2:
            raise Problem(
                f"a head of {int(self.d_head)} numbers, which turn in pairs", "rotary embedding needs an even number"
            )


HEADS = {
    "ForMaskedLM": OWN,
    "Model": BASE,
    "ForSequenceClassification": Task("sequence classification", "classify_activated"),
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForQuestionAnswering": Task("question answering", "find_answer", 2),
}


@architecture("roformer", config=RoFormer, heads=HEADS, peft=Peft(tied_head="cls.predictions.decoder"))
def forward(w: Weights, ids: Array, c: RoFormer, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    tables = w.at("roformer.embeddings")
    x = embed(ids, tables, "word_embeddings.weight", c.vocab_size, c.d_embedding)
    x = x + embed_segments(ids, tables, "token_type_embeddings.weight", c.n_segments, c.d_embedding)
    x = layer_norm(x, tables, "LayerNorm", c.norm_eps)
    if c.d_embedding != c.d_model:
        x = linear(x, w, "roformer.embeddings_project", c.d_model, bias=True)
    name = "roformer.encoder.embed_positions.weight"
    sin, cos = np.split(embed_positions(positions(ids, cache), w, name, c.n_positions, c.d_head), 2, axis=-1)
    for _, w_layer, _ in w.layers("roformer.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, (cos, sin))
    return prediction_head(x, w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: RoFormer, table: RopeTable) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    x = c.norm(x + attention(x, w.at("attention"), c, table), w, 1)
    return c.norm(x + feed_forward(x, w, c), w, 2)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: RoFormer, table: RopeTable) -> Array:
    """Let each token gather information from all tokens, including later ones: [T D] -> [T D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head)
        for name in ("self.query", "self.key", "self.value")
    )
    q, k = apply_rope_pairs(q, table), apply_rope_pairs(k, table)
    v = apply_rope_pairs(v, table) if c.turns_values else v
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "output.dense", c.d_model, bias=True)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: RoFormer, *, last: bool) -> Array:
    """Transform the vector once more, and score every token of the vocabulary: [T D], [V D'] -> [T V], or [1 V]."""
    x = linear(last_row(x) if last else x, w, "cls.predictions.transform.dense", c.d_embedding, bias=True)
    x = layer_norm(activation(c.activation)(x), w, "cls.predictions.transform.LayerNorm", c.norm_eps)
    table = w("roformer.embeddings.word_embeddings.weight", c.vocab_size, c.d_embedding)
    return np.einsum("td,vd->tv", x, table, optimize=True) + w("cls.predictions.bias", c.vocab_size)
