"""The vision tower of Mistral Small 3.1 and Large 4: Pixtral's ViT, whose vectors are joined four to one and projected.

Images have any shape, up to a longest side. Positions are 2D rotary embeddings whose speeds alternate between row and
column. Source: transformers 5.23, modeling_pixtral.py and modeling_mistral3.py (arXiv 2410.07073).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ..architectures.config import Positive, Raw, Size, activation, config, derived, fixed, key
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Rope, linear, rms_norm, rope_table
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, theta_of, tower
from .patches import AnySize, blocks, embed_patches, gated_maps, named_activation, places, separate_attention


@config
class Pixtral(AnySize):
    """Hyperparameters of Pixtral's vision model and Mistral 3's projector, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 1540)  # the longest side
    patch: Size = key("patch_size", 14)
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = fixed(1e-5)
    n_heads: Size = key("num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    rope_theta: Positive = key("rope_theta", 10000.0)
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "gelu")
    # projector
    text_eps: Positive = key("text_config.rms_norm_eps", 1e-6)
    merge: Size = key("spatial_merge_size", 2)
    feature_layer: Literal[-1] = key("vision_feature_layer", -1)
    bias: bool = key("multimodal_projector_bias", False)
    projector_activation: str = key("projector_hidden_act", "gelu")
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"head_dim", "vocab_size"})

    def check(self) -> None:
        super().check()
        activation(self.projector_activation)

    @property
    def theta(self) -> float:
        """The base of the rotary embedding."""
        return theta_of(self.rope_parameters, self.rope_theta)

    checked = ("theta",)

    def grid(self, height: int, width: int) -> Grid:
        shrink = max(height / int(self.image_size), width / int(self.image_size), 1)
        block = int(self.patch) * int(self.merge)
        rows, columns = (math.ceil(max(math.floor(side / shrink), 1) / block) for side in (height, width))
        return Grid(rows * int(self.merge), columns * int(self.merge))


@tower("mistral3.vision_config", "mistral_large4.vision_config", config=Pixtral, of_type="pixtral")
def forward(w: Weights, x: Array, grid: Grid, c: Pixtral, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    x = encode(w.at("model.vision_tower"), x, grid, c, cache)
    return [project(x, w.at("model.multi_modal_projector"), grid, c)]


def encode(tower: Weights, x: Array, grid: Grid, c: Pixtral, cache: KVCache) -> Array:
    """Pixtral's vectors of an image, one for each patch: [P I] -> [P D]."""
    x = embed_patches(x, tower, "patch_conv", c.d_model, (c.n_channels, c.patch, c.patch), bias=False)
    x = rms_norm(x, tower, "ln_pre", c.norm_eps)
    angles = alternating_speeds(*places(x, grid.rows, grid.columns), c.d_head, c.theta)
    for _, w_layer, _ in tower.layers("transformer.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    return x


def alternating_speeds(row: Array, column: Array, d_head: int, theta: float) -> RopeTable:
    """Cosines and sines of a patch's row, then of its column: of the speeds of a head, each gets every second."""
    rope = Rope(theta)
    slower = theta ** (-2 / int(d_head))
    tables = rope_table(row, d_head // 2, rope), rope_table(column * slower, d_head // 2, rope)
    cos, sin = (np.concatenate(both, axis=-1) for both in zip(*tables))
    return cos, sin


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Pixtral, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    y = rms_norm(x, w, "attention_norm", c.norm_eps)
    x = x + separate_attention(y, w.at("attention"), c.n_heads, c.d_head, "o_proj", angles, bias=False)
    y = rms_norm(x, w, "ffn_norm", c.norm_eps)
    return x + gated_maps(y, w.at("feed_forward"), c.d_ff, c.d_model, named_activation(c.activation))


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, grid: Grid, c: Pixtral) -> Array:
    """One vector for the text model per block of patches: [P D] -> [P/m² D·m²] -> [P/m² D] -> [P/m² O]."""
    x = blocks(rms_norm(x, w, "norm", c.text_eps), grid, c.merge).swapaxes(1, 2)
    x = x.reshape(x.shape[0], c.d_model * c.merge * c.merge)
    x = linear(x, w, "patch_merger.merging_layer", c.d_model)
    x = activation(c.projector_activation)(linear(x, w, "linear_1", c.d_text, bias=c.bias))
    return linear(x, w, "linear_2", c.d_text, bias=c.bias)
