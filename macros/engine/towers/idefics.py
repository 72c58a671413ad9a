"""The vision tower of IDEFICS: CLIP's ViT, at whose vectors a few trained ones may look.

The text looks at all vectors of the last layer, the class token's among them, or at the trained ones, which gather
information from these and from each other in a few layers. Source: transformers 5.24, models/idefics/vision.py and
perceiver.py (arXiv 2306.16527).
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Positive, Size, config, derived, key
from ..interface import Array, KVCache, Weights
from ..ops import attend, heads, layer_norm, linear, relu
from ..steps import Role, step
from . import Grid, tower
from .clip import embed
from .patches import OneSize, two_maps, vit_layer

PERCEIVER = "perceiver_config."
EPS = 1e-5  # of the perceiver's norms, which no key sets


@config
class IdeficsVision(OneSize):
    """Hyperparameters of IDEFICS' vision tower and perceiver, in forward order."""

    beside = ("perceiver_config",)
    among_text = frozenset({"use_resampler"})

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 224)
    patch: Size = key("patch_size", 14)
    d_model: Size = key("embed_dim", 768, also=("hidden_size",))
    # layers
    n_layers: Size = key("num_hidden_layers", 32)
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 5120)
    activation: str = key("hidden_act", "gelu")
    # perceiver
    resampled: bool = key("use_resampler", False)
    n_latents: Size = key(PERCEIVER + "resampler_n_latents", 64)
    n_perceiver_layers: Size = key(PERCEIVER + "resampler_depth", 6)
    n_perceiver_heads: Size = key(PERCEIVER + "resampler_n_heads", 16)
    d_perceiver_head: Size = key(PERCEIVER + "resampler_head_dim", 96)
    qk_norm: bool = key(PERCEIVER + "qk_layer_norms_perceiver", False)
    d_perceiver_ff: Size = derived(lambda c: 4 * c.d_model)

    ignored = frozenset({"vision_model_name", PERCEIVER + "use_resampler"})


@tower("idefics.vision_config", config=IdeficsVision)
def forward(w: Weights, x: Array, grid: Grid, c: IdeficsVision, cache: KVCache) -> list[Array]:
    """The vectors of an image that a text looks at: [P I] -> [P + 1 D], or [M D]."""
    tower = w.at("model.vision_model")
    x = embed(x, tower, c)
    for _, w_layer, _ in tower.layers("encoder.layers", ["layer"] * c.n_layers, cache):
        x = vit_layer(x, w_layer, c)
    layer_norm(x[:1], tower, "post_layernorm", c.norm_eps)  # a vector of the whole image, which nothing reads
    if not c.resampled:
        return [x]
    perceiver = w.at("model.perceiver_resampler")
    y = perceiver("latents", c.n_latents, c.d_model)
    kinds = ["perceiver"] * c.n_perceiver_layers
    for _, w_layer, _ in perceiver.layers("blocks", kinds, cache, "perceiver", c.n_layers):
        y = perceiver_layer(y, x, w_layer, c)
    return [layer_norm(y, perceiver, "layer_norm", EPS)]


@step(Role.LAYER)
def perceiver_layer(y: Array, x: Array, w: Weights, c: IdeficsVision) -> Array:
    """Let the trained vectors gather information from the patches and from each other: [M D], [P D] -> [M D]."""
    y = y + look(y, x, w.at("0"), c)
    z = layer_norm(y, w, "1.ln", EPS)
    return y + two_maps(z, w.at("1"), ("fc", "c_proj"), c.d_perceiver_ff, c.d_model, relu, bias=False)


@step(Role.ATTENTION)
def look(y: Array, x: Array, w: Weights, c: IdeficsVision) -> Array:
    """Let each trained vector gather information from all: [M D], [P D] -> [M D]."""
    N, H = c.n_perceiver_heads, c.d_perceiver_head
    latents = layer_norm(y, w, "latents_layer_norm", EPS)
    both = np.concatenate([layer_norm(x, w, "context_layer_norm", EPS), latents], axis=0)
    q = heads(linear(latents, w, "q_proj", N * H), N, H)
    k, v = (heads(linear(both, w, name, N * H), N, H) for name in ("k_proj", "v_proj"))
    if c.qk_norm:
        q, k = layer_norm(q, w, "q_layer_norm", EPS), layer_norm(k, w, "k_layer_norm", EPS)
    return linear(attend(q, k, v, None, H**-0.5), w, "output_proj", c.d_model)
