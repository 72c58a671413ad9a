"""BitNet b1.58: Llama's block made for weights of −1, 0 and 1, with a norm more before the last map of each half.

The tensors are counted as numbers, as the BF16 file has them; the packed one holds several weights in a byte.
Source: arXiv 2402.17764, 2504.12285 (2B4T); tensor names as transformers 5.
"""

from __future__ import annotations

from ..errors import Problem
from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Rope,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Size, activation, config, fixed, key
from .llama import Llama
from .rope_config import read_rope


@config
class BitNet(Llama):
    """Hyperparameters of BitNet b1.58, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_kv_heads: Size = key("num_key_value_heads", 5)
    mlp_bias: bool = fixed(False)
    activation: str = key("hidden_act", "relu2")

    ignored = Llama.ignored | {"mlp_bias"}

    def check(self) -> None:
        super().check()
        if self.n_heads * self.d_head != self.d_model:
            raise Problem(
                f"num_attention_heads × head_dim = {int(self.n_heads * self.d_head)}, and hidden_size = "
                f"{int(self.d_model)}",
                "correct one of them: the norm between them has one width",
            )

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, 500_000.0)


GGUF = Gguf("bitnet", {"mlp.ffn_sub_norm": "ffn_sub_norm", "self_attn.attn_sub_norm": "attn_sub_norm"})


@architecture("bitnet", config=BitNet, gguf=GGUF)
def forward(w: Weights, ids: Array, c: BitNet, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: BitNet, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: BitNet, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(rms_norm(mixed, w, "attn_sub_norm", c.norm_eps), w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: BitNet) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "gate_proj", c.d_ff)) * linear(x, w, "up_proj", c.d_ff)
    return linear(rms_norm(wide, w, "ffn_sub_norm", c.norm_eps), w, "down_proj", c.d_model)
