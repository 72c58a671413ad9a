"""The vision tower of DeepSeek-VL's larger model: SAM's ViT and SigLIP, each for an image of its own size.

SAM's vectors, those of its first layer in which a patch sees all others and those of its last, are stretched and
halved twice, until there are as many as SigLIP's; both are projected, and put side by side. Source: transformers 5.24,
modeling_deepseek_vl_hybrid.py and image_processing_deepseek_vl_hybrid.py (arXiv 2403.05525).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Size, config, derived, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import gelu, linear
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, siglip, tower
from .patches import Vit, named_activation, places, stretched_positions
from .sam import SamVision, convolved, layers, neck

SAM = "high_res_vision_config."


@config
class DeepseekVlHybridVision(SamVision):
    """Hyperparameters of DeepSeek-VL's two encoders, in forward order."""

    beside = ("high_res_vision_config",)

    # SAM
    n_channels: Size = key(SAM + "num_channels", 3)
    image_size: Size = key(SAM + "image_size", 1024)
    patch: Size = key(SAM + "patch_size", 16)
    d_model: Size = key(SAM + "hidden_size", 768)
    placed: bool = key(SAM + "use_abs_pos", True)
    n_layers: Size = key(SAM + "num_hidden_layers", 12)
    norm_eps: Positive = key(SAM + "layer_norm_eps", 1e-6)
    n_heads: Size = key(SAM + "num_attention_heads", 12)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    bias: bool = key(SAM + "qkv_bias", True)
    by_distance: bool = key(SAM + "use_rel_pos", True)
    window: Size = key(SAM + "window_size", 14)
    full: list[int] = key(SAM + "global_attn_indexes", lambda c: [2, 5, 8, 11])
    mlp_ratio: Positive = key(SAM + "mlp_ratio", 4.0)
    d_ff: Size = key(SAM + "mlp_dim", lambda c: int(c.d_model * c.mlp_ratio))
    activation: str = key(SAM + "hidden_act", "gelu")
    d_neck: Size = key(SAM + "output_channels", 256)
    # SigLIP
    n_small_channels: Size = key("num_channels", 3)
    small_size: Size = key("image_size", 224)
    small_patch: Size = key("patch_size", 16)
    d_small: Size = key("hidden_size", 768)
    n_small_layers: Size = key("num_hidden_layers", 12)
    small_eps: Positive = key("layer_norm_eps", 1e-6)
    n_small_heads: Size = key("num_attention_heads", 12)
    d_small_head: Size = derived(lambda c: c.d_small // c.n_small_heads)
    d_ff_small: Size = key("intermediate_size", 3072)
    small_activation: str = key("hidden_act", "gelu_pytorch_tanh")
    pooled: Literal[False] = key("vision_use_head", False)
    # projector
    d_text: Size = key(TEXT_WIDTH)

    def check(self) -> None:
        super().check()
        self.must_divide("n_small_heads", "d_small")
        self.must_not_exceed("small_patch", "small_size")
        named_activation(self.small_activation)
        if not self.full or not 0 <= self.full[0] < self.n_layers:
            raise Problem(f"{SAM}global_attn_indexes = {self.full}", "begin with a layer of SAM")
        if int(self.d_text) % 2:
            raise Problem(
                f"text_config.hidden_size = {int(self.d_text)}", "give an even number: each encoder makes half of it"
            )

    @property
    def kinds(self) -> list[str]:
        """Whether each layer of SAM attends to all patches or to a window, and which outputs are kept."""
        return ["kept" if i == self.full[0] else kind for i, kind in enumerate(super().kinds)]

    @property
    def vit(self) -> Vit:
        """SigLIP's."""
        return Vit(
            n_channels=self.n_small_channels,
            patch=self.small_patch,
            d_model=self.d_small,
            n_layers=self.n_small_layers,
            norm_eps=self.small_eps,
            n_heads=self.n_small_heads,
            d_head=self.d_small_head,
            d_ff=self.d_ff_small,
            activation=self.small_activation,
        )

    def grid(self, height: int, width: int) -> Grid:
        """SigLIP's patches, each of which becomes a token."""
        side = int(self.small_size) // int(self.small_patch)
        return Grid(side, side)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        """The pixels of both images: SigLIP's patches, then SAM's."""
        large = self.patch_rows * self.patch_rows * self.n_channels * self.patch * self.patch
        return (grid.rows * grid.columns * self.n_small_channels * self.small_patch * self.small_patch + large,)


@tower("deepseek_vl_hybrid.vision_config", config=DeepseekVlHybridVision, of_type="siglip_vision_model")
def forward(w: Weights, x: Array, grid: Grid, c: DeepseekVlHybridVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I + Q J] -> [P D]."""
    model, side = w.at("model"), c.patch_rows
    patches, pixels = grid.rows * grid.columns, c.n_small_channels * c.small_patch * c.small_patch
    small, large = x[: patches * pixels].reshape(patches, pixels), x[patches * pixels :]
    small = siglip.encode(model.at("vision_model"), small, grid, c.vit, cache)
    large = large.reshape(side * side, c.n_channels * c.patch * c.patch)
    encoder = model.at("high_res_vision_model.vision_encoder")
    early, last = layers(encoder, large, Grid(side, side), c, cache)
    last = halved(neck(last, encoder.at("neck"), c), model.at("high_res_vision_proj"), grid, c)
    early = halved(neck(early, model.at("high_res_vision_neck"), c), model.at("high_res_vision_proj"), grid, c)
    return [align(small, last + early * model("high_res_vision_alpha", 1), model.at("aligner"), c)]


@step(Role.CONV_STEM)
def halved(x: Array, w: Weights, grid: Grid, c: DeepseekVlHybridVision) -> Array:
    """SAM's vectors stretched over four times the grid, then mixed and halved twice: [S S N] -> [P 4N]."""
    side = 4 * grid.rows
    row, column = places(np.arange(side * side, like=x), side, side)
    table = x.reshape(x.shape[0] * x.shape[1], c.d_neck)
    x = stretched_positions(row, column, table, x.shape[0], Grid(side, side), to_corners=False)
    x = convolved(x.reshape(side, side, c.d_neck), w, "conv1", 2 * c.d_neck, 2)
    x = convolved(x, w, "conv2", 4 * c.d_neck, 2)
    return x.reshape(grid.rows * grid.columns, 4 * c.d_neck)


@step(Role.FEED_FORWARD)
def align(small: Array, large: Array, w: Weights, c: DeepseekVlHybridVision) -> Array:
    """Vectors of both encoders side by side, mapped: [P D], [P 4N] -> [P O]."""
    half = c.d_text // 2
    large = linear(large, w, "high_res_vision_proj", half, bias=True)
    small = linear(small, w, "vision_proj", half, bias=True)
    x = gelu(np.concatenate([large, small], axis=-1))
    return linear(x.reshape(small.shape[0], c.d_text), w, "proj", c.d_text, bias=True)
