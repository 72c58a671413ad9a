"""Granite 3: Llama's block with four multipliers, for one learning rate at every size. HyperCLOVA X, MiniCPM and
Tele-FLM are alike.

Source: ibm-granite/granite-3.0-language-models (paper.pdf), after arXiv 2203.03466 (muP); 2404.06395 (MiniCPM);
transformers 5, models/hyperclovax; vLLM, model_executor/models/teleflm.py; tensor names as published.
"""

from __future__ import annotations

from ..errors import Problem
from ..facts import UNREAD, Gguf, Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import apply_rope, attend, causal_mask, embed, heads, linear, positions, rms_norm, rope_table, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Size, config, derived, fixed, key
from .gguf_tables import GRANITE_HYBRID, GRANITE_MOE
from .llama import Llama, feed_forward


@config
class Granite(Llama):
    """Hyperparameters of Granite, in forward order."""

    embedding_multiplier: float = key("embedding_multiplier", 1.0)
    attention_multiplier: float = key("attention_multiplier", 1.0)
    residual_multiplier: float = key("residual_multiplier", 1.0)
    logits_divisor: Positive = key("logits_scaling", 1.0)
    norms_outputs: bool = fixed(False)


@config
class HyperClovaX(Granite):
    """Hyperparameters of HyperCLOVA X, in forward order; it also normalizes the output of each half of a block."""

    d_head: Size = key("head_dim", lambda c: c.default_head_dim())
    attention_multiplier: float = key("attention_multiplier", lambda c: c.d_head**-0.5)
    norms_outputs: bool = key("use_post_norm", True)
    logits_multiplier: Positive = key("logits_scaling", 1.0)
    logits_divisor: Positive = derived(lambda c: 1 / c.logits_multiplier)


@config
class MiniCPM(Granite):
    """Hyperparameters of MiniCPM 1 and 2, in forward order: its multipliers, in Granite's words."""

    embedding_multiplier: float = key("scale_emb", 1.0)
    base_width: Positive = key("dim_model_base", 1.0)
    scale_depth: Positive = key("scale_depth", 1.0)
    attention_multiplier: float = derived(lambda c: c.d_head**-0.5)
    residual_multiplier: float = derived(lambda c: c.scale_depth / c.n_layers**0.5)
    logits_divisor: Positive = derived(lambda c: c.d_model / c.base_width)

    n_experts: int = key("num_experts", 0)

    ignored = Granite.ignored | {"rope_scaling_type"}

    def check(self) -> None:
        super().check()
        if self.n_experts:
            raise Problem(
                f"num_experts = {self.n_experts}: MiniCPM-MoE is not read", "give the config of MiniCPM 1 or 2"
            )


@config
class TeleFLM(Granite):
    """Hyperparameters of Tele-FLM, in forward order: its two multipliers, in Granite's words."""

    scaled: bool = key("use_mup", False)
    of_input: Positive = key("input_mult", 1.0)
    of_output: Positive = key("output_mult", 1.0)
    of_width: Positive = key("mup_scale_factor", 1.0)
    embedding_multiplier: float = derived(lambda c: c.of_input if c.scaled else 1.0)
    attention_multiplier: float = derived(lambda c: c.d_head**-0.5)
    residual_multiplier: float = fixed(1.0)
    logits_divisor: Positive = derived(lambda c: c.of_width / c.of_output if c.scaled else 1.0)


@config
class GraniteDocling(Granite):
    """Hyperparameters of the text model of Granite Docling, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_kv_heads: Size = key("num_key_value_heads", 4)
    tied: bool = key("tie_word_embeddings", True)
    embedding_multiplier: float = key("embedding_multiplier", 12.0)
    attention_multiplier: float = key("attention_multiplier", 0.015625)
    residual_multiplier: float = key("residual_multiplier", 0.263)
    logits_divisor: Positive = key("logits_scaling", 4.0)


GGUF = Gguf(
    "granite",
    GRANITE_MOE,
    becomes=((".mamba.", GRANITE_HYBRID), (".block_sparse_moe.", Gguf("granitemoe", GRANITE_MOE, in_pairs=True))),
    in_pairs=True,
)


@architecture("minicpm", config=MiniCPM, gguf=Gguf("minicpm"))
@architecture("TeleFLM", config=TeleFLM)
@architecture("hyperclovax", config=HyperClovaX)
@architecture("granite_docling_text", config=GraniteDocling)
@architecture(
    "granite",
    config=Granite,
    gguf=GGUF,
    mlx=Mlx(in_8_bits=("self_attn.o_proj", "mlp.down_proj", "lm_head")),
    rounds_heads={"granite": True},
)
@architecture("granite4_vision_text", config=Granite, gguf=UNREAD, rounds_heads={"granite4_vision_text": True})
def forward(w: Weights, ids: Array, c: Granite, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.embedding_multiplier
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last) / c.logits_divisor


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Granite, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    y = rms_norm(y, w, "post_norm1", c.norm_eps) if c.norms_outputs else y
    x = x + y * c.residual_multiplier
    y = feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)
    y = rms_norm(y, w, "post_norm2", c.norm_eps) if c.norms_outputs else y
    return x + y * c.residual_multiplier


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Granite, mask: Mask, table: RopeTable | None) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    if table is not None:
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.attention_multiplier)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)
