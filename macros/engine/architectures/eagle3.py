"""EAGLE-3: a draft head whose first layer reads the embedding of a token beside hidden states of several target layers.

Sources: SafeAILab/EAGLE, eagle/model/cnets.py; sgl-project/SpecForge, llama3_eagle.py; vllm-project/speculators,
models/eagle3; arXiv 2503.01840. The embedding is the target's; the LM head, often over fewer tokens, the head's own.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

import numpy as np

from ..errors import Problem
from ..facts import UNREAD
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    apply_rope,
    attend,
    causal_mask,
    embed,
    heads,
    linear,
    positions,
    rms_norm,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Raw, Size, config, fixed, key, masks_of
from .eagle import EMBEDDING, DraftLayer
from .llama import Llama, feed_forward
from .rope_config import OLDER_ROPE_KEYS

MOST_FEATURES = 128
USUAL_FEATURES = 3  # layers of the target, where a config names none
OF_FEATURES = ("eagle_config", "eagle_aux_hidden_state_layer_ids", "num_aux_layers")


@config
class Eagle3(Llama):
    """Hyperparameters of an EAGLE-3 head, in forward order."""

    # the target's hidden states
    n_features: Size = key("num_aux_hidden_states", USUAL_FEATURES)
    d_target: Size = key("target_hidden_size", lambda c: c.d_model)
    norm_before_fc: bool = key("norm_before_fc", False)
    fc_norm: bool = key("fc_norm", False)
    is_parallel: bool = key("parallel_drafting", False)
    # layers
    norm_before_residual: bool = key("norm_before_residual", False)
    qk_norm: bool = key("use_qk_norm", False)
    layer_types: list[str] | None = key("layer_types", None)
    sliding_window: Size | None = key("sliding_window", None)
    # head
    draft_vocab_size: Size = key("draft_vocab_size", lambda c: c.vocab_size)
    tied: bool = fixed(False)

    rewritten = frozenset({*OLDER_ROPE_KEYS, *OF_FEATURES})
    ignored = Llama.ignored | {
        *("tie_word_embeddings", "norm_output", "use_sliding_window", "max_window_layers"),
        *("pard_token", "mask_token_id"),
    }
    checked: ClassVar[tuple[str, ...]] = ("rope", "kinds")
    caveat = "A draft head. The embedding belongs to its target and is not in these totals."

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The number of the target's layers that are read, in either spelling."""
        raw = super().prepare(raw)
        table: object = raw.pop("eagle_config", None)
        inside: dict[str, Any] = cast("dict[str, Any]", table) if isinstance(table, dict) else {}
        if inside.get("use_aux_hidden_state") is False:
            raise Problem(
                "eagle_config.use_aux_hidden_state = false: a head that fuses nothing",
                "no maker's code for it was read",
            )
        ids: object = raw.pop("eagle_aux_hidden_state_layer_ids", None) or inside.get(
            "eagle_aux_hidden_state_layer_ids"
        )
        count: object = raw.pop("num_aux_layers", None)
        if isinstance(ids, list):
            count = len(cast("list[object]", ids))
        if count is not None:
            raw.setdefault("num_aux_hidden_states", count)
        return raw

    def check(self) -> None:
        super().check()
        self.must_not_exceed("draft_vocab_size", "vocab_size")
        if self.n_features > MOST_FEATURES:
            raise Problem(
                f"num_aux_hidden_states = {int(self.n_features)}: expected at most {MOST_FEATURES}", "correct the value"
            )
        if self.norm_before_fc and self.fc_norm:
            raise Problem("norm_before_fc and fc_norm are both true", "set one of them to false")

    @property
    def kinds(self) -> list[DraftLayer]:
        """The mask of each layer; the first also reads the embedding."""
        types = self.layer_types
        masks = [Full()] * self.n_layers if types is None else masks_of(types, self.n_layers, self.sliding_window)
        return [DraftLayer(mask, index == 0) for index, mask in enumerate(masks)]


@architecture(
    "eagle3",
    config=Eagle3,
    spellings=(("^layers.0.", "midlayer."),),
    gguf=UNREAD,
    draft_keys={"num_hidden_layers": 1, "draft_vocab_size": 32_000},
)
def forward(w: Weights, ids: Array, c: Eagle3, cache: KVCache, last: bool = True) -> Array:
    """Scores for the token after the next: [T], and hidden states of M layers [T M·D] -> [T R], or [1 R] with `last`.

    R is the number of tokens that the head can propose.
    """
    x = fused(cache.hidden_states(ids.shape[0], c.n_features * c.d_target), w, c)
    token = embed(ids, w.of_target(), EMBEDDING, c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    name, several = ("layers", True) if c.n_layers > 1 else ("midlayer", False)
    for kind, w_layer, cache_layer in w.layers(name, c.kinds, cache, numbered=several):
        if kind.is_first:
            x = first_layer(x, token, w_layer, cache_layer, c, kind.mask, table)
        else:
            x = layer(x, w_layer, cache_layer, c, kind.mask, table)
    x = rms_norm(x, w, "norm", c.norm_eps)
    w.buffer("d2t", c.draft_vocab_size, whole=True)  # from the head's tokens to the target's, and back
    w.buffer("t2d", c.vocab_size, whole=True)
    if c.is_parallel:  # P-EAGLE's: the hidden states of the tokens that it proposes after this one, all at once
        w("mask_hidden", 1, c.n_features * c.d_target)
    return unembed(x, w, "lm_head.weight", c.draft_vocab_size, last=last)


def fused(states: Array, w: Weights, c: Eagle3) -> Array:
    """One vector of the hidden states of several layers: [T M·D] -> [T D]."""
    if c.norm_before_fc:
        states = rms_norm(states, w, "input_norm", c.norm_eps)
    if c.fc_norm:
        parts = np.split(states, int(c.n_features), axis=-1)
        states = np.concatenate(
            [rms_norm(part, w, f"fc_norm.{n}", c.norm_eps) for n, part in enumerate(parts)], axis=-1
        )
    return linear(states, w, "fc", c.d_model)


@step(Role.LAYER)
def first_layer(x: Array, token: Array, w: Weights, cache: KVCache, c: Eagle3, mask: Mask, table: RopeTable) -> Array:
    """A transformer block whose attention reads two vectors of each token, side by side: [T D], [T D] -> [T D]."""
    normed = rms_norm(x, w, "hidden_norm", c.norm_eps)
    both = np.concatenate([rms_norm(token, w, "input_layernorm", c.norm_eps), normed], axis=-1)
    x = normed if c.norm_before_residual else x
    x = x + attention(both, w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Eagle3, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Eagle3, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T 2·D] or [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    if c.qk_norm:
        q, k = rms_norm(q, w, "q_norm", c.norm_eps), rms_norm(k, w, "k_norm", c.norm_eps)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)
