"""The vision tower of GLM-4.1V, 4.5V and 4.6V: a ViT for images of any size; a convolution makes one vector of four.

A patch has two frames of a film; an image is shown twice. Positions are a learned table, stretched over the image, and
2D rotary embeddings. Source: transformers 5.24, modeling_glm4v.py.
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Raw, Size, config, derived, fixed, key
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import apply_rope, attend, gelu, heads, layer_norm, linear, rms_norm
from ..steps import Role, step
from . import Grid, tower
from .patches import (
    AnySize,
    at_least_a_block,
    axial_rope,
    embed_patches,
    gated_maps,
    named_activation,
    places,
    stretched_positions,
    whole_blocks,
)


@config
class Glm4Vision(AnySize):
    """Hyperparameters of GLM-4V's vision tower, in forward order."""

    # patches
    n_channels: Size = key("in_channels", 3)
    n_frames: Size = key("temporal_patch_size", 2)
    image_size: Size = key("image_size", 336)  # of the table of positions
    patch: Size = key("patch_size", 14)
    d_model: Size = key("hidden_size")
    side: Size = derived(lambda c: c.image_size // c.patch)
    # layers
    n_layers: Size = key("depth")
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_heads: Size = key("num_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    theta: Positive = fixed(10000.0)
    bias: bool = key("attention_bias", False)
    activation: str = key("hidden_act", "silu")
    # merger
    merge: Size = key("spatial_merge_size", 2)
    merger_eps: Positive = fixed(1e-5)
    d_text: Size = key("out_hidden_size")  # and the width of the layers' feed-forward networks
    d_merger: Size = key("intermediate_size")

    rope_parameters: Raw = key("rope_parameters", lambda c: {})

    def grid(self, height: int, width: int) -> Grid:
        height, width = at_least_a_block(height, width, int(self.patch) * int(self.merge))
        return whole_blocks(height, width, self.patch, self.merge)


@tower(
    "glm4v.vision_config", "glm4v_moe.vision_config", "glm46v.vision_config", "glmga.vision_config", config=Glm4Vision
)
def forward(w: Weights, x: Array, grid: Grid, c: Glm4Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.visual")
    row, column = places(x, grid.rows, grid.columns, c.merge)
    kernel = c.n_channels, c.n_frames, c.patch, c.patch
    x = embed_patches(x, tower, "patch_embed.proj", c.d_model, kernel, bias=True)
    x = rms_norm(x, tower, "post_conv_layernorm", c.norm_eps)
    table = tower("embeddings.position_embedding.weight", c.side * c.side, c.d_model)
    x = x + stretched_positions(row, column, table, c.side, grid, to_corners=False, cubic=True)
    angles = axial_rope(row, column, c.d_head, c.theta)
    for _, w_layer, _ in tower.layers("blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    x = downsample(rms_norm(x, tower, "post_layernorm", c.norm_eps), tower, c)
    return [merger(x, tower.at("merger"), c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Glm4Vision, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    x = x + attention(rms_norm(x, w, "norm1", c.norm_eps), w.at("attn"), c, angles)
    y = rms_norm(x, w, "norm2", c.norm_eps)
    return x + gated_maps(y, w.at("mlp"), c.d_text, c.d_model, named_activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Glm4Vision, angles: RopeTable) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    q, k, v = np.split(linear(x, w, "qkv", 3 * c.d_model, bias=c.bias), 3, axis=-1)
    q, k, v = (heads(part, c.n_heads, c.d_head) for part in (q, k, v))
    mixed = attend(apply_rope(q, angles), apply_rope(k, angles), v, None, c.d_head**-0.5)
    return linear(mixed, w, "proj", c.d_model)


@step(Role.CONV_STEM)
def downsample(x: Array, w: Weights, c: Glm4Vision) -> Array:
    """One vector of each block of patches, by a convolution: [P D] -> [P/m² O]."""
    block = c.merge * c.merge
    x = x.reshape(x.shape[0] // block, block, c.d_model)
    kernel = w("downsample.weight", c.d_text, c.d_model, c.merge, c.merge).reshape(c.d_text, c.d_model, block)
    return np.einsum("mkd,odk->mo", x, kernel, optimize=True) + w("downsample.bias", c.d_text)


@step(Role.FEED_FORWARD)
def merger(x: Array, w: Weights, c: Glm4Vision) -> Array:
    """A last feed-forward network, gated: [M O] -> [M F] -> [M O]."""
    x = gelu(layer_norm(linear(x, w, "proj", c.d_text), w, "post_projection_norm", c.merger_eps))
    return gated_maps(x, w, c.d_merger, c.d_text, named_activation(c.activation))
