"""The audio tower of Granite Speech Plus: Granite Speech's, with a Q-Former that also reads vectors of earlier layers.

Source: transformers 5.24, modeling_granite_speech_plus.py.
"""

from __future__ import annotations

from ..architectures.config import Size, config, key
from ..errors import Problem
from . import tower
from .granite_speech import PROJECTOR, GraniteSpeechEncoder, forward


@config
class GraniteSpeechPlusEncoder(GraniteSpeechEncoder):
    """Hyperparameters of Granite Speech Plus's conformer and Q-Former."""

    earlier: list[int] | None = key("cat_hidden_layers", None)
    d_seen: Size = key(PROJECTOR + "encoder_hidden_size", lambda c: c.d_model * (len(c.kept) + 1))

    def check(self) -> None:
        if not all(0 <= i < self.n_layers for i in self.kept):
            raise Problem(f"cat_hidden_layers = {self.earlier}", "give layers of this tower, but for the last")
        super().check()

    @property
    def vectors_seen(self) -> int:
        return len(self.earlier or []) + 1

    @property
    def kept(self) -> list[int]:
        return sorted({*(self.earlier or [])})


tower("granite_speech_plus.encoder_config", config=GraniteSpeechPlusEncoder, module=__name__)(forward)
