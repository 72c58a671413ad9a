"""The vision tower of Qwen3-Omni: Qwen3-VL's, with other names for its mergers.

Source: transformers 5.24, modeling_qwen3_omni_moe.py (arXiv 2509.17765).
"""

from __future__ import annotations

from ..architectures.config import config, fixed
from . import qwen3_vl, tower
from .qwen3_vl import Qwen3Vision


@config
class Qwen3OmniVision(Qwen3Vision):
    """Hyperparameters of Qwen3-VL's vision tower."""

    mergers: str = fixed("merger_list")
    merger_names: tuple[str, ...] = fixed(("ln_q", "mlp.0", "mlp.2"))

    ignored = frozenset({"image_size", "apply_vit_abs_pos_embed", "spatial_patch_size", "tokens_per_second"})


tower("qwen3_omni_moe_thinker.vision_config", config=Qwen3OmniVision, module=__name__)(qwen3_vl.forward)
