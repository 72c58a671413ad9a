"""DeepSeek-V3.2 and GLM-5: DeepSeek-V3 with an indexer that picks the tokens each new one attends to.

Sources: deepseek-ai/DeepSeek-V3.2 (paper, section 2.1), zai-org/GLM-5, arXiv 2603.12201 (layers that share a choice);
tensor names as the published files. The forward pass is the main model's. The published code also multiplies the
indexer's queries and keys by a Hadamard matrix, which changes no product of the two, and rounds them to FP8, which is
left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import smallest
from ..errors import Problem, shorten
from ..facts import Gguf
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    apply_rope,
    apply_rope_pairs,
    embed,
    feed_forward,
    heads,
    index_scores,
    layer_norm,
    linear,
    positions,
    rms_norm,
    rope_table,
    strictly_causal_mask,
    top_k,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Size, activation, config, fixed, key
from .deepseek_v2 import compress_query, latents, queries, read_out
from .deepseek_v3 import PEFT, DeepSeekV3, mixture_of_experts
from .predicted import Module, Place, angles
from .tensor_layouts import FUSED

INDEX_EPS = 1e-6


class IndexedKind(Kind, frozen=True):
    """Whether a layer has experts or a plain feed-forward network, and its own indexer or the last one's choice."""

    indexes: bool = True

    def __str__(self) -> str:
        return ("moe" if self.moe else "dense") + ("" if self.indexes else ", shared index")


@config
class DeepSeekV32(DeepSeekV3):
    """Hyperparameters of DeepSeek-V3.2, in forward order."""

    q_lora_rank: Size = key("q_lora_rank")
    rope_pairs: bool = fixed(True)
    index_n_heads: Size = key("index_n_heads")
    index_head_dim: Size = key("index_head_dim")
    index_topk: Size = key("index_topk")
    index_rope_pairs: bool = fixed(False)

    ignored = DeepSeekV3.ignored | {"layer_types", "rope_interleave", "indexer_rope_interleave", "scale_fmt"}

    def check(self) -> None:
        super().check()
        self.must_not_exceed("qk_rope_head_dim", "index_head_dim")

    @property
    def kinds(self) -> Sequence[IndexedKind]:
        """In order: whether a layer has experts, and its own indexer."""
        return [IndexedKind(kind.moe, indexes=own) for kind, own in zip(super().kinds, self.indexes)]

    @property
    def indexes(self) -> list[bool]:
        """In order: whether a layer has its own indexer."""
        return [True] * self.n_layers


@config
class GlmMoEDsa(DeepSeekV32):
    """Hyperparameters of GLM-5, in forward order."""

    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    index_rope_pairs: bool = fixed(True)
    indexer_types: list[str] | None = key("indexer_types", None)
    index_pattern: str | list[str] | None = key("index_topk_pattern", None)
    index_every: int = key("index_topk_freq", 1)
    index_offset: int = key("index_skip_topk_offset", 2)

    ignored = DeepSeekV32.ignored | {"index_share_for_mtp_iteration", "moe_router_dtype"}

    @property
    def indexes(self):
        words = {"F": True, "S": False, "full": True, "shared": False}
        types = self.indexer_types or self.index_pattern
        if not types:
            return [max(i - self.index_offset + 1, 0) % max(self.index_every, 1) == 0 for i in range(self.n_layers)]
        if len(types) != self.n_layers or not set(types) <= set(words) or not words[types[0]]:
            raise Problem(
                f"indexer_types or index_topk_pattern = {shorten(types)}",
                f"give full or shared for each of the {int(self.n_layers)} layers, full for the first",
            )
        return [words[t] for t in types]


# What their makers’ files in FP8 hold in 16 bits, though it is a linear layer.
KEPT = {"indexer.weights_proj.weight": "bfloat16"}


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    table = angles(ids, cache, c.qk_rope_head_dim, c.rope)
    return layer(x, w, cache, c, IndexedKind(True), table, None)[0]


MTP = Module(draft_layer)


@architecture(
    "deepseek_v32",
    config=DeepSeekV32,
    fused=FUSED,
    kept=KEPT,
    gguf=Gguf("deepseek32", is_latent=True),
    predicts=MTP,
    peft=PEFT,
)
@architecture(
    "glm_moe_dsa",
    config=GlmMoEDsa,
    fused=FUSED,
    kept=KEPT,
    gguf=Gguf("glm-dsa", is_latent=True),
    predicts=MTP,
    peft=PEFT,
)
def forward(w: Weights, ids: Array, c: DeepSeekV32, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    seen: Array | None = None
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x, seen = layer(x, w_layer, cache_layer, c, kind, table, seen)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(
    x: Array, w: Weights, cache: KVCache, c: DeepSeekV32, kind: IndexedKind, table: RopeTable, seen: Array | None
) -> tuple[Array, Array]:
    """One transformer block, which also passes on the tokens it looked at: [T D] -> [T D], [T I]."""
    mixed, seen = attention(
        rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind, table, seen
    )
    x = x + mixed
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c), seen
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation)), seen


@step(Role.ATTENTION)
def attention(
    x: Array, w: Weights, cache: KVCache, c: DeepSeekV32, kind: IndexedKind, table: RopeTable, seen: Array | None
) -> tuple[Array, Array]:
    """Let each token gather information from the tokens that the indexer picks: [T D] -> [T D], [T I]."""
    narrow = compress_query(x, w, c)
    q, q_rope = queries(narrow, w, c, table)
    latent, k_rope = latents(x, w, cache, c, table)
    allowed = strictly_causal_mask(cache, q, latent, Full())
    if kind.indexes or seen is None:
        seen = indexer(x, narrow, allowed, w.at("indexer"), cache, c, table)
    latent, k_rope = np.take(latent, seen, axis=0), np.take(k_rope, seen, axis=0)
    return read_out(q, q_rope, latent, k_rope, np.take_along_axis(allowed, seen, axis=1), w, c), seen


@step(Role.INDEXER)
def indexer(
    x: Array, narrow: Array, allowed: Array, w: Weights, cache: KVCache, c: DeepSeekV32, table: RopeTable
) -> Array:
    """The most relevant tokens for each new one, by separate small heads: [T D], [T Q], [T S] -> [T I].

    I is `index_topk`, or S if fewer tokens are visible.
    """
    N, H = c.index_n_heads, c.index_head_dim
    turn = apply_rope_pairs if c.index_rope_pairs else apply_rope
    q = turn(heads(linear(narrow, w, "wq_b", N * H), N, H), table)
    k = turn(heads(layer_norm(linear(x, w, "wk", H), w, "k_norm", INDEX_EPS), 1, H), table)[:, 0]
    k = cache.extend(Holds.INDEX_KEYS, k, Full())
    fit = index_scores(q, k, linear(x, w, "weights_proj", N) * N**-0.5)
    return top_k(np.where(allowed, fit, -np.inf), smallest(c.index_topk, k.shape[0]))
