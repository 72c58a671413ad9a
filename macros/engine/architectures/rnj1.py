"""Rnj-1: Gemma 3's block, with layers that attend to the token's own block of the text, causally, and to the block
before.

Source: EssentialAI/rnj-1-instruct by vLLM, model_executor/models/rnj1.py; tensor names as the published files.
"""

from __future__ import annotations

from typing import Literal

from ..interface import Mask
from ..ops import Blocks, Full, Rope
from . import architecture
from .config import Raw, check_layer_types, config, key
from .gemma2 import Gemma2
from .gemma3 import Gemma3, forward
from .rope_config import fold_rope, read_rope

BLOCK, ALL = "chunked_attention", "full_attention"


@config
class Rnj1(Gemma3):
    """Hyperparameters of Rnj-1, in forward order."""

    layer_types: list[str] = key("layer_types", lambda c: [ALL] * int(c.n_layers))
    activation: Literal["gelu_pytorch_tanh"] = key("hidden_activation", "gelu_pytorch_tanh")

    rewritten = Gemma2.rewritten
    ignored = Gemma3.ignored | {"rope_local_base_freq"}
    otherwise = ()

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """Rotary embeddings may have a table for each type of layer, or one for all."""
        return fold_rope(raw)

    @property
    def masks(self) -> list[Mask]:
        check_layer_types(self.layer_types, self.n_layers, (ALL, BLOCK))
        seen = Blocks(self.size("sliding_window")) if BLOCK in self.layer_types else Full()
        return [seen if name == BLOCK else Full() for name in self.layer_types]

    def rope_of(self, mask: Mask) -> Rope:
        return read_rope(self.rope_parameters, layer_type=BLOCK if isinstance(mask, Blocks) else ALL)


architecture("rnj1", config=Rnj1)(forward)
