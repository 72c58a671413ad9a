"""HRM-Text: two stacks of layers that run several times in turns, the low one more often than the high one.

Each run of a layer keeps keys and values of its own. A stack reads the sum of both stacks' last outputs. Source:
transformers, models/hrm_text; tensor names as transformers. A prompt that transformers is told to read in both
directions (`token_type_ids`) is read as any other text here.
"""

from __future__ import annotations

from msgspec import Struct

from ..facts import UNREAD
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    apply_rope,
    attend,
    causal_mask,
    embed,
    feed_forward,
    heads,
    linear,
    positions,
    rope_table,
    sigmoid,
    unembed,
    unit_norm,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Interval, Positive, Raw, Size, activation, config, derived, fixed, key
from .llama import Llama


class StackLayer(Struct, frozen=True):
    """A layer of the high or the low stack, and its number there."""

    is_high: bool
    number: int

    def __str__(self) -> str:
        return f"{'high' if self.is_high else 'low'} stack"


@config
class HRMText(Llama):
    """Hyperparameters of HRM-Text, in forward order. n_layers counts the runs of layers."""

    embedding_scale: Positive = key("embedding_scale", lambda c: 1 / c.initializer_range)
    initializer_range: Positive = key("initializer_range", 0.02)
    n_stack_layers: Size = key("num_layers_per_stack")
    high_cycles: Interval = key("H_cycles", 2)
    low_cycles: Interval = key("L_cycles", 3)
    n_layers: Size = derived(lambda c: c.n_stack_layers * c.high_cycles * (c.low_cycles + 1))
    n_kv_heads: Size = derived(lambda c: c.n_heads)
    d_head: Size = key("head_dim", 128)
    sliding_window: Size | None = fixed(None)

    caveat = (
        "Its layers run several times for each token. Costs count every run, but of the bytes that are read each "
        "weight once."
    )
    rewritten = Llama.rewritten | {"num_hidden_layers"}
    ignored = Llama.ignored | {"L_bp_cycles", "prefix_lm", "num_key_value_heads"}

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """Layers of a stack: transformers rewrites `num_hidden_layers` as the number of runs."""
        raw = super().prepare(raw)
        layers = raw.pop("num_hidden_layers", None)
        return raw if raw.get("num_layers_per_stack") is not None else {**raw, "num_layers_per_stack": layers}

    @property
    def kinds(self) -> list[StackLayer]:
        """In order: each run of a layer."""
        stacks = [*[False] * self.low_cycles, True] * self.high_cycles
        return [StackLayer(is_high, number) for is_high in stacks for number in range(self.n_stack_layers)]


# Published files hold some matrices one below the other.
PACKED = {
    "attn.gqkv_proj.weight": tuple(f"self_attn.{name}_proj.weight" for name in ("gate", "q", "k", "v")),
    "mlp.gate_up_proj.weight": ("mlp.gate_proj.weight", "mlp.up_proj.weight"),
}


@architecture(
    "hrm_text", config=HRMText, fused=PACKED, spellings=((".attn.o_proj.", ".self_attn.o_proj."),), gguf=UNREAD
)
def forward(w: Weights, ids: Array, c: HRMText, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    high = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.embedding_scale
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    low = x = high + w("model.z_L_init", c.d_model)
    for kind, w_run, cache_run in w.layers("model.runs", c.kinds, cache):
        stack = "H_module" if kind.is_high else "L_module"
        of_stack = w.at(f"model.{stack}.layers.{kind.number}")
        x = layer(x, w_run, of_stack, cache_run, c, table)
        if kind.number < c.n_stack_layers - 1:
            continue
        x = unit_norm(x, c.norm_eps)
        low, high = (low, x) if kind.is_high else (x, high)
        x = low + high
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return unembed(high, w, head, c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, of_stack: Weights, cache: KVCache, c: HRMText, table: RopeTable) -> Array:
    """One run of a transformer block; its weights are those of a layer of the stack: [T D] -> [T D]."""
    x = x + attention(unit_norm(x, c.norm_eps), of_stack.at("self_attn"), cache, c, table)
    y = unit_norm(x, c.norm_eps)
    return x + feed_forward(y, of_stack.at("mlp"), c.d_ff, activation(c.activation), bias=c.mlp_bias)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: HRMText, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it, through a gate: [T D] -> [T D]."""
    width, bias = c.n_heads * c.d_head, c.attention_bias
    q, k, v = (heads(linear(x, w, f"{name}_proj", width, bias=bias), c.n_heads, c.d_head) for name in ("q", "k", "v"))
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5)
    gate = sigmoid(linear(x, w, "gate_proj", width, bias=bias))
    return linear(mixed * gate, w, "o_proj", c.d_model, bias=bias)
