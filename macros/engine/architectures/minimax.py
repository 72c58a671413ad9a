"""MiniMax-Text-01: seven layers of lightning attention to one of softmax, experts in every layer, a weighted residual.

Sources: arXiv 2501.08313 (MiniMax-01), 2401.04658 (lightning attention); tensor names as transformers 5.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from ..errors import Problem, shorten
from ..facts import W_EXPERTS, Gguf, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Mixed,
    Rope,
    SlidingWindow,
    combine,
    decaying_attention,
    embed,
    heads,
    linear,
    packed_experts,
    positions,
    rms_norm,
    rope_table,
    sigmoid,
    softmax_routing,
    unembed,
)
from ..steps import Role, step
from . import architecture
from .config import Positive, Raw, Size, activation, config, fixed, key, mixers_of
from .llama import Llama, attention
from .rope_config import read_rope
from .tensor_layouts import MIXTRAL_EXPERTS_FUSED, PACKED


@config
class MiniMax(Llama):
    """Hyperparameters of MiniMax-Text-01, in forward order. d_ff is the inner width of one expert."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    layer_types: list[str] | None = key("layer_types", None)
    residual_after_norm: Literal[True] = key("postnorm", True)
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 8)
    attention_bias: bool = fixed(False)
    d_rotary: Size | None = key("rotary_dim", None)
    sliding_window: Size | None = key("sliding_window", None)
    full_alpha: float = key("full_attn_alpha_factor", 1.0, also=("layernorm_full_attention_alpha",))
    full_beta: float = key("full_attn_beta_factor", 1.0, also=("layernorm_full_attention_beta",))
    lightning_alpha: float = key("linear_attn_alpha_factor", 1.0, also=("layernorm_linear_attention_alpha",))
    lightning_beta: float = key("linear_attn_beta_factor", 1.0, also=("layernorm_linear_attention_beta",))
    # experts
    n_experts: Size = key("num_local_experts", also=("num_experts",))
    n_experts_per_token: Size = key("num_experts_per_tok")
    d_ff_shared: Literal[0] = key("shared_intermediate_size", 0)
    mlp_bias: bool = fixed(False)
    experts_alpha: float = key("mlp_alpha_factor", 1.0, also=("layernorm_mlp_alpha",))
    experts_beta: float = key("mlp_beta_factor", 1.0, also=("layernorm_mlp_beta",))

    rewritten = Llama.rewritten | {"attn_type_list"}
    ignored = Llama.ignored | {
        "attention_bias",
        "mlp_bias",
        "block_size",
        "shared_moe_mode",
        "max_model_len",
        "use_lightning_attention",
    }

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        raw = super().prepare(raw)
        kinds = raw.pop("attn_type_list", None)
        if kinds is None or "layer_types" in raw:
            return raw
        try:
            is_softmax = msgspec.convert(kinds, list[Literal[0, 1]])
        except msgspec.ValidationError:
            raise Problem(
                f"attn_type_list = {shorten(kinds)}: expected a list of 0 (lightning) and 1 (softmax)",
                "correct the value",
            ) from None
        return {**raw, "layer_types": ["full_attention" if k else "linear_attention" for k in is_softmax]}

    def check(self) -> None:
        super().check()
        self.must_not_exceed("n_experts_per_token", "n_experts")

    @property
    def rope(self) -> Rope:
        partial = {"partial_rotary_factor": int(self.d_rotary) / int(self.d_head)} if self.d_rotary else {}
        return read_rope(partial | self.rope_parameters, theta=1e6)

    @property
    def mask(self):
        """The mask of softmax attention."""
        return SlidingWindow(self.sliding_window) if self.sliding_window else Full()

    @property
    def kinds(self) -> list[Mixed]:
        """In order: the token mixer; every layer has experts."""
        types = self.layer_types or ["linear_attention" if i % 2 else "full_attention" for i in range(self.n_layers)]
        return [Mixed(mixer, "moe") for mixer in mixers_of(types, self.n_layers, "lightning")]


GGUF = Gguf("minimax-01", {"self_attn.norm": "attn_norm_2", "self_attn.output_gate": "attn_gate"})


@architecture(
    "minimax",
    config=MiniMax,
    spellings=(("block_sparse_moe.gate.", "mlp.gate."),),
    pieces=MIXTRAL_EXPERTS_FUSED,
    gguf=GGUF,
    peft=Peft(stacked=W_EXPERTS),
    rounds_heads={"minimax": True},
)
@architecture(
    "minimax_text_01",
    "minimax_m1",
    config=MiniMax,
    spellings=(("block_sparse_moe.gate.", "mlp.gate."),),
    pieces=MIXTRAL_EXPERTS_FUSED,
    gguf=GGUF,
)
def forward(w: Weights, ids: Array, c: MiniMax, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: MiniMax, kind: Mixed, table: RopeTable) -> Array:
    """One block; its normalized input, weighted, is added to each half: [T D] -> [T D]."""
    x = rms_norm(x, w, "input_layernorm", c.norm_eps)
    if kind.mixer == "lightning":
        x = x * c.lightning_alpha + lightning_attention(x, w.at("self_attn"), cache, c) * c.lightning_beta
    else:
        x = x * c.full_alpha + attention(x, w.at("self_attn"), cache, c, c.mask, table) * c.full_beta
    x = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x * c.experts_alpha + mixture_of_experts(x, w.at("mlp"), c) * c.experts_beta


@step(Role.LIGHTNING_ATTENTION)
def lightning_attention(x: Array, w: Weights, cache: KVCache, c: MiniMax) -> Array:
    """Let each token read from a memory that fades, at its own rate in each head: [T D] -> [T N H] -> [T D].

    The memory is kept in float32, as in the vendor's code. The rates are fixed: the memory fades faster in lower
    layers.
    """
    T, N, H = x.shape[0], c.n_heads, c.d_head
    q, k, v = np.split(heads(activation(c.activation)(linear(x, w, "qkv_proj", 3 * N * H)), N, 3 * H), 3, axis=-1)
    depth = 1 - w.index / (int(c.n_layers) - 1 + 1e-5) + 1e-5
    keep = np.exp(-depth * 2.0 ** ((np.arange(N, like=x) + 1) * (-8 / int(N)))).astype(np.float32)
    y = decaying_attention(q, k, v, np.broadcast_to(keep, (T, N)), cache).reshape(T, N * H)
    gate = sigmoid(linear(x, w, "output_gate", N * H))
    return linear(gate * rms_norm(y, w, "norm", 1e-6), w, "out_proj", c.d_model)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: MiniMax) -> Array:
    """Send each token to a few experts, and sum their outputs, weighted by the routing weights: [T D] -> [T k D] -> [T
    D]."""
    chosen, shares = softmax_routing(linear(x, w, "gate", c.n_experts), c.n_experts_per_token, normalise=True)
    return combine(packed_experts(x, chosen, w, PACKED, c.n_experts, c.d_ff, activation(c.activation)), shares)
