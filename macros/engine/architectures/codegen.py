"""CodeGen: GPT-J's block with queries, values and keys in one matrix, laid out for four accelerators.

Source: arXiv 2203.13474; tensor names as the published files.
"""

from __future__ import annotations

from ..errors import Problem
from ..facts import Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope_pairs,
    attend,
    causal_mask,
    embed,
    layer_norm,
    linear,
    positions,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Size, config, key
from .gptj import GPTJ, feed_forward

# The accelerators that each have some of the heads, with their queries, values and keys side by side.
PARTS = 4


@config
class CodeGen(GPTJ):
    """Hyperparameters of CodeGen, in forward order."""

    d_rotary: Size = key("rotary_dim", 64)

    def check(self) -> None:
        super().check()
        if self.n_heads % PARTS:
            raise Problem(
                f"n_head = {int(self.n_heads)}: expected a multiple of {PARTS}",
                "correct it: the matrix of queries, values and keys is laid out in that many parts",
            )


@architecture("codegen", config=CodeGen, peft=Peft(("qkv_proj",)))
def forward(w: Weights, ids: Array, c: CodeGen, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.wte.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, Rope(partial=c.d_rotary / c.d_head))
    for _, w_layer, cache_layer in w.layers("transformer.h", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = layer_norm(x, w, "transformer.ln_f", c.norm_eps)
    head = "transformer.wte.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last, bias="lm_head.bias")


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: CodeGen, table: RopeTable) -> Array:
    """One transformer block, both halves in parallel: [T D] -> [T D]."""
    y = layer_norm(x, w, "ln_1", c.norm_eps)
    return x + attention(y, w.at("attn"), cache, c, table) + feed_forward(y, w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: CodeGen, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    T, N, H = x.shape[0], c.n_heads, c.d_head
    qvk = linear(x, w, "qkv_proj", 3 * c.d_model).reshape(T, PARTS, 3, N // PARTS, H)
    q, v, k = (qvk[:, :, i].reshape(T, N, H) for i in range(3))
    q, k = apply_rope_pairs(q, table), apply_rope_pairs(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5), w, "out_proj", c.d_model)
