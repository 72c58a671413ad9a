"""Nemotron-4 and Minitron: AFM's block with layer norms that store their difference from 1; Jais 2 with plain ones.

Sources: arXiv 2402.16819, 2406.11704 (Nemotron-4), 2407.14679 (Minitron); inceptionai/Jais-2-8B-Chat (Jais 2); tensor
names as transformers 5.
"""

from __future__ import annotations

from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import Rope, embed, layer_norm, positions, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .arcee import feed_forward
from .config import Positive, config, fixed, key
from .llama import Llama, attention
from .rope_config import read_rope
from .tasks import OLD_NAME


@config
class Jais2(Llama):
    """Hyperparameters of Jais 2, in forward order."""

    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    norm_offset: float = fixed(0.0)
    attention_bias: bool = key("attention_bias", True)
    mlp_bias: bool = key("mlp_bias", True)
    activation: str = key("hidden_act", "relu2")


@config
class Nemotron(Jais2):
    """Hyperparameters of Nemotron-4, in forward order."""

    norm_eps: Positive = key("norm_eps", 1e-5)
    norm_offset: float = fixed(1.0)
    attention_bias: bool = key("attention_bias", False)
    mlp_bias: bool = key("mlp_bias", False)

    @property
    def rope(self) -> Rope:
        return read_rope({"partial_rotary_factor": 0.5, **self.rope_parameters})


@architecture("jais2", config=Jais2, gguf=Gguf("jais2", seventy=68))
@architecture(
    "nemotron",
    config=Nemotron,
    gguf=Gguf("nemotron", shifted=("norm.weight",)),
    heads=OLD_NAME,
    rounds_heads={"nemotron": True},
)
def forward(w: Weights, ids: Array, c: Jais2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = layer_norm(x, w, "model.norm", c.norm_eps, offset=c.norm_offset)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Jais2, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = layer_norm(x, w, "input_layernorm", c.norm_eps, offset=c.norm_offset)
    x = x + attention(y, w.at("self_attn"), cache, c, mask, table)
    y = layer_norm(x, w, "post_attention_layernorm", c.norm_eps, offset=c.norm_offset)
    return x + feed_forward(y, w.at("mlp"), c)
