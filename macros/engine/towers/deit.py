"""DeiT as the image encoder of a decoder: a ViT with one more token before the patches, the distillation token.

Source: transformers 5.24, modeling_deit.py (arXiv 2012.12877).
"""

from __future__ import annotations

from ..architectures.config import config, fixed
from . import tower
from .vit import ViT, forward


@config
class DeiT(ViT):
    """Hyperparameters of DeiT, in forward order."""

    tokens: tuple[str, ...] = fixed(("cls_token", "distillation_token"))


tower("vision-encoder-decoder.encoder", config=DeiT, module=__name__, of_type="deit")(forward)
