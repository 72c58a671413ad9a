"""ModernBERT as a decoder (Ettin): its block with causal attention.

Source: arXiv 2507.11412; tensor names as transformers 5.
"""

from __future__ import annotations

import numpy as np

from ..facts import Peft, Task
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    last_row,
    linear,
    positions,
    rope_table,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import activation, config
from .modernbert import ModernBert, Side, feed_forward
from .tasks import BASE, OWN


@config
class ModernBertDecoder(ModernBert):
    """Hyperparameters of ModernBERT as a decoder, in forward order."""

    caveat = ""
    ignored = ModernBert.ignored | {"sliding_window"}


def mask_of(kind: Side) -> Mask:
    """The mask of a kind of layer: a window reaches as far back as an encoder's does on each side."""
    return Full() if kind.reach is None else SlidingWindow(kind.reach)


HEADS = {
    "ForCausalLM": OWN,
    "Model": BASE,
    "ForSequenceClassification": Task("sequence classification", "classify_last_changed"),
}


@architecture("modernbert-decoder", config=ModernBertDecoder, heads=HEADS, peft=Peft(tied_head="decoder"))
def forward(w: Weights, ids: Array, c: ModernBertDecoder, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embeddings.tok_embeddings.weight", c.vocab_size, c.d_model)
    x = c.norm(x, w, "model.embeddings.norm")
    places = positions(ids, cache)
    tables = {r: rope_table(places, c.d_head, c.rope_of(Side(r, False))) for r in {k.reach: 0 for k in c.kinds}}
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, tables[kind.reach])
    return prediction_head(c.norm(x, w, "model.final_norm"), w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: ModernBertDecoder, kind: Side, table: RopeTable) -> Array:
    """One transformer block; the first one's attention has no norm, the embeddings were normed: [T D] -> [T D]."""
    y = x if kind.is_first else c.norm(x, w, "attn_norm")
    x = x + attention(y, w.at("attn"), cache, c, mask_of(kind), table)
    return x + feed_forward(c.norm(x, w, "mlp_norm"), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: ModernBertDecoder, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=c.attention_bias), c.n_heads, c.d_head)
        for name in ("q_proj", "k_proj", "v_proj")
    )
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "Wo", c.d_model, bias=c.attention_bias)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: ModernBertDecoder, *, last: bool) -> Array:
    """Transform the vector once more, and score every token of the vocabulary: [T D], [V D] -> [T V], or [1 V]."""
    x = linear(last_row(x) if last else x, w, "lm_head.dense", c.d_model, bias=c.head_bias)
    x = c.norm(activation(c.head_activation)(x), w, "lm_head.norm")
    table = "model.embeddings.tok_embeddings.weight" if c.tied else "decoder.weight"
    logits = np.einsum("td,vd->tv", x, w(table, c.vocab_size, c.d_model), optimize=True)
    return logits + w("decoder.bias", c.vocab_size) if c.decoder_bias else logits
