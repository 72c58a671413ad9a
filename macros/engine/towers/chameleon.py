"""The vision tower of Chameleon: VQGAN's encoder, for images of one size, which makes tokens of the text's vocabulary.

Each vector becomes the nearest of a codebook, and its number there a token. Source: transformers 5.23,
modeling_chameleon.py and image_processing_chameleon.py (arXiv 2405.09818, 2012.09841).
"""

from __future__ import annotations

from ..architectures.config import Size, config, key
from ..interface import Array, KVCache, Weights
from ..steps import Role, step
from . import Grid, tower
from .patches import stored
from .vqgan import Vqgan, block, coded, convolved, group_norm, halved, in_frames, mapped, swish


@config
class ChameleonVision(Vqgan):
    """Hyperparameters of Chameleon's VQGAN, in forward order."""

    image_size: Size = key("resolution", 512)
    attention: str = key("attn_type", "vanilla")
    attending: list[int] | None = key("attn_resolutions", None)

    def attends(self, level: int) -> bool:
        return self.attention == "vanilla" and int(self.image_size) // 2**level in (self.attending or ())

    def grid(self, height: int, width: int) -> Grid:
        side = max(int(self.image_size) // self.side, 1)
        return Grid(side, side)


@tower("chameleon.vq_config", config=ChameleonVision)
def forward(w: Weights, x: Array, grid: Grid, c: ChameleonVision, cache: KVCache) -> list[Array]:
    """The codebook's vectors of an image, each a token of the text: [H W 3] -> [M E]."""
    tower = w.at("model.vqmodel")
    encoder = tower.at("encoder")
    x = convolved(x[None], encoder, "conv_in", c.d_base)
    for level in range(len(c.multipliers)):
        down = encoder.at(f"down.{level}")
        _, width = c.widths(level)
        for number in range(int(c.n_blocks)):
            x = block(x, down.at(f"block.{number}"), c, width)
            x = attention(x, down.at(f"attn.{number}"), c) if c.attends(level) else x
        if level < len(c.multipliers) - 1:
            x = halved(x, down.at("downsample"))
    x = block(x, encoder.at("mid.block_1"), c, x.shape[3])
    x = attention(x, encoder.at("mid.attn_1"), c) if c.attention == "vanilla" else x
    x = block(x, encoder.at("mid.block_2"), c, x.shape[3])
    x = convolved(swish(group_norm(x, encoder, "norm_out", c.norm_eps)), encoder, "conv_out", c.d_latent)
    stored(tower, "post_quant_conv", c.d_latent, c.d_code, 1, 1)  # of the decoder, which transformers does not have
    return [coded(mapped(x, tower, "quant_conv", c.d_code), tower, c)]


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: ChameleonVision) -> Array:
    """Let each place gather information from all places: [F R C D] -> [F R C D]."""
    F, R, C, D = x.shape
    y = group_norm(x, w, "norm", c.norm_eps)
    q, k, v = (mapped(y, w, name, D).reshape(F, R * C, D) for name in ("q", "k", "v"))
    return x + mapped(in_frames(q, k, v, 1).reshape(F, R, C, D), w, "proj_out", D)
