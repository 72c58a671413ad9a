"""ConvBERT: half of the heads of BERT's attention are convolutions whose taps depend on the words around a token.

The text is read at once: nothing is kept for a next step. Source: arXiv 2008.02496; tensor names as transformers'
model for masked words (ConvBertForMaskedLM).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import Problem
from ..facts import Peft, Task
from ..interface import Array, KVCache, Weights
from ..ops import (
    embed,
    embed_positions,
    embed_segments,
    gelu,
    heads,
    last_row,
    layer_norm,
    linear,
    positions,
    scores,
    softmax,
    weighted_sum,
)
from ..ops.recurrence import centered_conv
from ..steps import Role, step
from . import architecture
from .bert import Bert
from .config import Interval, Size, Taps, activation, config, derived, fixed, key
from .tasks import BASE, OWN


@config
class ConvBert(Bert):
    """Hyperparameters of ConvBERT, in forward order."""

    d_embedding: Size = key("embedding_size", 768)
    all_heads: Interval = key("num_attention_heads")
    head_ratio: Interval = key("head_ratio", 2)
    n_heads: Size = derived(lambda c: max(c.all_heads // c.head_ratio, 1))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads // 2)
    conv_width: Taps = key("conv_kernel_size", 9)
    n_groups: Interval = key("num_groups", 1)
    must_be_tied: bool | None = fixed(True)
    trunk: str = fixed("convbert")

    ignored = Bert.ignored | {"summary_last_dropout"}

    def check(self) -> None:
        super().check()
        if self.conv_width % 2 == 0:
            raise Problem(f"conv_kernel_size = {int(self.conv_width)}: expected an odd number", "correct the value")
        if self.d_model != 2 * self.n_heads * self.d_head:
            raise Problem(
                "the heads do not divide hidden_size into halves", "correct num_attention_heads or head_ratio"
            )
        self.must_divide("n_groups", "d_model")
        self.must_divide("n_groups", "d_ff")


@step(Role.TASK_HEAD)
def classify(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its first token's vector, changed once more: [T D] -> [1 C]."""
    y = activation(c.activation)(linear(x[:1], w, "classifier.dense", x.shape[-1], bias=True))
    return linear(y, w, "classifier.out_proj", labels, bias=True)


HEADS = {
    "ForMaskedLM": OWN,
    "Model": BASE,
    "ForSequenceClassification": Task("sequence classification", classify),
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForQuestionAnswering": Task("question answering", "find_answer"),
}


@architecture("convbert", config=ConvBert, heads=HEADS, peft=Peft(tied_head="generator_lm_head"))
def forward(w: Weights, ids: Array, c: ConvBert, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    tables = w.at("convbert.embeddings")
    x = embed(ids, tables, "word_embeddings.weight", c.vocab_size, c.d_embedding)
    x = x + embed_segments(ids, tables, "token_type_embeddings.weight", c.n_segments, c.d_embedding)
    x = x + embed_positions(positions(ids, cache), tables, "position_embeddings.weight", c.n_positions, c.d_embedding)
    x = layer_norm(x, tables, "LayerNorm", c.norm_eps)
    if c.d_embedding != c.d_model:
        x = linear(x, w, "convbert.embeddings_project", c.d_model, bias=True)
    for _, w_layer, _ in w.layers("convbert.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return prediction_head(x, w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: ConvBert) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    x = c.norm(x + attention(x, w.at("attention"), c), w, 1)
    return c.norm(x + feed_forward(x, w, c), w, 2)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: ConvBert) -> Array:
    """Let each token gather information from all tokens, and from those around it: [T D] -> [T D]."""
    at, T, N, H = w.at("self"), x.shape[0], c.n_heads, c.d_head
    q, k, v = (linear(x, at, name, N * H, bias=True) for name in ("query", "key", "value"))
    mixed = weighted_sum(softmax(scores(heads(q, N, H), heads(k, N, H), H**-0.5)), heads(v, N, H))
    near = np.concatenate([mixed, convolution(x, q, at, c)], axis=1)
    return linear(near.reshape(T, c.d_model), w, "output.dense", c.d_model, bias=True)


@step(Role.SHORT_CONVOLUTION)
def convolution(x: Array, q: Array, w: Weights, c: ConvBert) -> Array:
    """Mix each head's values of the tokens around each, by shares they decide: [T D], [T N·H] -> [T N H]."""
    T, N, H, W = x.shape[0], c.n_heads, c.d_head, c.conv_width
    spans = linear_of_channels(centered_conv(x, w, "key_conv_attn_layer.depthwise", W, bias=False), w, N * H)
    taps = softmax(linear(spans * q, w, "conv_kernel_layer", N * W, bias=True).reshape(T, N, W))
    values = linear(x, w, "conv_out_layer", N * H, bias=True)
    beside = np.zeros((W // 2, N * H), dtype=x.dtype, like=x)
    rows = np.concatenate([beside, values, beside], axis=0)
    windows = np.stack([rows[tap : tap + T] for tap in range(W)], axis=1).reshape(T, W, N, H)
    return np.einsum("twnh,tnw->tnh", windows, taps, optimize=True)


def linear_of_channels(x: Array, w: Weights, width: int) -> Array:
    """Mix the channels of each token: [T D], [A D 1], [A 1] -> [T A]."""
    weight = w("key_conv_attn_layer.pointwise.weight", width, x.shape[1], 1)[:, :, 0]
    return np.einsum("td,ad->ta", x, weight, optimize=True) + w("key_conv_attn_layer.bias", width, 1)[:, 0]


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: ConvBert) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return in_groups(
        activation(c.activation)(in_groups(x, w, "intermediate.dense", c.d_ff, c)), w, "output.dense", c.d_model, c
    )


def in_groups(x: Array, w: Weights, name: str, width: int, c: ConvBert) -> Array:
    """A linear layer, or one for each group of channels: [T D], [G D/G F/G], [F] -> [T F]."""
    if c.n_groups == 1:
        return linear(x, w, name, width, bias=True)
    T, G = x.shape[0], c.n_groups
    inner = x.reshape(T, G, x.shape[1] // G)
    y = np.einsum("tgi,gio->tgo", inner, w(f"{name}.weight", G, inner.shape[2], width // G), optimize=True)
    return y.reshape(T, width) + w(f"{name}.bias", width)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: ConvBert, *, last: bool) -> Array:
    """Narrow the vector, and score every token of the vocabulary: [T D] -> [T D'], [V D'] -> [T V], or [1 V]."""
    x = gelu(linear(last_row(x) if last else x, w, "generator_predictions.dense", c.d_embedding, bias=True))
    x = layer_norm(x, w, "generator_predictions.LayerNorm", c.norm_eps)
    table = w("convbert.embeddings.word_embeddings.weight", c.vocab_size, c.d_embedding)
    return np.einsum("td,vd->tv", x, table, optimize=True) + w("generator_lm_head.bias", c.vocab_size)
