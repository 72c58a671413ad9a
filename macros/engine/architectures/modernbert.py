"""ModernBERT: an encoder with rotary positions, gated feed-forward networks, and windows to both sides in most layers.

The text is read in one step: nothing is kept for a next one. Source: arXiv 2412.13663; tensor names as transformers 5.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ..facts import Gguf, Peft, Task
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Rope,
    apply_rope,
    embed,
    heads,
    last_row,
    layer_norm,
    linear,
    positions,
    rope_table,
    scores,
    softmax,
    weighted_sum,
)
from ..steps import Keeps, Role, step
from . import architecture
from .bert import Bert
from .config import Config, Interval, Positive, Raw, Size, activation, check_layer_types, config, derived, key
from .rope_config import read_rope
from .tasks import BASE, OWN


class Side(Struct, frozen=True):
    """How far a layer's tokens attend to both sides, None for no limit; the first layer has no norm."""

    reach: int | None
    is_first: bool

    def __str__(self) -> str:
        sees = "full" if self.reach is None else "sliding"
        return f"{sees}, first" if self.is_first else sees


@config
class ModernBert(Config):
    """Hyperparameters of ModernBERT, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("norm_eps", 1e-5)
    norm_bias: bool = key("norm_bias", False)
    full_every: Interval = key("global_attn_every_n_layers", 3)
    layer_types: list[str] = key(
        "layer_types",
        lambda c: ["sliding_attention" if i % c.full_every else "full_attention" for i in range(c.n_layers)],
    )
    # attention
    n_heads: Size = key("num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    window: Interval = key("local_attention", 128)
    attention_bias: bool = key("attention_bias", False)
    full_theta: Positive = key("global_rope_theta", 160_000.0)
    window_theta: Positive = key("local_rope_theta", 10_000.0)
    # One table for each kind of layer: no older key beside them is folded into it.
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # feed-forward
    d_ff: Size = key("intermediate_size")
    mlp_bias: bool = key("mlp_bias", False)
    activation: str = key("hidden_activation", "gelu")
    # head
    head_bias: bool = key("classifier_bias", False)
    head_activation: str = key("classifier_activation", "gelu")
    decoder_bias: bool = key("decoder_bias", True)
    tied: bool = key("tie_word_embeddings", True)

    caveat = Bert.caveat
    ignored = frozenset(
        {
            "initializer_cutoff_factor",
            "mlp_dropout",
            "classifier_pooling",
            "classifier_dropout",
            "deterministic_flash_attn",
            "sparse_prediction",
            "sparse_pred_ignore_index",
            "repad_logits_with_grad",
            "position_embedding_type",
            "layer_norm_eps",
        }
    )

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)
        activation(self.head_activation)
        for kind in self.kinds:
            self.rope_of(kind)

    @property
    def kinds(self) -> list[Side]:
        """The mask of each layer, in order."""
        reach = {"full_attention": None, "sliding_attention": self.window // 2}
        check_layer_types(self.layer_types, self.n_layers, reach)
        return [Side(reach[name], i == 0) for i, name in enumerate(self.layer_types)]

    def rope_of(self, kind: Side) -> Rope:
        """The rotary embedding of a kind of layer."""
        if kind.reach is None:
            return read_rope({"rope_theta": self.full_theta, **self.rope_parameters.get("full_attention", {})})
        return read_rope({"rope_theta": self.window_theta, **self.rope_parameters.get("sliding_attention", {})})

    def norm(self, x: Array, w: Weights, name: str) -> Array:
        """Layer norm, with a shift or without."""
        return layer_norm(x, w, name, self.norm_eps, bias=self.norm_bias)


GGUF = Gguf(
    "modern-bert",
    {
        "attn_norm": "attn_norm",
        "attn.Wqkv": "attn_qkv",
        "attn.Wo": "attn_output",
        "mlp_norm": "ffn_norm",
        "mlp.Wi": "ffn_up",
        "mlp.Wo": "ffn_down",
    },
    {
        "tok_embeddings": "token_embd",
        "embeddings.norm": "token_embd_norm",
        "final_norm": "output_norm",
        "head.dense": "-",
        "head.norm": "-",
        "decoder": "-",
    },
)


HEADS = {
    "ForMaskedLM": OWN,
    "Model": BASE,
    "ForSequenceClassification": Task("sequence classification", "classify_first"),
    "ForTokenClassification": Task("token classification", "classify_changed"),
    "ForQuestionAnswering": Task("question answering", "classify_changed"),
    "ForMultipleChoice": Task("multiple choice", "classify_first", 1),
}


@architecture("modernbert", config=ModernBert, gguf=GGUF, heads=HEADS, peft=Peft(tied_head="decoder"))
def forward(w: Weights, ids: Array, c: ModernBert, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    x = embed(ids, w, "model.embeddings.tok_embeddings.weight", c.vocab_size, c.d_model)
    x = c.norm(x, w, "model.embeddings.norm")
    places = positions(ids, cache)
    tables = {r: rope_table(places, c.d_head, c.rope_of(Side(r, False))) for r in {k.reach: 0 for k in c.kinds}}
    for kind, w_layer, _ in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, c, kind, tables[kind.reach])
    return prediction_head(c.norm(x, w, "model.final_norm"), w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: ModernBert, kind: Side, table: RopeTable) -> Array:
    """One transformer block; the first one's attention has no norm, the embeddings were normalized: [T D] -> [T D]."""
    y = x if kind.is_first else c.norm(x, w, "attn_norm")
    x = x + attention(y, w.at("attn"), c, kind.reach, table)
    return x + feed_forward(c.norm(x, w, "mlp_norm"), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: ModernBert, reach: int | None, table: RopeTable) -> Array:
    """Let each token gather information from those before and after it, near ones or all: [T D] -> [T D]."""
    q, k, v = np.split(linear(x, w, "Wqkv", 3 * c.d_model, bias=c.attention_bias), 3, axis=-1)
    q, k, v = (heads(part, c.n_heads, c.d_head) for part in (q, k, v))
    fit = scores(apply_rope(q, table), apply_rope(k, table), c.d_head**-0.5)
    if reach is not None:
        fit = window_mask(fit, reach)
    mixed = weighted_sum(softmax(fit), v)
    return linear(mixed.reshape(x.shape[0], c.d_model), w, "Wo", c.d_model, bias=c.attention_bias)


@step(Role.WINDOW_MASK, keeps=Keeps.NOTHING)
def window_mask(x: Array, reach: int) -> Array:
    """Hide the tokens farther away than a window reaches, on both sides: [N T T] -> [N T T]."""
    place = np.arange(x.shape[-1], like=x)
    return np.where(np.abs(place[:, None] - place[None, :]) <= reach, x, -np.inf)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: ModernBert) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T 2F] -> [T F] -> [T D]."""
    wide, gate = np.split(linear(x, w, "Wi", 2 * c.d_ff, bias=c.mlp_bias), 2, axis=-1)
    return linear(activation(c.activation)(wide) * gate, w, "Wo", c.d_model, bias=c.mlp_bias)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: ModernBert, *, last: bool) -> Array:
    """Transform the vector once more, and score every token of the vocabulary: [T D], [V D] -> [T V], or [1 V]."""
    x = linear(last_row(x) if last else x, w, "head.dense", c.d_model, bias=c.head_bias)
    x = c.norm(activation(c.head_activation)(x), w, "head.norm")
    table = "model.embeddings.tok_embeddings.weight" if c.tied else "decoder.weight"
    logits = np.einsum("td,vd->tv", x, w(table, c.vocab_size, c.d_model), optimize=True)
    return logits + w("decoder.bias", c.vocab_size) if c.decoder_bias else logits
