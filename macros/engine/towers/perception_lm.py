"""The vision tower of PerceptionLM: the Perception Encoder, a ViT for images or tiles of one size.

Positions are a learned table and 2D rotary embeddings of neighboring pairs; trained shares of both halves of a layer
are added. The projector's vectors are averaged in squares. Source: transformers 5.23, modeling_perception_lm.py and
image_processing_perception_lm.py, and timm 1.0, eva.py (arXiv 2504.13180).
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from ..architectures.config import Positive, Raw, Size, config, derived, fixed, key, tabled
from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import apply_rope_pairs, attend, gelu, heads, layer_norm, linear
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .convnets import averaged
from .patches import OneSize, axial_rope, embed_patches, one_side, places, two_maps

# The processor's: tiles of an image.
MOST_TILES = 36
# The defaults of timm's architectures for `model_args`.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "vit_pe_lang_large_patch14_448": {
        "embed_dim": 1024,
        "depth": 23,
        "num_heads": 16,
        "mlp_ratio": 4.0,
        "class_token": True,
        "rope_grid_offset": 1.0,
    },
    "vit_pe_lang_gigantic_patch14_448": {
        "embed_dim": 1536,
        "depth": 47,
        "num_heads": 16,
        "mlp_ratio": 8960 / 1536,
        "class_token": False,
        "rope_grid_offset": 0.0,
    },
}
ARGUMENTS = "model_args."


@config
class PerceptionVision(OneSize):
    """Hyperparameters of PerceptionLM's vision tower and projector, in forward order."""

    architecture: Literal["vit_pe_lang_large_patch14_448", "vit_pe_lang_gigantic_patch14_448"] = key("architecture")
    # patches
    n_channels: Size = fixed(3)
    image_size: Size = key(ARGUMENTS + "img_size", 448)
    patch: Size = key(ARGUMENTS + "patch_size", 14)
    d_model: Size = key(ARGUMENTS + "embed_dim", lambda c: usual(c, "embed_dim"))
    has_class: bool = key(ARGUMENTS + "class_token", lambda c: usual(c, "class_token"))
    n_reference: list[int] = key(ARGUMENTS + "ref_feat_shape", lambda c: [32, 32])
    offset: float = key(ARGUMENTS + "rope_grid_offset", lambda c: usual(c, "rope_grid_offset"))
    theta: Positive = key(ARGUMENTS + "rope_temperature", 10000.0)
    norm_eps: Positive = fixed(1e-5)
    # layers
    n_layers: Size = key(ARGUMENTS + "depth", lambda c: usual(c, "depth"))
    n_heads: Size = key(ARGUMENTS + "num_heads", lambda c: usual(c, "num_heads"))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    bias: bool = key(ARGUMENTS + "qkv_bias", True)
    layer_scale: float | None = key(ARGUMENTS + "init_values", 0.1)
    mlp_ratio: Positive = key(ARGUMENTS + "mlp_ratio", lambda c: usual(c, "mlp_ratio"))
    d_ff: Size = derived(lambda c: int(int(c.d_model) * c.mlp_ratio))
    activation: str = fixed("gelu")
    normed_after: bool = key(ARGUMENTS + "use_post_transformer_norm", False)
    # projector
    drops_first: bool = key("vision_use_cls_token", True)
    merge: Size = key("projector_pooling_ratio", 1)
    d_text: Size = key(TEXT_WIDTH)

    rewritten = frozenset({"model_args"})
    ignored = frozenset({"do_pooling", "num_classes", "label_names"})

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The arguments for timm, under separate names, without those of how a vector of the whole image would be
        made."""
        arguments = dict(tabled(raw.pop("model_args", None)) or {})
        pool = arguments.pop("global_pool", "avg")
        if pool == "map":
            raise Problem("model_args.global_pool = map", "its own layer is not counted: give avg or token")
        raw = raw | {f"{ARGUMENTS}{name}": value for name, value in arguments.items()}
        return one_side(raw, f"{ARGUMENTS}img_size", f"{ARGUMENTS}patch_size")

    def check(self) -> None:
        super().check()
        if int(self.d_head) % 4:
            raise Problem(
                f"heads of {int(self.d_head)} numbers", "give a multiple of 4: rows and columns each rotate pairs"
            )
        if len(self.n_reference) != 2 or min(self.n_reference) < 1:
            raise Problem(f"ref_feat_shape = {self.n_reference}", "give two positive numbers")
        if self.drops_first and not self.has_class:
            raise Problem("vision_use_cls_token = True", "the tower has no such vector: class_token is false")

    def tiles(self, height: int, width: int) -> int:
        columns, rows = canvas(width, height, int(self.image_size))
        return columns * rows

    def grid(self, height: int, width: int) -> Grid:
        return Grid(int(self.patch_rows), int(self.patch_rows), self.tiles(height, width) + 1)


def usual(c: PerceptionVision, name: str) -> Any:
    """A default of a timm architecture."""
    return ARCHITECTURES[c.architecture][name]


def canvas(width: int, height: int, tile: int) -> tuple[int, int]:
    """The columns and rows of tiles for an image: the grid that shows it largest, else one of its shape."""
    shapes: dict[float, list[tuple[int, int]]] = {}
    for number in range(MOST_TILES, 0, -1):
        for columns in range(1, number + 1):
            if number % columns == 0:
                shapes.setdefault(columns / (number // columns), []).append((columns, number // columns))
    fitting = [
        shape for same in shapes.values() for shape in same if shape[0] * tile >= width and shape[1] * tile >= height
    ]
    if fitting:
        best, size = fitting[0], -1.0
        for columns, rows in fitting:
            scale = min(columns * tile / width, rows * tile / height)
            flat = width / height >= 1
            own = math.floor(scale * width / (width / height)) if width > height else scale * height
            own = own if flat else math.floor(scale * height * (width / height))
            if size < 0 or own >= size:
                best, size = (columns, rows), own
        return best
    shape = width / height
    if shape >= 1:
        nearest = min((k for k in shapes if k <= shape), key=lambda k: abs(k - shape))
        return max(shapes[nearest], key=lambda pair: pair[0])
    nearest = min((k for k in shapes if k > shape), key=lambda k: abs(1 / k - 1 / shape))
    return max(shapes[nearest], key=lambda pair: pair[1])


@tower("perception_lm.vision_config", config=PerceptionVision)
def forward(w: Weights, x: Array, grid: Grid, c: PerceptionVision, cache: KVCache) -> list[Array]:
    """A tile's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.vision_tower.timm_model")
    row, column = places(x, grid.rows, grid.columns)
    x = embed_patches(x, tower, "patch_embed.proj", c.d_model, (c.n_channels, c.patch, c.patch), bias=False)
    if c.has_class:
        x = np.concatenate([tower("cls_token", 1, 1, c.d_model).reshape(1, c.d_model), x], axis=0)
    x = x + tower("pos_embed", 1, x.shape[0], c.d_model).reshape(*x.shape)
    x = layer_norm(x, tower, "norm_pre", c.norm_eps)
    down, right = c.n_reference
    row = (row + c.offset) * (down / int(grid.rows))
    column = (column + c.offset) * (right / int(grid.columns))
    angles = axial_rope(column, row, c.d_head, c.theta)
    for _, w_layer, _ in tower.layers("blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    x = layer_norm(x, tower, "norm", c.norm_eps) if c.normed_after else x
    x = x[1:] if c.drops_first else x
    x = two_maps(x, w.at("model.multi_modal_projector"), ("linear_1", "linear_2"), c.d_text, c.d_text, gelu)
    if int(c.merge) == 1:
        return [x]
    x = averaged(x.reshape(grid.rows, grid.columns, c.d_text), int(c.merge))
    return [x.reshape(x.shape[0] * x.shape[1], c.d_text)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: PerceptionVision, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    y = attention(layer_norm(x, w, "norm1", c.norm_eps), w.at("attn"), c, angles)
    x = x + (y * w("gamma_1", c.d_model) if c.layer_scale is not None else y)
    y = two_maps(layer_norm(x, w, "norm2", c.norm_eps), w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, gelu)
    return x + (y * w("gamma_2", c.d_model) if c.layer_scale is not None else y)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: PerceptionVision, angles: RopeTable) -> Array:
    """Let each patch gather information from all patches; a vector in front of them has no position: [P D] -> [P D]."""
    parts = np.split(linear(x, w, "qkv", 3 * c.d_model, bias=c.bias), 3, axis=-1)
    q, k, v = (heads(part, c.n_heads, c.d_head) for part in parts)
    first = int(c.has_class)
    q, k = (np.concatenate([y[:first], apply_rope_pairs(y[first:], angles)], axis=0) for y in (q, k))
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "proj", c.d_model, bias=True)
