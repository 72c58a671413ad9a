"""Ling 2.5 and 2.6: seven layers of lightning attention to one of latent attention, and DeepSeek-V3's experts.

Their config.json has the type of Ling 3, `bailing_hybrid`; the class tells the two apart. Sources: arXiv 2401.04658
(lightning attention); vLLM, model_executor/models/bailing_moe_linear.py, also for the tensor names.
"""

from __future__ import annotations

from typing import Literal

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Mixed, Rope, embed, feed_forward, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .bailing_hybrid import Ling3, attention
from .config import Interval, Size, activation, config, fixed, key
from .deepseek_v3 import mixture_of_stacked_experts
from .lightning import lightning_attention
from .otherwise import Otherwise, Table
from .rope_config import read_rope
from .tensor_layouts import FUSED


def _leaves_some(raw: Table) -> bool:
    """Whether the layers are no whole number of groups."""
    layers, size = raw.get("num_hidden_layers"), raw.get("layer_group_size")
    return isinstance(layers, int) and isinstance(size, int) and size > 0 and layers % size != 0


@config
class Ling25(Ling3):
    """Hyperparameters of Ling 2.5, in forward order."""

    # layers
    dense_layers: int = key("first_k_dense_replace", 0)
    layer_group_size: Interval = key("layer_group_size", 1)
    # linear attention
    d_conv: int = fixed(0)
    bounded_decay: bool = fixed(False)
    least_log_decay: float = fixed(0.0)
    qk_norm: bool = key("use_qk_norm", False)
    turns: bool = key("linear_rope", True)
    activated: bool = key("linear_silu", False, also=("use_linear_silu",))
    n_norm_groups: Size = key("group_norm_size", 1)
    # attention
    gated: None = fixed(None)
    # experts
    balanced: Literal[True] = key("moe_router_enable_expert_bias", True)

    ignored = Ling3.ignored - {"use_qk_norm", "linear_silu", "group_norm_size", "moe_router_enable_expert_bias"}
    otherwise = (
        Otherwise(
            "layer_group_size",
            _leaves_some,
            "vLLM and SGLang give the layers after the last whole group linear attention, as is done here; the makers’ "
            "class gives them full attention",
        ),
    )

    def check(self) -> None:
        super().check()
        self.must_divide("n_norm_groups", "n_heads")

    @property
    def linear_rope(self) -> Rope:
        """The rotary embedding of lightning attention, which rotates a share of each head."""
        return read_rope(self.rope_parameters, theta=6e5)


@architecture(
    "bailing_moe_v2_5",
    config=Ling25,
    spellings=(
        ("^model.word_embeddings.", "model.embed_tokens."),
        (".attention.", ".self_attn."),
        ("mlp.gate.expert_bias", "mlp.gate.e_score_correction_bias"),
    ),
    pieces=FUSED,
)
def forward(w: Weights, ids: Array, c: Ling25, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    table = rope_table(places, c.qk_rope_head_dim, c.rope)
    wide = rope_table(places, c.d_linear_head, c.linear_rope) if c.turns else None
    for kind, w_layer, cache_layer in w.layers("model.layers", c.mixed, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table, wide)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(
    x: Array, w: Weights, cache: KVCache, c: Ling25, kind: Mixed, table: RopeTable, wide: RopeTable | None
) -> Array:
    """One block: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    if kind.mixer == "linear":
        x = x + lightning_attention(y, w.at("self_attn"), cache, c, wide)
    else:
        x = x + attention(y, w.at("self_attn"), cache, c, table, "dense")
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.feed_forward == "moe":
        return x + mixture_of_stacked_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))
