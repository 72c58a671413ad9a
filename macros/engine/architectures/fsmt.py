"""FSMT: FairSeq's translators, BART's block with computed positions, and a vocabulary for each language.

Source: arXiv 1907.06616; tensor names as transformers.
"""

from __future__ import annotations

from ..errors import Problem
from ..interface import Array, KVCache, Weights
from . import architecture
from .bart import M2M100
from .bart import forward as bart_forward
from .config import Size, config, fixed, key
from .tasks import OWN


@config
class Fsmt(M2M100):
    """Hyperparameters of FairSeq's translators, in forward order: each stack has a vocabulary."""

    n_read: Size = key("src_vocab_size")
    vocab_size: Size = key("tgt_vocab_size", also=("vocab_size",))
    tied: bool = key("tie_word_embeddings", False)
    norm_first: bool = fixed(False)

    ignored = M2M100.ignored | {"decoder", "early_stopping", "langs", "length_penalty", "max_length", "num_beams"}

    def check(self) -> None:
        super().check()
        if self.tied and self.n_read != self.vocab_size:
            raise Problem(
                f"src_vocab_size = {int(self.n_read)} and tgt_vocab_size = {int(self.vocab_size)} share a table",
                "make them equal",
            )

    def rows(self, stack: str) -> int:
        return self.vocab_size if stack == "decoder" else self.n_read

    def table(self, stack: str) -> str:
        return f"model.{'decoder' if self.tied else stack}.embed_tokens.weight"

    def spare(self, w: Weights) -> None:
        """Nothing: each stack has the only table that it may read."""

    @property
    def head(self) -> str:
        return self.table("decoder") if self.tied else "model.decoder.output_projection.weight"


HEADS = {"ForConditionalGeneration": OWN}


@architecture("fsmt", config=Fsmt, heads=HEADS)
def forward(w: Weights, ids: Array, c: Fsmt, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    return bart_forward(w, ids, c, cache, last)
