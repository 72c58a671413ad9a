"""RoCBert: BERT that also reads the pronunciation and the shape of each character.

Each text comes with both; here none does, and row 0 of their tables stands for all. Source: ACL 2022.acl-long.65;
tensor names as transformers' model for masked words (RoCBertForMaskedLM).
"""

from __future__ import annotations

import numpy as np

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import embed, embed_positions, embed_segments, linear, positions
from . import architecture
from .bert import Bert
from .bert import forward as bert_forward
from .config import Size, config, fixed, key
from .tasks import OF_REMBERT


@config
class RoCBert(Bert):
    """Hyperparameters of RoCBert, in forward order."""

    has_sounds: bool = key("enable_pronunciation", True)
    n_sounds: Size = key("pronunciation_vocab_size", 910)
    d_sound: Size = key("pronunciation_embed_dim", 768)
    has_forms: bool = key("enable_shape", True)
    n_forms: Size = key("shape_vocab_size", 24858)
    d_form: Size = key("shape_embed_dim", 512)
    concatenates: bool = key("concat_input", True)
    trunk: str = fixed("roc_bert")

    caveat = Bert.caveat + " No text here says how its characters sound and look."

    def embedded(self, ids: Array, cache: KVCache, w: Weights, before: int = 0) -> Array:
        """The vectors of each token, its sound, form, place and the first segment: [T] -> [T D]."""
        tables, nothing, D = w.at(f"{self.trunk}.embeddings"), ids * 0, self.d_model
        x = embed(ids, tables, "word_embeddings.weight", self.vocab_size, D)
        if self.concatenates:
            parts = [x]
            if self.has_forms:
                parts.append(embed(nothing, tables, "shape_embed.weight", self.n_forms, self.d_form))
            if self.has_sounds:
                parts.append(embed(nothing, tables, "pronunciation_embed.weight", self.n_sounds, self.d_sound))
            x = linear(np.concatenate(parts, axis=-1), tables, "map_inputs_layer", D, bias=True)
        if not (self.concatenates and self.has_forms):
            tables("shape_embed.weight", self.n_forms, self.d_form)
        if not (self.concatenates and self.has_sounds):
            tables("pronunciation_embed.weight", self.n_sounds, self.d_sound)
        x = x + embed_segments(nothing, tables, "token_type_embeddings.weight", self.n_segments, D)
        x = x + embed_positions(positions(ids, cache), tables, "position_embeddings.weight", self.n_positions, D)
        return self.norm(x, w.at(self.trunk), 0)


@architecture("roc_bert", config=RoCBert, heads=OF_REMBERT, peft=Peft(tied_head="cls.predictions.decoder"))
def forward(w: Weights, ids: Array, c: RoCBert, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    return bert_forward(w, ids, c, cache, last)
