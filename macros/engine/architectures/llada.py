"""LLaDA and Dream: Llama's and Qwen2's blocks as models that write by denoising. Each token attends to all others.

A step reads the whole text, some of whose tokens are masks, and scores every token; nothing is kept for the next one.
Sources: arXiv 2502.09992, 2508.15487; GSAI-ML/LLaDA-8B-Instruct and Dream-org/Dream-v0-Instruct-7B, whose
modeling_llada.py and modeling_dream.py these are, with their tensor names.
"""

from __future__ import annotations

from typing import Literal

from ..facts import Gguf
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Rope, apply_rope, attend, embed, heads, linear, positions, rms_norm, rope_table, silu, unembed
from ..steps import Role, step
from . import architecture
from .config import Config, Positive, Size, config, derived, fixed, key
from .llama import Llama
from .llama import feed_forward as gated

DENOISING = (
    "This model writes by denoising: a step reads the whole text, the part that is still to be written included, and "
    "several steps write it. Prefill is such a step; figures of a decode step are for a text of one token."
)


@config
class LLaDA(Config):
    """Hyperparameters of LLaDA, in forward order."""

    # embedding
    vocab_size: Size = key("embedding_size", also=("vocab_size",))
    d_model: Size = key("d_model", also=("hidden_size",))
    normed: Literal[False] = key("input_emb_norm", False)
    # layers
    n_layers: Size = key("n_layers", also=("num_hidden_layers",))
    block_type: Literal["llama"] = key("block_type", "llama")
    norm: Literal["rms"] = key("layer_norm_type", "rms")
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    # attention
    n_heads: Size = key("n_heads", also=("num_attention_heads",))
    n_kv_heads: Size = key("n_kv_heads", lambda c: c.n_heads, also=("num_key_value_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    qk_norm: Literal[False] = key("attention_layer_norm", False)
    qkv_bias: bool = key("include_qkv_bias", False)
    bias: bool = key("include_bias", False)
    turns: Literal[True] = key("rope", True)
    alibi: Literal[False] = key("alibi", False)
    rope_theta: Positive = key("rope_theta", 10_000.0)
    # feed-forward
    d_ff: Size = key("mlp_hidden_size", also=("intermediate_size",))
    activation: Literal["silu"] = key("activation_type", "silu")
    # head
    scaled: Literal[False] = key("scale_logits", False)
    tied: bool = key("weight_tying", False)

    ignored = frozenset(
        """alibi_bias_max attention_layer_norm_with_affine bias_for_layer_norm block_group_size flash_attention
        init_cutoff_factor init_device init_fn init_std layer_norm_with_affine mask_token_id mlp_ratio
        multi_query_attention precision rope_full_precision tie_word_embeddings train_max_sequence_length""".split()
    )
    caveat = DENOISING

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        self.must_divide("n_kv_heads", "n_heads")

    @property
    def rope(self) -> Rope:
        return Rope(self.rope_theta)


@config
class Dream(Llama):
    """Hyperparameters of Dream, in forward order: Qwen2's."""

    attention_bias: bool = fixed(True)
    mlp_bias: bool = fixed(False)

    ignored = Llama.ignored | {
        "attention_bias",
        "full_attn_mask_token_id",
        "mask_token_id",
        "max_window_layers",
        "mlp_bias",
        "sliding_window",
        "use_mrope",
        "use_sliding_window",
    }
    caveat = DENOISING


GGUF = Gguf(
    "llada",
    {
        "attn_norm": "attn_norm",
        "q_proj": "attn_q",
        "k_proj": "attn_k",
        "v_proj": "attn_v",
        "attn_out": "attn_output",
        "ff_norm": "ffn_norm",
        "ff_proj": "ffn_gate",
        "up_proj": "ffn_up",
        "ff_out": "ffn_down",
    },
    {"ff_out": "output"},
    in_pairs=True,
)


@architecture(
    "Dream",
    config=Dream,
    gguf=Gguf("dream"),
    classes={
        "Dream": "DreamModel"
    },  # Dream-org/Dream-v0-Instruct-7B, modeling_dream.py; llama.cpp, conversion/dream.py
)
def dream(w: Weights, ids: Array, c: Dream, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, _ in w.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = dream_layer(x, w_layer, c, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def dream_layer(x: Array, w: Weights, c: Dream, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + linear(attention(y, w.at("self_attn"), c, c.attention_bias, table), w.at("self_attn"), "o_proj", c.d_model)
    return x + gated(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@architecture(
    "llada",
    config=LLaDA,
    gguf=GGUF,
    classes={"llada": "LLaDAModelLM"},  # GSAI-ML/LLaDA-8B-Instruct, modeling_llada.py; llama.cpp, conversion/llada.py
)
def forward(w: Weights, ids: Array, c: LLaDA, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    x = embed(ids, w, "model.transformer.wte.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, _ in w.layers("model.transformer.blocks", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, table)
    x = rms_norm(x, w, "model.transformer.ln_f", c.norm_eps)
    head = "model.transformer.wte.weight" if c.tied else "model.transformer.ff_out.weight"
    return unembed(x, w, head, c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: LLaDA, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    mixed = attention(rms_norm(x, w, "attn_norm", c.norm_eps), w, c, c.bias or c.qkv_bias, table)
    x = x + linear(mixed, w, "attn_out", c.d_model, bias=c.bias)
    return x + feed_forward(rms_norm(x, w, "ff_norm", c.norm_eps), w, c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: LLaDA | Dream, bias: bool, table: RopeTable) -> Array:
    """Let each token gather information from all tokens, including later ones: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=bias), c.n_kv_heads, c.d_head)
    return attend(apply_rope(q, table), apply_rope(k, table), v, None, c.d_head**-0.5)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: LLaDA) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    wide = silu(linear(x, w, "ff_proj", c.d_ff, bias=c.bias)) * linear(x, w, "up_proj", c.d_ff, bias=c.bias)
    return linear(wide, w, "ff_out", c.d_model, bias=c.bias)
