"""XLNet as a scorer runs it: BERT's block, whose scores are sums of contents and distances, with biases of a head.

Its two streams serve to predict tokens in any order. Here there is one: each token sees itself and those before it.
Each layer keeps its input, as in Transformer-XL: keys and values of the whole text are made of it in each step. Source:
arXiv 1906.08237, 1901.02860; tensor names as transformers.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..facts import Peft, Task
from ..interface import Array, KVCache, Mask, Weights
from ..ops import Full, SlidingWindow, attend, causal_mask, embed, layer_norm, linear, unembed
from ..steps import Holds, Keeps, Role, step
from . import architecture
from .bart import must_be_even
from .config import Config, Positive, Size, activation, config, derived, key
from .otherwise import Otherwise, at_least
from .tasks import BASE, OWN
from .xglm import sinusoids


@config
class XLNet(Config):
    """Hyperparameters of XLNet, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size", also=("n_token",))
    d_model: Size = key("d_model", also=("hidden_size",))
    farthest: int = key("clamp_len", -1)
    to_both_sides: Literal[False] = key("bi_data", False)
    # layers
    n_layers: Size = key("n_layer", also=("num_hidden_layers",))
    norm_eps: Positive = key("layer_norm_eps", 1e-12)
    # attention
    n_heads: Size = key("n_head", also=("num_attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    memory: int | None = key("mem_len", 512)
    same_length: Literal[False] = key("same_length", False)
    # feed-forward
    d_ff: Size = key("d_inner")
    activation: str = key("ff_activation", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    caveat = (
        "Its costs are those of scoring a text, in which each token sees itself and those before it. To generate a "
        "token, a second stream runs beside, for that token alone."
    )
    ignored = frozenset(
        """attn_type d_head end_n_top reuse_len start_n_top summary_last_dropout untie_r use_mems_eval
        use_mems_train""".split()
    )

    otherwise = (
        Otherwise(
            "reuse_len", at_least("reuse_len", 1), "transformers 5.24 keeps only so many rows of what it reads at once"
        ),
    )

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        must_be_even(self.d_model)
        activation(self.activation)

    @property
    def mask(self) -> Mask:
        """The part of the text in memory, and the token itself."""
        return SlidingWindow(self.memory + 1) if self.memory and self.memory > 0 else Full()


HEADS = {
    "LMHeadModel": OWN,
    "Model": BASE,
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForQuestionAnsweringSimple": Task("question answering", "find_answer"),
}


@architecture("xlnet", config=XLNet, heads=HEADS, peft=Peft(tied_head="lm_loss"))
def forward(w: Weights, ids: Array, c: XLNet, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    table = "transformer.word_embedding.weight"
    x = embed(ids, w, table, c.vocab_size, c.d_model)
    w("transformer.mask_emb", 1, 1, c.d_model)
    for mask, w_layer, kept in w.layers("transformer.layer", [c.mask] * c.n_layers, cache):
        x = layer(x, w_layer, kept, c, mask)
    return unembed(x, w, table if c.tied else "lm_loss.weight", c.vocab_size, last=last, bias="lm_loss.bias")


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: XLNet, mask: Mask) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    at, ff = w.at("rel_attn"), w.at("ff")
    x = layer_norm(x + attention(x, at, cache, c, mask), at, "layer_norm", c.norm_eps)
    return layer_norm(x + feed_forward(x, ff, c), ff, "layer_norm", c.norm_eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: XLNet, mask: Mask) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    D, N, H = c.d_model, c.n_heads, c.d_head
    q, rows = project(x, w, "q", D, N, H), cache.extend(Holds.LAYER_INPUT, x, mask)
    k, v = project(rows, w, "k", D, N, H), project(rows, w, "v", D, N, H)
    S = rows.shape[0]
    far = S - np.arange(S + 1, like=x)  # how far back, from the farthest
    of_far = project(sinusoids(np.minimum(far, c.farthest) if c.farthest > 0 else far, D, D // 2), w, "r", D, N, H)
    bias = distance_scores(q + w("r_r_bias", N, H), of_far, rows) * H**-0.5
    w("r_s_bias", N, H)
    w("seg_embed", 2, N, H)
    mixed = attend(q + w("r_w_bias", N, H), k, v, causal_mask(cache, q, k, mask), H**-0.5, bias)
    return np.einsum("tnh,dnh->td", mixed.reshape(x.shape[0], N, H), w("o", D, N, H), optimize=True)


@step(Role.LINEAR)
def project(x: Array, w: Weights, name: str, width: int, n: int, of_head: int) -> Array:
    """Multiply by a matrix of each head: [S D], [D N H] -> [S N H]."""
    return np.einsum("sd,dnh->snh", x, w(name, width, n, of_head), optimize=True)


@step(Role.RELATIVE_BIAS, keeps=Keeps.NOTHING)
def distance_scores(q: Array, of_far: Array, keys: Array) -> Array:
    """How each token fits the distance of each before it: [T N H], [S+1 N H], [S …] -> [N T S]."""
    T, S = q.shape[0], keys.shape[0]
    fits = np.einsum("tnh,rnh->tnr", q, of_far, optimize=True)
    back = np.arange(T, like=q)[:, None] + (S - T) - np.arange(S, like=q)[None, :]
    return np.take_along_axis(fits, np.clip(S - back, 0, S)[:, None, :], axis=2).swapaxes(0, 1)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: XLNet) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "layer_1", c.d_ff, bias=True))
    return linear(wide, w, "layer_2", c.d_model, bias=True)
