"""Lightning attention with a decay that is fixed for each head and layer, as Ling 2.5 and Ring-linear 2.0 have it.

Layers count from 0 in the decay, as in what trains and serves these models: Ant's AReaL, models/mcore/
lightning_attention.py; its SGLang backend, layers/attention/linear/lightning_backend.py; vLLM, model_executor/models/
bailing_moe_linear.py. The class published beside the files (inclusionAI/Ling-V2.5, models/) has (l - 1) / (L - 1) for l
from 0: the formula of Megatron, whose layers count from 1; AReaL names the difference. mlx-lm follows that class, but
for its first layer. Also: arXiv 2401.04658.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    alibi_slopes,
    apply_rope,
    decaying_attention,
    grouped_rms_norm,
    heads,
    linear,
    rms_norm,
    sigmoid,
    silu,
)
from ..steps import Role, step


class Lightning(Protocol):
    """A config of lightning attention."""

    @property
    def d_model(self) -> int: ...
    @property
    def n_layers(self) -> int: ...
    @property
    def norm_eps(self) -> float: ...
    @property
    def n_linear_heads(self) -> int: ...
    @property
    def d_linear_head(self) -> int: ...
    @property
    def activated(self) -> bool: ...
    @property
    def qk_norm(self) -> bool: ...
    @property
    def n_norm_groups(self) -> int: ...


@step(Role.LIGHTNING_ATTENTION)
def lightning_attention(x: Array, w: Weights, cache: KVCache, c: Lightning, table: RopeTable | None) -> Array:
    """Let each token read from a memory that fades, at its own rate in each head: [T D] -> [T N H] -> [T D].

    The rates are fixed: ALiBi's slopes in the first layer, and less in each layer after it.
    """
    T, N, H = x.shape[0], c.n_linear_heads, c.d_linear_head
    qkv = linear(x, w, "query_key_value", 3 * N * H)
    q, k, v = (heads(part, N, H) for part in np.split(silu(qkv) if c.activated else qkv, 3, axis=-1))
    if c.qk_norm:
        q, k = rms_norm(q, w, "query_layernorm", c.norm_eps), rms_norm(k, w, "key_layernorm", c.norm_eps)
    if table is not None:
        q, k = apply_rope(q, table), apply_rope(k, table)
    depth = 1 - w.index / max(int(c.n_layers) - 1, 1) + 1e-5
    keep = np.exp(alibi_slopes(k, N) * -depth).astype(np.float32)
    y = decaying_attention(q * H**-0.5, k, v, np.broadcast_to(keep, (T, N)), cache).reshape(T, N * H)
    y = grouped_rms_norm(y, w, "g_norm", c.norm_eps, c.n_norm_groups) * sigmoid(linear(x, w, "g_proj", N * H))
    return linear(y, w, "dense", c.d_model)
