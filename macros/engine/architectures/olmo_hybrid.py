"""Olmo Hybrid: three layers of the gated delta rule, with norms before each half, to one of OLMo 2's, norms after each.

Sources: arXiv 2412.06464 (the gated delta rule), 2411.12537 (negative eigenvalues), the code of transformers 5, which
also gives the tensor names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Mixed,
    causal_conv,
    embed,
    gated_delta_rule,
    heads,
    l2_norm,
    linear,
    positions,
    rms_norm,
    rope_table,
    sigmoid,
    silu,
    softplus,
    unembed,
)
from ..steps import Role, step
from . import architecture, olmo2
from .config import Raw, Size, Taps, activation, config, fixed, key, mixers_of
from .llama import Llama, feed_forward

# The norm of the heads' answers has an epsilon of its own, that no config key sets.
ANSWER_EPS = 1e-5


@config
class OlmoHybrid(Llama):
    """Hyperparameters of Olmo Hybrid, in forward order."""

    # layers
    layer_types: list[str] | None = key("layer_types", None)
    # linear attention
    n_linear_k_heads: Size = key("linear_num_key_heads", lambda c: c.n_heads)
    n_linear_v_heads: Size = key("linear_num_value_heads", lambda c: c.n_heads)
    d_linear_k_head: Size = key("linear_key_head_dim", lambda c: int(0.75 * int(c.d_model) / int(c.n_linear_k_heads)))
    d_linear_v_head: Size = key("linear_value_head_dim", lambda c: 2 * c.d_linear_k_head)
    d_conv: Taps = key("linear_conv_kernel_dim", 4)
    strength_to_2: bool = key("linear_allow_neg_eigval", True)
    # feed-forward
    mlp_bias: bool = fixed(False)

    ignored = Llama.ignored | frozenset(
        "linear_a_log_min linear_a_log_max linear_dt_min linear_dt_max linear_dt_init_floor mlp_bias".split()
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        inside = [raw[name] for name in ("rope_scaling", "rope_parameters") if isinstance(raw.get(name), Mapping)]
        thetas = [table["rope_theta"] for table in cast("list[Raw]", [raw, *inside]) if "rope_theta" in table]
        raw = super().prepare(raw)
        return {**raw, "rope_parameters": {"rope_theta": None}} if thetas and thetas[-1] is None else raw

    def check(self) -> None:
        super().check()
        self.must_divide("n_linear_k_heads", "n_linear_v_heads")
        self.must_divide("n_linear_v_heads", "n_linear_k_heads")

    @property
    def tells_positions(self) -> bool:
        """Whether there is a rotary embedding: not if the config's theta is null."""
        return self.rope_parameters.get("rope_theta", 0) is not None

    @property
    def kinds(self) -> list[Mixed]:
        """In order: the token mixer."""
        last = self.n_layers - 1
        types = self.layer_types or [
            "full_attention" if i % 4 == 3 or i == last < 3 else "linear_attention" for i in range(self.n_layers)
        ]
        return [Mixed(mixer) for mixer in mixers_of(types, self.n_layers, "linear")]


@architecture(
    "olmo_hybrid",
    config=OlmoHybrid,
    spellings=(
        (".attention_layer_norm.", ".input_layernorm."),
        (".feedforward_layer_norm.", ".post_attention_layernorm."),
    ),
    pieces={"linear_attn.conv1d.weight": tuple(f"linear_attn.{part}_conv1d.weight" for part in "qkv")},
    rounds_heads={"olmo_hybrid": True},
)
def forward(w: Weights, ids: Array, c: OlmoHybrid, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope) if c.tells_positions else None
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: OlmoHybrid, kind: Mixed, table: RopeTable | None) -> Array:
    """One block: [T D] -> [T D]."""
    if kind.mixer == "linear":
        x = x + gated_delta_net(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("linear_attn"), cache, c)
        return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)
    mixed = olmo2.attention(x, w.at("self_attn"), cache, c, Full(), table)
    x = x + rms_norm(mixed, w, "post_attention_layernorm", c.norm_eps)
    return x + rms_norm(feed_forward(x, w.at("mlp"), c), w, "post_feedforward_layernorm", c.norm_eps)


@step(Role.GATED_DELTA_NET)
def gated_delta_net(x: Array, w: Weights, cache: KVCache, c: OlmoHybrid) -> Array:
    """Let each token read from a memory of fixed size, and correct it: [T D] -> [T N H] -> [T D].

    The strength of a correction goes up to 2, so that a memory may also change its sign. The memory is kept in float32.
    """
    K, N, H_k, H_v = c.n_linear_k_heads, c.n_linear_v_heads, c.d_linear_k_head, c.d_linear_v_head
    widths = {"q_proj": K * H_k, "k_proj": K * H_k, "v_proj": N * H_v}
    qkv = np.concatenate([linear(x, w, name, width) for name, width in widths.items()], axis=-1)
    qkv = activation(c.activation)(causal_conv(qkv, w, cache, "conv1d", c.d_conv, bias=False))
    q, k, v = np.split(qkv, [K * H_k, 2 * K * H_k], axis=-1)
    q, k = l2_norm(heads(q, K, H_k)), l2_norm(heads(k, K, H_k))
    strength = sigmoid(linear(x, w, "b_proj", N))
    keep = np.exp(-np.exp(w("A_log", N)) * softplus(linear(x, w, "a_proj", N) + w("dt_bias", N)))
    strength = strength * 2 if c.strength_to_2 else strength
    y = gated_delta_rule(q * H_k**-0.5, k, heads(v, N, H_v), keep, strength, cache)
    y = rms_norm(y, w, "o_norm", ANSWER_EPS) * silu(heads(linear(x, w, "g_proj", N * H_v), N, H_v))
    return linear(y.reshape(x.shape[0], N * H_v), w, "o_proj", c.d_model)
