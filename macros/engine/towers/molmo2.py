"""The vision tower of Molmo 2: a ViT for tiles of one size; a query, the mean of each block of patches, looks at them.

The vectors of two layers are put side by side. An image is shown as a whole, and once more cut into tiles that overlap.
Here the blocks of each tile are counted; where tiles overlap, the text gets them once. Source: transformers 5.24,
modeling_molmo2.py and image_processing_molmo2.py.
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Positive, Raw, Size, activation, config, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import attend, heads, layer_norm, linear
from ..steps import Role, step
from . import Grid, tower
from .patches import OneSize, named_activation, one_side, two_maps

# The processor's: tiles of an image, patches at a tile's borders that overlap, and the side of a block.
MOST_TILES, MARGIN, POOL = 8, 4, 2
ADAPTER = "adapter_config."


@config
class Molmo2Vision(OneSize):
    """Hyperparameters of Molmo 2's vision tower and adapter, in forward order."""

    beside = ("adapter_config",)

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 378, also=("image_default_input_size",))
    patch: Size = key("patch_size", 14, also=("image_patch_size",))
    d_model: Size = key("hidden_size", 1152)
    n_positions: Size = key("num_position_embeddings", lambda c: c.patch_rows * c.patch_rows, also=("image_num_pos",))
    # layers
    n_layers: Size = key("num_hidden_layers", 25)
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads", 16)
    n_kv_heads: Size = key("num_key_value_heads", 16)
    d_head: Size = key("head_dim", 72)
    bias: bool = key("attention_bias", True)
    d_ff: Size = key("intermediate_size", 4304)
    activation: str = key("hidden_act", "gelu_pytorch_tanh")
    # adapter
    features: list[int] = key(ADAPTER + "vision_feature_layer", lambda c: [24, 18])
    d_adapter: Size = key(ADAPTER + "hidden_size", 1152)
    n_adapter_heads: Size = key(ADAPTER + "num_attention_heads", 16)
    n_adapter_kv_heads: Size = key(ADAPTER + "num_key_value_heads", 16)
    d_adapter_head: Size = key(ADAPTER + "head_dim", 72)
    adapter_bias: bool = key(ADAPTER + "attention_bias", True)
    d_projector: Size = key(ADAPTER + "intermediate_size", 18944)
    projector_activation: str = key(ADAPTER + "hidden_act", "silu")
    projector_bias: bool = key(ADAPTER + "mlp_bias", False)
    d_text: Size = key(ADAPTER + "text_hidden_size", 3584)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """One number where height and width are given, equal."""
        return one_side(raw, "image_size", "image_default_input_size")

    def check(self) -> None:
        named_activation(self.activation)
        activation(self.projector_activation)
        self.must_divide("n_kv_heads", "n_heads")
        self.must_divide("n_adapter_kv_heads", "n_adapter_heads")
        if int(self.n_positions) != int(self.patch_rows) ** 2:
            raise Problem(f"num_position_embeddings = {int(self.n_positions)}", "give one for each patch of a tile")
        if int(self.d_adapter) != int(self.d_model):
            raise Problem(f"{ADAPTER}hidden_size = {int(self.d_adapter)}", "the adapter reads the tower's vectors")
        layers = self.layers
        if not layers or len(set(layers)) < len(layers) or not all(1 <= i <= self.n_layers for i in layers):
            raise Problem(f"{ADAPTER}vision_feature_layer = {self.features}", "give layers of this tower, each once")

    @property
    def layers(self) -> list[int]:
        """The layers after which the vectors are taken."""
        return [i + 1 if i >= 0 else int(self.n_layers) + 1 + i for i in self.features]

    @property
    def kinds(self) -> list[str]:
        """Which of the vectors for the text model each layer produces, if any."""
        taken = self.layers
        return [f"feature {taken.index(i + 1)}" if i + 1 in taken else "layer" for i in range(self.n_layers)]

    def canvas(self, height: int, width: int) -> tuple[int, int]:
        """The rows and columns of tiles of an image: the grid that enlarges it least, or else shrinks it least."""
        margin = 2 * MARGIN * int(self.patch)
        window = int(self.image_size) - margin
        fits = [
            (min(rows * window / (height - margin), columns * window / (width - margin)), rows, columns)
            for rows in range(1, MOST_TILES + 1)
            for columns in range(1, MOST_TILES // rows + 1)
        ]
        fits = sorted(fits, key=lambda fit: (fit[1] * fit[2], fit[1]))
        larger = [fit for fit in fits if fit[0] >= 1]
        _, rows, columns = min(larger, key=lambda fit: fit[0]) if larger else max(fits, key=lambda fit: fit[0])
        return rows, columns

    def grid(self, height: int, width: int) -> Grid:
        margin = 2 * MARGIN * int(self.patch)
        rows, columns = self.canvas(max(height, margin + 1), max(width, margin + 1))
        return Grid(int(self.patch_rows), int(self.patch_rows), rows * columns + 1)

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        margin = 2 * MARGIN * int(self.patch)
        own = int(self.patch_rows) - 2 * MARGIN
        rows, columns = self.canvas(max(height, margin + 1), max(width, margin + 1))
        high, wide = (math.ceil((count * own + 2 * MARGIN) / POOL) for count in (rows, columns))
        return math.ceil(int(self.patch_rows) / POOL) ** 2 + high * wide


@tower("molmo2.vision_config", config=Molmo2Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Molmo2Vision, cache: KVCache) -> list[Array]:
    """A tile's vectors for the text model: [P I] -> [M D]."""
    tower = w.at("model.vision_tower")
    x = linear(x, tower, "patch_embedding", c.d_model, bias=True) + tower("positional_embedding", x.shape[0], c.d_model)
    found: dict[str, Array] = {}
    for kind, w_layer, _ in tower.layers("layers", c.kinds, cache):
        x = layer(x, w_layer, c)
        found[kind] = x
    x = np.concatenate([found[f"feature {i}"] for i in range(len(c.features))], axis=-1)
    return [adapt(x, w.at("model.multi_modal_projector"), grid, c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Molmo2Vision) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    x = x + attention(layer_norm(x, w, "layer_norm1", c.norm_eps), w.at("self_attn"), c)
    y = layer_norm(x, w, "layer_norm2", c.norm_eps)
    return x + two_maps(y, w.at("mlp"), ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Molmo2Vision) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    q, k, v = (
        heads(linear(x, w, name, n * c.d_head, bias=c.bias), n, c.d_head)
        for name, n in (("q_proj", c.n_heads), ("k_proj", c.n_kv_heads), ("v_proj", c.n_kv_heads))
    )
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "o_proj", c.d_model, bias=c.bias)


@step(Role.FEED_FORWARD)
def adapt(x: Array, w: Weights, grid: Grid, c: Molmo2Vision) -> Array:
    """One vector for the text from each block of patches, by attention and a gated network: [P L·D] -> [M A] -> [M O].

    Where rows do not fill a block, it has fewer.
    """
    R, C, wide = grid.rows, grid.columns, x.shape[1]
    down, right = (R + POOL - 1) // POOL, (C + POOL - 1) // POOL
    above, left = (down * POOL - R) // 2, (right * POOL - C) // 2
    frame = (above, down * POOL - R - above), (left, right * POOL - C - left)
    row, column = np.arange(down * POOL, like=x) - above, np.arange(right * POOL, like=x) - left
    there = ((row >= 0) & (row < R))[:, None] & ((column >= 0) & (column < C))[None, :]
    M, B = down * right, POOL * POOL
    there = there.reshape(down, POOL, right, POOL).transpose(0, 2, 1, 3).reshape(M, B)
    x = np.pad(x.reshape(R, C, wide), (*frame, (0, 0)))
    x = x.reshape(down, POOL, right, POOL, wide).transpose(0, 2, 1, 3, 4).reshape(M, B, wide)
    query = x.sum(axis=1) / there.sum(axis=1, keepdims=True)
    y = look(query, x, there, w.at("image_pooling_2d"), c)
    act = activation(c.projector_activation)
    gate = act(linear(y, w, "image_projector.gate_proj", c.d_projector, bias=c.projector_bias))
    up = linear(y, w, "image_projector.up_proj", c.d_projector, bias=c.projector_bias)
    return linear(gate * up, w, "image_projector.down_proj", c.d_text)


@step(Role.ATTENTION)
def look(query: Array, x: Array, there: Array, w: Weights, c: Molmo2Vision) -> Array:
    """Let each query gather information from the patches of its block: [M I], [M B I], [M B] -> [M A]."""
    M, B, wide = x.shape
    N, K, H = c.n_adapter_heads, c.n_adapter_kv_heads, c.d_adapter_head
    # blocks are treated as additional heads
    q = linear(query, w, "q_proj", N * H, bias=c.adapter_bias).reshape(1, M * N, H)
    k, v = (
        linear(x.reshape(M * B, wide), w, name, K * H, bias=c.adapter_bias)
        .reshape(M, B, K, H)
        .transpose(1, 0, 2, 3)
        .reshape(B, M * K, H)
        for name in ("k_proj", "v_proj")
    )
    hidden = np.where(there, 0.0, -np.inf)
    bias = np.broadcast_to(hidden[:, None, None, :], (M, N, 1, B)).reshape(M * N, 1, B)
    mixed = attend(q, k, v, None, H**-0.5, bias).reshape(M, N * H)
    return linear(mixed, w, "o_proj", c.d_adapter, bias=c.adapter_bias)
