"""Latent attention (MLA, DeepSeek-V2, arXiv 2405.04434, 2.1): one narrow vector per token holds keys and values.

Additional letters: R kv_lora_rank, the width of the latent vector. The cache holds the latent and one small rotated key
for all heads. The heads' keys and values are not expanded here: the matrix that would turn latents into keys is applied
to the queries instead, and the one that would turn them into values is applied to the averages (the paper's "absorbed"
form). It is the same sum in another order. Decode takes the fewest multiply-adds this way; a long prefill would take
fewer with keys and values expanded once.
"""

from __future__ import annotations

import numpy as np

from ..interface import Array
from ..steps import Role, step
from .basic import relu


@step(Role.LATENT_QUERIES)
def latent_queries(q: Array, to_key: Array) -> Array:
    """Map each head's query to the space of the latents: [T N H], [N H R] -> [T N R]."""
    return np.einsum("tnh,nhr->tnr", q, to_key, optimize=True)


@step(Role.LATENT_SCORES)
def latent_scores(q: Array, latent: Array, q_rope: Array, k_rope: Array, scale: float) -> Array:
    """The fit of each query to each token, by content and by position: [T N R], [S R], [T N H], [S H] -> [N T S].

    If each query attends to its own set of tokens, these are [T S R] and [T S H].
    """
    keys = "s" if latent.ndim == 2 else "ts"
    content = np.einsum(f"tnr,{keys}r->nts", q, latent, optimize=True)
    return (content + np.einsum(f"tnh,{keys}h->nts", q_rope, k_rope, optimize=True)) * scale


@step(Role.LATENT_WEIGHTED_SUM)
def latent_weighted_sum(shares: Array, latent: Array) -> Array:
    """Average the latents by their attention weights: [N T S], [S R] or [T S R] -> [T N R]."""
    return np.einsum(f"nts,{'s' if latent.ndim == 2 else 'ts'}r->tnr", shares, latent, optimize=True)


@step(Role.LATENT_VALUES)
def latent_values(mixed: Array, to_value: Array) -> Array:
    """Compute each head's value from its average of latents: [T N R], [N H R] -> [T N H]."""
    return np.einsum("tnr,nhr->tnh", mixed, to_value, optimize=True)


@step(Role.INDEX_SCORES)
def index_scores(q: Array, k: Array, weights: Array) -> Array:
    """The relevance of each token to each query: small heads' scores, weighted: [T N H], [S H], [T N] -> [T S].

    DeepSeek-V3.2's indexer.
    """
    fit = relu(np.einsum("tnh,sh->tns", q, k, optimize=True) * q.shape[-1] ** -0.5)
    return np.einsum("tn,tns->ts", weights, fit, optimize=True)
