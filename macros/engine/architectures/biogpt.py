"""BioGPT: OPT's block with GELU, and an embedding that is scaled.

Source: doi 10.1093/bib/bbac409; tensor names as the published file.
"""

from __future__ import annotations

from ..interface import Array, KVCache, Weights
from ..ops import embed, embed_positions, layer_norm, positions, unembed
from . import architecture
from .config import Config, Size, activation, config, derived, fixed, key
from .opt import POSITION_OFFSET, layer


@config
class BioGPT(Config):
    """Hyperparameters of BioGPT, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    n_positions: Size = key("max_position_embeddings")
    d_model: Size = key("hidden_size")
    scales_embedding: bool = key("scale_embedding", True)
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_first: bool = fixed(True)
    bias: bool = fixed(True)
    # attention
    n_heads: Size = key("num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    # feed-forward
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    ignored = frozenset({"activation_dropout", "attention_probs_dropout_prob", "layer_norm_eps", "layerdrop"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)

    def norm(self, x: Array, w: Weights, name: str) -> Array:
        """Layer norm; the config's epsilon is not read."""
        return layer_norm(x, w, name, 1e-5)


@architecture("biogpt", config=BioGPT)
def forward(w: Weights, ids: Array, c: BioGPT, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    table = "biogpt.embed_tokens.weight"
    x = embed(ids, w, table, c.vocab_size, c.d_model)
    x = x * c.d_model**0.5 if c.scales_embedding else x
    places = positions(ids, cache) + POSITION_OFFSET
    x = x + embed_positions(places, w, "biogpt.embed_positions.weight", c.n_positions + POSITION_OFFSET, c.d_model)
    for _, w_layer, cache_layer in w.layers("biogpt.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    x = c.norm(x, w, "biogpt.layer_norm")
    return unembed(x, w, table if c.tied else "output_projection.weight", c.vocab_size, last=last)
