"""T5, mT5, umT5, Switch: an encoder reads a text, in both directions; a decoder writes another, and looks at it.

Two lengths, then. T and S are the decoder's. The encoder's is a size of the model, `n_source`, the longest text that it
was trained to read. It runs in the first step alone (`cache.source`), and so do the keys and values that the decoder's
layers make of what it read (`cache.fill`): they do not grow. Source: arXiv 1910.10683,
2010.11934 (mT5), 2304.09151 (umT5), 2101.03961 (Switch); tensor names as transformers.
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem
from ..facts import TABLES, Gguf, Peft, Task
from ..interface import Array, KVCache, Weights
from ..ops import (
    Full,
    attend,
    causal_mask,
    combine,
    embed,
    expert_linear,
    heads,
    linear,
    positions,
    relative_bias,
    rms_norm,
    softmax_routing,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Count, Positive, Raw, Size, activation, config, fixed, key
from .gguf_tables import below
from .otherwise import Otherwise, other_than
from .tasks import BASE, OWN

# The name of the table of distances below a layer, and that of the first layer's.
STACKS = ("encoder", "decoder")
TABLE = "layer.0.SelfAttention"
FIRST = f"block.0.{TABLE}"


@config
class T5(Config):
    """Hyperparameters of T5, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    n_source: Size = key("n_positions", 512)
    d_model: Size = key("d_model", also=("hidden_size",))
    # layers
    n_encoder_layers: Size = key("num_layers", also=("num_hidden_layers",))
    n_decoder_layers: Size = key("num_decoder_layers", lambda c: c.n_encoder_layers)
    norm_eps: Positive = key("layer_norm_epsilon", 1e-6)
    # attention
    n_heads: Size = key("num_heads", also=("num_attention_heads",))
    d_head: Size = key("d_kv", also=("head_dim",))
    n_buckets: Size = key("relative_attention_num_buckets", 32)
    longest_distance: Size = key("relative_attention_max_distance", 128)
    # feed-forward
    d_ff: Size = key("d_ff", also=("intermediate_size",))
    feed_forward: str = key("feed_forward_proj", "relu")
    gate: bool | None = key("is_gated_act", None)
    curve: str | None = key("dense_act_fn", None)
    # head
    tied: bool = key("tie_word_embeddings", True)
    scaled: bool | None = key("scale_decoder_outputs", lambda c: c.tied)

    # Whether each layer has a table of distances of its own, or all have the first one's.
    of_layer: bool = fixed(False)
    # The name of the feed-forward network.
    network: str = fixed("DenseReluDense")

    caveat = (
        "An encoder reads one text, and a decoder generates another. The context is the decoder’s. "
        "The encoder reads as much as it can in the first step."
    )
    ignored = frozenset({"classifier_dropout", "dropout_rate", "output_past"})
    otherwise = (
        Otherwise(
            "is_encoder_decoder",
            other_than("is_encoder_decoder", True),
            "transformers 5.24 reads both texts in another way then",
        ),
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """Gated GELU is its tanh form, under either name; unless the config says otherwise, the head is the
        embedding."""
        if raw.get("tie_word_embeddings", 0) is None:
            raw.pop("tie_word_embeddings", None)
        if raw.get("feed_forward_proj") == "gated-gelu":
            raw["feed_forward_proj"] = "gated-gelu_new"
        return raw

    def check(self) -> None:
        activation(self.activation)
        if self.n_buckets < 4 or self.longest_distance <= self.n_buckets // 2:
            raise Problem(
                f"relative_attention_num_buckets = {int(self.n_buckets)} for distances up to "
                f"{int(self.longest_distance)}: expected at least 4, and longer distances than half of them",
                "correct one of the two",
            )

    @property
    def kinds(self) -> tuple[list[str], list[str]]:
        """The kinds of the layers of both stacks."""
        return ["layer"] * self.n_encoder_layers, ["layer"] * self.n_decoder_layers

    def table(self, stack: str) -> str:
        """The name of the embedding of a stack."""
        return "shared.weight"

    @property
    def is_scaled(self) -> bool:
        """Whether the vector is scaled for a table that is the embedding's, too."""
        return self.tied if self.scaled is None else self.scaled

    @property
    def is_gated(self) -> bool:
        """Whether the feed-forward network has a gate."""
        return self.feed_forward.startswith("gated-") if self.gate is None else self.gate

    @property
    def activation(self) -> str:
        """The name of the activation function; its own key takes precedence over the network's."""
        return self.curve or self.feed_forward.removeprefix("gated-")


@config
class MT5(T5):
    """Hyperparameters of mT5, in forward order; its scores are not scaled."""

    feed_forward: str = key("feed_forward_proj", "gated-gelu_new")
    scaled: bool | None = fixed(False)

    ignored = T5.ignored | {"scale_decoder_outputs", "tokenizer_class"}


@config
class UMT5(T5):
    """Hyperparameters of umT5, in forward order."""

    feed_forward: str = key("feed_forward_proj", "gated-gelu_new")
    scaled: bool | None = fixed(None)
    of_layer: bool = fixed(True)

    ignored = T5.ignored | {"scale_decoder_outputs", "scalable_attention"}


@config
class Switch(T5):
    """Hyperparameters of Switch Transformers, in forward order. Each token has one expert, however many tokens share
    it."""

    feed_forward: str = key("dense_act_fn", "relu")
    gate: bool | None = fixed(False)
    curve: str | None = fixed(None)
    n_decoder_layers: Size = key("num_decoder_layers", 12)
    n_experts: Size = key("num_experts", 8)
    router_bias: bool = key("router_bias", False)
    n_sparse_encoder_layers: Count = key("num_sparse_encoder_layers", 3)
    n_sparse_decoder_layers: Count = key("num_sparse_decoder_layers", 3)
    encoder_step: int = key("encoder_sparse_step", lambda c: step_of(c.n_encoder_layers, c.n_sparse_encoder_layers))
    decoder_step: int = key("decoder_sparse_step", lambda c: step_of(c.n_decoder_layers, c.n_sparse_decoder_layers))
    scaled: bool | None = fixed(None)
    network: str = fixed("mlp")

    ignored = T5.ignored | frozenset(
        """add_router_probs expert_capacity feed_forward_proj is_gated_act router_dtype router_ignore_padding_tokens
        router_type scale_decoder_outputs""".split()
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """If the number of the decoder's layers is null, and not just left out, it is the encoder's. `num_layers` sets
        the encoder's groups, even if `num_hidden_layers` states the number of layers."""
        raw = super().prepare(raw)
        layers = raw.get("num_layers", 12)
        if raw.get("num_decoder_layers", 0) is None:
            raw = {**raw, "num_decoder_layers": layers}
        if raw.get("num_hidden_layers") is not None:
            sparse = raw.get("num_sparse_encoder_layers", 3)
            if type(layers) is int and type(sparse) is int:
                raw = {"encoder_sparse_step": step_of(layers, sparse), **raw}
            raw = {**raw, "num_layers": raw.pop("num_hidden_layers")}
        return raw

    @property
    def kinds(self) -> tuple[list[str], list[str]]:
        return kinds_of(self.n_encoder_layers, self.encoder_step), kinds_of(self.n_decoder_layers, self.decoder_step)

    def table(self, stack: str) -> str:
        return "shared.weight" if self.tied else f"{stack}.embed_tokens.weight"


def step_of(layers: int, sparse: int) -> int:
    """The length of the groups of layers that have one layer with experts each, for this many of those."""
    return int(layers) // int(sparse) if sparse else int(layers)


def kinds_of(layers: int, group: int) -> list[str]:
    """Which layers of a stack have experts: the second of each group."""
    return ["moe" if group > 0 and (i % group == 1 or group == 1) else "layer" for i in range(layers)]


_T5_ATTENTION = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_o"}
_T5_FEED_FORWARD = {"wi": "ffn_up", "wi_0": "ffn_gate", "wi_1": "ffn_up", "wo": "ffn_down"}
# Names below a block of its encoder, or of its decoder: the feed-forward layer comes second, or third.
_T5 = {
    "layer.0.layer_norm": "attn_norm",
    **below("layer.0.SelfAttention", _T5_ATTENTION),
    **below("layer.1.EncDecAttention", {name: f"cross_{theirs}" for name, theirs in _T5_ATTENTION.items()}),
    **below("layer.1.DenseReluDense", _T5_FEED_FORWARD),
    **below("layer.2.DenseReluDense", _T5_FEED_FORWARD),
    "layer.2.layer_norm": "ffn_norm",
}
GGUF_T5 = Gguf(
    "t5",
    _T5,
    {
        "encoder.final_layer_norm": "enc.output_norm",
        "decoder.final_layer_norm": "dec.output_norm",
        **{
            f"{whole}coder.block.0.layer.0.SelfAttention.relative_attention_bias": f"{whole}c.blk.0.attn_rel_b"
            for whole in ("en", "de")
        },
    },
)
GGUF_UMT5 = Gguf(
    "t5",
    {**_T5, "layer.0.SelfAttention.relative_attention_bias": "attn_rel_b"},
    {"encoder.final_layer_norm": "enc.output_norm", "decoder.final_layer_norm": "dec.output_norm"},
)


HEADS = {
    "ForConditionalGeneration": OWN,
    "Model": BASE,
    "ForSequenceClassification": Task("sequence classification", "classify_written", None, "transformer."),
    "ForQuestionAnswering": Task("question answering", "find_answer"),
}


@architecture(
    "switch_transformers",
    config=Switch,
    heads=HEADS,
    peft=Peft(tied_tables=TABLES, linear_router=True),
)
@architecture(
    "mt5",
    config=MT5,
    gguf=GGUF_T5,
    heads=HEADS,
    peft=Peft(("q", "v"), tied_tables=TABLES),
)
@architecture(
    "umt5",
    config=UMT5,
    gguf=GGUF_UMT5,
    heads=HEADS,
    peft=Peft(tied_tables=TABLES),
)
@architecture(
    "t5",
    config=T5,
    gguf=GGUF_T5,
    heads=HEADS,
    peft=Peft(("q", "v"), tied_tables=TABLES),
)
def forward(w: Weights, ids: Array, c: T5, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    return decode(ids, read, w, c, cache, last)


def decode(ids: Array, read: Array, w: Weights, c: T5, cache: KVCache, last: bool) -> Array:
    """The decoder's scores, given the encoder's output: [T], [M D] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, c.table("decoder"), c.vocab_size, c.d_model)
    here = positions(ids, cache)
    seen = np.arange(ids.shape[0] + cache.length, like=ids)
    bias = None if c.of_layer else distances(here, seen, w.at(f"decoder.{FIRST}"), c, to_both_sides=False)
    for kind, w_layer, kept in w.layers("decoder.block", c.kinds[1], cache, "decoder", c.n_encoder_layers):
        own = bias if bias is not None else distances(here, seen, w_layer.at(TABLE), c, to_both_sides=False)
        x = decoder_layer(x, w_layer.at("layer"), c, kept, own, read, kind)
    x = rms_norm(x, w, "decoder.final_layer_norm", c.norm_eps)
    logits = unembed(x, w, "shared.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)
    if c.table("decoder") != "shared.weight":
        w("shared.weight", c.vocab_size, c.d_model)  # which neither stack reads
    return logits * c.d_model**-0.5 if c.is_scaled else logits


def encode(source: Array, w: Weights, c: T5, cache: KVCache) -> Array:
    """The encoder's output for a text, each token in the context of all: [M] -> [M D]."""
    x = embed(source, w, c.table("encoder"), c.vocab_size, c.d_model)
    here = np.arange(source.shape[0], like=source)
    bias = None if c.of_layer else distances(here, here, w.at(f"encoder.{FIRST}"), c, to_both_sides=True)
    for kind, w_layer, _ in w.layers("encoder.block", c.kinds[0], cache, "encoder"):
        own = bias if bias is not None else distances(here, here, w_layer.at(TABLE), c, to_both_sides=True)
        x = encoder_layer(x, w_layer.at("layer"), c, own, kind)
    return rms_norm(x, w, "encoder.final_layer_norm", c.norm_eps)


def distances(queries: Array, keys: Array, w: Weights, c: T5, *, to_both_sides: bool) -> Array:
    """The bias that all layers add to their scores by distance, from the table of one of them: -> [N T S]."""
    name = "relative_attention_bias.weight"
    return relative_bias(
        queries, keys, w, name, c.n_buckets, c.n_heads, c.longest_distance, to_both_sides=to_both_sides
    )


@step(Role.LAYER)
def encoder_layer(x: Array, w: Weights, c: T5, bias: Array, kind: str) -> Array:
    """One block of the encoder: [M D] -> [M D]."""
    x = x + attention(rms_norm(x, w, "0.layer_norm", c.norm_eps), w.at("0.SelfAttention"), c, bias)
    return x + network(rms_norm(x, w, "1.layer_norm", c.norm_eps), w.at(f"1.{c.network}"), c, kind)


@step(Role.LAYER)
def decoder_layer(x: Array, w: Weights, c: T5, cache: KVCache, bias: Array, read: Array, kind: str) -> Array:
    """One block of the decoder: [T D] -> [T D]."""
    x = x + causal_attention(rms_norm(x, w, "0.layer_norm", c.norm_eps), w.at("0.SelfAttention"), c, cache, bias)
    x = x + cross_attention(rms_norm(x, w, "1.layer_norm", c.norm_eps), w.at("1.EncDecAttention"), c, cache, read)
    return x + network(rms_norm(x, w, "2.layer_norm", c.norm_eps), w.at(f"2.{c.network}"), c, kind)


def network(x: Array, w: Weights, c: T5, kind: str) -> Array:
    """The feed-forward network of a layer, or its experts: [T D] -> [T D]."""
    return mixture_of_experts(x, w, c) if isinstance(c, Switch) and kind == "moe" else feed_forward(x, w, c)


def project(x: Array, w: Weights, name: str, c: T5) -> Array:
    """A linear map, cut into heads: [T D] -> [T N H]."""
    return heads(linear(x, w, name, c.n_heads * c.d_head), c.n_heads, c.d_head)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: T5, bias: Array) -> Array:
    """Let each token gather information from all tokens, including later ones: [M D] -> [M D]."""
    q, k, v = (project(x, w, name, c) for name in ("q", "k", "v"))
    return linear(attend(q, k, v, None, 1.0, bias), w, "o", c.d_model)


@step(Role.ATTENTION)
def causal_attention(x: Array, w: Weights, c: T5, cache: KVCache, bias: Array) -> Array:
    """Let each token gather information from itself and those before it: [T D] -> [T D]."""
    q, k, v = (project(x, w, name, c) for name in ("q", "k", "v"))
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), 1.0, bias), w, "o", c.d_model)


@step(Role.CROSS_ATTENTION)
def cross_attention(x: Array, w: Weights, c: T5, cache: KVCache, read: Array) -> Array:
    """Let each token gather information from the encoder's output: [T D], [M D] -> [T D]."""
    q = project(x, w, "q", c)
    k = cache.fill(Holds.SOURCE_KEYS, project(read, w, "k", c), c.n_source)
    v = cache.fill(Holds.SOURCE_VALUES, project(read, w, "v", c), c.n_source)
    return linear(attend(q, k, v, None, 1.0), w, "o", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: T5) -> Array:
    """Process each token separately, in a wider space, with or without a gate: [T D] -> [T F] -> [T D]."""
    act = activation(c.activation)
    if c.is_gated:
        return linear(act(linear(x, w, "wi_0", c.d_ff)) * linear(x, w, "wi_1", c.d_ff), w, "wo", c.d_model)
    return linear(act(linear(x, w, "wi", c.d_ff)), w, "wo", c.d_model)


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: Switch) -> Array:
    """Each token through one expert, weighted by its score: [T D] -> [T 1 D] -> [T D]."""
    scores = linear(x, w, "router.classifier", c.n_experts, bias=c.router_bias)
    chosen, shares = softmax_routing(scores, 1, normalise=False)
    return combine(experts(x, chosen, w.at("experts"), c), shares)


@step(Role.EXPERTS)
def experts(x: Array, chosen: Array, w: Weights, c: Switch) -> Array:
    """Each token through its chosen expert: [T D], [T 1] -> [T 1 F] -> [T 1 D]."""
    E, F, D, k = c.n_experts, c.d_ff, c.d_model, chosen.shape[1]
    wide = activation(c.activation)(expert_linear(x, w.stack("expert_{e}.wi.weight", E, F, D, used=k), chosen))
    return expert_linear(wide, w.stack("expert_{e}.wo.weight", E, D, F, used=k), chosen)
