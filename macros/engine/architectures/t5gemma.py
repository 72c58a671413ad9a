"""T5Gemma: Gemma 2's block in an encoder, which sees to both sides, and in a decoder, which also looks at it.

Both have sizes of their own. `t5` explains the two lengths; the encoder's is the longest text that it was trained to
read. Source: arXiv 2504.06225; tensor names as transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from ..errors import Problem, shorten
from ..facts import Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Activation,
    Rope,
    SlidingWindow,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    linear,
    positions,
    repeat_kv,
    rms_norm,
    rope_table,
    scores,
    soft_cap,
    softmax,
    unembed,
    weighted_sum,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import COMMON_IGNORED, Config, Positive, Raw, Size, activation, config, full_every, key, masks_of
from .modernbert import window_mask
from .rope_config import fold_rope, read_rope
from .t5 import STACKS, T5
from .tasks import BASE, OWN

# What the table of a stack says besides, or says of both.
OF_STACKS = (COMMON_IGNORED - {"max_position_embeddings"}) | {
    "model_type",
    "tie_word_embeddings",
    "cross_attention_hidden_size",
}
# Keys without effect in one of them.
OF_ONE = {"encoder": {"final_logit_softcapping"}, "decoder": {"max_position_embeddings"}}


@config
class T5Gemma(Config):
    """Hyperparameters of T5Gemma, in forward order."""

    # embedding
    vocab_size: Size = key("decoder.vocab_size")
    n_read: Size = key("encoder.vocab_size")
    n_source: Size = key("encoder.max_position_embeddings", 8192)
    # encoder
    d_encoder: Size = key("encoder.hidden_size")
    n_encoder_layers: Size = key("encoder.num_hidden_layers")
    encoder_eps: Positive = key("encoder.rms_norm_eps", 1e-6)
    n_encoder_heads: Size = key("encoder.num_attention_heads")
    n_encoder_kv_heads: Size = key("encoder.num_key_value_heads", 4)
    d_encoder_head: Size = key("encoder.head_dim", 256)
    encoder_scalar: Positive = key("encoder.query_pre_attn_scalar", 256)
    encoder_window: Size | None = key("encoder.sliding_window", 4096)
    encoder_types: list[str] = key("encoder.layer_types", lambda c: full_every(2, c.n_encoder_layers))
    encoder_cap: Positive | None = key("encoder.attn_logit_softcapping", 50.0)
    encoder_bias: bool = key("encoder.attention_bias", False)
    encoder_rope: Raw = key("encoder.rope_parameters", lambda c: {})
    d_ff_encoder: Size = key("encoder.intermediate_size")
    encoder_activation: str = key("encoder.hidden_activation", "gelu_pytorch_tanh")
    # decoder
    d_model: Size = key("decoder.hidden_size")
    n_decoder_layers: Size = key("decoder.num_hidden_layers")
    norm_eps: Positive = key("decoder.rms_norm_eps", 1e-6)
    n_heads: Size = key("decoder.num_attention_heads")
    n_kv_heads: Size = key("decoder.num_key_value_heads", 4)
    d_head: Size = key("decoder.head_dim", 256)
    query_scalar: Positive = key("decoder.query_pre_attn_scalar", 256)
    sliding_window: Size | None = key("decoder.sliding_window", 4096)
    layer_types: list[str] = key("decoder.layer_types", lambda c: full_every(2, c.n_decoder_layers))
    attention_cap: Positive | None = key("decoder.attn_logit_softcapping", 50.0)
    attention_bias: bool = key("decoder.attention_bias", False)
    rope_parameters: Raw = key("decoder.rope_parameters", lambda c: {})
    d_ff: Size = key("decoder.intermediate_size")
    activation: str = key("decoder.hidden_activation", "gelu_pytorch_tanh")
    # head
    logit_cap: Positive | None = key("decoder.final_logit_softcapping", 30.0)
    tied: bool = key("tie_word_embeddings", True)

    caveat = T5.caveat
    rewritten = frozenset(STACKS)
    ignored = frozenset(
        {
            "classifier_dropout_rate",
            "decoder.dropout_rate",
            "dropout_rate",
            "encoder.dropout_rate",
            "vocab_size",
        }
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The keys of both tables side by side, each with the name of its stack."""
        for stack in STACKS:
            table: object = raw.pop(stack, {})
            if not isinstance(table, Mapping):
                raise Problem(f"{stack} = {shorten(table)}: expected a table", "write its keys below it")
            folded = fold_rope(dict(cast("Mapping[str, object]", table)))
            dropped = OF_STACKS | OF_ONE[stack]
            raw |= {f"{stack}.{name}": value for name, value in folded.items() if name not in dropped}
        return raw

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        self.must_divide("n_encoder_kv_heads", "n_encoder_heads")
        for name in (self.activation, self.encoder_activation):
            activation(name)

    @property
    def rope(self) -> tuple[Rope, Rope]:
        """The rotary embeddings of the encoder and of the decoder."""
        return read_rope(self.encoder_rope), read_rope(self.rope_parameters)

    @property
    def masks(self) -> tuple[list[Mask], list[Mask]]:
        """The masks of the layers of the encoder (both ways) and of the decoder."""
        return (
            masks_of(self.encoder_types, self.n_encoder_layers, self.encoder_window),
            masks_of(self.layer_types, self.n_decoder_layers, self.sliding_window),
        )


HEADS = {"ForConditionalGeneration": OWN, "Model": BASE}


@architecture("t5gemma", config=T5Gemma, heads=HEADS, peft=Peft(tied_head="lm_head.out_proj"))
def forward(w: Weights, ids: Array, c: T5Gemma, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_encoder), np.float32)
    x = embed(ids, w, "model.decoder.embed_tokens.weight", c.vocab_size, c.d_model) * c.d_model**0.5
    table = rope_table(positions(ids, cache), c.d_head, c.rope[1])
    for mask, w_layer, kept in w.layers("model.decoder.layers", c.masks[1], cache, "decoder", c.n_encoder_layers):
        x = decoder_layer(x, w_layer, c, kept, mask, table, read)
    x = norm(x, w, "model.decoder.norm", c.norm_eps)
    head = "model.decoder.embed_tokens.weight" if c.tied else "lm_head.out_proj.weight"
    logits = unembed(x, w, head, c.vocab_size, last=last)
    return logits if c.logit_cap is None else soft_cap(logits, c.logit_cap)


def encode(source: Array, w: Weights, c: T5Gemma, cache: KVCache) -> Array:
    """The encoder's output for a text, each token in the context of all: [M] -> [M D']."""
    x = embed(source, w, "model.encoder.embed_tokens.weight", c.n_read, c.d_encoder) * c.d_encoder**0.5
    table = rope_table(np.arange(source.shape[0], like=source), c.d_encoder_head, c.rope[0])
    for mask, w_layer, _ in w.layers("model.encoder.layers", c.masks[0], cache, "encoder"):
        x = encoder_layer(x, w_layer, c, mask, table)
    return norm(x, w, "model.encoder.norm", c.encoder_eps)


def norm(x: Array, w: Weights, name: str, eps: float) -> Array:
    """RMS norm whose weight is stored as its distance from 1: [… D] -> [… D]."""
    return rms_norm(x, w, name, eps, offset=1.0)


@step(Role.LAYER)
def encoder_layer(x: Array, w: Weights, c: T5Gemma, mask: Mask, table: RopeTable) -> Array:
    """One block of the encoder, with a norm before and after each half: [M D'] -> [M D']."""
    eps = c.encoder_eps
    y = attention(norm(x, w, "pre_self_attn_layernorm", eps), w.at("self_attn"), c, mask, table)
    x = x + norm(y, w, "post_self_attn_layernorm", eps)
    y = norm(x, w, "pre_feedforward_layernorm", eps)
    y = feed_forward(y, w.at("mlp"), c.d_ff_encoder, activation(c.encoder_activation))
    return x + norm(y, w, "post_feedforward_layernorm", eps)


@step(Role.LAYER)
def decoder_layer(x: Array, w: Weights, c: T5Gemma, cache: KVCache, mask: Mask, table: RopeTable, read: Array) -> Array:
    """One block of the decoder, with a norm before and after each part: [T D] -> [T D]."""
    eps = c.norm_eps
    y = causal_attention(norm(x, w, "pre_self_attn_layernorm", eps), w.at("self_attn"), c, cache, mask, table)
    x = x + norm(y, w, "post_self_attn_layernorm", eps)
    y = cross_attention(norm(x, w, "pre_cross_attn_layernorm", eps), w.at("cross_attn"), c, cache, read)
    x = x + norm(y, w, "post_cross_attn_layernorm", eps)
    y = norm(x, w, "pre_feedforward_layernorm", eps)
    y = feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))
    return x + norm(y, w, "post_feedforward_layernorm", eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: T5Gemma, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from all tokens, including later ones: [M D'] -> [M D']."""
    N, K, H, b = c.n_encoder_heads, c.n_encoder_kv_heads, c.d_encoder_head, c.encoder_bias
    q, k = heads(linear(x, w, "q_proj", N * H, bias=b), N, H), heads(linear(x, w, "k_proj", K * H, bias=b), K, H)
    v = repeat_kv(heads(linear(x, w, "v_proj", K * H, bias=b), K, H), N)
    fit = scores(apply_rope(q, table), repeat_kv(apply_rope(k, table), N), c.encoder_scalar**-0.5)
    fit = fit if c.encoder_cap is None else soft_cap(fit, c.encoder_cap)
    fit = window_mask(fit, int(mask.size)) if isinstance(mask, SlidingWindow) else fit
    mixed = weighted_sum(softmax(fit), v)
    return linear(mixed.reshape(x.shape[0], N * H), w, "o_proj", c.d_encoder, bias=b)


@step(Role.ATTENTION)
def causal_attention(x: Array, w: Weights, c: T5Gemma, cache: KVCache, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and those before it: [T D] -> [T D]."""
    N, K, H, b = c.n_heads, c.n_kv_heads, c.d_head, c.attention_bias
    q, k = heads(linear(x, w, "q_proj", N * H, bias=b), N, H), heads(linear(x, w, "k_proj", K * H, bias=b), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=b), K, H)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.query_scalar**-0.5, cap=c.attention_cap)
    return linear(mixed, w, "o_proj", c.d_model, bias=b)


@step(Role.CROSS_ATTENTION)
def cross_attention(x: Array, w: Weights, c: T5Gemma, cache: KVCache, read: Array) -> Array:
    """Let each token gather information from the encoder's output: [T D], [M D'] -> [T D]."""
    N, K, H, b = c.n_heads, c.n_kv_heads, c.d_head, c.attention_bias
    q = heads(linear(x, w, "q_proj", N * H, bias=b), N, H)
    k = cache.fill(Holds.SOURCE_KEYS, heads(linear(read, w, "k_proj", K * H, bias=b), K, H), c.n_source)
    v = cache.fill(Holds.SOURCE_VALUES, heads(linear(read, w, "v_proj", K * H, bias=b), K, H), c.n_source)
    return linear(attend(q, k, v, None, c.query_scalar**-0.5, cap=c.attention_cap), w, "o_proj", c.d_model, bias=b)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, width: int, act: Activation) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    return linear(act(linear(x, w, "gate_proj", width)) * linear(x, w, "up_proj", width), w, "down_proj", x.shape[-1])
