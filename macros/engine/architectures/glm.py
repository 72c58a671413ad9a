"""GLM-4: Llama's block with a fused gate, few key/value heads, and rotary positions on half of each head, in pairs.

The 0414 release norms each half's output too, and so do the text models of GLM-4.1V and GLM-OCR: in a text without
images, all three parts of a position are equal. Source: arXiv 2406.12793, 2507.01006 (GLM-4.1V); tensor names as
transformers' files.
"""

from __future__ import annotations

from typing import Any

from ..facts import Gguf
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope_pairs,
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
from .config import MEDIA_TOKENS, Positive, Size, config, fixed, key
from .llama import Llama
from .phi3 import feed_forward
from .predicted import Module, Place, angles
from .rope_config import read_rope


@config
class GLM(Llama):
    """Hyperparameters of GLM-4, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 2)
    d_head: Size = key("head_dim", 128)
    norm_eps: Positive = key("rms_norm_eps", 1.5625e-07)
    attention_bias: bool = key("attention_bias", True)
    norms_outputs: bool = fixed(False)

    @property
    def rope(self) -> Rope:
        return read_rope({"partial_rotary_factor": 0.5, **self.rope_parameters})


@config
class GLM4(GLM):
    """Hyperparameters of GLM-4-0414, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1.5625e-07)
    norms_outputs: bool = fixed(True)


@config
class GLM4V(GLM4):
    """Hyperparameters of the text model of GLM-4.1V, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    d_head: Size = key("head_dim", lambda c: c.default_head_dim())
    attention_bias: bool = fixed(True)

    ignored = GLM4.ignored | MEDIA_TOKENS | {"attention_bias"}

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)


@config
class GlmOcr(GLM4V):
    """Hyperparameters of the text model of GLM-OCR, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 8)
    attention_bias: bool = fixed(False)


GGUF = Gguf("glm4", {"post_self_attn_layernorm": "post_attention_norm", "post_mlp_layernorm": "post_ffw_norm"})


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    return layer(x, w, cache, c, angles(ids, cache, c.d_head, c.rope))


MTP = Module(draft_layer)


@architecture("glm_ocr_text", config=GlmOcr, gguf=GGUF, predicts=MTP, rounds_heads={"glm_ocr_text": True})
@architecture("glm4v_text", config=GLM4V, gguf=GGUF, rounds_heads={"glm4v_text": True})
@architecture("glm", config=GLM, gguf=Gguf("chatglm", outside={"output_layer": "output"}))
@architecture("glm4", config=GLM4, gguf=GGUF)
def forward(w: Weights, ids: Array, c: GLM, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GLM, table: RopeTable) -> Array:
    """One transformer block, in the 0414 release with a norm after each half too: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    x = x + (rms_norm(y, w, "post_self_attn_layernorm", c.norm_eps) if c.norms_outputs else y)
    y = feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)
    return x + (rms_norm(y, w, "post_mlp_layernorm", c.norm_eps) if c.norms_outputs else y)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: GLM, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    q, k = apply_rope_pairs(q, table), apply_rope_pairs(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5), w, "o_proj", c.d_model)
