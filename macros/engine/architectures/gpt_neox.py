"""GPT-NeoX and Pythia: one fused matrix for queries, keys and values, both halves of the block in parallel.

Source: arXiv 2204.06745 (GPT-NeoX-20B), 2304.01373 (Pythia); tensor names as the published files.
"""

from __future__ import annotations

from ..facts import Gguf, Peft
from ..interface import Array, KVCache, RopeTable, Weights
from ..ops import Full, Rope, apply_rope, attend, causal_mask, embed, layer_norm, linear, positions, rope_table, unembed
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Raw, Size, activation, config, derived, key
from .rope_config import OLDER_ROPE_KEYS, read_rope
from .tasks import OLD_CLASSIFIER


@config
class GPTNeoX(Config):
    """Hyperparameters of GPT-NeoX, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_hidden_layers")
    norm_eps: Positive = key("layer_norm_eps", 1e-5)
    parallel: bool = key("use_parallel_residual", True)
    # attention
    n_heads: Size = key("num_attention_heads")
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    attention_bias: bool = key("attention_bias", True)
    rope_parameters: Raw = key("rope_parameters", lambda c: {})
    rotary_pct: Positive = key("rotary_pct", 0.25)
    rope_base: Positive = key("rotary_emb_base", 10000.0)
    # feed-forward
    d_ff: Size = key("intermediate_size")
    activation: str = key("hidden_act", "gelu")
    # head
    tied: bool = key("tie_word_embeddings", False)

    rewritten = OLDER_ROPE_KEYS
    ignored = frozenset({"classifier_dropout"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)

    @property
    def rope(self) -> Rope:
        return read_rope(
            {"partial_rotary_factor": self.rotary_pct, "rope_theta": self.rope_base, **self.rope_parameters}
        )


GGUF = Gguf("gptneox", {"attention.query_key_value": "attn_qkv", "attention.dense": "attn_output"})


@architecture(
    "gpt_neox",
    config=GPTNeoX,
    scaled_by_awq="dense_h_to_4h",
    spellings=(("^embed_out.", "lm_head."),),
    gguf=GGUF,
    heads=OLD_CLASSIFIER,
    peft=Peft(("query_key_value",)),
)
def forward(w: Weights, ids: Array, c: GPTNeoX, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "gpt_neox.embed_in.weight", c.vocab_size, c.d_model)
    table = rope_table(positions(ids, cache), c.d_head, c.rope)
    for _, w_layer, cache_layer in w.layers("gpt_neox.layers", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, cache_layer, c, table)
    x = layer_norm(x, w, "gpt_neox.final_layer_norm", c.norm_eps)
    return unembed(x, w, "gpt_neox.embed_in.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GPTNeoX, table: RopeTable) -> Array:
    """One transformer block, its halves in parallel or one after the other: [T D] -> [T D]."""
    attended = x + attention(layer_norm(x, w, "input_layernorm", c.norm_eps), w.at("attention"), cache, c, table)
    y = layer_norm(x if c.parallel else attended, w, "post_attention_layernorm", c.norm_eps)
    return attended + feed_forward(y, w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: GPTNeoX, table: RopeTable) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    qkv = linear(x, w, "query_key_value", 3 * c.n_heads * c.d_head, bias=c.attention_bias)
    qkv = qkv.reshape(x.shape[0], c.n_heads, 3, c.d_head)
    q, k, v = apply_rope(qkv[:, :, 0], table), apply_rope(qkv[:, :, 1], table), qkv[:, :, 2]
    k, v = cache.extend(Holds.KEYS, k, Full()), cache.extend(Holds.VALUES, v, Full())
    return linear(
        attend(q, k, v, causal_mask(cache, q, k, Full()), c.d_head**-0.5), w, "dense", c.d_model, bias=c.attention_bias
    )


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: GPTNeoX) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "dense_h_to_4h", c.d_ff, bias=True))
    return linear(wide, w, "dense_4h_to_h", c.d_model, bias=True)
