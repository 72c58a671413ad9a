"""The vision tower of DeepSeek-OCR 2: SAM's ViT, then a language model's layers, whose queries attend to its output.

The vectors of an image see each other, and trained queries behind them see all of them and the queries before. Those of
the queries are projected. An image is shown as a whole, and cut into tiles of a smaller size; a trained vector ends it.
Source: transformers 5.24, modeling_deepseek_ocr2.py and image_processing_deepseek_ocr2.py.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Raw, Size, activation, config, derived, fold_table, key
from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Rope, apply_rope, attend, heads, linear, rms_norm, rope_table
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, theta_of, tower
from .internvl import tiles_of
from .patches import gated_maps
from .sam import SamVision, convolved, encode

# The processor's: pixels of a tile's side, and tiles. The model's: the queries of a tile and of the whole.
TILE, LEAST_TILES, MOST_TILES, FEW, MANY = 768, 2, 6, 144, 256
SAM, READER = "sam_config.", "encoder_config."


@config
class DeepseekOcr2Vision(SamVision):
    """Hyperparameters of DeepSeek-OCR 2's vision tower, in forward order."""

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
    mlp_ratio: Positive = key(SAM + "mlp_ratio", 4.0)
    d_ff: Size = key(SAM + "mlp_dim", lambda c: int(c.d_model * c.mlp_ratio))
    activation: str = key(SAM + "hidden_act", "gelu")
    d_neck: Size = key(SAM + "output_channels", 256)
    widths: list[int] = key(SAM + "downsample_channels", lambda c: [512, 896])
    # the reader
    d_reader: Size = key(READER + "hidden_size", 4096)
    n_reader_layers: Size = key(READER + "num_hidden_layers", 32)
    reader_eps: Positive = key(READER + "rms_norm_eps", 1e-6)
    n_reader_heads: Size = key(READER + "num_attention_heads", 32)
    n_reader_kv_heads: Size = key(READER + "num_key_value_heads", 32)
    d_reader_head: Size = key(READER + "head_dim", lambda c: c.d_reader // c.n_reader_heads)
    rope_parameters: Raw = key(READER + "rope_parameters", lambda c: {})
    windowed: Literal[False] = key(READER + "use_sliding_window", False)
    d_ff_reader: Size = key(READER + "intermediate_size", 22016)
    reader_activation: str = key(READER + "hidden_act", "silu")
    # projector
    d_text: Size = key(TEXT_WIDTH)

    rewritten = frozenset({"sam_config", "encoder_config"})
    ignored = frozenset(
        f"{SAM}scale {READER}vocab_size {READER}tie_word_embeddings {READER}sliding_window {READER}max_window_layers "
        f"{READER}layer_types".split()
    )
    checked = ("theta",)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The keys of both inner tables, prefixed with the table's name."""
        return fold_table(fold_table(raw, "sam_config"), "encoder_config")

    def check(self) -> None:
        super().check()
        self.must_divide("n_reader_kv_heads", "n_reader_heads")
        activation(self.reader_activation)
        if len(self.widths) != 2 or self.widths[0] < 1 or self.widths[1] != int(self.d_reader):
            raise Problem(f"{SAM}downsample_channels = {self.widths}", "give two, the second as wide as the reader")

    @property
    def theta(self) -> float:
        """The base of the reader's rotary embedding."""
        return theta_of(self.rope_parameters, 10000.0)

    def grids(self, height: int, width: int) -> list[Grid]:
        whole = self.grid(height, width)
        if max(height, width) <= TILE:
            return [whole]
        side = TILE // int(self.patch)
        return [Grid(side, side, tiles_of(height, width, TILE, LEAST_TILES, MOST_TILES)), whole]

    def image_tokens(self, height: int, width: int, tokens: int) -> int:
        return tokens + 1


@tower("deepseek_ocr2.vision_config", config=DeepseekOcr2Vision)
def forward(w: Weights, x: Array, grid: Grid, c: DeepseekOcr2Vision, cache: KVCache) -> list[Array]:
    """The vectors of an image or a tile for the text: [P I] -> [M D]."""
    tower = w.at("model.vision_tower")
    x = encode(tower.at("sam_encoder"), x, grid, c, cache)
    for number, width in enumerate((c.widths[0], c.d_reader)):
        x = convolved(x, tower, f"sam_encoder.proj.conv{number + 1}", width, 2)
    x = x.reshape(x.shape[0] * x.shape[1], c.d_reader)
    few = tower("query_768_resolution.weight", FEW, c.d_reader)
    many = tower("query_1024_resolution.weight", MANY, c.d_reader)
    w("model.view_separator", c.d_text)  # the vector behind an image
    seen = x.shape[0]
    x = np.concatenate([x, few if int(seen) <= FEW else many], axis=0)
    place = np.arange(x.shape[0], like=x)
    table = rope_table(place, c.d_reader_head, Rope(c.theta))
    allowed = (place[None, :] <= place[:, None]) | ((place[None, :] < seen) & (place[:, None] < seen))
    kinds = ["reader"] * c.n_reader_layers
    for _, w_layer, _ in tower.layers("vision_encoder.layers", kinds, cache, "reader", c.n_layers):
        x = reader_layer(x, w_layer, c, table, allowed)
    x = rms_norm(x, tower, "vision_encoder.norm", c.reader_eps)[int(seen) :]
    return [linear(x, w, "model.multi_modal_projector", c.d_text, bias=True)]


@step(Role.LAYER)
def reader_layer(x: Array, w: Weights, c: DeepseekOcr2Vision, table: RopeTable, allowed: Array) -> Array:
    """One transformer block of the reader: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.reader_eps)
    x = x + reader_attention(y, w.at("self_attn"), c, table, allowed)
    y = rms_norm(x, w, "post_attention_layernorm", c.reader_eps)
    return x + gated_maps(y, w.at("mlp"), c.d_ff_reader, c.d_reader, activation(c.reader_activation))


@step(Role.ATTENTION)
def reader_attention(x: Array, w: Weights, c: DeepseekOcr2Vision, table: RopeTable, allowed: Array) -> Array:
    """Let each vector gather information from those that it sees: [T D] -> [T D]."""
    H = c.d_reader_head
    q, k, v = (
        heads(linear(x, w, name, n * H, bias=True), n, H)
        for name, n in (("q_proj", c.n_reader_heads), ("k_proj", c.n_reader_kv_heads), ("v_proj", c.n_reader_kv_heads))
    )
    mixed = attend(apply_rope(q, table), apply_rope(k, table), v, allowed, H**-0.5)
    return linear(mixed, w, "o_proj", c.d_reader)
