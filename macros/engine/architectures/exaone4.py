"""EXAONE 4: OLMo 2's norms after each half, norms on each head's queries and keys, and in the larger size windows in
three layers of four, the fourth without rotary embedding.

Source: arXiv 2507.11407; tensor names as the published files.
"""

from __future__ import annotations

from typing import Any

from ..facts import Gguf, Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    NoPE,
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
from .config import Positive, Size, config, fixed, full_every, key, masks_of
from .gguf_tables import AFTER
from .llama import Llama, feed_forward
from .predicted import Module, Place, angles
from .tasks import OLD_NAME


@config
class Exaone4(Llama):
    """Hyperparameters of EXAONE 4, in forward order."""

    ignored = Llama.ignored | {
        *("num_nextn_predict_layers", "_num_mtp_layers", "mtp_share_layers", "mtp_loss_scaling_factor"),
    }
    n_kv_heads: Size = key("num_key_value_heads", 32)
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    attention_bias: bool = fixed(False)
    mlp_bias: bool = fixed(False)
    sliding_window: Size | None = key("sliding_window", 4096)
    pattern: int | str | None = key("sliding_window_pattern", 4)
    layer_types: list[str] = key("layer_types", lambda c: c.default_layer_types())

    def default_layer_types(self) -> list[str]:
        """The layer types of a pattern: every nth one full, or letters, L local and G global; the last is full."""
        if not self.sliding_window or not self.pattern:
            return ["full_attention"] * self.n_layers
        if isinstance(self.pattern, int):
            return full_every(self.pattern, self.n_layers)
        return [
            "sliding_attention"
            if self.pattern[i % len(self.pattern)] == "L" and i < self.n_layers - 1
            else "full_attention"
            for i in range(self.n_layers)
        ]

    @property
    def masks(self) -> list[Mask]:
        published = masks_of(self.layer_types, self.n_layers, self.sliding_window)
        return [NoPE(mask) if self.sliding_window and mask == Full() else mask for mask in published]


def draft_layer(x: Array, w: Weights, cache: KVCache, c: Any, ids: Array, at: Place) -> Array:
    """The layer of a prediction module: [T D] -> [T D]."""
    return layer(x, w, cache, c, c.masks[0], angles(ids, cache, c.d_head, c.rope))


MTP = Module(draft_layer, "mtp", "pre_fc_norm_embedding", "pre_fc_norm_hidden", "fc", "layers.{k}", "norm", is_one=True)


@architecture(
    "exaone4",
    config=Exaone4,
    gguf=Gguf("exaone4", AFTER, is_windowed=True),
    heads=OLD_NAME,
    predicts=MTP,
    mlx=Mlx(is_windowed=True),
    rounds_heads={"exaone4": True},
)
def forward(w: Weights, ids: Array, c: Exaone4, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Exaone4, mask: Mask, table: RopeTable) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    x = x + rms_norm(attention(x, w.at("self_attn"), cache, c, mask, table), w, "post_attention_layernorm", c.norm_eps)
    return x + rms_norm(feed_forward(x, w.at("mlp"), c), w, "post_feedforward_layernorm", c.norm_eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Llama, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head), c.n_kv_heads, c.d_head)
    q, k = rms_norm(q, w, "q_norm", c.norm_eps), rms_norm(k, w, "k_norm", c.norm_eps)
    if not isinstance(mask, NoPE):
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    return linear(attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5), w, "o_proj", c.d_model)
