"""OLMo 2 and 3: Llama's block with its norms after each half instead of before, and norms on queries and keys.

OLMo 3 lets three layers of four see a window only, and stretches the rotary embedding of the others to long texts.
Sources: arXiv 2501.00656 (OLMo 2), 2512.13961 (Olmo 3); tensor names as transformers' files.
"""

from __future__ import annotations

from ..facts import Gguf, Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    SlidingWindow,
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
from .config import Positive, Raw, Size, config, fixed, full_every, key, masks_of
from .gguf_tables import AFTER
from .llama import Llama, feed_forward
from .otherwise import OLDER_SCALING, Otherwise, single_table, theta_beside
from .rope_config import fold_rope_by_layer_type, read_rope


@config
class Olmo2(Llama):
    """Hyperparameters of OLMo 2, in forward order."""

    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    mlp_bias: bool = fixed(False)

    def rope_of(self, mask: Mask) -> Rope:
        """The rotary embedding of a kind of layer."""
        return self.rope


@config
class Olmo3(Olmo2):
    """Hyperparameters of OLMo 3, in forward order."""

    sliding_window: Size | None = key("sliding_window", 4096)
    layer_types: list[str] = key("layer_types", lambda c: full_every(4, c.n_layers))

    otherwise = (
        single_table(500_000),
        OLDER_SCALING,
        Otherwise(
            "rope_theta",
            theta_beside(500_000, "sliding_attention"),
            "transformers 5.24 forgets it for the layers with a window",
        ),
    )

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """A single scaling applies to the full-attention layers."""
        return fold_rope_by_layer_type(raw)

    def check(self) -> None:
        super().check()
        for mask in self.masks:
            self.rope_of(mask)

    @property
    def masks(self) -> list[Mask]:
        return masks_of(self.layer_types, self.n_layers, self.sliding_window)

    @property
    def rope(self) -> Rope:
        return self.rope_of(Full())

    def rope_of(self, mask: Mask) -> Rope:
        return read_rope(
            self.rope_parameters,
            500_000.0,
            "sliding_attention" if isinstance(mask, SlidingWindow) else "full_attention",
        )


@architecture("olmo2", config=Olmo2, gguf=Gguf("olmo2", AFTER, is_windowed=True), rounds_heads={"olmo2": True})
@architecture(
    "olmo3",
    config=Olmo3,
    gguf=Gguf("olmo2", AFTER, is_windowed=True),
    mlx=Mlx(is_windowed=True),
    rounds_heads={"olmo3": True},
)
def forward(w: Weights, ids: Array, c: Olmo2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    tables = {mask: rope_table(positions(ids, cache), c.d_head, c.rope_of(mask)) for mask in dict.fromkeys(c.masks)}
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, tables[mask])
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Olmo2, mask: Mask, table: RopeTable) -> Array:
    """One transformer block, with a norm after each half: [T D] -> [T D]."""
    x = x + rms_norm(attention(x, w.at("self_attn"), cache, c, mask, table), w, "post_attention_layernorm", c.norm_eps)
    return x + rms_norm(feed_forward(x, w.at("mlp"), c), w, "post_feedforward_layernorm", c.norm_eps)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Llama, mask: Mask, table: RopeTable | None) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = rms_norm(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), w, "q_norm", c.norm_eps)
    k = rms_norm(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), w, "k_norm", c.norm_eps)
    v = linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias)
    q, k, v = heads(q, c.n_heads, c.d_head), heads(k, c.n_kv_heads, c.d_head), heads(v, c.n_kv_heads, c.d_head)
    if table is not None:
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)
