"""TAPAS: BERT that also reads the cell of a table in which each word stands.

No text here is a table, and row 0 of these embeddings stands for all. Source: arXiv 2004.02349; tensor names as
transformers' model for masked words (TapasForMaskedLM).
"""

from __future__ import annotations

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import embed, embed_positions, embed_segments, positions
from . import architecture
from .bert import Bert
from .bert import forward as bert_forward
from .config import Count, Interval, config, fixed, key
from .tasks import OF_REMBERT, OWN


@config
class Tapas(Bert):
    """Hyperparameters of TAPAS, in forward order."""

    n_segments: Count = fixed(0)
    cells: list[Interval] = key("type_vocab_sizes", lambda c: [3, 256, 256, 2, 256, 256, 10])
    trunk: str = fixed("tapas")

    caveat = Bert.caveat + " No text here is a table."
    ignored = Bert.ignored | frozenset(
        """
        positive_label_weight num_aggregation_labels aggregation_loss_weight use_answer_as_supervision
        answer_loss_importance use_normalized_answer_loss huber_loss_delta aggregation_temperature
        use_gumbel_for_cells use_gumbel_for_aggregation average_approximation_function cell_selection_preference
        answer_loss_cutoff max_num_rows max_num_columns average_logits_per_cell select_one_column
        allow_empty_column_selection init_cell_selection_weights_to_zero disable_per_token_loss aggregation_labels
        no_aggregation_label_index reset_position_index_per_cell
        """.split()
    )

    def embedded(self, ids: Array, cache: KVCache, w: Weights, before: int = 0) -> Array:
        """The vectors of each token, its place, and no cell of a table: [T] -> [T D]."""
        tables, D = w.at(f"{self.trunk}.embeddings"), self.d_model
        x = embed(ids, tables, "word_embeddings.weight", self.vocab_size, D)
        x = x + embed_positions(positions(ids, cache), tables, "position_embeddings.weight", self.n_positions, D)
        for i, rows in enumerate(self.cells):
            x = x + embed_segments(ids, tables, f"token_type_embeddings_{i}.weight", rows, D)
        return self.norm(x, w.at(self.trunk), 0)


HEADS = {"ForMaskedLM": OWN, **{name: OF_REMBERT[name] for name in ("Model", "ForSequenceClassification")}}


@architecture("tapas", config=Tapas, heads=HEADS, peft=Peft(tied_head="cls.predictions.decoder"))
def forward(w: Weights, ids: Array, c: Tapas, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    return bert_forward(w, ids, c, cache, last)
