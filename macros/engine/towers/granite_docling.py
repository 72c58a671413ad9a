"""The vision tower of Granite Docling: SigLIP for tiles of one size, whose patches are joined and projected.

Vectors of some layers are joined and mapped, too, and added in the text model's first layers. A page is cut into up to
32 tiles, and is shown once more as a whole. A second way with four times as many tokens is stored and not taken by
default. Source: transformers 5.24, modeling_granite_docling.py and image_processing_granite_docling.py.
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Size, config, derived, fixed, key
from ..architectures.xglm import sinusoids
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import embed_positions, gelu, layer_norm, linear, softmax
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .internvl import tiled
from .patches import OneSize, blocks, embed_patches, stored, two_maps, vit_layer

PATHS = "model.vision_model.connector"
MOST_TILES, MOST_ON_A_SIDE = 32, 16  # of a page: the processor's


@config
class GraniteDoclingVision(OneSize):
    """Hyperparameters of Granite Docling's vision tower, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 512)
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 768)
    # layers
    n_layers: Size = key("num_hidden_layers", 12)
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads", 12)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 3072)
    activation: str = key("hidden_act", "gelu_pytorch_tanh")
    # connector
    merge: Size = key("scale_factor", 4)
    deepstack: list[int] = key("deepstack_visual_indexes", lambda c: [3, 7, 10])
    has_fine: bool = key("use_fine_route", True)
    connector_eps: Positive = fixed(1e-5)
    d_text: Size = key(TEXT_WIDTH)
    # the router between both ways
    d_router: Size | None = key("density_router_hidden_size", None)

    ignored = frozenset({"density_router_loss_weight", "density_router_threshold", "out_hidden_size"})

    def check(self) -> None:
        super().check()
        if any(not 0 <= i < self.n_layers for i in self.deepstack):
            raise Problem(f"deepstack_visual_indexes = {self.deepstack}", "give layers of this tower")
        if self.has_fine and int(self.merge) % 2:
            raise Problem(f"scale_factor = {int(self.merge)}", "the second way takes half of it: give an even number")
        if int(self.d_text) % 4:
            raise Problem(
                f"text_config.hidden_size = {int(self.d_text)}", "give a multiple of 4, which the positions need"
            )

    def tiles(self, height: int, width: int) -> int:
        rows, columns = tiled(height, width, int(self.image_size), 1, MOST_TILES, MOST_ON_A_SIDE)
        return rows * columns

    @property
    def kinds(self) -> list[str]:
        """Whether each layer's vectors are also handed to the text model."""
        return ["deepstack" if i in self.deepstack else "layer" for i in range(self.n_layers)]


@tower("granite_docling.vision_config", config=GraniteDoclingVision)
def forward(w: Weights, x: Array, grid: Grid, c: GraniteDoclingVision, cache: KVCache) -> list[Array]:
    """The vectors of a tile for the text, [P I] -> [P/m² D], and those for its first layers, [P/m² D] each."""
    tower, connector = w.at("model.vision_model"), w.at(PATHS)
    x = embed_patches(x, tower, "embeddings.patch_embedding", c.d_model, (c.n_channels, c.patch, c.patch), bias=True)
    places = np.arange(x.shape[0], like=x)
    x = x + embed_positions(places, tower, "embeddings.position_embedding.weight", x.shape[0], c.d_model)
    early: list[Array] = []
    numbers = {i: number for number, i in enumerate(sorted(set(c.deepstack)))}
    for kind, w_layer, _ in tower.layers("encoder.layers", c.kinds, cache):
        x = vit_layer(x, w_layer, c)
        if kind == "deepstack":
            early.append(merger(x, w_layer.beside(f"{PATHS}.coarse.deepstack_mergers", numbers), grid, c))
            if c.has_fine:
                unused_merger(w_layer.beside(f"{PATHS}.fine.deepstack_mergers", numbers), c)
    x = layer_norm(x, tower, "post_layernorm", c.norm_eps)
    if c.d_router is not None:
        route(x, w.at("model.density_router"), c.d_router, c)
    if c.has_fine:
        connector("fine.projection.weight", c.d_text, c.merge // 2 * (c.merge // 2) * c.d_model)
    return [connect(x, connector, grid, c), *early]


@step(Role.FEED_FORWARD)
def merger(x: Array, w: Weights, grid: Grid, c: GraniteDoclingVision) -> Array:
    """One vector for an early layer of the text model from each block of patches: [P D] -> [P/m² m²·D] -> [P/m² O]."""
    x = blocks(x, grid, c.merge)
    x = layer_norm(x.reshape(x.shape[0], c.merge * c.merge * c.d_model), w, "layer_norm", c.connector_eps)
    return two_maps(x, w, ("linear_1", "linear_2"), c.d_text, c.d_text, gelu)


def unused_merger(w: Weights, c: GraniteDoclingVision) -> None:
    """The tensors of the same on the way that is not taken."""
    wide = c.merge // 2 * (c.merge // 2) * c.d_model
    stored(w, "layer_norm", wide)
    stored(w, "linear_1", c.d_text, wide)
    stored(w, "linear_2", c.d_text, c.d_text)


@step(Role.FEED_FORWARD)
def connect(x: Array, w: Weights, grid: Grid, c: GraniteDoclingVision) -> Array:
    """One vector for the text from each block of patches, with its place in the tile: [P D] -> [P/m² m²·D] -> [P/m²
    O]."""
    x = blocks(layer_norm(x, w, "ln_in", c.connector_eps), grid, c.merge)
    x = linear(x.reshape(x.shape[0], c.merge * c.merge * c.d_model), w, "coarse.projection", c.d_text)
    place, side = np.arange(x.shape[0], like=x), grid.columns // c.merge
    half, quarter = int(c.d_text) // 2, int(c.d_text) // 4
    turned = [sinusoids(at, half, quarter) for at in (place % side, place // side)]
    x = gelu(layer_norm(x + np.concatenate(turned, axis=-1), w, "ln_mid", c.connector_eps))
    return layer_norm(linear(x, w, "mlp_fc2", c.d_text), w, "ln_out", c.connector_eps)


@step(Role.FEED_FORWARD)
def route(x: Array, w: Weights, wide: int, c: GraniteDoclingVision) -> Array:
    """Whether a page has so much on it that the second way should be taken: [P D] -> [1 1]."""
    shares = softmax(linear(x, w, "att", 1, bias=True).swapaxes(0, 1)).swapaxes(0, 1)
    x = layer_norm((x * shares).sum(axis=0)[None, :], w, "norm", c.connector_eps)
    return two_maps(x, w, ("fc1", "fc2"), wide, 1, gelu)
