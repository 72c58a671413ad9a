"""The audio tower of Qwen3-ASR: Qwen3-Omni's, with its own projector.

Source: transformers 5.24, modeling_qwen3_asr.py.
"""

from __future__ import annotations

from ..architectures.config import Size, activation, config, derived, key
from ..interface import Array, KVCache, Weights
from . import Grid, tower
from .patches import two_maps
from .qwen3_omni_audio import Qwen3OmniAudio, encode


@config
class Qwen3AsrAudio(Qwen3OmniAudio):
    """Hyperparameters of Qwen3-ASR's audio tower, in forward order."""

    d_model: Size = key("d_model", 1024, also=("hidden_size",))
    n_layers: Size = key("encoder_layers", 24, also=("num_hidden_layers",))
    n_encoder_heads: Size = key("encoder_attention_heads", 16, also=("num_attention_heads",))
    d_encoder_head: Size = derived(lambda c: c.d_model // c.n_encoder_heads)
    d_ff_encoder: Size = key("encoder_ffn_dim", 4096, also=("intermediate_size",))

    ignored = Qwen3OmniAudio.ignored | {"timestamp_token_id", "token_classification_bias"}


@tower("qwen3_asr.audio_config", config=Qwen3AsrAudio)
def forward(w: Weights, x: Array, grid: Grid, c: Qwen3AsrAudio, cache: KVCache) -> list[Array]:
    """The vectors of a window of sound for the text: [R B] -> [M D]."""
    x = encode(x, w.at("model.audio_tower"), c, cache)
    projector = w.at("model.multi_modal_projector")
    return [two_maps(x, projector, ("linear_1", "linear_2"), c.d_model, c.d_text, activation(c.activation))]
