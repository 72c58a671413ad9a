"""GPT-J: attention and feed-forward in parallel on the same norm, rotary positions on part of each head.

Source: Wang and Komatsuzaki 2021, kingoflolz/mesh-transformer-jax; tensor names as transformers' GPTJForCausalLM.
"""

from __future__ import annotations

from ..errors import Problem
from ..facts import QUERY_VALUE, Peft, Task
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import (
    Full,
    Rope,
    apply_rope_pairs,
    attend,
    causal_mask,
    embed,
    heads,
    layer_norm,
    linear,
    positions,
    rope_table,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Size, activation, config, derived, key
from .tasks import DECODER


@config
class GPTJ(Config):
    """Hyperparameters of GPT-J, in forward order."""

    vocab_size: Size = key("vocab_size")
    d_model: Size = key("n_embd", also=("hidden_size",))
    n_layers: Size = key("n_layer", also=("num_hidden_layers",))
    n_heads: Size = key("n_head", also=("num_attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    d_rotary: Size = key("rotary_dim", 64)
    d_ff: Size = key("n_inner", lambda c: 4 * c.d_model)
    norm_eps: Positive = key("layer_norm_epsilon", 1e-5)
    activation: str = key("activation_function", "gelu_new")
    tied: bool = key("tie_word_embeddings", False)

    ignored = frozenset({"n_ctx", "n_positions", "rotary", "rope_scaling", "scale_attn_weights"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)
        if self.d_rotary % 2 or self.d_rotary > self.d_head:
            raise Problem(
                f"rotary_dim = {int(self.d_rotary)}: expected an even number up to the head's {int(self.d_head)}",
                "correct it",
            )


@architecture(
    "gptj",
    config=GPTJ,
    scaled_by_awq="fc_in",
    heads=DECODER | {"ForQuestionAnswering": Task("question answering", "find_answer", 2)},
    peft=Peft(QUERY_VALUE),
)
def forward(w: Weights, ids: Array, c: GPTJ, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.wte.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, Rope(partial=c.d_rotary / c.d_head))
    for _, w_layer, cache_layer in w.layers("transformer.h", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = layer_norm(x, w, "transformer.ln_f", c.norm_eps)
    head = "transformer.wte.weight" if c.tied else "lm_head.weight"
    return unembed(x, w, head, c.vocab_size, last=last, bias="lm_head.bias")


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GPTJ, table: RopeTable) -> Array:
    """One transformer block, both halves in parallel: [T D] -> [T D]."""
    y = layer_norm(x, w, "ln_1", c.norm_eps)
    return x + attention(y, w.at("attn"), cache, c, table) + feed_forward(y, w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: GPTJ, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q, k, v = (heads(linear(x, w, name, c.d_model), c.n_heads, c.d_head) for name in ("q_proj", "k_proj", "v_proj"))
    q, k = apply_rope_pairs(q, table), apply_rope_pairs(k, table)
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5), w, "out_proj", c.d_model)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: GPTJ) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(activation(c.activation)(linear(x, w, "fc_in", c.d_ff, bias=True)), w, "fc_out", c.d_model, bias=True)
