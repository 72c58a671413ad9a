"""The vision tower of Qwen2-VL: a ViT for images of any size, whose vectors are merged four to one.

A patch has two frames of a film; an image is shown twice. Positions are 2D rotary embeddings alone. Source:
transformers 5.24, modeling_qwen2_vl.py (arXiv 2409.12191).
"""

from __future__ import annotations

from ..architectures.config import Positive, Raw, Size, config, derived, fixed, key
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import gelu, layer_norm
from ..steps import Role, step
from . import Grid, tower
from .patches import (
    AnySize,
    axial_rope,
    embed_patches,
    joint_attention,
    named_activation,
    places,
    two_maps,
)


@config
class Qwen2Vision(AnySize):
    """Hyperparameters of Qwen2-VL's vision tower, in forward order."""

    # patches
    n_channels: Size = key("in_channels", 3, also=("in_chans",))
    n_frames: Size = key("temporal_patch_size", 2)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("embed_dim")
    # layers
    n_layers: Size = key("depth")
    norm_eps: Positive = fixed(1e-6)
    n_heads: Size = key("num_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    theta: Positive = fixed(10000.0)
    mlp_ratio: Positive = key("mlp_ratio", 4)
    d_ff: Size = derived(lambda c: int(c.d_model * c.mlp_ratio))
    activation: str = key("hidden_act", "quick_gelu")
    # merger
    merge: Size = key("spatial_merge_size", 2)
    d_text: Size = key("hidden_size")

    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    ignored = frozenset({"spatial_patch_size"})


@tower("qwen2_vl.vision_config", config=Qwen2Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Qwen2Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.visual")
    row, column = places(x, grid.rows, grid.columns, c.merge)
    kernel = c.n_channels, c.n_frames, c.patch, c.patch
    x = embed_patches(x, tower, "patch_embed.proj", c.d_model, kernel, bias=False)
    angles = axial_rope(row, column, c.d_head, c.theta)
    for _, w_layer, _ in tower.layers("blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    return [merger(x, tower.at("merger"), c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Qwen2Vision, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    y = layer_norm(x, w, "norm1", c.norm_eps)
    x = x + joint_attention(y, w.at("attn"), c.n_heads, c.d_head, angles, "qkv", "proj")
    y = layer_norm(x, w, "norm2", c.norm_eps)
    return x + two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))


@step(Role.FEED_FORWARD)
def merger(x: Array, w: Weights, c: Qwen2Vision) -> Array:
    """One vector for the text model per block of patches: [P D] -> [P/m² m²·D] -> [P/m² O]."""
    x = layer_norm(x, w, "ln_q", c.norm_eps)
    block = c.merge * c.merge
    wide = block * c.d_model
    return two_maps(x.reshape(x.shape[0] // block, wide), w, ("mlp.0", "mlp.2"), wide, c.d_text, gelu)
