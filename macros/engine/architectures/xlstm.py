"""xLSTM: no attention, but a matrix for each head that each token reads, partly forgets and writes into.

Both gates come from the token. Source: arXiv 2405.04517 (2.3) and 2503.13427, by transformers' class, whose tensor
names these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import shorten
from ..interface import Array, KVCache, Weights
from ..ops import embed, heads, linear, mlstm, rms_norm, sigmoid, silu, soft_cap, softplus, unembed
from ..steps import Role, step
from . import architecture
from .config import Config, Interval, Positive, Raw, Size, config, derived, key
from .otherwise import NEVER_TIED


@config
class XLSTM(Config):
    """Hyperparameters of xLSTM, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size", also=("embedding_dim",))
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("norm_eps", 1e-6)
    bias: bool = key("use_bias", False)
    fused: str = key("weight_mode", "single")
    # memory
    n_heads: Size = key("num_heads", 8)
    qk_factor: Positive = key("qk_dim_factor", 0.5)
    v_factor: Positive = key("v_dim_factor", 1.0)
    d_qk: Size = derived(lambda c: int(int(c.d_model) * c.qk_factor))
    d_v: Size = derived(lambda c: int(int(c.d_model) * c.v_factor))
    d_qk_head: Size = derived(lambda c: c.d_qk // c.n_heads)
    d_v_head: Size = derived(lambda c: c.d_v // c.n_heads)
    gate_cap: Positive = key("gate_soft_cap", 15.0)
    memory_eps: Positive = key("eps", 1e-6)
    # feed-forward
    ff_factor: Positive = key("ffn_proj_factor", 2.667)
    multiple: Interval = key("ffn_round_up_to_multiple_of", 64)
    d_ff: Size = derived(lambda c: int((c.d_model * c.ff_factor + c.multiple - 1) // c.multiple) * c.multiple)
    # head
    logit_cap: Positive = key("output_logit_soft_cap", 30.0)
    tied: bool = key("tie_word_embeddings", False)

    otherwise = (NEVER_TIED,)
    rewritten = frozenset({"num_blocks"})
    ignored = frozenset(
        """add_embedding_dropout add_forward_backend_padding add_out_norm add_post_blocks_norm add_post_norm add_qk_norm
        autocast_kernel_dtype cell_norm_eps chunk_size chunkwise_kernel force_bos_token_insert head_dim
        igate_bias_init_range inference_state_dtype max_inference_chunksize mode norm_reduction_force_float32
        return_last_states sequence_kernel step_kernel""".split()
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The number of blocks takes precedence over that of layers."""
        blocks = raw.pop("num_blocks", None)
        return raw if blocks is None else {**raw, "num_hidden_layers": blocks}

    @classmethod
    def read_otherwise(cls, raw: Mapping[str, Any]) -> list[str]:
        blocks, layers = raw.get("num_blocks"), raw.get("num_hidden_layers", 32)
        said = f"num_blocks = {shorten(blocks)}: transformers 5.24 has so many, and keeps states for num_hidden_layers"
        return super().read_otherwise(raw) + ([said] if blocks not in (None, layers) else [])

    def check(self) -> None:
        self.must_divide("n_heads", "d_qk")
        self.must_divide("n_heads", "d_v")

    def norm(self, x: Array, w: Weights, name: str) -> Array:
        """RMS norm, shifted where the model has biases: [T D] -> [T D]."""
        x = rms_norm(x, w, name, self.norm_eps)
        return x + w(f"{name}.bias", x.shape[-1]) if self.bias else x


@architecture("xlstm", config=XLSTM)
def forward(w: Weights, ids: Array, c: XLSTM, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "backbone.embeddings.weight", c.vocab_size, c.d_model)
    for _, w_layer, cache_layer in w.layers("backbone.blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    x = rms_norm(x, w, "backbone.out_norm", c.norm_eps)
    head = "backbone.embeddings.weight" if c.tied else "lm_head.weight"
    return soft_cap(unembed(x, w, head, c.vocab_size, last=last), c.logit_cap)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: XLSTM) -> Array:
    """One block: [T D] -> [T D]."""
    x = x + mlstm_layer(c.norm(x, w, "norm_mlstm"), w.at("mlstm_layer"), cache, c)
    return x + feed_forward(c.norm(x, w, "norm_ffn"), w.at("ffn"), c)


@step(Role.MLSTM_LAYER)
def mlstm_layer(x: Array, w: Weights, cache: KVCache, c: XLSTM) -> Array:
    """Let each token gather information from a memory of those before it: [T D] -> [T N J] -> [T D]."""
    T, N, C, J = x.shape[0], c.n_heads, c.n_heads * c.d_qk_head, c.n_heads * c.d_v_head
    if c.fused == "fused":
        q, k, v, out = np.split(linear(x, w, "qkv_opreact", 2 * C + 2 * J, bias=c.bias), [C, 2 * C, 2 * C + J], axis=-1)
        opened, kept = np.split(soft_cap(linear(x, w, "ifgate_preact", 2 * N, bias=True), c.gate_cap), 2, axis=-1)
    else:
        q, k = linear(x, w, "q", C, bias=c.bias), linear(x, w, "k", C, bias=c.bias)
        v, out = linear(x, w, "v", J, bias=c.bias), linear(x, w, "ogate_preact", J, bias=c.bias)
        opened = soft_cap(linear(x, w, "igate_preact", N, bias=True), c.gate_cap)
        kept = soft_cap(linear(x, w, "fgate_preact", N, bias=True), c.gate_cap)
    q, k, v = heads(q, N, c.d_qk_head), heads(k, N, c.d_qk_head), heads(v, N, c.d_v_head)
    y = mlstm(q * c.d_qk_head**-0.5, k, v, opened, -softplus(-kept), cache, c.memory_eps)
    y = y - y.mean(axis=-1, keepdims=True)
    y = (y / np.sqrt((y * y).mean(axis=-1, keepdims=True) + c.norm_eps)).reshape(T, J) * w("multihead_norm.weight", J)
    y = y + w("multihead_norm.bias", J) if c.bias else y
    return linear(sigmoid(out) * y, w, "out_proj", c.d_model, bias=c.bias)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: XLSTM) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    if c.fused == "fused":
        gate, up = np.split(linear(x, w, "proj_up_gate_z", 2 * c.d_ff, bias=c.bias), 2, axis=-1)
    else:
        gate, up = linear(x, w, "proj_up_gate", c.d_ff, bias=c.bias), linear(x, w, "proj_up", c.d_ff, bias=c.bias)
    return linear(silu(gate) * up, w, "proj_down", c.d_model, bias=c.bias)
