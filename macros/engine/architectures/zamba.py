"""Zamba: Mamba, cut into heads, and one block of attention and feed-forward network that several layers share.

The shared block sees the token's embedding beside the vector of the residual stream. Its output goes through a matrix
of the layer to Mamba, and not into the stream. Source: arXiv 2405.16712; tensor names as transformers, where the shared
block has the name of its first layer.
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem
from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import (
    Full,
    attend,
    causal_conv,
    causal_mask,
    embed,
    feed_forward,
    heads,
    linear,
    rms_norm,
    selective_scan,
    silu,
    softplus,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import (
    Config,
    Interval,
    Offset,
    Positive,
    Raw,
    Size,
    Taps,
    activation,
    config,
    derived,
    fixed,
    key,
    short_names,
)
from .mamba import NOT_READ
from .zamba2 import MIXERS, UNTIES_LAYERS, Zamba2Layer


@config
class Zamba(Config):
    """Hyperparameters of Zamba, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    period: Interval = key("attn_layer_period", 6)
    offset: Offset = key("attn_layer_offset", 4)
    layer_types: list[str] = key("layers_block_type", lambda c: c.default_layer_types(), also=("layer_types",))
    # mamba
    expand: Interval = key("mamba_expand", 2)
    d_inner: Size = derived(lambda c: c.expand * c.d_model)
    n_mamba_heads: Size = key("n_mamba_heads", 2)
    d_mamba_head: Size = derived(lambda c: c.d_inner // c.n_mamba_heads)
    bias: bool = key("mamba_proj_bias", False)
    d_conv: Taps = key("mamba_d_conv", 4)
    conv_bias: bool = key("mamba_conv_bias", True)
    dt_rank: Size = key("mamba_dt_rank", lambda c: -(-int(c.d_model) // 16))
    d_state: Size = key("mamba_d_state", 16)
    conv_activation: str = key("hidden_mamba_act", "silu")
    # the shared block
    n_heads: Size = key("num_attention_heads", 16)
    n_kv_heads: Size = key("num_key_value_heads", 16)
    d_both: Size = key("attention_hidden_size", lambda c: 2 * c.d_model)
    d_head: Size = key("attention_head_dim", lambda c: 2 * int(c.d_model) // int(c.n_heads), also=("head_dim",))
    d_ff: Size = key("intermediate_size")
    mlp_bias: bool = fixed(False)
    activation: str = key("hidden_act", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    ignored = NOT_READ | {"num_logits_to_keep"}
    otherwise = (UNTIES_LAYERS,)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return {k: v for k, v in super().prepare(raw).items() if v != "auto"}

    def default_layer_types(self) -> list[str]:
        """Two layers of Mamba and one with the shared block, then one with it in each period."""
        rest = ["hybrid" if i % self.period == self.offset else "mamba" for i in range(int(self.n_layers) - 3)]
        return ["mamba", "mamba", "hybrid", *rest][: int(self.n_layers)]

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        self.must_divide("n_mamba_heads", "d_inner")
        activation(self.activation)
        activation(self.conv_activation)
        if self.d_both != 2 * self.d_model:
            raise Problem(
                f"attention_hidden_size = {int(self.d_both)} for hidden_size = {int(self.d_model)}",
                f"give {2 * int(self.d_model)}: the shared block reads two vectors side by side",
            )

    @property
    def kinds(self) -> list[Zamba2Layer]:
        """The layers in order: Mamba alone, or with the shared block, which is stored with its first layer."""
        kinds = short_names(self.layer_types, self.n_layers, MIXERS)
        owner = next((i for i, kind in enumerate(kinds) if kind == "hybrid"), None)
        return [Zamba2Layer(owner if kind == "hybrid" else None) for kind in kinds]


@architecture("zamba", config=Zamba, peft=Peft(shared="shared_transf"))
def forward(w: Weights, ids: Array, c: Zamba, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    first = x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        shared = w.at(f"model.layers.{kind.owner}.shared_transf")
        x = layer(x, w_layer, shared, cache_layer, c, kind, first)
    x = rms_norm(x, w, "model.final_layernorm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, shared: Weights, cache: KVCache, c: Zamba, kind: Zamba2Layer, first: Array) -> Array:
    """One block; the shared block's output goes to Mamba, and not into the stream: [T D], [T D] -> [T D]."""
    if kind.owner is None:
        return x + mamba(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("mamba"), cache, c)
    y = rms_norm(np.concatenate([x, first], axis=-1), shared, "input_layernorm", c.norm_eps)
    y = rms_norm(attention(y, shared.at("self_attn"), cache, c), shared, "pre_ff_layernorm", c.norm_eps)
    y = feed_forward(y, shared.at("feed_forward"), c.d_ff, activation(c.activation))
    shown, w = x + linear(y, w, "linear", c.d_model), w.at("mamba_decoder")
    return x + mamba(rms_norm(shown, w, "input_layernorm", c.norm_eps), w.at("mamba"), cache, c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Zamba) -> Array:
    """Let each token gather information from itself and the tokens before it: [T 2D] -> [T N H] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q, k = heads(linear(x, w, "q_proj", N * H), N, H), heads(linear(x, w, "k_proj", K * H), K, H)
    v = heads(linear(x, w, "v_proj", K * H), K, H)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), (H / 2) ** -0.5)
    return linear(mixed, w, "o_proj", c.d_model)


@step(Role.MAMBA)
def mamba(x: Array, w: Weights, cache: KVCache, c: Zamba) -> Array:
    """Let each token gather information from the state of those before it, head by head: [T D] -> [T N P] -> [T D]."""
    T, N, P, R, Z = x.shape[0], c.n_mamba_heads, c.d_mamba_head, c.dt_rank, c.d_state
    both = linear(x, w, "in_proj", 2 * c.d_inner, bias=c.bias).reshape(T, c.d_inner, 2)
    x = activation(c.conv_activation)(causal_conv(both[:, :, 0], w, cache, "conv1d", c.d_conv, bias=c.conv_bias))
    x, gate = heads(x, N, P), heads(both[:, :, 1], N, P)
    maps = np.einsum("tnp,nrp->tnr", x, w("x_proj_weight", N, R + 2 * Z, P), optimize=True)
    dt = np.einsum("tnr,npr->tnp", maps[:, :, :R], w("dt_proj_weight", N, P, R), optimize=True)
    dt = softplus(dt + w("dt_proj_bias", N, P))
    A, D = -np.exp(w("A_log", N, P, Z)), w("D", N, P)
    B, C = maps[:, :, R : R + Z], maps[:, :, R + Z :]
    parts = [selective_scan(x[:, n], dt[:, n], A[n], B[:, n], C[:, n], cache.part(n)) for n in range(int(N))]
    y = (np.stack(parts, axis=1) + D * x) * silu(gate)
    return linear(y.reshape(T, c.d_inner), w, "out_proj", c.d_model, bias=c.bias)
