"""gpt-oss: windows in every other layer, a sink in each head's softmax, and experts with biases and a clamped gate.

Source: arXiv 2508.10925, openai/gpt-oss-20b and -120b, config.json; tensor names as transformers 5 unpacks the
published files, which hold the experts' matrices as MXFP4 blocks and scales.
"""

from __future__ import annotations

import numpy as np

from ..facts import Gguf, Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Rope,
    apply_rope,
    causal_mask,
    chosen_softmax_routing,
    clipped_swiglu,
    combine,
    embed,
    expert_linear,
    heads,
    linear,
    masked,
    positions,
    repeat_kv,
    rms_norm,
    rope_table,
    scores,
    softmax_with_sink,
    unembed,
    weighted_sum,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Raw, Size, config, full_every, key, masks_of
from .llama import Llama
from .rope_config import fold_rope_or, read_rope

# The rotary embedding of a config without a table for it, and the base of one whose table has none.
THETA = 150_000.0
USUAL: Raw = {
    "rope_type": "yarn",
    "factor": 32.0,
    "original_max_position_embeddings": 4096,
    "truncate": False,
}


@config
class GptOss(Llama):
    """Hyperparameters of gpt-oss, in forward order. d_ff is the inner width of one expert."""

    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 64)
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    attention_bias: bool = key("attention_bias", True)
    sliding_window: Size | None = key("sliding_window", 128)
    layer_types: list[str] = key("layer_types", lambda c: full_every(2, c.n_layers))
    n_experts: Size = key("num_local_experts", also=("num_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok", also=("experts_per_token",))
    gate_slope: Positive = key("swiglu_alpha", 1.702)
    gate_limit: Positive = key("swiglu_limit", 7.0)

    ignored = frozenset({"mlp_bias", "initial_context_length"})

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return fold_rope_or(raw, USUAL)

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, THETA)

    @property
    def masks(self) -> list[Mask]:
        return masks_of(self.layer_types, self.n_layers, self.sliding_window)


GGUF = Gguf(
    "gpt-oss",
    {
        "post_attention_layernorm": "post_attention_norm",
        "mlp.experts.gate_up_proj": "turned:ffn_gate_exps/ffn_up_exps",
        "mlp.experts.down_proj": "turned:ffn_down_exps",
        "mlp.experts.gate_up_proj_bias": "halves:=ffn_gate_exps.bias/ffn_up_exps.bias",
        "mlp.experts.down_proj_bias": "=ffn_down_exps.bias",
    },
    is_windowed=True,
)


@architecture("gpt_oss", config=GptOss, gguf=GGUF, mlx=Mlx(is_windowed=True), windows_in_sglang=True)
def forward(w: Weights, ids: Array, c: GptOss, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GptOss, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + mixture_of_experts(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: GptOss, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = apply_rope(heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H), table)
    k = apply_rope(heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H), table)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    fit = masked(scores(q, repeat_kv(k, N), H**-0.5), causal_mask(cache, q, k, mask))
    mixed = weighted_sum(softmax_with_sink(fit, w("sinks", N)), repeat_kv(v, N))
    return linear(mixed.reshape(mixed.shape[0], N * H), w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: GptOss) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    chosen, shares = chosen_softmax_routing(linear(x, w, "router", c.n_experts, bias=True), c.n_experts_per_token)
    return combine(experts(x, chosen, w.at("experts"), c), shares)


@step(Role.EXPERTS)
def experts(x: Array, chosen: Array, w: Weights, c: GptOss) -> Array:
    """Each token through its chosen experts, gate and up values in turn: [T D], [T k] -> [T k D].

    In between, [T k 2F] -> [T k F].
    """
    E, k, D, F = c.n_experts, c.n_experts_per_token, c.d_model, c.d_ff
    wide = expert_linear(x, w.stack("gate_up_proj", E, D, 2 * F, used=k), chosen, transposed=True)
    wide = wide + np.take(w.stack("gate_up_proj_bias", E, 2 * F, used=k), chosen, axis=0)
    wide = clipped_swiglu(wide[..., ::2], wide[..., 1::2], c.gate_limit, c.gate_slope)
    down = expert_linear(wide, w.stack("down_proj", E, F, D, used=k), chosen, transposed=True)
    return down + np.take(w.stack("down_proj_bias", E, D, used=k), chosen, axis=0)
