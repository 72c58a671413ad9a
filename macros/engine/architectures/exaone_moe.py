"""EXAONE MoE: EXAONE 4's attention on the norm before it, and DeepSeek-V3's mixture of experts.

Source: LGAI-EXAONE/K-EXAONE-236B-A23B by transformers 5's class, whose tensor names these are; the published files hold
each expert by itself and the router's bias one level up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..facts import NAMED_EXPERTS, Gguf, Mlx, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Kind, embed, feed_forward, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .config import Count, Positive, Size, activation, config, dense_first, key, listed, sparse_layers
from .deepseek_v2 import check_groups
from .deepseek_v3 import mixture_of_stacked_experts
from .exaone4 import Exaone4, attention
from .predicted import Module, Place, angles
from .tensor_layouts import FUSED


def _is_another_list(raw: Mapping[str, Any]) -> bool:
    """Whether the published list of layers with experts differs from that of the keys that are read."""
    said, types = listed(raw.get("is_moe_layer")), listed(raw.get("mlp_layer_types"))
    dense = raw.get("first_k_dense_replace", 1)
    if said is None or not isinstance(dense, int):
        return False
    return said != [types[i] == "sparse" if types and i < len(types) else i >= dense for i in range(len(said))]


@config
class ExaoneMoE(Exaone4):
    """Hyperparameters of EXAONE MoE, in forward order. d_ff is the inner width of the layers without experts."""

    # layers
    dense_layers: int = key("first_k_dense_replace", 1, also=("first_last_k_dense_replace",))
    mlp_layer_types: list[str] = key("mlp_layer_types", lambda c: dense_first(c.dense_layers, c.n_layers))
    # experts
    n_experts: Size = key("num_experts", also=("n_routed_experts", "num_local_experts"))
    n_experts_per_token: Size = key("num_experts_per_tok")
    n_expert_groups: Size = key("n_group", 1)
    n_groups_kept: Size = key("topk_group", 1)
    normalise: bool = key("norm_topk_prob", True)
    routed_scale: Positive = key("routed_scaling_factor", 2.5)
    d_ff_expert: Size = key("moe_intermediate_size")
    n_shared_experts: Count = key("num_shared_experts", also=("n_shared_experts",))

    ignored = Exaone4.ignored | {
        "is_moe_layer",
        "scoring_func",
        "topk_method",
        "num_nextn_predict_layers",
        "attention_bias",
    }

    @classmethod
    def read_otherwise(cls, raw: Mapping[str, Any]) -> list[str]:
        said = "is_moe_layer: transformers 5.24 goes by first_k_dense_replace, and so do these figures"
        return super().read_otherwise(raw) + ([said] if _is_another_list(raw) else [])

    def check(self) -> None:
        super().check()
        check_groups(self)

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts, and its mask."""
        return [Kind(*kind) for kind in zip(sparse_layers(self.mlp_layer_types, self.n_layers), self.masks)]


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    kind = Kind(False, c.masks[0])
    return layer(x, w, cache, c, kind, angles(ids, cache, c.d_head, c.rope))


MTP = Module(draft_layer, "mtp", "pre_fc_norm_embedding", "pre_fc_norm_hidden", "fc", "layers.{k}", "norm", is_one=True)


@architecture(
    "exaone_moe",
    config=ExaoneMoE,
    pieces=FUSED,
    spellings=(("mlp.e_score_correction_bias", "mlp.gate.e_score_correction_bias"),),
    gguf=Gguf("exaone-moe", is_windowed=True),
    predicts=MTP,
    peft=Peft(stacked=NAMED_EXPERTS),
    mlx=Mlx(is_windowed=True),
    rounds_heads={"exaone_moe": True},
)
def forward(w: Weights, ids: Array, c: ExaoneMoE, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: ExaoneMoE, kind: Kind, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, kind.mask, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    if kind.moe:
        return x + mixture_of_stacked_experts(y, w.at("mlp"), c)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))
