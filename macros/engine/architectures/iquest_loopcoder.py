"""IQuest Coder Loop: Llama's layers run twice. In the second run each head mixes attention to the first run's keys and
values with attention to a window of its own.

Source: IQuestLab/IQuest-Coder-V1-40B-Loop-Instruct by vLLM, model_executor/models/iquest_loopcoder.py; tensor names as
published.
"""

from __future__ import annotations

import numpy as np

from ..errors import Problem
from ..interface import Array, KVCache, Mask, RopeTable, Weights
from ..ops import (
    Full,
    Shared,
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
    sigmoid,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Interval, Positive, Size, config, derived, fixed, key
from .llama import Llama, feed_forward


@config
class IQuestLoopCoder(Llama):
    """Hyperparameters of IQuest Coder Loop, in forward order. n_layers counts the runs of layers."""

    n_stored_layers: Size = key("num_hidden_layers")
    loops: Interval = key("loop_num", 2)
    loop_window: Size = key("loop_window_size", 64)
    n_layers: Size = derived(lambda c: c.n_stored_layers * c.loops)
    norm_eps: Positive = key("rms_norm_eps", 1e-5)
    n_kv_heads: Size = key("num_key_value_heads", 8)
    attention_bias: bool = fixed(False)
    mlp_bias: bool = fixed(False)

    caveat = (
        "Its layers run several times for each token. Costs count every run, but of the bytes that are read each "
        "weight once."
    )
    ignored = Llama.ignored | {"attention_bias", "mlp_bias"}

    def check(self) -> None:
        super().check()
        if self.loops < 2:
            raise Problem("loop_num = 1: no layer runs twice", "call its type iquestcoder")

    @property
    def masks(self) -> list[Mask]:
        """The mask of each run, in order."""
        later = SlidingWindow(self.loop_window)
        return [Full() if i < self.n_stored_layers else later for i in range(self.n_layers)]


@architecture("iquestloopcoder", config=IQuestLoopCoder)
def forward(w: Weights, ids: Array, c: IQuestLoopCoder, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    same = {i: i for i in range(c.n_stored_layers)}
    firsts: list[tuple[Weights, Weights, Array, Array]] = []
    later = 0
    for mask, w_run, cache_run in w.layers("model.layers", c.masks, cache):
        if isinstance(mask, Full):
            x, k, v = first_run(x, w_run, cache_run, c, table)
            firsts.append((w_run, w_run.beside("model.gate_projections", same), k, v))
        else:
            w_layer, w_gate, k, v = firsts[later % len(firsts)]
            x = later_run(x, w_run, w_layer, w_gate, cache_run, c, mask, table, k, v)
            later += 1
    x = rms_norm(x, w, "model.norm", c.norm_eps)
    return unembed(x, w, "model.embed_tokens.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def first_run(x: Array, w: Weights, cache: KVCache, c: IQuestLoopCoder, table: RopeTable) -> tuple[Array, Array, Array]:
    """The first run of a transformer block: [T D] -> [T D], and its keys and values for later ones."""
    y, k, v = attention(rms_norm(x, w, "input_layernorm", c.norm_eps), w.at("self_attn"), cache, c, table)
    x = x + y
    return x + feed_forward(rms_norm(x, w, "post_attention_layernorm", c.norm_eps), w.at("mlp"), c), k, v


@step(Role.LAYER)
def later_run(
    x: Array,
    w: Weights,
    of_first: Weights,
    w_gate: Weights,
    cache: KVCache,
    c: IQuestLoopCoder,
    mask: Mask,
    table: RopeTable,
    k: Array,
    v: Array,
) -> Array:
    """Another run of a block, which reads the first one's keys and values, too: [T D], [S K H], [S K H] -> [T D]."""
    y = rms_norm(x, of_first, "input_layernorm", c.norm_eps)
    x = x + mixed_attention(y, of_first.at("self_attn"), w_gate, cache, c, mask, table, k, v)
    y = rms_norm(x, of_first, "post_attention_layernorm", c.norm_eps)
    return x + feed_forward(y, of_first.at("mlp"), c)


def projected(x: Array, w: Weights, c: IQuestLoopCoder, table: RopeTable) -> tuple[Array, Array, Array]:
    """Each head's query, key and value: [T D] -> [T N H], [T K H], [T K H]."""
    q = heads(linear(x, w, "q_proj", c.n_heads * c.d_head), c.n_heads, c.d_head)
    k = heads(linear(x, w, "k_proj", c.n_kv_heads * c.d_head), c.n_kv_heads, c.d_head)
    v = heads(linear(x, w, "v_proj", c.n_kv_heads * c.d_head), c.n_kv_heads, c.d_head)
    return apply_rope(q, table), apply_rope(k, table), v


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: IQuestLoopCoder, table: RopeTable) -> tuple[Array, Array, Array]:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D], [S K H], [S K H]."""
    q, k, v = projected(x, w, c, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    mixed = attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5)
    return linear(mixed, w, "o_proj", c.d_model), k, v


@step(Role.ATTENTION)
def mixed_attention(
    x: Array,
    w: Weights,
    w_gate: Weights,
    cache: KVCache,
    c: IQuestLoopCoder,
    mask: Mask,
    table: RopeTable,
    first_k: Array,
    first_v: Array,
) -> Array:
    """Gather from the first run, and from a window of this one, by a share for each head: [T D] -> [T D]."""
    q, k, v = projected(x, w, c, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    first = cache.part(1)
    first_k, first_v = first.reread(Holds.KEYS, first_k, Shared()), first.reread(Holds.VALUES, first_v, Shared())
    far = attend(q, first_k, first_v, causal_mask(cache, q, first_k, Full()), c.d_head**-0.5)
    near = attend(q, k, v, causal_mask(cache, q, k, mask), c.d_head**-0.5)
    share = gate(q, w_gate)
    far, near = heads(far, c.n_heads, c.d_head), heads(near, c.n_heads, c.d_head)
    mixed = far * share + near * (1 - share)
    return linear(mixed.reshape(x.shape[0], c.n_heads * c.d_head), w, "o_proj", c.d_model)


def gate(q: Array, w: Weights) -> Array:
    """The share of the first run in each head's output: [T N H] -> [T N 1]."""
    return sigmoid(own_scores(q, w))[:, :, None]


@step(Role.LINEAR)
def own_scores(q: Array, w: Weights) -> Array:
    """A number from the query of each head, by a vector of its own: [T N H], [N H], [N] -> [T N]."""
    N, H = q.shape[1], q.shape[2]
    return np.einsum("tnh,nh->tn", q, w("weight", N, H), optimize=True) + w("bias", N)
