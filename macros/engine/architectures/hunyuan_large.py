"""Hunyuan-Large: one expert for each token beside a shared one, and layers that read the keys and values before them.

Each layer normalizes the keys that it reads, its own or another's, after the rotary embedding. Sources: arXiv
2411.02265; mlx-lm 0.32, models/hunyuan.py, whose tensor names are those of the published files.
"""

from __future__ import annotations

from typing import Literal

from ..errors import Problem
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Shared,
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    gated_experts,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    shared_experts,
    softmax_routing,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Interval, Size, activation, config, key
from .hunyuan import HunyuanMoE
from .tensor_layouts import EXPERT

Kept = tuple[Array, Array]


@config
class HunyuanLarge(HunyuanMoE):
    """Hyperparameters of Hunyuan-Large, in forward order. d_ff is the inner width of one shared expert."""

    # layers
    shares_cache: bool = key("use_cla", False)
    sharing: Interval = key("cla_share_factor", 1)
    # attention
    has_qk_norm: bool = key("use_qk_norm", False)
    # experts
    n_experts_per_token: Literal[1] = key("moe_topk", 1, also=("num_experts_per_tok",))
    d_ff_expert: Size = key("moe_intermediate_size", lambda c: c.d_ff)
    has_shared_expert: bool = key("use_mixed_mlp_moe", False)
    n_shared_experts: Size = key("num_shared_expert", 1)
    # head
    tied: Literal[True] = key("tie_word_embeddings", True)

    ignored = HunyuanMoE.ignored - {
        "use_cla",
        "cla_share_factor",
        "use_qk_norm",
        "moe_intermediate_size",
        "use_mixed_mlp_moe",
        "num_shared_expert",
    }

    lists = (*HunyuanMoE.lists, "num_shared_expert", "moe_intermediate_size")
    caveat = (
        "Some layers of this model read the keys and values of the layer before them, which are counted once. mlx-lm "
        "keeps them for each of these layers."
    )

    def check(self) -> None:
        super().check()
        if int(self.n_experts) == 1:
            raise Problem(f"{self.key_of('n_experts')} = 1", "no model of this type without experts is read here")

    @property
    def masks(self) -> list[Mask]:
        """What each layer sees, in order: the first of a few keeps keys and values, and the others read them."""
        sharing = self.sharing if self.shares_cache else 1
        return [Shared(Full()) if i % sharing else Full() for i in range(self.n_layers)]


@architecture("hunyuan", config=HunyuanLarge)
def forward(w: Weights, ids: Array, c: HunyuanLarge, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    kept: Kept | None = None
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x, k, v = layer(x, w_layer, cache_layer, c, mask, table, kept)
        kept = k, v
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(
    x: Array, w: Weights, cache: KVCache, c: HunyuanLarge, mask: Mask, table: RopeTable, kept: Kept | None
) -> tuple[Array, Array, Array]:
    """One block, which also passes on the keys and values that it read: [T D] -> [T D], [S K H], [S K H]."""
    y, k, v = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table, kept)
    x = x + y
    return x + mixture_of_experts(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c), k, v


@step(Role.ATTENTION)
def attention(
    x: Array, w: Weights, cache: KVCache, c: HunyuanLarge, mask: Mask, table: RopeTable, kept: Kept | None
) -> tuple[Array, Array, Array]:
    """Let each token gather information from itself and those before it: [T D] -> [T D], [S K H], [S K H]."""
    N, K, H, b = c.n_heads, c.n_kv_heads, c.d_head, c.attention_bias
    q = apply_rope(heads(linear(x, w, "q_proj", N * H, bias=b), N, H), table)
    if isinstance(mask, Shared) and kept is not None:
        k, v = cache.reread(Holds.KEYS, kept[0], mask), cache.reread(Holds.VALUES, kept[1], mask)
    else:
        k = apply_rope(heads(linear(x, w, "k_proj", K * H, bias=b), K, H), table)
        v = heads(linear(x, w, "v_proj", K * H, bias=b), K, H)
        k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    keys = k
    if c.has_qk_norm:
        q, keys = rms_norm(q, w, "query_layernorm", c.norm_eps), rms_norm(k, w, "key_layernorm", c.norm_eps)
    mixed = attend(q, keys, v, causal_mask(cache, q, keys, mask), H**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=b), k, v


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: HunyuanLarge) -> Array:
    """One expert chosen for each token, by the share of its score, and the shared ones: [T D] -> [T D]."""
    act = activation(c.activation)
    chosen, shares = softmax_routing(linear(x, w, "gate.wg", c.n_experts), c.n_experts_per_token, normalise=False)
    routed = combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, act), shares)
    if not c.has_shared_expert:
        return routed
    return routed + shared_experts(x, w.at("shared_mlp"), c.n_shared_experts * c.d_ff, act)
