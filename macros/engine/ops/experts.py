"""Mixture of experts: the experts of each token, and linear maps that use only those experts.

Additional letters: E experts, k experts per token, I and O the inner sizes of a linear map.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct

from ..dims import product, same
from ..interface import Array, Mask, Weights
from ..steps import Keeps, Role, Ruling, step
from .basic import Activation, linear, logistic, softmax, softplus
from .masks import Full


class Kind(Struct, frozen=True):
    """The composition of a layer: a mixture of experts or a plain feed-forward network, and the mask of its
    attention."""

    moe: bool
    mask: Mask = Full()

    def __str__(self) -> str:
        feed_forward = "moe" if self.moe else "dense"
        return feed_forward if self.mask == Full() else f"{self.mask}, {feed_forward}"


def _expert_linear_rule(x: Array, W: Array, chosen: Array, *, transposed: bool = False) -> Ruling:
    width, inner = W.shape[1:][::-1] if transposed else W.shape[1:]
    T, k = chosen.shape
    same(x.shape[-1], inner)
    return (T, k, width), product((T, k, width, inner))


@step(Role.EXPERT_LINEAR, rule=_expert_linear_rule)
def expert_linear(x: Array, W: Array, chosen: Array, *, transposed: bool = False) -> Array:
    """Multiply each token by the matrices of its chosen experts: [T I] or [T k I], [E O I], [T k] -> [T k O].

    `transposed`: the matrices are stored [E I O]. Only chosen experts are used.
    """
    y = np.empty((*chosen.shape, W.shape[2 if transposed else 1]), np.result_type(x, W))
    for e in np.unique(chosen):
        token, place = np.nonzero(chosen == e)
        rows = x[token] if x.ndim == 2 else x[token, place]
        y[token, place] = rows @ (W[e] if transposed else W[e].T)
    return y


@step(Role.SIGMOID_SCORES, keeps=Keeps.OUTPUT)
def sigmoid_scores(x: Array) -> Array:
    """A score between 0 and 1 for each expert independently, the sigmoid: [T E] -> [T E]."""
    return logistic(x)


def expert_scores(x: Array, scoring: str) -> Array:
    """A score for each expert, from √softplus, a softmax or the sigmoid: [T E] -> [T E]."""
    if scoring == "sqrtsoftplus":
        return np.sqrt(softplus(x))
    return softmax(x) if scoring == "softmax" else sigmoid_scores(x)


@step(Role.TOP_K, keeps=Keeps.NOTHING)
def top_k(scores: Array, k: int) -> Array:
    """The indices of the k highest scores, best first: [T E] -> [T k]."""
    return np.argsort(-scores, axis=-1, kind="stable")[:, :k]


@step(Role.EXPERT_GROUPS, keeps=Keeps.NOTHING)
def group_limited(scores: Array, n_groups: int, n_kept: int, best: int) -> Array:
    """Leave only the best groups of experts to choose from: [T E] -> [T E].

    A group's score is the sum of its `best` highest scores.
    """
    T, E = scores.shape
    groups = scores.reshape(T, n_groups, E // n_groups)
    worth = np.sort(groups, axis=-1)[..., -best:].sum(axis=-1)
    rank = np.argsort(np.argsort(-worth, axis=-1, kind="stable"), axis=-1)
    return np.where((rank < n_kept)[..., None], groups, -np.inf).reshape(T, E)


@step(Role.ROUTING_WEIGHTS)
def routing_weights(
    scores: Array,
    chosen: Array,
    *,
    normalise: bool = False,
    scale: float = 1.0,
    least: float = 1e-20,
    added: float = 0.0,
) -> Array:
    """The weight of each chosen expert, with `normalise` so that they add up to `scale`: [T E], [T k] -> [T k].

    To avoid a division by zero the sum is at least `least`, and some models add a number to it.
    """
    shares = np.take_along_axis(scores, chosen, axis=-1)
    if normalise:
        total = np.maximum(shares.sum(axis=-1, keepdims=True), least)
        shares = shares / (total + added if added else total)
    return shares * scale if scale != 1 else shares


@step(Role.COMBINE)
def combine(y: Array, shares: Array) -> Array:
    """Sum the outputs of the chosen experts, weighted: [T k D], [T k] -> [T D]."""
    return np.einsum("tkd,tk->td", y, shares, optimize=True)


def gated(gate: Array, up: Array, activation: Activation, limit: float | None = None, behind: bool = False) -> Array:
    """One half through an activation function, times the other: [… F], [… F] -> [… F].

    A `limit` clips both halves, the first one before its activation function or, with `behind`, after it.
    """
    if limit is None:
        return activation(gate) * up
    bounded = clip(activation(gate), None, limit) if behind else activation(clip(gate, None, limit))
    return bounded * clip(up, -limit, limit)


@step(Role.FEED_FORWARD)
def feed_forward(
    x: Array,
    w: Weights,
    d_ff: int,
    activation: Activation,
    *,
    bias: bool = False,
    limit: float | None = None,
    behind: bool = False,
) -> Array:
    """Process each token separately, in a wider space, one half gating the other: [T D] -> [T F] -> [T D].

    A `limit` clips gate and up values (`behind`: the gate's after its activation function).
    """
    gate, up = linear(x, w, "gate_proj", d_ff, bias=bias), linear(x, w, "up_proj", d_ff, bias=bias)
    return linear(gated(gate, up, activation, limit, behind), w, "down_proj", x.shape[-1], bias=bias)


@step(Role.CLIP)
def clip(x: Array, least: float | None, most: float) -> Array:
    """Clamp numbers to bounds: same shape."""
    return np.minimum(x, most) if least is None else np.clip(x, least, most)


@step(Role.CLIPPED_SWIGLU)
def clipped_swiglu(gate: Array, up: Array, limit: float, slope: float) -> Array:
    """Gate and up values, both clipped: gate · σ(slope · gate) · (up + 1): [… F], [… F] -> [… F] (gpt-oss)."""
    gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    return gate * logistic(gate * slope) * (up + 1)


@step(Role.SHARED_EXPERTS)
def shared_experts(
    x: Array,
    w: Weights,
    d_ff: int,
    activation: Activation,
    *,
    bias: bool = False,
    limit: float | None = None,
    behind: bool = False,
) -> Array:
    """The experts that every token passes through, side by side as one: [T D] -> [T F] -> [T D]."""
    return feed_forward(x, w, d_ff, activation, bias=bias, limit=limit, behind=behind)


@step(Role.GATED_EXPERTS)
def gated_experts(
    x: Array,
    chosen: Array,
    w: Weights,
    names: tuple[str, str, str],
    n_experts: int,
    d_ff: int,
    activation: Activation,
    limit: float | None = None,
) -> Array:
    """Each token through its chosen experts, one half gating the other: [T D], [T k] -> [T k F] -> [T k D].

    `names` are those of an expert's gate, up and down matrix, with `{e}` for its number. A `limit` clips gate and up
    values.
    """
    D, k = x.shape[-1], chosen.shape[1]
    gate = expert_linear(x, w.stack(names[0], n_experts, d_ff, D, used=k), chosen)
    up = expert_linear(x, w.stack(names[1], n_experts, d_ff, D, used=k), chosen)
    return expert_linear(gated(gate, up, activation, limit), w.stack(names[2], n_experts, D, d_ff, used=k), chosen)


@step(Role.ZERO_EXPERTS)
def zero_experts(x: Array, chosen: Array, n_experts: int, experts: Callable[[Array], Array]) -> Array:
    """Experts some of which do nothing, leaving the token's vector unchanged: [T D], [T k] -> [T k D].

    Those have the indices from `n_experts` on; `experts` computes the others (LongCat-Flash, arXiv 2509.01322, 2.1.1).
    """
    is_real = chosen < n_experts
    y = experts(np.where(is_real, chosen, 0))
    return np.where(is_real[:, :, None], y, x[:, None, :])


@step(Role.PACKED_EXPERTS)
def packed_experts(
    x: Array,
    chosen: Array,
    w: Weights,
    names: tuple[str, str],
    n_experts: int,
    d_ff: int,
    activation: Activation,
    *,
    limit: float | None = None,
    behind: bool = False,
) -> Array:
    """Each token through its chosen experts, gate and up in one matrix: [T D], [T k] -> [T k 2F] -> [T k F] -> [T k D].

    `names` are those of the stacks of all experts' gate-and-up and down matrices. A `limit` clips gate and up values
    (`behind`: the gate's after its activation function).
    """
    k, D = chosen.shape[1], x.shape[1]
    gate, up = np.split(expert_linear(x, w.stack(names[0], n_experts, 2 * d_ff, D, used=k), chosen), 2, axis=-1)
    wide = gated(gate, up, activation, limit, behind)
    return expert_linear(wide, w.stack(names[1], n_experts, D, d_ff, used=k), chosen)


def balanced_routing(
    scores: Array, bias: Array, k: int, *, groups: tuple[int, int] = (1, 1), normalise: bool = True, scale: float = 1.0
) -> tuple[Array, Array]:
    """Independent scores, with a bias in the selection that balances the experts' load: [T E], [E] -> [T k], [T k].

    The weights exclude the bias. `groups`: (number of groups, number that stay) (arXiv 2412.19437, 2.1.2).
    """
    fit = sigmoid_scores(scores)
    allowed = fit + bias
    if groups[0] > 1:
        allowed = group_limited(allowed, *groups, best=2)
    chosen = top_k(allowed, k)
    return chosen, routing_weights(fit, chosen, normalise=normalise, scale=scale)


def softmax_routing(scores: Array, k: int, *, normalise: bool, scale: float = 1.0) -> tuple[Array, Array]:
    """The usual choice: the k experts with the largest softmax weight: [T E] -> [T k] indices, [T k] weights."""
    fit = softmax(scores)
    chosen = top_k(fit, k)
    return chosen, routing_weights(fit, chosen, normalise=normalise, scale=scale)


def chosen_softmax_routing(scores: Array, k: int) -> tuple[Array, Array]:
    """The k highest scores, and a softmax of only these: [T E] -> [T k] indices, [T k] weights."""
    chosen = top_k(scores, k)
    return chosen, softmax(routing_weights(scores, chosen))
