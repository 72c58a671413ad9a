"""Shared by image encoders for a decoder of any type: transformers' vision-encoder-decoder.

Source: transformers 5.23, modeling_vision_encoder_decoder.py.
"""

from __future__ import annotations

from ..architectures.config import Size, config, key
from ..errors import Problem
from ..interface import Array, Weights
from ..keys import DUMPED
from ..ops import linear
from . import OF_TEXT, TEXT_WIDTH, TowerConfig


@config
class Encoder(TowerConfig):
    """The keys of the decoder of an encoder-decoder model: its width, and that of the vectors that it attends to, if
    given."""

    d_text: Size = key(TEXT_WIDTH, 768, also=(f"{OF_TEXT}d_model", f"{OF_TEXT}n_embd"))
    d_seen: Size | None = key(f"{OF_TEXT}cross_attention_hidden_size", None)

    ignored = DUMPED | {"tie_word_embeddings"}

    def must_be_seen(self, width: int) -> None:
        """Raise `Problem` if the decoder attends to vectors of another width than the encoder gives."""
        if self.d_seen is not None and self.d_seen != width:
            raise Problem(
                f"cross_attention_hidden_size = {int(self.d_seen)} in the decoder, and the encoder's vectors have "
                f"{int(width)}",
                "correct one of the two",
            )


def seen(x: Array, w: Weights, c: Encoder) -> Array:
    """The vectors that the decoder attends to, mapped to its width if that differs: [P D] -> [P O]."""
    if c.d_seen is not None or c.d_text == x.shape[1]:
        return x
    return linear(x, w, "enc_to_dec_proj", c.d_text, bias=True)
