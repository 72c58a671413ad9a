"""Apertus: Llama's block with norms on each head's queries and keys, and a feed-forward network without a gate (xIELU).

Source: arXiv 2509.14233; tensor names as the published file, which also stores xIELU's two constants.
"""

from __future__ import annotations

from ..errors import Problem
from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Rope,
    embed,
    linear,
    positions,
    rms_norm,
    rope_table,
    unembed,
    xielu,
)
from ..steps import Role, step
from . import architecture
from .config import Positive, Raw, Size, activation, config, fixed, key
from .llama import Llama
from .qwen3 import attention
from .rope_config import fold_rope_or, read_rope

# The rotary embedding of a config without a table for it, and the base of one whose table has none.
THETA = 12_000_000.0
USUAL: Raw = {
    "rope_type": "llama3",
    "rope_theta": THETA,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}


@config
class Apertus(Llama):
    """Hyperparameters of Apertus, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    mlp_bias: bool = fixed(False)
    activation: str = key("hidden_act", "xielu")

    ignored = Llama.ignored | {"qk_norm", "post_norm"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        return fold_rope_or(raw, USUAL)

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        if self.activation != "xielu":
            activation(self.activation)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, THETA)


@config
class Apertus15(Apertus):
    """Hyperparameters of Apertus 1.5's text model, in forward order: its head may score the first tokens alone."""

    n_outputs: Size | None = key("output_vocab_size", None)
    tied: bool = key("tie_word_embeddings", False)

    def check(self) -> None:
        super().check()
        if self.n_outputs is not None:
            self.must_not_exceed("n_outputs", "vocab_size")
            if self.tied and self.n_outputs != self.vocab_size:
                raise Problem(
                    f"output_vocab_size = {int(self.n_outputs)}, and the head is the input embedding",
                    "set tie_word_embeddings to false, or leave output_vocab_size out",
                )


GGUF = Gguf(
    "apertus",
    {
        "attention_layernorm": "attn_norm",
        "feedforward_layernorm": "ffn_norm",
        "mlp.act_fn.alpha_p": "-",
        "mlp.act_fn.alpha_n": "-",
    },
)


@architecture("apertus1p5_text", config=Apertus15)
@architecture("apertus", config=Apertus, gguf=GGUF, rounds_heads={"apertus": True})
def forward(w: Weights, ids: Array, c: Apertus, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    scored = c.n_outputs if isinstance(c, Apertus15) and c.n_outputs is not None else c.vocab_size
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", scored, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Apertus, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "attention_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "feedforward_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Apertus) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    x = linear(x, w, "up_proj", c.d_ff)
    return linear(
        xielu(x, w, "act_fn") if c.activation == "xielu" else activation(c.activation)(x), w, "down_proj", c.d_model
    )
