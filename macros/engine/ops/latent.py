"""Latent attention (MLA, DeepSeek-V2, arXiv 2405.04434, 2.1): one narrow vector per token holds keys and values.

Letters besides the usual: R kv_lora_rank, the width of the latent vector. What is cached is the latent and one small
rotated key for all heads. Here keys and values of the heads are not written out: the matrix that would make keys of
latents is applied to the queries instead, and the one that would make values, to the averages (the paper's "absorbed"
form). It is the same sum in another order. Decoding costs the fewest multiply-adds this way; a long prefill would cost
fewer with keys and values written out once.
"""

from __future__ import annotations

import numpy as np

from ..interface import Array
from ..steps import Role, step
from .basic import relu


@step(Role.LATENT_QUERIES)
def latent_queries(q: Array, to_key: Array) -> Array:
    """Turn each head's query into a question to the latents: [T N H], [N H R] -> [T N R]."""
    return np.einsum("tnh,nhr->tnr", q, to_key, optimize=True)


@step(Role.LATENT_SCORES)
def latent_scores(q: Array, latent: Array, q_rope: Array, k_rope: Array, scale: float) -> Array:
    """How well each query fits each token, by content and by position: [T N R], [S R], [T N H], [S H] -> [N T S].

    Where each query has tokens of its own to look at, these are [T S R] and [T S H].
    """
    keys = "s" if latent.ndim == 2 else "ts"
    content = np.einsum(f"tnr,{keys}r->nts", q, latent, optimize=True)
    return (content + np.einsum(f"tnh,{keys}h->nts", q_rope, k_rope, optimize=True)) * scale


@step(Role.LATENT_WEIGHTED_SUM)
def latent_weighted_sum(shares: Array, latent: Array) -> Array:
    """Average the latents by their shares: [N T S], [S R] or [T S R] -> [T N R]."""
    return np.einsum(f"nts,{'s' if latent.ndim == 2 else 'ts'}r->tnr", shares, latent, optimize=True)


@step(Role.LATENT_VALUES)
def latent_values(mixed: Array, to_value: Array) -> Array:
    """Read each head's value out of its average of latents: [T N R], [N H R] -> [T N H]."""
    return np.einsum("tnr,nhr->tnh", mixed, to_value, optimize=True)


@step(Role.INDEX_SCORES)
def index_scores(q: Array, k: Array, weights: Array) -> Array:
    """How much each token matters to each query: small heads' fits, weighed: [T N H], [S H], [T N] -> [T S].

    DeepSeek-V3.2's indexer.
    """
    fit = relu(np.einsum("tnh,sh->tns", q, k, optimize=True) * q.shape[-1] ** -0.5)
    return np.einsum("tn,tns->ts", weights, fit, optimize=True)
