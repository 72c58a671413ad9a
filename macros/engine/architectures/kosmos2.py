"""The text models of Kosmos-2 and Kosmos-2.5: XGLM's block with a norm inside of each half.

An image's vectors stand among those of the text. Sources: arXiv 2306.14824, 2309.11419; tensor names as transformers'
classes of the text models.
"""

from __future__ import annotations

from ..interface import Array, KVCache, Weights
from ..ops import Full, attend, causal_mask, embed, heads, layer_norm, linear, positions, unembed
from ..steps import Holds, Role, step
from . import architecture
from .bart import must_be_even
from .config import Config, Count, Positive, Size, activation, config, derived, fixed, key
from .xglm import sinusoids


@config
class Kosmos2(Config):
    """Hyperparameters of Kosmos-2's text model, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("embed_dim", also=("hidden_size",))
    scale_embedding: bool = key("scale_embedding", True)
    padding: Count = key("pad_token_id", 1)
    # layers
    n_layers: Size = key("layers", also=("num_hidden_layers",))
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    # attention
    n_heads: Size = key("attention_heads", also=("num_attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    # feed-forward
    d_ff: Size = key("ffn_dim")
    activation: str = key("activation_function", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    # Whether attention's output is normalized before the output projection.
    norms_inside: bool = fixed(True)

    ignored = frozenset({"activation_dropout", "layerdrop", "init_std"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)
        must_be_even(self.d_model)


@config
class Kosmos25(Kosmos2):
    """Hyperparameters of Kosmos-2.5's text model, in forward order."""

    n_segments: Size = derived(lambda c: 2)  # of the text, of an image
    norms_inside: bool = fixed(False)


@architecture(
    "kosmos_2_text_model",
    config=Kosmos2,
    classes={"kosmos_2_text_model": "Kosmos2TextForCausalLM"},  # transformers 5.24, models/kosmos2
)
@architecture(
    "kosmos_2_5_text_model",
    config=Kosmos25,
    classes={"kosmos_2_5_text_model": "Kosmos2_5TextForCausalLM"},  # transformers 5.24, models/kosmos2_5
)
def forward(w: Weights, ids: Array, c: Kosmos2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    x = x * c.d_model**0.5 if c.scale_embedding else x
    x = x + sinusoids(positions(ids, cache) + (int(c.padding) + 1), c.d_model)
    if isinstance(c, Kosmos25):
        x = x + embed(ids * 0, w, "model.segment_emb.weight", c.n_segments, c.d_model)
    for _, w_layer, cache_layer in w.layers("model.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    x = layer_norm(x, w, "model.layer_norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Kosmos2) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(layer_norm(x, w, "self_attn_layer_norm", c.norm_eps), w.at("self_attn"), cache, c)
    return x + feed_forward(layer_norm(x, w, "final_layer_norm", c.norm_eps), w.at("ffn"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Kosmos2) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q, k, v = (
        heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head) for name in ("q_proj", "k_proj", "v_proj")
    )
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5)
    mixed = layer_norm(mixed, w, "inner_attn_ln", c.norm_eps) if c.norms_inside else mixed
    return linear(mixed, w, "out_proj", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Kosmos2) -> Array:
    """Process each token separately, in a wider space, with a norm there: [T D] -> [T F] -> [T D]."""
    wide = layer_norm(activation(c.activation)(linear(x, w, "fc1", c.d_ff, bias=True)), w, "ffn_layernorm", c.norm_eps)
    return linear(wide, w, "fc2", c.d_model, bias=True)
