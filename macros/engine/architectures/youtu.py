"""Youtu-LLM: Llama's block with the latent attention of DeepSeek-V2, and no experts.

Source: tencent/Youtu-LLM-2B, config.json; tensor names of transformers.
"""

from __future__ import annotations

from ..facts import Gguf
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import embed, feed_forward, positions, rms_norm, rope_table, unembed
from ..steps import Role, step
from . import architecture
from .config import Size, activation, config, key
from .deepseek_v2 import Latent, attention


@config
class Youtu(Latent):
    """Hyperparameters of Youtu-LLM, in forward order."""

    q_lora_rank: Size | None = key("q_lora_rank", 1536)
    tied: bool = key("tie_word_embeddings", True)

    ignored = Latent.ignored | {"mlp_bias"}


@architecture("youtu", "youtu_llm", config=Youtu, gguf=Gguf("deepseek2", is_latent=True))
def forward(w: Weights, ids: Array, c: Youtu, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.qk_rope_head_dim, c.rope)
    for _, w_layer, cache_layer in w.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Youtu, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
    return x + feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))
