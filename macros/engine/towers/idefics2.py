"""The vision tower of Idefics2: SigLIP for images of any size, at whose vectors a few trained ones look.

Positions are a learned table of a square, whose places an image's rows and columns share out among them. Trained
vectors gather information from the mapped patches, and from each other, in a few layers; a text gets these. That the
processor can add an image's quarters is not its default and not counted. Source: transformers 5.24,
modeling_idefics2.py and image_processing_idefics2.py (arXiv 2405.02246).
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Size, activation, config, derived, fixed, key
from ..interface import Array, KVCache, Weights
from ..ops import attend, heads, layer_norm, linear, rms_norm
from ..steps import Role, step
from . import OF_TEXT, TEXT_WIDTH, Grid, tower
from .patches import AnySize, embed_patches, gated_maps, places, vit_layer

LONGEST, SHORTEST = 980, 378  # pixels of an image's sides: the processor's
PERCEIVER = "perceiver_config."


@config
class Idefics2Vision(AnySize):
    """Hyperparameters of Idefics2's vision tower and perceiver, in forward order."""

    beside = ("perceiver_config",)

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 224)  # of the table of positions
    patch: Size = key("patch_size", 32)
    d_model: Size = key("hidden_size", 768)
    side: Size = derived(lambda c: c.image_size // c.patch)
    merge: int = fixed(1)
    # layers
    n_layers: Size = key("num_hidden_layers", 12)
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads", 12)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 3072)
    activation: str = key("hidden_act", "gelu_pytorch_tanh")
    # projection
    d_projector: Size = key(OF_TEXT + "intermediate_size", 14336)
    projector_activation: str = key(OF_TEXT + "hidden_act", "silu")
    d_text: Size = key(TEXT_WIDTH)
    # perceiver
    n_latents: Size = key(PERCEIVER + "resampler_n_latents", 64)
    n_perceiver_layers: Size = key(PERCEIVER + "resampler_depth", 3)
    d_perceiver: Size = key(PERCEIVER + "hidden_size", 4096)
    own_eps: Positive = key(PERCEIVER + "rms_norm_eps", 1e-6)
    text_eps: Positive = key(OF_TEXT + "rms_norm_eps", 1e-5)
    n_perceiver_heads: Size = key(PERCEIVER + "resampler_n_heads", 16)
    d_perceiver_head: Size = key(PERCEIVER + "resampler_head_dim", 96)
    n_perceiver_kv_heads: Size = key(PERCEIVER + "num_key_value_heads", 4)
    d_perceiver_ff: Size = derived(lambda c: 4 * c.d_text)
    perceiver_activation: str = key(PERCEIVER + "hidden_act", "silu")

    def check(self) -> None:
        super().check()
        self.must_not_exceed("patch", "image_size")
        self.must_divide("n_perceiver_kv_heads", "n_perceiver_heads")
        for name in (self.projector_activation, self.perceiver_activation):
            activation(name)

    @property
    def perceiver_eps(self) -> float:
        """The perceiver has the text model's width; if its table gives another width, its norm epsilon applies too."""
        return self.own_eps if int(self.d_perceiver) == int(self.d_text) else self.text_eps

    def grid(self, height: int, width: int) -> Grid:
        high, wide = resized(height, width)
        return Grid(max(high // int(self.patch), 1), max(wide // int(self.patch), 1))


def resized(height: int, width: int) -> tuple[int, int]:
    """The sides of an image in pixels, neither too long nor too short."""
    ratio = width / height
    if width >= height and width > LONGEST:
        height, width = int(LONGEST / ratio), LONGEST
    elif height > width and height > LONGEST:
        height, width = LONGEST, int(LONGEST * ratio)
    return max(height, SHORTEST), max(width, SHORTEST)


@tower("idefics2.vision_config", config=Idefics2Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Idefics2Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [M D]."""
    x = encode(w.at("model.vision_model"), x, grid, c, cache)
    act = activation(c.projector_activation)
    x = gated_maps(x, w.at("model.connector.modality_projection"), c.d_projector, c.d_text, act)
    perceiver = w.at("model.connector.perceiver_resampler")
    y = perceiver("latents", c.n_latents, c.d_text)
    kinds = ["perceiver"] * c.n_perceiver_layers
    for _, w_layer, _ in perceiver.layers("layers", kinds, cache, "perceiver", c.n_layers):
        y = perceiver_layer(y, x, w_layer, c)
    return [rms_norm(y, perceiver, "norm", c.perceiver_eps)]


def encode(w: Weights, x: Array, grid: Grid, c: Idefics2Vision, cache: KVCache) -> Array:
    """SigLIP's vectors of an image of any size: [P I] -> [P D]."""
    row, column = places(x, grid.rows, grid.columns)
    x = embed_patches(x, w, "embeddings.patch_embedding", c.d_model, (c.n_channels, c.patch, c.patch), bias=True)
    x = x + shared_positions(row, column, w, c, c.side, grid)
    for _, w_layer, _ in w.layers("encoder.layers", ["layer"] * c.n_layers, cache):
        x = vit_layer(x, w_layer, c)
    return layer_norm(x, w, "post_layernorm", c.norm_eps)


@step(Role.EMBED_POSITIONS)
def shared_positions(row: Array, column: Array, w: Weights, c: AnySize, side: int, grid: Grid) -> Array:
    """The vector of each patch's position, from a table with as many positions however large the image is: [P] -> [P
    D]."""
    table = w("embeddings.position_embedding.weight", side * side, c.d_model)
    place = row * int(side) // int(grid.rows) * int(side) + column * int(side) // int(grid.columns)
    return np.take(table, place, axis=0)


@step(Role.LAYER)
def perceiver_layer(y: Array, x: Array, w: Weights, c: Idefics2Vision) -> Array:
    """Let the trained vectors gather information from the patches and from each other: [M D], [P D] -> [M D]."""
    latents = rms_norm(y, w, "input_latents_norm", c.perceiver_eps)
    both = np.concatenate([rms_norm(x, w, "input_context_norm", c.perceiver_eps), latents], axis=0)
    y = y + look(latents, both, w.at("self_attn"), c)
    z = rms_norm(y, w, "post_attention_layernorm", c.perceiver_eps)
    return y + gated_maps(z, w.at("mlp"), c.d_perceiver_ff, c.d_text, activation(c.perceiver_activation))


@step(Role.ATTENTION)
def look(latents: Array, both: Array, w: Weights, c: Idefics2Vision) -> Array:
    """Let each trained vector gather information from all: [M D], [P+M D] -> [M D]."""
    N, K, H = c.n_perceiver_heads, c.n_perceiver_kv_heads, c.d_perceiver_head
    q = heads(linear(latents, w, "q_proj", N * H), N, H)
    k, v = (heads(linear(both, w, name, K * H), K, H) for name in ("k_proj", "v_proj"))
    return linear(attend(q, k, v, None, H**-0.5), w, "o_proj", c.d_text)
