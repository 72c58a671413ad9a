"""The vision tower of Granite 4 Vision: SigLIP for tiles, and a Q-Former for each of several layers of the text model.

Each Q-Former reads the vectors of one of SigLIP's layers window by window, and makes fewer of them, which are added in
one of the text model's layers; four of them begin with every second vector of one layer, each at another corner. An
image is cut into tiles, and shown once more as a whole, as in LLaVA-NeXT. Source: transformers 5.24,
modeling_granite4_vision.py and processing_granite4_vision.py.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ..architectures.config import Positive, Size, activation, config, derived, fixed, key, listed
from ..errors import Problem, shorten
from ..interface import Array, KVCache, Weights
from ..ops import embed_positions, layer_norm, linear
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .llava_next import USUAL, check_shapes, tiles_of, without_frame
from .patches import blocks, embed_patches, vit_layer
from .qformer import QFormer, qformer_of
from .qformer import encode as gather
from .siglip import Siglip

QFORMER = "qformer_config."
CORNERS = 4
HEAD = 64  # numbers of a head of the Q-Formers


@config
class Granite4Vision(Siglip):
    """SigLIP and Granite 4 Vision's Q-Formers."""

    beside = ("qformer_config",)

    # which layers are read, and by which layers of the text model
    layer_map: list[Any] = key("deepstack_layer_map")
    corner_layer: int = key("spatial_vision_layer", -1)
    corner_targets: list[int] = key("spatial_target_layers", lambda c: [12, 15, 18, 21])
    # Q-Formers
    rate: str = key("downsample_rate")
    d_qformer: Size = derived(lambda c: c.d_model)
    n_qformer_layers: Size = key(QFORMER + "num_hidden_layers", 1)
    period: Size = key(QFORMER + "cross_attention_frequency", 1)
    qformer_eps: Positive = key(QFORMER + "layer_norm_eps", 1e-12)
    projector_eps: Positive = fixed(1e-6)
    d_qformer_ff: Size = key(QFORMER + "intermediate_size", 3072)
    qformer_activation: str = key(QFORMER + "hidden_act", "gelu")
    reads_text: bool = key(QFORMER + "use_qformer_text_input", False)
    d_text: Size = key(TEXT_WIDTH)

    pinpoints: list[Any] = key("image_grid_pinpoints", lambda c: USUAL)
    strategy: Literal["full"] = key("vision_feature_select_strategy", "full")  # SigLIP has no class token to drop
    ignored = frozenset(
        f"""image_seq_length projector_dropout vision_feature_layer vocab_size {QFORMER}encoder_hidden_size
        {QFORMER}hidden_size {QFORMER}num_attention_heads {QFORMER}hidden_dropout_prob
        {QFORMER}attention_probs_dropout_prob {QFORMER}max_position_embeddings {QFORMER}vocab_size""".split()
    )
    checked = ("sides", "layers", "corners_of")

    def check(self) -> None:
        super().check()
        activation(self.qformer_activation)
        check_shapes(self.pinpoints, int(self.image_size))
        if int(self.d_model) % HEAD:
            raise Problem(f"hidden_size = {int(self.d_model)}", f"the Q-Formers have heads of {HEAD}: give a multiple")
        sides = self.sides
        if int(self.patch_rows) % sides[1] or sides[1] % sides[0]:
            raise Problem(f"downsample_rate = {self.rate!r}", "windows must fill a tile, and be whole blocks")
        if len(self.corner_targets) != CORNERS or 2 * sides[0] != sides[1]:
            raise Problem(f"spatial_target_layers = {self.corner_targets}", "give four, with a rate of one half")

    @property
    def sides(self) -> tuple[int, int]:
        """The vectors that a Q-Former makes of a window's side, and those that it reads."""
        made, _, read = self.rate.partition("/")
        if not (made.isdecimal() and read.isdecimal() and 0 < int(made) <= int(read) < 1000):
            raise Problem(f"downsample_rate = {shorten(self.rate)}", "give two numbers such as 1/2")
        return int(made), int(read)

    @property
    def layers(self) -> list[int]:
        """The layers after which the vectors for each Q-Former are taken."""
        found: list[int] = []
        for pair in self.layer_map:
            both = listed(pair)
            if both is None or len(both) != 2 or any(type(i) is not int for i in both):
                raise Problem(
                    f"deepstack_layer_map has {shorten(pair)}", "give a layer of the tower and one of the text"
                )
            found.append(self.place_of("deepstack_layer_map", both[0]))
        return found

    @property
    def corners_of(self) -> int:
        """The same of those that begin at the corners."""
        return self.place_of("spatial_vision_layer", self.corner_layer)

    def place_of(self, name: str, i: int) -> int:
        """The number of layers before `i`, which counts from the end if negative. Raises `Problem` if there is no such
        layer."""
        place = i if i >= 0 else int(self.n_layers) + 1 + i
        if not 0 <= place <= self.n_layers:
            raise Problem(f"{name} has {i}", "give a layer of this tower")
        return place

    @property
    def kinds(self) -> list[str]:
        """The index of each layer whose vectors a Q-Former reads."""
        taken = [*self.layers, self.corners_of]
        return [f"layer {i + 1}" if i + 1 in taken else "layer" for i in range(self.n_layers)]

    @property
    def qformer(self) -> QFormer:
        """The sizes of a Q-Former."""
        return qformer_of(self, int(self.d_model) // HEAD, self.reads_text)

    def grid(self, height: int, width: int) -> Grid:
        rows, columns = tiles_of(self.pinpoints, int(self.image_size), height, width)
        return Grid(int(self.patch_rows), int(self.patch_rows), rows * columns + 1)

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        tiles = tiles_of(self.pinpoints, int(self.image_size), height, width)
        side = int(self.patch_rows) * self.sides[0] // self.sides[1]
        rows, columns = without_frame(side * tiles[0], side * tiles[1], height, width)
        return side * side + rows * columns + rows


@tower("granite4_vision.vision_config", config=Granite4Vision, of_type="siglip_vision_model")
def forward(w: Weights, x: Array, grid: Grid, c: Granite4Vision, cache: KVCache) -> list[Array]:
    """The vectors of a tile for each of several layers of the text model: [P I] -> [P·q²/w² D] each."""
    w("model.image_newline", c.d_text)  # the vector after each row of the whole image
    tower = w.at("model.vision_tower")
    kernel = c.n_channels, c.patch, c.patch
    x = embed_patches(x, tower, "embeddings.patch_embedding", c.d_model, kernel, bias=True)
    places = np.arange(x.shape[0], like=x)
    x = x + embed_positions(places, tower, "embeddings.position_embedding.weight", x.shape[0], c.d_model)
    after = {"layer 0": x}
    for kind, w_layer, _ in tower.layers("encoder.layers", c.kinds, cache):
        x = vit_layer(x, w_layer, c)
        after[kind] = x
    layer_norm(x, tower, "post_layernorm", c.norm_eps)  # which nothing reads
    read = [
        project(after[f"layer {place}"], w.at(f"model.layerwise_projectors.{i}"), grid, c, cache, None)
        for i, place in enumerate(c.layers)
    ]
    for corner in range(CORNERS):
        projector = w.at(f"model.spatial_projectors.{corner}")
        read.append(project(after[f"layer {c.corners_of}"], projector, grid, c, cache, corner))
    return read


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, grid: Grid, c: Granite4Vision, cache: KVCache, corner: int | None) -> Array:
    """Fewer vectors of a tile, window by window: [P D] -> [P·q²/w² O]. They begin as means of blocks, or as every
    second vector from a `corner` on."""
    made, read = c.sides
    D = c.d_model
    x = layer_norm(x, w, "norm", c.projector_eps)
    windows = blocks(x, grid, read) + w("image_positions", 1, read * read, D)
    if corner is None:
        first = blocks(x, grid, read // made).mean(axis=1)
    else:
        first = blocks(x, grid, 2)[:, corner]
    smaller = Grid(grid.rows // read * made, grid.columns // read * made)
    y = blocks(first, smaller, made) + w("query", 1, made * made, D)
    number = y.shape[0]
    y = layer_norm(y.reshape(number * made * made, D), w, "qformer.layernorm", c.qformer_eps)
    y = gather(y, windows.reshape(number * read * read, D), w.at("qformer"), c.qformer, cache, number)
    wide = smaller.columns // made
    y = y.reshape(number // wide, wide, made, made, D).transpose(0, 2, 1, 3, 4).reshape(number * made * made, D)
    return linear(y, w, "out_linear", c.d_text, bias=True)
