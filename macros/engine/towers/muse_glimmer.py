"""The vision tower of Muse Glimmer: a ViT for images of any size, with attention within windows in most layers.

Positions are a learned table, stretched over the image, and 2D rotary embeddings; four vectors are joined for each of
the text's, which are normalized. Source: transformers 5.24, modeling_muse_glimmer.py and
image_processing_muse_glimmer.py.
"""

from __future__ import annotations

import itertools
import math

from ..architectures.config import Positive, Raw, Size, activation, config, derived, fixed, key, short_names
from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import apply_rope, attend, heads, layer_norm, linear, unit_norm
from ..steps import Role, step
from . import OF_TEXT, TEXT_WIDTH, Grid, theta_of, tower
from .patches import AnySize, axial_rope, blocks, named_activation, places, stretched_positions, two_maps
from .qwen2_5_vl import windowed


@config
class MuseGlimmerVision(AnySize):
    """Hyperparameters of Muse Glimmer's vision tower, in forward order."""

    # patches
    n_channels: Size = fixed(3)
    n_frames: Size = key("patch_temporal", 2)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("hidden_size", 1536)
    n_position_rows: Size = key("pos_emb_height", 32)
    n_position_columns: Size = key("pos_emb_width", 32)
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    # layers
    n_layers: Size = key("num_hidden_layers", 50)
    layer_types: list[str] | None = key("layer_types", None)
    layer_eps: Positive = fixed(1e-5)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    d_ff: Size = key("intermediate_size", 8960)
    activation: str = key("hidden_act", "gelu")
    # projector
    merge: Size = key("merge_size", 2)
    d_joined: Size = key("out_hidden_size", 6144)
    d_projector: Size = key("projector_hidden_size", 4096)
    projector_activation: str = key("projector_hidden_act", "gelu")
    text_eps: Positive = key(OF_TEXT + "rms_norm_eps", 1e-6)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"max_position_embeddings"})
    checked = ("theta", "kinds")

    def check(self) -> None:
        super().check()
        activation(self.projector_activation)
        if int(self.n_position_rows) != int(self.n_position_columns):
            raise Problem("the table of positions is no square", "correct pos_emb_height or pos_emb_width")
        if int(self.merge) ** 2 * int(self.d_model) != int(self.d_joined):
            raise Problem(
                f"out_hidden_size = {int(self.d_joined)}",
                f"give {int(self.merge) ** 2 * int(self.d_model)}, the width of the joined vectors",
            )

    @property
    def theta(self) -> float:
        """The base of the rotary embedding."""
        return theta_of(self.rope_parameters, 10000.0)

    @property
    def kinds(self) -> list[str]:
        """Whether each layer attends to all patches or to a window."""
        number = int(self.n_layers)
        usual = ["full_attention" if i % 4 == 3 or i == number - 1 else "window_attention" for i in range(number)]
        names = {"full_attention": "full", "window_attention": "window"}
        return short_names(self.layer_types or usual, self.n_layers, names)

    def grid(self, height: int, width: int) -> Grid:
        block = int(self.patch) * int(self.merge)
        sides = [(math.floor(side / block), math.ceil(side / block)) for side in (height, width)]
        found = [pair for pair in set(itertools.product(*sides)) if min(pair) > 0]
        rows, columns = min(found, key=lambda pair: abs(pair[0] / pair[1] - height / width))
        return Grid(rows * int(self.merge), columns * int(self.merge))


@tower("muse_glimmer.vision_config", config=MuseGlimmerVision)
def forward(w: Weights, x: Array, grid: Grid, c: MuseGlimmerVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    return [encode(w, x, grid, c, cache)]


def encode(w: Weights, x: Array, grid: Grid, c: MuseGlimmerVision, cache: KVCache) -> Array:
    """An image's vectors for the text model: [P I] -> [P/m² D]. The learned positions are those of a grid of as many
    columns as this one has rows."""
    tower = w.at("model.vision_tower")
    row, column = places(x, grid.rows, grid.columns)
    x = linear(x, tower, "patch_embedder.patch_embedding", c.d_model)
    side = c.n_position_rows
    table = tower("patch_embedder.position_embedding_table.weight", side * c.n_position_columns, c.d_model)
    turned = Grid(grid.columns, grid.rows)
    at = places(x, turned.rows, turned.columns)
    x = x + stretched_positions(*at, table, int(side), turned, to_corners=False, empty_around=True)
    x = layer_norm(x, tower, "ln_pre", c.norm_eps)
    angles = axial_rope(column + 1, row + 1, c.d_head, c.theta)
    for kind, w_layer, _ in tower.layers("layers", c.kinds, cache):
        x = layer(x, w_layer, c, angles, grid, int(side) if kind == "window" else None)
    x = blocks(layer_norm(x, tower, "ln_post", c.norm_eps), grid, c.merge).swapaxes(1, 2)
    x = adapt(x.reshape(x.shape[0], c.d_joined), w.at("model.vision_adapter"), c)
    return unit_norm(linear(x, w, "model.vision_projection", c.d_text), c.text_eps)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: MuseGlimmerVision, angles: RopeTable, grid: Grid, side: int | None) -> Array:
    """One transformer block: [P D] -> [P D]."""
    x = x + attention(layer_norm(x, w, "norm1", c.layer_eps), w.at("attn"), c, angles, grid, side)
    y = layer_norm(x, w, "norm2", c.layer_eps)
    return x + two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: MuseGlimmerVision, angles: RopeTable, grid: Grid, side: int | None) -> Array:
    """Let each patch gather information from all patches, or from those of its window: [P D] -> [P D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head) for name in ("q_proj", "k_proj", "v_proj")
    )
    q, k, scale = apply_rope(q, angles), apply_rope(k, angles), c.d_head**-0.5
    mixed = attend(q, k, v, None, scale) if side is None else windowed(q, k, v, grid, 1, side, scale)
    return linear(mixed, w, "proj", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def adapt(x: Array, w: Weights, c: MuseGlimmerVision) -> Array:
    """Project merged vectors by two linear maps: [M m²·D] -> [M F] -> [M F]."""
    act = activation(c.projector_activation)
    return act(two_maps(x, w, ("fc1", "fc2"), c.d_projector, c.d_projector, act, bias=False))
