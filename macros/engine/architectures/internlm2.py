"""InternLM 2 and 2.5: Llama's block, with queries, keys and values of each key/value head side by side in one matrix.

Source: arXiv 2403.17297; internlm/internlm2-7b, whose modeling_internlm2.py and tensor names these are.
"""

from __future__ import annotations

from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import apply_rope, attend, causal_mask, embed, linear, positions, rms_norm, rope_table, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Size, activation, config, fixed, key
from .llama import Llama


@config
class InternLM2(Llama):
    """Hyperparameters of InternLM 2, in forward order."""

    attention_bias: bool = key("bias", True)
    d_head: Size = key("head_dim", lambda c: c.default_head_dim())
    mlp_bias: bool = fixed(False)

    ignored = Llama.ignored | {"attention_bias", "mlp_bias"}


GGUF = Gguf(
    "internlm2",
    {
        "attention_norm": "attn_norm",
        "attention.wqkv": "heads of each:attn_q/attn_k/attn_v",
        "attention.wo": "attn_output",
    },
    {"tok_embeddings": "token_embd", "output": "output"},
)


@architecture("internlm2", config=InternLM2, gguf=GGUF)
def forward(w: Weights, ids: Array, c: InternLM2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.tok_embeddings.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.tok_embeddings.weight" if c.tied else "output.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: InternLM2, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "attention_norm", c.norm_eps), w.at("attention"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "ffn_norm", c.norm_eps), w.at("feed_forward"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: InternLM2, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    groups = int(N) // int(K)
    both = linear(x, w, "wqkv", (N + 2 * K) * H, bias=c.attention_bias).reshape(x.shape[0], K, groups + 2, H)
    q, k, v = both[:, :, :groups].reshape(x.shape[0], N, H), both[:, :, groups], both[:, :, groups + 1]
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5)
    return linear(mixed, w, "wo", c.d_model, bias=c.attention_bias)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: InternLM2) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    return linear(activation(c.activation)(linear(x, w, "w1", c.d_ff)) * linear(x, w, "w3", c.d_ff), w, "w2", c.d_model)
