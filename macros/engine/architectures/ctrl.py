"""CTRL: an early decoder, with positions that are computed and a bias for each token of the vocabulary.

Source: arXiv 1909.05858; tensor names as the published file.
"""

from __future__ import annotations

from ..facts import Task
from ..interface import Array, KVCache, Weights
from ..ops import Full, attend, causal_mask, embed, heads, layer_norm, linear, positions, relu, unembed
from ..steps import Holds, Role, step
from . import architecture
from .bart import must_be_even
from .config import Config, Positive, Size, config, derived, key
from .tasks import DECODER
from .xglm import sinusoids

NORM_EPS = 1e-6  # of the norms in layers, which no key sets


@config
class Ctrl(Config):
    """Hyperparameters of CTRL, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("n_embd", also=("hidden_size",))
    # layers
    n_layers: Size = key("n_layer", also=("num_hidden_layers",))
    norm_eps: Positive = key("layer_norm_epsilon", 1e-6)
    # attention
    n_heads: Size = key("n_head", also=("num_attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    # feed-forward
    d_ff: Size = key("dff", also=("intermediate_size",))
    # head
    tied: bool = key("tie_word_embeddings", True)

    ignored = frozenset({"n_positions", "n_ctx", "from_tf"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        must_be_even(self.d_model)


@architecture(
    "ctrl", config=Ctrl, heads=DECODER | {"ForSequenceClassification": Task("sequence classification", "classify_last")}
)
def forward(w: Weights, ids: Array, c: Ctrl, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.w.weight", c.vocab_size, c.d_model) * c.d_model**0.5
    x = x + sinusoids(positions(ids, cache), c.d_model, c.d_model // 2)
    for _, w_layer, cache_layer in w.layers("transformer.h", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    x = layer_norm(x, w, "transformer.layernorm", c.norm_eps)
    head = "transformer.w.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last, bias="lm_head.bias")


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Ctrl) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(layer_norm(x, w, "layernorm1", NORM_EPS), w.at("multi_head_attention"), cache, c)
    return x + feed_forward(layer_norm(x, w, "layernorm2", NORM_EPS), w.at("ffn"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Ctrl) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q, k, v = (heads(linear(x, w, name, c.d_model, bias=True), c.n_heads, c.d_head) for name in ("Wq", "Wk", "Wv"))
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5)
    return linear(mixed, w, "dense", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Ctrl) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(relu(linear(x, w, "0", c.d_ff, bias=True)), w, "2", c.d_model, bias=True)
