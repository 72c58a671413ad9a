"""The vision tower of Cosmos 3 Edge: SigLIP 2, for images of any size, whose vectors are merged four to one.

Source: transformers 5.24, modeling_cosmos3_edge.py.
"""

from __future__ import annotations

from ..architectures.config import Positive, Size, config, derived, fixed, key
from ..interface import Array, KVCache, Weights
from ..ops import gelu, layer_norm
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .patches import at_least_a_block, two_maps
from .siglip2 import Siglip2, encode


@config
class Cosmos3EdgeVision(Siglip2):
    """SigLIP 2 and Cosmos 3 Edge's merger."""

    d_model: Size = key("hidden_size", 1152)
    n_layers: Size = key("num_hidden_layers", 27)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 4304)
    # merger
    merge: Size = key("spatial_merge_size", 2)
    merger_eps: Positive = fixed(1e-6)
    d_projector: Size = key("projector_hidden_size")
    d_text: Size = key(TEXT_WIDTH)

    def grid(self, height: int, width: int) -> Grid:
        return super().grid(*at_least_a_block(height, width, int(self.patch) * int(self.merge)))


@tower("cosmos3_edge.vision_config", config=Cosmos3EdgeVision)
def forward(w: Weights, x: Array, grid: Grid, c: Cosmos3EdgeVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P/m² D]."""
    x = encode(w.at("model.visual"), x, grid, c, cache, c.merge)
    return [merger(x, w.at("model.projector"), c)]


@step(Role.FEED_FORWARD)
def merger(x: Array, w: Weights, c: Cosmos3EdgeVision) -> Array:
    """One vector for the text model per block of patches: [P D] -> [P/m² m²·D] -> [P/m² O]."""
    block = c.merge * c.merge
    x = layer_norm(x, w, "norm", c.merger_eps).reshape(x.shape[0] // block, block * c.d_model)
    return two_maps(x, w, ("linear_fc1", "linear_fc2"), c.d_projector, c.d_text, gelu)
