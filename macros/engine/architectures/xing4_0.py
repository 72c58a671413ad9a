"""Xing 4.0: DeepSeek-V3's block on several residual streams, whose mixing weights are clamped, then made to add up.

Source: mlx-vlm 0.7, models/xing4_0 (mHC: arXiv 2512.24880); tensor names as it reads them. The forward pass is the main
model's; files also hold modules for multi-token prediction.
"""

from __future__ import annotations

import numpy as np

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Kind,
    StreamShares,
    embed,
    expand_streams,
    feed_forward,
    mean_of_streams,
    positions,
    read_streams,
    rms_norm,
    rope_table,
    silu,
    softmax,
    unembed,
    write_streams,
)
from ..ops.basic import logistic
from ..ops.streams import of_all_streams, sinkhorn
from ..steps import Role, step
from . import architecture
from .config import Interval, Positive, Size, config, fixed, key
from .deepseek_v2 import attention
from .deepseek_v3 import DeepSeekV3, mixture_of_experts
from .tensor_layouts import FUSED


@config
class Xing4(DeepSeekV3):
    """Hyperparameters of Xing 4.0, in forward order."""

    dense_layers: int = key("first_k_dense_replace", 0)
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    routed_scale: Positive = key("routed_scaling_factor", 1.0)
    n_streams: Size = key("hc_mult", 4)
    stream_rounds: Interval = key("hc_sinkhorn_iters", 20)
    stream_floor: Positive = key("hc_eps", 1e-6)
    least: float = key("mhc_h_res_clamp_min", -30.0)
    most: float = key("mhc_h_res_clamp_max", 30.0)
    activation: str = fixed("silu")

    ignored = DeepSeekV3.ignored | {"hidden_act"}


@architecture("xing4_0", config=Xing4, fused=FUSED)
def forward(w: Weights, ids: Array, c: Xing4, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = expand_streams(embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model), c.n_streams)
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(mean_of_streams(x), w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Xing4, kind: Kind, table: RopeTable) -> Array:
    """One transformer block, on all streams: [T M D] -> [T M D]."""
    shares = clamped_shares(x, w.at("attn_hc"), c)
    y = rms_norm(read_streams(x, shares.read), w, "input_layernorm", c.norm_eps)
    x = write_streams(x, attention(y, w.at("self_attn"), cache, c, table), shares)
    shares = clamped_shares(x, w.at("ffn_hc"), c)
    y = rms_norm(read_streams(x, shares.read), w, "post_attention_layernorm", c.norm_eps)
    y = mixture_of_experts(y, w.at("mlp"), c) if kind.moe else feed_forward(y, w.at("mlp"), c.d_ff, silu)
    return write_streams(x, y, shares)


@step(Role.STREAM_SHARES)
def clamped_shares(x: Array, w: Weights, c: Xing4) -> StreamShares:
    """Compute the weights from all streams together: [T M D], [(2 + M)·M M·D] -> [T M], [T M], [T M M].

    Scores of the mixing matrix do not go beyond two bounds; its rows and columns are divided by their sums in turn.
    """
    T, M = x.shape[0], x.shape[1]
    base, scale = w("hc_base", (2 + M) * M), w("hc_scale", 3)
    read, write, mix = np.split(of_all_streams(x, w, "hc_fn", (2 + M) * M, c.norm_eps), [M, 2 * M], axis=-1)
    read_base, write_base, mix_base = np.split(base, [M, 2 * M])
    scores = np.clip((mix * scale[2] + mix_base).reshape(T, M, M), c.least, c.most)
    mix = sinkhorn(softmax(scores).swapaxes(1, 2), c.stream_floor, c.stream_rounds)
    mix = mix / (mix.sum(axis=-1, keepdims=True) + c.stream_floor)
    return StreamShares(logistic(read * scale[0] + read_base), 2 * logistic(write * scale[1] + write_base), mix)
