"""The speech encoder of SeamlessM4T v2: SeamlessM4T's, with causal convolutions.

Attention sees a chunk of the sound, by default of minutes, and those before it. A score has a part by the distance of
two moments, with a trained vector for each. Source: transformers 5.24, modeling_seamless_m4t_v2.py (arXiv 2312.05187).
"""

from __future__ import annotations

import numpy as np

from ..architectures.config import Count, Size, config, fixed, key
from ..interface import Array, KVCache, Weights
from ..ops import attend, layer_norm, linear
from ..steps import Keeps, Role, step
from . import Grid, tower
from .seamless_m4t import SeamlessM4TSpeech, project
from .seamless_m4t import forward as read
from .sounds import convolve_each


@config
class SeamlessM4Tv2Speech(SeamlessM4TSpeech):
    """Hyperparameters of SeamlessM4T v2's speech encoder, in forward order."""

    among_text = SeamlessM4TSpeech.among_text | frozenset(
        """left_max_position_embeddings right_max_position_embeddings speech_encoder_chunk_size
        speech_encoder_left_chunk_num""".split()
    )

    kind: str = fixed("relative_key")
    n_before: Count = key("left_max_position_embeddings", 64)
    n_after: Count = key("right_max_position_embeddings", 8)
    chunk: Size | None = key("speech_encoder_chunk_size", 20_000)
    chunks_before: int = key("speech_encoder_left_chunk_num", 128)

    def attention(self, x: Array, w: Weights, distances: Array | None) -> Array:
        return attention(x, w, self)

    def around(self, x: Array, w: Weights) -> Array:
        x = convolve_each(x, w("depthwise_conv.weight", self.d_model, 1, self.taps), int(self.taps) - 1)
        return layer_norm(x, w, "depthwise_layer_norm", self.layer_eps)


@tower("seamless_m4t_v2.audio_config", config=SeamlessM4Tv2Speech, has_table=False)
def forward(w: Weights, x: Array, grid: Grid, c: SeamlessM4Tv2Speech, cache: KVCache) -> list[Array]:
    """The vectors of a sound for the decoder: [R B] -> [M D]."""
    return read(w, x, grid, c, cache)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: SeamlessM4Tv2Speech) -> Array:
    """Let each moment gather information from its chunk and earlier ones, also by their distance: [R D] -> [R D]."""
    q, k, v = (project(x, w, name, c) for name in ("q", "k", "v"))
    bias = distance_scores(q, w, c) if c.distance == "relative_key" else None
    if c.chunk is not None and x.shape[0] > c.chunk:
        hidden = other_chunks(x, c)[None]
        bias = hidden if bias is None else bias + hidden
    return linear(attend(q, k, v, None, c.d_head**-0.5, bias), w, "linear_out", c.d_model, bias=True)


@step(Role.RELATIVE_LOGITS)
def distance_scores(q: Array, w: Weights, c: SeamlessM4Tv2Speech) -> Array:
    """Each head's addition to a score by the distance (arXiv 1803.02155): [R N H] -> [N R R]."""
    at = np.arange(q.shape[0], like=q)
    ahead = np.clip(at[None, :] - at[:, None], -int(c.n_before), int(c.n_after))
    vectors = w("distance_embedding.weight", c.n_before + c.n_after + 1, c.d_head)
    vectors = np.take(vectors, ahead + int(c.n_before), axis=0)
    return np.einsum("rnh,rsh->nrs", q, vectors, optimize=True) * c.d_head**-0.5


@step(Role.WINDOW_MASK, keeps=Keeps.NOTHING)
def other_chunks(x: Array, c: SeamlessM4Tv2Speech) -> Array:
    """The mask of later chunks and of chunks too long ago: [R D] -> [R R]."""
    number = np.arange(x.shape[0], like=x) // int(c.chunk or 1)
    ago = number[:, None] - number[None, :]
    seen = ago >= 0 if c.chunks_before < 0 else (ago >= 0) & (ago <= c.chunks_before)
    return np.where(seen, 0.0, -np.inf).astype(np.float32)
