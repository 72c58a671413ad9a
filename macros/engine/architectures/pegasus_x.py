"""PEGASUS-X: Pegasus whose encoder sees one block of the text, and some trained vectors that see all of it.

Every second layer shifts the blocks by half a block, so that tokens on both sides of a border share one. Source: arXiv
2208.04347; tensor names as transformers.
"""

from __future__ import annotations

import numpy as np

from ..dims import smallest
from ..errors import Problem
from ..facts import MODEL_TABLES, Peft
from ..interface import Array, KVCache, Weights
from ..ops import Full, attend, block_attention, causal_mask, layer_norm, linear, unembed
from ..steps import Holds, Role, step
from . import architecture
from .bart import NORM_EPS, Bart, feed_forward, must_be_even, project
from .config import Interval, Size, activation, config, fixed, key
from .tasks import BASE, OWN
from .xglm import sinusoids


@config
class WithoutBiases(Bart):
    """Hyperparameters of a translator whose attention has no biases, in forward order."""

    scale_embedding: bool = key("scale_embedding", True)
    attention_bias: bool = fixed(False)
    norm_first: bool = fixed(True)
    norm_embedding: bool = fixed(False)


@config
class PegasusX(WithoutBiases):
    """Hyperparameters of PEGASUS-X, in forward order."""

    n_positions: Size = key("max_position_embeddings", 16384)
    n_global: Size = key("num_global_tokens", 32)
    block: Interval = key("block_size", 512)
    staggers: bool = key("stagger_local_blocks", True)
    final_bias: bool = fixed(False)

    caveat = Bart.caveat + " Its tokens see those of their block, and the last block is filled up."

    def check(self) -> None:
        super().check()
        must_be_even(self.d_model)
        if self.staggers and self.block % 2:
            raise Problem(
                f"block_size = {int(self.block)} is odd", "every second layer moves by half of it: correct it"
            )

    @property
    def encoder_kinds(self) -> list[str]:
        """Whether each layer of the encoder moves its blocks."""
        return ["moved" if self.staggers and i % 2 else "layer" for i in range(self.n_encoder_layers)]

    def placed(self, x: Array, earlier: int, stack: Weights) -> Array:
        return x + sinusoids(np.arange(x.shape[0], like=x) + earlier, self.d_model)


HEADS = {"ForConditionalGeneration": OWN, "Model": BASE}


@architecture(
    "pegasus_x",
    config=PegasusX,
    heads=HEADS,
    peft=Peft(tied_tables=MODEL_TABLES, tables=("embed_global",)),
)
def forward(w: Weights, ids: Array, c: PegasusX, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    x = c.embedded(ids, cache.length, w, "decoder")
    kinds = ["layer"] * c.n_decoder_layers
    for _, w_layer, kept in w.layers("model.decoder.layers", kinds, cache, "decoder", c.n_encoder_layers):
        x = decoder_layer(x, w_layer, c, kept, read)
    logits = unembed(c.finished(x, w, "decoder"), w, c.head, c.vocabulary, last=last)
    c.spare(w)
    return logits


def encode(source: Array, w: Weights, c: PegasusX, cache: KVCache) -> Array:
    """The encoder's output for a text: [M] -> [M D]."""
    x = c.embedded(source, 0, w, "encoder")
    numbers = np.arange(c.n_global * smallest(1, source.shape[0]), like=source)
    g = np.take(w("model.encoder.embed_global.weight", c.n_global, c.d_model), numbers, axis=0)
    for kind, w_layer, _ in w.layers("model.encoder.layers", c.encoder_kinds, cache, "encoder"):
        x, g = encoder_layer(x, g, w_layer, c, kind)
    return c.finished(x, w, "encoder")


@step(Role.LAYER)
def encoder_layer(x: Array, g: Array, w: Weights, c: PegasusX, kind: str) -> tuple[Array, Array]:
    """One block of the encoder, for tokens and for the vectors that see all of them: [M D], [G D] -> [M D], [G D]."""
    y = layer_norm(x, w, "self_attn_layer_norm", NORM_EPS)
    z = layer_norm(g, w, "global_self_attn_layer_norm", NORM_EPS)
    y, z = attention(y, z, w.at("self_attn"), c, kind)
    return network(x + y, w, c), network(g + z, w, c)


def network(x: Array, w: Weights, c: PegasusX) -> Array:
    """Add the output of the encoder's feed-forward network to the vectors: [M D] -> [M D]."""
    y = layer_norm(x, w, "final_layer_norm", NORM_EPS)
    return x + feed_forward(y, w, c.d_ff_encoder, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, g: Array, w: Weights, c: PegasusX, kind: str) -> tuple[Array, Array]:
    """Let each token gather information from its block, and some vectors from all: [M D], [G D] -> [M D], [G D]."""
    N, H, D = c.n_encoder_heads, c.d_encoder_head, c.d_model
    q, k, v = (project(x, w, name, N, H, bias=False) for name in ("q_proj", "k_proj", "v_proj"))
    gq, gk, gv = (project(g, w, name, N, H, bias=False) for name in ("q_proj", "k_proj", "v_proj"))
    seen = attend(gq, np.concatenate([gk, k], axis=0), np.concatenate([gv, v], axis=0), None, H**-0.5)
    mixed = block_attention(q * H**-0.5, k, v, c.block, c.block // 2 if kind == "moved" else 0, [gk, gv])
    return linear(mixed, w, "out_proj", D), linear(seen, w, "out_proj", D)


@step(Role.LAYER)
def decoder_layer(x: Array, w: Weights, c: WithoutBiases, cache: KVCache, read: Array) -> Array:
    """One block of the decoder: [T D] -> [T D]."""
    x = x + causal_attention(layer_norm(x, w, "self_attn_layer_norm", NORM_EPS), w.at("self_attn"), c, cache)
    y = layer_norm(x, w, "encoder_attn_layer_norm", NORM_EPS)
    x = x + cross_attention(y, w.at("encoder_attn"), c, cache, read)
    y = layer_norm(x, w, "final_layer_norm", NORM_EPS)
    return x + feed_forward(y, w, c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def causal_attention(x: Array, w: Weights, c: WithoutBiases, cache: KVCache) -> Array:
    """Let each token gather information from itself and those before it: [T D] -> [T D]."""
    N, H = c.n_heads, c.d_head
    q, k, v = (project(x, w, name, N, H, bias=c.attention_bias) for name in ("q_proj", "k_proj", "v_proj"))
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(
        attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5), w, "out_proj", c.d_model, bias=c.attention_bias
    )


@step(Role.CROSS_ATTENTION)
def cross_attention(x: Array, w: Weights, c: WithoutBiases, cache: KVCache, read: Array) -> Array:
    """Let each token gather information from the encoder's output: [T D], [M D] -> [T D]."""
    N, H = c.n_heads, c.d_head
    q = project(x, w, "q_proj", N, H, bias=c.attention_bias)
    k = cache.fill(Holds.SOURCE_KEYS, project(read, w, "k_proj", N, H, bias=c.attention_bias), c.n_source)
    v = cache.fill(Holds.SOURCE_VALUES, project(read, w, "v_proj", N, H, bias=c.attention_bias), c.n_source)
    return linear(attend(q, k, v, None, H**-0.5), w, "out_proj", c.d_model, bias=c.attention_bias)
