"""The vision tower of VideoLLaMA 3: SigLIP for images of any size, with a vector for each patch, projected.

Positions come from 2D rotary embeddings alone. For video, every four vectors are averaged. Source: transformers 5.24,
modeling_video_llama_3.py (arXiv 2501.13106).
"""

from __future__ import annotations

from ..architectures.config import Positive, Raw, Size, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import gelu, layer_norm
from . import TEXT_WIDTH, Grid, theta_of, tower
from .patches import AnySize, axial_rope, embed_patches, places, two_maps, vit_layer


@config
class VideoLlama3Vision(AnySize):
    """Hyperparameters of VideoLLaMA 3's vision tower, in forward order."""

    # patches
    n_channels: Size = key("num_channels", 3)
    patch: Size = key("patch_size", 16)
    d_model: Size = key("hidden_size", 768)
    # layers
    n_layers: Size = key("num_hidden_layers", 12)
    norm_eps: Positive = key("layer_norm_eps", 1e-6)
    n_heads: Size = key("num_attention_heads", 12)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    d_ff: Size = key("intermediate_size", 3072)
    activation: str = key("hidden_act", "gelu_pytorch_tanh")
    # projector
    merge: int = fixed(1)
    d_text: Size = key(TEXT_WIDTH)

    checked = ("theta",)

    def check(self) -> None:
        super().check()
        if int(self.d_head) % 4:
            raise Problem(
                f"heads of {int(self.d_head)} numbers", "give a multiple of 4: rows and columns each rotate pairs"
            )

    @property
    def theta(self) -> float:
        """The base of the rotary embedding."""
        return theta_of(self.rope_parameters, 10000.0)


@tower("video_llama_3.vision_config", config=VideoLlama3Vision)
def forward(w: Weights, x: Array, grid: Grid, c: VideoLlama3Vision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P D]."""
    tower = w.at("model.vision_model")
    row, column = places(x, grid.rows, grid.columns)
    kernel = c.n_channels, c.patch, c.patch
    x = embed_patches(x, tower, "embeddings.patch_embedding", c.d_model, kernel, bias=True)
    angles = axial_rope(row, column, c.d_head, c.theta)
    for _, w_layer, _ in tower.layers("encoder.layers", ["layer"] * c.n_layers, cache):
        x = vit_layer(x, w_layer, c, angles)
    x = layer_norm(x, tower, "post_layernorm", c.norm_eps)
    return [two_maps(x, w.at("model.projector"), ("readout.0", "readout.2"), c.d_text, c.d_text, gelu)]
