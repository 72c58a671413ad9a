"""The vision tower of ViP-LLaVA: CLIP's ViT; vectors of several layers are put side by side, normed and projected.

A class token comes before the patches, and is dropped. Source: transformers 5.24, modeling_vipllava.py (arXiv
2312.00784).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Positive, Raw, activation, config, fixed, key
from ..errors import Problem
from ..interface import Array, KVCache, Weights
from ..ops import layer_norm
from ..steps import Role, step
from . import Grid, tower
from .clip import Clip, embed
from .patches import two_maps, vit_layer


@config
class VipLlavaVision(Clip):
    """CLIP's vision model and ViP-LLaVA's projector."""

    feature_layer: int = fixed(-1)
    strategy: Literal["default"] = fixed("default")
    bias: Literal[True] = fixed(True)
    features: list[int] = key("vision_feature_layer", lambda c: [-2, -5, -8, -11, 6])
    projector_eps: Positive = key("projector_layernorm_eps", 1e-5)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """A list, where one layer is given as a number."""
        if isinstance(raw.get("vision_feature_layer"), int):
            raw["vision_feature_layer"] = [raw["vision_feature_layer"]]
        return raw

    def check(self) -> None:
        super().check()
        layers = self.layers
        if not layers or len(set(layers)) < len(layers) or not all(0 <= i <= self.n_layers for i in layers):
            raise Problem(f"vision_feature_layer = {self.features}", "give layers of this tower, each once")

    @property
    def layers(self) -> list[int]:
        """The layers after which the vectors are taken."""
        return [i if i >= 0 else int(self.n_layers) + 1 + i for i in self.features]

    @property
    def kinds(self) -> list[str]:
        """Which of the vectors for the text model each layer produces, if any."""
        taken = self.layers
        return [f"feature {taken.index(i + 1)}" if i + 1 in taken else "layer" for i in range(self.n_layers)]


@tower("vipllava.vision_config", config=VipLlavaVision, of_type="clip_vision_model")
def forward(w: Weights, x: Array, grid: Grid, c: VipLlavaVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [P D]."""
    tower = w.at("model.vision_tower")
    x = embed(x, tower, c)
    found = {f"feature {c.layers.index(0)}": x} if 0 in c.layers else {}
    for kind, w_layer, _ in tower.layers("encoder.layers", c.kinds, cache):
        x = vit_layer(x, w_layer, c)
        found[kind] = x
    layer_norm(x[:1], tower, "post_layernorm", c.norm_eps)  # a vector of the whole image, which nothing reads
    x = np.concatenate([found[f"feature {i}"][1:] for i in range(len(c.features))], axis=-1)
    return [project(x, w.at("model.multi_modal_projector"), c)]


@step(Role.FEED_FORWARD)
def project(x: Array, w: Weights, c: VipLlavaVision) -> Array:
    """One vector for the text from those of several layers: [P L·D] -> [P O]."""
    x = layer_norm(x, w, "projector_layernorm", c.projector_eps)
    return two_maps(x, w, ("linear_1", "linear_2"), c.d_text, c.d_text, activation(c.projector_activation))
