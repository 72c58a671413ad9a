"""DeiT as the encoder of images beside a decoder: a ViT with one more token before the patches, that of distillation.

Source: transformers 5.23, modeling_deit.py (arXiv 2012.12877).
"""

from __future__ import annotations

from ..architectures.config import config, fixed
from .vit import ViT, forward

__all__ = ["CONFIG", "forward"]


@config
class DeiT(ViT):
    """Hyperparameters of DeiT, in forward order."""

    tokens: tuple[str, ...] = fixed(("cls_token", "distillation_token"))


CONFIG = DeiT
