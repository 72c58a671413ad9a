"""Where torch and transformers count or keep otherwise than we do: each convention as a sentence and as a number.

A number says by how much theirs is more than ours, worked out from our trace and the config, without torch. All of them
together are the whole difference for each small config, or `costs.py` raises; `tests/catalogue/test_independent.py`
works them out again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from macros.catalogue.presets import Model
from macros.counting.costs import of as costs_of
from macros.engine.array import Node
from macros.engine.ops import Chunked, Compressed, PickedBlocks, PickedPools, SlidingWindow
from macros.engine.steps import OF_SOURCE, Holds, Role
from macros.engine.tensors import CacheEntry

from . import ENCODERS, LOOKING, WITH_ENCODER

DELTA_CHUNK = 64  # of transformers' gated delta rule
MAMBA_CHUNKS = {  # key and default
    **dict.fromkeys(("bamba", "falcon_h1", "granitemoehybrid"), ("mamba_chunk_size", 256)),
    **dict.fromkeys(("mamba2", "zamba2"), ("chunk_size", 256)),
    "nemotron_h": ("chunk_size", 128),
}


def steps(ours: Model, *roles: Role) -> Iterator[tuple[Node, int]]:
    """Each step of these roles, with the number of layers that it stands for."""
    for top in ours.trace.root.children:
        for node in top.walk():
            if node.role in roles:
                yield node, int(top.layer_count)


def flops(ours: Model, node: Node, new: int, context: int) -> int:
    """FLOPs of a step in one layer."""
    return node.flops.at(ours.counts.values(T=new, S=context))


def kept(ours: Model, context: int) -> int:
    """Numbers in the cache after `context` tokens."""
    return sum(k.elements.at(ours.counts.values(S=context)) for k in ours.trace.kept)


def experts_summed(ours: Model, new: int, context: int) -> int:
    """The weighted sum of what the chosen experts say."""
    return -sum(layers * flops(ours, node, new, context) for node, layers in steps(ours, Role.COMBINE))


def every_expert(ours: Model, new: int, context: int) -> int:
    """The experts that were not chosen."""
    if ours.model_type != "llama4_text":
        return 0
    more = 0
    for node, layers in steps(ours, Role.EXPERT_LINEAR):
        experts, chosen = int(node.inputs[1].shape[0]), int(node.inputs[2].shape[1])
        more += layers * flops(ours, node, new, context) * (experts - chosen) // chosen
    return more


def rows_cut_off(ours: Model, new: int, context: int) -> int:
    """Rows of a convolution besides those of the new tokens: of the padding, or of what was kept."""
    if ours.model_type == "zaya":  # what its second convolution reads of the first, made again
        first = [
            (node, layers)
            for node, layers in steps(ours, Role.CAUSAL_CONV)
            if any("depthwise" in w.name for w in node.all_weights())
        ]
        rows = int(ours.config.d_head_conv) - 1
        return sum(layers * flops(ours, node, new, context) * rows // new for node, layers in first)
    rows = 1 if context > new else int(getattr(ours.config, "d_conv", 1)) - 1
    cut = [
        (node, layers)
        for node, layers in steps(ours, Role.CAUSAL_CONV)
        if not node.is_inside(Role.NGRAMS) and not linear_inside(ours, node, new, context)
    ]
    return sum(layers * flops(ours, node, new, context) * rows // new for node, layers in cut)


def row_of_zeros(ours: Model, new: int, context: int) -> int:
    """What the token before the first would hand over, which is nothing."""
    delayed = [
        layers * flops(ours, node, new, context) // new
        for node, layers in steps(ours, Role.LINEAR)
        if any(w.name.endswith("v_proj_delayed.weight") for w in node.all_weights())
    ]
    return sum(delayed) if context == new else 0


def written_out(ours: Model, new: int, context: int) -> int:
    """Our own second form of latent attention in the place of the first."""
    return costs_of(ours.counts).compute.expanded_flops(new, context) - ours.counts.flops_at(new, context)


def not_picked(ours: Model, new: int, context: int) -> int:
    """Scores and averages over the tokens, entries or blocks that the indexer did not pick; of latents, written out."""
    costs, values = costs_of(ours.counts), ours.counts.values(T=new, S=context)
    more = 0
    for p in costs.compute.pair_contractions:
        layer = next((layer for layer in costs.compute.latents if layer in p.leaf.path()), None)
        latent = costs.compute.latents[layer] if layer else None
        picked, theirs = p.keys.at(values), p.flops(values)
        if latent and not p.leaf.is_inside(Role.INDEXER):
            every = costs.compute.latent_rows(layer, new, context)
            if (width := latent.written_out(p.leaf)) is not None:
                theirs = theirs * int(width) // int(latent.rank)
        elif isinstance(p.mask, (Compressed, PickedBlocks, PickedPools)):
            every = p.mask.kept(context)
        else:
            continue
        more += theirs * (every - picked) // picked if picked else 0
    return more


def linear_inside(ours: Model, node: Node, new: int, context: int) -> int:
    """FLOPs of the linear maps inside a step."""
    return sum(flops(ours, inner, new, context) for inner in node.walk() if inner.role is Role.LINEAR)


def moving_taps(ours: Model, new: int, context: int) -> int:
    """A convolution whose taps a linear map makes of each token."""
    more = 0
    for node, layers in steps(ours, Role.CAUSAL_CONV):
        linear = linear_inside(ours, node, new, context)
        more -= layers * (flops(ours, node, new, context) - linear) if linear else 0
    return more


def streams_read(ours: Model, new: int, context: int) -> int:
    """The weighted sum of the streams that a part works on."""
    more = 0
    for node, layers in steps(ours, Role.READ_STREAMS):
        more -= layers * (flops(ours, node, new, context) - linear_inside(ours, node, new, context))
    return more


def entries_averaged(ours: Model, new: int, context: int) -> int:
    """The averages that entries and pools' keys are, in DeepSeek V4 the weighing of the indexer's heads, and the fit
    of n-grams.
    """
    more = 0
    for node, layers in steps(ours, Role.NGRAMS):
        more -= layers * sum(leaf.flops.at(ours.counts.values(T=new, S=context)) for leaf in node.children if leaf.note)
    for node, layers in steps(ours, Role.COMPRESSOR):
        more -= layers * (flops(ours, node, new, context) - linear_inside(ours, node, new, context))
    if ours.model_type == "glm5_next_text":
        for node, layers in steps(ours, Role.INDEXER):
            added = [leaf for leaf in node.children if leaf.role is None and leaf.flops.terms]
            averages = [leaf for leaf in added if len(leaf.inputs[0].shape) == 3]
            more -= layers * sum(flops(ours, leaf, new, context) for leaf in averages)
    if ours.model_type == "deepseek_v4":
        for node, layers in steps(ours, Role.INDEX_SCORES):
            heads, width = (int(d) for d in node.inputs[0].shape[1:])
            more -= layers * flops(ours, node, new, context) // (width + 1)
    return more


def pools_ahead(ours: Model, new: int, context: int) -> int:
    """Of the scores of pools, those that a query of a prompt does not see."""
    if ours.model_type != "qwen4_exp_text":
        return 0
    more, values = 0, ours.counts.values(T=new, S=context)
    for p in costs_of(ours.counts).compute.pair_contractions:
        if isinstance(p.mask, Compressed):
            more -= int(p.flops(values) * (1 - Fraction(*p.share(values))))
    return more


def masked_in_chunk(ours: Model, new: int, context: int) -> int:
    """In a step, the kept rows of the chunk before; a prompt is multiplied in full, by both."""
    more = 0
    for k in ours.counts.kept:
        if isinstance(chunk := getattr(k.mask, "mask", k.mask), Chunked) and context > new and k.holds is Holds.KEYS:
            rows = min(context - 1, int(chunk.size) - 1) - chunk.seen(context - 1)
            heads, width = ours.trace.symbols["n_heads"], int(k.row[-1])
            more += int(k.layer_count) * 4 * heads * width * rows
    return more


def outside_of_window(ours: Model, new: int, context: int) -> int:
    """In a step, the rows that a window no longer reaches; a prompt is multiplied in full, by both."""
    if ours.model_type != "gpt_neo" or context == new:
        return 0
    width = ours.trace.symbols["d_model"]
    return sum(4 * width * rows for rows, k in rows_outside(ours, context) if k.holds is Holds.KEYS)


def rows_outside(ours: Model, context: int) -> Iterator[tuple[int, CacheEntry]]:
    """What each kind of layer with a window need not hold, in rows of all its layers, beside what is kept of it."""
    for k in ours.counts.kept:
        if isinstance(k.mask, SlidingWindow):
            yield int(k.layer_count) * max(context - int(k.mask.size), 0), k


def scores_again(ours: Model, new: int, context: int) -> int:
    """The scores, once for each half of the values."""
    if ours.model_type != "diffllama":
        return 0
    return sum(layers * flops(ours, node, new, context) for node, layers in steps(ours, Role.SCORES))


OMNI = ("qwen2_5_omni_text", "qwen3_omni_moe_text")  # whose classes take no number of scores to keep


def every_score(ours: Model, new: int, context: int) -> int:
    """The head of all tokens but the last."""
    one = ("bert-generation", "mllama_text_model", *LOOKING)  # which have the decoders' option
    if ours.model_type not in (*ENCODERS, *WITH_ENCODER, *OMNI, "xlstm") or ours.model_type in one:
        return 0
    scored = new * int(ours.config.n_ahead) if ours.model_type == "prophetnet" else new
    return sum(layers * flops(ours, node, new, context) * (scored - 1) for node, layers in steps(ours, Role.UNEMBED))


def looks_again(ours: Model, new: int, context: int) -> int:
    """In a step, the keys and values of an image or a protein."""
    if ours.model_type not in LOOKING or context == new:
        return 0
    rows, width = ours.config.source_shape
    return sum(int(k.layer_count) * 2 * int(rows) * int(width) * int(math.prod(k.shape[1:])) for k in of_source(ours))


def of_source(ours: Model) -> Iterator[CacheEntry]:
    """What is kept of an image or a protein."""
    yield from (k for k in ours.trace.kept if k.holds in OF_SOURCE)


def own_keys(ours: Model, new: int, context: int) -> int:
    """The scores of each stream ahead with its keys at other places, and what these would give."""
    if ours.model_type != "prophetnet":
        return 0
    c = ours.config
    pairs = 2 * new * new - new  # this site counts one product, of each place with itself
    return 2 * int(c.n_decoder_layers) * int(c.n_ahead) * int(c.d_model) * pairs


def mapped_anew(ours: Model, new: int, context: int) -> int:
    """The encoder's output mapped to the decoder's width, in each step after the first."""
    if ours.model_type != "encoder-decoder" or context == new:
        return 0
    c = ours.config
    return 2 * int(c.n_source) * int(c.d_encoder) * int(c.d_model) if c.d_encoder != c.d_model else 0


def chunks_overlap(ours: Model, new: int, context: int) -> int:
    """Scores of chunks of two windows, each of which begins in the middle of the one before, beyond three windows."""
    if ours.model_type != "led" or context > new:
        return 0
    rows, width = int(ours.config.n_source), int(ours.config.d_model)
    windows = [size // 2 for size in ours.config.windows]
    return sum(2 * width * (w * -(-rows // w // 2) * 2 * w - 4 * w * w) for w in windows)


def blocks_of_one(ours: Model, new: int, context: int) -> int:
    """The weighted sums over the first and the last block, where a block is one token."""
    if ours.model_type != "big_bird" or int(ours.config.block) > 1 or new <= 5 + 2 * int(ours.config.n_random):
        return 0
    return -int(ours.config.n_layers) * (new - 4) * 2 * 2 * int(ours.config.d_model)


def rows_filled_up(ours: Model, new: int, context: int) -> int:
    """Four linear maps of half a block before a text and half a block behind it, which some vectors see, too."""
    if ours.model_type != "pegasus_x" or context > new:
        return 0
    moved = ours.config.encoder_kinds.count("moved")
    width = int(ours.config.d_model)
    return moved * int(ours.config.block) * (4 * 2 * width**2 + 4 * int(ours.config.n_global) * width)


def sums_by_products(ours: Model, new: int, context: int) -> int:
    """The sums of blocks of a text, as products with zeros and ones."""
    if ours.model_type != "longt5" or context > new or ours.config.kind == "local":
        return 0
    rows = int(ours.config.n_source)
    return 2 * int(ours.config.n_encoder_layers) * rows * (rows // ours.config.block) * int(ours.config.d_model)


def patches_of_all(ours: Model, new: int, context: int) -> int:
    """In a prompt, the patch after the last finished one, and products of patches and bytes that are masked."""
    if ours.model_type != "blt" or context > new:
        return 0
    c, patches = ours.config, int(ours.config.patches.kept(new))
    J, E, D, C = (int(n) for n in (c.n_patch_vectors, c.d_encoder, c.d_model, c.d_decoder))
    readers = int(c.n_encoder_layers) if c.reads_in_each else 1
    lookers = int(c.n_decoder_layers) if c.looks_in_each else 1
    reader = 2 * J * E * 3 * E + 4 * J * new * E * patches
    kept = 2 * int(c.n_kv_heads * c.d_head)
    block = 2 * D * (2 * D + kept + 3 * int(c.d_ff)) + 4 * D * (2 * patches + 1)
    between = 2 * J * E * D if J * E != D else 0
    looker = 4 * J * C * int(c.n_decoder_kv_heads * c.d_decoder_head) + 4 * C * new * J * patches
    return readers * reader + between + int(c.n_global_layers) * block + 2 * D * J * C + lookers * looker


def byte_alone(ours: Model, new: int, context: int) -> int:
    """In a step, a text of one byte, whose two local stacks have all rows of the text, instead of what is kept here."""
    if ours.model_type != "blt" or context == new:
        return 0
    c, rows = ours.config, context - 1
    local = 4 * rows * int(c.n_encoder_layers * c.d_encoder + c.n_decoder_layers * c.d_decoder)
    return ours.counts.flops_at(1, 1) + patches_of_all(ours, 1, 1) + local - ours.counts.flops_at(1, context)


def local_rows(ours: Model, new: int, context: int) -> int:
    """All rows of the two local stacks, instead of windows, patches and what the patcher keeps."""
    if ours.model_type != "blt":
        return 0
    c = ours.config
    local = c.n_encoder_layers * c.n_encoder_kv_heads * c.d_encoder_head
    local = local + c.n_decoder_layers * c.n_decoder_kv_heads * c.d_decoder_head
    return 2 * int(local) * context - kept(ours, context) - ids_kept(ours, new, context)


def pooled(ours: Model, new: int, context: int) -> int:
    """The first token's vector through a matrix."""
    return (
        2 * int(ours.config.d_model) ** 2 if ours.model_type in ("squeezebert", "big_bird", "layoutlm", "luke") else 0
    )


def recurrence(ours: Model, new: int, context: int) -> int:
    """What torch counts of the form that it runs, without what we count of the plain recurrence."""
    more = 0
    for node, layers in steps(
        ours, Role.SELECTIVE_SCAN, Role.RG_LRU, Role.DECAYING_ATTENTION, Role.GATED_DELTA_RULE, Role.MLSTM, Role.WKV
    ):
        theirs = in_a_step(node) if context > new else in_a_prompt(ours, node, new)
        more += layers * (theirs - flops(ours, node, new, context))
    return more


def in_a_step(node: Node) -> int:
    """A state is carried by element-wise work; Mamba and lightning attention read theirs by a product."""
    if node.role is Role.SELECTIVE_SCAN:
        channels, numbers = map(int, node.inputs[2].shape)
        return 2 * channels * numbers
    if node.role is Role.DECAYING_ATTENTION:
        (heads, i), j = map(int, node.inputs[0].shape[1:]), int(node.inputs[2].shape[2])
        writes = node.is_inside(Role.LIGHTNING_ATTENTION)
        return 2 * heads * i * j * (2 if writes else 1)
    if node.role is Role.MLSTM:
        (heads, i), j = map(int, node.inputs[0].shape[1:]), int(node.inputs[2].shape[2])
        return 2 * heads * (2 * i * j + i)
    return 0


def in_a_prompt(ours: Model, node: Node, new: int) -> int:
    """Token by token in Mamba, Griffin, xLSTM and RWKV; else products of all pairs of a chunk, which is filled up."""
    if node.role in (Role.SELECTIVE_SCAN, Role.RG_LRU, Role.MLSTM, Role.WKV):
        return in_a_step(node) * new
    (heads, i), j = map(int, node.inputs[0].shape[1:]), int(node.inputs[2].shape[2])
    if node.is_inside(Role.LIGHTNING_ATTENTION):  # the last block is not padded
        size = ours.raw["block_size"]
        blocks = [min(size, new - start) for start in range(0, new, size)]
        return 2 * heads * sum(block**2 * (i + j) + 2 * block * i * j for block in blocks)
    if node.role is Role.DECAYING_ATTENTION:
        key, default = MAMBA_CHUNKS[ours.model_type]
        size = ours.raw.get(key, default)
        chunks = -(-new // size)
        between = (chunks + 1) ** 2 * i * j
        return 2 * heads * (chunks * (size**2 * (i + j) + 2 * size * i * j) + between)
    chunks = -(-new // DELTA_CHUNK)
    return 2 * heads * chunks * (DELTA_CHUNK**2 * (2 * i + j) + 3 * DELTA_CHUNK * i * j)


def rows_for_keys(ours: Model, new: int, context: int) -> int:
    """The rows of all new tokens but the last in layers that read the keys and values of an earlier one."""
    if ours.model_type == "gemma3n_text":  # whose code takes every token through them
        return 0
    shared = {k.layers for k in ours.counts.kept if k.is_shared}
    return sum(
        layers * flops(ours, node, new, context) * (1 - new) // new
        for node, layers in steps(ours, Role.LAYER)
        if node.layers in shared
    )


# Types whose windows are masks alone there.
WHOLE_TEXT = "gpt_neo", "minimax"


def window(ours: Model, new: int, context: int) -> int:
    """The row of the newest token but W − 1."""
    if ours.model_type in (*WHOLE_TEXT, "blt"):
        return 0
    masks = ((k, getattr(k.mask, "mask", k.mask)) for k in ours.counts.kept)
    return -sum(
        k.elements_per_token.at(ours.counts.values())
        for k, mask in masks
        if isinstance(mask, (SlidingWindow, Chunked)) and context >= int(mask.size)
    )


def whole_text(ours: Model, new: int, context: int) -> int:
    """The rows that a window no longer reaches."""
    if ours.model_type not in WHOLE_TEXT:
        return 0
    return sum(rows * int(k.row[0]) * int(k.row[1]) for rows, k in rows_outside(ours, context) if k.row)


def of_a_text_at_once(ours: Model, new: int, context: int) -> int:
    """A key and a value of each token in each layer."""
    if ours.model_type != "xlm" or ours.config.causal:
        return 0
    return 2 * int(ours.config.n_layers) * int(ours.config.d_model) * context


def heads_repeated(ours: Model, new: int, context: int) -> int:
    """Keys and values of every query head, in the newer of Falcon's layers."""
    if ours.model_type != "falcon" or not ours.config.new_block:
        return 0
    heads, held = ours.trace.symbols["n_heads"], ours.trace.symbols["n_kv_heads"]
    return kept(ours, context) * (heads - held) // held


def kept_twice(ours: Model, new: int, context: int) -> int:
    """The one vector of a token, where no layer of the kind compresses: once as key and once as value."""
    compressing = {k.layers for k in ours.counts.kept if k.holds is Holds.COMPRESSED}
    return sum(
        k.elements_per_token.at(ours.counts.values()) * min(context, int(k.mask.size) - 1)
        for k in ours.counts.kept
        if k.holds is Holds.KEYS_AND_VALUES and k.layers not in compressing
    )


def pooled_anew(ours: Model, new: int, context: int) -> int:
    """The indexer's key of every token, in GLM-5-Next with its gates and a mark, without the pools' keys and those
    that wait.
    """
    if ours.model_type not in ("qwen4_exp_text", "glm5_next_text"):
        return 0
    held = [k for k in ours.trace.kept if k.holds in (Holds.INDEX_KEYS, Holds.INDEX_WAITING)]
    kept_here = sum(k.elements.at(ours.counts.values(S=context)) for k in held)
    gated = ours.model_type == "glm5_next_text"
    widths = [
        (int(k.layer_count), 2 * int(k.shape[-1]) + 1 if gated else int(k.shape[-1]))
        for k in held
        if k.holds is Holds.INDEX_KEYS
    ]
    return sum(layers * width for layers, width in widths) * context - kept_here


def nothing_of_source(ours: Model, new: int, context: int) -> int:
    """The keys and values of an image or a protein."""
    if ours.model_type not in LOOKING:
        return 0
    return -sum(k.elements.at(ours.counts.values(S=context)) for k in of_source(ours))


def ids_kept(ours: Model, new: int, context: int) -> int:
    """The last token ids, which are no fractions."""
    return -sum(k.elements.at(ours.counts.values(S=context)) for k in ours.trace.kept if k.holds is Holds.TOKEN_IDS)


@dataclass(frozen=True)
class Convention:
    """A way of counting: the sentence for the page, and by how much theirs is more in a step of `new` tokens."""

    sentence: str
    more: Callable[[Model, int, int], int]


FLOPS = {
    "experts": Convention(
        "This site counts the weighted sum of the outputs of the chosen experts. torch counts only matrix products "
        "and convolutions, and this sum is element-wise there.",
        experts_summed,
    ),
    "unchosen": Convention(
        "transformers’ code of Llama 4 runs each token through every expert, chosen or not.", every_expert
    ),
    "cut off": Convention(
        "transformers computes rows of a convolution that this site does not count: those of the padding, or of "
        "inputs of earlier tokens.",
        rows_cut_off,
    ),
    "before the text": Convention(
        "transformers’ code of ZAYA multiplies a row of zeros, which represents the token before the first.",
        row_of_zeros,
    ),
    "written out": Convention(
        "transformers caches latents and expands each head’s keys and values from them in every step. This figure "
        "uses the latents directly. The number is the difference between the two forms, both of which this site "
        "counts.",
        written_out,
    ),
    "not picked": Convention(
        "transformers multiplies with every token or entry and masks those that the indexer did not pick. This "
        "site counts the picked ones.",
        not_picked,
    ),
    "last row": Convention(
        "transformers’ code of Gemma 4 takes only the last token of a prompt through the layers that read another’s "
        "keys and values: they add nothing to the cache. Here all tokens count, as in training.",
        rows_for_keys,
    ),
    "streams": Convention(
        "This site counts the weighted sum of the residual streams that a part reads. In transformers it is "
        "element-wise.",
        streams_read,
    ),
    "entries": Convention(
        "This site counts the averages that make compressed entries and pool keys, the weights of the heads that "
        "pick them, and the match of n-grams. In transformers they are element-wise.",
        entries_averaged,
    ),
    "taps": Convention(
        "This site counts a convolution whose taps depend on the token. In transformers it is element-wise.",
        moving_taps,
    ),
    "pools ahead": Convention(
        "transformers’ code of Qwen4-Exp rates for each token of a prompt the pools that are full by then. This site "
        "counts a product of all queries with all pools, some of which are masked.",
        pools_ahead,
    ),
    "chunk before": Convention(
        "transformers multiplies a new token with cached rows of the previous chunk, and masks them.", masked_in_chunk
    ),
    "every score": Convention(
        "transformers’ encoders score every token of a text, and so do Qwen’s Omni, xLSTM and its models of an encoder "
        "and a decoder. Here the scores of one token count, as elsewhere.",
        every_score,
    ),
    "outside": Convention(
        "transformers’ code of GPT-Neo multiplies a new token with all rows, and masks those outside of the window.",
        outside_of_window,
    ),
    "scores again": Convention(
        "transformers’ code of DiffLlama computes the scores twice, once for each half of the values.", scores_again
    ),
    "looks again": Convention(
        "transformers’ code of IDEFICS and Evolla makes the keys and values of an image or a protein again in each "
        "step. Here they are kept.",
        looks_again,
    ),
    "own keys": Convention(
        "transformers’ code of ProphetNet compares a stream ahead with all of its keys, and masks those of other "
        "places than its own.",
        own_keys,
    ),
    "mapped anew": Convention(
        "transformers maps what an encoder-decoder’s encoder read to the decoder’s width anew in each step.",
        mapped_anew,
    ),
    "overlap": Convention(
        "transformers’ code of LED computes scores in chunks of two windows that overlap by one. This site counts "
        "three windows for each block.",
        chunks_overlap,
    ),
    "blocks of one": Convention(
        "torch adds up by element-wise work what a block of one token gives to others in BigBird, and does not count "
        "it.",
        blocks_of_one,
    ),
    "filled up": Convention(
        "transformers’ code of PEGASUS-X multiplies the zeros, too, with which it fills up blocks that it moves.",
        rows_filled_up,
    ),
    "block sums": Convention(
        "transformers’ code of LongT5 adds up the vectors of a block by a product with zeros and ones.",
        sums_by_products,
    ),
    "patches": Convention(
        "transformers’ code of BLT takes the unfinished patch through the global transformer, too. It multiplies each "
        "patch with all bytes and each byte with all patches, and masks others than its own.",
        patches_of_all,
    ),
    "byte alone": Convention(
        "transformers’ code of BLT keeps nothing of patches and of the patcher: in a step, both read the new byte as a "
        "text of one byte.",
        byte_alone,
    ),
    "pooler": Convention(
        "transformers’ code of SqueezeBERT, BigBird, LayoutLM and LUKE makes a vector of the whole text, too, which "
        "the scores do not need.",
        pooled,
    ),
    "recurrence": Convention(
        "This site counts a recurrence token by token, with the writes into the state. transformers writes by "
        "element-wise work, which torch does not count, or takes a prompt in chunks: products of all pairs in a "
        "chunk, padding included.",
        recurrence,
    ),
}
CACHE = {
    "newest row": Convention(
        "transformers keeps W − 1 rows of a window or chunk of W, without the newest that the next step brings. Here "
        "the rows that a step needs count.",
        window,
    ),
    "twice": Convention(
        "transformers’ code of DeepSeek V4 keeps the one vector of a token twice, as key and as value, in layers "
        "with only a sliding window.",
        kept_twice,
    ),
    "whole text": Convention(
        "transformers’ code of GPT-Neo and MiniMax keeps every row, even in layers with a sliding window.",
        whole_text,
    ),
    "local rows": Convention(
        "transformers’ code of BLT keeps every row of its two local stacks, and nothing of patches and of the patcher.",
        local_rows,
    ),
    "pooled anew": Convention(
        "transformers’ code of Qwen4-Exp and GLM-5-Next keeps the indexer’s key of every token, in GLM-5-Next with its "
        "gates and a mark, and averages them again in each step. Here the averages are kept.",
        pooled_anew,
    ),
    "not kept": Convention(
        "transformers’ code of IDEFICS and Evolla keeps no keys and values of an image or a protein.", nothing_of_source
    ),
    "ids": Convention(
        "The last token ids, used to look up n-grams, are integers, and the cache count there does not include them.",
        ids_kept,
    ),
    "repeated": Convention(
        "transformers’ code of Falcon keeps the keys and values of every query head, even where several share them.",
        heads_repeated,
    ),
}

# Of the cache, too: where keys have other values than in the small configs (every_key.py).
CACHE_OF_OTHERS = {
    "nothing follows": Convention(
        "transformers’ code of XLM keeps the keys and values of a model that is not causal, too, which reads a text at "
        "once.",
        of_a_text_at_once,
    ),
}


def differences(conventions: Mapping[str, Convention], ours: Model, new: int, context: int) -> dict[str, int]:
    """By how much theirs is more, by convention; those that say nothing of this model are left out."""
    more = {name: convention.more(ours, new, context) for name, convention in conventions.items()}
    return {name: n for name, n in more.items() if n}
