"""UltraBERT: EuroBERT's block with windows to both sides in two layers of three.

The text is read at once: nothing is kept for a next step. Source: transformers 5.24, models/ultrabert; tensor names as
its model for masked words (UltrabertForMaskedLM).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..facts import Task
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Rope,
    SlidingWindow,
    apply_rope,
    embed,
    gelu_tanh,
    heads,
    last_row,
    linear,
    positions,
    repeat_kv,
    rms_norm,
    rope_table,
    scores,
    softmax,
    weighted_sum,
)
from ..steps import Role, step
from . import architecture
from .config import Positive, Raw, Size, config, full_every, key, listed, masks_of
from .eurobert import EuroBert
from .llama import feed_forward
from .modernbert import window_mask
from .rope_config import fold_rope_of_kinds, read_rope, rope_of_mask
from .tasks import BASE, OWN

THETAS: Raw = {"sliding_attention": {"rope_theta": 10_000.0}, "full_attention": {"rope_theta": 2_560_000.0}}


@config
class UltraBert(EuroBert):
    """Hyperparameters of UltraBERT, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    layer_types: list[str] = key("layer_types", lambda c: full_every(3, c.n_layers))
    sliding_window: Size = key("sliding_window", 128)
    d_narrow: Size = key("prediction_head_size", 768)

    ignored = EuroBert.ignored | {"classifier_dropout"}
    rewritten = EuroBert.rewritten | {"attention_windows"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The keys by type of layer; older files have a window, and a base of the rotary embedding, for each layer."""
        windows = listed(raw.pop("attention_windows", None))
        if windows is not None:
            raw["sliding_window"] = next((one for one in windows if one), raw.get("sliding_window"))
            types = ["sliding_attention" if one else "full_attention" for one in windows]
            raw["layer_types"] = raw.get("layer_types") or types
        thetas, types = listed(raw.get("rope_theta")), listed(raw.get("layer_types"))
        if thetas is not None and types is not None:
            raw.pop("rope_theta")
            by_type = {name: {"rope_theta": theta} for name, theta in zip(types, thetas) if isinstance(name, str)}
            raw["rope_parameters"] = raw.get("rope_parameters") or by_type
        return fold_rope_of_kinds(raw, THETAS)

    def check(self) -> None:
        super().check()
        for mask in self.masks:
            rope_of_mask(self.rope_parameters, mask).turning(self.d_head)

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, layer_type="full_attention")

    @property
    def masks(self) -> list[Mask]:
        """The mask of each layer, in order: windows are symmetric."""
        return masks_of(self.layer_types, self.n_layers, self.sliding_window)


@step(Role.TASK_HEAD)
def classify(x: Array, w: Weights, trunk: Weights, labels: int, c: Any) -> Array:
    """A score of the text for each label, by its first token: [T D], [C D], [C] -> [1 C]."""
    return linear(x[:1], w, "classifier", labels, bias=True)


HEADS = {
    "ForMaskedLM": OWN,
    "Model": BASE,
    "ForSequenceClassification": Task("sequence classification", classify),
    "ForTokenClassification": Task("token classification", "classify_tokens"),
    "ForQuestionAnswering": Task("question answering", "find_answer"),
}


PUBLISHED = (("^ultrabert.", "model."), ("^cls.", "head.decoder."))


@architecture("ultrabert", config=UltraBert, spellings=PUBLISHED, heads=HEADS)
def forward(w: Weights, ids: Array, c: UltraBert, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places = positions(ids, cache)
    tables = {m: rope_table(places, c.d_head, rope_of_mask(c.rope_parameters, m)) for m in dict.fromkeys(c.masks)}
    for mask, w_layer, _ in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, c, mask, tables[mask])
    return prediction_head(rms_norm(x, w, "model.norm", c.norm_eps), w, c, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: UltraBert, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, c: UltraBert, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from those before and after it, near ones or all: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    q, k = apply_rope(q, table), apply_rope(k, table)
    fit = scores(q, repeat_kv(k, c.n_heads), c.d_head**-0.5)
    if isinstance(mask, SlidingWindow):
        fit = window_mask(fit, mask.size)
    mixed = weighted_sum(softmax(fit), repeat_kv(v, c.n_heads))
    return linear(mixed.reshape(x.shape[0], c.n_heads * c.d_head), w, "o_proj", c.d_model, bias=c.attention_bias)


@step(Role.UNEMBED)
def prediction_head(x: Array, w: Weights, c: UltraBert, *, last: bool) -> Array:
    """Change the vector in a narrower space, and score every token: [T D] -> [T D'] -> [T D] -> [T V], or [1 V]."""
    x = gelu_tanh(linear(last_row(x) if last else x, w, "head.linear1", c.d_narrow))
    x = gelu_tanh(linear(x, w, "head.linear2", c.d_model))
    table = "model.embed_tokens.weight" if c.tied else "head.decoder.weight"
    return np.einsum("td,vd->tv", x, w(table, c.vocab_size, c.d_model), optimize=True)
