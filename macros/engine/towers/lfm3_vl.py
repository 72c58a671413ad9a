"""The vision tower of LFM3-VL: for images of any size, with convolutions over the grid in most layers.

The other layers let every patch see all others. Positions are 2D rotary embeddings; four vectors are joined for each of
the text's. Source: transformers 5.24, modeling_lfm3_vl.py.
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Raw, Size, activation, config, derived, fixed, key, short_names
from ..errors import Problem
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import apply_rope, attend, heads, layer_norm, linear, rms_norm, silu
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, theta_of, tower
from .patches import AnySize, axial_rope, places, two_maps
from .sounds import convolve_plane_each


@config
class Lfm3Vision(AnySize):
    """Hyperparameters of LFM3-VL's vision tower, in forward order."""

    # patches
    n_channels: Size = key("in_channels", 3)
    n_frames: Size = key("temporal_patch_size", 2)
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 1024)
    norm_eps: Positive = key("norm_eps", 1e-5)
    # layers
    n_layers: Size = key("num_hidden_layers", 14)
    layer_types: list[str] | None = key("layer_types", None)
    n_taps: Size = key("conv_kernel_size", 3)
    n_heads: Size = key("num_attention_heads", 16)
    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    d_ff: Size = key("intermediate_size", 2560)
    activation: str = fixed("silu")
    # projector
    merge: Size = key("spatial_merge_size", 2)
    projector_eps: Positive = fixed(1e-6)
    d_projector: Size = key("projector_hidden_size", 4096)
    projector_activation: str = key("projector_hidden_act", "gelu")
    bias: bool = key("projector_bias", True)
    d_text: Size = key(TEXT_WIDTH)

    def check(self) -> None:
        super().check()
        self.must_divide("n_kv_heads", "n_heads")
        activation(self.projector_activation)
        if int(self.n_taps) % 2 == 0:
            raise Problem(f"conv_kernel_size = {int(self.n_taps)}", "give an odd number: as many patches on both sides")

    @property
    def kinds(self) -> list[str]:
        """Whether each layer has a convolution or attention."""
        types = self.layer_types or ["conv" if i < 2 or i % 2 else "full_attention" for i in range(self.n_layers)]
        return short_names(types, self.n_layers, {"conv": "convolution", "full_attention": "attention"})

    @property
    def rope(self) -> float:
        """The base of the rotary embeddings."""
        return theta_of(self.rope_parameters, 1_000_000.0)


@tower("lfm3_vl.vision_config", config=Lfm3Vision)
def forward(w: Weights, x: Array, grid: Grid, c: Lfm3Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    tower = w.at("model.vision_tower")
    row, column = places(x, grid.rows, grid.columns, c.merge)
    x = rms_norm(linear(x, tower, "patch_embed", c.d_model), tower, "embedding_norm", c.norm_eps)
    angles = axial_rope(row, column, c.d_head, c.rope)
    for kind, w_layer, _ in tower.layers("layers", c.kinds, cache):
        x = layer(x, w_layer, c, grid, angles if kind == "attention" else None)
    return [project(x, w.at("model.multi_modal_projector"), c)]


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Lfm3Vision, grid: Grid, angles: RopeTable | None) -> Array:
    """One block: [P D] -> [P D]."""
    y = rms_norm(x, w, "operator_norm", c.norm_eps)
    x = x + (convolution(y, w.at("conv"), c, grid) if angles is None else attention(y, w.at("self_attn"), c, angles))
    y = rms_norm(x, w, "ffn_norm", c.norm_eps)
    return x + feed_forward(y, w.at("feed_forward"), c)


@step(Role.SHORT_CONVOLUTION)
def convolution(x: Array, w: Weights, c: Lfm3Vision, grid: Grid) -> Array:
    """Convolve each channel over neighboring patches, with gates before and after: [P D] -> [P 3D] -> [P D]."""
    gate, out, inner = np.split(linear(x, w, "in_proj", 3 * c.d_model), 3, axis=-1)
    R, C, m = grid.rows // c.merge, grid.columns // c.merge, c.merge
    plane = (gate * inner).reshape(R, C, m, m, c.d_model).transpose(0, 2, 1, 3, 4)
    kernel = w("spatial_conv.weight", c.d_model, 1, c.n_taps, c.n_taps)
    y = convolve_plane_each(plane.reshape(grid.rows, grid.columns, c.d_model), kernel, 1)
    y = y.reshape(R, m, C, m, c.d_model).transpose(0, 2, 1, 3, 4).reshape(grid.rows * grid.columns, c.d_model)
    return linear(out * y, w, "out_proj", c.d_model)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: Lfm3Vision, angles: RopeTable) -> Array:
    """Let each patch gather information from all patches: [P D] -> [P D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q = rms_norm(heads(linear(x, w, "q_proj", N * H), N, H), w, "q_norm", c.norm_eps)
    k = rms_norm(heads(linear(x, w, "k_proj", K * H), K, H), w, "k_norm", c.norm_eps)
    v = heads(linear(x, w, "v_proj", K * H), K, H)
    mixed = attend(apply_rope(q, angles), apply_rope(k, angles), v, None, H**-0.5)
    return linear(mixed, w, "out_proj", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Lfm3Vision) -> Array:
    """Process each vector separately, in a wider space, gated: [P D] -> [P F] -> [P D]."""
    return linear(silu(linear(x, w, "w1", c.d_ff)) * linear(x, w, "w3", c.d_ff), w, "w2", c.d_model)


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, c: Lfm3Vision) -> Array:
    """One vector for the text model per block of patches: [P D] -> [P/m² m²·D] -> [P/m² O]."""
    x, block = layer_norm(x, w, "layer_norm", c.projector_eps), c.merge * c.merge
    x = x.reshape(x.shape[0] // block, block * c.d_model)
    act = activation(c.projector_activation)
    return two_maps(x, w, ("linear_1", "linear_2"), c.d_projector, c.d_text, act, bias=c.bias)
