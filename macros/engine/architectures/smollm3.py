"""SmolLM3: Llama's block, with rotary embedding left out in every fourth layer.

Source: huggingface.co/blog/smollm3 and arXiv 2501.18795 (NoPE between rotated layers); tensor names as published.
"""

from __future__ import annotations

from ..errors import Problem
from ..facts import Gguf
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    NoPE,
    Rope,
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
from .config import Interval, Size, config, key, masks_of
from .llama import Llama, feed_forward
from .rope_config import read_rope
from .tasks import OLD_NAME


@config
class SmolLM3(Llama):
    """Hyperparameters of SmolLM3, in forward order."""

    n_kv_heads: Size = key("num_key_value_heads", 4)
    tied: bool = key("tie_word_embeddings", True)
    no_rope_interval: Interval = key("no_rope_layer_interval", 4)
    rotates: list[int] = key(
        "no_rope_layers", lambda c: [int((i + 1) % c.no_rope_interval != 0) for i in range(c.n_layers)]
    )
    use_sliding_window: bool = key("use_sliding_window", False)
    sliding_window: Size | None = key("sliding_window", None)
    layer_types: list[str] = key(
        "layer_types", lambda c: ["full_attention" if r else "sliding_attention" for r in c.rotates]
    )

    ignored = Llama.ignored | {"max_window_layers"}

    def check(self) -> None:
        super().check()
        if len(self.rotates) < self.n_layers:
            raise Problem(
                f"no_rope_layers has {len(self.rotates)} entries, and num_hidden_layers = {int(self.n_layers)}",
                "correct one of the two",
            )

    @property
    def rope(self) -> Rope:
        return read_rope(self.rope_parameters, theta=2_000_000.0)

    @property
    def masks(self) -> list[Mask]:
        """A 1 in `no_rope_layers` is a layer that rotates, in spite of the key's name."""
        published: list[Mask] = [Full()] * self.n_layers
        if self.use_sliding_window and self.sliding_window:
            published = masks_of(self.layer_types[: self.n_layers], self.n_layers, self.sliding_window)
        return [mask if rotates else NoPE(mask) for mask, rotates in zip(published, self.rotates)]


@architecture(
    "smollm3", config=SmolLM3, gguf=Gguf("smollm3", in_pairs=True), heads=OLD_NAME, rounds_heads={"smollm3": True}
)
def forward(w: Weights, ids: Array, c: SmolLM3, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for mask, w_layer, cache_layer in w.layers("model.layers", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: SmolLM3, mask: Mask, table: RopeTable) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, mask, table)
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: SmolLM3, mask: Mask, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head, bias=c.attention_bias), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head, bias=c.attention_bias), c.n_kv_heads, c.d_head)
    if not isinstance(mask, NoPE):
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    mixed = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model, bias=c.attention_bias)
