"""The vision tower of Unlimited-OCR: SAM's ViT, then CLIP's over what SAM saw; the vectors of both, side by side.

An image is shown as a whole, and cut into tiles of a smaller size; a trained vector ends each row of both, another the
image. Source: transformers 5.24, modeling_unlimited_ocr.py and image_processing_unlimited_ocr.py.
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Raw, Size, config, derived, fold_table, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import layer_norm, linear
from ..steps import Keeps, Role, step
from . import TEXT_WIDTH, Grid, tower
from .internvl import tiled
from .patches import Vit, averaged_positions, named_activation, places, vit_layer
from .sam import SamVision, convolved, encode

# The processor's: pixels of a tile's side, and tiles.
TILE, LEAST_TILES, MOST_TILES = 640, 2, 32
SAM, CLIP = "sam_config.", "encoder_config."
HALVINGS = 4  # of a side, by SAM's two last convolutions


@config
class UnlimitedOcrVision(SamVision):
    """Hyperparameters of Unlimited-OCR's two encoders, in forward order."""

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
    d_ff: Size = key(SAM + "mlp_dim", 3072)
    activation: str = key(SAM + "hidden_act", "gelu")
    d_neck: Size = key(SAM + "output_channels", 256)
    widths: list[int] = key(SAM + "downsample_channels", lambda c: [512, 1024])
    # CLIP
    clip_size: Size = key(CLIP + "image_size", 224)
    clip_patch: Size = key(CLIP + "patch_size", 14)
    d_clip: Size = key(CLIP + "hidden_size", 1024)
    n_clip_layers: Size = key(CLIP + "num_hidden_layers", 24)
    clip_eps: Positive = key(CLIP + "layer_norm_eps", 1e-5)
    n_clip_heads: Size = key(CLIP + "num_attention_heads", 16)
    d_clip_head: Size = derived(lambda c: c.d_clip // c.n_clip_heads)
    d_ff_clip: Size = key(CLIP + "intermediate_size", 4096)
    clip_activation: str = key(CLIP + "hidden_act", "quick_gelu")
    # projector
    d_text: Size = key(TEXT_WIDTH)

    rewritten = frozenset({"sam_config", "encoder_config"})
    ignored = frozenset({CLIP + "num_channels"})

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The keys of both inner tables, prefixed with the table's name."""
        return fold_table(fold_table(raw, "sam_config"), "encoder_config")

    def check(self) -> None:
        super().check()
        self.must_divide("n_clip_heads", "d_clip")
        self.must_not_exceed("clip_patch", "clip_size")
        named_activation(self.clip_activation)
        if len(self.widths) != 2 or self.widths[0] < 1 or self.widths[1] != int(self.d_clip):
            raise Problem(f"{SAM}downsample_channels = {self.widths}", "give two, the second as wide as CLIP's vectors")

    @property
    def vit(self) -> Vit:
        """CLIP's."""
        return Vit(
            n_channels=self.n_channels,
            patch=self.clip_patch,
            d_model=self.d_clip,
            n_layers=self.n_clip_layers,
            norm_eps=self.clip_eps,
            n_heads=self.n_clip_heads,
            d_head=self.d_clip_head,
            d_ff=self.d_ff_clip,
            activation=self.clip_activation,
        )

    def tiling(self, height: int, width: int) -> tuple[int, int]:
        """The rows and columns of tiles of an image; none for a small one."""
        return tiled(height, width, TILE, LEAST_TILES, MOST_TILES) if max(height, width) > TILE else (0, 0)

    def grids(self, height: int, width: int) -> list[Grid]:
        whole, side = self.grid(height, width), TILE // int(self.patch)
        rows, columns = self.tiling(height, width)
        return [*([Grid(side, side, rows * columns)] if rows else []), whole]

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        of_whole, of_tile = (math.ceil(side / HALVINGS) for side in (int(self.patch_rows), TILE // int(self.patch)))
        return tokens + of_whole + self.tiling(height, width)[0] * of_tile + 1


@tower("unlimited_ocr.vision_config", config=UnlimitedOcrVision)
def forward(w: Weights, x: Array, grid: Grid, c: UnlimitedOcrVision, cache: KVCache) -> list[Array]:
    """The vectors of an image or a tile for the text: [P I] -> [M D]."""
    tower = w.at("model.vision_tower")
    x = encode(tower.at("sam_encoder"), x, grid, c, cache)
    for number, width in enumerate((c.widths[0], c.d_clip)):
        x = convolved(x, tower, f"sam_encoder.proj.conv{number + 1}", width, 2)
    small = Grid(x.shape[0], x.shape[1])
    x = x.reshape(small.rows * small.columns, c.d_clip)
    for name in ("view_separator", "image_newline"):
        w(f"model.{name}", c.d_text)  # the vector behind an image, and that behind a row
    y = embed(x, tower.at("vision_encoder.embeddings"), c, small)
    y = layer_norm(y, tower, "vision_encoder.pre_layrnorm", c.clip_eps)
    kinds = ["CLIP layer"] * c.n_clip_layers
    for _, w_layer, _ in tower.layers("vision_encoder.encoder.layers", kinds, cache, "CLIP", c.n_layers):
        y = vit_layer(y, w_layer, c.vit)
    both = np.concatenate([y[1:], x], axis=-1)
    return [linear(both, w, "model.multi_modal_projector", c.d_text, bias=True)]


@step(Role.EMBED_POSITIONS, keeps=Keeps.NOTHING)
def embed(x: Array, w: Weights, c: UnlimitedOcrVision, grid: Grid) -> Array:
    """A class token before what SAM saw, with their positions: [P D] -> [P + 1 D]."""
    side = c.clip_size // c.clip_patch
    table = w("position_embedding.weight", side * side + 1, c.d_clip)
    first = w("class_embedding", c.d_clip)[None, :] + table[:1]
    if int(grid.rows) == int(side):
        return np.concatenate([first, x + table[1:]], axis=0)
    row, column = places(x, grid.rows, grid.columns)
    return np.concatenate([first, x + averaged_positions(row, column, table[1:], int(side), grid, cubic=True)], axis=0)
