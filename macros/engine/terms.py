"""The field's term for a step: its role's term, refined using its trace.

Roles name any step of their kind; the calls inside tell whether attention is grouped-query or latent, and a
feed-forward network SwiGLU or plain. Several terms of one step are separated by commas.
"""

from __future__ import annotations

import numpy as np

from .array import Node
from .steps import ACTIVATIONS, Role

# A feed-forward part whose activated half is multiplied with the other one (arXiv 2002.05202).
GATED = {Role.SILU: "SwiGLU", Role.GELU: "GeGLU", Role.GELU_TANH: "GeGLU", Role.RELU: "ReGLU"}
WIDENING = {Role.FEED_FORWARD, Role.EXPERTS, Role.GATED_EXPERTS, Role.PACKED_EXPERTS, Role.SHARED_EXPERTS}
# The context that a layer's tokens see, by the word for its kind.
WINDOWS = {"sliding": "sliding window", "chunked": "chunked attention"}
# A layer with only one of these is named after it, and is not a transformer block.
RECURRENT = {Role.MAMBA: "Mamba block", Role.MAMBA2: "Mamba-2 block", Role.TIME_MIX: "RWKV block"}


def of(node: Node) -> str:
    """The term of a step; empty for a NumPy call. Found once, so read it only after the call has ended."""
    if node.term is None:
        node.term = _found(node)
    return node.term


def _found(node: Node) -> str:
    role = node.role
    if role is None:
        return ""
    if role is Role.ATTENTION:
        return _attention(node)
    if role is Role.CAUSAL_MASK:
        kinds = [str(n.kind).split(", ") for n in node.path() if n.kind is not None]
        return ", ".join([role.term, *(term for word, term in WINDOWS.items() if any(word in kind for kind in kinds))])
    if role is Role.REPEAT_KV:
        return _sharing(node)
    if role in WIDENING:
        gated = _gated(node)
        return f"{role.term}, {gated}" if gated else role.term
    if role is Role.LAYER:
        parts = {child.role for child in node.children}
        if Role.ATTENTION in parts:
            return role.term
        return next((name for part, name in RECURRENT.items() if part in parts), role.term)
    if role is Role.DECAYING_ATTENTION and node.is_inside(Role.MAMBA2):
        return "state-space duality"
    return role.term


def _attention(node: Node) -> str:
    """How heads share keys and values."""
    roles = {n.role: n for n in node.walk()}
    if Role.LATENT_SCORES in roles:
        return "multi-head latent attention"
    return _sharing(roles[Role.REPEAT_KV]) if Role.REPEAT_KV in roles else "multi-head attention"


def _sharing(repeat: Node) -> str:
    """Attention whose query heads share the key/value heads that this step repeats."""
    n_kv_heads = int(repeat.inputs[0].shape[1])
    return "multi-query attention" if n_kv_heads == 1 else Role.REPEAT_KV.term


def _before_clamp(made: Node) -> Node:
    """The call whose numbers a clamp bounds, or the call itself if it is not a clamp."""
    if made.function not in (np.minimum, np.clip):
        return made
    return next((a.source for a in made.inputs if isinstance(a.source, Node)), made)


def _gated(node: Node) -> str:
    """The name of the gate inside a feed-forward network: the activated half of the numbers multiplies the other."""
    for call in node.walk():
        if call.role is Role.CLIPPED_SWIGLU:
            return "SwiGLU"
        if call.function is np.multiply and len(call.inputs) == 2:
            for made in (_before_clamp(a.source) for a in call.inputs if isinstance(a.source, Node)):
                activation = next((n.role for n in made.path() if n.role in ACTIVATIONS), None)
                if activation is not None and not call.is_inside(*ACTIVATIONS):
                    return GATED.get(activation, "")
    return ""
