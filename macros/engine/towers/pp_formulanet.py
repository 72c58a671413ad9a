"""The vision tower of PP-FormulaNet: SAM's ViT, for images of one size; two convolutions make one vector of sixteen.

Source: transformers 5.24, modeling_pp_formulanet.py (arXiv 2503.18382).
"""

from __future__ import annotations

from ..architectures.config import Size, config, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import linear
from . import Grid, tower
from .sam import SamVision, convolved, encode


@config
class PPFormulaNetVision(SamVision):
    """Hyperparameters of SAM's vision model and PP-FormulaNet's projector, in forward order."""

    image_size: Size = key("image_size", 512)
    d_read: Size = key("post_conv_in_channels", 256)
    d_mid: Size = key("post_conv_mid_channels", 512)
    d_out: Size = key("post_conv_out_channels", 1024)
    d_text: Size = key("decoder_hidden_size", 512)

    def check(self) -> None:
        super().check()
        if self.d_read != self.d_neck:
            raise Problem(
                f"post_conv_in_channels = {int(self.d_read)} and output_channels = {int(self.d_neck)}",
                "give both the same: the projector reads the neck's output",
            )


@tower("pp_formulanet.vision_config", config=PPFormulaNetVision)
def forward(w: Weights, x: Array, grid: Grid, c: PPFormulaNetVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/16 D]."""
    tower = w.at("model.encoder")
    projector = tower.at("multi_modal_projector")
    x = convolved(encode(tower, x, grid, c, cache), projector, "conv1", c.d_mid, 2)
    x = convolved(x, projector, "conv2", c.d_out, 2)
    x = x.reshape(x.shape[0] * x.shape[1], c.d_out)
    return [linear(linear(x, projector, "linear_1", c.d_out, bias=True), projector, "linear_2", c.d_text, bias=True)]
