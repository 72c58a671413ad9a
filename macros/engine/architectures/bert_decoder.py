"""BERT and RoBERTa as decoders that attend to the vectors of an image, in a model with an image encoder.

The image's vectors are this model's input beside the text, as what an encoder read would be: `t5` explains the two
lengths. Sources: transformers 5.24, models/vision_encoder_decoder, bert, roberta and bert_generation; tensor names as
transformers' decoder with its head (BertLMHeadModel, RobertaForCausalLM, BertGenerationDecoder).
"""

from __future__ import annotations

import numpy as np

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import last_row
from ..steps import Role, step
from . import architecture
from .bert import prediction_head, scored, shared_table
from .blip import BlipText, layer
from .config import Count, Size, config, derived, fixed, key
from .roberta import masked_head
from .tasks import NONE
from .tensor_layouts import BESIDE_ENCODER


@config
class BertDecoder(BlipText):
    """Hyperparameters of BERT as a decoder, in forward order.

    `n_source`: the vectors of an image, which the encoder's sizes say (`keys.image_vectors`); without them those of one
    of 224 pixels in patches of 16.
    """

    n_source: Size = key("num_image_tokens", 197)
    d_image: Size = derived(lambda c: c.d_model)
    n_segments: Count = key("type_vocab_size", 2)

    def head(self, x: Array, w: Weights, last: bool) -> Array:
        """Scores for the next token: [T D] -> [T V], or [1 V] with `last`."""
        return prediction_head(x, w, self, last=last)


@config
class RobertaDecoder(BertDecoder):
    """Hyperparameters of RoBERTa as a decoder, in forward order."""

    padding: Count = key("pad_token_id", 1)
    trunk: str = fixed("roberta")

    def check(self) -> None:
        super().check()
        self.must_not_exceed("padding", "n_positions")

    @property
    def first_row(self) -> int:
        return int(self.padding) + 1

    def head(self, x: Array, w: Weights, last: bool) -> Array:
        return masked_head(x, w, self.vocab_size, self.norm_eps, shared_table(self), last=last)


@config
class BertGenerationDecoder(BertDecoder):
    """Hyperparameters of BERT for generation as a decoder, in forward order."""

    n_segments: Count = fixed(0)

    ignored = BertDecoder.ignored | {"type_vocab_size"}

    def head(self, x: Array, w: Weights, last: bool) -> Array:
        return plain_head(x, w, self, last=last)


@architecture(
    "bert_generation_decoder",
    config=BertGenerationDecoder,
    spellings=BESIDE_ENCODER,
    heads=NONE,
    peft=Peft(tied_head="lm_head.decoder"),
)
@architecture(
    "roberta_decoder",
    config=RobertaDecoder,
    spellings=BESIDE_ENCODER,
    heads=NONE,
    peft=Peft(("query", "value"), tied_head="lm_head.decoder"),
)
@architecture(
    "bert_decoder",
    config=BertDecoder,
    spellings=BESIDE_ENCODER,
    heads=NONE,
    peft=Peft(("query", "value"), tied_head="cls.predictions.decoder"),
)
def forward(w: Weights, ids: Array, c: BertDecoder, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T], and the image's vectors [M D] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source, c.d_image)
    read = source if source.shape[0] else np.zeros((0, c.d_image), np.float32)
    x = c.embedded(ids, cache, w, c.first_row)
    for _, w_layer, kept in w.layers(f"{c.trunk}.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, kept, c, read)
    return c.head(x, w, last)


@step(Role.UNEMBED)
def plain_head(x: Array, w: Weights, c: BertDecoder, *, last: bool) -> Array:
    """Score every token of the vocabulary: [T D], [V D] -> [T V], or [1 V]."""
    return scored(last_row(x) if last else x, w, "lm_head", shared_table(c), c.vocab_size)
