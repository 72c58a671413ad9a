"""LayoutLM: BERT that also reads the box of each word on a page.

No text here has boxes, and row 0 of their tables stands for all. Source: arXiv 1912.13318; tensor names as
transformers' model for masked words (LayoutLMForMaskedLM).
"""

from __future__ import annotations

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import embed, embed_positions, embed_segments, positions
from . import architecture
from .bert import Bert, layer, prediction_head
from .config import Size, config, fixed, key
from .tasks import OF_REMBERT


@config
class LayoutLM(Bert):
    """Hyperparameters of LayoutLM, in forward order."""

    n_places: Size = key("max_2d_position_embeddings", 1024)
    trunk: str = fixed("layoutlm")

    caveat = Bert.caveat + " No text here says where its words stand on a page."

    def embedded(self, ids: Array, cache: KVCache, w: Weights, before: int = 0) -> Array:
        """The vectors of each token, its place, its box and the first segment: [T] -> [T D]."""
        tables, nowhere, D = w.at(f"{self.trunk}.embeddings"), ids * 0, self.d_model
        x = embed(ids, tables, "word_embeddings.weight", self.vocab_size, D)
        x = x + embed_positions(positions(ids, cache), tables, "position_embeddings.weight", self.n_positions, D)
        for side, times in (("x", 2), ("y", 2), ("h", 1), ("w", 1)):  # left and right, top and bottom, the size
            x = x + times * embed_positions(nowhere, tables, f"{side}_position_embeddings.weight", self.n_places, D)
        x = x + embed_segments(ids, tables, "token_type_embeddings.weight", self.n_segments, D)
        return self.norm(x, w.at(self.trunk), 0)


HEADS = {name: task for name, task in OF_REMBERT.items() if name != "ForMultipleChoice"}


@architecture(
    "layoutlm", config=LayoutLM, heads=HEADS, peft=Peft(("query", "value"), tied_head="cls.predictions.decoder")
)
def forward(w: Weights, ids: Array, c: LayoutLM, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    x = c.embedded(ids, cache, w)
    for _, w_layer, _ in w.layers("layoutlm.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    w("layoutlm.pooler.dense.weight", c.d_model, c.d_model)
    w("layoutlm.pooler.dense.bias", c.d_model)
    return prediction_head(x, w, c, last=last)
