"""BigBird: BERT's encoder, in which a token of a long text attends to blocks: the first, the last, its neighbors, and
some others.

A text of few blocks is seen as a whole, and so is any where the config says so (`original_full`). Source: arXiv
2007.14062; tensor names as transformers' model for masked words (BigBirdForMaskedLM), which stores a pooler that it
does not use.
"""

from __future__ import annotations

from typing import Literal

from ..facts import Peft, Task
from ..interface import Array, KVCache, Weights
from ..ops import attend, embed, embed_positions, embed_segments, heads, linear, positions, sparse_block_attention
from ..steps import Role, step
from . import architecture
from .bert import Bert, feed_forward, prediction_head
from .config import Interval, Offset, config, key
from .tasks import OWN


@config
class BigBird(Bert):
    """Hyperparameters of BigBird, in forward order."""

    activation: str = key("hidden_act", "gelu_new")
    rescales: bool = key("rescale_embeddings", False)
    sees: Literal["block_sparse", "original_full"] = key("attention_type", "block_sparse")
    block: Interval = key("block_size", 64)
    n_random: Offset = key("num_random_blocks", 3)
    attention_bias: bool = key("use_bias", True)

    caveat = Bert.caveat + " A long text is seen in blocks, the last of which is filled up."


HEADS = {
    "ForMaskedLM": OWN,
    "Model": Task("the last hidden states and the text's vector", "pool_alone", 0, ""),
    "ForSequenceClassification": Task("sequence classification", "classify_activated"),
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForMultipleChoice": Task("multiple choice", "classify_alone", 1),
}


@architecture("big_bird", config=BigBird, heads=HEADS, peft=Peft(tied_head="cls.predictions.decoder"))
def forward(w: Weights, ids: Array, c: BigBird, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    tables = w.at("bert.embeddings")
    x = embed(ids, tables, "word_embeddings.weight", c.vocab_size, c.d_model)
    x = x * c.d_model**0.5 if c.rescales else x
    x = x + embed_segments(ids, tables, "token_type_embeddings.weight", c.n_segments, c.d_model)
    x = x + embed_positions(positions(ids, cache), tables, "position_embeddings.weight", c.n_positions, c.d_model)
    x = c.norm(x, w.at("bert"), 0)
    for _, w_layer, _ in w.layers("bert.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    w("bert.pooler.weight", c.d_model, c.d_model)
    w("bert.pooler.bias", c.d_model)
    return prediction_head(x, w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: BigBird) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    x = c.norm(x + attention(x, w.at("attention"), c), w, 1)
    return c.norm(x + feed_forward(x, w, c), w, 2)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: BigBird) -> Array:
    """Let each token gather information from all tokens, or from those of some blocks: [T D] -> [T D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=c.attention_bias), c.n_heads, c.d_head)
        for name in ("self.query", "self.key", "self.value")
    )
    if c.sees == "original_full":
        mixed = attend(q, k, v, None, c.d_head**-0.5)
    else:
        mixed = sparse_block_attention(q * c.d_head**-0.5, k, v, c.block, c.n_random)
    return linear(mixed, w, "output.dense", c.d_model, bias=True)
