"""The vision tower of MiniCPM-OCR: MiniCPM-V 4.6's, with a middle merger that is stored but not used.

That the processor enlarges small letters depends on what an image shows, and is not counted.
"""

from __future__ import annotations

from typing import Literal

from ..architectures.config import config, key
from . import Grid, tower
from .minicpmv4_6 import MiniCpmVision, forward


@config
class MiniCpmOcrVision(MiniCpmVision):
    """Hyperparameters of MiniCPM-OCR's vision tower, in forward order."""

    mode: Literal["16x", "4x"] = key("downsample_mode", "4x")

    def sized(self, height: float, width: float, enlarged: bool) -> Grid:
        return super().sized(height, width, False)


tower("minicpm_ocr.vision_config", config=MiniCpmOcrVision, module=__name__)(forward)
