"""The vision tower of MiniCPM-V 4.6 and 4.7: SigLIP for images of any size; a layer merges patches four to one.

There, the four patches of a window attend to each other and are joined; the end joins four again. A large image is cut
into up to nine slices, and is shown once more as a whole. Source: transformers 5.24, modeling_minicpmv4_6.py and
image_processing_minicpmv4_6.py.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from ..architectures.config import Positive, Size, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import attend, gelu, gelu_tanh, layer_norm, linear
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .idefics2 import shared_positions
from .patches import AnySize, blocks, embed_patches, places, stored, two_maps, vit_layer

# The processor's: pixels of a slice's side, slices of an image. The model's: patches of a block's side, twice.
SCALE, MOST_SLICES, SIDE = 448, 9, 2


@config
class MiniCpmVision(AnySize):
    """Hyperparameters of MiniCPM-V's vision tower, in forward order."""

    of_whole = frozenset({"insert_layer_id"})

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 224)  # of the table of positions
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 768)
    side: Size = derived(lambda c: c.image_size // c.patch)
    # layers
    n_layers: Size = key("num_hidden_layers", 12)
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads", 12)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 3072)
    activation: str = key("hidden_act", "gelu_pytorch_tanh")
    # mergers
    merging_layer: int = key("insert_layer_id", 6)
    window: list[Any] = key("window_kernel_size", lambda c: [SIDE, SIDE])
    d_window_ff: Size = derived(lambda c: SIDE * SIDE * c.d_ff)
    joined: list[Any] = key("merge_kernel_size", lambda c: [SIDE, SIDE])
    times: Literal[1] = key("merger_times", 1)
    merger_eps: Positive = fixed(1e-6)
    mode: Literal["16x", "4x"] = key("downsample_mode", "16x")
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset(
        """drop_vision_last_layer image_end_id image_start_id newline_id slice_end_id slice_start_id video_token_id
        image_token_id""".split()
    )

    def check(self) -> None:
        super().check()
        self.must_not_exceed("patch", "image_size")
        if not 0 <= self.merging_layer < self.n_layers:
            raise Problem(f"insert_layer_id = {self.merging_layer}", "give a layer of this tower")
        for name, sides in (("window_kernel_size", self.window), ("merge_kernel_size", self.joined)):
            if sides != [SIDE, SIDE]:
                raise Problem(f"{name} = {sides}", f"give {[SIDE, SIDE]}")

    @property
    def merge(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride] (no key of its own)
        """The patches of a token's side."""
        return SIDE if self.mode == "4x" else SIDE * SIDE

    @property
    def kinds(self) -> list[str]:
        """Whether each layer comes before or after the first merger."""
        return ["early" if i <= self.merging_layer else "late" for i in range(self.n_layers)]

    def sized(self, height: float, width: float, enlarged: bool) -> Grid:
        """The patches of an image or a slice, in whole blocks."""
        if height * width > SCALE * SCALE or enlarged:
            ratio = width / height
            height = int(SCALE / math.sqrt(ratio))
            width = int(height * ratio)
        block = int(self.patch) * int(self.merge)
        rows, columns = (max(round(side / block), 1) * int(self.merge) for side in (height, width))
        return Grid(rows, columns)

    def grids(self, height: int, width: int) -> list[Grid]:
        sliced = slices_of(height, width)
        if sliced is None:
            return [self.sized(height, width, True)]
        rows, columns = sliced
        high, wide = (max(round(side / n), 1) for side, n in ((height, rows), (width, columns)))
        one = self.sized(high, wide, True)
        return [self.sized(height, width, False), Grid(one.rows, one.columns, rows * columns)]


def slices_of(height: int, width: int) -> tuple[int, int] | None:
    """The rows and columns of slices of an image: about as many as it is larger, of the nearest proportions."""
    many = min(math.ceil(width * height / (SCALE * SCALE)), MOST_SLICES)
    if many <= 1:
        return None
    best, least = (1, 1), float("inf")
    for number in (many - 1, many, many + 1):
        if number == 1 or number > MOST_SLICES:
            continue
        for rows in range(1, number + 1):
            if number % rows:
                continue
            error = abs(math.log(width / height) - math.log(number // rows / rows))
            if error < least or (error == least and rows > best[0]):
                best, least = (rows, number // rows), error
    return best


@tower("minicpmv4_6.vision_config", "minicpmv4_7.vision_config", config=MiniCpmVision)
def forward(w: Weights, x: Array, grid: Grid, c: MiniCpmVision, cache: KVCache) -> list[Array]:
    """The vectors of an image or a slice for the text: [P I] -> [P/16 D], or [P/4 D]."""
    tower = w.at("model.vision_tower")
    row, column = places(x, grid.rows, grid.columns)
    kernel = c.n_channels, c.patch, c.patch
    x = embed_patches(x, tower, "embeddings.patch_embedding", c.d_model, kernel, bias=True)
    x = x + shared_positions(row, column, tower, c, c.side, grid)
    if c.mode == "4x":
        unused_windows(tower.at("vit_merger"), c)
    fewer = grid if c.mode == "4x" else Grid(grid.rows // SIDE, grid.columns // SIDE)
    is_merged = c.mode == "4x"
    for kind, w_layer, _ in tower.layers("encoder.layers", c.kinds, cache):
        if kind == "late" and not is_merged:
            x, is_merged = windows(x, tower.at("vit_merger"), grid, c), True
        x = vit_layer(x, w_layer, c)
    if not is_merged:
        x = windows(x, tower.at("vit_merger"), grid, c)
    x = layer_norm(x, tower, "post_layernorm", c.norm_eps)
    return [project(x, w.at("model.merger.mlp.0"), fewer, c)]


@step(Role.FEED_FORWARD)
def windows(x: Array, w: Weights, grid: Grid, c: MiniCpmVision) -> Array:
    """One vector from the patches of each window, which see each other before: [P D] -> [P/4 4D] -> [P/4 D]."""
    size, wide = SIDE * SIDE, SIDE * SIDE * c.d_model
    x = blocks(x, grid, SIDE)
    number = x.shape[0]
    flat = x.reshape(number * size, c.d_model)
    x = flat + attention(layer_norm(flat, w, "layer_norm1", c.norm_eps), w.at("self_attn"), number, c)
    x = x.reshape(number, size, c.d_model)
    y = layer_norm(x.reshape(number, wide), w, "pre_norm", c.norm_eps)
    y = two_maps(y, w, ("linear_1", "linear_2"), c.d_window_ff, c.d_model, gelu_tanh)
    return y + x.mean(axis=1)


def unused_windows(w: Weights, c: MiniCpmVision) -> None:
    """The tensors of the same where it is left out."""
    D, F, wide = c.d_model, c.d_window_ff, SIDE * SIDE * c.d_model
    for name in ("k_proj", "v_proj", "q_proj", "out_proj"):
        stored(w, f"self_attn.{name}", D, D)
    stored(w, "layer_norm1", D)
    stored(w, "pre_norm", wide)
    stored(w, "linear_1", F, wide)
    stored(w, "linear_2", D, F)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, number: int, c: MiniCpmVision) -> Array:
    """Let each patch gather information from those of its window: [P D] -> [P D]."""
    size, N, H = SIDE * SIDE, c.n_heads, c.d_head
    # windows are treated as additional heads
    q, k, v = (
        linear(x, w, name, c.d_model, bias=True)
        .reshape(number, size, N, H)
        .transpose(1, 0, 2, 3)
        .reshape(size, number * N, H)
        for name in ("q_proj", "k_proj", "v_proj")
    )
    mixed = attend(q, k, v, None, H**-0.5).reshape(size, number, c.d_model).swapaxes(0, 1)
    return linear(mixed.reshape(number * size, c.d_model), w, "out_proj", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, grid: Grid, c: MiniCpmVision) -> Array:
    """One vector for the text from each block: [P D] -> [P/4 4D] -> [P/4 O]."""
    wide = SIDE * SIDE * c.d_model
    x = blocks(x, grid, SIDE)
    x = layer_norm(x.reshape(x.shape[0], wide), w, "pre_norm", c.merger_eps)
    return two_maps(x, w, ("linear_1", "linear_2"), wide, c.d_text, gelu)
