"""TeleChat and TeleChat 2: Llama's block, with keys and values of each head side by side in one matrix.

The last matrix of each half has a bias. Source: arXiv 2401.03804; Tele-AI/Telechat on GitHub, whose
modeling_telechat.py and tensor names these are; vLLM, model_executor/models/telechat2.py.
"""

from __future__ import annotations

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope,
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

NARROWEST = 4096  # d_model of the first model, which was trained on shorter texts before


@config
class TeleChat(Config):
    """Hyperparameters of TeleChat, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size", also=("n_embed",))
    embedding_norm: bool = key("embed_layernorm", False)
    # layers
    n_layers: Size = key("n_layer", also=("num_hidden_layers",))
    norm_eps: Positive = key("layer_norm_epsilon", 1e-5)
    residual_behind_norm: bool = key("apply_residual_connection_post_layernorm", False)
    # attention
    n_heads: Size = key("n_head", also=("num_attention_heads",))
    n_kv_heads: Size = key("num_key_value_heads", lambda c: c.n_heads)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    trained_on: Interval = key("training_seqlen", 8192)
    first_trained_on: Interval = key("base_seqlen", lambda c: 4096 if c.d_model == NARROWEST else 8192)
    # feed-forward
    d_ff: Size = key("ffn_hidden_size")
    # head
    tied: bool = key("tie_word_embeddings", True)

    ignored = frozenset(
        """attention_softmax_in_fp32 bias_dropout_fusion flash_attn logn masked_softmax_fusion n_inner offset_alibi
        semi_causal seq_length skip_bias_add skip_bias_add_qkv slow_but_exact""".split()
    )
    caveat = "Past the length that it was trained on, this model turns by other angles; the costs are the same."

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        self.must_divide("n_kv_heads", "n_heads")

    @property
    def rope(self) -> Rope:
        """The scaling up to the trained length, with positions spread as if there were more of them."""
        longer, width = 1, int(self.d_head)
        while longer * self.first_trained_on < 2 * self.trained_on:
            longer *= 2
        times = max(longer - 1, 1)
        return Rope(10_000.0 * times ** (width / (width - 2)) if width > 2 else 10_000.0)


@architecture(
    "telechat",
    config=TeleChat,
    optional_prefix="transformer.",
    classes={"telechat": "TeleChat2ForCausalLM"},  # vLLM, models/registry.py
)
def forward(w: Weights, ids: Array, c: TeleChat, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    name = "transformer.word_embeddings"
    x = embed(ids, w, f"{name}.weight", c.vocab_size, c.d_model)
    if c.embedding_norm:
        x = rms_norm(x, w, f"{name}_layernorm", c.norm_eps)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("transformer.h", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = rms_norm(x, w, "transformer.ln_f", c.norm_eps)
    return unembed(x, w, f"{name}.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: TeleChat, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = (y if c.residual_behind_norm else x) + attention(y, w.at("self_attention"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return (y if c.residual_behind_norm else x) + feed_forward(y, w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: TeleChat, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q, both = heads(linear(x, w, "query", N * H), N, H), linear(x, w, "key_value", 2 * K * H)
    both = both.reshape(x.shape[0], K, 2, H)
    q, k, v = apply_rope(q, table), apply_rope(both[:, :, 0], table), both[:, :, 1]
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5), w, "dense", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: TeleChat) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    wide = silu(linear(x, w, "gate_proj", c.d_ff)) * linear(x, w, "up_proj", c.d_ff)
    return linear(wide, w, "down_proj", c.d_model, bias=True)
