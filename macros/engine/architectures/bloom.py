"""BLOOM: no position table; a bias on the scores (ALiBi) tells how far away a token is. The embedding has a norm.

Source: arXiv 2211.05100, 2108.12409 (ALiBi); tensor names as transformers' BloomForCausalLM.
"""

from __future__ import annotations

from ..facts import Gguf, Peft
from ..interface import Array, KVCache, Weights
from ..ops import Full, alibi, attend, causal_mask, embed, gelu_tanh, layer_norm, linear, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Size, config, derived, key
from .tasks import OLD_CLASSIFIER


@config
class Bloom(Config):
    """Hyperparameters of BLOOM, in forward order."""

    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size", also=("n_embed",))
    n_layers: Size = key("n_layer", also=("num_hidden_layers",))
    n_heads: Size = key("n_head", also=("num_attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = derived(lambda c: 4 * c.d_model)
    norm_eps: Positive = key("layer_norm_epsilon", 1e-5)
    residual_after_norm: bool = key("apply_residual_connection_post_layernorm", False)
    tied: bool = key("tie_word_embeddings", True)

    ignored = frozenset(
        {
            "attention_softmax_in_fp32",
            "bias_dropout_fusion",
            "masked_softmax_fusion",
            "offset_alibi",
            "seq_length",
            "skip_bias_add",
            "skip_bias_add_qkv",
            "slow_but_exact",
            "unk_token_id",
            "n_inner",
        }
    )

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")


@architecture(
    "bloom",
    config=Bloom,
    scaled_by_awq="dense_h_to_4h",
    optional_prefix="transformer.",
    gguf=Gguf("bloom"),
    heads=OLD_CLASSIFIER,
    peft=Peft(("query_key_value",)),
)
def forward(w: Weights, ids: Array, c: Bloom, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.word_embeddings.weight", c.vocab_size, c.d_model)
    x = layer_norm(x, w, "transformer.word_embeddings_layernorm", c.norm_eps)
    for _, w_layer, cache_layer in w.layers("transformer.h", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    x = layer_norm(x, w, "transformer.ln_f", c.norm_eps)
    return unembed(x, w, "transformer.word_embeddings.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Bloom) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = layer_norm(x, w, "input_layernorm", c.norm_eps)
    x = (y if c.residual_after_norm else x) + attention(y, w.at("self_attention"), cache, c)
    y = layer_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return (y if c.residual_after_norm else x) + feed_forward(y, w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Bloom) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    qkv = linear(x, w, "query_key_value", 3 * c.n_heads * c.d_head, bias=True).reshape(
        x.shape[0], c.n_heads, 3, c.d_head
    )
    q, k, v = (qkv[:, :, i] for i in range(3))
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5, bias=alibi(k, c.n_heads))
    return linear(mixed, w, "dense", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Bloom) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(gelu_tanh(linear(x, w, "dense_h_to_4h", c.d_ff, bias=True)), w, "dense_4h_to_h", c.d_model, bias=True)
