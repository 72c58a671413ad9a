"""Phi-3-small: every other layer looks at near blocks of tokens and, in each head, at other far ones; μP's factors.

Sources: arXiv 2404.14219, 2; microsoft/Phi-3-small-8k-instruct, configuration_phi3_small.py and modeling_phi3_small.py;
tensor names as there. The keys and values of all tokens are kept, since the heads look at different blocks. Costs are
those of full attention: a kernel for blocks reads and computes less.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope,
    attend,
    causal_mask,
    clipped_swiglu,
    embed,
    layer_norm,
    linear,
    positions,
    rope_table,
    strictly_causal_mask,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Interval, Offset, Positive, Raw, Size, config, derived, key
from .rope_config import OLDER_ROPE_KEYS, read_rope

SLOPE = 1.702  # of the sigmoid that stands in for GELU


@config
class Phi3Small(Config):
    """Hyperparameters of Phi-3-small, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    embedding_scale: float = key("mup_embedding_multiplier", 10.0)
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("layer_norm_epsilon", 1e-5)
    dense_interval: Interval | None = key("dense_attention_every_n_layers", 2)
    # attention
    n_heads: Size = key("num_attention_heads")
    n_kv_heads: Size = key("num_key_value_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    block: Interval = key("blocksparse_block_size", 64)
    near_blocks: Offset = key("blocksparse_num_local_blocks", 16)
    stride: Interval = key("blocksparse_vert_stride", 8)
    same_blocks: bool = key("blocksparse_homo_head_pattern", False)
    scaled_by_width: bool = key("mup_use_scaling", True)
    attention_scale: Positive = key("mup_attn_multiplier", 1.0)
    rope_theta: Positive = key("rope_embedding_base", 1e6)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # feed-forward
    d_ff: Size = key("ff_intermediate_size")
    limit: Positive = key("gegelu_limit", 20.0)
    # head
    logit_divisor: float = key("mup_width_multiplier", 8.0)
    tied: bool = key("tie_word_embeddings", True)

    rewritten = OLDER_ROPE_KEYS
    ignored = frozenset(
        """attention_dropout_prob embedding_dropout_prob ffn_dropout_prob ff_dim_multiplier gegelu_pad_to_256
        hidden_act pad_sequence_to_multiple_of_64 reorder_and_upcast_attn blocksparse_triton_kernel_block_size
        rope_position_scale original_max_position_embeddings dummy_token_indices attention_bias""".split()
    )

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        self.must_divide("n_kv_heads", "n_heads")
        if not self.near_blocks and self.stride > 1:
            raise Problem(
                "blocksparse_num_local_blocks = 0: a token would not see itself",
                "correct the value: expected 1 or more",
            )

    @property
    def rope(self) -> Rope:
        """Stretched, it has one amplitude for texts of the trained length and one for longer ones."""
        table = {**self.rope_parameters, "rope_theta": self.rope_theta}
        short, long = table.get("short_mscale"), table.get("long_mscale")
        if short is None or long is None:
            return read_rope(table)
        return replace(read_rope({**table, "attention_factor": short}), longer=long)

    @property
    def kinds(self) -> list[str]:
        """Every so many layers are dense."""
        each = self.dense_interval
        return ["full" if each and (i + 1) % int(each) == 0 else "picked blocks" for i in range(int(self.n_layers))]


@architecture("phi3small", config=Phi3Small)
def forward(w: Weights, ids: Array, c: Phi3Small, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    x = x * c.embedding_scale if c.embedding_scale else x
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = layer_norm(x, w, "model.final_layernorm", c.norm_eps)
    scores = unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)
    return scores / c.logit_divisor if c.logit_divisor else scores


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Phi3Small, kind: str, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(layer_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind, table)
    return x + feed_forward(layer_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Phi3Small, kind: str, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    groups = int(N) // int(K)
    both = linear(x, w, "query_key_value", (N + 2 * K) * H, bias=True).reshape(x.shape[0], K, groups + 2, H)
    q, k, v = both[:, :, :groups].reshape(x.shape[0], N, H), both[:, :, groups], both[:, :, groups + 1]
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    if kind == "full":
        allowed = causal_mask(cache, q, k, Full())
    else:
        allowed = strictly_causal_mask(cache, q, k, Full())[None] & near_or_striped(cache, q, k, c)
    scale = c.attention_scale / int(H) if c.scaled_by_width else int(H) ** -0.5
    return linear(attend(q, k, v, allowed, scale), w, "dense", c.d_model, bias=True)


def near_or_striped(cache: KVCache, queries: Array, keys: Array, c: Phi3Small) -> Array:
    """The near blocks, and every `stride`-th block, at other places in each head: [T N H], [S K H] -> [N T S]."""
    T, S = queries.shape[0], keys.shape[0]
    query = (np.arange(T, like=queries) + cache.length) // c.block
    key = (np.arange(S, like=keys) + (cache.length + T - S)) // c.block
    further = max(1, int(c.stride) // int(c.n_heads)) if not c.same_blocks else 0
    striped = (key[None, :] + np.arange(c.n_heads, like=keys)[:, None] * further + 1) % c.stride == 0
    return (query[:, None] - key[None, :] < c.near_blocks)[None] | striped[:, None, :]


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Phi3Small) -> Array:
    """Process each token separately, in a wider space, even numbers gating odd ones: [T D] -> [T F] -> [T D]."""
    both = linear(x, w, "up_proj", 2 * c.d_ff, bias=True).reshape(x.shape[0], c.d_ff, 2)
    return linear(clipped_swiglu(both[..., 0], both[..., 1], c.limit, SLOPE), w, "down_proj", c.d_model, bias=True)
