"""MiniCPM3: latent attention as DeepSeek-V2's in a dense model, with multipliers that depend on its width and depth.

Source: arXiv 2404.06395 (MiniCPM), openbmb/MiniCPM3-4B; tensor names as the published files.
"""

from __future__ import annotations

import math

from ..facts import Gguf, Mlx
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Kind, embed, feed_forward, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .config import Count, Interval, Positive, Size, activation, config, fixed, key
from .deepseek_v2 import LatentMoE, attention


@config
class MiniCPM3(LatentMoE):
    """Hyperparameters of MiniCPM3, in forward order: those of latent attention, without experts."""

    embedding_multiplier: Positive = key("scale_emb", 12)
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    depth_scale: Positive | None = key("scale_depth", 1.4)
    q_lora_rank: Size | None = key("q_lora_rank", 768)
    v_head_dim: Size = key("v_head_dim", lambda c: c.d_model // c.n_heads)
    rope_pairs: bool = fixed(False)
    mlp_bias: bool = key("mlp_bias", False)
    base_width: Positive | None = key("dim_model_base", 256)
    tied: bool = key("tie_word_embeddings", True)
    # of experts, none
    dense_layers: int = fixed(0)
    moe_layer_freq: Interval = fixed(1)
    mlp_layer_types: list[str] | None = fixed(None)
    n_experts: Size = fixed(0)
    n_experts_per_token: Size = fixed(0)
    n_expert_groups: Size = fixed(1)
    n_groups_kept: Size = fixed(1)
    routed_scale: Positive = fixed(1.0)
    d_ff_expert: Size = fixed(0)
    n_shared_experts: Count = fixed(0)

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)
        self.rope.turning(self.qk_rope_head_dim)

    @property
    def kinds(self) -> list[Kind]:
        return [Kind(False)] * self.n_layers

    @property
    def residual_multiplier(self) -> float:
        """The factor of each half's output."""
        return self.depth_scale / math.sqrt(self.n_layers) if self.depth_scale else 1.0

    @property
    def logits_divisor(self) -> float:
        """The ratio of the width to that of the model for which the learning rates were tuned."""
        return int(self.d_model) / self.base_width if self.base_width else 1.0


@architecture(
    "minicpm3",
    config=MiniCPM3,
    gguf=Gguf("minicpm3", {"self_attn.kv_b_proj": "attn_kv_b"}, is_written_out=True),
    mlx=Mlx(is_written_out=True),
)
def forward(w: Weights, ids: Array, c: MiniCPM3, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.embedding_multiplier
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    for _, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last) / c.logits_divisor


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: MiniCPM3, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    x = x + y * c.residual_multiplier
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation), bias=c.mlp_bias) * c.residual_multiplier
