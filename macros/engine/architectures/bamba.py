"""Bamba: Mamba 2 with occasional attention layers, half of each head rotated by the position.

Sources: ibm-ai-platform/Bamba-9B-v2, config.json and model card, and the code of transformers 5, which also gives the
tensor names.
"""

from __future__ import annotations

import math

from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Full, Mixed, embed, feed_forward, positions, rms_norm, rope_table, unembed
from ..ops.recurrence import STATE_BYTES
from ..steps import Role, step
from . import architecture
from .config import Positive, Raw, Size, Taps, activation, config, key
from .gguf_tables import GRANITE_HYBRID
from .llama import Llama, attention
from .mamba import NOT_READ
from .mamba2 import mamba2


@config
class Bamba(Llama):
    """Hyperparameters of Bamba, in forward order."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    attention_layers: list[int] = key("attn_layer_indices", lambda c: [])
    # mamba
    expand: Positive = key("mamba_expand", 2.0)
    n_mamba_heads: Size = key("mamba_n_heads", 128)
    d_mamba_head: Size = key("mamba_d_head", lambda c: int(c.expand * int(c.d_model)) // int(c.n_mamba_heads))
    n_groups: Size = key("mamba_n_groups", 1)
    d_state: Size = key("mamba_d_state", 256)
    bias: bool = key("mamba_proj_bias", False)
    d_conv: Taps = key("mamba_d_conv", 4)
    conv_bias: bool = key("mamba_conv_bias", True)
    dt_limits: tuple[float, float] = key("time_step_limit", lambda c: (0.0, math.inf))
    # attention
    n_kv_heads: Size = key("num_key_value_heads", 8)

    ignored = Llama.ignored | NOT_READ | {"attn_rotary_emb", "num_logits_to_keep", "z_loss_coefficient"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """Half of a head rotates, regardless of the keys next to the table of the rotary embedding."""
        raw = super().prepare({**raw, "partial_rotary_factor": 0.5})
        return {k: v for k, v in raw.items() if v != "auto"}

    def check(self) -> None:
        super().check()
        self.must_divide("n_groups", "n_mamba_heads")
        width, expanded = int(self.n_mamba_heads * self.d_mamba_head), int(self.expand * int(self.d_model))
        if width != expanded:
            raise Problem(
                f"mamba_n_heads × mamba_d_head = {width}, and mamba_expand × hidden_size = {expanded}",
                "correct one of them",
            )

    @property
    def kinds(self) -> list[Mixed]:
        """In order: the token mixer."""
        return [Mixed("attention" if i in self.attention_layers else "mamba") for i in range(self.n_layers)]


@architecture("bamba", config=Bamba, gguf=GRANITE_HYBRID)
def forward(w: Weights, ids: Array, c: Bamba, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.final_layernorm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Bamba, kind: Mixed, table: RopeTable) -> Array:
    """One block: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    if kind.mixer == "mamba":
        x = x + mamba2(y, w.at("mamba"), cache, c, c.activation, c.norm_eps, STATE_BYTES)
    else:
        x = x + attention(y, w.at("self_attn"), cache, c, Full(), table)
    y = rms_norm(x, w, "pre_ff_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("feed_forward"), c.d_ff, activation(c.activation), bias=c.mlp_bias)
