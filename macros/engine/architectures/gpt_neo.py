"""GPT-Neo: GPT-2's block with a window in every other layer, and scores that are not divided by the head's width.

Source: github.com/EleutherAI/gpt-neo; tensor names as the published files.
"""

from __future__ import annotations

from ..errors import Problem, nearest, shorten
from ..facts import QUERY_VALUE, Peft
from ..interface import Array, KVCache, Mask, Weights
from ..ops import (
    Activation,
    Full,
    SlidingWindow,
    attend,
    causal_mask,
    embed,
    embed_positions,
    heads,
    layer_norm,
    linear,
    positions,
    unembed,
)
from ..steps import Holds, Role, step
from . import architecture
from .config import Config, Positive, Size, activation, config, derived, key
from .tasks import OLD_CLASSIFIER


@config
class GPTNeo(Config):
    """Hyperparameters of GPT-Neo, in forward order."""

    # embedding
    vocab_size: Size = key("vocab_size")
    n_positions: Size = key("max_position_embeddings")
    d_model: Size = key("hidden_size")
    # layers
    n_layers: Size = key("num_layers", also=("num_hidden_layers",))
    norm_eps: Positive = key("layer_norm_epsilon", 1e-5)
    attention_types: list[tuple[list[str], int]] = key("attention_types", lambda c: [(["global", "local"], 12)])
    sliding_window: Size = key("window_size", 256)
    # attention
    n_heads: Size = key("num_heads", also=("num_attention_heads",))
    d_head: Size = derived(lambda c: c.d_model // c.n_heads)
    # feed-forward
    d_ff: Size = key("intermediate_size", lambda c: 4 * c.d_model)
    activation: str = key("activation_function", "gelu_new")
    # head
    tied: bool = key("tie_word_embeddings", True)

    ignored = frozenset({"attention_layers", "embed_dropout", "classifier_dropout"})

    def check(self) -> None:
        self.must_divide("n_heads", "d_model")
        activation(self.activation)

    @property
    def act(self) -> Activation:
        """The activation function that the config names."""
        return activation(self.activation)

    @property
    def masks(self) -> list[Mask]:
        """The mask of each layer, in order."""
        known: dict[str, Mask] = {"global": Full(), "local": SlidingWindow(self.sliding_window)}
        names = [name for group, times in self.attention_types for name in group * times]
        if len(names) != self.n_layers:
            raise Problem(
                f"attention_types has {len(names)} layers, and num_layers = {int(self.n_layers)}",
                "correct one of the two",
            )
        for name in names:
            if name not in known:
                raise Problem(f"attention_types has {shorten(name)}", nearest(name, known, "known ones: global, local"))
        return [known[name] for name in names]


@architecture("gpt_neo", config=GPTNeo, optional_prefix="transformer.", heads=OLD_CLASSIFIER, peft=Peft(QUERY_VALUE))
def forward(w: Weights, ids: Array, c: GPTNeo, cache: KVCache, last: bool = True) -> Array:
    """Scores for the next token: [T] -> [T V], or [1 V] with `last`."""
    x = embed(ids, w, "transformer.wte.weight", c.vocab_size, c.d_model)
    x = x + embed_positions(positions(ids, cache), w, "transformer.wpe.weight", c.n_positions, c.d_model)
    for mask, w_layer, cache_layer in w.layers("transformer.h", c.masks, cache):
        x = layer(x, w_layer, cache_layer, c, mask)
    x = layer_norm(x, w, "transformer.ln_f", c.norm_eps)
    return unembed(x, w, "transformer.wte.weight" if c.tied else "lm_head.weight", c.vocab_size, last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, cache: KVCache, c: GPTNeo, mask: Mask) -> Array:
    """One transformer block: [T D] -> [T D]."""
    x = x + attention(layer_norm(x, w, "ln_1", c.norm_eps), w.at("attn.attention"), cache, c, mask)
    return x + feed_forward(layer_norm(x, w, "ln_2", c.norm_eps), w.at("mlp"), c)


@step(Role.ATTENTION)
def attention(x: Array, w: Weights, cache: KVCache, c: GPTNeo, mask: Mask) -> Array:
    """Let each token gather information from itself and the tokens before it: [T D] -> [T D]."""
    q, k, v = (heads(linear(x, w, name, c.d_model), c.n_heads, c.d_head) for name in ("q_proj", "k_proj", "v_proj"))
    k, v = cache.extend(Holds.KEYS, k, mask), cache.extend(Holds.VALUES, v, mask)
    return linear(attend(q, k, v, causal_mask(cache, q, k, mask), 1.0), w, "out_proj", c.d_model, bias=True)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: GPTNeo) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    return linear(c.act(linear(x, w, "c_fc", c.d_ff, bias=True)), w, "c_proj", c.d_model, bias=True)
