"""An encoder and a decoder of BERT's kind: BERT2BERT, and RoBERTa's and BERT's for generation.

The decoder looks at the encoder's output; `t5` explains the two lengths. Where both are of different width, a matrix
stands between them. The encoder's own vector for the whole text is computed, and not used. Sources: transformers 5.24,
models/encoder_decoder (arXiv 1907.12461); tensor names as transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar, cast

import numpy as np

from ..errors import Problem, shorten
from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..keys import DUMPED
from ..ops import linear
from . import architecture
from .bert import Bert, layer
from .bert_decoder import BertDecoder, BertGenerationDecoder, RobertaDecoder
from .blip import layer as decoder_layer
from .config import (
    COMMON_IGNORED,
    Config,
    Count,
    Positive,
    Raw,
    Size,
    activation,
    config,
    derived,
    fields_of,
    fixed,
    key,
)
from .pooling import pooled
from .t5 import STACKS, T5
from .tasks import OWN

Kind = Literal["bert", "roberta", "xlm-roberta", "camembert", "bert-generation"]
DECODERS = {"bert": BertDecoder, "bert-generation": BertGenerationDecoder}  # all others are RoBERTa's

# What the table of a stack says besides: what changes nothing, and what the decoder of a whole must be.
OF_STACKS = ((COMMON_IGNORED | DUMPED | Bert.ignored) - {"max_position_embeddings", "pad_token_id"}) | {
    "add_cross_attention",
    "is_decoder",
}
# Keys without effect in one of them.
OF_ONE = {"encoder": {"tie_word_embeddings"}, "decoder": frozenset[str]()}

StackT = TypeVar("StackT", bound=Bert)


def usual_padding(kind: str) -> int:
    """The default padding token of a config class."""
    return 0 if kind in DECODERS else 1


@config
class Reader(Bert):
    """Hyperparameters of BERT as the encoder of an encoder-decoder model."""

    trunk: str = fixed("encoder")


@config
class EncoderDecoder(Config):
    """Hyperparameters of an encoder and a decoder of BERT's kind, in forward order."""

    # embedding
    kind: Kind = key("decoder.model_type", "bert")
    vocab_size: Size = key("decoder.vocab_size")
    n_positions: Size = key("decoder.max_position_embeddings")
    n_segments: Count = key("decoder.type_vocab_size", 2)
    padding: Count = key("decoder.pad_token_id", lambda c: usual_padding(c.kind))
    # encoder
    encoder_kind: Kind = key("encoder.model_type", "bert")
    n_read: Size = key("encoder.vocab_size")
    n_encoder_positions: Size = key("encoder.max_position_embeddings")
    n_encoder_segments: Count = key("encoder.type_vocab_size", 2)
    encoder_padding: Count = key("encoder.pad_token_id", lambda c: usual_padding(c.encoder_kind))
    n_source: Size = derived(
        lambda c: c.n_encoder_positions - (0 if c.encoder_kind in DECODERS else c.encoder_padding + 1)
    )
    d_encoder: Size = key("encoder.hidden_size")
    n_encoder_layers: Size = key("encoder.num_hidden_layers")
    encoder_eps: Positive = key("encoder.layer_norm_eps", 1e-12)
    n_encoder_heads: Size = key("encoder.num_attention_heads")
    d_encoder_head: Size = derived(lambda c: c.d_encoder // c.n_encoder_heads)
    d_ff_encoder: Size = key("encoder.intermediate_size")
    encoder_activation: str = key("encoder.hidden_act", "gelu")
    encoder_places: Literal["absolute"] = key("encoder.position_embedding_type", "absolute")
    # decoder
    d_model: Size = key("decoder.hidden_size")
    n_decoder_layers: Size = key("decoder.num_hidden_layers")
    norm_eps: Positive = key("decoder.layer_norm_eps", 1e-12)
    n_heads: Size = key("decoder.num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_ff: Size = key("decoder.intermediate_size")
    activation: str = key("decoder.hidden_act", "gelu")
    places: Literal["absolute"] = key("decoder.position_embedding_type", "absolute")
    # head
    tied: bool = key("decoder.tie_word_embeddings", True)

    caveat = T5.caveat
    rewritten = frozenset(STACKS)
    ignored = DUMPED | {"tie_word_embeddings", "vocab_size"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The keys of both tables side by side, each with the name of its stack."""
        for stack in STACKS:
            if stack not in raw:
                continue
            table: object = raw.pop(stack)
            if not isinstance(table, Mapping):
                raise Problem(f"{stack} = {shorten(table)}: expected a table", "write its keys below it")
            keys = cast("Mapping[str, Any]", table)
            if stack == "decoder" and not keys.get("add_cross_attention"):
                raise Problem(
                    "decoder.add_cross_attention is not true",
                    "set it: without it, the decoder sees nothing of the encoder's output",
                )
            dropped = OF_STACKS | OF_ONE[stack]
            raw |= {f"{stack}.{name}": value for name, value in keys.items() if name not in dropped}
        return raw

    @property
    def first_row(self) -> int:
        """The row of the position table that the first token takes."""
        return 0 if self.kind in DECODERS else int(self.padding) + 1

    @property
    def position_reach(self) -> int:
        return int(self.n_positions) - self.first_row

    @classmethod
    def read_otherwise(cls, raw: Mapping[str, Any]) -> list[str]:
        tied = ("tie_encoder_decoder = true: transformers 5.24 keeps the weights of both stacks apart, as here",)
        return [*super().read_otherwise(raw), *(tied if raw.get("tie_encoder_decoder") else ())]

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        self.must_divide("n_encoder_heads", "d_encoder")
        for kind, padding, places in (
            (self.kind, "padding", "n_positions"),
            (self.encoder_kind, "encoder_padding", "n_encoder_positions"),
        ):
            if kind not in DECODERS:
                self.must_not_exceed(padding, places)
        for name in (self.activation, self.encoder_activation):
            activation(name)

    @property
    def reader(self) -> Bert:
        """The encoder's hyperparameters by BERT's names."""
        return named_as(
            Reader,
            vocab_size=self.n_read,
            n_positions=self.n_encoder_positions,
            n_segments=0 if self.encoder_kind == "bert-generation" else self.n_encoder_segments,
            d_model=self.d_encoder,
            n_layers=self.n_encoder_layers,
            norm_eps=self.encoder_eps,
            n_heads=self.n_encoder_heads,
            d_head=self.d_encoder_head,
            d_ff=self.d_ff_encoder,
            activation=self.encoder_activation,
        )

    @property
    def writer(self) -> BertDecoder:
        """The decoder's hyperparameters by BERT's names."""
        return named_as(
            DECODERS.get(self.kind, RobertaDecoder),
            vocab_size=self.vocab_size,
            n_positions=self.n_positions,
            n_source=self.n_source,
            n_segments=0 if self.kind == "bert-generation" else self.n_segments,
            padding=self.padding,
            d_model=self.d_model,
            n_layers=self.n_decoder_layers,
            norm_eps=self.norm_eps,
            n_heads=self.n_heads,
            d_head=self.d_head,
            d_ff=self.d_ff,
            activation=self.activation,
            tied=self.tied,
        )


def named_as(kind: type[StackT], **values: Any) -> StackT:
    """The config of one stack, with the sizes of the whole model, under their own names."""
    own = {k.field for k in fields_of(kind)}
    made = kind(**{name: value for name, value in values.items() if name in own})
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


HEADS = {"Model": OWN}


@architecture(
    "encoder-decoder", config=EncoderDecoder, heads=HEADS, peft=Peft(tied_head="decoder.cls.predictions.decoder")
)
def forward(w: Weights, ids: Array, c: EncoderDecoder, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    source, stack, below = cache.source(c.n_source), c.writer, w.at("decoder")
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    x = stack.embedded(ids, cache, below, stack.first_row)
    layers = f"decoder.{stack.trunk}.encoder.layer"
    for _, w_layer, kept in w.layers(layers, ["layer"] * c.n_decoder_layers, cache, "decoder", c.n_encoder_layers):
        x = decoder_layer(x, w_layer, kept, stack, read)
    return stack.head(x, below, last)


def encode(source: Array, w: Weights, c: EncoderDecoder, cache: KVCache) -> Array:
    """The encoder's output for a text, as wide as the decoder: [M] -> [M D]."""
    stack = c.reader
    x = stack.embedded(source, cache, w, 0 if c.encoder_kind in DECODERS else int(c.encoder_padding) + 1)
    for _, w_layer, _ in w.layers("encoder.encoder.layer", ["layer"] * c.n_encoder_layers, cache, "encoder"):
        x = layer(x, w_layer, stack)
    if c.encoder_kind != "bert-generation":
        pooled(x, w.at("encoder"))  # a vector of the whole text, which nothing reads
    return x if c.d_encoder == c.d_model else linear(x, w, "enc_to_dec_proj", c.d_model, bias=True)
