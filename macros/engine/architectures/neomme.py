"""NeoMME: an encoder of text and pages, with windows in most layers, values of the tokens' own, and gates on heads.

The text is read at once: nothing is kept for a next step. Source: transformers 5.24, models/neomme; tensor names as its
model for masked words (NeoMMEForMaskedLM). Both axes of a position are the token's number in a text without images.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ..errors import Problem
from ..facts import Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Rope,
    apply_rope,
    embed,
    heads,
    last_row,
    linear,
    positions,
    repeat_kv,
    rope_table,
    scores,
    sigmoid,
    softmax,
    unit_norm,
    weighted_sum,
)
from ..steps import Role, step
from . import architecture
from .bert import Bert
from .config import Config, Positive, Raw, Size, activation, check_layer_types, config, key, tabled
from .modernbert import window_mask
from .rope_config import OLDER_ROPE_KEYS, fold_rope_of_kinds, read_rope
from .tasks import BASE, OWN

ROPES: Raw = {
    "full_attention": {"rope_theta": 1_000_000.0, "partial_rotary_factor": 0.25},
    "sliding_attention": {"rope_theta": 10_000.0, "partial_rotary_factor": 1.0},
}
LONG_WINDOW = 1024  # of every second layer with a window


class Reach(Struct, frozen=True):
    """A layer's type, its reach to both sides (None: no limit), and whether its tokens have their own values."""

    layer_type: str
    reach: int | None
    has_values: bool

    def __str__(self) -> str:
        sees = "full" if self.reach is None else "sliding"
        return f"{sees}, token values" if self.has_values else sees


@config
class NeoMME(Config):
    """Hyperparameters of NeoMME, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_embedding: Size = key("embedding_rank", 256)
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("norm_eps", 1e-6)
    layer_types: list[str] = key("layer_types", lambda c: c.default_layer_types())
    branch: Positive = key("residual_multiplier", lambda c: (2 * int(c.n_layers)) ** -0.5)
    # attention
    n_heads: Size = key("num_attention_heads", 16)
    n_kv_heads: Size = key("num_key_value_heads", 4)
    d_head: Size = key("head_dim", 64)
    attention_bias: bool = key("attention_bias", False)
    window: Size = key("sliding_window", 256)
    by_layer: Raw = key("per_layer_config", lambda c: {})
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # feed-forward
    d_ff: Size = key("intermediate_size")
    mlp_bias: bool = key("mlp_bias", False)
    activation: str = key("hidden_act", "relu2")
    # head
    tied: bool = key("tie_word_embeddings", True)

    caveat = Bert.caveat + " What reads the patches of an image is not counted."
    rewritten = OLDER_ROPE_KEYS
    ignored = frozenset({"patch_size", "embedding_dim", "document_token_id", "image_token_id"})

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The keys with a rotary embedding for each type of layer."""
        raw = fold_rope_of_kinds(raw, dict.fromkeys(ROPES, {}))
        tables = raw["rope_parameters"]
        return raw | {
            "rope_parameters": {name: usual | (tabled(tables.get(name)) or {}) for name, usual in ROPES.items()}
        }

    def default_layer_types(self) -> list[str]:
        """Each sixth layer and the last have full attention."""
        last = int(self.n_layers) - 1
        return ["full_attention" if i % 6 == 5 or i == last else "sliding_attention" for i in range(self.n_layers)]

    def check(self) -> None:
        self.must_divide("n_kv_heads", "n_heads")
        activation(self.activation)
        for name in ROPES:
            self.rope_of(name).turning(self.d_head)
        check_layer_types(self.layer_types, self.n_layers, ROPES)
        if "full_attention" not in self.layer_types:
            raise Problem("layer_types has no full_attention, which some layer needs", "correct the value")

    @property
    def kinds(self) -> list[Reach]:
        """What each layer sees, in order: every second layer with a window has the long one."""
        full = [i for i, name in enumerate(self.layer_types) if name == "full_attention"]
        kinds: list[Reach] = []
        for i, name in enumerate(self.layer_types):
            place = i - len([one for one in full if one < i])  # among those with a window
            usual = None if i in full else LONG_WINDOW if place % 2 else int(self.window)
            if self.by_layer:
                usual = (tabled(self.by_layer.get(str(i))) or {}).get("sliding_window", int(self.window))
            kinds.append(Reach(name, usual, i in (full[0], full[-1])))
        return kinds

    def rope_of(self, layer_type: str) -> Rope:
        """The rotary embedding of a type of layer."""
        return read_rope(self.rope_parameters, layer_type=layer_type)


@architecture(
    "neomme",
    config=NeoMME,
    heads={"ForMaskedLM": OWN, "Model": BASE},
    peft=Peft(tied_head="lm_head", tables=("value_embeddings",)),
)
def forward(w: Weights, ids: Array, c: NeoMME, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    x = embed(ids, w, "model.embed_tokens.word_embeddings.weight", c.vocab_size, c.d_embedding)
    first = x = unit_norm(linear(x, w, "model.embed_tokens.embedding_projection", c.d_model), c.norm_eps)
    values = embed(ids, w, "model.value_embeddings.weight", c.vocab_size, c.n_kv_heads * c.d_head)
    places = positions(ids, cache)
    tables = {name: rope_table(places, c.d_head, c.rope_of(name)) for name in dict.fromkeys(c.layer_types)}
    for kind, w_layer, _ in w.layers("model.layers", c.kinds, cache):
        own = values if kind.has_values else None
        x = layer(x, first, own, w_layer, c, kind.reach, tables[kind.layer_type])
    return prediction_head(unit_norm(x, c.norm_eps), w, c, last=last)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: NeoMME, *, last: bool) -> Array:
    """Narrow the vector to the embedding's width, and score every token: [T D] -> [T R] -> [T V], or [1 V]."""
    narrow = "model.embed_tokens.embedding_projection" if c.tied else "unembedding_projection"
    table = "model.embed_tokens.word_embeddings" if c.tied else "lm_head"
    x = np.einsum(
        "td,dr->tr", last_row(x) if last else x, w(f"{narrow}.weight", c.d_model, c.d_embedding), optimize=True
    )
    return np.einsum("tr,vr->tv", x, w(f"{table}.weight", c.vocab_size, c.d_embedding), optimize=True)


@step(Role.LAYER)
def layer(
    x: Array, first: Array, values: Array | None, w: Weights, c: NeoMME, reach: int | None, table: RopeTable
) -> Array:
    """One transformer block, of which attention also reads the embedding: [T D], [T D] -> [T D]."""
    shares = w("lambdas", 2)
    mixed = unit_norm(x * shares[0] + first * shares[1], c.norm_eps)
    x = x + c.branch * attention(mixed, values, w.at("self_attn"), c, reach, table)
    return x + c.branch * feed_forward(unit_norm(x, c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, values: Array | None, w: Weights, c: NeoMME, reach: int | None, table: RopeTable) -> Array:
    """Let each token gather information from those before and after it, near ones or all: [T D] -> [T D]."""
    T, N, K, H = x.shape[0], c.n_heads, c.n_kv_heads, c.d_head
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = apply_rope(unit_norm(q, c.norm_eps), table), apply_rope(unit_norm(k, c.norm_eps), table)
    v = repeat_kv(v if values is None else v + heads(values, K, H), N)
    fit = scores(q, repeat_kv(k, N), H**-0.5)
    mixed = weighted_sum(softmax(fit if reach is None else window_mask(fit, reach)), v)
    mixed = exclusive(mixed, v, w).reshape(T, N * H)
    gate = sigmoid(linear(x, w, "output_projection.gate_proj", N * H))
    return linear(mixed * gate, w, "output_projection.o_proj", c.d_model, bias=c.attention_bias)


@step(Role.GATED_SUM)
def exclusive(x: Array, v: Array, w: Weights) -> Array:
    """Take a share of each token's own value out of its mixture, head by head: [T N H], [T N H] -> [T N H]."""
    unit = v / np.maximum(np.sqrt((v * v).sum(axis=-1, keepdims=True)), 1e-12)
    share = np.tanh(w("exclusive_self_attention.alpha", x.shape[1]))[None, :, None]
    return x - share * (x * unit).sum(axis=-1, keepdims=True) * unit


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: NeoMME) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "up_proj", c.d_ff, bias=c.mlp_bias))
    return linear(wide, w, "down_proj", c.d_model, bias=c.mlp_bias)
