"""Differences between models other than size: norms, positions, activation, experts, biases, context."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...cache.memory import memoized
from ...catalogue.models import Model
from ...counting import design
from ...counting.parts import INPUT_TABLES, Category
from ...engine.ops import SlidingWindow
from ...engine.steps import EVERY_NORM, ROPES, WEIGHTLESS_NORMS, Role
from ..kit.html import Column, number
from ..kit.shapes import var
from ..trace.layers import has_fixed_state, layers_by_kind
from ..trace.norms import Place, kind_of_norm
from ..trace.operations import OF_DISTANCE, is_alibi, place_of_norm
from ..words import descriptions
from .model_page import experts_and_attention

ACTIVATION_TITLES = {
    Role.GELU: "GELU",
    Role.GELU_TANH: "GELU",
    Role.SILU: "SiLU",
    Role.RELU: "ReLU",
    Role.RELU_SQUARED: "squared ReLU",
    Role.XIELU: "xIELU",
}
NORM_TITLES: dict[Role | None, str] = {
    Role.LAYER_NORM: "LayerNorm",
    Role.RMS_NORM: "RMSNorm",
    Role.GATED_RMS_NORM: "RMSNorm",
    Role.UNIT_NORM: "RMSNorm",
    Role.L2_NORM: "L2 normalization",
}


def experts(m: Model) -> str:
    """The number of experts that a token uses, and the total; empty for a dense model."""
    sizes = m.counts.values()
    if not design.is_sparse(m.counts):
        return ""
    shared = sizes.get("n_shared_experts", 1 if any("shared_expert" in w.name for w in m.counts.weights) else 0)
    chosen = {(int(w.routed[1]), int(w.routed[0])) for w in m.counts.weights if w.routed is not None}
    said = [f"{used} of {of}" for used, of in sorted(chosen)]  # layers may differ
    return " to ".join(dict.fromkeys((said[0], said[-1]))) + (f" and {shared} shared" if shared else "")


# Token mixers whose role does not have that name.
MIXERS: dict[Role | None, str] = {Role.CROSS_ATTENTION: "cross-attention"}


def biases(m: Model) -> str:
    """The parts of the layers that have a bias: matrices, convolutions, step sizes, norms, the choice of experts."""
    having: dict[str, None] = {}
    for part in m.counts.parts:
        if part.layer is None or part.category is Category.NORMS:
            continue
        plain = [w for w in part.weights if w not in part.norms and not w.name.endswith(INNER_BIASES)]
        with_bias = [w for w in plain if w.name.endswith("bias")]
        if not with_bias:
            continue
        matrices = [w for w in plain if len(w.shape) > 1 and not w.name.endswith(("bias", "A_log"))]
        title = "attention" if part.is_attention else MIXERS.get(part.role, "mixer")
        if part.category is Category.FEED_FORWARD:
            title = "feed-forward"
        gives = [g for w in with_bias if (g := descriptions.of_tensor(w.name).gives)]
        if len(with_bias) < len(matrices):
            title = ", ".join(gives) if title == "attention" and gives else f"part of {title}"
        having[title] = None
    if any(w.layers is None and w.name.endswith(HEAD_BIAS) for w in m.counts.weights):
        having["the head"] = None
    for title, has_it in inner_biases(m).items():
        if has_it:
            having[title] = None
    titles = list(having)
    return " and ".join(filter(None, (", ".join(titles[:-1]), titles[-1]))) if titles else "none"


HEAD_BIAS = ("lm_head.bias", "decoder.bias", "predictions.bias")
CONVOLUTION, STEP_SIZE = ("conv1d.bias", "conv_1d.bias", "conv.conv.bias"), ("dt_bias", "dt_proj.bias")
CHOICE = ("correction_bias", "expert_bias", "balancing_biases")
BY_PLACE = ("position_bias",)  # one number per position in a window, not the bias of a matrix
INNER_BIASES = CONVOLUTION + STEP_SIZE + CHOICE + BY_PLACE


def inner_biases(m: Model) -> dict[str, bool]:
    """The parts of a layer, other than its matrices, that have a bias."""
    names = [w.name for w in m.counts.weights + m.counts.buffers if w.layers is not None]
    of_layers = [
        node
        for layer in layers_by_kind(m)
        for node in layer.walk()
        if node.role in EVERY_NORM and any(w.name.endswith("bias") for w in node.all_weights())
    ]
    return {
        "convolution": any(name.endswith(CONVOLUTION) for name in names),
        "step size": any(name.endswith(STEP_SIZE) for name in names),
        "norms": not all(node.is_inside(Role.INDEXER) for node in of_layers),
        "the indexer’s norm": any(node.is_inside(Role.INDEXER) for node in of_layers),
        "choice of experts": any(name.endswith(CHOICE) for name in names),
    }


@memoized
def norms(m: Model) -> str:
    """The kind of norm, and its places in a layer."""
    titles: dict[str, None] = {}
    places: set[Place] = set()
    of_heads = False
    for layer in layers_by_kind(m):
        for node in layer.walk():
            if node.role in WEIGHTLESS_NORMS and node.is_inside(Role.ATTENTION):
                of_heads = True
            elif node.role not in NORM_TITLES:
                continue
            elif any(descriptions.of_tensor(w.name).gives in ("q", "k") for w in node.weights):
                of_heads = True
            elif node.parent is layer or (node.parent is not None and node.parent.role is Role.STREAM_SHARES):
                titles[kind_of_norm(node)] = None
                place, _ = place_of_norm(node)
                places.add(place if place in (Place.AFTER, Place.STREAM) else Place.BEFORE)
    where = " and ".join(word for place, word in ((Place.BEFORE, "before"), (Place.AFTER, "after")) if place in places)
    where = " and ".join([f"{where} each part"] * bool(where) + ["after each sum"] * (Place.STREAM in places))
    return f"{', '.join(titles)} {where}" + (", q and k too" if of_heads else "") if titles else ""


@memoized
def positions(m: Model) -> str:
    """How the model encodes a token’s position."""
    nodes = list(m.trace.root.walk())
    roles = {n.role for n in nodes}
    of_layers = ({n.role for n in layer.walk()} for layer in layers_by_kind(m))
    turned = [not inside.isdisjoint(ROPES) for inside in of_layers if Role.ATTENTION in inside]
    ways = ["learned"] * (INPUT_TABLES[1] in roles) + ["sinusoidal"] * (Role.SINUSOIDS in roles)
    ways += ["ALiBi"] * any(map(is_alibi, [n for n in nodes if n.function is np.add]))
    ways += ["by the distance, learned"] * any(role in roles for role in OF_DISTANCE)
    if any(turned):
        ways.append("rotary" if all(turned) else "rotary, none in some layers")
    return ", ".join(ways) or ("by the recurrence" if has_fixed_state(m) else "none")


def window(m: Model) -> int | None:
    """The size of the window, for a model that has layers with one."""
    return next((int(k.mask.size) for k in m.counts.kept if isinstance(k.mask, SlidingWindow)), None)


@memoized
def activation(m: Model) -> str:
    """The activation function of the first feed-forward network, or else of the token mixer, and whether it is
    gated."""
    for category in (Category.FEED_FORWARD, Category.MIXING):
        for part in (p for p in m.counts.parts if p.category is category):
            steps = {n.role for n in part.node.walk()}
            slope = getattr(m.config, "gate_slope", None)
            bends = (
                [f"Swish of slope {slope}"]
                if slope
                else [title for role, title in ACTIVATION_TITLES.items() if role in steps]
            )
            gated = any(
                n.function is np.multiply and len([a for a in n.inputs if a.ndim > 1]) == 2
                for n in part.node.walk()
                if not n.is_inside(*ACTIVATION_TITLES)
            )
            if bends:
                return f"{bends[0]}, gated" if gated else bends[0]
    return ""


class Trait(NamedTuple):
    """A trait by which models are compared: its column, and its value (None if a model has none).

    `is_known` says that None means that a model has none, rather than that its source does not say.
    """

    column: Column
    get: Callable[[Model], int | str | None]
    is_known: bool = True


def _symbol(name: str) -> Trait:
    return Trait(number(var(name)), lambda m: m.counts.values().get(name))


def n_kv_heads(m: Model) -> int | None:
    """Key/value heads; None if latents are cached instead."""
    sizes = m.counts.values()
    return None if "kv_lora_rank" in sizes else sizes.get("n_kv_heads", sizes.get("n_heads"))


def later_growth(m: Model) -> int | None:
    later = m.counts.cache_bytes_per_token()
    return later if later != design.cache_growth(m.counts) else None


TRAITS = (
    _symbol("d_model"),
    Trait(number(var("n_layers")), lambda m: design.n_layers(m.counts)),
    _symbol("n_heads"),
    Trait(number(var("n_kv_heads")), n_kv_heads),
    _symbol("d_head"),
    _symbol("kv_lora_rank"),
    _symbol("d_ff"),
    _symbol("d_ff_expert"),
    Trait(Column("Experts per token"), experts),
    _symbol("vocab_size"),
    Trait(number("Context"), lambda m: m.longest_context[0], is_known=False),
    Trait(number("Cache, bytes per token"), lambda m: design.cache_growth(m.counts)),
    Trait(number("the same at long context"), later_growth),
    Trait(Column("Attention"), lambda m: experts_and_attention(m)[1]),
    Trait(number(var("sliding_window")), window),
    Trait(Column("Positions"), positions),
    Trait(Column("Activation"), activation),
    Trait(Column("Norms"), norms),
    Trait(Column("Biases"), biases),
    Trait(Column("Head"), lambda m: "tied" if m.counts.is_tied else "its own"),
)


HEADS, KV_HEADS = 2, 3  # of TRAITS


@memoized
def trait_values(model: Model) -> tuple[int | str | None, ...]:
    return tuple(None if (value := trait.get(model)) == "" else value for trait in TRAITS)
