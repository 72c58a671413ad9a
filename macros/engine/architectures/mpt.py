"""MPT: GPT-2's block without biases, and a distance that lowers the scores (ALiBi) in place of positions.

Source: github.com/mosaicml/llm-foundry; tensor names as the published files.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..facts import Gguf, Peft
from ..interface import Array, KVCache, Weights
from ..ops import Full, attend, causal_mask, embed, gelu, heads, layer_norm, linear, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Raw, Size, config, derived, fold_table, key
from .otherwise import Otherwise, inner
from .tasks import OLD_CLASSIFIER


@config
class Mpt(Config):
    """Hyperparameters of MPT, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("d_model", also=("hidden_size",))
    # layers
    n_layers: Size = key("n_layers", also=("num_hidden_layers",))
    norm_eps: Positive = key("layer_norm_epsilon", 1e-5)
    # attention
    n_heads: Size = key("n_heads", also=("num_attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    kind: Literal["multihead_attention"] = key("attn_config.attn_type", "multihead_attention")
    alibi: Literal[True] = key("attn_config.alibi", True)
    steepest: Positive = key("attn_config.alibi_bias_max", 8)
    clip: Positive | None = key("attn_config.clip_qkv", None)
    scale: Positive | None = key("attn_config.softmax_scale", None)
    # feed-forward
    d_ff: Size = derived(lambda c: 4 * c.d_model)
    # head
    tied: bool = key("tie_word_embeddings", True)

    otherwise = (
        Otherwise(
            "attn_config", inner("attn_config", "alibi_bias_max", 8), "transformers 5.24 takes 8 for alibi_bias_max"
        ),
    )
    rewritten = frozenset({"attn_config", "ffn_config"})
    ignored = frozenset(
        {
            "expansion_ratio",
            "max_seq_len",
            "emb_pdrop",
            "learned_pos_emb",
            "init_device",
            "init_config",
            "logit_scale",
            "no_bias",
            "embedding_fraction",
            "norm_type",
            "verbose",
            "tokenizer_name",
            "fc_type",
            "attn_config.attn_impl",
            "attn_config.attn_uses_sequence_id",
            "attn_config.prefix_lm",
            "attn_config.qk_ln",
            "attn_config.qk_gn",
            "attn_config.rope",
            "attn_config.sliding_window_size",
            "ffn_config.ffn_type",
            "ffn_config.fc_type",
        }
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return fold_table(fold_table(raw, "attn_config"), "ffn_config")

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")


GGUF = Gguf(
    "mpt",
    {
        "norm_1": "attn_norm",
        "norm_2": "ffn_norm",
        "attn.Wqkv": "attn_qkv",
        "attn.out_proj": "attn_output",
        "ffn.up_proj": "ffn_up",
        "ffn.down_proj": "ffn_down",
    },
)


@architecture("mpt", config=Mpt, scaled_by_awq="up_proj", gguf=GGUF, heads=OLD_CLASSIFIER, peft=Peft(("Wqkv",)))
def forward(w: Weights, ids: Array, c: Mpt, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.wte.weight", c.vocab_size, c.d_model)
    for _, w_layer, cache_layer in w.layers("transformer.blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    x = layer_norm(x, w, "transformer.norm_f", c.norm_eps, bias=False)
    return unembed(x, w, "transformer.wte.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Mpt) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(layer_norm(x, w, "norm_1", c.norm_eps, bias=False), w.at("attn"), cache, c)
    return x + feed_forward(layer_norm(x, w, "norm_2", c.norm_eps, bias=False), w.at("ffn"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Mpt) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    qkv = linear(x, w, "Wqkv", 3 * c.d_model)
    qkv = np.clip(qkv, -c.clip, c.clip) if c.clip else qkv
    q, k, v = (heads(part, c.n_heads, c.d_head) for part in np.split(qkv, 3, axis=-1))
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    far = distance(k, c.n_heads, c.steepest)
    scale = c.scale if c.scale else c.d_head**-0.5
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), scale, bias=far), w, "out_proj", c.d_model)


def distance(k: Array, n_heads: int, steepest: float) -> Array:
    """ALiBi with slopes in MPT's order: a later key scores higher, in each head by its own slope: [S N H] -> [N 1 S].

    Of twice as many slopes as a power of 2 below the heads, every second one comes first (arXiv 2108.12409).
    """
    power = 1 << (int(n_heads) - 1).bit_length()
    head = np.arange(n_heads, like=k)
    if power != int(n_heads):
        head = np.where(head < power // 2, 2 * head + 1, 2 * head - power)
    slopes = 2.0 ** ((head + 1) * (-steepest / power))
    return (slopes[:, None, None] * np.arange(k.shape[0], like=k)[None, None, :]).astype(np.float32)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Mpt) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(gelu(linear(x, w, "up_proj", c.d_ff)), w, "down_proj", c.d_model)
