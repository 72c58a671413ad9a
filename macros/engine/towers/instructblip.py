"""The vision tower of InstructBLIP: BLIP-2's, with a Q-Former that can also read the instruction.

An instruction's tokens are not counted. Source: transformers 5.24, modeling_instructblip.py (arXiv 2305.06500).
"""

from __future__ import annotations

from ..architectures.config import Size, config, fixed, key
from ..interface import Array, KVCache, Weights
from ..ops import layer_norm, linear
from . import Grid, tower
from .blip_2 import QFORMER, Blip2Vision, encode
from .qformer import encode as gather


@config
class InstructBlipVision(Blip2Vision):
    """BLIP-2's vision tower with a table of an instruction's tokens."""

    n_words: Size = key(QFORMER + "vocab_size", 30522)
    n_places: Size = key(QFORMER + "max_position_embeddings", 512)
    reads_text: bool = fixed(True)


@tower("instructblip.vision_config", "instructblipvideo.vision_config", config=InstructBlipVision)
def forward(w: Weights, x: Array, grid: Grid, c: InstructBlipVision, cache: KVCache) -> list[Array]:
    """An image's vectors for the text model: [P I] -> [M D]."""
    x = encode(w.at("vision_model"), x, c, cache)
    w("qformer.embeddings.word_embeddings.weight", c.n_words, c.d_qformer)
    w("qformer.embeddings.position_embeddings.weight", c.n_places, c.d_qformer)
    y = w("query_tokens", 1, c.n_queries, c.d_qformer)[0]
    y = layer_norm(y, w, "qformer.embeddings.layernorm", c.qformer_eps)
    y = gather(y, x, w.at("qformer"), c.qformer, cache)
    return [linear(y, w, "language_projection", c.d_text, bias=True)]
