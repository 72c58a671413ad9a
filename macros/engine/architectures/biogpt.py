"""BioGPT: OPT's block with GELU, and an embedding that is scaled.

Source: doi 10.1093/bib/bbac409; tensor names as the published file.
"""

from __future__ import annotations

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import embed, embed_positions, positions, unembed
from . import architecture
from .config import Size, config, derived, fixed, key
from .opt import OPT, POSITION_OFFSET, layer
from .tasks import OLD_CLASSIFIER


@config
class BioGPT(OPT):
    """Hyperparameters of BioGPT, in forward order."""

    d_embedding: Size = derived(lambda c: c.d_model)
    scales_embedding: bool = key("scale_embedding", True)
    norm_first: bool = fixed(True)
    norm_weights: bool = fixed(True)
    no_final_norm: bool = fixed(False)
    bias: bool = fixed(True)
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "gelu")

    # None of its norms reads the epsilon of the config.
    ignored = OPT.ignored | {"activation_dropout", "attention_probs_dropout_prob", "layer_norm_eps"}


@architecture("biogpt", config=BioGPT, heads=OLD_CLASSIFIER, peft=Peft(tied_head="output_projection"))
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
