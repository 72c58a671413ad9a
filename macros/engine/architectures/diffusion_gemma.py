"""DiffusionGemma's text model: Gemma 4's block with experts, which refines a canvas of tokens in several steps.

A forward pass is a denoising step: every token of the canvas sees the earlier text and the whole canvas, and gets
scores for itself. The earlier text is read, and kept, by the same weights with a causal mask; only the numbers that
scale the layers are others there, and are left out here. In the first step, which this is, the vectors made of the last
step's scores are zero. Source: transformers, models/diffusion_gemma; tensor names as its decoder.
"""

from __future__ import annotations

from typing import Literal

from ..facts import Peft
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Canvas,
    CanvasAndWindow,
    SlidingWindow,
    apply_rope,
    attend,
    embed,
    feed_forward,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    soft_cap,
    unembed,
    unit_norm,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Positive, Raw, Size, activation, config, fixed, key
from .gemma4 import Gemma4, keys_and_values, mixture_of_experts


@config
class DiffusionGemma(Gemma4):
    """Hyperparameters of DiffusionGemma's text model, in forward order."""

    d_per_layer: Count = fixed(0)
    per_layer_vocab_size: Size | None = fixed(None)
    shared_layers: int = fixed(0)
    keys_are_values: bool = fixed(True)
    double_wide: bool = fixed(False)
    has_experts: bool = fixed(True)
    n_experts: Size = key("num_experts")
    n_experts_per_token: Size = key("top_k_experts", also=("num_experts_per_tok",))
    d_ff_expert: Size = key("moe_intermediate_size")
    logit_cap: Positive | None = key("final_logit_softcapping", 30.0)
    tied: Literal[True] = key("tie_word_embeddings", True)

    caveat = (
        "A step refines all tokens of a canvas, and several steps write it. Each step after the first also multiplies "
        "the last one’s scores by the token embeddings, which is left out."
    )
    rewritten = Gemma4.rewritten | {"attention_k_eq_v"}
    ignored = Gemma4.ignored | {
        "enable_moe_block",
        "num_kv_shared_layers",
        "hidden_size_per_layer_input",
        "vocab_size_per_layer_input",
        "use_double_wide_mlp",
    }

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """Gemma 4's, with the keys of full-attention layers as their values too, regardless of the config."""
        raw = super().prepare({**raw, "attention_k_eq_v": True})
        return {name: value for name, value in raw.items() if name != "attention_k_eq_v"}

    @property
    def masks(self) -> list[Mask]:
        """The mask of each layer besides the canvas; the last layer has full attention."""
        return [CanvasAndWindow(mask.size) if isinstance(mask, SlidingWindow) else Canvas() for mask in super().masks]


@architecture("diffusion_gemma_text", config=DiffusionGemma, peft=Peft(linear_router=True))
def forward(w: Weights, ids: Array, c: DiffusionGemma, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token of the canvas: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.decoder.embed_tokens.weight", c.vocab_size, c.d_model) * c.d_model**0.5
    x = condition(x, 0 * x, w.at("model.decoder.self_conditioning"), c)
    places = positions(ids, cache)
    tables = {mask: rope_table(places, c.head(mask), c.rope_of(mask)) for mask in dict.fromkeys(c.masks)}
    for mask, w_layer, cache_layer in w.layers("model.decoder.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, tables[mask])
    x = rms_norm(x, w, "model.decoder.norm", c.norm_eps)
    logits = unembed(x, w, "model.decoder.embed_tokens.weight", c.vocab_size, last=last)
    return logits if c.logit_cap is None else soft_cap(logits, c.logit_cap)


@step(Role.FEED_FORWARD)
def condition(x: Array, guessed: Array, w: Weights, c: DiffusionGemma) -> Array:
    """Add the previous step's prediction, through a gated network: [T D], [T D] -> [T D]."""
    guessed = feed_forward(rms_norm(guessed, w, "pre_norm", c.norm_eps), w, c.d_ff, activation(c.activation))
    return unit_norm(x + guessed, c.norm_eps)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: DiffusionGemma, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    y = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    x = x + rms_norm(y, w, "post_attention_layernorm", c.norm_eps)
    y = rms_norm(x, w, "pre_feedforward_layernorm", c.norm_eps)
    y = feed_forward(y, w.at("mlp"), c.d_ff, activation(c.activation))
    y = rms_norm(y, w, "post_feedforward_layernorm_1", c.norm_eps)
    y = y + rms_norm(mixture_of_experts(x, w, c), w, "post_feedforward_layernorm_2", c.norm_eps)
    x = x + rms_norm(y, w, "post_feedforward_layernorm", c.norm_eps)
    return x * w.buffer("layer_scalar", 1)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: DiffusionGemma, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from the earlier text and the whole canvas: [T D] -> [T D]."""
    N, H = c.n_heads, c.head(mask)
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    q = apply_rope(rms_norm(q, w, "q_norm", c.norm_eps), table)
    k, v = keys_and_values(x, w, c, mask, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    return linear(attend(q, k, v, None, 1.0), w, "o_proj", c.d_model, bias=c.attention_bias)
