"""BART and its like: an encoder reads a text at once, in both directions; a decoder generates another, and looks at the
encoder's output.

The norms follow the parts or precede them, positions are in a table of each stack or computed, and the encoder's length
is that of the table; `t5` explains the two lengths. Sources: arXiv 1910.13461 (BART), 2001.08210 (mBART), 2010.11125
(M2M-100), 1804.00344 (Marian), 1912.08777 (Pegasus), 2004.13637 (Blenderbot), 2103.06333 (PLBart), 2206.12131 (MVP);
tensor names as transformers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from ..errors import Problem
from ..facts import MODEL_TABLES, QUERY_VALUE, Peft, Task
from ..interface import Array, KVCache, Weights
from ..ops import (
    Activation,
    Full,
    attend,
    causal_mask,
    embed,
    embed_positions,
    heads,
    layer_norm,
    linear,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Count, Size, activation, config, derived, fixed, key
from .t5 import T5
from .tasks import BASE, OWN
from .xglm import sinusoids

NORM_EPS = 1e-5  # no key sets it


@config
class Bart(Config):
    """Hyperparameters of BART, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    n_positions: Size = key("max_position_embeddings")
    n_source: Size = derived(lambda c: c.n_positions)
    d_model: Size = key("d_model", also=("hidden_size",))
    scale_embedding: bool = key("scale_embedding", False)
    # encoder
    n_encoder_layers: Size = key("encoder_layers", also=("num_hidden_layers",))
    n_encoder_heads: Size = key("encoder_attention_heads", also=("num_attention_heads",))
    d_encoder_head: Size = derived(lambda c: c.d_model // c.n_encoder_heads)
    d_ff_encoder: Size = key("encoder_ffn_dim")
    # decoder
    n_decoder_layers: Size = key("decoder_layers")
    n_heads: Size = key("decoder_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("decoder_ffn_dim")
    activation: str = key("activation_function", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", True)
    trunk: str = fixed("model")

    # Whether norms precede the parts, and follow each stack; whether they follow the embedding.
    norm_first: bool = fixed(False)
    norm_embedding: bool = fixed(True)
    # Rows at the head of each table of places, which no token has.
    reserved: int = fixed(2)
    # Whether a trained vector is added to the scores.
    final_bias: bool = fixed(True)

    caveat = T5.caveat
    ignored = frozenset(
        """activation_dropout add_bias_logits add_final_layer_norm classif_dropout classifier_dropout decoder_layerdrop
        encoder_layerdrop extra_pos_embeddings force_bos_token_to_be_generated forced_bos_token_id forced_eos_token_id
        init_std normalize_before normalize_embedding num_labels output_past save_step
        static_position_embeddings""".split()
    )

    def check(self) -> None:
        self.must_divide("n_encoder_heads", "d_model")
        self.must_divide("n_heads", "d_model")
        activation(self.activation)

    @property
    def vocabulary(self) -> int:
        """The decoder's vocabulary size."""
        return self.vocab_size

    def rows(self, stack: str) -> int:
        """A stack's vocabulary size."""
        return self.vocabulary if stack == "decoder" else self.vocab_size

    def table(self, stack: str) -> str:
        """The name of the embedding of a stack."""
        return f"{self.trunk}.shared.weight" if self.tied else f"{self.trunk}.{stack}.embed_tokens.weight"

    @property
    def head(self) -> str:
        """The name of the head's matrix."""
        return self.table("decoder") if self.tied else "lm_head.weight"

    def spare(self, w: Weights) -> None:
        """The table that transformers keeps in addition to those of both stacks if the head is not tied."""
        if not self.tied:
            w(f"{self.trunk}.shared.weight", self.vocab_size, self.d_model)

    def placed(self, x: Array, earlier: int, stack: Weights) -> Array:
        """The vectors of tokens plus those of their positions, after `earlier` ones: [T D] -> [T D]."""
        rows = self.n_positions + self.reserved
        places = np.arange(x.shape[0], like=x) + (earlier + self.reserved)
        return x + embed_positions(places, stack, "embed_positions.weight", rows, self.d_model)

    def embedded(self, ids: Array, earlier: int, w: Weights, name: str) -> Array:
        """The vector of each token plus that of its position, after `earlier` ones, for a stack: [T] -> [T D]."""
        stack = w.at(f"model.{name}")
        x = embed(ids, w, self.table(name), self.rows(name), self.d_model)
        x = self.placed(x * self.d_model**0.5 if self.scale_embedding else x, earlier, stack)
        return layer_norm(x, stack, "layernorm_embedding", NORM_EPS) if self.norm_embedding else x

    def finished(self, x: Array, w: Weights, stack: str) -> Array:
        """A stack's output, normalized if norms precede the parts: [T D] -> [T D]."""
        return layer_norm(x, w, f"model.{stack}.layer_norm", NORM_EPS) if self.norm_first else x

    def add(self, x: Array, w: Weights, norm: str, part: Callable[[Array], Array]) -> Array:
        """Add a part's output to the vectors, with a norm before or after it: [T D] -> [T D]."""
        if self.norm_first:
            return x + part(layer_norm(x, w, norm, NORM_EPS))
        return layer_norm(x + part(x), w, norm, NORM_EPS)


@config
class MBart(Bart):
    """Hyperparameters of mBART, in forward order."""

    norm_first: bool = fixed(True)


@config
class Blenderbot(Bart):
    """Hyperparameters of Blenderbot, in forward order."""

    norm_first: bool = fixed(True)
    norm_embedding: bool = fixed(False)
    reserved: int = fixed(0)


@config
class BlenderbotSmall(Bart):
    """Hyperparameters of Blenderbot 90M, in forward order; its decoder scales nothing, and adds the positions last."""

    reserved: int = fixed(0)

    def embedded(self, ids: Array, earlier: int, w: Weights, name: str) -> Array:
        if name == "encoder":
            return super().embedded(ids, earlier, w, name)
        x, stack = embed(ids, w, self.table(name), self.vocab_size, self.d_model), w.at("model.decoder")
        return self.placed(layer_norm(x, stack, "layernorm_embedding", NORM_EPS), earlier, stack)


@config
class PLBart(Bart):
    """Hyperparameters of PLBart, in forward order."""

    scale_embedding: bool = key("scale_embedding", True)


@config
class Mvp(Bart):
    """Hyperparameters of MVP without prompts, in forward order."""

    prompts: Literal[False] = key("use_prompt", False)

    ignored = Bart.ignored | {"prompt_length", "prompt_mid_dim"}


@config
class M2M100(Bart):
    """Hyperparameters of M2M-100 and NLLB, in forward order; positions are computed."""

    scale_embedding: bool = key("scale_embedding", True)
    activation: str = key("activation_function", "relu")
    padding: Count = key("pad_token_id", 1)
    norm_first: bool = fixed(True)
    norm_embedding: bool = fixed(False)
    final_bias: bool = fixed(False)

    def check(self) -> None:
        super().check()
        must_be_even(self.d_model)

    def placed(self, x: Array, earlier: int, stack: Weights) -> Array:
        places = np.arange(x.shape[0], like=x) + (earlier + int(self.padding) + 1)
        return x + sinusoids(places, self.d_model)


@config
class Marian(Bart):
    """Hyperparameters of Marian, in forward order; positions are computed, and both stacks may have a vocabulary."""

    n_written: Size = key("decoder_vocab_size", lambda c: c.vocab_size)
    shared: bool = key("share_encoder_decoder_embeddings", True)
    norm_embedding: bool = fixed(False)

    def check(self) -> None:
        super().check()
        must_be_even(self.d_model)
        if self.shared and self.n_written != self.vocab_size:
            raise Problem(
                f"decoder_vocab_size = {int(self.n_written)} and vocab_size = {int(self.vocab_size)} share a table",
                "make them equal",
            )

    @property
    def vocabulary(self) -> int:
        return self.vocab_size if self.shared else self.n_written

    def table(self, stack: str) -> str:
        return "model.shared.weight" if self.shared and self.tied else f"model.{stack}.embed_tokens.weight"

    def spare(self, w: Weights) -> None:
        if self.shared:
            super().spare(w)

    def placed(self, x: Array, earlier: int, stack: Weights) -> Array:
        return x + sinusoids(np.arange(x.shape[0], like=x) + earlier, self.d_model, self.d_model // 2)


def must_be_even(width: int) -> None:
    """Raise `Problem` unless a position has as many sines as cosines."""
    if width % 2 or width < 4:
        raise Problem(
            f"d_model = {int(width)}: expected an even number, 4 or more",
            "correct it: a position is as many sines as cosines",
        )


HEADS = {
    "ForConditionalGeneration": OWN,
    "Model": BASE,
    "ForSequenceClassification": Task("sequence classification", "classify_written"),
    "ForQuestionAnswering": Task("question answering", "find_answer", 2),
}


@architecture(
    "mbart",
    config=MBart,
    heads=HEADS,
    peft=Peft(tied_tables=MODEL_TABLES),
)
@architecture(
    "pegasus",
    "blenderbot",
    config=Blenderbot,
    heads=HEADS,
    peft=Peft(tied_tables=MODEL_TABLES),
)
@architecture(
    "blenderbot-small",
    config=BlenderbotSmall,
    heads=HEADS,
    peft=Peft(tied_tables=MODEL_TABLES),
)
@architecture(
    "plbart",
    config=PLBart,
    heads=HEADS,
    peft=Peft(tied_tables=MODEL_TABLES),
)
@architecture("mvp", config=Mvp, heads=HEADS, peft=Peft(tied_tables=MODEL_TABLES))
@architecture(
    "m2m_100",
    config=M2M100,
    heads=HEADS,
    peft=Peft(tied_tables=MODEL_TABLES),
)
@architecture("marian", config=Marian, heads={"MTModel": OWN} | HEADS)
@architecture(
    "bart",
    config=Bart,
    heads=HEADS,
    peft=Peft(QUERY_VALUE, tied_tables=MODEL_TABLES),
)
def forward(w: Weights, ids: Array, c: Bart, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    x = c.embedded(ids, cache.length, w, "decoder")
    for _, w_layer, kept in w.layers(
        "model.decoder.layers", ["layer"] * c.n_decoder_layers, cache, "decoder", c.n_encoder_layers
    ):
        x = decoder_layer(x, w_layer, c, kept, read)
    logits = unembed(c.finished(x, w, "decoder"), w, c.head, c.vocabulary, last=last)
    c.spare(w)
    return logits + w.buffer("final_logits_bias", 1, c.vocabulary, counted=False) if c.final_bias else logits


def encode(source: Array, w: Weights, c: Bart, cache: KVCache) -> Array:
    """The encoder's output for a text, each token in the context of all: [M] -> [M D]."""
    x = c.embedded(source, 0, w, "encoder")
    for _, w_layer, _ in w.layers("model.encoder.layers", ["layer"] * c.n_encoder_layers, cache, "encoder"):
        x = encoder_layer(x, w_layer, c)
    return c.finished(x, w, "encoder")


@step(Role.LAYER)
def encoder_layer(x: Array, w: Weights, c: Bart) -> Array:
    """One block of the encoder: [M D] -> [M D]."""
    n, width, act = c.n_encoder_heads, c.d_encoder_head, activation(c.activation)
    x = c.add(x, w, "self_attn_layer_norm", lambda y: attention(y, w.at("self_attn"), n, width))
    return c.add(x, w, "final_layer_norm", lambda y: feed_forward(y, w, c.d_ff_encoder, act))


@step(Role.LAYER)
def decoder_layer(x: Array, w: Weights, c: Bart, cache: KVCache, read: Array) -> Array:
    """One block of the decoder: [T D] -> [T D]."""
    n, width, rows, act = c.n_heads, c.d_head, c.n_source, activation(c.activation)
    x = c.add(x, w, "self_attn_layer_norm", lambda y: causal_attention(y, w.at("self_attn"), n, width, cache))
    x = c.add(
        x, w, "encoder_attn_layer_norm", lambda y: cross_attention(y, w.at("encoder_attn"), n, width, cache, read, rows)
    )
    return c.add(x, w, "final_layer_norm", lambda y: feed_forward(y, w, c.d_ff, act))


def project(x: Array, w: Weights, name: str, n: int, width: int, bias: bool = True) -> Array:
    """A linear map as wide as the vector, cut into heads: [T D] -> [T N H]."""
    return heads(linear(x, w, name, x.shape[1], bias=bias), n, width)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, n: int, width: int, key_bias: bool = True) -> Array:
    """Let each token gather information from all tokens, including later ones: [M D] -> [M D]."""
    q = project(x, w, "q_proj", n, width)
    k = project(x, w, "k_proj", n, width, key_bias)
    v = project(x, w, "v_proj", n, width)
    return linear(attend(q, k, v, None, width**-0.5), w, "out_proj", x.shape[1], bias=True)


@step(Role.ATTENTION)
def causal_attention(x: Array, w: Weights, n: int, width: int, cache: KVCache, key_bias: bool = True) -> Array:
    """Let each token gather information from itself and those before it: [T D] -> [T D]."""
    q = project(x, w, "q_proj", n, width)
    k = cache.extend(Holds.KEYS, project(x, w, "k_proj", n, width, key_bias), Full())
    v = cache.extend(Holds.VALUES, project(x, w, "v_proj", n, width), Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), width**-0.5)
    return linear(mixed, w, "out_proj", x.shape[1], bias=True)


@step(Role.CROSS_ATTENTION)
def cross_attention(
    x: Array, w: Weights, n: int, width: int, cache: KVCache, read: Array, rows: int, key_bias: bool = True
) -> Array:
    """Let each token gather information from the encoder's output: [T D], [M D] -> [T D]."""
    q = project(x, w, "q_proj", n, width)
    k = cache.fill(Holds.SOURCE_KEYS, project(read, w, "k_proj", n, width, key_bias), rows)
    v = cache.fill(Holds.SOURCE_VALUES, project(read, w, "v_proj", n, width), rows)
    return linear(attend(q, k, v, None, width**-0.5), w, "out_proj", x.shape[1], bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, width: int, act: Activation) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(act(linear(x, w, "fc1", width, bias=True)), w, "fc2", x.shape[1], bias=True)
