"""ChatGLM 2, 3 and GLM-4 9B in their makers' format: GLM's block, with queries, keys and values in one matrix.

The first half of each head turns, neighbors together. Source: arXiv 2406.12793; THUDM/chatglm3-6b, whose
modeling_chatglm.py and tensor names these are.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..facts import Gguf, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope_pairs,
    attend,
    causal_mask,
    embed,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    silu,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Interval, Positive, Size, config, derived, key
from .tasks import DECODER, OWN


@config
class ChatGLM(Config):
    """Hyperparameters of ChatGLM 2 and 3, in forward order."""

    # embedding
    vocab_size: Size = key("padded_vocab_size", also=("vocab_size",))
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_layers", also=("num_hidden_layers",))
    norm_eps: Positive = key("layernorm_epsilon", 1e-5)
    rmsnorm: Literal[True] = key("rmsnorm", True)
    norm_first: Literal[False] = key("apply_residual_connection_post_layernorm", False)
    has_final_norm: Literal[True] = key("post_layer_norm", True)
    # attention
    n_heads: Size = key("num_attention_heads")
    grouped: bool = key("multi_query_attention", False)
    groups: Interval = key("multi_query_group_num", 1)
    n_kv_heads: Size = derived(lambda c: c.groups if c.grouped else c.n_heads)
    d_head: Size = key("kv_channels", 128)
    qkv_bias: bool = key("add_qkv_bias", False)
    bias: bool = key("add_bias_linear", False)
    rope_ratio: Positive = key("rope_ratio", 1.0)
    original_rope: Literal[True] = key("original_rope", True)
    # feed-forward
    d_ff: Size = key("ffn_hidden_size")
    # head
    tied: bool = key("tie_word_embeddings", False)

    ignored = frozenset(
        """apply_query_key_layer_scaling attention_softmax_in_fp32 bias_dropout_fusion classifier_dropout
        fp32_residual_connection interleaved_qkv num_key_value_heads pre_seq_len prefix_projection quantization_bit
        seq_length""".split()
    )

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")

    @property
    def rope(self) -> Rope:
        return Rope(10_000.0 * self.rope_ratio, partial=0.5)


@architecture(
    "chatglm",
    config=ChatGLM,
    gguf=Gguf("chatglm", outside={"output_layer": "output"}),
    heads=DECODER | {"Model": OWN, "ForConditionalGeneration": OWN},
    peft=Peft(("query_key_value",)),
)
def forward(w: Weights, ids: Array, c: ChatGLM, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    name = "transformer.embedding.word_embeddings.weight"
    x = embed(ids, w, name, c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("transformer.encoder.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = rms_norm(x, w, "transformer.encoder.final_layernorm", c.norm_eps)
    return unembed(x, w, name if c.tied else "transformer.output_layer.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: ChatGLM, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attention"), cache, c, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: ChatGLM, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    both = linear(x, w, "query_key_value", N * H + 2 * K * H, bias=c.bias or c.qkv_bias)
    q, k, v = np.split(both, [N * H, N * H + K * H], axis=-1)
    q, k, v = apply_rope_pairs(heads(q, N, H), table), apply_rope_pairs(heads(k, K, H), table), heads(v, K, H)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5), w, "dense", c.d_model, bias=c.bias)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: ChatGLM) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T 2F] -> [T F] -> [T D]."""
    gate, up = np.split(linear(x, w, "dense_h_to_4h", 2 * c.d_ff, bias=c.bias), 2, axis=-1)
    return linear(silu(gate) * up, w, "dense_4h_to_h", c.d_model, bias=c.bias)
