"""Nomic BERT, GTE and Jina Embeddings v3: encoders with rotary positions and a norm after each half.

The text is read at once: nothing is kept for a next step. Sources: arXiv 2402.01613 (Nomic), 2407.19669 (GTE),
2409.10173 (Jina); tensor names as transformers 5's models for masked words (NomicBertForMaskedLM). GTE's own files are
of the type `new`, of Alibaba-NLP/new-impl: vLLM, model_executor/models/bert_with_rope.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ..errors import Problem, shorten
from ..facts import Gguf, Peft, Task
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Activation,
    Rope,
    apply_rope,
    attend,
    embed,
    embed_segments,
    heads,
    last_row,
    layer_norm,
    linear,
    positions,
    rope_table,
)
from ..steps import Role, step
from . import architecture
from .bart import feed_forward
from .bert import Bert
from .config import Config, Count, Positive, Raw, Size, activation, config, fixed, key, tabled
from .gguf_tables import ENCODER_TABLES
from .roberta import masked_head
from .rope_config import OLDER_ROPE_KEYS, read_rope
from .tasks import BASE, OWN


@config
class NomicBert(Config):
    """Hyperparameters of Nomic BERT, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    n_segments: Count = key("type_vocab_size", 2)
    d_model: Size = key("hidden_size", also=("n_embd",))
    # layers
    n_layers: Size = key("num_hidden_layers", also=("n_layer",))
    norm_eps: Positive = key("layer_norm_eps", 1e-12, also=("layer_norm_epsilon",))
    # attention
    n_heads: Size = key("num_attention_heads", also=("n_head",))
    d_head: Size = key("head_dim", lambda c: c.d_model // c.n_heads)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # feed-forward
    d_ff: Size = key("intermediate_size", also=("n_inner",))
    activation: str = key("hidden_act", "silu")
    # head
    tied: Literal[True] = key("tie_word_embeddings", True)

    # What the trunk is called, the rope's theta, whether attention has biases, and the feed-forward network a gate.
    trunk: str = fixed("nomic_bert")
    theta: float = fixed(1000.0)
    bias: bool = fixed(False)
    is_gated: bool = fixed(True)
    # Where the head's bias is, if it is RoBERTa's.
    head_bias: str = fixed("")

    caveat = Bert.caveat
    rewritten = OLDER_ROPE_KEYS
    ignored = frozenset({"attention_probs_dropout_prob", "classifier_dropout"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=self.theta)


@config
class Gte(NomicBert):
    """Hyperparameters of GTE, in forward order."""

    n_segments: Count = key("type_vocab_size", 1)
    activation: str = key("hidden_act", "gelu")
    trunk: str = fixed("gte")
    theta: float = fixed(160_000.0)
    bias: bool = fixed(True)
    head_bias: str = fixed("lm_head.decoder.bias")


@config
class New(Gte):
    """Hyperparameters of GTE in its maker's files, in forward order."""

    theta: float = fixed(10_000.0)

    ignored = Gte.ignored | {
        "layer_norm_type",
        "logn_attention_clip1",
        "logn_attention_scale",
        "pack_qkv",
        "position_embedding_type",
        "unpad_inputs",
        "use_memory_efficient_attention",
    }

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """Its scaling, `ntk`: theta grows by the factor s, and each angle is divided by s^(2 / width of a head)."""
        table = tabled(raw.get("rope_scaling")) or {}
        if table.get("type", table.get("rope_type")) != "ntk":
            return super().prepare(raw)
        factor, theta = number_of(table, "factor"), number_of(raw, "rope_theta", 10_000.0)
        width, n_heads = number_of(raw, "hidden_size"), number_of(raw, "num_attention_heads")
        if table.get("mixed_b") is not None:
            raise Problem(f"rope_scaling.mixed_b = {shorten(table['mixed_b'])}: is not covered", "leave it out")
        rest = {name: value for name, value in raw.items() if name not in OLDER_ROPE_KEYS}
        divisor = factor ** (2 * n_heads / width)
        return {**rest, "rope_parameters": {"rope_type": "linear", "rope_theta": theta * factor, "factor": divisor}}


def number_of(table: Mapping[str, Any], name: str, usual: float | None = None) -> float:
    """A number above 0 of a table. Raises `Problem`."""
    value: object = table.get(name)
    value = usual if value is None else value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e18:
        raise Problem(f"{name} = {shorten(value)}: expected a number above 0", "correct the value")
    return value


@config
class JinaV3(NomicBert):
    """Hyperparameters of Jina Embeddings v3, in forward order."""

    n_segments: Count = key("type_vocab_size", 1)
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    activation: str = key("hidden_act", "gelu")
    trunk: str = fixed("roberta")
    theta: float = fixed(20_000.0)
    bias: bool = fixed(True)
    is_gated: bool = fixed(False)
    head_bias: str = fixed("lm_head.bias")


# The names and matrices of GTE's own files.
PACKED_GTE = {
    "attention.qkv_proj.weight": tuple(f"self_attn.{one}_proj.weight" for one in "qkv"),
    "attention.qkv_proj.bias": tuple(f"self_attn.{one}_proj.bias" for one in "qkv"),
    "mlp.up_gate_proj.weight": ("mlp.up_proj.weight", "mlp.gate_proj.weight"),
}
GTE_NAMES = (
    (".encoder.layer.", ".layers."),
    (".attention.o_proj.", ".self_attn.o_proj."),
    (".attn_ln.", ".post_attention_layernorm."),
    (".mlp_ln.", ".post_mlp_layernorm."),
    ("lm_head.norm.", "lm_head.layer_norm."),
)


# Its queries, keys and values, which the maker's files have in one matrix.
_ENCODER_IN_ONE = {
    "self_attn.q_proj": "tripled:attn_qkv",
    "self_attn.k_proj": "-",
    "self_attn.v_proj": "-",
    "post_attention_layernorm": "attn_output_norm",
    "post_mlp_layernorm": "layer_output_norm",
}


HEADS = {
    "ForMaskedLM": OWN,
    "Model": BASE,
    "ForSequenceClassification": Task("sequence classification", "classify_pooled"),
    "ForTokenClassification": Task("token classification", "classify_tokens"),
}


@architecture(
    "new",
    config=New,
    fused=PACKED_GTE,
    spellings=(("^new.", "gte."), *GTE_NAMES),
    heads=HEADS,
    called_by_vllm=("gte_new",),
    peft=Peft(tied_head="lm_head.decoder"),
)
@architecture(
    "gte", config=Gte, fused=PACKED_GTE, spellings=GTE_NAMES, heads=HEADS, peft=Peft(tied_head="lm_head.decoder")
)
@architecture(
    "jina_embeddings_v3",
    config=JinaV3,
    fused={
        "mixer.Wqkv.weight": tuple(f"self_attn.{one}_proj.weight" for one in "qkv"),
        "mixer.Wqkv.bias": tuple(f"self_attn.{one}_proj.bias" for one in "qkv"),
    },
    spellings=(
        ("roberta.emb_ln.", "roberta.embeddings.LayerNorm."),
        ("roberta.encoder.layers.", "roberta.layers."),
        (".mixer.out_proj.", ".self_attn.o_proj."),
        (".norm1.", ".post_attention_layernorm."),
        (".norm2.", ".post_mlp_layernorm."),
    ),
    gguf=Gguf("jina-bert-v3", _ENCODER_IN_ONE, ENCODER_TABLES),
    heads=HEADS
    | {
        "Model": Task("the last hidden states and the text's vector", "pool", 0, ""),
        "ForSequenceClassification": Task("sequence classification", "classify_dense"),
        "ForQuestionAnswering": Task("question answering", "find_answer"),
    },
    peft=Peft(tied_head="lm_head.decoder"),
)
@architecture(
    "nomic_bert",
    config=NomicBert,
    fused={"attn.Wqkv.weight": tuple(f"self_attn.{one}_proj.weight" for one in "qkv")},
    spellings=(
        ("nomic_bert.emb_ln.", "nomic_bert.embeddings.LayerNorm."),
        ("nomic_bert.encoder.layers.", "nomic_bert.layers."),
        (".attn.out_proj.", ".self_attn.o_proj."),
        (".mlp.fc11.", ".mlp.up_proj."),
        (".mlp.fc12.", ".mlp.gate_proj."),
        (".mlp.fc2.", ".mlp.down_proj."),
        (".norm1.", ".post_attention_layernorm."),
        (".norm2.", ".post_mlp_layernorm."),
    ),
    gguf=Gguf("nomic-bert", _ENCODER_IN_ONE, ENCODER_TABLES),
    heads=HEADS,
    peft=Peft(tied_head="cls.predictions.decoder"),
)
def forward(w: Weights, ids: Array, c: NomicBert, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    tables = w.at(f"{c.trunk}.embeddings")
    x = embed(ids, tables, "word_embeddings.weight", c.vocab_size, c.d_model)
    x = x + embed_segments(ids, tables, "token_type_embeddings.weight", c.n_segments, c.d_model) if c.n_segments else x
    x = layer_norm(x, tables, "LayerNorm", c.norm_eps)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, _ in w.layers(f"{c.trunk}.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c, table)
    if c.head_bias:
        return masked_head(
            x, w, c.vocab_size, c.norm_eps, f"{c.trunk}.embeddings.word_embeddings", c.head_bias, last=last
        )
    return prediction_head(x, w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: NomicBert, table: RopeTable) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    x = layer_norm(x + attention(x, w.at("self_attn"), c, table), w, "post_attention_layernorm", c.norm_eps)
    act = activation(c.activation)
    y = gated(x, w.at("mlp"), c.d_ff, act, c.bias) if c.is_gated else feed_forward(x, w.at("mlp"), c.d_ff, act)
    return layer_norm(x + y, w, "post_mlp_layernorm", c.norm_eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: NomicBert, table: RopeTable) -> Array:
    """Let each token gather information from all tokens, including later ones: [T D] -> [T D]."""
    q, k, v = (
        heads(linear(x, w, name, c.n_heads * c.d_head, bias=c.bias), c.n_heads, c.d_head)
        for name in ("q_proj", "k_proj", "v_proj")
    )
    mixed = attend(apply_rope(q, table), apply_rope(k, table), v, None, c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.bias)


@step(Role.FEED_FORWARD)
def gated(x: Array, w: Weights, width: int, act: Activation, bias: bool) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    wide = act(linear(x, w, "gate_proj", width)) * linear(x, w, "up_proj", width)
    return linear(wide, w, "down_proj", x.shape[-1], bias=bias)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: NomicBert, *, last: bool) -> Array:
    """Transform the vector once more, and score every token of the vocabulary: [T D], [V D] -> [T V], or [1 V]."""
    x = linear(last_row(x) if last else x, w, "cls.predictions.transform.dense", c.d_model, bias=True)
    x = layer_norm(activation(c.activation)(x), w, "cls.predictions.transform.layer_norm", c.norm_eps)
    table = w(f"{c.trunk}.embeddings.word_embeddings.weight", c.vocab_size, c.d_model)
    return np.einsum("td,vd->tv", x, table, optimize=True) + w("cls.predictions.bias", c.vocab_size)
