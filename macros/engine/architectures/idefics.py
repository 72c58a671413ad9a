"""IDEFICS: Llama's decoder, with layers in between that attend to images first, through gates, as in Flamingo.

The image's vectors are this model's input beside the text, as what an encoder read would be: `t5` explains the two
lengths. Their keys and values are made once. The embedding and the head have a table of their own for added tokens.
Source: arXiv 2306.16527; HuggingFaceM4/idefics-9b by transformers 5's class, whose tensor names these are.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Full, attend, embed, heads, linear, positions, rms_norm, rope_table, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Interval, Raw, Size, config, derived, fixed, fold_table, key, keys_of
from .llama import Llama, attention, feed_forward
from .rope_config import OLDER_ROPE_KEYS

TABLES = ("vision_config", "perceiver_config")  # of the towers, whose sizes determine the text model's second input
VISION, PERCEIVER = (f"{table}." for table in TABLES)


@config
class Idefics(Llama):
    """Hyperparameters of IDEFICS' text model, in forward order."""

    # embedding
    n_added: Count = key("additional_vocab_size", 0)
    # image
    d_image: Size = key(VISION + "embed_dim", 768, also=(VISION + "hidden_size",))
    image_size: Interval = key(VISION + "image_size", 224)
    patch: Interval = key(VISION + "patch_size", 14)
    resampled: bool = key("use_resampler", False)
    n_latents: Interval = key(PERCEIVER + "resampler_n_latents", 64)
    n_source: Size = derived(lambda c: c.n_latents if c.resampled else (c.image_size // c.patch) ** 2 + 1)
    # layers
    interval: Interval = key("cross_layer_interval", 1)
    # attention
    n_kv_heads: Size = derived(lambda c: c.n_heads)
    d_head: Size = derived(lambda c: c.default_head_dim())
    attention_bias: bool = fixed(False)
    qk_norm: bool = key("qk_layer_norms", False)  # of images
    gates: Literal["float", "vector"] = key("alpha_type", "float")
    # feed-forward
    mlp_bias: bool = fixed(False)

    caveat = (
        "Some layers look at an image: the costs are those of a text behind one image, without what the vision tower "
        "computes."
    )
    rewritten = OLDER_ROPE_KEYS | frozenset(TABLES)
    ignored = Llama.ignored | frozenset(
        """alpha_initializer alphas_initializer_range cross_layer_activation_function ffn_dim freeze_lm_head
        freeze_text_layers freeze_text_module_exceptions freeze_vision_layers freeze_vision_module_exceptions
        max_new_tokens word_embed_proj_dim""".split()
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The towers' keys about the image's vectors, each with its table."""
        raw = super().prepare(raw)
        for table in TABLES:
            raw = fold_table(raw, table)
        return {
            name: value for name, value in raw.items() if name in keys_of(cls) or name.partition(".")[0] not in TABLES
        }

    def check(self) -> None:
        super().check()
        self.must_not_exceed("patch", "image_size")
        self.must_divide("interval", "n_layers")

    @property
    def source_shape(self) -> tuple[int, int] | None:
        return self.n_source, self.d_image

    @property
    def kinds(self) -> list[str]:
        """Whether each layer looks at the image before the text."""
        return ["layer" if i % self.interval else "with_image" for i in range(self.n_layers)]

    @property
    def numbers(self) -> dict[int, int]:
        """The number of the image-attention block for each layer that follows one."""
        return {i: i // self.interval for i in range(0, self.n_layers, self.interval)}


@architecture(
    "idefics",
    config=Idefics,
    classes={"idefics": "IdeficsForVisionText2Text"},  # transformers 5.24, models/idefics
)
def forward(w: Weights, ids: Array, c: Idefics, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T], and the image's vectors [M E] -> [T V+A], or [1 V+A] with `last`."""
    source = cache.source(c.n_source, c.d_image)
    read = source if source.shape[0] else np.zeros((0, c.d_image), np.float32)
    x = embed_both(ids, w.at("model.embed_tokens"), c)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table, read)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    head, added = "lm_head", "lm_head.additional_fc"
    if c.tied:
        head, added = "model.embed_tokens", "model.embed_tokens.additional_embedding"
    logits = unembed(x, w, f"{head}.weight", c.vocab_size, last=last)
    if not c.n_added:
        return logits
    return np.concatenate([logits, unembed(x, w, f"{added}.weight", c.n_added, last=last)], axis=-1)


def embed_both(ids: Array, w: Weights, c: Idefics) -> Array:
    """The rows of the vocabulary's table, and those of the added tokens', whose ids come after it: [T] -> [T D]."""
    if not c.n_added:
        return embed(ids, w, "weight", c.vocab_size, c.d_model)
    x = embed(np.minimum(ids, c.vocab_size - 1), w, "weight", c.vocab_size, c.d_model)
    y = embed(np.maximum(ids - c.vocab_size, 0), w, "additional_embedding.weight", c.n_added, c.d_model)
    return np.where(ids[:, None] < c.vocab_size, x, y)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Idefics, kind: str, table: RopeTable, read: Array) -> Array:
    """One transformer block, before which some look at the image: [T D], [M E] -> [T D]."""
    if kind == "with_image":
        x = look(x, w.beside("model.gated_cross_attn_layers", c.numbers), cache, c, read)
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, Full(), table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


def look(x: Array, w: Weights, cache: KVCache, c: Idefics, read: Array) -> Array:
    """One block that attends to the image, with a gate on both halves: [T D], [M E] -> [T D]."""
    shape = (1,) if c.gates == "float" else (1, 1, c.d_model)
    y = cross_attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("cross_attn"), cache, c, read)
    x = x + np.tanh(w("alpha_cross_attn", *shape).reshape(shape[-1:])) * y
    y = feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)
    return x + np.tanh(w("alpha_dense", *shape).reshape(shape[-1:])) * y


@step(Role.CROSS_ATTENTION)
def cross_attention(x: Array, w: Weights, cache: KVCache, c: Idefics, read: Array) -> Array:
    """Let each token gather information from the image: [T D], [M E] -> [T D]."""
    N, H = c.n_heads, c.d_head
    q, k, v = (heads(linear(y, w, f"{name}_proj", N * H), N, H) for name, y in (("q", x), ("k", read), ("v", read)))
    if c.qk_norm:
        q, k = rms_norm(q, w, "q_layer_norm", c.norm_eps), rms_norm(k, w, "k_layer_norm", c.norm_eps)
    k, v = cache.fill(Holds.SOURCE_KEYS, k, c.n_source), cache.fill(Holds.SOURCE_VALUES, v, c.n_source)
    return linear(attend(q, k, v, None, H**-0.5), w, "o_proj", c.d_model)
