"""The vision tower of InternVL 3: a ViT for tiles of one size, whose vectors are joined four to one and projected.

A large image is cut into up to twelve tiles, and is shown once more as a whole. A class token comes before the patches,
and is dropped. Each half of a layer is scaled by trained numbers. Source: transformers 5.24, modeling_internvl.py.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Raw, Size, activation, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import attend, heads, layer_norm, linear, rms_norm
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .patches import OneSize, blocks, embed_patches, named_activation, one_side, two_maps

MOST_TILES = 12  # of an image: the processor's


@config
class InternVision(OneSize):
    """Hyperparameters of InternVL's vision tower and projector, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 448)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm: Literal["layer_norm", "rms_norm"] = key("norm_type", "layer_norm")
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    bias: bool = key("attention_bias", False)
    qk_norm: bool = key("use_qk_norm", False)
    qk_eps: Positive = fixed(1e-6)
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "gelu")
    blocks: str = fixed("encoder.layer")
    # projector
    shuffle: Positive = key("downsample_ratio", 0.5)
    merge: Size = derived(lambda c: round(1 / c.shuffle))
    projector_eps: Positive = fixed(1e-5)
    projector_activation: str = key("projector_hidden_act", "gelu")
    d_text: Size = key(TEXT_WIDTH)

    mean_pooling: Literal[True] = key("use_mean_pooling", True)
    mask_token: Literal[False] = key("use_mask_token", False)
    absolute: Literal[True] = key("use_absolute_position_embeddings", True)
    feature_layer: Literal[-1] = key("vision_feature_layer", -1)
    strategy: Literal["default"] = key("vision_feature_select_strategy", "default")
    ignored = frozenset({"projection_dropout", "layer_scale_init_value", "image_seq_length"})

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """One number where height and width are given, equal."""
        return one_side(raw, "image_size", "patch_size")

    def check(self) -> None:
        super().check()
        activation(self.projector_activation)
        if 1 / self.shuffle != int(self.merge):
            raise Problem(f"downsample_ratio = {self.shuffle}", "its inverse must be a whole number")

    def tiles(self, height: int, width: int) -> int:
        return tiles_of(height, width, int(self.image_size))


def tiles_of(height: int, width: int, size: int, least: int = 1, most: int = MOST_TILES) -> int:
    """The number of tiles of an image."""
    rows, columns = tiled(height, width, size, least, most)
    return rows * columns


def tiled(height: int, width: int, size: int, least: int, most: int, side: int | None = None) -> tuple[int, int]:
    """The rows and columns of tiles of an image: the grid with the nearest proportions; of equally near ones a larger
    one, unless it has more than twice the area of the image. `side`: the most of a side."""
    shapes = [(columns, rows) for columns in range(1, most + 1) for rows in range(1, most // columns + 1)]
    shapes = [shape for shape in shapes if shape[0] * shape[1] >= least and max(shape) <= (side or most)]
    best, nearest = (1, 1), float("inf")
    for columns, rows in sorted(shapes, key=lambda shape: shape[0] * shape[1]):
        distance = abs(width / height - columns / rows)
        if distance < nearest or (distance == nearest and 2 * width * height > size * size * columns * rows):
            best, nearest = (rows, columns), distance
    return best


@tower("internvl.vision_config", config=InternVision)
def forward(w: Weights, x: Array, grid: Grid, c: InternVision, cache: KVCache) -> list[Array]:
    """A tile's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.vision_tower")
    kernel = c.n_channels, c.patch, c.patch
    x = embed_patches(x, tower, "embeddings.patch_embeddings.projection", c.d_model, kernel, bias=True)
    x = np.concatenate([tower("embeddings.cls_token", 1, 1, c.d_model)[0], x], axis=0)
    x = x + tower("embeddings.position_embeddings", 1, x.shape[0], c.d_model)[0]
    for _, w_layer, _ in tower.layers(c.blocks, ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return [project(x[1:], w.at("model.multi_modal_projector"), grid, c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: InternVision) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    norm = layer_norm if c.norm == "layer_norm" else rms_norm
    y = attention(norm(x, w, "layernorm_before", c.norm_eps), w.at("attention"), c)
    x = x + y * w("lambda_1", c.d_model)
    y = norm(x, w, "layernorm_after", c.norm_eps)
    y = two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))
    return x + y * w("lambda_2", c.d_model)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: InternVision) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    q, k, v = (linear(x, w, name, c.d_model, bias=c.bias) for name in ("q_proj", "k_proj", "v_proj"))
    if c.qk_norm:
        q, k = rms_norm(q, w, "q_norm", c.qk_eps), rms_norm(k, w, "k_norm", c.qk_eps)
    q, k, v = (heads(part, c.n_heads, c.d_head) for part in (q, k, v))
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "projection_layer", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, grid: Grid, c: InternVision) -> Array:
    """One vector for the text model per block of patches: [P D] -> [P/m² m²·D] -> [P/m² O]."""
    x = blocks(x, grid, c.merge)
    x = layer_norm(x.reshape(x.shape[0], c.merge * c.merge * c.d_model), w, "layer_norm", c.projector_eps)
    return two_maps(x, w, ("linear_1", "linear_2"), c.d_text, c.d_text, activation(c.projector_activation))
