"""BERT, ERNIE and Megatron's BERT: an encoder. Each token sees all others, before it and after it, and the scores are
for the tokens themselves.

The text is read in one step: nothing is kept for a next one. Sources: arXiv 1810.04805 (BERT), 1904.09223 (ERNIE),
1909.08053 (Megatron); tensor names as transformers' models for masked words (BertForMaskedLM).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..errors import Problem
from ..facts import Gguf, Peft, Task
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
    unembed,
    weighted_sum,
)
from ..steps import Role, step
from . import architecture
from .config import READS_AT_ONCE, Config, Count, Positive, Size, activation, config, derived, fixed, key
from .gguf_tables import ENCODER, ENCODER_TABLES
from .pooling import pooled
from .tasks import BASE, OWN


@config
class Bert(Config):
    """Hyperparameters of BERT, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    n_positions: Size = key("max_position_embeddings")
    n_segments: Count = key("type_vocab_size", 2)
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
    tied: bool = key("tie_word_embeddings", True)

    # Names of the trunk and of the norms of the embedding, of both halves of a layer, and at the end.
    trunk: str = fixed("bert")
    norms: tuple[str, ...] = fixed(("embeddings.LayerNorm", "attention.output.LayerNorm", "output.LayerNorm", ""))
    # Whether the head is the embedding's table, where only one of both is known.
    must_be_tied: bool | None = fixed(None)
    # Whether norms precede the halves of a layer.
    norm_first: bool = fixed(False)

    caveat = READS_AT_ONCE
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
        if self.must_be_tied is not None and self.tied != self.must_be_tied:
            raise Problem(
                f"tie_word_embeddings = {str(self.tied).lower()}: expected {str(self.must_be_tied).lower()}",
                "correct the value",
            )

    @property
    def first_row(self) -> int:
        """The row of the position table that the first token takes."""
        return 0

    @property
    def position_reach(self) -> int:
        return int(self.n_positions) - self.first_row

    def embedded(self, ids: Array, cache: KVCache, w: Weights, before: int = 0) -> Array:
        """The sum of each token's embedding, its position's after an offset, and the first segment's: [T] -> [T D]."""
        tables = w.at(f"{self.trunk}.embeddings")
        x = embed(ids, tables, "word_embeddings.weight", self.vocab_size, self.d_model)
        if self.n_segments:
            x = x + embed_segments(ids, tables, "token_type_embeddings.weight", self.n_segments, self.d_model)
        places = positions(ids, cache) + before if before else positions(ids, cache)
        x = x + embed_positions(places, tables, "position_embeddings.weight", self.n_positions, self.d_model)
        return self.norm(self.of_task(x, ids, tables), w.at(self.trunk), 0)

    @property
    def is_transformed(self) -> bool:
        """Whether the head changes the vector before it scores."""
        return True

    def of_task(self, x: Array, ids: Array, tables: Weights) -> Array:
        """The vectors plus that of the task, where there is one: [T D] -> [T D]."""
        return x

    def norm(self, x: Array, w: Weights, which: int) -> Array:
        """One of the norms, where the model has it."""
        return layer_norm(x, w, self.norms[which], self.norm_eps) if self.norms[which] else x


@config
class Ernie(Bert):
    """Hyperparameters of ERNIE, in forward order."""

    n_tasks: Size = key("task_type_vocab_size", 3)
    has_tasks: bool = key("use_task_id", False)
    trunk: str = fixed("ernie")

    def of_task(self, x: Array, ids: Array, tables: Weights) -> Array:
        if not self.has_tasks:
            return x
        return x + embed(ids * 0, tables, "task_type_embeddings.weight", self.n_tasks, self.d_model)


@config
class BertGeneration(Bert):
    """Hyperparameters of BERT for generation, in forward order, as the encoder that it is by default."""

    n_segments: Count = fixed(0)
    must_be_tied: bool | None = fixed(True)

    @property
    def is_transformed(self) -> bool:
        return False


@config
class MegatronBert(Bert):
    """Hyperparameters of Megatron's BERT, in forward order."""

    norm_first: bool = fixed(True)
    norms: tuple[str, ...] = fixed(("", "attention.ln", "ln", "encoder.ln"))


OLDER_NORMS = (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias"))


@step(Role.TASK_HEAD)
def follows(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """Whether the second sentence follows the first, by the text's vector: [T D], [C D], [C] -> [1 C]."""
    return linear(pooled(x, trunk), w, "cls.seq_relationship", labels, bias=True)


def predict_both(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """Scores for hidden words and for the sentence that follows, one after the other: [T D] -> [T·V + C]."""
    words = prediction_head(x, w, c, last=False)
    return np.concatenate([words.reshape(-1), follows(x, w, trunk, labels, c).reshape(-1)])


HEADS = {
    "ForMaskedLM": OWN,
    "Model": Task("the last hidden states and the text's vector", "pool", 0, ""),
    "ForSequenceClassification": Task("sequence classification", "classify_pooled"),
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForQuestionAnswering": Task("question answering", "find_answer"),
    "ForMultipleChoice": Task("multiple choice", "classify_pooled", 1),
    "ForNextSentencePrediction": Task("next sentence", follows, 2),
    "ForPreTraining": Task("hidden words and next sentence", predict_both, 2),
}


@architecture("ernie", config=Ernie, spellings=OLDER_NORMS, heads=HEADS, peft=Peft(tied_head="cls.predictions.decoder"))
@architecture("megatron-bert", config=MegatronBert, heads=HEADS, peft=Peft(tied_head="cls.predictions.decoder"))
@architecture(
    "bert-generation",
    config=BertGeneration,
    heads={"Decoder": OWN, "Encoder": BASE} | HEADS,
    peft=Peft(tied_head="lm_head.decoder"),
)
@architecture(
    "bert",
    config=Bert,
    spellings=OLDER_NORMS,
    gguf=Gguf("bert", ENCODER, ENCODER_TABLES),
    heads=HEADS,
    peft=Peft(("query", "value"), tied_head="cls.predictions.decoder"),
)
def forward(w: Weights, ids: Array, c: Bert, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    x = c.embedded(ids, cache, w)
    for _, w_layer, _ in w.layers(f"{c.trunk}.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    x = c.norm(x, w.at(c.trunk), 3)
    if c.is_transformed:
        return prediction_head(x, w, c, last=last)
    return unembed(x, w, f"{c.trunk}.embeddings.word_embeddings.weight", c.vocab_size, last=last, bias="lm_head.bias")


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Bert) -> Array:
    """One transformer block, with a norm before or after each half: [T D] -> [T D]."""
    if c.norm_first:
        x = x + attention(c.norm(x, w, 1), w.at("attention"), c)
        return x + feed_forward(c.norm(x, w, 2), w, c)
    x = c.norm(x + attention(x, w.at("attention"), c), w, 1)
    return c.norm(x + feed_forward(x, w, c), w, 2)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Bert) -> Array:
    """Let each token gather information from all tokens, including later ones: [T D] -> [T D]."""
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
    return scored(x, w, "cls.predictions", shared_table(c), c.vocab_size)


def shared_table(c: Bert) -> str | None:
    """The embedding table, if the head is tied to it."""
    return f"{c.trunk}.embeddings.word_embeddings" if c.tied else None


def scored(x: Array, w: Weights, at: str, table: str | None, rows: int) -> Array:
    """Scores by the embedding's table, or by one of the head's own: [T D], [V D] -> [T V].

    The head's own has a bias of its own; transformers keeps the other beside it.
    """
    name = table if table else f"{at}.decoder"
    y = np.einsum("td,vd->tv", x, w(f"{name}.weight", rows, x.shape[-1]), optimize=True)
    if not table:
        y = y + w(f"{name}.bias", rows)
        w(f"{at}.bias", rows)
        return y
    return y + w(f"{at}.bias", rows)
