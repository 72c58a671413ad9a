"""The vision tower of GIT: CLIP's ViT, whose vectors, with the class token's, are projected and normalized.

Source: transformers 5.24, modeling_git.py (arXiv 2205.14100).
"""

from __future__ import annotations

from ..architectures.config import Count, Positive, Size, config, derived, key
from ..interface import Array, KVCache, Weights
from ..ops import layer_norm, linear
from . import TEXT_WIDTH, Grid, tower
from .clip import embed
from .patches import OneSize, vit_layer


@config
class GitVision(OneSize):
    """Hyperparameters of GIT's vision tower, in forward order."""

    among_text = frozenset({"num_image_with_embedding"})

    # patches
    n_channels: Size = key("num_channels", 3)
    image_size: Size = key("image_size", 224)
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 768)
    # layers
    n_layers: Size = key("num_hidden_layers", 12)
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    n_heads: Size = key("num_attention_heads", 12)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 3072)
    activation: str = key("hidden_act", "quick_gelu")
    # projector
    d_text: Size = key(TEXT_WIDTH)
    n_images: Count = key("num_image_with_embedding", 0)  # of a film, each with a vector of its own

    ignored = frozenset({"projection_dim"})


@tower("git.vision_config", config=GitVision)
def forward(w: Weights, x: Array, grid: Grid, c: GitVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P + 1 D]."""
    tower = w.at("git.image_encoder.vision_model")
    x = embed(x, tower, c)
    for _, w_layer, _ in tower.layers("encoder.layers", ["layer"] * c.n_layers, cache):
        x = vit_layer(x, w_layer, c)
    x = layer_norm(x, tower, "post_layernorm", c.norm_eps)
    for i in range(c.n_images):
        w(f"git.img_temporal_embedding.{i}", 1, 1, c.d_model)
    projector = w.at("git.visual_projection.visual_projection")
    return [layer_norm(linear(x, projector, "0", c.d_text, bias=True), projector, "1", c.norm_eps)]
