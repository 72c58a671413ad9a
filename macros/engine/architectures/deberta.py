"""DeBERTa: V2's block with queries, keys and values in one matrix, head by head, and relative positions as plain
numbers.

Of the table of distances a text needs those that it has. Source: arXiv 2006.03654; tensor names as transformers' model
for masked words (DebertaForMaskedLM).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..dims import smallest
from ..facts import Peft, Task
from ..interface import Array, KVCache, Weights
from ..ops import attend, embed_positions, heads, linear, positions
from ..steps import Role, step
from . import architecture
from .bert import feed_forward
from .config import Count, config, fixed, key
from .deberta_v2 import DebertaV2, distance_scores, embed_text, prediction_head
from .tasks import BASE, OWN


@config
class Deberta(DebertaV2):
    """Hyperparameters of DeBERTa, in forward order."""

    buckets: int = fixed(-1)
    norm_of_distances: str = fixed("none")
    shares_keys: bool = fixed(False)
    taps: Count = fixed(0)
    conv_groups: Literal[1] = fixed(1)
    conv_activation: str = fixed("tanh")
    talking_heads: Literal[False] = key("talking_head", False)

    ignored = (DebertaV2.ignored | {"padding_idx"}) - {"attention_head_size"}


HEADS = {
    "ForMaskedLM": OWN,
    "Model": BASE,
    "ForSequenceClassification": Task("sequence classification", "classify_context"),
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForQuestionAnswering": Task("question answering", "find_answer"),
}


@architecture("deberta", config=Deberta, heads=HEADS, peft=Peft(("in_proj",), tied_head="cls.predictions.decoder"))
def forward(w: Weights, ids: Array, c: Deberta, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    places = positions(ids, cache)
    x = embed_text(ids, places, w.at("deberta.embeddings"), c)
    farthest, span = c.n_distances // 2, smallest(ids.shape[0], c.n_distances // 2)
    apart = np.clip(places[:, None] - places[None, :] + span, 0, 2 * span - 1)
    rows = None
    if c.relative:
        needed = np.arange(2 * span, like=ids) + (farthest - span)
        rows = embed_positions(needed, w, "deberta.encoder.rel_embeddings.weight", c.n_distances, c.d_model)
    for _, w_layer, _ in w.layers("deberta.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, rows, apart)
    return prediction_head(x, w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Deberta, rows: Array | None, apart: Array) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    x = c.norm(x + attention(x, w.at("attention"), c, rows, apart), w, 1)
    return c.norm(x + feed_forward(x, w, c), w, 2)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Deberta, rows: Array | None, apart: Array) -> Array:
    """Let each token gather information from all tokens, including later ones: [T D] -> [T D]."""
    N, H, own = c.n_heads, c.d_head, w.at("self")
    q, k, v = np.split(heads(linear(x, own, "in_proj", 3 * c.d_model), N, 3 * H), 3, axis=-1)
    q, v = q + own("q_bias", c.d_model).reshape(N, H), v + own("v_bias", c.d_model).reshape(N, H)
    scale, bias = (H * (1 + len(c.kinds_of_scores))) ** -0.5, None
    if rows is not None and "c2p" in c.kinds_of_scores:
        bias = distance_scores(q, heads(linear(rows, own, "pos_proj", c.d_model), N, H), apart) * scale
    if rows is not None and "p2c" in c.kinds_of_scores:
        of_rows = heads(linear(rows, own, "pos_q_proj", c.d_model, bias=True), N, H)
        added = distance_scores(k, of_rows, apart.T).swapaxes(1, 2) * scale
        bias = added if bias is None else bias + added
    return linear(attend(q, k, v, None, scale, bias), w, "output.dense", c.d_model, bias=True)
