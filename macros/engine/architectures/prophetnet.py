"""ProphetNet: a decoder that predicts several tokens ahead, with a separate stream for each.

A stream for each token ahead begins with a trained vector, sees the text's keys, and of its own keys the one at the
same position. The next token is that of the first of them; the others run as in transformers, and are not scored.
Source: arXiv 2001.04063; tensor names as transformers.
"""

from __future__ import annotations

import math

import numpy as np

from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import Full, attend, causal_mask, embed, embed_positions, heads, layer_norm, linear, softmax, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Count, Size, activation, config, derived, key
from .t5 import T5
from .tasks import BASE, OWN

NORM_EPS = 1e-5  # no key sets it


@config
class ProphetNet(Config):
    """Hyperparameters of ProphetNet, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    n_positions: Size = key("max_position_embeddings", 512)
    n_source: Size = derived(lambda c: c.n_positions)
    d_model: Size = key("hidden_size")
    padding: Count = key("pad_token_id", 0)
    n_ahead: Size = key("ngram", 2)
    # encoder
    n_encoder_layers: Size = key("num_encoder_layers", also=("num_hidden_layers",))
    n_encoder_heads: Size = key("num_encoder_attention_heads", also=("num_attention_heads",))
    d_encoder_head: Size = derived(lambda c: c.d_model // c.n_encoder_heads)
    d_ff_encoder: Size = key("encoder_ffn_dim")
    # decoder
    n_decoder_layers: Size = key("num_decoder_layers")
    n_heads: Size = key("num_decoder_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    n_buckets: Size = key("num_buckets", 32)
    longest_distance: Size = key("relative_max_distance", 128)
    d_ff: Size = key("decoder_ffn_dim")
    activation: str = key("activation_function", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    caveat = T5.caveat + (
        " Each stream of a token ahead computes as much as the text’s own. The code of transformers 5.24 mixes up "
        "their distances in a prompt: its logits are these if it reads one token after another."
    )
    ignored = frozenset("activation_dropout disable_ngram_loss eps init_std".split())

    @property
    def first_row(self) -> int:
        """The row of the position table that the first token takes."""
        return int(self.padding) + 1

    @property
    def position_reach(self) -> int:
        return int(self.n_positions) - self.first_row - 1  # each token reads the next one's row as well

    def table(self, stack: str) -> str:
        """The name of the embedding of a stack."""
        return f"prophetnet.{'' if self.tied else stack + '.'}word_embeddings.weight"

    def check(self) -> None:
        self.must_divide("n_encoder_heads", "d_model")
        self.must_divide("n_heads", "d_model")
        self.must_not_exceed("n_buckets", "longest_distance")
        activation(self.activation)


HEADS = {"ForConditionalGeneration": OWN, "Model": BASE}


@architecture(
    "prophetnet",
    config=ProphetNet,
    heads=HEADS,
    peft=Peft(
        tied_tables=("prophetnet.encoder.word_embeddings", "prophetnet.decoder.word_embeddings"),
        tables=("ngram_embeddings",),
    ),
)
def forward(w: Weights, ids: Array, c: ProphetNet, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    stack = w.at("prophetnet.decoder")
    x = embed(ids, w, c.table("decoder"), c.vocab_size, c.d_model)
    places = np.arange(x.shape[0], like=x) + (cache.length + c.first_row)
    x = x + embed_positions(places, stack, "position_embeddings.weight", c.n_positions, c.d_model)
    next_place = embed_positions(places + 1, stack, "position_embeddings.weight", c.n_positions, c.d_model)
    starts = stack("ngram_embeddings.weight", c.n_ahead, c.d_model)
    x = layer_norm(x, stack, "embeddings_layer_norm", NORM_EPS)
    ahead = [
        layer_norm(starts[i - 1] + next_place, stack, "embeddings_layer_norm", NORM_EPS) for i in range(int(c.n_ahead))
    ]
    kinds = ["layer"] * c.n_decoder_layers
    for _, w_layer, kept in w.layers("prophetnet.decoder.layers", kinds, cache, "decoder", c.n_encoder_layers):
        x, *ahead = decoder_layer(x, ahead, w_layer, c, kept, read)
    logits = unembed(ahead[0], w, c.table("decoder") if c.tied else "lm_head.weight", c.vocab_size, last=last)
    if not c.tied:
        w("prophetnet.word_embeddings.weight", c.vocab_size, c.d_model)  # which neither stack reads
    return logits


def encode(source: Array, w: Weights, c: ProphetNet, cache: KVCache) -> Array:
    """The encoder's output for a text, each token in the context of all: [M] -> [M D]."""
    stack = w.at("prophetnet.encoder")
    x = embed(source, w, c.table("encoder"), c.vocab_size, c.d_model)
    places = np.minimum(np.arange(x.shape[0], like=x) + c.first_row, c.n_positions - 1)
    x = x + embed_positions(places, stack, "position_embeddings.weight", c.n_positions, c.d_model)
    x = layer_norm(x, stack, "embeddings_layer_norm", NORM_EPS)
    for _, w_layer, _ in w.layers("prophetnet.encoder.layers", ["layer"] * c.n_encoder_layers, cache, "encoder"):
        x = encoder_layer(x, w_layer, c)
    return x


def project(x: Array, w: Weights, name: str, n: int, width: int) -> Array:
    """A linear map as wide as the vector, cut into heads: [T D] -> [T N H]."""
    return heads(linear(x, w, name, n * width, bias=True), n, width)


@step(Role.LAYER)
def encoder_layer(x: Array, w: Weights, c: ProphetNet) -> Array:
    """One block of the encoder: [M D] -> [M D]."""
    x = layer_norm(x + attention(x, w.at("self_attn"), c), w, "self_attn_layer_norm", NORM_EPS)
    y = feed_forward(x, w.at("feed_forward"), c, c.d_ff_encoder)
    return layer_norm(x + y, w, "feed_forward_layer_norm", NORM_EPS)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: ProphetNet) -> Array:
    """Let each token gather information from all tokens, including later ones: [M D] -> [M D]."""
    N, H = c.n_encoder_heads, c.d_encoder_head
    q, k, v = (project(x, w, name, N, H) for name in ("query_proj", "key_proj", "value_proj"))
    return linear(attend(q, k, v, None, H**-0.5), w, "out_proj", c.d_model, bias=True)


@step(Role.LAYER)
def decoder_layer(
    x: Array, ahead: list[Array], w: Weights, c: ProphetNet, cache: KVCache, read: Array
) -> tuple[Array, ...]:
    """One block of the decoder, for the text and for each stream ahead: [T D], … -> [T D], …."""
    made = streams_attention(x, ahead, w.at("self_attn"), c, cache)
    xs = [layer_norm(x + y, w, "self_attn_layer_norm", NORM_EPS) for x, y in zip([x, *ahead], made)]
    at, N, H = w.at("cross_attn"), c.n_heads, c.d_head
    k = cache.fill(Holds.SOURCE_KEYS, project(read, at, "key_proj", N, H), c.n_source)
    v = cache.fill(Holds.SOURCE_VALUES, project(read, at, "value_proj", N, H), c.n_source)
    xs = [layer_norm(x + cross_attention(x, k, v, at, c), w, "cross_attn_layer_norm", NORM_EPS) for x in xs]
    own = w.at("feed_forward")
    return tuple(layer_norm(x + feed_forward(x, own, c, c.d_ff), w, "feed_forward_layer_norm", NORM_EPS) for x in xs)


@step(Role.ATTENTION)
def streams_attention(x: Array, ahead: list[Array], w: Weights, c: ProphetNet, cache: KVCache) -> tuple[Array, ...]:
    """Let each token, and each stream ahead at its place, gather information from those before: [T D], … -> …."""
    N, H, T = c.n_heads, c.d_head, x.shape[0]
    q, k, v = (project(x, w, name, N, H) for name in ("query_proj", "key_proj", "value_proj"))
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    S = k.shape[0]
    back = np.arange(T, like=x)[:, None] + (S - T) - np.arange(S, like=x)[None, :]
    bias = bucket_logits(linear(x, w, "relative_pos_embeddings", c.n_buckets * N, bias=True), back, c)
    made = [
        linear(attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5, bias), w, "out_proj", c.d_model, bias=True)
    ]
    for i in range(len(ahead)):
        y = ahead[i]
        own_q, own_k, own_v = (project(y, w, name, N, H) for name in ("query_proj", "key_proj", "value_proj"))
        rates = linear(y, w, "relative_pos_embeddings", c.n_buckets * N, bias=True)
        far = bucket_logits(rates, back + 1, c)
        fit = np.einsum("tnh,snh->nts", own_q, k, optimize=True) * H**-0.5 + far
        fit = np.where((back < i) & (np.arange(S, like=x)[None, :] > 0), -np.inf, fit)
        here = np.einsum("tnh,tnh->nt", own_q, own_k, optimize=True)[:, :, None] * H**-0.5
        here = here + bucket_logits(rates, back[:, :1] * 0, c)
        shares = softmax(np.concatenate([fit, here], axis=-1))
        mixed = np.einsum("nts,snh->tnh", shares[:, :, :-1], v, optimize=True)
        mixed = mixed + shares[:, :, -1:].swapaxes(0, 1) * own_v
        made.append(linear(mixed.reshape(T, N * H), w, "out_proj", c.d_model, bias=True))
    return tuple(made)


@step(Role.RELATIVE_LOGITS)
def bucket_logits(x: Array, back: Array, c: ProphetNet) -> Array:
    """Each head's addition to a score by the bucket of the distance, from the token: [T B·N], [T S] -> [N T S]."""
    by_bucket = x.reshape(x.shape[0], c.n_buckets, c.n_heads).swapaxes(1, 2)
    single, most = c.n_buckets // 2, c.n_buckets - 1
    back = np.maximum(back, 0)
    octaves = np.log(np.maximum(back, single).astype(np.float32) / single) / math.log(c.longest_distance / single)
    far = np.minimum(single + (octaves * (c.n_buckets - single)).astype(np.int64), most)
    bucket = np.where(back < single, back, far)
    return np.take_along_axis(by_bucket, bucket[:, None, :], axis=2).swapaxes(0, 1)


@step(Role.CROSS_ATTENTION)
def cross_attention(x: Array, k: Array, v: Array, w: Weights, c: ProphetNet) -> Array:
    """Let each token gather information from the encoder's output: [T D], [M N H], [M N H] -> [T D]."""
    q = project(x, w, "query_proj", c.n_heads, c.d_head)
    return linear(attend(q, k, v, None, c.d_head**-0.5), w, "out_proj", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: ProphetNet, width: int) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(
        activation(c.activation)(linear(x, w, "intermediate", width, bias=True)), w, "output", c.d_model, bias=True
    )
