"""GPT-2 and, in the sizes of its paper, GPT-3.

Source: Radford et al. 2019; openai/gpt-2 src/model.py; tensor names as transformers' GPT2LMHeadModel.

A key to this and every other forward pass. Each runs on a checkpoint's arrays, and on shapes instead of them:

                             on real arrays                              on shapes
w("name", V, D)              the file's tensor, if it has this shape     declares a weight of this shape and its symbols
w.at("attn")                 the weights whose names go on with attn.    the same
w.layers(prefix, kinds, …)   every layer in turn, with its cache         each kind of layer once, its count beside it
cache.extend(holds, k, mask) rows kept that `mask` sees, then the new    the same, and writes down what a layer keeps
cache.state, cache.store     a recurrence's state: the last one, the     the same
                             one for the next step
@step(Role.X)                the function itself, nothing else           a node of the trace, its calls as children

T new tokens follow the S − T before them; `ops` has the letters of all shapes and the parts that models are made of.
"""

from __future__ import annotations

import numpy as np

from ..facts import Gguf, Peft
from ..interface import Array, KVCache, Weights
from ..ops import (
    Activation,
    Full,
    attend,
    causal_mask,
    conv1d,
    embed,
    embed_positions,
    heads,
    layer_norm,
    positions,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Size, activation, config, derived, key
from .tasks import OLD_CLASSIFIER


@config
class GPT2(Config):
    """Hyperparameters of GPT-2, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    n_positions: Size = key("n_positions")
    d_model: Size = key("n_embd")
    # layers
    n_layers: Size = key("n_layer")
    norm_eps: Positive = key("layer_norm_epsilon", 1e-5)
    # attention
    n_heads: Size = key("n_head")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    scale_attention: bool = key("scale_attn_weights", True)
    scale_by_layer: bool = key("scale_attn_by_inverse_layer_idx", False)
    # feed-forward
    d_ff: Size = key("n_inner", lambda c: 4 * c.d_model)
    activation: str = key("activation_function", "gelu_new")
    # head
    tied: bool = key("tie_word_embeddings", True)

    ignored = frozenset({"n_ctx", "reorder_and_upcast_attn"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)

    @property
    def act(self) -> Activation:
        """The activation function that the config names."""
        return activation(self.activation)

    @property
    def cut(self) -> tuple[int, int]:
        """The number of heads, and the width of each, into which attention is cut."""
        return self.n_heads, self.d_head


@config
class GPT3(GPT2):
    """The rows of GPT-3's Table 2.1 (arXiv 2005.14165), read as GPT-2 with every size as printed.

    Attention is as wide as d_model. In two rows (XL, 13B) n_heads × d_head is another number than d_model, so no whole
    head has that width: attention is left uncut there, which changes no weight, no multiply-add and no cache.
    """

    d_head: Size = key("d_head")

    def check(self) -> None:
        activation(self.activation)

    @property
    def cut(self) -> tuple[int, int]:
        return (self.n_heads, self.d_head) if self.n_heads * self.d_head == self.d_model else (1, self.d_model)


GGUF = Gguf(
    "gpt2",
    {
        "attn.c_attn": "turned:attn_qkv",
        "attn.c_proj": "turned:attn_output",
        "mlp.c_fc": "turned:ffn_up",
        "mlp.c_proj": "turned:ffn_down",
    },
)


@architecture("gpt3", config=GPT3)
@architecture(
    "gpt2", config=GPT2, optional_prefix="transformer.", gguf=GGUF, heads=OLD_CLASSIFIER, peft=Peft(("c_attn",))
)
def forward(w: Weights, ids: Array, c: GPT2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.wte.weight", c.vocab_size, c.d_model)
    x = x + embed_positions(positions(ids, cache), w, "transformer.wpe.weight", c.n_positions, c.d_model)
    for _, w_layer, cache_layer in w.layers("transformer.h", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c)
    x = layer_norm(x, w, "transformer.ln_f", c.norm_eps)
    return unembed(x, w, "transformer.wte.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GPT2) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(layer_norm(x, w, "ln_1", c.norm_eps), w.at("attn"), cache, c)
    return x + feed_forward(layer_norm(x, w, "ln_2", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: GPT2) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q, k, v = np.split(conv1d(x, w, "c_attn", 3 * c.d_model), 3, axis=-1)
    q, k, v = (heads(a, *c.cut) for a in (q, k, v))
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    scale = (c.cut[1] ** -0.5 if c.scale_attention else 1.0) / (w.index + 1 if c.scale_by_layer else 1)
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), scale)
    return conv1d(mixed, w, "c_proj", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: GPT2) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return conv1d(c.act(conv1d(x, w, "c_fc", c.d_ff)), w, "c_proj", c.d_model)
