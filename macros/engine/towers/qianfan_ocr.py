"""The vision tower of Qianfan-OCR: that of InternVL 3.

Source: transformers 5.24, modeling_qianfan_ocr.py.
"""

from __future__ import annotations

from ..architectures.config import Size, config, derived, fixed, key
from . import tower
from .internvl import InternVision, forward


@config
class QianfanVision(InternVision):
    """Hyperparameters of InternVL's vision tower and projector, in forward order."""

    d_model: Size = key("hidden_size", 1024)
    n_layers: Size = key("num_hidden_layers", 24)
    n_heads: Size = key("num_attention_heads", 16)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    bias: bool = key("attention_bias", True)
    d_ff: Size = key("intermediate_size", 4096)
    blocks: str = fixed("layers")

    ignored = InternVision.ignored | {"drop_path_rate"}


tower("qianfan_ocr.vision_config", config=QianfanVision, module=__name__)(forward)
