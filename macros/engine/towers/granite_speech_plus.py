"""The audio tower of Granite Speech Plus: Granite Speech's, whose Q-Former gets vectors of several layers side by side.

Source: transformers 5.23, modeling_granite_speech_plus.py.
"""

from __future__ import annotations

from ..architectures.config import Size, config, key
from ..errors import Problem, shorten
from .granite_speech import PROJECTOR, GraniteSpeechEncoder, forward

__all__ = ["CONFIG", "forward"]


@config
class GraniteSpeechPlusEncoder(GraniteSpeechEncoder):
    """Hyperparameters of Granite Speech Plus's conformer and Q-Former, in forward order."""

    more_layers: list[int] | None = key("cat_hidden_layers", None)
    d_read: Size = key(PROJECTOR + "encoder_hidden_size", lambda c: (len(c.kept) + 1) * c.d_model)

    ignored = GraniteSpeechEncoder.ignored - {PROJECTOR + "encoder_hidden_size"}

    def check(self) -> None:
        super().check()
        if not all(0 <= i < self.n_layers for i in self.kept):
            raise Problem(f"cat_hidden_layers = {shorten(self.more_layers)}", "give layers of this tower")
        if int(self.d_read) != (len(self.kept) + 1) * int(self.d_model):
            raise Problem(
                f"{PROJECTOR}encoder_hidden_size = {int(self.d_read)}", "give the width of all vectors side by side"
            )

    @property
    def kept(self) -> list[int]:
        """After how many layers vectors are taken, which the Q-Former gets beside the last ones."""
        return sorted(set(self.more_layers or []))

    @property
    def kinds(self) -> list[str]:
        """The layer behind which characters are scored, those whose vectors are taken, and the others."""
        return [f"{kind}, kept {i + 1}" if i + 1 in self.kept else kind for i, kind in enumerate(super().kinds)]


CONFIG = GraniteSpeechPlusEncoder
