"""GPT-BigCode (SantaCoder, StarCoder): GPT-2's block whose query heads share one key and one value.

Source: arXiv 2301.03988 (SantaCoder), 2305.06161 (StarCoder); tensor names as the published files.
"""

from __future__ import annotations

import numpy as np

from ..facts import Gguf, Peft
from ..interface import Array, KVCache, Weights
from ..ops import Full, attend, causal_mask, embed, embed_positions, heads, layer_norm, linear, positions, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Size, config, derived, fixed, key
from .gpt2 import GPT2
from .tasks import OLD_CLASSIFIER


@config
class GPTBigCode(GPT2):
    """Hyperparameters of GPT-BigCode, in forward order."""

    n_positions: Size = key("n_positions", also=("max_position_embeddings",))
    d_model: Size = key("n_embd", also=("hidden_size",))
    n_layers: Size = key("n_layer", also=("num_hidden_layers",))
    n_heads: Size = key("n_head", also=("num_attention_heads",))
    multi_query: bool = key("multi_query", True)
    n_kv_heads: Size = derived(lambda c: 1 if c.multi_query else c.n_heads)
    scale_by_layer: bool = fixed(False)
    activation: str = key("activation_function", "gelu_pytorch_tanh")

    ignored = GPT2.ignored | {
        "attention_softmax_in_fp32",
        "scale_attention_softmax_in_fp32",
        "num_key_value_heads",
        "inference_runner",
        "max_batch_size",
        "pad_key_length",
        "pre_allocate_kv_cache",
        "validate_runner_input",
        "runner_max_sequence_length",
        "fused_softmax",
    }


@architecture(
    "gpt_bigcode",
    config=GPTBigCode,
    scaled_by_awq="c_fc",
    optional_prefix="transformer.",
    gguf=Gguf("starcoder"),
    heads=OLD_CLASSIFIER,
    peft=Peft(("c_attn",)),
)
def forward(w: Weights, ids: Array, c: GPTBigCode, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.wte.weight", c.vocab_size, c.d_model)
    x = x + embed_positions(positions(ids, cache), w, "transformer.wpe.weight", c.n_positions, c.d_model)
    for _, w_layer, cache_layer in w.layers("transformer.h", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    x = layer_norm(x, w, "transformer.ln_f", c.norm_eps)
    return unembed(x, w, "transformer.wte.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GPTBigCode) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(layer_norm(x, w, "ln_1", c.norm_eps), w.at("attn"), cache, c)
    return x + feed_forward(layer_norm(x, w, "ln_2", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: GPTBigCode) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    qkv = linear(x, w, "c_attn", N * H + 2 * K * H, bias=True)
    if c.multi_query:
        q, k, v = np.split(qkv, [N * H, N * H + H], axis=-1)
        q, k, v = heads(q, N, H), heads(k, K, H), heads(v, K, H)
    else:
        q, k, v = np.split(heads(qkv, N, 3 * H), 3, axis=-1)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5 if c.scale_attention else 1.0)
    return linear(mixed, w, "c_proj", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: GPT2) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(c.act(linear(x, w, "c_fc", c.d_ff, bias=True)), w, "c_proj", c.d_model, bias=True)
