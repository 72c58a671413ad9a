"""AFM (Arcee) and the text model of Cosmos 3 Edge: Llama's block, ReLU squared between two matrices, and no gate.

Source: arcee-ai/AFM-4.5B-Base; nvidia/Cosmos3-Edge by transformers 5's class; tensor names as transformers 5.
"""

from __future__ import annotations

from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import Rope, embed, linear, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .config import Positive, Size, activation, config, fixed, key
from .llama import Llama, attention
from .otherwise import NEVER_TIED
from .rope_config import read_rope
from .tasks import OLD_NAME


@config
class Arcee(Llama):
    """Hyperparameters of AFM, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    activation: str = key("hidden_act", "relu2")
    # Names of the two matrices of the feed-forward network.
    names: tuple[str, str] = fixed(("up_proj", "down_proj"))


@config
class Cosmos3Edge(Arcee):
    """Hyperparameters of the text model of Cosmos 3 Edge, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 8)
    d_head: Size = key("head_dim", 128)
    names: tuple[str, str] = fixed(("fc1", "fc2"))

    otherwise = (NEVER_TIED,)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=100_000_000.0)


@architecture("arcee", config=Arcee, gguf=Gguf("arcee", in_pairs=True), heads=OLD_NAME)
@architecture(
    "cosmos3_edge_text",
    config=Cosmos3Edge,
    spellings=(
        ("^embed_tokens.", "model.embed_tokens."),
        ("^layers.", "model.layers."),
        ("^norm.", "model.norm."),
        (".self_attn.to_out.", ".self_attn.o_proj."),
        (".self_attn.to_q.", ".self_attn.q_proj."),
        (".self_attn.to_k.", ".self_attn.k_proj."),
        (".self_attn.to_v.", ".self_attn.v_proj."),
        (".mlp.up_proj.", ".mlp.fc1."),
        (".mlp.down_proj.", ".mlp.fc2."),
    ),
)
def forward(w: Weights, ids: Array, c: Arcee, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Arcee, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c, c.names)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Llama, names: tuple[str, str] = ("up_proj", "down_proj")) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, names[0], c.d_ff, bias=c.mlp_bias))
    return linear(wide, w, names[1], c.d_model, bias=c.mlp_bias)
