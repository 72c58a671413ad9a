"""The vision tower of Step 3.7: a ViT with 2D rotary embeddings; two convolutions then leave a sixteenth of it.

An image is shown as a whole, and before that, if it is large or long, in square tiles. Positions are also a learned
table, stretched over a tile. Step 5 and Step3-VL have the same. Sources: transformers 5.24, modeling_step3p7.py and
image_processing_step3p7.py; vLLM 0.33, model_executor/models/step_vl.py.
"""

from __future__ import annotations

from typing import Literal

from ..architectures.config import Positive, Raw, Size, config, derived, key
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import layer_norm, linear
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, theta_of, tower
from .patches import (
    OneSize,
    axial_rope,
    embed_patches,
    named_activation,
    places,
    separate_attention,
    stretched_positions,
    two_maps,
)
from .sounds import convolve_plane

# The processor's: pixels of a tile's side, and of an image's longest; what is long.
TILE, LONGEST, LONG, VERY_LONG, THIN, REST = 504, 3024, 1.5, 4, 32, 0.2


@config
class Step3p7Vision(OneSize):
    """Hyperparameters of Step 3.7's vision tower, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 728)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("hidden_size", 1536, also=("width",))
    # layers
    n_layers: Size = key("num_hidden_layers", 47, also=("layers",))
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    n_heads: Size = key("num_attention_heads", 16, also=("heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    mlp_ratio: Positive = key("mlp_ratio", 8960 / 1536)
    d_ff: Size = derived(lambda c: int(c.d_model * c.mlp_ratio))
    activation: str = key("hidden_act", "quick_gelu")
    has_class: Literal[False] = key("use_cls_token", False)
    has_last_norm: Literal[False] = key("use_ln_post", False)
    has_first_norm: Literal[True] = key("use_ln_pre", True)
    has_table: Literal[True] = key("use_abs_posemb", True)
    turns: Literal[True] = key("use_rope2d", True)
    # projector
    bias: bool = key("projector_bias", False)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset(
        """attn_pooler_heads drop_path intermediate_size layer_scale_init_value ls_init_value max_position_embeddings
        output_dim pool_type ues_cls_token understand_projector_stride
        """.split()
    )
    checked = ("theta",)

    @property
    def theta(self) -> float:
        """The base of the rotary embedding."""
        return theta_of(self.rope_parameters, 10000.0)

    def grids(self, height: int, width: int) -> list[Grid]:
        side, rows = TILE // int(self.patch), int(self.patch_rows)
        tiles = tiles_of(height, width, int(self.image_size))
        return [*([Grid(side, side, tiles)] if tiles else []), Grid(rows, rows)]

    def declared(self, grid: Grid, run: Trace) -> Grid:
        if grid.rows != grid.columns:
            return Grid(run.declare("n_rows", grid.rows), run.declare("n_columns", grid.columns), grid.count)
        return super().declared(grid, run)


def tiles_of(height: int, width: int, size: int) -> int:
    """The number of tiles that come before the whole image."""
    if min(width, height) < THIN and max(width / height, height / width) > VERY_LONG:
        width = height = max(width, height)
    if max(height, width) > LONGEST:
        scale = LONGEST / max(height, width)
        width, height = int(width * scale), int(height * scale)
    short, long = min(height, width), max(height, width)
    if long <= size:
        window = short if long / short > LONG else 0
    else:
        window = min(short, TILE) if long / short > VERY_LONG else TILE
    if window == 0:
        return 0
    rows, columns = (max(side // window + (side % window > REST * window), 1) for side in (height, width))
    return rows * columns


@tower(
    "step3p7.vision_config",
    "step5_vl.vision_config",
    "step3p5v.vision_config",
    "step_robotics.vision_config",
    config=Step3p7Vision,
)
def forward(w: Weights, x: Array, grid: Grid, c: Step3p7Vision, cache: KVCache) -> list[Array]:
    """The vectors of an image or a tile for the text: [P I] -> [P/16 D]."""
    tower = w.at("model.vision_model")
    row, column = places(x, grid.rows, grid.columns)
    kernel = c.n_channels, c.patch, c.patch
    x = embed_patches(x, tower, "embeddings.patch_embedding", c.d_model, kernel, bias=False)
    table = tower("embeddings.position_embedding.weight", c.patch_rows * c.patch_rows, c.d_model)
    x = x + stretched_positions(row, column, table, int(c.patch_rows), grid, to_corners=False)
    x = layer_norm(x, tower, "pre_layernorm", c.norm_eps)
    angles = axial_rope(column, row, c.d_head, c.theta)
    for _, w_layer, _ in tower.layers("layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    x = fewer(x, tower, grid, c)
    return [linear(x, w, "model.multi_modal_projector", c.d_text, bias=c.bias)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Step3p7Vision, angles: RopeTable) -> Array:
    """One transformer block, in which every patch sees all others, with trained scales: [P D] -> [P D]."""
    y = layer_norm(x, w, "layernorm_before", c.norm_eps)
    y = separate_attention(y, w.at("self_attn"), c.n_heads, c.d_head, "out_proj", angles)
    x = x + y * w("lambda_1", c.d_model)
    y = layer_norm(x, w, "layernorm_after", c.norm_eps)
    y = two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))
    return x + y * w("lambda_2", c.d_model)


@step(Role.CONV_STEM)
def fewer(x: Array, w: Weights, grid: Grid, c: Step3p7Vision) -> Array:
    """Each second vector of rows and of columns, twice, mixed with those around: [P D] -> [P/16 4D]."""
    x = x.reshape(grid.rows, grid.columns, c.d_model)
    for name, wide in (("downsampler1", 2 * c.d_model), ("downsampler2", 4 * c.d_model)):
        x = convolve_plane(x, w(f"{name}.weight", wide, x.shape[2], 3, 3), 2) + w(f"{name}.bias", wide)
    return x.reshape(x.shape[0] * x.shape[1], 4 * c.d_model)
