"""The vision tower of PaddleOCR-VL: SigLIP for images of any size, whose vectors are joined four to one and projected.

Positions are a learned table, stretched over the image, and 2D rotary embeddings. Source: transformers 5.24,
modeling_paddleocr_vl.py and image_processing_paddleocr_vl.py.
"""

from __future__ import annotations

from ..architectures.config import Positive, Raw, Size, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import gelu, layer_norm
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, theta_of, tower
from .patches import (
    AnySize,
    axial_rope,
    blocks,
    embed_patches,
    places,
    stretched_positions,
    two_maps,
    vit_layer,
    whole_blocks,
)


@config
class PaddleOcrVision(AnySize):
    """Hyperparameters of PaddleOCR-VL's vision tower, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 384)  # of the table of positions
    patch: Size = key("patch_size")
    d_model: Size = key("hidden_size")
    side: Size = derived(lambda c: c.image_size // c.patch)
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "gelu_pytorch_tanh")
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # projector
    merge: Size = key("spatial_merge_size", 2)
    projector_eps: Positive = fixed(1e-5)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"temporal_patch_size", "tokens_per_second"})
    checked = ("theta",)

    def check(self) -> None:
        super().check()
        self.must_not_exceed("patch", "image_size")
        if int(self.d_head) % 4:
            raise Problem(
                f"heads of {int(self.d_head)} numbers", "give a multiple of 4: rows and columns each rotate pairs"
            )

    @property
    def theta(self) -> float:
        """The base of the rotary embedding."""
        return theta_of(self.rope_parameters, 10000.0)

    def grid(self, height: int, width: int) -> Grid:
        block = int(self.patch) * int(self.merge)
        if height < block:
            height, width = block, round(width * block / height)
        if width < block:
            height, width = round(height * block / width), block
        return whole_blocks(height, width, self.patch, self.merge)


@tower("paddleocr_vl.vision_config", config=PaddleOcrVision)
def forward(w: Weights, x: Array, grid: Grid, c: PaddleOcrVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.visual.vision_model")
    row, column = places(x, grid.rows, grid.columns)
    kernel = c.n_channels, c.patch, c.patch
    x = embed_patches(x, tower, "embeddings.patch_embedding", c.d_model, kernel, bias=True)
    table = tower("embeddings.position_embedding.weight", c.side * c.side, c.d_model)
    x = x + stretched_positions(row, column, table, c.side, grid, to_corners=False)
    angles = axial_rope(row, column, c.d_head, c.theta)
    for _, w_layer, _ in tower.layers("encoder.layers", ["layer"] * c.n_layers, cache):
        x = vit_layer(x, w_layer, c, angles)
    x = layer_norm(x, tower, "post_layernorm", c.norm_eps)
    return [project(x, w.at("model.projector"), grid, c)]


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, grid: Grid, c: PaddleOcrVision) -> Array:
    """One vector for the text model per block of patches: [P D] -> [P/m² m²·D] -> [P/m² O]."""
    x = blocks(layer_norm(x, w, "pre_norm", c.projector_eps), grid, c.merge)
    wide = c.merge * c.merge * c.d_model
    return two_maps(x.reshape(x.shape[0], wide), w, ("linear_1", "linear_2"), wide, c.d_text, gelu)
