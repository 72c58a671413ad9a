"""DFlash: a draft head that proposes a block of tokens at once, from hidden states of several target layers.

Sources: z-lab/dflash, dflash/model.py; sgl-project/SpecForge, dflash.py; arXiv 2602.06036. Queries are of the block
alone; keys and values are of the target's hidden states, which the cache keeps, and of the block. The embedding and the
LM head are the target's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np

from ..errors import Problem, shorten
from ..facts import UNREAD
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import Full, apply_rope, attend, embed, heads, last_row, linear, rms_norm, rope_table, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Raw, Size, config, fixed, key, masks_of
from .eagle import EMBEDDING, HEAD, Eagle
from .llama import Llama, feed_forward
from .rope_config import OLDER_ROPE_KEYS

IN_TABLE = ("mask_token_id", "target_layer_ids")


@config
class DFlash(Llama):
    """Hyperparameters of a DFlash head, in forward order."""

    n_features: Size = key("num_target_features", lambda c: c.n_layers)
    draft_block_size: Size = key("block_size")
    mask_token_id: int = key("mask_token_id", 0)
    mlp_bias: bool = fixed(False)
    layer_types: list[str] = key("layer_types", lambda c: ["full_attention"] * c.n_layers)
    sliding_window: Size | None = key("sliding_window", None)
    tied: bool = fixed(False)

    rewritten = frozenset({*OLDER_ROPE_KEYS, "dflash_config"})
    ignored = Llama.ignored | {
        "mlp_bias",
        "tie_word_embeddings",
        "num_target_layers",
        "max_window_layers",
        "use_sliding_window",
    }

    caveat = Eagle.caveat
    # The keys of `dflash_config` that a variant reads, its own name there, and those that change nothing.
    variant: ClassVar[str | None] = None
    of_variant: ClassVar[Sequence[str]] = ()
    of_training: ClassVar[Sequence[str]] = ()

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The mask token, and the number of the target's layers that are read."""
        raw = super().prepare(raw)
        table: object = raw.pop("dflash_config", None)
        inside: dict[str, Any] = dict(cast("dict[str, Any]", table)) if isinstance(table, dict) else {}
        others = [
            name
            for name, value in inside.items()
            if name not in (*IN_TABLE, *cls.of_variant, *cls.of_training) and value
            if (name, value) != ("projector_type", cls.variant)
        ]
        if others:
            raise Problem(
                f"dflash_config.{others[0]} = {shorten(inside[others[0]])}: a variant of DFlash",
                "none but DFlash itself is counted",
            )
        ids: object = inside.get("target_layer_ids")
        if isinstance(ids, list):
            raw.setdefault("num_target_features", len(cast("list[object]", ids)))
        for name in ("mask_token_id", *cls.of_variant):
            if inside.get(name) is not None:
                raw.setdefault(name, inside[name])
        return raw

    def check(self) -> None:
        super().check()
        if self.draft_block_size < 2:
            raise Problem("block_size = 1: nothing is proposed", "correct the value")
        if not 0 <= self.mask_token_id < self.vocab_size:
            raise Problem(f"mask_token_id = {self.mask_token_id}: no token of the vocabulary", "correct the value")

    @property
    def masks(self) -> list[Mask]:
        return masks_of(self.layer_types, self.n_layers, self.sliding_window)


@architecture("dflash", config=DFlash, gguf=UNREAD, draft_keys={"num_hidden_layers": 5, "block_size": 16})
def forward(w: Weights, ids: Array, c: DFlash, cache: KVCache, last: bool = True) -> Array:
    """Scores for a block of tokens after the last one: [T], and hidden states of M layers [T M·D] -> [1 B−1 V].

    The tokens are those after the hidden states: only the last one is read.
    """
    x = block(w, ids, c, cache)
    return unembed(x[1:], w.of_target(), HEAD, c.vocab_size, last=False)[None]


def block(w: Weights, ids: Array, c: DFlash, cache: KVCache) -> Array:
    """The vectors of a block, its first token known: [T], and hidden states of M layers [T M·D] -> [B D]."""
    tokens = ids.shape[0]
    states = cache.hidden_states(tokens, c.n_features * c.d_model)
    context = rms_norm(linear(states, w, "fc", c.d_model), w, "hidden_norm", c.norm_eps)
    tokens_of_block = np.concatenate([last_row(ids), np.arange(c.draft_block_size - 1, like=ids) * 0 + c.mask_token_id])
    x = embed(tokens_of_block, w.of_target(), EMBEDDING, c.vocab_size, c.d_model)
    table = rope_table(np.arange(tokens + c.draft_block_size, like=ids) + cache.length, c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("layers", c.masks, cache):
        x = layer(x, context, w_layer, cache_layer, c, mask, table)
    return rms_norm(x, w, "norm", c.norm_eps)


@step(Role.LAYER)
def layer(x: Array, context: Array, w: Weights, cache: KVCache, c: DFlash, mask: Mask, table: RopeTable) -> Array:
    """One transformer block over the tokens of a block: [B D], [T D] -> [B D]."""
    y = rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + attention(y, context, w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, context: Array, w: Weights, cache: KVCache, c: DFlash, mask: Mask, table: RopeTable) -> Array:
    """Let each token of the block gather information from the context and the block: [B D], [T D] -> [B D]."""
    tokens = context.shape[0]
    both = np.concatenate([context, x])
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(both, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(both, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    q, k = rms_norm(q, w, "q_norm", c.norm_eps), rms_norm(k, w, "k_norm", c.norm_eps)
    cos, sin = table
    q, k = apply_rope(q, (cos[tokens:], sin[tokens:])), apply_rope(k, table)
    k = np.concatenate([cache.extend(Holds.KEYS, k[:tokens], mask), k[tokens:]])
    v = np.concatenate([cache.extend(Holds.VALUES, v[:tokens], mask), v[tokens:]])
    mixed = attend(q, k, v, allowed(cache, tokens, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)


def allowed(cache: KVCache, tokens: int, queries: Array, keys: Array, mask: Mask) -> Array | None:
    """The keys that each token of the block may look at: all, or with a window the last ones up to itself: [B S+B]."""
    if isinstance(mask, Full):
        return None
    end = queries.shape[0] + tokens + cache.length
    query = np.arange(queries.shape[0], like=queries) + (end - queries.shape[0])
    key = np.arange(keys.shape[0], like=keys) + (end - keys.shape[0])
    return mask.allows(query[:, None], key[None, :])
