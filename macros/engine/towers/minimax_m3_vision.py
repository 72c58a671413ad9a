"""The vision tower of MiniMax-M3: a ViT for images of any size, each vector projected, then joined four to one.

A patch has two frames of a film; an image is shown twice. Positions are rotary embeddings by time, row and column, in
a part of each head. Source: transformers 5.24, modeling_minimax_m3_vl.py.
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Raw, Size, config, derived, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import Rope, gelu, layer_norm, rope_table
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, theta_of, tower
from .patches import AnySize, embed_patches, places, two_maps, vit_layer


@config
class MiniMaxM3Vision(AnySize):
    """Hyperparameters of MiniMax-M3's vision tower, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    n_frames: Size = key("temporal_patch_size", 2)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("hidden_size", 1280)
    # layers
    n_layers: Size = key("num_hidden_layers", 32)
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    d_ff: Size = key("intermediate_size", 5120)
    activation: str = key("hidden_act", "gelu")
    # projector
    merge: Size = key("spatial_merge_size", 2)
    d_projector: Size = key("projector_hidden_size", 6144)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"image_size"})
    checked = ("theta",)

    def check(self) -> None:
        super().check()
        if int(self.d_head) < 6:
            raise Problem(
                f"heads of {int(self.d_head)} numbers", "give at least 6: time, rows and columns each rotate pairs"
            )

    @property
    def theta(self) -> float:
        """The base of the rotary embedding."""
        return theta_of(self.rope_parameters, 10000.0)


@tower("minimax_m3_vl.vision_config", config=MiniMaxM3Vision)
def forward(w: Weights, x: Array, grid: Grid, c: MiniMaxM3Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.vision_tower")
    row, column = places(x, grid.rows, grid.columns, c.merge)
    kernel = c.n_channels, c.n_frames, c.patch, c.patch
    x = embed_patches(x, tower, "embeddings.proj", c.d_model, kernel, bias=False)
    of_axis = 2 * (int(c.d_head) // 3 // 2)
    tables = [rope_table(at, of_axis, Rope(c.theta)) for at in (row * 0, row, column)]
    cos, sin = (np.concatenate(parts, axis=-1) for parts in zip(*tables))
    x = layer_norm(x, tower, "pre_layrnorm", c.norm_eps)
    for _, w_layer, _ in tower.layers("layers", ["layer"] * c.n_layers, cache):
        x = vit_layer(x, w_layer, c, (cos, sin))
    return [project(x, w.at("model.multi_modal_projector"), c)]


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, c: MiniMaxM3Vision) -> Array:
    """One vector for the text model per block of patches: [P D] -> [P O] -> [P/m² m²·O] -> [P/m² O]."""
    x = two_maps(x, w, ("linear_1", "linear_2"), c.d_projector, c.d_text, gelu)
    block = c.merge * c.merge
    x = x.reshape(x.shape[0] // block, block * c.d_text)
    return two_maps(x, w, ("merge_linear_1", "merge_linear_2"), c.d_projector, c.d_text, gelu)
