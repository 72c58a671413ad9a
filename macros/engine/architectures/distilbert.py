"""DistilBERT: BERT's encoder with half the layers, and without segments.

The text is read at once: nothing is kept for a next step. Source: arXiv 1910.01108; tensor names as transformers'
model for masked words (DistilBertForMaskedLM).
"""

from __future__ import annotations

import numpy as np

from ..facts import Gguf, Peft, Task
from ..interface import Array, KVCache, Weights
from ..ops import embed, embed_positions, heads, last_row, layer_norm, linear, positions, scores, softmax, weighted_sum
from ..steps import Role, step
from . import architecture
from .bert import Bert
from .config import Config, Positive, Size, activation, config, derived, fixed, key
from .gguf_tables import ENCODER, ENCODER_TABLES
from .tasks import BASE, OWN


@config
class DistilBert(Config):
    """Hyperparameters of DistilBERT, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    n_positions: Size = key("max_position_embeddings")
    d_model: Size = key("dim", also=("hidden_size",))
    # layers
    n_layers: Size = key("n_layers", also=("num_hidden_layers",))
    norm_eps: Positive = fixed(1e-12)
    # attention
    n_heads: Size = key("n_heads", also=("num_attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    # feed-forward
    d_ff: Size = key("hidden_dim", also=("intermediate_size",))
    activation: str = key("activation", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    caveat = Bert.caveat
    # The file stores sinusoids as a position table.
    ignored = frozenset({"qa_dropout", "seq_classif_dropout", "sinusoidal_pos_embds", "tie_weights_"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)


HEADS = {
    "ForMaskedLM": OWN,
    "Model": BASE,
    "ForSequenceClassification": Task("sequence classification", "classify_relu"),
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForQuestionAnswering": Task("question answering", "find_answer", 2),
    "ForMultipleChoice": Task("multiple choice", "classify_relu", 1),
}


@architecture(
    "distilbert",
    config=DistilBert,
    gguf=Gguf("bert", ENCODER, ENCODER_TABLES),
    heads=HEADS,
    peft=Peft(tied_head="vocab_projector"),
)
def forward(w: Weights, ids: Array, c: DistilBert, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    tables = w.at("distilbert.embeddings")
    x = embed(ids, tables, "word_embeddings.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    x = x + embed_positions(places, tables, "position_embeddings.weight", c.n_positions, c.d_model)
    x = layer_norm(x, w, "distilbert.embeddings.LayerNorm", c.norm_eps)
    for _, w_layer, _ in w.layers("distilbert.transformer.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return prediction_head(x, w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: DistilBert) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    x = layer_norm(x + attention(x, w.at("attention"), c), w, "sa_layer_norm", c.norm_eps)
    return layer_norm(x + feed_forward(x, w.at("ffn"), c), w, "output_layer_norm", c.norm_eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: DistilBert) -> Array:
    """Let each token gather information from all tokens, including later ones: [T D] -> [T D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head) for name in ("q_lin", "k_lin", "v_lin")
    )
    mixed = weighted_sum(softmax(scores(q, k, c.d_head**-0.5)), v)
    return linear(mixed.reshape(x.shape[0], c.d_model), w, "out_lin", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: DistilBert) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(activation(c.activation)(linear(x, w, "lin1", c.d_ff, bias=True)), w, "lin2", c.d_model, bias=True)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: DistilBert, *, last: bool) -> Array:
    """Transform the vector once more, and score every token of the vocabulary: [T D], [V D] -> [T V], or [1 V]."""
    x = activation(c.activation)(linear(last_row(x) if last else x, w, "vocab_transform", c.d_model, bias=True))
    x = layer_norm(x, w, "vocab_layer_norm", c.norm_eps)
    name = "distilbert.embeddings.word_embeddings.weight" if c.tied else "vocab_projector.weight"
    table = w(name, c.vocab_size, c.d_model)
    return np.einsum("td,vd->tv", x, table, optimize=True) + w("vocab_projector.bias", c.vocab_size)
