"""DeBERTa V2 and V3: BERT's encoder, whose scores are sums: contents with contents, with distances, and the reverse.

All layers share one table of distances, and each makes keys and queries of it. In the larger models, a convolution of
the first layer's input is added to its output. The text is read at once: nothing is kept for a next step. Sources:
arXiv 2006.03654, 2111.09543; tensor names as transformers' model for masked words (DebertaV2ForMaskedLM).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ..errors import Problem
from ..facts import Peft, Task
from ..interface import Array, KVCache, Weights
from ..ops import (
    attend,
    convolve,
    embed,
    embed_positions,
    embed_segments,
    heads,
    last_row,
    layer_norm,
    linear,
    positions,
)
from ..steps import Keeps, Role, step
from . import architecture
from .bert import Bert, feed_forward
from .config import Count, Positive, Raw, Size, activation, config, derived, fixed, key
from .tasks import BASE, OWN

# Scores of a query with distances, and of a key with distances.
KINDS = ("c2p", "p2c")


@config
class DebertaV2(Bert):
    """Hyperparameters of DeBERTa V2, in forward order."""

    must_be_tied: bool | None = fixed(True)
    # embedding
    n_segments: Count = key("type_vocab_size", 0)
    d_embedding: Size = key("embedding_size", lambda c: c.d_model)
    has_places: bool = key("position_biased_input", True)
    # distances
    relative: bool = key("relative_attention", False)
    farthest: int = key("max_relative_positions", -1)
    buckets: int = key("position_buckets", -1)
    n_distances: Size = derived(lambda c: c.rows_of_distances())
    kinds_of_scores: list[str] = key("pos_att_type", lambda c: [])
    norm_of_distances: str = key("norm_rel_ebd", "none")
    shares_keys: bool = key("share_att_key", False)
    # layers
    norm_eps: Positive = key("layer_norm_eps", 1e-7)
    taps: Count = key("conv_kernel_size", 0)
    conv_groups: Literal[1] = key("conv_groups", 1)
    conv_activation: str = key("conv_act", "tanh")
    legacy: Literal[True] = key("legacy", True)
    trunk: str = fixed("deberta")

    ignored = Bert.ignored | frozenset(
        "attention_head_size cls_dropout pooler_dropout pooler_hidden_act pooler_hidden_size".split()
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The kinds of scores are a list, or words with a bar between them."""
        kinds = raw.get("pos_att_type")
        if isinstance(kinds, str):
            raw["pos_att_type"] = [kind.strip() for kind in kinds.lower().split("|")]
        return raw

    def rows_of_distances(self) -> int:
        """How many distances have a row, to both sides."""
        return 2 * (self.buckets if self.buckets > 0 else self.reach)

    @property
    def reach(self) -> int:
        """The longest distance with a position of its own."""
        return self.farthest if self.farthest > 0 else int(self.n_positions)

    def check(self) -> None:
        super().check()
        if self.conv_activation != "tanh":
            activation(self.conv_activation)
        if self.taps and int(self.taps) % 2 == 0:
            raise Problem(f"conv_kernel_size = {int(self.taps)} is even", "give an odd number of tokens, or 0")
        if self.buckets > 0 and (self.buckets < 4 or self.reach - 1 <= self.buckets // 2):
            raise Problem(
                f"position_buckets = {self.buckets} for distances up to {self.reach}: expected at least 4, and longer "
                "distances than half of them",
                "correct one of the two",
            )

    @property
    def kinds(self) -> list[str]:
        """A convolution is beside the first layer, if there is one."""
        first = "convolution" if self.taps else "layer"
        return [first] + ["layer"] * (self.n_layers - 1)

    @property
    def norms_distances(self) -> bool:
        """Whether the table of distances has a norm, which files hold also without the table."""
        return "layer_norm" in [word.strip() for word in self.norm_of_distances.lower().split("|")]

    @property
    def scored(self) -> list[str]:
        """The kinds of scores with distances."""
        return [kind for kind in KINDS if kind in self.kinds_of_scores]


HEADS = {
    "ForMaskedLM": OWN,
    "Model": BASE,
    "ForSequenceClassification": Task("sequence classification", "classify_context"),
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForQuestionAnswering": Task("question answering", "find_answer"),
    "ForMultipleChoice": Task("multiple choice", "classify_context", 1),
}


@architecture(
    "deberta-v2",
    config=DebertaV2,
    heads=HEADS,
    peft=Peft(("query_proj", "value_proj"), tied_head="cls.predictions.decoder", tables=("rel_embeddings",)),
)
def forward(w: Weights, ids: Array, c: DebertaV2, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    places = positions(ids, cache)
    x = embed_text(ids, places, w.at("deberta.embeddings"), c)
    rows, apart = rows_of(w.at("deberta.encoder"), c), distances(places, c)
    for kind, w_layer, _ in w.layers("deberta.encoder.layer", c.kinds, cache):
        x = layer(x, w_layer, c, rows, apart, w.at("deberta.encoder.conv") if kind == "convolution" else None)
    return prediction_head(x, w, c, last=last)


def embed_text(ids: Array, places: Array, w: Weights, c: DebertaV2) -> Array:
    """Each token's vector, with its position's and its segment's where they are used: [T] -> [T D]."""
    x = embed(ids, w, "word_embeddings.weight", c.vocab_size, c.d_embedding)
    if c.has_places:
        x = x + embed_positions(places, w, "position_embeddings.weight", c.n_positions, c.d_embedding)
    if c.n_segments:
        x = x + embed_segments(ids, w, "token_type_embeddings.weight", c.n_segments, c.d_embedding)
    if c.d_embedding != c.d_model:
        x = linear(x, w, "embed_proj", c.d_model)
    return layer_norm(x, w, "LayerNorm", c.norm_eps)


def rows_of(w: Weights, c: DebertaV2) -> Array | None:
    """The table of distances; None without relative attention, where only its norm is stored."""
    if c.relative:
        rows = w("rel_embeddings.weight", c.n_distances, c.d_model)
        return layer_norm(rows, w, "LayerNorm", c.norm_eps) if c.norms_distances else rows
    if c.norms_distances:
        for name in ("weight", "bias"):
            w(f"LayerNorm.{name}", c.d_model)
    return None


def distances(places: Array, c: DebertaV2) -> Array:
    """The row of the distance of each two tokens: [T] -> [T T]. Near ones have rows of their own, far ones share."""
    ahead = places[:, None] - places[None, :]
    if c.buckets > 0:
        middle = c.buckets // 2
        far = np.maximum(np.abs(ahead), middle).astype(np.float32)
        steps = np.ceil(np.log(far / middle) / math.log((c.reach - 1) / middle) * (middle - 1)) + middle
        ahead = np.where(np.abs(ahead) <= middle, ahead, (steps * np.sign(ahead)).astype(np.int64))
    span = int(c.n_distances) // 2
    return np.clip(ahead + span, 0, 2 * span - 1)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: DebertaV2, rows: Array | None, apart: Array, beside: Weights | None) -> Array:
    """One transformer block, with a norm after each half; a convolution may be beside it: [T D] -> [T D]."""
    y = c.norm(x + attention(x, w.at("attention"), c, rows, apart), w, 1)
    y = c.norm(y + feed_forward(y, w, c), w, 2)
    return y if beside is None else layer_norm(y + convolution(x, beside, c), beside, "LayerNorm", c.norm_eps)


def convolution(x: Array, w: Weights, c: DebertaV2) -> Array:
    """Mix all numbers of a token with those of the tokens beside it: [T D] -> [T D]."""
    mixed = convolve(x, w("conv.weight", c.d_model, c.d_model, c.taps), w("conv.bias", c.d_model), 1)
    return np.tanh(mixed) if c.conv_activation == "tanh" else activation(c.conv_activation)(mixed)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: DebertaV2, rows: Array | None, apart: Array) -> Array:
    """Let each token gather information from all tokens, including later ones: [T D] -> [T D]."""
    N, H = c.n_heads, c.d_head
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=True), N, H)
        for name in ("self.query_proj", "self.key_proj", "self.value_proj")
    )
    scale, bias = (H * (1 + len(c.scored))) ** -0.5, None
    for kind in c.scored:
        if rows is None:
            break
        part = "key" if kind == "c2p" else "query"
        name = f"self.{part}_proj" if c.shares_keys else f"self.pos_{part}_proj"
        of_rows = heads(linear(rows, w, name, c.d_model, bias=True), N, H)
        by_row = distance_scores(q, of_rows, apart) if kind == "c2p" else distance_scores(k, of_rows, apart.T)
        added = (by_row if kind == "c2p" else by_row.swapaxes(1, 2)) * scale
        bias = added if bias is None else bias + added
    return linear(attend(q, k, v, None, scale, bias), w, "output.dense", c.d_model, bias=True)


@step(Role.RELATIVE_BIAS, keeps=Keeps.NOTHING)
def distance_scores(x: Array, rows: Array, apart: Array) -> Array:
    """The score of each token against the distance to every other: [T N H], [R N H], [T S] -> [N T S]."""
    fits = np.einsum("tnh,rnh->tnr", x, rows, optimize=True)
    return np.take_along_axis(fits, apart[:, None, :], axis=2).swapaxes(0, 1)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: DebertaV2, *, last: bool) -> Array:
    """Transform the vector once more, and score every token of the vocabulary: [T D], [V D'] -> [T V], or [1 V]."""
    x = linear(last_row(x) if last else x, w, "cls.predictions.transform.dense", c.d_embedding, bias=True)
    x = layer_norm(activation(c.activation)(x), w, "cls.predictions.transform.LayerNorm", c.norm_eps)
    table = w("deberta.embeddings.word_embeddings.weight", c.vocab_size, c.d_embedding)
    return np.einsum("td,vd->tv", x, table, optimize=True) + w("cls.predictions.bias", c.vocab_size)
