"""Evolla: Llama 3's decoder, with layers that attend to a protein through gates, after their feed-forward network.

The protein's vectors are this model's input beside the text, as what an encoder read would be: `t5` explains the two
lengths. Their keys and values are made once. Source: bioRxiv 2025.01.05.630192; westlake-repl/Evolla-10B-hf by
transformers 5's class, whose tensor names these are.
"""

from __future__ import annotations

import numpy as np

from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Full, Rope, attend, embed, gelu, heads, layer_norm, linear, positions, rms_norm, rope_table, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Interval, Positive, Size, config, derived, fixed, key
from .llama import Llama, attention, feed_forward
from .rope_config import read_rope

# The adapters' norms, which no key sets.
CROSS_EPS, CROSS_FF_EPS = 1e-6, 1e-5


@config
class Evolla(Llama):
    """Hyperparameters of Evolla's text model, in forward order."""

    # protein
    n_source: Size = key("resampler_num_latents", 64)
    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_kv_heads: Size = key("num_key_value_heads", 8)
    # adapters
    n_adapters: Interval = key("aligner_num_add_layers", 8)
    d_cross_head: Size = derived(lambda c: c.d_model // c.n_heads)
    cross_bias: bool = key("aligner_enable_bias", True)
    times_wider: Interval = key("aligner_ffn_mult", 4)
    d_cross_ff: Size = derived(lambda c: c.d_model * c.times_wider)
    # head
    tied: bool = fixed(False)

    source_kind = "the vectors of a protein"
    caveat = (
        "Some layers look at a protein: the costs are those of a text behind one protein, without what the protein "
        "encoder computes."
    )
    ignored = Llama.ignored | frozenset(
        """aligner_attention_probs_dropout_prob resampler_depth resampler_dim_head resampler_ff_mult resampler_heads
        tie_word_embeddings""".split()
    )

    def check(self) -> None:
        super().check()
        self.must_divide("n_heads", "d_model")

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=500_000.0)

    @property
    def source_shape(self) -> tuple[int, int] | None:
        return self.n_source, self.d_model

    @property
    def kinds(self) -> list[str]:
        """Whether each layer looks at the protein."""
        every = max(int(self.n_layers) // self.n_adapters, 1)
        return ["layer" if (i + 1) % every else "with_protein" for i in range(self.n_layers)]


@architecture(
    "evolla",
    config=Evolla,
    classes={"evolla": "EvollaForProteinText2Text"},  # transformers 5.24, models/evolla
)
def forward(w: Weights, ids: Array, c: Evolla, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T], and the protein's vectors [M D] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source, c.d_model)
    read = source if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table, read)
    return unembed(rms_norm(x, w, "model.norm", c.norm_eps), w, "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Evolla, kind: str, table: RopeTable, read: Array) -> Array:
    """One transformer block; some of them attend to the protein afterwards: [T D], [M D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, Full(), table)
    x = x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)
    if kind == "layer":
        return x
    w = w.at("adapter")
    y = cross_attention(rms_norm(x, w, "attention_norm", CROSS_EPS), w, cache, c, read)
    x = x + np.tanh(w("gate_attention", 1)) * y
    return x + np.tanh(w("gate_ffw", 1)) * plain_feed_forward(layer_norm(x, w, "ff.norm", CROSS_FF_EPS), w.at("ff"), c)


@step(Role.CROSS_ATTENTION)
def cross_attention(x: Array, w: Weights, cache: KVCache, c: Evolla, read: Array) -> Array:
    """Let each token gather information from the protein: [T D], [M D] -> [T D]. Scores are divided by √N."""
    N, H = c.n_heads, c.d_cross_head
    q, k, v = (
        heads(linear(y, w, name, N * H, bias=True), N, H)
        for name, y in (("query", x), ("key_protein", read), ("value_protein", read))
    )
    k, v = cache.fill(Holds.SOURCE_KEYS, k, c.n_source), cache.fill(Holds.SOURCE_VALUES, v, c.n_source)
    return linear(attend(q, k, v, None, N**-0.5), w, "out_proj", c.d_model, bias=c.cross_bias)


@step(Role.FEED_FORWARD)
def plain_feed_forward(x: Array, w: Weights, c: Evolla) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(gelu(linear(x, w, "fc1", c.d_cross_ff)), w, "fc2", c.d_model)
