"""EAGLE: a draft head of Llama layers over the target's last hidden state and the embedding of the token after it.

Sources: SafeAILab/EAGLE, eagle/model/cnets1.py; arXiv 2401.15077. The embedding and the LM head are the target's.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from msgspec import Struct

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
from .config import Size, config, fixed, key
from .llama import Llama, feed_forward

EMBEDDING, HEAD = "embed_tokens.weight", "lm_head.weight"  # the target's tensors, as the heads' own code names them


class DraftLayer(Struct, frozen=True):
    """The mask of a layer, and whether it is the first, which reads the token's embedding as well as the hidden
    state."""

    mask: Mask
    is_first: bool

    def __str__(self) -> str:
        if not self.is_first:
            return str(self.mask)
        return "first" if self.mask == Full() else f"{self.mask}, first"


@config
class Eagle(Llama):
    """Hyperparameters of an EAGLE head, in forward order; without `bias` the fusing map has one."""

    fc_bias: bool = key("bias", True)
    d_head: Size = key("head_dim", lambda c: c.default_head_dim())
    attention_bias: bool = key("qkv_bias", False)
    mlp_bias: bool = fixed(False)
    tied: bool = fixed(False)

    ignored = Llama.ignored | {"attention_bias", "mlp_bias", "tie_word_embeddings"}
    caveat = "A draft head. The embedding and the LM head belong to its target and are not in these totals."
    checked: ClassVar[tuple[str, ...]] = ("rope", "kinds")

    @property
    def kinds(self) -> list[DraftLayer]:
        """The mask of each layer; the first has no norm before attention."""
        return [DraftLayer(mask, index == 0) for index, mask in enumerate(self.masks)]


@architecture("eagle", config=Eagle, draft_keys={"num_hidden_layers": 1, "bias": False})
def forward(w: Weights, ids: Array, c: Eagle, cache: KVCache, last: bool = True) -> Array:
    """Scores for the token after the next: [T], and the target's hidden states [T D] -> [T V], or [1 V] with `last`."""
    states = cache.hidden_states(ids.shape[0], c.d_model)
    x = np.concatenate([embed(ids, w.of_target(), EMBEDDING, c.vocab_size, c.d_model), states], axis=-1)
    x = linear(x, w, "fc", c.d_model, bias=c.fc_bias)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    return unembed(x, w.of_target(), HEAD, c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Eagle, kind: DraftLayer, table: RopeTable) -> Array:
    """One transformer block, the first without the norm before attention: [T D] -> [T D]."""
    y = x if kind.is_first else rms_norm(x, w, "input_layernorm", c.norm_eps)
    x = x + attention(y, w.at("self_attn"), cache, c, kind.mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Eagle, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    return linear(attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5), w, "o_proj", c.d_model)
