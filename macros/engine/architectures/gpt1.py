"""The original GPT: GPT-2's parts, with the norm after each half of the block instead of before it.

Source: Radford et al. 2018; tensor names as transformers' OpenAIGPTLMHeadModel.
"""

from __future__ import annotations

from typing import Literal

from ..interface import Array, KVCache, Weights
from ..ops import Activation, embed, embed_positions, gelu_tanh, layer_norm, positions, unembed
from ..steps import Role, step
from . import architecture
from .config import Size, activation, config, derived, fixed, key
from .gpt2 import GPT2, attention, feed_forward


@config
class GPT1(GPT2):
    """Hyperparameters of GPT, in forward order."""

    n_positions: Size = key("n_positions", also=("max_position_embeddings",))
    d_model: Size = key("n_embd", also=("hidden_size",))
    n_layers: Size = key("n_layer", also=("num_hidden_layers",))
    n_heads: Size = key("n_head", also=("num_attention_heads",))
    scale_attention: bool = fixed(True)
    scale_by_layer: bool = fixed(False)
    d_ff: Size = derived(lambda c: 4 * c.d_model)
    activation: Literal["gelu", "relu", "silu", "swish"] = key("afn", "gelu")

    ignored = frozenset({"n_ctx", "n_special", "predict_special_tokens"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")

    @property
    def act(self) -> Activation:
        """GPT's own `gelu` is the tanh form."""
        return gelu_tanh if self.activation == "gelu" else activation(self.activation)


@architecture("openai-gpt", config=GPT1, optional_prefix="transformer.")
def forward(w: Weights, ids: Array, c: GPT1, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.tokens_embed.weight", c.vocab_size, c.d_model)
    x = x + embed_positions(positions(ids, cache), w, "transformer.positions_embed.weight", c.n_positions, c.d_model)
    for _, w_layer, cache_layer in w.layers("transformer.h", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    head = "transformer.tokens_embed.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GPT1) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = layer_norm(x + attention(x, w.at("attn"), cache, c), w, "ln_1", c.norm_eps)
    return layer_norm(x + feed_forward(x, w.at("mlp"), c), w, "ln_2", c.norm_eps)
