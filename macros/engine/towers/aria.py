"""The vision tower of Aria: SigLIP, for images of one size, whose patches trained queries look at.

There are as many queries as the config says for so many patches. Source: transformers 5.24, modeling_aria.py and
image_processing_aria.py (arXiv 2410.05993).
"""

from __future__ import annotations

from typing import Literal

from ..architectures.config import Positive, Raw, Size, config, derived, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import attend, gelu_tanh, heads, layer_norm, linear
from ..steps import Role, step
from . import TEXT_WIDTH, Grid, tower
from .patches import multihead_inputs, two_maps
from .siglip import Siglip, encode


@config
class AriaVision(Siglip):
    """SigLIP and Aria's projector."""

    image_size: Size = key("image_size", 224)
    patch: Size = key("patch_size", 32)
    d_model: Size = key("hidden_size", 1152)
    n_layers: Size = key("num_hidden_layers", 12)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("intermediate_size", 3072)
    feature_layer: Literal[-1] = key("vision_feature_layer", -1)
    # projector
    queries: Raw = key("projector_patch_to_query_dict", lambda c: {"1225": 128, "4900": 256})
    n_queries: Size = derived(lambda c: max((n for n in c.queries.values() if type(n) is int), default=0))
    projector_eps: Positive = fixed(1e-5)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"max_value_projector_patch_to_query_dict"})

    def check(self) -> None:
        super().check()
        side = int(self.patch_rows)
        number = self.queries.get(str(side * side))
        if type(number) is not int or number < 1:
            raise Problem(
                f"projector_patch_to_query_dict has no number for the {side * side} patches of an image", "add it"
            )


@tower("aria.vision_config", config=AriaVision, of_type="idefics3_vision")
def forward(w: Weights, x: Array, grid: Grid, c: AriaVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [M D]."""
    x = encode(w.at("model.vision_tower"), x, grid, c, cache, normed=False)
    projector = w.at("model.multi_modal_projector")
    queries = projector("query", c.n_queries, c.d_model)[: c.queries[str(int(grid.rows) * int(grid.columns))]]
    x = layer_norm(look(queries, x, projector.at("cross_attn"), c), projector, "layer_norm", c.projector_eps)
    names = "linear_in", "linear_out"
    return [two_maps(x, projector.at("feed_forward"), names, c.d_text, c.d_text, gelu_tanh, bias=False)]


@step(Role.ATTENTION)
def look(queries: Array, x: Array, w: Weights, c: AriaVision) -> Array:
    """Let each query gather information from all patches; all three are mapped twice: [M D], [P D] -> [M D]."""
    D = c.d_model
    queries = linear(layer_norm(queries, w, "layer_norm", c.projector_eps), w, "q_proj", D)
    x = layer_norm(x, w, "layer_norm_kv", c.projector_eps)
    q, k, v = multihead_inputs(queries, linear(x, w, "k_proj", D), linear(x, w, "v_proj", D), w.at("multihead_attn"))
    q, k, v = (heads(part, c.n_heads, c.d_head) for part in (q, k, v))
    x = linear(attend(q, k, v, None, c.d_head**-0.5), w, "multihead_attn.out_proj", D, bias=True)
    return linear(x, w, "linear", D, bias=True)
