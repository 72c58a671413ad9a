"""RoBERTa and its like: BERT's encoder, whose positions are counted from the number after the padding token's.

The text is read at once: nothing is kept for a next step. Sources: arXiv 1907.11692 (RoBERTa), 1911.02116 and
2105.00572 (XLM-RoBERTa, and XL), 1911.03894 (CamemBERT), 2202.03555 (data2vec), 2202.08005 (with norms first),
2101.01321 (I-BERT); tensor names as transformers' models for masked words (RobertaForMaskedLM).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..facts import Gguf, Peft
from ..interface import Array, KVCache, Weights
from ..ops import gelu, last_row, layer_norm, linear
from ..steps import Role, step
from . import architecture
from .bert import OLDER_NORMS, Bert, layer, scored, shared_table
from .config import Count, Positive, config, fixed, key
from .gguf_tables import ENCODER, ENCODER_TABLES
from .tasks import OF_ROBERTA


@config
class Roberta(Bert):
    """Hyperparameters of RoBERTa, in forward order."""

    padding: Count = key("pad_token_id", 1)
    trunk: str = fixed("roberta")

    def check(self) -> None:
        super().check()
        self.must_not_exceed("padding", "n_positions")

    @property
    def first_row(self) -> int:
        return int(self.padding) + 1


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


GGUF = Gguf("bert", ENCODER, ENCODER_TABLES | {"position_embeddings": "positions:position_embd"})


@architecture("data2vec-text", config=Data2Vec, heads=OF_ROBERTA, peft=Peft(tied_head="lm_head.decoder"))
@architecture("ibert", config=IBert, heads=OF_ROBERTA, peft=Peft(tied_head="lm_head.decoder", foreign="ibert."))
@architecture("roberta-prelayernorm", config=NormsFirst, heads=OF_ROBERTA, peft=Peft(tied_head="lm_head.decoder"))
@architecture("xlm-roberta-xl", config=RobertaXL, heads=OF_ROBERTA, peft=Peft(tied_head="lm_head.decoder"))
@architecture(
    "roberta",
    config=Roberta,
    spellings=OLDER_NORMS,
    gguf=GGUF,
    heads=OF_ROBERTA,
    peft=Peft(("query", "value"), tied_head="lm_head.decoder"),
)
@architecture(
    "xlm-roberta",
    config=Roberta,
    spellings=OLDER_NORMS,
    gguf=GGUF,
    heads=OF_ROBERTA,
    peft=Peft(("query", "value"), tied_head="lm_head.decoder"),
)
@architecture(
    "camembert",
    config=Roberta,
    spellings=OLDER_NORMS,
    gguf=Gguf("bert", ENCODER, ENCODER_TABLES),
    heads=OF_ROBERTA,
    peft=Peft(tied_head="lm_head.decoder"),
)
def forward(w: Weights, ids: Array, c: Roberta, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    x = c.embedded(ids, cache, w, c.first_row)
    for _, w_layer, _ in w.layers(f"{c.trunk}.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    return masked_head(c.norm(x, w.at(c.trunk), 3), w, c.vocab_size, c.norm_eps, shared_table(c), last=last)


@step(Role.UNEMBED)
def masked_head(x: Array, w: Weights, rows: int, eps: float, table: str | None, bias: str = "", *, last: bool) -> Array:
    """Transform the vector once more, and score every token of the vocabulary: [T D], [V D] -> [T V], or [1 V].

    `table` is the embedding's, where the head has none of its own; `bias`: its name, if not the usual one.
    """
    width = x.shape[-1]
    x = gelu(linear(last_row(x) if last else x, w, "lm_head.dense", width, bias=True))
    x = layer_norm(x, w, "lm_head.layer_norm", eps)
    if not bias:
        return scored(x, w, "lm_head", table, rows)
    return np.einsum("td,vd->tv", x, w(f"{table}.weight", rows, width), optimize=True) + w(bias, rows)
