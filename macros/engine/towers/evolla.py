"""The protein encoder of Evolla: SaProt, BERT's kind with rotary embeddings, at whose vectors a few trained ones look.

Its tokens each stand for an amino acid and the form that the protein has there. Trained vectors gather information from
those of the tokens, and from each other, in a few layers; a text's layers look at these. Source: transformers 5.24,
modeling_evolla.py and processing_evolla.py (bioRxiv 2025.01.05.630192).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..architectures.config import Count, Interval, Positive, Size, config, derived, key
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import apply_rope, attend, embed, gelu, heads, layer_norm, linear
from ..steps import Role, step
from ..trace import Trace
from . import TEXT_WIDTH, Grid, TowerConfig, tower
from .patches import two_maps

ENDS = 2  # tokens: one before the protein, one behind it
MASKED = 0.15 * 0.8  # the share of tokens that were hidden in training
EPS = 1e-5  # of the trained vectors' norms, which no key sets


@config
class SaProt(TowerConfig):
    """Hyperparameters of SaProt and the resampler after it, in forward order."""

    reads = "protein"
    among_text = frozenset(
        """resampler_depth resampler_dim_head resampler_ff_mult resampler_heads resampler_num_latents""".split()
    )

    # embedding
    vocab_size: Size = key("vocab_size", 446)
    mask_id: Count = key("mask_token_id", 4)
    scales: bool = key("token_dropout", True)
    norm_first: bool = key("emb_layer_norm_before", False)
    position_kind: Literal["rotary"] = key("position_embedding_type", "rotary")
    d_model: Size = key("hidden_size", 1280)
    # layers
    n_layers: Size = key("num_hidden_layers", 33)
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    n_heads: Size = key("num_attention_heads", 20)
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    looks_elsewhere: Literal[False] = key("add_cross_attention", False)
    d_ff: Size = key("intermediate_size", 5120)
    # resampler
    n_latents: Size = key("resampler_num_latents", 64)
    n_resampler_layers: Size = key("resampler_depth", 6)
    n_resampler_heads: Size = key("resampler_heads", 8)
    d_resampler_head: Size = key("resampler_dim_head", 64)
    times_wider: Interval = key("resampler_ff_mult", 4)
    d_resampler_ff: Size = derived(lambda c: c.d_model * c.times_wider)
    d_text: Size = key(TEXT_WIDTH)

    ignored = frozenset({"attention_probs_dropout_prob", "rope_theta"})  # the angles' frequencies are stored

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")

    def residues(self, length: int) -> Grid:
        return Grid(length + ENDS)

    def declared(self, grid: Grid, run: Trace) -> Grid:
        return Grid(run.declare("n_residues", grid.rows), 1, grid.count)

    def input_shape(self, grid: Grid) -> tuple[int, ...]:
        return (grid.rows,)


@tower("evolla.protein_encoder_config", config=SaProt)
def forward(w: Weights, x: Array, grid: Grid, c: SaProt, cache: KVCache) -> list[Array]:
    """The vectors that a text's layers look at, from a protein's token ids: [R] -> [M D]."""
    tower = w.at("model.protein_encoder.model")
    frequencies = tower.buffer("rotary_embeddings.inv_freq", c.d_head // 2)
    angles = np.arange(x.shape[0], like=x).astype(np.float32)[:, None] * frequencies[None, :]
    x = embed_protein(x.astype(np.int64), tower.at("embeddings"), c)
    for _, w_layer, _ in tower.layers("encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, (np.cos(angles), np.sin(angles)))
    x = layer_norm(x, tower, "encoder.emb_layer_norm_after", c.norm_eps)
    resampler = w.at("model.protein_encoder.sequence_compressor_resampler")
    y = resampler("latents", c.n_latents, c.d_model)
    kinds = ["resampler"] * c.n_resampler_layers
    for _, w_layer, _ in resampler.layers("layers", kinds, cache, "resampler", c.n_layers):
        y = resampler_layer(y, x, w_layer, c)
    return [layer_norm(linear(y, resampler, "protein_projector", c.d_text, bias=True), resampler, "norm", EPS)]


def embed_protein(ids: Array, w: Weights, c: SaProt) -> Array:
    """The vectors of a protein's tokens, hidden ones 0 and the others scaled by how many are hidden: [R] -> [R D]."""
    x = embed(ids, w, "word_embeddings.weight", c.vocab_size, c.d_model)
    if c.scales:
        shown = np.where(ids == int(c.mask_id), 0, 1).astype(np.float32)
        x = x * shown[:, None] * ((1 - MASKED) / shown.mean())
    return layer_norm(x, w, "layer_norm", c.norm_eps) if c.norm_first else x


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: SaProt, table: RopeTable) -> Array:
    """One transformer block, in which every token sees all others: [R D] -> [R D]."""
    x = x + attention(layer_norm(x, w, "attention.LayerNorm", c.norm_eps), w.at("attention"), c, table)
    y = layer_norm(x, w, "LayerNorm", c.norm_eps)
    return x + two_maps(y, w, ("intermediate.dense", "output.dense"), c.d_ff, c.d_model, gelu)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: SaProt, table: RopeTable) -> Array:
    """Let each token gather information from all tokens: [R D] -> [R D]."""
    q, k, v = (
        heads(linear(x, w, f"self.{name}", c.d_model, bias=True), c.n_heads, c.d_head)
        for name in ("query", "key", "value")
    )
    mixed = attend(apply_rope(q, table), apply_rope(k, table), v, None, c.d_head**-0.5)
    return linear(mixed, w, "output.dense", c.d_model, bias=True)


@step(Role.LAYER)
def resampler_layer(y: Array, x: Array, w: Weights, c: SaProt) -> Array:
    """Let the trained vectors gather information from the tokens and from each other: [M D], [R D] -> [M D]."""
    y = y + look(y, x, w.at("0"), c)
    z = layer_norm(y, w, "1.norm", EPS)
    return y + two_maps(z, w.at("1"), ("fc1", "fc2"), c.d_resampler_ff, c.d_model, gelu, bias=False)


@step(Role.ATTENTION)
def look(y: Array, x: Array, w: Weights, c: SaProt) -> Array:
    """Let each trained vector gather information from all: [M D], [R D] -> [M D]."""
    N, H = c.n_resampler_heads, c.d_resampler_head
    latents = layer_norm(y, w, "norm_latents", EPS)
    both = np.concatenate([layer_norm(x, w, "norm_media", EPS), latents], axis=0)
    q = heads(linear(latents, w, "to_q", N * H), N, H)
    k, v = (heads(part, N, H) for part in np.split(linear(both, w, "to_kv", 2 * N * H), 2, axis=-1))
    return linear(attend(q, k, v, None, H**-0.5), w, "to_out", c.d_model)
