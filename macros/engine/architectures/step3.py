"""Step-3: queries through a narrow vector with a norm, one key and value for all heads; a shared expert beside others.

Source: arXiv 2507.19427; stepfun-ai/step3 by vLLM, model_executor/models/step3_text.py, whose tensor names these are.
"""

from __future__ import annotations

from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Kind,
    Rope,
    apply_rope,
    attend,
    causal_mask,
    combine,
    embed,
    feed_forward,
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
from .config import Count, Positive, Raw, Size, activation, config, dense_first, fixed, key, sparse_layers
from .llama import Llama
from .rope_config import fold_rope, read_rope
from .step3p5 import enumerated_layers

# Stacks of all experts.
STACKS = ("gate_proj.weight", "up_proj.weight", "down_proj.weight")


@config
class Step3(Llama):
    """Hyperparameters of Step-3, in forward order. d_ff is the inner width of the layers without experts."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    mlp_layer_types: list[str] = key("mlp_layer_types", lambda c: dense_first(1, c.n_layers))
    # attention
    n_kv_heads: Size = key("num_attention_groups", 1, also=("num_key_value_heads",))
    d_head: Size = key("head_dim", 256)
    attention_bias: bool = fixed(False)
    q_lora_rank: Size = key("share_q_dim", 2048)
    # feed-forward
    mlp_bias: bool = fixed(False)
    # experts
    n_experts: Size = key("moe_num_experts", also=("num_experts",))
    n_experts_per_token: Size = key("moe_top_k", also=("num_experts_per_tok",))
    normalise: bool = key("norm_expert_weight", False)
    d_ff_expert: Size = key("moe_intermediate_size")
    d_ff_shared: Count = key("share_expert_dim")

    rewritten = Llama.rewritten | {"moe_layers_enum"}
    ignored = Llama.ignored | {
        "attention_bias",
        "max_position_embedding",
        "max_seq_len",
        "mlp_bias",
        "use_mfa",
        "use_moe",
    }

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The numbers of the layers with experts as a word for each layer."""
        enumerated, layers = raw.pop("moe_layers_enum", None), raw.get("num_hidden_layers")
        if enumerated is not None and raw.get("mlp_layer_types") is None and isinstance(layers, int):
            sparse = enumerated_layers(enumerated)
            raw["mlp_layer_types"] = ["sparse" if i in sparse else "dense" for i in range(layers)]
        return fold_rope(raw)

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")
        if self.n_kv_heads != 1:
            raise Problem(
                f"{self.key_of('n_kv_heads')} = {int(self.n_kv_heads)}", "the site describes one key and value for all"
            )

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=500_000.0)

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts."""
        return [Kind(moe) for moe in sparse_layers(self.mlp_layer_types, self.n_layers)]


@architecture("step3_text", config=Step3, images_in_sglang=False)
def forward(w: Weights, ids: Array, c: Step3, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Step3, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    act = activation(c.activation)
    if kind.moe:
        return x + mixture_of_experts(y, w.at("moe"), c) + shared_experts(y, w.at("share_expert"), c.d_ff_shared, act)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, act)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Step3, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    narrow = rms_norm(linear(x, w, "q_proj", c.q_lora_rank), w, "inter_norm", c.norm_eps)
    q = apply_rope(heads(linear(narrow, w, "wq", N * H), N, H), table)
    k = apply_rope(heads(linear(x, w, "k_proj", K * H), K, H), table)
    v = heads(linear(x, w, "v_proj", K * H), K, H)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5), w, "o_proj", c.d_model)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Step3) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    fit = linear(x, w, "gate", c.n_experts)
    chosen, shares = softmax_routing(fit, c.n_experts_per_token, normalise=c.normalise)
    return combine(gated_experts(x, chosen, w, STACKS, c.n_experts, c.d_ff_expert, activation(c.activation)), shares)
