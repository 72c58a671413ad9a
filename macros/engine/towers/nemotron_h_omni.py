"""The vision tower of Nemotron 3 Omni: RADIO's ViT, for images of any size; each four vectors become one, projected.

Some trained vectors stand before the patches. Source: transformers 5.24, modeling_radio.py,
modeling_nemotron_h_omni.py and image_processing_nemotron_h_omni.py (arXiv 2312.06709).
"""

from __future__ import annotations

import math

import numpy as np

from ..architectures.config import Count, Positive, Size, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import attend, heads, layer_norm, linear, relu_squared, rms_norm, silu
from ..steps import Role, step
from . import OF_TEXT, TEXT_WIDTH, Grid, tower
from .patches import AnySize, blocks, named_activation, places, stretched_positions, two_maps


@config
class RadioVision(AnySize):
    """Hyperparameters of RADIO and the projector of Nemotron 3 Omni, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 1280)
    most_pixels: Size = key("max_img_size", 2048)
    n_frames_packed: Size | None = key("video_temporal_patch_size", 2)
    n_classes: Size = key("num_cls_tokens", 3)
    n_registers: Count = key("num_registers", 7)
    summaries: list[int] = key("summary_idxs", lambda c: [0, 1])
    # layers
    n_layers: Size = key("num_hidden_layers", 32)
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    bias: bool = key("qkv_bias", True)
    mlp_ratio: Positive = key("mlp_ratio", 4.0)
    d_ff: Size = derived(lambda c: int(int(c.d_model) * c.mlp_ratio))
    is_gated: bool = key("use_swiglu_ffn", False)
    activation: str = key("hidden_act", "gelu")
    # projector
    ratio: Positive = key("downsample_ratio", 0.5)
    merge: Size = fixed(2)
    d_seen: Size = key("vision_hidden_size", 1280, also=("vit_hidden_size",))
    projector_eps: Positive = fixed(1e-5)
    d_projector: Size = key("projector_hidden_size", 4096)
    n_predictors: Count = key(OF_TEXT + "num_nextn_predict_layers", 0)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset(
        """attention_probs_dropout_prob drop_path_rate image_size layerscale_value norm_mean norm_std patch_dim
        video_patch_dim force_image_size video_pruning_rate""".split()
    )

    def check(self) -> None:
        super().check()
        self.must_not_exceed("patch", "most_pixels")
        if self.ratio != 0.5:
            raise Problem(f"downsample_ratio = {self.ratio}", "transformers joins four vectors: give 0.5")
        if int(self.d_seen) != int(self.d_model):
            raise Problem(f"vision_hidden_size = {int(self.d_seen)}", "it is vision_config.hidden_size")

    def grid(self, height: int, width: int) -> Grid:
        block = int(self.patch) * int(self.merge)
        rows, columns = (math.ceil(side / block) * int(self.merge) for side in (height, width))
        return Grid(rows, columns)


@tower("nemotron_h_omni.vision_config", config=RadioVision)
def forward(w: Weights, x: Array, grid: Grid, c: RadioVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/4 D]."""
    tower = w.at("vision_model")
    tower.buffer("summary_idxs", len(c.summaries), whole=True)  # of a vector of the whole image, which nothing reads
    x = embed(x, tower.at("embeddings"), grid, c)
    for _, w_layer, _ in tower.layers("encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    x = x[int(c.n_classes) + int(c.n_registers) :]
    if c.n_predictors:  # no checkpoint has the weights of this norm
        x = layer_norm(x, w, "", c.norm_eps, weight=False, bias=False)
    return [project(blocks(x, grid, 2), w.at("multi_modal_projector"), c)]


@step(Role.CONV_STEM)
def embed(x: Array, w: Weights, grid: Grid, c: RadioVision) -> Array:
    """The trained vectors, then the patches' vectors with their positions: [P I] -> [E + P D]."""
    side, longer = c.most_pixels // c.patch, max(int(grid.rows), int(grid.columns))
    if c.n_frames_packed is not None:
        w("video_patch_projection.weight", c.d_model, c.n_frames_packed * x.shape[1])
    row, column = places(x, grid.rows, grid.columns)
    x = linear(x, w, "patch_projection", c.d_model)
    table = w("position_embedding", 1, side * side, c.d_model).reshape(side * side, c.d_model)
    x = x + stretched_positions(row, column, table, int(side), Grid(longer, longer), to_corners=False)
    return np.concatenate([w("cls_register_token", c.n_classes + c.n_registers, c.d_model), x], axis=0)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: RadioVision) -> Array:
    """One transformer block, in which every patch sees all others: [P D] -> [P D]."""
    y = attention(layer_norm(x, w, "norm1", c.norm_eps), w.at("attention"), c)
    x = x + y * w("layer_scale1.lambda1", c.d_model)
    y = feed_forward(layer_norm(x, w, "norm2", c.norm_eps), w.at("mlp"), c)
    return x + y * w("layer_scale2.lambda1", c.d_model)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: RadioVision) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=c.bias), c.n_heads, c.d_head)
        for name in ("q_proj", "k_proj", "v_proj")
    )
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "o_proj", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: RadioVision) -> Array:
    """Process each vector separately, in a wider space, gated or not: [P D] -> [P F] -> [P D]."""
    if not c.is_gated:
        return two_maps(x, w, ("fc1", "fc2"), c.d_ff, c.d_model, named_activation(c.activation))
    wide = (int(int(c.d_ff) * 2 / 3) + 7) // 8 * 8
    gate = silu(linear(x, w, "gate_proj", wide, bias=True))
    return linear(gate * linear(x, w, "up_proj", wide, bias=True), w, "down_proj", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, c: RadioVision) -> Array:
    """The vectors of each block joined, normalized and mapped twice: [M 4 D] -> [M F] -> [M O]."""
    x = rms_norm(x.reshape(x.shape[0], x.shape[1] * c.d_model), w, "layer_norm", c.projector_eps)
    return two_maps(x, w, ("linear_1", "linear_2"), c.d_projector, c.d_text, relu_squared, bias=False)
