"""X-MOD: RoBERTa with a pair of thin matrices for each language in every layer.

A text is in one language: here the default one, or the first. The other languages' matrices are stored and not used.
Source: arXiv 2205.06266; tensor names as transformers' model for masked words (XmodForMaskedLM).
"""

from __future__ import annotations

import re

from ..errors import Problem, shorten
from ..facts import Peft
from ..interface import Array, KVCache, Weights
from ..ops import layer_norm, linear
from ..steps import Role, step
from . import architecture
from .bert import attention, shared_table
from .config import Interval, Size, activation, config, derived, key
from .roberta import Roberta, masked_head
from .tasks import OF_ROBERTA


@config
class Xmod(Roberta):
    """Hyperparameters of X-MOD, in forward order."""

    norm_first: bool = key("pre_norm", False)
    reduction: Interval = key("adapter_reduction_factor", 2)
    d_adapter: Size = derived(lambda c: c.d_model // c.reduction)
    adapter_norm: bool = key("adapter_layer_norm", False)
    reuses_norm: bool = key("adapter_reuse_layer_norm", True)
    norm_before_adapter: bool = key("ln_before_adapter", True)
    languages: list[str] = key("languages", lambda c: ["en_XX"])
    language: str | None = key("default_language", lambda c: None)

    caveat = Roberta.caveat + " A text is in one language: the matrices of the others are stored and not used."

    def check(self) -> None:
        super().check()
        for name in self.languages:
            if not re.fullmatch(r"\w+", name) or self.languages.count(name) > 1:
                raise Problem(f"languages has {shorten(name)}", "give each language once, in letters, digits and _")
        if not self.languages or self.language not in (None, *self.languages):
            raise Problem(
                f"default_language = {shorten(self.language)} is not among the languages", "correct one of the two"
            )

    @property
    def spoken(self) -> str:
        """The default language of a text."""
        return self.language or self.languages[0]


@architecture("xmod", config=Xmod, heads=OF_ROBERTA, peft=Peft(tied_head="lm_head.decoder"))
def forward(w: Weights, ids: Array, c: Xmod, cache: KVCache, last: bool = True) -> Array:
    """Scores for each token, in the context of all: [T] -> [T V], or [1 V] with `last`. There is no next step."""
    x = c.embedded(ids, cache, w, c.first_row)
    for _, w_layer, _ in w.layers("roberta.encoder.layer", ["layer"] * c.n_layers, cache):
        x = layer(x, w_layer, c)
    if c.norm_first:
        x = layer_norm(x, w, "roberta.encoder.LayerNorm", c.norm_eps)
    return masked_head(x, w, c.vocab_size, c.norm_eps, shared_table(c), last=last)


@step(Role.LAYER)
def layer(x: Array, w: Weights, c: Xmod) -> Array:
    """One transformer block, with a norm before or after each half, then the language's adapter: [T D] -> [T D]."""
    at, out = w.at("attention"), w.at("output")
    if c.norm_first:
        x = x + attention(layer_norm(x, at, "output.LayerNorm", c.norm_eps), at, c)
        return adapted(x + feed_forward(layer_norm(x, out, "LayerNorm", c.norm_eps), w, c), out, c)
    x = layer_norm(x + attention(x, at, c), at, "output.LayerNorm", c.norm_eps)
    return layer_norm(adapted(x + feed_forward(x, w, c), out, c), out, "LayerNorm", c.norm_eps)


@step(Role.FEED_FORWARD)
def feed_forward(x: Array, w: Weights, c: Xmod) -> Array:
    """Process each token separately, in a wider space: [T D] -> [T F] -> [T D]."""
    wide = activation(c.activation)(linear(x, w, "intermediate.dense", c.d_ff, bias=True))
    return linear(wide, w, "output.dense", c.d_model, bias=True)


def adapted(x: Array, w: Weights, c: Xmod) -> Array:
    """Add the output of the language's adapter: [T D] -> [T D]."""
    before = x
    if c.adapter_norm:
        x = layer_norm(x, w, "adapter_layer_norm", c.norm_eps)
    elif c.reuses_norm:
        x = layer_norm(x, w, "LayerNorm", c.norm_eps)
    for name in c.languages:
        if name != c.spoken:
            other = w.at(f"adapter_modules.{name}")
            other("dense1.weight", c.d_adapter, c.d_model)
            other("dense1.bias", c.d_adapter)
            other("dense2.weight", c.d_model, c.d_adapter)
            other("dense2.bias", c.d_model)
    return (x if c.norm_before_adapter else before) + adapter(x, w.at(f"adapter_modules.{c.spoken}"), c)


@step(Role.FEED_FORWARD)
def adapter(x: Array, w: Weights, c: Xmod) -> Array:
    """A language's narrow network: [T D] -> [T A] -> [T D]."""
    narrow = activation(c.activation)(linear(x, w, "dense1", c.d_adapter, bias=True))
    return linear(narrow, w, "dense2", c.d_model, bias=True)
