"""Command R, Aya and Compass: attention and feed-forward in parallel on one norm without shift.

Rotary embedding rotates neighboring pairs. Command R7B and Command A (`cohere2`) see a window in three layers of four,
and leave rotary embedding out of the fourth. Sources: CohereLabs/c4ai-command-r-v01, arXiv 2504.00698 (Command A);
tensor names as the published files.
"""

from __future__ import annotations

from ..facts import Gguf, Mlx
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    NoPE,
    Rope,
    apply_rope,
    apply_rope_pairs,
    attend,
    causal_mask,
    embed,
    head_norms,
    heads,
    layer_norm,
    linear,
    positions,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Interval, Positive, Size, config, fixed, full_every, key, masks_of
from .llama import Llama, feed_forward
from .rope_config import read_rope, rope_of_mask


@config
class Cohere(Llama):
    """Hyperparameters of Command R, in forward order."""

    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    mlp_bias: bool = fixed(False)
    use_qk_norm: bool = key("use_qk_norm", False)
    logit_scale: float = key("logit_scale", 0.0625)
    tied: bool = key("tie_word_embeddings", True)

    # Whether neighbors turn together, not halves.
    pairs: bool = fixed(True)

    ignored = Llama.ignored | {"rotary_pct"}

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=500_000.0)

    def rope_of(self, mask: Mask) -> Rope:
        """The rotary embedding of the layers with this reach."""
        return self.rope


@config
class Cohere2(Cohere):
    """Hyperparameters of Command R7B and Command A, in forward order."""

    use_qk_norm: bool = fixed(False)
    sliding_window: Size | None = key("sliding_window", 4096)
    window_pattern: Interval = key("sliding_window_pattern", 4, also=("_sliding_window_pattern",))
    layer_types: list[str] = key("layer_types", lambda c: full_every(c.window_pattern, c.n_layers))

    ignored = Cohere.ignored | {
        "use_qk_norm",
        "order_of_interleaved_layers",
        "layer_switch",
        "position_embedding_type",
        "use_embedding_sharing",
        "use_gated_activation",
        "use_parallel_block",
        "use_parallel_embedding",
    }

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters)

    @property
    def masks(self) -> list[Mask]:
        published = masks_of(self.layer_types, self.n_layers, self.sliding_window)
        return [NoPE(mask) if mask == Full() else mask for mask in published]


@config
class Compass(Cohere2):
    """Hyperparameters of the text model of Cohere Compass, in forward order."""

    logit_scale: float = key("logit_scale", 1.0)
    layer_types: list[str] = key("layer_types", lambda c: ["full_attention"] * c.n_layers)
    pairs: bool = fixed(False)

    ignored = Cohere2.ignored | {"pooling"}

    @property
    def rope(self) -> Rope:
        return self.rope_of(Full())

    def rope_of(self, mask: Mask) -> Rope:
        return rope_of_mask(self.rope_parameters, mask)

    @property
    def masks(self) -> list[Mask]:
        """The mask of each layer; a layer has no positions if the table of the others leaves it out."""
        seen, tables = masks_of(self.layer_types, self.n_layers, self.sliding_window), self.rope_parameters
        is_apart = bool({"full_attention", "sliding_attention"} & set(tables))
        return [NoPE(m) if is_apart and name not in tables else m for name, m in zip(self.layer_types, seen)]


@architecture("cohere_compass_text", config=Compass, rounds_heads={"cohere_compass_text": False})
@architecture("cohere", config=Cohere, gguf=Gguf("command-r"), rounds_heads={"cohere": True})
@architecture(
    "cohere2",
    config=Cohere2,
    gguf=Gguf("cohere2", is_windowed=True),
    mlx=Mlx(is_windowed=True),
    rounds_heads={"cohere2": False},
)
def forward(w: Weights, ids: Array, c: Cohere, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    places, kinds = positions(ids, cache), dict.fromkeys(c.masks)
    tables = {m: None if isinstance(m, NoPE) else rope_table(places, c.d_head, c.rope_of(m)) for m in kinds}
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, tables[mask])
    x = layer_norm(x, w, "model.norm", c.norm_eps, bias=False)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last) * c.logit_scale


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: Cohere, mask: Mask, table: RopeTable | None) -> Array:
    """One transformer block, its two halves in parallel: [T D] -> [T D]."""
    y = layer_norm(x, w, "input_layernorm", c.norm_eps, bias=False)
    return x + attention(y, w.at("self_attn"), cache, c, mask, table) + feed_forward(y, w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: Cohere, mask: Mask, table: RopeTable | None) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    if c.use_qk_norm:
        q, k = head_norms(q, w, "q_norm.weight", c.norm_eps), head_norms(k, w, "k_norm.weight", c.norm_eps)
    if table is not None and not isinstance(mask, NoPE):
        turn = apply_rope_pairs if c.pairs else apply_rope
        q, k = turn(q, table), turn(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)
