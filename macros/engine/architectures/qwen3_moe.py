"""Qwen3-MoE: many small experts and no shared one, each head's query and key normalized.

Source: arXiv 2505.09388; tensor names as the published files.
"""

from __future__ import annotations

from typing import Literal

from ..facts import NAMED_EXPERTS, Gguf, Mlx, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Kind,
    Rope,
    combine,
    embed,
    feed_forward,
    gated_experts,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    softmax_routing,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import MEDIA_TOKENS, Count, Interval, Size, activation, config, expert_layers, fixed, key, masks_of
from .llama import Llama
from .otherwise import Otherwise, other_than
from .qwen3 import attention
from .rope_config import read_rope
from .tasks import OLD_NAME
from .tensor_layouts import EXPERT, FUSED, PACKED


@config
class Qwen3MoE(Llama):
    """Hyperparameters of Qwen3-MoE, in forward order. d_ff is the inner width of the layers without experts."""

    n_kv_heads: Size = key("num_key_value_heads", 4)
    use_sliding_window: bool = key("use_sliding_window", False)
    sliding_window: Size | None = key("sliding_window", 4096)
    qk_norm: Literal[True] = key("use_qk_norm", True)
    n_experts: Count = key("num_experts", also=("num_local_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    d_ff_expert: Size = key("moe_intermediate_size")
    normalise: bool = key("norm_topk_prob", False)
    decoder_sparse_step: Interval = key("decoder_sparse_step", 1)
    mlp_only_layers: list[int] = key("mlp_only_layers", lambda c: [])
    # All experts' matrices in one stack, or each by itself.
    stacked: bool = fixed(False)

    ignored = frozenset({"max_window_layers", "qkv_bias", "shared_expert_intermediate_size"})

    def check(self) -> None:
        super().check()
        if self.n_experts:
            self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts, and its mask."""
        types = ["sliding_attention" if self.use_sliding_window else "full_attention"] * self.n_layers
        moe = expert_layers(self.n_layers, self.n_experts, self.decoder_sparse_step, self.mlp_only_layers)
        return [Kind(*kind) for kind in zip(moe, masks_of(types, self.n_layers, self.sliding_window))]


@config
class Qwen3VLMoE(Qwen3MoE):
    """Hyperparameters of the text model of Qwen3-VL with experts, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 16)
    mlp_bias: bool = fixed(False)
    use_sliding_window: bool = fixed(False)
    sliding_window: Size | None = fixed(None)
    normalise: bool = fixed(True)
    stacked: bool = fixed(True)

    ignored = Qwen3MoE.ignored | {"sliding_window", "use_sliding_window", "norm_topk_prob"}

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=500_000.0)


@config
class Qwen3OmniMoE(Qwen3MoE):
    """Hyperparameters of the text model of Qwen3-Omni's thinker, in forward order."""

    use_sliding_window: bool = fixed(False)
    sliding_window: Size | None = fixed(None)
    normalise: bool = key("norm_topk_prob", True)

    ignored = Qwen3MoE.ignored | MEDIA_TOKENS | {"sliding_window", "use_sliding_window"}
    otherwise = (
        *Qwen3MoE.otherwise,
        Otherwise(
            "sliding_window",
            other_than("sliding_window", 0),
            "transformers 5.24 keeps no more rows than that, though attention sees all",
        ),
    )

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=1_000_000.0)


@architecture(
    "qwen3_omni_moe_text",
    config=Qwen3OmniMoE,
    fused=FUSED,
    gguf=Gguf("qwen3vlmoe"),
    rounds_heads={"qwen3_omni_moe_text": True},
    peft=Peft(stacked=NAMED_EXPERTS),
)
@architecture(
    "qwen3_vl_moe_text",
    "qwen3_vl_moe",
    config=Qwen3VLMoE,
    pieces=FUSED,
    gguf=Gguf("qwen3vlmoe"),
    mlx=Mlx(in_8_bits=("mlp.gate",)),
    rounds_heads={"qwen3_vl_moe_text": False},
)
@architecture(
    "qwen3_moe",
    config=Qwen3MoE,
    fused=FUSED,
    gguf=Gguf("qwen3moe"),
    heads=OLD_NAME,
    peft=Peft(stacked=NAMED_EXPERTS),
    mlx=Mlx(in_8_bits=("mlp.gate",)),
    rounds_heads={"qwen3_moe": True},
)
def forward(w: Weights, ids: Array, c: Qwen3MoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Qwen3MoE, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind.mask, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Qwen3MoE) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    chosen, shares = softmax_routing(linear(x, w, "gate", c.n_experts), c.n_experts_per_token, normalise=c.normalise)
    act = activation(c.activation)
    if c.stacked:
        return combine(packed_experts(x, chosen, w, PACKED, c.n_experts, c.d_ff_expert, act), shares)
    return combine(gated_experts(x, chosen, w, EXPERT, c.n_experts, c.d_ff_expert, act), shares)
