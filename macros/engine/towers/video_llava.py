"""The vision towers of Video-LLaVA: two of CLIP, one for images and one for films, with one projector.

An image goes through the first; the second is stored and not counted among the FLOPs of an image. Source: transformers
5.23, modeling_video_llava.py (arXiv 2311.10122).
"""

from __future__ import annotations

from ..architectures.config import Size, config, key
from ..interface import Array, KVCache, Weights
from . import Grid, tower
from .clip import Clip, encode
from .patches import stored


@config
class VideoLlavaVision(Clip):
    """CLIP's vision model and Video-LLaVA's projector."""

    image_size: Size = key("image_size", 224)

    ignored = Clip.ignored | {"video_seq_length"}


@tower("video_llava.vision_config", config=VideoLlavaVision, of_type="clip_vision_model")
def forward(w: Weights, x: Array, grid: Grid, c: VideoLlavaVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P D]."""
    unused(w.at("model.video_tower"), c, cache)
    return [encode(w, x, c, cache, "model.image_tower")]


def unused(w: Weights, c: VideoLlavaVision, cache: KVCache) -> None:
    """The tensors of the tower for films."""
    D, F = c.d_model, c.d_ff
    w("embeddings.class_embedding", D)
    w("embeddings.patch_embedding.weight", D, c.n_channels, c.patch, c.patch)
    w("embeddings.position_embedding.weight", c.patch_rows * c.patch_rows + 1, D)
    stored(w, "pre_layrnorm", D)
    for _, w_layer, _ in w.layers("encoder.layers", ["film"] * c.n_layers, cache, "film", c.n_layers):
        for name in ("self_attn.k_proj", "self_attn.v_proj", "self_attn.q_proj", "self_attn.out_proj"):
            stored(w_layer, name, D, D)
        stored(w_layer, "layer_norm1", D)
        stored(w_layer, "mlp.fc1", F, D)
        stored(w_layer, "mlp.fc2", D, F)
        stored(w_layer, "layer_norm2", D)
    stored(w, "post_layernorm", D)
