"""The vision tower of Kimi K3: Kimi K2.5's with root mean square norms, wider heads, and no biases.

What blocks of patches make of themselves is normalized at the end. Source: moonshotai/Kimi-K3, the shapes of its files,
and vLLM, model_executor/models/kimi_k25_vit.py; tensor names as published.
"""

from __future__ import annotations

from typing import Literal

from ..architectures.config import Positive, Size, config, derived, fixed, key
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import apply_rope_pairs, attend, gelu, heads, linear, rms_norm
from ..steps import Role, step
from . import Grid, tower
from .kimi_k25 import KimiVision, alternating_rope
from .patches import blocks, embed_patches, named_activation, places, stretched_positions, two_maps


@config
class KimiK3Vision(KimiVision):
    """Hyperparameters of Kimi K3's vision tower, in forward order."""

    norm_type: Literal["rmsnorm"] = key("norm_type", "rmsnorm")
    attention_bias: Literal[False] = key("attn_bias", False)
    patch_bias: Literal[False] = key("patch_embed_proj_bias", False)
    mlp_bias: Literal[False] = key("linear_bias", False)
    interpolation: Literal["bilinear"] = key("pos_emb_interpolation_mode", "bilinear")
    projector: Literal["patchmergerv2"] = key("mm_projector_type", "patchmergerv2")
    d_model: Size = key("vt_hidden_size", 1024)
    n_layers: Size = key("vt_num_hidden_layers", 27)
    norm_eps: Positive = fixed(2.0**-23)  # the least that torch tells from 1 in 32 bits
    n_heads: Size = key("vt_num_attention_heads", 12)
    d_qkv: Size = key("qkv_hidden_size", 1536)
    d_head: Size = derived(lambda c: c.d_qkv // c.n_heads)
    d_ff: Size = key("vt_intermediate_size", 4096)
    activation: str = key("activation_func", "gelu_pytorch_tanh")

    def check(self) -> None:
        self.must_divide("n_heads", "d_qkv")
        named_activation(self.activation)
        self.check_sides()

    ignored = (KimiVision.ignored - {"mm_projector_type"}) | {"mlp_type"}


@tower("kimi_k3.vision_config", config=KimiK3Vision)
def forward(w: Weights, x: Array, grid: Grid, c: KimiK3Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("vision_tower")
    x = embed_patches(x, tower, "patch_embed.proj", c.d_model, (c.n_channels, c.patch, c.patch), bias=False)
    row, column = places(x, grid.rows, grid.columns)
    sides = c.n_position_rows, c.n_position_columns
    table = tower("patch_embed.pos_emb.weight", *sides, c.d_model).reshape(sides[0] * sides[1], c.d_model)
    x = x + stretched_positions(row, column, table, c.n_position_rows, grid, to_corners=False)
    angles = alternating_rope(row, column, c.d_head, c.theta)
    for _, w_layer, _ in tower.layers("encoder.blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    x = rms_norm(x, tower, "encoder.final_layernorm", c.norm_eps)
    return [project(x, w.at("mm_projector"), grid, c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: KimiK3Vision, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    x = x + attention(rms_norm(x, w, "norm0", c.norm_eps), w, c, angles)
    y, act = rms_norm(x, w, "norm1", c.norm_eps), named_activation(c.activation)
    return x + two_maps(y, w.at("mlp"), ("fc0", "fc1"), c.d_ff, c.d_model, act, bias=False)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: KimiK3Vision, angles: RopeTable) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    qkv = heads(linear(x, w, "wqkv", 3 * c.d_qkv), 3 * c.n_heads, c.d_head)
    q, k, v = (qkv[:, i * c.n_heads : (i + 1) * c.n_heads] for i in range(3))
    q, k = apply_rope_pairs(q, angles), apply_rope_pairs(k, angles)
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "wo", c.d_model)


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, grid: Grid, c: KimiK3Vision) -> Array:
    """One vector for the text model per block of patches: [P D] -> [P/m² m²·D] -> [P/m² O]."""
    wide = c.merge * c.merge * c.d_model
    x = blocks(x, grid, c.merge).reshape(grid.rows // c.merge * (grid.columns // c.merge), wide)
    x = two_maps(x, w, ("proj.0", "proj.2"), wide, c.d_text, gelu, bias=False)
    return rms_norm(x, w, "post_norm", c.projector_eps)
