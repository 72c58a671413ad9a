"""Llama-Nemotron (DeciLM): Llama's block, with parts left out, replaced or narrowed by a search, layer by layer.

Sources: arXiv 2411.19146 (Puzzle), 2505.00949 (Llama-Nemotron); nvidia/Llama-3_3-Nemotron-Super-49B-v1, config.json;
vLLM, model_executor/models/nemotron_nas.py; the names of the matrices in the place of a part by TensorRT-LLM.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import Problem, shorten
from ..facts import Gguf
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
from ..ops import feed_forward as gated
from ..steps import Holds, Role, step
from . import architecture
from .config import LARGEST_SIZE, Size, activation, config, derived, fixed, key, tabled
from .llama import Llama

MULTIPLE = 256  # of which the inner widths are multiples


class Block(NamedTuple):
    """A layer: its key/value heads and inner width; 0 for a single matrix in place of the part, None for neither."""

    n_kv_heads: int | None
    d_ff: int | None

    def __str__(self) -> str:
        parts = [
            *(["no attention"] if self.n_kv_heads is None else ["one matrix for attention"] * (not self.n_kv_heads)),
            *(["no feed-forward"] if self.d_ff is None else ["one matrix for feed-forward"] * (not self.d_ff)),
        ]
        return ", ".join(parts) or "whole"


@config
class NemotronNAS(Llama):
    """Hyperparameters of Llama-Nemotron, in forward order.

    n_kv_heads and d_ff_unit are those of which each layer has a multiple.
    """

    block_configs: list[Any] = key("block_configs")
    n_kv_heads: Size = derived(lambda c: math.gcd(*(b.n_kv_heads or 0 for b in c.blocks())) or 1)
    d_head: Size = derived(lambda c: c.default_head_dim())
    d_ff: int = fixed(0)
    d_ff_unit: Size = derived(lambda c: math.gcd(*(b.d_ff or 0 for b in c.blocks())) or 1)

    ignored = Llama.ignored | {"head_dim", "intermediate_size", "num_key_value_heads"}

    @property
    def kinds(self) -> list[Block]:
        """The parts of each layer, in order, by the sizes of which they have a multiple."""
        return [
            Block(
                block.n_kv_heads and block.n_kv_heads // int(self.n_kv_heads) * self.n_kv_heads,
                block.d_ff and block.d_ff // int(self.d_ff_unit) * self.d_ff_unit,
            )
            for block in self.blocks()
        ]

    def blocks(self) -> list[Block]:
        """The parts of each layer, in order, in numbers."""
        if len(self.block_configs) != self.n_layers:
            raise Problem(
                f"block_configs has {len(self.block_configs)} entries, and num_hidden_layers = {int(self.n_layers)}",
                "correct one of the two",
            )
        return [
            Block(self._shared(_table(block, "attention")), self._inner(_table(block, "ffn")))
            for block in self.block_configs
        ]

    def _shared(self, part: Mapping[str, Any]) -> int | None:
        """The key/value heads of a layer."""
        if part.get("no_op") or part.get("replace_with_linear"):
            return None if part.get("no_op") else 0
        shared = part.get("n_heads_in_group")
        if type(shared) is not int or shared < 1 or int(self.n_heads) % shared:
            raise Problem(
                f"n_heads_in_group = {shorten(shared)} does not divide num_attention_heads = {int(self.n_heads)}",
                "correct one of the two",
            )
        return int(self.n_heads) // shared

    def _inner(self, part: Mapping[str, Any]) -> int | None:
        """The inner width of a layer."""
        if part.get("no_op") or part.get("replace_with_linear"):
            return None if part.get("no_op") else 0
        width, times = part.get("intermediate_size"), part.get("ffn_mult")
        if width is None and isinstance(times, int | float) and 0 < times < LARGEST_SIZE:
            width = -(-int(2 * times * int(self.d_model) / 3) // MULTIPLE) * MULTIPLE
        if type(width) is not int or not 0 < width <= LARGEST_SIZE:
            raise Problem(
                f"ffn_mult = {shorten(times)}: expected the width as a multiple of hidden_size", "correct the value"
            )
        return width


def _table(block: object, name: str) -> Mapping[str, Any]:
    """The keys of one part of a layer."""
    part = tabled((tabled(block) or {}).get(name))
    if part is None:
        raise Problem(f"block_configs has a layer without {name}", "give a table of keys")
    if part.get("window_length") or part.get("num_sink_tokens") or part.get("sparsify"):
        raise Problem("block_configs has a layer with a window, sinks or zeros", "the site describes none of these")
    return part


GGUF = Gguf("deci", {"self_attn.linear_attn": "attn_output"}, is_by_layer=True)


@architecture(
    "nemotron-nas",
    "deci",
    config=NemotronNAS,
    gguf=GGUF,
    classes={
        "nemotron-nas": "DeciLMForCausalLM",  # vLLM, models/registry.py
        "deci": "DeciLMForCausalLM",  # vLLM, models/registry.py
    },
)
def forward(w: Weights, ids: Array, c: NemotronNAS, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for block, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, block, table)
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: NemotronNAS, block: Block, table: RopeTable) -> Array:
    """The rest of a transformer block: [T D] -> [T D]."""
    if block.n_kv_heads is not None:
        y = rms_norm(x, w, "input_layernorm", c.norm_eps)
        at = w.at("self_attn")
        x = x + (attention(y, at, cache, c, block.n_kv_heads, table) if block.n_kv_heads else replaced(y, at, c))
    if block.d_ff is not None:
        y = rms_norm(x, w, "post_attention_layernorm", c.norm_eps)
        at = w.at("mlp")
        act = activation(c.activation)
        x = x + (
            gated(y, at, block.d_ff, act, bias=c.mlp_bias) if block.d_ff else linear(y, at, "linear_mlp", c.d_model)
        )
    return x


def replaced(x: Array, w: Weights, c: NemotronNAS) -> Array:
    """A matrix in the place of attention: [T D] -> [T D]."""
    return linear(x, w, "linear_attn", c.d_model)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: NemotronNAS, n_kv_heads: int, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H = c.n_heads, n_kv_heads, c.d_head
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(
        attend(q, k, v, causal_mask(cache, q, k, Full()), H**-0.5), w, "o_proj", c.d_model, bias=c.attention_bias
    )
