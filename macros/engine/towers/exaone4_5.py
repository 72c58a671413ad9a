"""The vision tower of EXAONE 4.5: Qwen2.5-VL's, with query heads that share keys and values.

Source: transformers 5.24, modeling_exaone4_5.py.
"""

from __future__ import annotations

from ..architectures.config import Size, config, key
from . import tower
from .qwen2_5_vl import Qwen25Vision, forward


@config
class Exaone45Vision(Qwen25Vision):
    """Hyperparameters of EXAONE 4.5's vision tower, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 8)

    def check(self) -> None:
        super().check()
        self.must_divide("n_kv_heads", "n_heads")


tower("exaone4_5.vision_config", config=Exaone45Vision, module=__name__)(forward)
