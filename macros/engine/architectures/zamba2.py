"""Zamba 2: Mamba 2, and one or two blocks of attention and feed-forward network that several layers share.

A shared block sees the token's embedding beside the vector of the residual stream. Each place where it is used has its
own small adapters.

Source: arXiv 2411.15242; tensor names as transformers 5, where a shared block has the name of its first layer.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from ..errors import Problem
from ..facts import Peft
from ..interface import Array, KVCache, RopeTable, Weights
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
from ..ops.recurrence import STATE_BYTES
from ..steps import Holds, Role, step
from . import architecture
from .config import Positive, Raw, Size, Taps, activation, config, derived, fixed, key, short_names
from .llama import Llama
from .mamba import NOT_READ
from .mamba2 import mamba2
from .otherwise import Otherwise, other_than

# The mixer's norm has an epsilon of its own, that no config key sets.
MIXER_EPS = 1e-5
UNTIES_LAYERS = Otherwise(
    "tie_word_embeddings",
    other_than("tie_word_embeddings", True),
    "transformers 5.24 also unties the layers that share their weights",
)
# The kinds of layers by their names in `layers_block_type`.
MIXERS = {"mamba": "mamba", "linear_attention": "mamba", "hybrid": "hybrid"}
PUBLISHED = [
    "mamba",
    *[*["mamba"] * 5, "hybrid"] * 7,
    *["mamba"] * 4,
    "hybrid",
    *["mamba"] * 3,
    "hybrid",
    *["mamba"] * 2,
]


class Zamba2Layer(Struct, frozen=True):
    """The composition of a layer: Mamba 2, and the shared block before it that `owner` names, if any."""

    owner: int | None = None

    def __str__(self) -> str:
        return "mamba" if self.owner is None else "hybrid"


@config
class Zamba2(Llama):
    """Hyperparameters of Zamba 2, in forward order."""

    # layers
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    layer_types: list[str] = key("layers_block_type", lambda c: PUBLISHED, also=("layer_types",))
    # mamba
    expand: Positive = key("mamba_expand", 2.0, also=("expansion_factor",))
    n_mamba_heads: Size = key("n_mamba_heads", 8)
    d_mamba_head: Size = key("mamba_headdim", lambda c: int(c.expand * int(c.d_model)) // int(c.n_mamba_heads))
    n_groups: Size = key("mamba_ngroups", 1)
    d_state: Size = key("mamba_d_state", 64, also=("state_size",))
    d_conv: Taps = key("mamba_d_conv", 4, also=("conv_dimension",))
    conv_bias: bool = fixed(True)
    least_dt: float = key("time_step_min", 0.001)
    bias: bool = key("add_bias_linear", False)
    # shared blocks
    n_blocks: Size = key("num_mem_blocks", 1)
    adapter_rank: Size = key("adapter_rank", 128, also=("lora_rank",))
    attention_adapters: bool = key("use_shared_attention_adapter", False, also=("use_shared_attention_lora",))
    with_rope: bool = key("use_mem_rope", False)
    d_both: Size = derived(lambda c: 2 * c.d_model)
    attention_bias: bool = fixed(False)
    d_head: Size = key("attention_head_dim", lambda c: 2 * int(c.d_model) // int(c.n_heads), also=("head_dim",))
    d_ff: Size = key("intermediate_size", lambda c: 4 * c.d_model, also=("ffn_hidden_size",))
    mlp_bias: bool = fixed(False)
    activation: str = key("hidden_act", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", True)

    ignored = (
        Llama.ignored
        | (NOT_READ - {"time_step_min"})
        | frozenset(
            """
            attention_hidden_size hybrid_layer_ids kv_channels num_query_groups num_logits_to_keep time_step_limit
            use_conv_bias use_long_context use_mem_eff_path use_shared_mlp_adapter use_shared_block_lora ft_lora
            gated_linear_unit sliding_window
        """.split()
        )
    )
    otherwise = (UNTIES_LAYERS,)

    @classmethod
    def prepare(cls, raw: Raw) -> Raw:
        """The number of Mamba heads from their width, if an older file only states that."""
        raw = super().prepare(raw)
        width, d_model = raw.get("mamba_headdim"), raw.get("hidden_size")
        expand = raw.get("mamba_expand", raw.get("expansion_factor", 2))
        if "n_mamba_heads" in raw or not all(isinstance(n, int) and n > 0 for n in (width, d_model, expand)):
            return raw
        return {**raw, "n_mamba_heads": expand * d_model // width}

    def check(self) -> None:
        super().check()
        self.must_divide("n_groups", "n_mamba_heads")
        if int(self.n_mamba_heads) * int(self.d_mamba_head) != int(self.expand * int(self.d_model)):
            raise Problem(
                f"mamba_headdim = {int(self.d_mamba_head)} and n_mamba_heads = {int(self.n_mamba_heads)}: their "
                f"product is not mamba_expand × hidden_size = {int(self.expand * int(self.d_model))}",
                "correct one of them",
            )
        if self.attention_adapters and int(self.n_kv_heads) * int(self.d_head) != int(self.d_both):
            raise Problem(
                f"num_key_value_heads × head_dim = {int(self.n_kv_heads) * int(self.d_head)}, and the adapters of keys "
                f"are {int(self.d_both)} wide",
                "correct one of them",
            )

    @property
    def dt_limits(self) -> tuple[float, float]:
        """The bounds of a step size; transformers omits them for single tokens."""
        return self.least_dt, math.inf

    @property
    def hybrids(self) -> list[int]:
        """The layers that use a shared block, in order."""
        kinds = short_names(self.layer_types, self.n_layers, MIXERS)
        return [i for i, kind in enumerate(kinds) if kind == "hybrid"]

    @property
    def kinds(self) -> list[Zamba2Layer]:
        """The layers in order: Mamba alone, or with one of the shared blocks in alternation, each stored with its first
        layer."""
        hybrids = self.hybrids
        owners = {layer: hybrids[number % int(self.n_blocks)] for number, layer in enumerate(hybrids)}
        return [Zamba2Layer(owners.get(i)) for i in range(self.n_layers)]


@architecture("zamba2", config=Zamba2, peft=Peft(shared="shared_transformer"))
def forward(w: Weights, ids: Array, c: Zamba2, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    first = x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope) if c.with_rope else None
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        shared = w.at(f"model.layers.{kind.owner}.shared_transformer")
        x = layer(x, w_layer, shared, cache_layer, c, kind, first, table)
    x = rms_norm(x, w, "model.final_layernorm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(
    x: Array,
    w: Weights,
    shared: Weights,
    cache: KVCache,
    c: Zamba2,
    kind: Zamba2Layer,
    first: Array,
    table: RopeTable | None,
) -> Array:
    """One block; a shared block's output goes to Mamba, and not into the stream: [T D], [T D] -> [T D]."""
    if kind.owner is None:
        return x + mixer(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("mamba"), cache, c)
    numbers = {hybrid: number for number, hybrid in enumerate(c.hybrids)}
    y = rms_norm(np.concatenate([x, first], axis=-1), shared, "input_layernorm", c.norm_eps)
    y = attention(y, w, shared.at("self_attn"), cache, c, kind, numbers, table)
    y = rms_norm(y, shared, "pre_ff_layernorm", c.norm_eps)
    shown = x + linear(feed_forward(y, w, shared.at("feed_forward"), c, kind, numbers), w, "linear", c.d_model)
    w = w.at("mamba_decoder")
    return x + mixer(rms_norm(shown, w, "input_layernorm", c.norm_eps), w.at("mamba"), cache, c)


def mixer(x: Array, w: Weights, cache: KVCache, c: Zamba2) -> Array:
    """Mamba 2 with SiLU: [T D] -> [T D]."""
    return mamba2(x, w, cache, c, "silu", MIXER_EPS, STATE_BYTES)


def adapter(x: Array, w: Weights, c: Zamba2, name: str, width: int, numbers: dict[int, int]) -> Array:
    """A layer's addition to a shared matrix, by two low-rank ones: [T I] -> [T A] -> [T O] (LoRA, arXiv 2106.09685)."""
    own = w.beside(name, numbers)
    return linear(linear(x, own, "0", c.adapter_rank), own, "1", width)


@step(Role.ATTENTION)
def attention(
    x: Array,
    w: Weights,
    shared: Weights,
    cache: KVCache,
    c: Zamba2,
    kind: Zamba2Layer,
    numbers: dict[int, int],
    table: RopeTable | None,
) -> Array:
    """Let each token gather information from itself and the tokens before it: [T 2D] -> [T N H] -> [T D]."""
    N, K, H = c.n_heads, c.n_kv_heads, c.d_head
    q, k, v = linear(x, shared, "q_proj", N * H), linear(x, shared, "k_proj", K * H), linear(x, shared, "v_proj", K * H)
    if c.attention_adapters:
        place = f"model.layers.{kind.owner}.shared_transformer.self_attn"
        q, k, v = (
            part + adapter(x, w, c, f"{place}.linear_{letter}_adapter_list", c.d_both, numbers)
            for letter, part in zip("qkv", (q, k, v))
        )
    q, k, v = heads(q, N, H), heads(k, K, H), heads(v, K, H)
    if table is not None:
        q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), (H / 2) ** -0.5)
    return linear(mixed, shared, "o_proj", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, shared: Weights, c: Zamba2, kind: Zamba2Layer, numbers: dict[int, int]) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T 2F] -> [T F] -> [T D]."""
    name = f"model.layers.{kind.owner}.shared_transformer.feed_forward.gate_up_proj_adapter_list"
    both = linear(x, shared, "gate_up_proj", 2 * c.d_ff, bias=c.bias) + adapter(x, w, c, name, 2 * c.d_ff, numbers)
    gate, up = np.split(both, 2, axis=-1)
    return linear(activation(c.activation)(gate) * up, shared, "down_proj", c.d_model, bias=c.bias)
