"""Hunyuan 1: Llama's block with norms on each head's queries and keys after the rotary embedding, also with experts.

Source: tencent/Hunyuan-7B-Instruct and Hunyuan-A13B-Instruct by transformers 5's classes, whose tensor names these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..errors import Problem, shorten
from ..facts import NAMED_EXPERTS, Gguf, Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Rope,
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    feed_forward,
    heads,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    shared_experts,
    softmax_routing,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import MEDIA_TOKENS, Positive, Raw, Size, activation, config, fixed, key, listed
from .llama import Llama
from .rope_config import read_rope
from .tensor_layouts import FUSED, PACKED


@config
class Hunyuan(Llama):
    """Hyperparameters of Hunyuan's dense models, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    d_head: Size = key("head_dim", lambda c: c.default_head_dim(), also=("attention_head_dim",))
    mlp_bias: bool = fixed(False)

    ignored = Llama.ignored | {
        "mlp_bias",
        "eod_token_id",
        "use_qk_norm",
        "use_cla",
        "cla_share_factor",
        "use_rotary_pos_emb",
        "norm_type",
        "org_vocab_size",
        "dense_list",
        "add_classification_head",
        "class_num",
        "pool_type",
        "mask_init_id",
        "im_start_id",
        "im_end_id",
        "im_newline_id",
        "image_token_id",
        "text_start_id",
        "text_end_id",
        "video_start_id",
        "video_end_id",
        "num_media_embeds",
        "vit_input_resolution",
        "vit_path",
        "vit_patch",
        "vit_token",
        "vit_type",
        "vit_remove_prenorm",
        "vit_add_patchemb_bias",
        "vit_mapping_type",
        "vit_norm_type",
        "vit_used_rms_norm",
        "xval_list",
        "skip_cls_token",
        "position_embedding_xdrope",
        "kv_lora_rank",
        "q_lora_rank",
        "qk_nope_head_dim",
        "qk_rope_head_dim",
        "v_head_dim",
        "use_mla",
    }

    def check(self) -> None:
        super().check()
        self.rope.turning(self.d_head)

    @property
    def rope(self) -> Rope:
        """The rotary embedding, whose theta a fixed alpha may stretch (NTK-aware, arXiv 2309.00071, appendix A)."""
        table: Mapping[str, Any] = self.rope_parameters
        alpha, kind = table.get("alpha"), table.get("rope_type", table.get("type"))
        if kind not in ("dynamic", "xdrope") or not alpha:
            return read_rope(table)
        if isinstance(alpha, bool) or not isinstance(alpha, (int, float)) or alpha <= 0 or int(self.d_head) <= 2:
            raise Problem(f"rope_scaling.alpha = {shorten(alpha)}: expected a positive number", "correct the value")
        theta = read_rope({"rope_theta": table.get("rope_theta")}).theta
        return Rope(theta * alpha ** (int(self.d_head) / (int(self.d_head) - 2)))


@config
class HunyuanVL(Hunyuan):
    """Hyperparameters of HunyuanOCR's text model, in forward order: in a text without images, all parts of a position
    are equal."""

    tied: bool = key("tie_word_embeddings", True)

    ignored = Hunyuan.ignored | MEDIA_TOKENS


@config
class HunyuanMoE(Hunyuan):
    """Hyperparameters of Hunyuan's models with experts, in forward order. d_ff is the inner width of one expert."""

    n_experts: Size = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("moe_topk", also=("num_experts_per_tok",))

    ignored = Hunyuan.ignored | {
        "num_shared_expert",
        "moe_intermediate_size",
        "moe_layer_num_skipped",
        "moe_drop_tokens",
        "moe_random_routing_dropped_token",
        "use_mixed_mlp_moe",
        "capacity_factor",
        "group_limited_greedy",
        "n_group",
        "topk_group",
        "norm_topk_prob",
        "routed_scaling_factor",
    }

    lists: ClassVar[tuple[str, ...]] = ("num_experts", "moe_topk")

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The published files have a list with an entry for each layer, all equal."""
        raw = super().prepare(raw)
        for name in cls.lists:
            entries = listed(raw.get(name))
            if entries and entries.count(entries[0]) == len(entries):
                raw[name] = entries[0]
        return raw

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")


@architecture(
    "hunyuan_v1_dense",
    config=Hunyuan,
    gguf=Gguf("hunyuan-dense"),
    classes={"hunyuan_v1_dense": "HunYuanDenseV1ForCausalLM"},  # transformers 5.24, models/hunyuan_v1_dense
)
@architecture("hunyuan_vl_text", config=HunyuanVL, gguf=Gguf("hunyuan_vl"))
@architecture(
    "hunyuan_v1_moe",
    config=HunyuanMoE,
    pieces=FUSED,
    gguf=Gguf("hunyuan-moe"),
    peft=Peft(stacked=NAMED_EXPERTS, linear_router=True),
    classes={"hunyuan_v1_moe": "HunYuanMoEV1ForCausalLM"},  # transformers 5.24, models/hunyuan_v1_moe
)
def forward(w: Weights, ids: Array, c: Hunyuan, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Hunyuan, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if isinstance(c, HunyuanMoE):
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Hunyuan, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = apply_rope(heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H), table)
    k = apply_rope(heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H), table)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = rms_norm(q, w, "query_layernorm", c.norm_eps), rms_norm(k, w, "key_layernorm", c.norm_eps)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: HunyuanMoE) -> Array:
    """A few experts chosen for each token, and a shared one: [T D] -> [T k D] -> [T D]."""
    act = activation(c.activation)
    chosen, shares = softmax_routing(linear(x, w, "gate.wg", c.n_experts), c.n_experts_per_token, normalise=True)
    routed = combine(packed_experts(x, chosen, w, PACKED, c.n_experts, c.d_ff, act), shares)
    return routed + shared_experts(x, w.at("shared_mlp"), c.d_ff, act)
