"""Mellum 2: Qwen3-MoE's block, with a separate rotary embedding for layers with a window.

Source: JetBrains/Mellum2-12B-A2.5B-Base by transformers 5's class, whose tensor names these are.
"""

from __future__ import annotations

from typing import Any

from ..facts import NAMED_EXPERTS, Gguf, Mlx, Peft
from ..interface import Array, KVCache, Weights
from ..ops import Kind, Rope, embed, positions, rms_norm, rope_table, unembed
from . import architecture
from .config import Positive, Raw, Size, config, dense_first, fixed, key, masks_of, sparse_layers
from .predicted import Module, Place, angles, entry, mask_of
from .qwen3_moe import Qwen3MoE, layer
from .rope_config import fold_rope_of_kinds, read_rope, rope_of_mask
from .tensor_layouts import FUSED

ROPES: dict[str, Raw] = {
    "full_attention": {"rope_type": "default", "rope_theta": 500_000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
}


@config
class Mellum(Qwen3MoE):
    """Hyperparameters of Mellum 2, in forward order. d_ff is the inner width of the layers without experts."""

    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    d_head: Size = key("head_dim", 128)
    mlp_bias: bool = fixed(False)
    use_sliding_window: bool = fixed(True)
    sliding_window: Size | None = key("sliding_window", 1024)
    layer_types: list[str] = key("layer_types", lambda c: ["full_attention"] * c.n_layers)
    n_experts: Size = key("num_local_experts", also=("num_experts",))
    normalise: bool = key("norm_topk_prob", True)
    decoder_sparse_step: int = fixed(1)
    mlp_only_layers: list[int] = fixed(None)
    mlp_layer_types: list[str] = key("mlp_layer_types", lambda c: dense_first(0, c.n_layers))
    stacked: bool = fixed(True)

    ignored = Qwen3MoE.ignored | {
        "num_mtp_layers",
        "num_nextn_predict_layers",
        "mtp_layer_types",
        "mtp_mlp_layer_types",
        "use_sliding_window",
        "decoder_sparse_step",
        "mlp_only_layers",
    }

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return fold_rope_of_kinds(raw, ROPES)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, layer_type="full_attention")

    @property
    def kinds(self) -> list[Kind]:
        """In order: whether a layer has experts, and its mask."""
        masks = masks_of(self.layer_types, self.n_layers, self.sliding_window)
        return [Kind(*kind) for kind in zip(sparse_layers(self.mlp_layer_types, self.n_layers), masks)]


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    mask = mask_of(entry(at, c, "", "mtp_layer_types", "sliding_attention"), c)
    kind = Kind(entry(at, c, "", "mtp_mlp_layer_types", "sparse") == "sparse", mask)
    return layer(x, w, cache, c, kind, angles(ids, cache, c.d_head, rope_of_mask(c.rope_parameters, mask)))


MTP = Module(draft_layer, "mtp", "pre_fc_norm_embedding", "pre_fc_norm_hidden", "fc", "layers.{k}", "norm", is_one=True)


@architecture(
    "mellum",
    config=Mellum,
    pieces=FUSED,
    gguf=Gguf("mellum", is_windowed=True),
    predicts=MTP,
    peft=Peft(stacked=NAMED_EXPERTS),
    mlx=Mlx(in_8_bits=("mlp.gate",), is_windowed=True),
    windows_in_sglang=True,
)
def forward(w: Weights, ids: Array, c: Mellum, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    masks = dict.fromkeys(kind.mask for kind in c.kinds)
    tables = {mask: rope_table(places, c.d_head, rope_of_mask(c.rope_parameters, mask)) for mask in masks}
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, tables[kind.mask])
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)
