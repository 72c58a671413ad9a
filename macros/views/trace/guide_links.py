"""The pages that explain a step: the page and section that a node of a diagram or an area of a map links to.

A section is named by the anchor of its heading; a test looks for each. If a page is not part of the site, the next one
in its list is used.
"""

from __future__ import annotations

import numpy as np

from ...engine.array import Node
from ...engine.steps import ACTIVATIONS, EVERY_NORM, ROPES, Role
from ..kit.html import Link
from .operations import Operation, is_alibi, is_distance_bias

WHAT_HAPPENS = "what-happens/"
TOKENS = f"{WHAT_HAPPENS}tokens.md"
EMBEDDINGS = f"{WHAT_HAPPENS}embeddings.md"
PLACES = f"{EMBEDDINGS}#where-a-token-stands"
PER_LAYER = f"{EMBEDDINGS}#a-vector-for-each-layer"
STREAM = f"{WHAT_HAPPENS}model-layers.md#the-residual-stream"
NORM = f"{WHAT_HAPPENS}model-layers.md#the-norms"
ATTENTION = f"{WHAT_HAPPENS}attention-deep-dive.md"
PROJECTIONS = f"{ATTENTION}#three-vectors-for-each-token"
HEADS = f"{ATTENTION}#heads"
SCORES = f"{ATTENTION}#scores-shares-average"
OUTPUT = f"{ATTENTION}#back-into-the-stream"
POSITION = f"{ATTENTION}#position"
KINDS = f"{WHAT_HAPPENS}attention-kinds.md"
ENCODER = f"{KINDS}#an-encoder-and-a-decoder"
LATENTS = f"{KINDS}#keeping-less-latent-attention"
FEED_FORWARD = f"{WHAT_HAPPENS}ffn-deep-dive.md#wider-through-a-function-and-back"
GATE = f"{WHAT_HAPPENS}ffn-deep-dive.md#with-a-gate"
EXPERTS = f"{WHAT_HAPPENS}mixture-of-experts.md"
ROUTER = f"{EXPERTS}#the-router"
SHARED_EXPERTS = f"{EXPERTS}#shared-experts-and-layers-without"
CACHE = f"{WHAT_HAPPENS}kv-cache.md"
SHARED = "costs/kv-cache.md#layers-that-share"
INDEXER = "costs/kv-cache.md#latents"
RECURRENT = f"{WHAT_HAPPENS}recurrent-layers.md"
LAST = f"{WHAT_HAPPENS}final-vector-to-token.md#a-score-for-every-token"
NEXT_TOKEN = f"{WHAT_HAPPENS}final-vector-to-token.md#from-scores-to-a-word"

# Replacements for missing pages.
INSTEAD = {KINDS: ATTENTION, EXPERTS: FEED_FORWARD, RECURRENT: CACHE, "costs/kv-cache.md": CACHE}

# The parts of a layer, with a section for any step without a more specific one below.
PARTS: dict[Role | None, str] = {
    Role.ATTENTION: PROJECTIONS,
    Role.CROSS_ATTENTION: ENCODER,
    Role.CONV_STEM: ENCODER,
    Role.INDEXER: INDEXER,
    Role.FEED_FORWARD: FEED_FORWARD,
    Role.MIXTURE_OF_EXPERTS: ROUTER,
    **dict.fromkeys((Role.EXPERTS, Role.GATED_EXPERTS, Role.PACKED_EXPERTS, Role.ZERO_EXPERTS), EXPERTS),
    Role.COMPRESSOR: INDEXER,
    **dict.fromkeys((Role.STREAM_SHARES, Role.READ_STREAMS, Role.WRITE_STREAMS, Role.REDUCE_STREAMS), STREAM),
    **dict.fromkeys((Role.ALTUP_STREAMS, Role.ALTUP_PREDICT, Role.ALTUP_CORRECT, Role.ALTUP_JOIN, Role.LAUREL), STREAM),
    Role.SHARED_EXPERTS: SHARED_EXPERTS,
    Role.LAYER_INPUTS: PER_LAYER,
    Role.LAYER_INPUT: PER_LAYER,
    Role.MAMBA: f"{RECURRENT}#mamba",
    Role.MAMBA2: f"{RECURRENT}#mamba-2",
    Role.LIGHTNING_ATTENTION: f"{RECURRENT}#lightning-attention",
    Role.GATED_DELTA_NET: f"{RECURRENT}#gated-deltanet",
    Role.KIMI_DELTA_ATTENTION: f"{RECURRENT}#kimi-delta-attention",
    Role.RECURRENT_BLOCK: f"{RECURRENT}#griffin",
    Role.SHORT_CONVOLUTION: f"{RECURRENT}#short-convolutions",
    **dict.fromkeys((Role.TIME_MIX, Role.CHANNEL_MIX), f"{RECURRENT}#rwkv"),
}
IN_ATTENTION: dict[Role | None, str] = {
    **dict.fromkeys(
        (Role.SCORES, Role.TEMPERATURE, Role.SOFT_CAP, Role.CAUSAL_MASK, Role.WINDOW_MASK, Role.WEIGHTED_SUM), SCORES
    ),
    **dict.fromkeys((Role.SOFTMAX, Role.SOFTMAX_WITH_SINK, Role.DYNAMIC_MASK, Role.DIFFERENTIAL_LAMBDA), SCORES),
    **dict.fromkeys((Role.LATENT_QUERIES, Role.LATENT_SCORES, Role.LATENT_WEIGHTED_SUM, Role.LATENT_VALUES), LATENTS),
    **dict.fromkeys(ROPES, POSITION),
    **dict.fromkeys(EVERY_NORM, NORM),
    Role.REPEAT_KV: HEADS,
}
OUTSIDE_OF_LAYERS: dict[Role | None, str] = {
    Role.RELATIVE_BIAS: POSITION,
    Role.EMBED: EMBEDDINGS,
    Role.EMBED_SEGMENTS: EMBEDDINGS,
    **dict.fromkeys((Role.EMBED_POSITIONS, Role.SINUSOIDS), PLACES),
    Role.EMBED_LAYERS: PER_LAYER,
    Role.ROPE_TABLE: POSITION,
    Role.UNEMBED: LAST,
}


def section_for_operation(node: Node, operation: Operation) -> str:
    """The section that explains an operation."""
    around = _around(node)
    part = next((n.role for n in around if n.role in PARTS), None)
    gives = operation.words.gives
    match part:
        case None:
            return _between_parts(node, around)
        case Role.ATTENTION if node.role in IN_ATTENTION:
            return IN_ATTENTION[node.role]
        case Role.ATTENTION if is_alibi(node) or is_distance_bias(node):
            return POSITION
        case Role.ATTENTION if gives in ("latent, rope key", "compressed q") or node.function is np.reshape:
            return LATENTS
        case Role.ATTENTION if operation.weights and not gives:
            return OUTPUT
        case Role.FEED_FORWARD if any(n.role is Role.SHARED_EXPERTS for n in around):
            return SHARED_EXPERTS
        case Role.FEED_FORWARD if "gate" in gives or node.function is np.multiply or _gates(node):
            return GATE
    return PARTS[part]


def page_for_part(part: Node) -> str:
    """The page that explains a part of a model as a whole: attention, the norms, the head."""
    return PARTS[part.role].partition("#")[0] if part.role in PARTS else _between_parts(part, _around(part))


def _between_parts(node: Node, around: list[Node]) -> str:
    """The section for a step between the parts of a layer, or outside of the layers."""
    if node.layers is not None or len(around) > 1:
        return NORM if node.role in EVERY_NORM else STREAM
    return OUTSIDE_OF_LAYERS.get(node.role) or (LAST if _is_behind_layers(node) else EMBEDDINGS)


def _gates(node: Node) -> bool:
    """Whether an activation's result is multiplied: in that case it is a gate."""
    siblings = node.parent.children if node.parent else []
    return node.role in ACTIVATIONS and any(
        n.function is np.multiply and any(a is node.outputs[0] for a in n.inputs) for n in siblings
    )


def _around(node: Node) -> list[Node]:
    """The steps that a call is in, innermost first."""
    around = []
    while node.parent is not None:
        node = node.parent
        around.append(node)
    return around


def _is_behind_layers(node: Node) -> bool:
    siblings = node.parent.children if node.parent else [node]
    return any(n.layers is not None for n in siblings[: siblings.index(node)])


def link_to_section(section: str, link: Link | None) -> str | None:
    """The link to a section, or to its replacement: None if the site has neither, or there are no links."""
    if link is None:
        return None
    page, _, heading = section.partition("#")
    if to_page := link(page):
        return f"{to_page}#{heading}" if heading else to_page
    return link_to_section(INSTEAD[page], link) if page in INSTEAD else None
