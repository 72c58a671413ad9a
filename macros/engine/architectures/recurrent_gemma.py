"""RecurrentGemma: Griffin's recurrence in two layers of three, attention to a window in the third.

Sources: arXiv 2402.19427 (Griffin), 2404.07839 (RecurrentGemma); tensor names as transformers 5.
"""

from __future__ import annotations

import math

import numpy as np

from ..errors import Problem, nearest, shorten
from ..facts import Mlx
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Mixed,
    Rope,
    SlidingWindow,
    apply_rope,
    attend,
    causal_conv,
    causal_mask,
    embed,
    heads,
    linear,
    positions,
    rg_lru,
    rms_norm,
    rope_table,
    sigmoid,
    soft_cap,
    softplus,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Interval, Positive, Raw, Size, Taps, activation, config, derived, key
from .rope_config import OLDER_ROPE_KEYS, read_rope

# The kinds of layers by their names in `block_types`.
MIXERS = {"recurrent": "recurrent", "attention": "attention"}
# How much more a gate wide open forgets than one half open (Griffin, 2.4).
DECAY = 8.0


@config
class RecurrentGemma(Config):
    """Hyperparameters of RecurrentGemma, in forward order. The config states d_ff as the width of both halves."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("rms_norm_eps", 1e-6)
    block_types: list[str] = key(
        "block_types", lambda c: ["recurrent", "recurrent", "attention"], also=("_block_types",)
    )
    # recurrence
    n_heads: Size = key("num_attention_heads")
    d_inner: Size = key("lru_width", lambda c: c.d_model)
    d_conv: Taps = key("conv1d_width", 4)
    # attention
    n_kv_heads: Size = key("num_key_value_heads", lambda c: c.n_heads)
    d_head: Size = key("head_dim", lambda c: c.d_model // c.n_heads)
    attention_bias: bool = key("attention_bias", False)
    sliding_window: Size = key("attention_window_size", 2048, also=("sliding_window",))
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    # feed-forward
    stated_d_ff: Interval = key("intermediate_size")
    d_ff: Size = derived(lambda c: c.one_half())
    activation: str = key("hidden_activation", "gelu_pytorch_tanh")
    # head
    cap: Positive = key("logits_soft_cap", 30.0)
    tied: bool = key("tie_word_embeddings", True)

    rewritten = OLDER_ROPE_KEYS
    ignored = frozenset("embeddings_scale_by_sqrt_dim final_w_init_variance_scale w_init_variance_scale".split())

    def one_half(self) -> int:
        """The width of one half. Raises `Problem` where there are no halves."""
        if self.stated_d_ff < 2:
            raise Problem("intermediate_size = 1: expected at least 2, for two halves", "correct the value")
        return self.stated_d_ff // 2

    def check(self) -> None:
        activation(self.activation)
        self.must_divide("n_kv_heads", "n_heads")
        self.must_divide("n_heads", "d_inner")
        self.rope.turning(self.d_head)

    @property
    def rope(self) -> Rope:
        return read_rope({"partial_rotary_factor": 0.5, **self.rope_parameters})

    @property
    def embedding_scale(self) -> float:
        """√D as bfloat16 has it, with 8 binary digits."""
        root = math.sqrt(int(self.d_model))
        last_digit = 2.0 ** (math.floor(math.log(root) / math.log(2)) - 7)
        return math.floor(root / last_digit + 0.5) * last_digit

    @property
    def kinds(self) -> list[Mixed]:
        """The token mixer of each layer, in order: the listed blocks, repeated."""
        if not self.block_types:
            raise Problem("block_types is empty", "name the kinds of layers that take turns")
        for name in self.block_types:
            if name not in MIXERS:
                raise Problem(
                    f"block_types has {shorten(name)}", nearest(name, MIXERS, f"known ones: {', '.join(MIXERS)}")
                )
        return [Mixed(MIXERS[self.block_types[i % len(self.block_types)]]) for i in range(self.n_layers)]


@architecture(
    "recurrent_gemma", config=RecurrentGemma, mlx=Mlx(is_windowed=True), rounds_heads={"recurrent_gemma": True}
)
def forward(w: Weights, ids: Array, c: RecurrentGemma, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "model.embed_tokens.weight", c.vocab_size, c.d_model) * c.embedding_scale
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for kind, w_layer, cache_layer in w.layers("model.layers", c.kinds, cache):
        x = layer(x, w_layer, cache_layer, c, kind, table)
    x = rms_norm(x, w, "model.final_norm", c.norm_eps, offset=1)
    head = "model.embed_tokens.weight" if c.tied else "lm_head.weight"
    return soft_cap(unembed(x, w, head, c.vocab_size, last=last), c.cap)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: RecurrentGemma, kind: Mixed, table: RopeTable) -> Array:
    """One block: [T D] -> [T D]."""
    y = rms_norm(x, w, "temporal_pre_norm", c.norm_eps, offset=1)
    if kind.mixer == "recurrent":
        x = x + recurrent_block(y, w.at("temporal_block"), cache, c)
    else:
        x = x + attention(y, w.at("temporal_block"), cache, c, table)
    return x + feed_forward(rms_norm(x, w, "channel_pre_norm", c.norm_eps, offset=1), w.at("mlp_block"), c)


@step(Role.RECURRENT_BLOCK)
def recurrent_block(x: Array, w: Weights, cache: KVCache, c: RecurrentGemma) -> Array:
    """Let each token gather information from the state of those before it: [T D] -> [T C] -> [T D]."""
    gate = activation(c.activation)(linear(x, w, "linear_y", c.d_inner, bias=True))
    x = linear(x, w, "linear_x", c.d_inner, bias=True)
    x = causal_conv(x, w, cache, "conv_1d", c.d_conv, bias=True, kept=c.d_conv - 1)
    w_lru = w.at("rg_lru")
    admitted = sigmoid(block_linear(x, w_lru, "input_gate", c.n_heads))
    forgets = sigmoid(block_linear(x, w_lru, "recurrent_gate", c.n_heads))
    log_keep = forgets * softplus(w_lru("recurrent_param", c.d_inner)) * -DECAY
    return linear(rg_lru(x * admitted, log_keep, cache) * gate, w, "linear_out", c.d_model, bias=True)


@step(Role.LINEAR)
def block_linear(x: Array, w: Weights, name: str, blocks: int) -> Array:
    """Multiply each block of a vector by a separate matrix, and add a bias: [T C], [N I I], [N I] -> [T C]."""
    T, C = x.shape
    width = C // blocks
    y = np.einsum("tni,nio->tno", heads(x, blocks, width), w(f"{name}_weight", blocks, width, width), optimize=True)
    return (y + w(f"{name}_bias", blocks, width)).reshape(T, C)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: RecurrentGemma, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    N, K, H, mask = c.n_heads, c.n_kv_heads, c.d_head, SlidingWindow(c.sliding_window)
    q = heads(linear(x, w, "q_proj", N * H, bias=c.attention_bias), N, H)
    k = heads(linear(x, w, "k_proj", K * H, bias=c.attention_bias), K, H)
    v = heads(linear(x, w, "v_proj", K * H, bias=c.attention_bias), K, H)
    q, k = apply_rope(q, table), apply_rope(k, table)
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    return linear(attend(q, k, v, causal_mask(cache, q, k, mask), H**-0.5), w, "o_proj", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: RecurrentGemma) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D]."""
    gate = activation(c.activation)(linear(x, w, "gate_proj", c.d_ff, bias=True))
    return linear(gate * linear(x, w, "up_proj", c.d_ff, bias=True), w, "down_proj", c.d_model, bias=True)
