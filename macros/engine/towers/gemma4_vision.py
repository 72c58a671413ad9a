"""The vision tower of Gemma 4: an encoder like its text model's for images of any shape, averaged in blocks of patches.

An image is made as large as its number of tokens allows. Positions are two learned tables, for column and row, and
rotary embeddings: of the column in the first half of a head, of the row in the second. Source: transformers 5.23,
modeling_gemma4.py and image_processing_gemma4.py.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ..architectures.config import Positive, Raw, Size, activation, config, key
from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Rope, apply_rope, attend, heads, linear, rms_norm, rope_table, unit_norm
from ..steps import Keeps, Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, theta_of, tower
from .patches import blocks, in_blocks, places


@config
class Gemma4Vision(TowerConfig):
    """Hyperparameters of Gemma 4's vision tower, in forward order."""

    # patches
    n_most_tokens: Size = key("default_output_length", 280)
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size")
    n_positions: Size = key("position_embedding_size", 10240)
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads")
    n_kv_heads: Size = key("num_key_value_heads", lambda c: c.n_heads)
    d_head: Size = key("head_dim", lambda c: c.d_model // c.n_heads)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    clipped: bool = key("use_clipped_linears", False)
    bias: Literal[False] = key("attention_bias", False)
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_activation", "gelu_pytorch_tanh")
    # pooling and projector
    pool: Size = key("pooling_kernel_size", 3)
    standardized: bool = key("standardize", False)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"global_head_dim", "image_seq_length", "video_seq_length"})

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        activation(self.activation)
        if int(self.d_head) % 4:
            raise Problem(f"head_dim = {int(self.d_head)}", "row and column turn pairs in half a head each: give 4·n")

    @property
    def theta(self) -> float:
        """The base of the rotary embedding."""
        return theta_of(self.rope_parameters, 100.0)

    checked = ("theta",)

    def grid(self, height: int, width: int) -> Grid:
        found = blocks_within(height, width, int(self.patch) * int(self.pool), int(self.n_most_tokens))
        return Grid(found.rows * int(self.pool), found.columns * int(self.pool))

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return in_blocks(grid, self.pool, run)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return grid.rows * grid.columns, 3 * self.patch * self.patch


def blocks_within(height: int, width: int, block: int, most: int) -> Grid:
    """The blocks of an image enlarged as far as the maximum number of blocks allows."""
    scale = math.sqrt(most / (height * width))  # in blocks, of which a token is made each
    rows, columns = math.floor(scale * block * height / block), math.floor(scale * block * width / block)
    if rows == 0:
        return Grid(1, min(width // height, most))
    if columns == 0:
        return Grid(min(height // width, most), 1)
    return Grid(rows, columns)


@tower("gemma4.vision_config", config=Gemma4Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Gemma4Vision, cache: KVCache) -> list[Array]:
    """The vectors of an image for the text, from pixels between 0 and 1: [P I] -> [M D]."""
    return [read(w.at("model"), x, grid, c, cache)]


def read(w: Weights, x: Array, grid: Grid, c: Gemma4Vision, cache: KVCache) -> Array:
    """The same below the prefix of both parts: [P I] -> [M D]."""
    tower = w.at("vision_tower")
    x = linear(2 * (x - 0.5), tower, "patch_embedder.input_proj", c.d_model)
    row, column = places(x, grid.rows, grid.columns)
    x = x + axis_positions(row, column, tower, c)
    rope = Rope(c.theta)
    angles = rope_table(column, c.d_head // 2, rope), rope_table(row, c.d_head // 2, rope)
    for _, w_layer, _ in tower.layers("encoder.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, angles)
    x = blocks(x, grid, c.pool).mean(axis=1) * math.sqrt(c.d_model)
    if c.standardized:
        x = (x - tower.buffer("std_bias", c.d_model)) * tower.buffer("std_scale", c.d_model)
    return linear(unit_norm(x, c.norm_eps), w, "embed_vision.embedding_projection", c.d_text)


@step(Role.EMBED_POSITIONS, keeps=Keeps.NOTHING)
def axis_positions(row: Array, column: Array, w: Weights, c: Gemma4Vision) -> Array:
    """A vector for each patch's column and one for its row, added: [P], [P], [2 S D] -> [P D]."""
    table = w("patch_embedder.position_embedding_table", 2, c.n_positions, c.d_model)
    return np.take(table[0], column, axis=0) + np.take(table[1], row, axis=0)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Gemma4Vision, angles: tuple[RopeTable, RopeTable]) -> Array:
    """One transformer block, with norms before and after each half: [P D] -> [P D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), c, angles)
    x = x + rms_norm(y, w, "post_attention_layernorm", c.norm_eps)
    y = feed_forward(rms_norm(x, w, "pre_feedforward_layernorm", c.norm_eps), w.at("mlp"), c)
    return x + rms_norm(y, w, "post_feedforward_layernorm", c.norm_eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Gemma4Vision, angles: tuple[RopeTable, RopeTable]) -> Array:
    """Let each patch gather information from all patches; the scores are not scaled: [P D] -> [P D]."""
    q, k, v = (
        heads(clipped_linear(x, w.at(name), n * c.d_head, c.clipped), n, c.d_head)
        for name, n in (("q_proj", c.n_heads), ("k_proj", c.n_kv_heads), ("v_proj", c.n_kv_heads))
    )
    q = turned(rms_norm(q, w, "q_norm", c.norm_eps), angles)
    k = turned(rms_norm(k, w, "k_norm", c.norm_eps), angles)
    mixed = attend(q, k, unit_norm(v, c.norm_eps), None, 1.0)
    return clipped_linear(mixed, w.at("o_proj"), c.d_model, c.clipped)


def turned(x: Array, angles: tuple[RopeTable, RopeTable]) -> Array:
    """The first half of each head turned by the column, the second by the row: [P N H] -> [P N H]."""
    halves = np.split(x, 2, axis=-1)
    return np.concatenate([apply_rope(half, table) for half, table in zip(halves, angles)], axis=-1)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Gemma4Vision) -> Array:
    """Process each vector separately, in a wider space, gated: [P D] -> [P F] -> [P D]."""
    gate = activation(c.activation)(clipped_linear(x, w.at("gate_proj"), c.d_ff, c.clipped))
    return clipped_linear(
        gate * clipped_linear(x, w.at("up_proj"), c.d_ff, c.clipped), w.at("down_proj"), c.d_model, c.clipped
    )


def clipped_linear(x: Array, w: Weights, width: int, clipped: bool) -> Array:
    """A product whose input and output stay between stored bounds, which no published total counts: [P I] -> [P O]."""
    if not clipped:
        return linear(x, w, "linear", width)
    x = np.clip(x, w.buffer("input_min", counted=False), w.buffer("input_max", counted=False))
    y = linear(x, w, "linear", width)
    return np.clip(y, w.buffer("output_min", counted=False), w.buffer("output_max", counted=False))
