"""The vision tower of Qwen3-VL and Qwen3.5: a ViT for images of any size, whose vectors are merged four to one.

A patch has two frames of a film; an image is shown twice. Positions are a learned table, stretched over the image, and
2D rotary embeddings. In Qwen3-VL, vectors of three layers on the way are merged too, and are added to the output of the
text model's first layers (DeepStack, arXiv 2406.04334). Source: transformers 5.24, modeling_qwen3_vl.py.
"""

from __future__ import annotations

import math

from ..architectures.config import Positive, Size, config, derived, fixed, key
from ..errors import Problem
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
    stretched_positions,
    two_maps,
)


@config
class Qwen3Vision(AnySize):
    """Hyperparameters of Qwen3-VL's vision tower, in forward order."""

    # patches
    n_channels: Size = key("in_channels", 3)
    n_frames: Size = key("temporal_patch_size", 2)
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size")
    n_positions: Size = key("num_position_embeddings", 2304)
    # layers
    n_layers: Size = key("depth")
    norm_eps: Positive = fixed(1e-6)
    n_heads: Size = key("num_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    theta: Positive = fixed(10000.0)
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "gelu_pytorch_tanh")
    # merger
    merge: Size = key("spatial_merge_size", 2)
    deepstack: list[int] = key("deepstack_visual_indexes", lambda c: [])
    d_text: Size = key("out_hidden_size")
    mergers: str = fixed("deepstack_merger_list")
    merger_names: tuple[str, ...] = fixed(("norm", "linear_fc1", "linear_fc2"))

    def check(self) -> None:
        super().check()
        if math.isqrt(int(self.n_positions)) ** 2 != int(self.n_positions):
            raise Problem(f"num_position_embeddings = {int(self.n_positions)} is no square", "correct the value")
        if len(set(self.deepstack)) != len(self.deepstack) or any(not 0 <= i < self.n_layers for i in self.deepstack):
            raise Problem(f"deepstack_visual_indexes = {self.deepstack}", "give different layers of this tower")

    @property
    def kinds(self) -> list[str]:
        """Whether each layer's vectors are also handed to the text model."""
        return ["deepstack" if i in self.deepstack else "layer" for i in range(self.n_layers)]


@tower(
    "qwen3_vl.vision_config",
    "qwen3_vl_moe.vision_config",
    "qwen3_5.vision_config",
    "qwen3_5_moe.vision_config",
    "qwen4_exp.vision_config",
    "cohere_compass.vision_config",
    "cosmos3_omni.vision_config",
    config=Qwen3Vision,
)
def forward(w: Weights, x: Array, grid: Grid, c: Qwen3Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D], and those for its first layers, [P/m² D] each."""
    tower = w.at("model.visual")
    row, column = places(x, grid.rows, grid.columns, c.merge)
    kernel = c.n_channels, c.n_frames, c.patch, c.patch
    x = embed_patches(x, tower, "patch_embed.proj", c.d_model, kernel, bias=True)
    table = tower("pos_embed.weight", c.n_positions, c.d_model)
    side = math.isqrt(int(c.n_positions))
    x = x + stretched_positions(row, column, table, side, grid, to_corners=True)
    angles = axial_rope(row, column, c.d_head, c.theta)
    early: list[Array] = []
    for kind, w_layer, _ in tower.layers("blocks", c.kinds, cache):
        x = layer(x, w_layer, c, angles)
        if kind == "deepstack":
            numbers = {i: number for number, i in enumerate(c.deepstack)}
            early.append(merger(x, w_layer.beside(f"model.visual.{c.mergers}", numbers), c, after=True))
    return [merger(x, tower.at("merger"), c, after=False), *early]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Qwen3Vision, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    y = layer_norm(x, w, "norm1", c.norm_eps)
    x = x + joint_attention(y, w.at("attn"), c.n_heads, c.d_head, angles, "qkv", "proj")
    y = layer_norm(x, w, "norm2", c.norm_eps)
    names = "linear_fc1", "linear_fc2"
    return x + two_maps(y, w.at("mlp"), names, c.d_ff, c.d_model, named_activation(c.activation))


@step(Role.FEED_FORWARD)
def merger(x: Array, w: Weights, c: Qwen3Vision, *, after: bool) -> Array:
    """One vector for the text from each block of patches, normalized before or after they are joined: [P D] -> [P/m²
    m²·D] -> [P/m² O]."""
    norm, *maps = c.merger_names
    block = c.merge * c.merge
    wide = block * c.d_model
    if not after:
        x = layer_norm(x, w, norm, c.norm_eps)
    x = x.reshape(x.shape[0] // block, wide)
    if after:
        x = layer_norm(x, w, norm, c.norm_eps)
    return two_maps(x, w, (maps[0], maps[1]), wide, c.d_text, gelu)
