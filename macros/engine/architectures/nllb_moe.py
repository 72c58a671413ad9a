"""NLLB-MoE: M2M-100 with two of many experts for each token in every few layers.

transformers 5.24's code runs two experts alone, whichever are chosen; here each token has its two, as in the paper, in
fairseq and in transformers 4. Source: arXiv 2207.04672 (6.2); tensor names as transformers.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np

from ..errors import Problem
from ..facts import MODEL_TABLES, Peft
from ..interface import Array, KVCache, Weights
from ..ops import Activation, combine, expert_linear, linear, softmax_routing, unembed
from ..steps import Role, step
from . import architecture
from .bart import M2M100, attention, causal_attention, cross_attention, feed_forward
from .config import Offset, Size, activation, config, key
from .otherwise import Otherwise, other_than
from .tasks import BASE, OWN

CHOSEN = 2  # experts of each token: the code is for no other number

Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]


@config
class NllbMoe(M2M100):
    """Hyperparameters of NLLB-MoE, in forward order."""

    n_experts: Size = key("num_experts", 128)
    encoder_every: Offset = key("encoder_sparse_step", 4)
    decoder_every: Offset = key("decoder_sparse_step", 4)
    router_bias: bool = key("router_bias", False)
    second: Literal["all"] = key("second_expert_policy", "all")
    left_out: Share = key("moe_token_dropout", 0.2)

    caveat = M2M100.caveat + (
        " Each token has the two experts that it chose. The code of transformers 5.24 runs the first two of a layer, "
        "whichever are chosen: its logits are other ones."
    )
    ignored = M2M100.ignored | frozenset(
        """batch_prioritized_routing expert_capacity moe_eval_capacity_token_fraction
        normalize_router_prob_before_dropping router_dtype router_ignore_padding_tokens""".split()
    )

    otherwise = (
        Otherwise(
            "moe_eval_capacity_token_fraction",
            other_than("moe_eval_capacity_token_fraction", 1.0),
            "transformers 5.24 lets an expert take that share of the tokens at most, and leaves the rest out",
        ),
    )

    def check(self) -> None:
        super().check()
        if self.n_experts < CHOSEN:
            raise Problem(f"num_experts = {int(self.n_experts)}: expected at least {CHOSEN}", "correct the value")

    @property
    def kinds(self) -> tuple[list[str], list[str]]:
        """Which layers of both stacks have experts."""
        return (
            kinds_of(self.n_encoder_layers, self.encoder_every),
            kinds_of(self.n_decoder_layers, self.decoder_every),
        )


def kinds_of(layers: int, every: int) -> list[str]:
    """Which layers have experts, at this interval; none without one."""
    return ["moe" if every and (i + 1) % every == 0 else "layer" for i in range(layers)]


HEADS = {"ForConditionalGeneration": OWN, "Model": BASE}


@architecture(
    "nllb-moe",
    config=NllbMoe,
    heads=HEADS,
    peft=Peft(tied_tables=MODEL_TABLES, linear_router=True),
)
def forward(w: Weights, ids: Array, c: NllbMoe, cache: KVCache, last: bool = True) -> Array:
    """Scores for the decoder's next token: [T], and the encoder's input [M] -> [T V], or [1 V] with `last`."""
    source = cache.source(c.n_source)
    read = encode(source, w, c, cache) if source.shape[0] else np.zeros((0, c.d_model), np.float32)
    x = c.embedded(ids, cache.length, w, "decoder")
    for kind, w_layer, kept in w.layers("model.decoder.layers", c.kinds[1], cache, "decoder", c.n_encoder_layers):
        x = decoder_layer(x, w_layer, c, kept, read, kind)
    logits = unembed(c.finished(x, w, "decoder"), w, c.head, c.vocabulary, last=last)
    c.spare(w)
    return logits


def encode(source: Array, w: Weights, c: NllbMoe, cache: KVCache) -> Array:
    """The encoder's output for a text, each token in the context of all: [M] -> [M D]."""
    x = c.embedded(source, 0, w, "encoder")
    for kind, w_layer, _ in w.layers("model.encoder.layers", c.kinds[0], cache, "encoder"):
        x = encoder_layer(x, w_layer, c, kind)
    return c.finished(x, w, "encoder")


@step(Role.LAYER)
def encoder_layer(x: Array, w: Weights, c: NllbMoe, kind: str) -> Array:
    """One block of the encoder: [M D] -> [M D]."""
    n, width = c.n_encoder_heads, c.d_encoder_head
    x = c.add(x, w, "self_attn_layer_norm", lambda y: attention(y, w.at("self_attn"), n, width))
    return c.add(x, w, "ff_layer_norm", lambda y: network(y, w.at("ffn"), c, c.d_ff_encoder, kind))


@step(Role.LAYER)
def decoder_layer(x: Array, w: Weights, c: NllbMoe, cache: KVCache, read: Array, kind: str) -> Array:
    """One block of the decoder: [T D] -> [T D]."""
    n, width, rows, cross = c.n_heads, c.d_head, c.n_source, w.at("cross_attention")
    x = c.add(x, w, "self_attn_layer_norm", lambda y: causal_attention(y, w.at("self_attn"), n, width, cache))
    x = c.add(x, w, "cross_attention_layer_norm", lambda y: cross_attention(y, cross, n, width, cache, read, rows))
    return c.add(x, w, "ff_layer_norm", lambda y: network(y, w.at("ffn"), c, c.d_ff, kind))


def network(x: Array, w: Weights, c: NllbMoe, width: int, kind: str) -> Array:
    """The feed-forward network of a layer, or its experts: [T D] -> [T D]."""
    return mixture_of_experts(x, w, c, width) if kind == "moe" else feed_forward(x, w, width, activation(c.activation))


@step(Role.MIXTURE_OF_EXPERTS)
def mixture_of_experts(x: Array, w: Weights, c: NllbMoe, width: int) -> Array:
    """Each token through two experts, weighted by their scores: [T D] -> [T k D] -> [T D].

    In training, some of the experts' output was dropped; here all of it is scaled down to match.
    """
    scores = linear(x, w, "router.classifier", c.n_experts, bias=c.router_bias)
    chosen, shares = softmax_routing(scores, CHOSEN, normalise=True, scale=1 - c.left_out)
    act = activation(c.activation)
    return combine(experts(x, chosen, w.at("experts"), "expert_{e}", c.n_experts, width, act), shares)


@step(Role.EXPERTS)
def experts(
    x: Array, chosen: Array, w: Weights, expert: str, n_experts: int, d_ff: int, activation: Activation
) -> Array:
    """Each token through its chosen experts, with biases: [T D], [T k] -> [T k F] -> [T k D].

    `expert` is the name of one, with `{e}` for its number.
    """
    E, F, D, k = n_experts, d_ff, x.shape[1], chosen.shape[1]
    wide = expert_linear(x, w.stack(f"{expert}.fc1.weight", E, F, D, used=k), chosen)
    wide = wide + np.take(w.stack(f"{expert}.fc1.bias", E, F, used=k), chosen, axis=0)
    y = expert_linear(activation(wide), w.stack(f"{expert}.fc2.weight", E, D, F, used=k), chosen)
    return y + np.take(w.stack(f"{expert}.fc2.bias", E, D, used=k), chosen, axis=0)
