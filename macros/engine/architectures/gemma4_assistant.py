"""The assistant of Gemma 4: a draft head whose layers read the keys and values that its target keeps, and add none.

It reads the target's last hidden state beside the embedding of the token after it, and gives the next draft a state as
wide as the target's. A head of centroids finds the few tokens that are scored.

Sources: transformers 5.24, gemma4_assistant and gemma4_unified_assistant, whose class makes no model of such layers
because it cannot list which of them keep and which read; generation/candidate_generator.py. There a layer with a window
sees the rows that the target keeps, as here.
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem
from ..facts import UNREAD
from ..interface import Array, KVCache, Mask, Weights
from ..ops import Shared, embed, linear, positions, rms_norm, rope_table, top_k, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Count, Raw, Size, config, fixed, key, masks_of
from .eagle import EMBEDDING
from .gemma4 import Gemma4, layer, seen_by

TABLE = "model.embed_tokens.weight"


@config
class Gemma4Assistant(Gemma4):
    """Hyperparameters of the assistant of Gemma 4, in forward order."""

    d_target: Size = key("backbone_hidden_size", 1536)
    d_per_layer: Count = key("hidden_size_per_layer_input", 256)
    per_layer_vocab_size: Size | None = fixed(None)
    has_experts: bool = fixed(False)
    n_experts: Size | None = fixed(None)
    n_experts_per_token: Size | None = fixed(None)
    d_ff_expert: Size | None = fixed(None)
    # head
    is_ordered: bool = key("use_ordered_embeddings", False)
    n_centroids: Size = key("num_centroids", 2048)
    n_centroids_kept: Size = key("centroid_intermediate_top_k", 32)

    ignored = Gemma4.ignored | {
        *("vocab_size_per_layer_input", "num_experts", "top_k_experts", "moe_intermediate_size", "block_size"),
    }

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """As in Gemma 4; rows of a table that no assistant has are ignored, as nothing reads them."""
        rows = raw.get("vocab_size_per_layer_input")
        return super().prepare(raw) | ({} if rows is None else {"vocab_size_per_layer_input": rows})

    caveat = (
        "A draft head. The embedding of its tokens and the keys and values that it reads belong to its target and are "
        "not in these totals."
    )

    def check(self) -> None:
        super().check()
        self.check_layers()
        if self.shared_layers not in (0, self.n_layers):
            raise Problem(
                f"num_kv_shared_layers = {self.shared_layers}: an assistant has no keys of its own",
                f"give {int(self.n_layers)}: each layer reads the target's",
            )
        if not self.tied:
            raise Problem("tie_word_embeddings = false: nothing would read its embedding", "correct the value")
        if self.is_ordered:
            self.must_divide("n_centroids", "vocab_size")
            self.must_not_exceed("n_centroids_kept", "n_centroids")

    def check_layers(self) -> None:
        """Raise `Problem` for layers that an assistant does not have."""
        if self.d_per_layer:
            raise Problem(
                f"hidden_size_per_layer_input = {int(self.d_per_layer)}: an assistant's layers have no vectors of a "
                "token's own",
                "expected 0, also where it is left out",
            )
        if self.double_wide:
            raise Problem("use_double_wide_mlp = true: an assistant has no wider layers", "expected false")

    @property
    def masks(self) -> list[Mask]:
        """The mask of each layer, over the target's rows; the last layer has full attention."""
        types = [*self.layer_types[:-1], "full_attention"]
        return [Shared(mask) for mask in masks_of(types, self.n_layers, self.sliding_window)]


@config
class Gemma4UnifiedAssistant(Gemma4Assistant):
    """Hyperparameters of the assistant of Gemma 4 12B, in forward order."""

    sliding_window: Size | None = key("sliding_window", 1024)
    d_target: Size = key("backbone_hidden_size", 3840)
    d_per_layer: Count = fixed(0)

    ignored = Gemma4Assistant.ignored | {"hidden_size_per_layer_input", "enable_moe_block"}

    def check_layers(self) -> None:
        """None are left out."""


@architecture("gemma4_unified_assistant", config=Gemma4UnifiedAssistant, gguf=UNREAD)
@architecture("gemma4_assistant", config=Gemma4Assistant, gguf=UNREAD)
def forward(w: Weights, ids: Array, c: Gemma4Assistant, cache: KVCache, last: bool = True) -> Array:
    """Scores for the token after the next: [T], and the target's hidden states [T W] -> [T V], or [1 V] with `last`."""
    token = embed(ids, w.of_target(), EMBEDDING, c.vocab_size, c.d_target) * c.d_target**0.5
    states = cache.hidden_states(ids.shape[0], c.d_target)
    x = linear(np.concatenate([token, states], axis=-1), w, "pre_projection", c.d_model)
    places = positions(ids, cache) + 1  # of the token, which is the one after the state
    seen = list(dict.fromkeys(map(seen_by, c.masks)))
    tables = {mask: rope_table(places, c.head(mask), c.rope_of(mask)) for mask in seen}
    kept = {mask: target_rows(cache, ids.shape[0], c, mask) for mask in seen}
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x, _, _ = layer(x, w_layer, cache_layer, c, mask, tables[seen_by(mask)], None, kept[seen_by(mask)])
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    linear(x, w, "post_projection", c.d_target)  # the state that the next draft reads
    if c.is_ordered:
        return ordered_scores(x[-1:] if last else x, w, c)
    return unembed(x, w, TABLE, c.vocab_size, last=last)


def target_rows(cache: KVCache, tokens: int, c: Gemma4Assistant, mask: Mask) -> tuple[Array, Array]:
    """The target's keys and values that a kind of layer sees: [S K H], [S K H]."""
    row = c.kv_heads(mask), c.head(mask)
    return (cache.target_rows(Holds.KEYS, tokens, mask, *row), cache.target_rows(Holds.VALUES, tokens, mask, *row))


@step(Role.UNEMBED)
def ordered_scores(x: Array, w: Weights, c: Gemma4Assistant) -> Array:
    """Scores for the tokens of the best centroids, and one below all of these for the others: [T D] -> [T V]."""
    T, D = x.shape
    V, k, C = c.vocab_size, c.n_centroids_kept, c.n_centroids
    members = V // C
    worth = linear(x, w.at("masked_embedding"), "centroids", C)
    order = w.buffer("masked_embedding.token_ordering", V, whole=True)
    chosen = np.take(order.reshape(C, members), top_k(worth, k), axis=0).reshape(T, k * members)
    rows = np.take(w(TABLE, V, D), chosen, axis=0)
    scores = np.einsum("td,tsd->ts", x, rows)
    padded = np.concatenate([scores, np.min(scores, axis=-1, keepdims=True) - 1], axis=-1)
    place = np.argsort(order)
    rank = np.take(np.argsort(np.argsort(-worth, axis=-1, kind="stable"), axis=-1), place // members, axis=1)
    return np.take_along_axis(padded, np.where(rank < k, rank * members + place % members, k * members), axis=-1)
