"""Falcon: one key/value head (7B) or a few (40B, 180B) in one fused matrix, both halves of the block in parallel.

Source: arXiv 2311.16867; tensor names as the published files.
"""

from __future__ import annotations

from ..facts import Gguf, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    alibi,
    apply_rope,
    attend,
    causal_mask,
    embed,
    layer_norm,
    linear,
    positions,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Raw, Size, activation, config, derived, key
from .rope_config import OLDER_ROPE_KEYS, read_rope
from .tasks import OLD_CLASSIFIER


@config
class Falcon(Config):
    """Hyperparameters of Falcon, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers", also=("n_layer",))
    norm_eps: Positive = key("layer_norm_epsilon", 1e-5)
    new_block: bool = key("new_decoder_architecture", False)
    norms_side_by_side: int | None = key("num_ln_in_parallel_attn", None)
    parallel: bool = key("parallel_attn", True)
    bias: bool = key("bias", False)
    # attention
    n_heads: Size = key("num_attention_heads", also=("n_head",))
    multi_query: bool = key("multi_query", True)
    published_kv_heads: Size | None = key("num_kv_heads", None, also=("n_head_kv",))
    n_kv_heads: Size = derived(lambda c: 1 if c.multi_query and not c.new_block else c.published_kv_heads or c.n_heads)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    alibi: bool = key("alibi", False)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # feed-forward
    d_ff: Size = key("ffn_hidden_size", lambda c: 4 * c.d_model)
    activation: str = key("activation", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    rewritten = OLDER_ROPE_KEYS
    ignored = frozenset({"apply_residual_connection_post_layernorm"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        self.must_divide("n_kv_heads", "n_heads")
        activation(self.activation)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)

    @property
    def two_norms(self) -> bool:
        """Whether each half has its own norm of the same input."""
        return self.new_block and (2 if self.norms_side_by_side is None else self.norms_side_by_side) == 2


GGUF = Gguf("falcon", {"ln_attn": "attn_norm_2", "ln_mlp": "attn_norm"})


@architecture(
    "falcon",
    config=Falcon,
    scaled_by_awq="dense_h_to_4h",
    gguf=GGUF,
    heads=OLD_CLASSIFIER,
    peft=Peft(("query_key_value",), own_linear=True),
    classes={"falcon": "RWForCausalLM"},  # before transformers had it; vLLM, models/registry.py
)
def forward(w: Weights, ids: Array, c: Falcon, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.word_embeddings.weight", c.vocab_size, c.d_model)
    table = None if c.alibi else rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("transformer.h", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = layer_norm(x, w, "transformer.ln_f", c.norm_eps)
    return unembed(x, w, "transformer.word_embeddings.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Falcon, table: RopeTable | None) -> Array:
    """One transformer block, its halves in parallel or one after the other: [T D] -> [T D]."""
    y = layer_norm(x, w, "ln_attn" if c.two_norms else "input_layernorm", c.norm_eps)
    attended = attention(y, w.at("self_attention"), cache, c, table)
    if c.two_norms:
        y = layer_norm(x, w, "ln_mlp", c.norm_eps)
    elif not c.parallel and not c.new_block:
        y = layer_norm(x + attended, w, "post_attention_layernorm", c.norm_eps)
    return x + attended + feed_forward(y, w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Falcon, table: RopeTable | None) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    T, K, H, shared = x.shape[0], c.n_kv_heads, c.d_head, c.n_heads // c.n_kv_heads
    qkv = linear(x, w, "query_key_value", (c.n_heads + 2 * K) * H, bias=c.bias).reshape(T, K, shared + 2, H)
    q = qkv[:, :, :-2].reshape(T, c.n_heads, H)
    k, v = qkv[:, :, -2], qkv[:, :, -1]
    if table is not None:
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    far = alibi(k, c.n_heads) * H**-0.5 if c.alibi else None
    return linear(
        attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5, bias=far), w, "dense", c.d_model, bias=c.bias
    )


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Falcon) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "dense_h_to_4h", c.d_ff, bias=c.bias))
    return linear(wide, w, "dense_4h_to_h", c.d_model, bias=c.bias)
