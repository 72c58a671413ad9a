"""RoBERTa and its like: BERT's encoder, whose places are counted from behind the padding token's number.

The text is read at once: nothing is kept for a next step. Sources: arXiv 1907.11692 (RoBERTa), 1911.02116 and
2105.00572 (XLM-RoBERTa, and XL), 1911.03894 (CamemBERT), 2202.03555 (data2vec), 2202.08005 (with norms first),
2101.01321 (I-BERT); tensor names as transformers' models for masked words (RobertaForMaskedLM).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..interface import Array, KVCache, Weights
from ..ops import gelu, last_row, layer_norm, linear
from ..steps import Role, step
from . import architecture
from .bert import OLDER_NORMS, Bert, layer, scored, shared_table
from .config import Count, Positive, config, fixed, key


@config
class Roberta(Bert):
    """Hyperparameters of RoBERTa, in forward order."""

    padding: Count = key("pad_token_id", 1)
    trunk: str = fixed("roberta")

    def check(self) -> None:
        super().check()
        self.must_not_exceed("padding", "n_positions")


@config
class Data2Vec(Roberta):
    """Hyperparameters of data2vec's model of text, in forward order."""

    trunk: str = fixed("data2vec_text")


@config
class NormsFirst(Roberta):
    """Hyperparameters of RoBERTa with norms first, in forward order."""

    trunk: str = fixed("roberta_prelayernorm")
    norm_first: bool = fixed(True)
    norms: tuple[str, ...] = fixed(
        ("embeddings.LayerNorm", "attention.LayerNorm", "intermediate.LayerNorm", "LayerNorm")
    )


@config
class RobertaXL(Roberta):
    """Hyperparameters of XLM-RoBERTa XL and XXL, in forward order."""

    n_segments: Count = key("type_vocab_size", 1)
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    norm_first: bool = fixed(True)
    norms: tuple[str, ...] = fixed(("", "attention.self_attn_layer_norm", "LayerNorm", "encoder.LayerNorm"))


@config
class IBert(Roberta):
    """Hyperparameters of I-BERT, in forward order: with fractions, as it is trained first."""

    activation: Literal["gelu"] = key("hidden_act", "gelu")
    integers: Literal[False] = key("quant_mode", False)
    trunk: str = fixed("ibert")

    caveat = Roberta.caveat + " Its files also hold the weights as whole numbers, which are not counted."
    ignored = Roberta.ignored | {"force_dequant"}


@architecture("data2vec-text", config=Data2Vec)
@architecture("ibert", config=IBert)
@architecture("roberta-prelayernorm", config=NormsFirst)
@architecture("xlm-roberta-xl", config=RobertaXL)
@architecture("roberta", "xlm-roberta", "camembert", config=Roberta, spellings=OLDER_NORMS)
def forward(w: Weights, ids: Array, c: Roberta, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, read in the light of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    x = c.embedded(ids, cache, w, int(c.padding) + 1)
    for _, w_layer, _ in w.layers(f"{c.trunk}.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return masked_head(c.norm(x, w.at(c.trunk), 3), w, c.vocab_size, c.norm_eps, shared_table(c), last=last)


@step(Role.UNEMBED)
def masked_head(x: Array, w: Weights, rows: int, eps: float, table: str | None, bias: str = "", *, last: bool) -> Array:
    """Change the vector once more, and score every token of the vocabulary: [T D], [V D] -> [T V], or [1 V].

    `table` is the embedding's, where the head has none of its own; `bias` where it does not stand in the usual place.
    """
    width = x.shape[-1]
    x = gelu(linear(last_row(x) if last else x, w, "lm_head.dense", width, bias=True))
    x = layer_norm(x, w, "lm_head.layer_norm", eps)
    if not bias:
        return scored(x, w, "lm_head", table, rows)
    return np.einsum("td,vd->tv", x, w(f"{table}.weight", rows, width), optimize=True) + w(bias, rows)
