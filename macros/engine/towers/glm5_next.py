"""The vision tower of GLM-5-Next: GLM-OCR's, with clipped feed-forward networks.

Source: transformers 5.24, modeling_glm5_next.py and image_processing_glm5_next.py.
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Size, config, key
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import gelu, layer_norm, linear, rms_norm
from ..steps import Role, step
from . import Grid, tower
from .glm4v import downsample
from .glm_ocr import GlmOcrVision, attention
from .patches import axial_rope, embed_patches, named_activation, places


@config
class Glm5NextVision(GlmOcrVision):
    """Hyperparameters of GLM-5-Next's vision tower, in forward order."""

    d_merger: Size = key("projection_intermediate_size", 10240)
    limit: Positive = key("swiglu_limit", 10.0)

    def grid(self, height: int, width: int) -> Grid:
        block = int(self.patch) * int(self.merge)
        rows, columns = (math.ceil(side / block) * int(self.merge) for side in (height, width))
        return Grid(rows, columns)


@tower("glm5_next.vision_config", config=Glm5NextVision)
def forward(w: Weights, x: Array, grid: Grid, c: Glm5NextVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.visual")
    row, column = places(x, grid.rows, grid.columns, c.merge)
    kernel = c.n_channels, c.n_frames, c.patch, c.patch
    x = embed_patches(x, tower, "patch_embed.proj", c.d_model, kernel, bias=True)
    angles = axial_rope(row, column, c.d_head, c.theta)
    for _, w_layer, _ in tower.layers("blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    x = downsample(rms_norm(x, tower, "post_layernorm", c.norm_eps), tower, c)
    return [merger(x, tower.at("merger"), c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Glm5NextVision, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    x = x + attention(rms_norm(x, w, "norm1", c.norm_eps), w.at("attn"), c, angles)
    return x + bounded_maps(rms_norm(x, w, "norm2", c.norm_eps), w.at("mlp"), c.d_ff, c.d_model, c, bias=c.bias)


@step(Role.FEED_FORWARD)
def bounded_maps(x: Array, w: Weights, wide: int, width: int, c: Glm5NextVision, *, bias: bool) -> Array:
    """Process each vector separately, in a wider space, gated, within bounds: [P D] -> [P F] -> [P O]."""
    gate = np.minimum(linear(x, w, "gate_proj", wide, bias=bias), c.limit)
    up = np.clip(linear(x, w, "up_proj", wide, bias=bias), -c.limit, c.limit)
    return linear(named_activation(c.activation)(gate) * up, w, "down_proj", width, bias=bias)


@step(Role.FEED_FORWARD)
def merger(x: Array, w: Weights, c: Glm5NextVision) -> Array:
    """A last feed-forward network, gated: [M O] -> [M F] -> [M O]."""
    x = gelu(layer_norm(linear(x, w, "proj", c.d_text), w, "post_projection_norm", c.merger_eps))
    return bounded_maps(x, w, c.d_merger, c.d_text, c, bias=False)
