"""Gemma 2: Gemma's block with norms around each half, a window in every other layer, soft caps on scores and logits.

Source: arXiv 2408.00118, 2510.15001 (VaultGemma); tensor names as the published files.
"""

from __future__ import annotations

from ..facts import QUERY_VALUE, Gguf, Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import apply_rope, attend, causal_mask, embed, heads, linear, positions, rope_table, soft_cap, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Size, config, fixed, full_every, key, masks_of
from .gemma import Gemma, norm
from .gguf_tables import AFTER
from .llama import feed_forward


@config
class Gemma2(Gemma):
    """Hyperparameters of Gemma 2, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 4)
    activation: str = key("hidden_activation", "gelu_pytorch_tanh")
    query_scalar: Positive = key("query_pre_attn_scalar", 256)
    sliding_window: Size | None = key("sliding_window", 4096)
    layer_types: list[str] = key("layer_types", lambda c: full_every(2, c.n_layers))
    attention_cap: Positive | None = key("attn_logit_softcapping", 50.0)
    logit_cap: Positive | None = key("final_logit_softcapping", 30.0)

    norms_outputs: bool = fixed(True)

    ignored = Gemma.ignored | {"hidden_act"}

    @property
    def masks(self) -> list[Mask]:
        return masks_of(self.layer_types, self.n_layers, self.sliding_window)


@config
class VaultGemma(Gemma2):
    """Hyperparameters of VaultGemma, in forward order: Gemma 2's without the norms after each half."""

    norms_outputs: bool = fixed(False)


@architecture("vaultgemma", config=VaultGemma)
@architecture(
    "gemma2",
    config=Gemma2,
    gguf=Gguf("gemma2", AFTER, is_windowed=True, shifted=("norm.weight",)),
    peft=Peft(QUERY_VALUE),
)
def forward(w: Weights, ids: Array, c: Gemma2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.d_model**0.5
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = norm(x, w, "model.norm", c)
    logits = unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)
    return logits if c.logit_cap is None else soft_cap(logits, c.logit_cap)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Gemma2, mask: Mask, table: RopeTable) -> Array:
    """One transformer block, with a norm before and after each half: [T D] -> [T D]."""
    y = attention(norm(x, w, "input_layernorm", c), w.at("self_attn"), cache, c, mask, table)
    x = x + (norm(y, w, "post_attention_layernorm", c) if c.norms_outputs else y)
    y = feed_forward(norm(x, w, "pre_feedforward_layernorm", c), w.at("mlp"), c)
    return x + (norm(y, w, "post_feedforward_layernorm", c) if c.norms_outputs else y)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Gemma2, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.query_scalar**-0.5, cap=c.attention_cap)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)
