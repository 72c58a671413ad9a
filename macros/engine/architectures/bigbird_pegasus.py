"""BigBird-Pegasus: Pegasus with an encoder that attends to a long text in blocks, as BigBird does.

Source: arXiv 2007.14062; tensor names as transformers.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..facts import MODEL_TABLES, Peft, Task
from ..interface import Array, KVCache, Weights
from ..ops import attend, layer_norm, linear, sparse_block_attention, unembed
from ..steps import Role, step
from . import architecture
from .bart import NORM_EPS, feed_forward, project
from .config import Interval, Offset, activation, config, fixed, key
from .pegasus_x import WithoutBiases, decoder_layer
from .tasks import BASE, OWN


@config
class BigBirdPegasus(WithoutBiases):
    """Hyperparameters of BigBird-Pegasus, in forward order."""

    activation: str = key("activation_function", "gelu_new")
    reserved: int = fixed(0)
    sees: Literal["block_sparse", "original_full"] = key("attention_type", "block_sparse")
    block: Interval = key("block_size", 64)
    n_random: Offset = key("num_random_blocks", 3)
    attention_bias: bool = key("use_bias", False)

    caveat = WithoutBiases.caveat + " A long text is seen in blocks, the last of which is filled up."
    ignored = WithoutBiases.ignored | {"gradient_checkpointing"}

    def finished(self, x: Array, w: Weights, stack: str) -> Array:
        return layer_norm(x, w, f"model.{stack}.layernorm_embedding", NORM_EPS)


HEADS = {
    "ForConditionalGeneration": OWN,
    "Model": BASE,
    "ForSequenceClassification": Task("sequence classification", "classify_written"),
    "ForQuestionAnswering": Task("question answering", "find_answer", 2),
}


@architecture(
    "bigbird_pegasus",
    config=BigBirdPegasus,
    heads=HEADS,
    peft=Peft(tied_tables=MODEL_TABLES),
)
def forward(w: Weights, ids: Array, c: BigBirdPegasus, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    x = c.embedded(ids, cache.length, w, "decoder")
    kinds = ["layer"] * c.n_decoder_layers
    for _, w_layer, kept in w.layers("model.decoder.layers", kinds, cache, "decoder", c.n_encoder_layers):
        x = decoder_layer(x, w_layer, c, kept, read)
    logits = unembed(c.finished(x, w, "decoder"), w, c.head, c.vocabulary, last=last)
    c.spare(w)
    return logits + w.buffer("final_logits_bias", 1, c.vocabulary, counted=False)


def encode(source: Array, w: Weights, c: BigBirdPegasus, cache: KVCache) -> Array:
    """The encoder's output for a text: [M] -> [M D]."""
    x = c.embedded(source, 0, w, "encoder")
    for _, w_layer, _ in w.layers("model.encoder.layers", ["layer"] * c.n_encoder_layers, cache, "encoder"):
        x = encoder_layer(x, w_layer, c)
    return c.finished(x, w, "encoder")


@step(Role.LAYER)
def encoder_layer(x: Array, w: Weights, c: BigBirdPegasus) -> Array:
    """One block of the encoder: [M D] -> [M D]."""
    x = x + attention(layer_norm(x, w, "self_attn_layer_norm", NORM_EPS), w.at("self_attn"), c)
    y = layer_norm(x, w, "final_layer_norm", NORM_EPS)
    return x + feed_forward(y, w, c.d_ff_encoder, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: BigBirdPegasus) -> Array:
    """Let each token gather information from all tokens, or from those of some blocks: [M D] -> [M D]."""
    N, H = c.n_encoder_heads, c.d_encoder_head
    q, k, v = (project(x, w, f"self.{name}", N, H, bias=c.attention_bias) for name in ("query", "key", "value"))
    if c.sees == "original_full":
        mixed = attend(q, k, v, None, H**-0.5)
    else:
        mixed = sparse_block_attention(q * H**-0.5, k, v, c.block, c.n_random)
    return linear(mixed, w, "output", c.d_model, bias=c.attention_bias)
