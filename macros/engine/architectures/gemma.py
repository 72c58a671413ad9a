"""Gemma: Llama's block with a wide head, a GELU gate, and embeddings multiplied by √D.

Source: arXiv 2403.08295; tensor names as the published files, whose norm weights are the distance from 1.
"""

from __future__ import annotations

from ..errors import Problem
from ..facts import QUERY_VALUE, Gguf, Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import embed, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .config import Raw, Size, config, fixed, key
from .llama import Llama, attention, feed_forward


@config
class Gemma(Llama):
    """Hyperparameters of Gemma, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 16)
    d_head: Size = key("head_dim", 256)
    mlp_bias: bool = fixed(False)
    activation: str = key("hidden_act", "gelu_pytorch_tanh")
    bidirectional: bool = key("use_bidirectional_attention", False)
    tied: bool = key("tie_word_embeddings", True)

    ignored = Llama.ignored | {"hidden_activation"}

    def check(self) -> None:
        super().check()
        if self.bidirectional:
            raise Problem(
                "use_bidirectional_attention = true",
                "the site describes only attention to earlier tokens, with a KV cache",
            )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The first files say "gelu" but mean its tanh approximation."""
        return super().prepare(raw | {"hidden_act": "gelu_pytorch_tanh"} if raw.get("hidden_act") == "gelu" else raw)


@architecture("gemma", config=Gemma, gguf=Gguf("gemma", shifted=("norm.weight",)), peft=Peft(QUERY_VALUE))
def forward(w: Weights, ids: Array, c: Gemma, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.d_model**0.5
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = norm(x, w, "model.norm", c)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Gemma, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(norm(x, w, "input_layernorm", c), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(norm(x, w, "post_attention_layernorm", c), w.at("mlp"), c)


def norm(x: Array, w: Weights, name: str, c: Gemma) -> Array:
    """RMS norm whose weight is stored as its distance from 1: [… D] -> [… D]."""
    return rms_norm(x, w, name, c.norm_eps, offset=1.0)
