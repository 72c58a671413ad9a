"""vLLM on one or several devices in one module: the memory of each rank, and the figures that its log prints.

Source in vLLM: `v1/core/kv_cache_utils.py` (`get_kv_cache_configs`, `_report_kv_cache_config`,
`_check_enough_kv_cache_memory`), `platforms/interface.py` (`_align_hybrid_block_size`), `v1/worker/gpu_worker.py`
(`determine_available_memory`), `model_executor/layers/quantization/mxfp4.py` (`create_weights`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..engine.errors import Problem
from . import vllm
from .conditions import Conditions
from .costs import Costs
from .deployments import BY_SOURCE, PROVED, Card, Deployment, Figure, Place, decimal, exactly, version_of, written
from .engine_options import Value, amount, switch, text, whole, words_for
from .formats import PUBLISHED
from .peak import peak
from .serving import GIB, Term, between, estimate, exact, has_cuda, padded, steps_of
from .splits import Split
from .vllm_options import BITS, CACHE_TYPES, OPTIONS, OTHER_DRAFTS, OWN_HEADS, UNCOUNTED, rotary_bytes, stages_of
from .vllm_packed import PackedCache, layout_of

NAME = "vLLM"
VERSION = ".".join([str(n) for n in vllm.VERSION])
SOURCE = "https://github.com/vllm-project/vllm/"
CODE = f"{SOURCE}blob/main/vllm/"
# `non_torch_memory` and `Graph capturing finished … took`, in hundredths of a GiB, as several logs have them.
OUTSIDE = 15 * GIB // 100, 39 * GIB // 100
GRAPHS = 11 * GIB // 100, 162 * GIB // 100
ITEM_BYTES = 2


@dataclass(frozen=True)
class Asked:
    """The request to vLLM: the split, tokens of a request, the options of the cache, and the pool if it is given."""

    split: Split
    setting: vllm.Setting
    length: int
    share: Fraction
    room: tuple[int, int, int] | None
    blocks: int | None
    is_eager: bool
    version: tuple[int, int]
    draft: str
    has_prefix: bool | None
    cache: str


def asked(costs: Costs, given: Conditions, options: Mapping[str, Value], cards: Sequence[Card], version: str) -> Asked:
    """The options, with vLLM's own defaults for the rest. Raises `Problem`."""
    tensor, pipeline, data = whole(options, "tensor", 0), whole(options, "pipeline", 1), whole(options, "data", 1)
    if not tensor:
        rest = len(cards) // (pipeline * data)
        tensor = rest if cards and rest * pipeline * data == len(cards) else 1
    split = Split(tensor, tensor * data if switch(options, "experts", False) else 1, pipeline, data)
    if cards and len(cards) != split.devices:
        raise Problem(
            f"{split.said} needs {split.devices:,} devices, and there are {len(cards):,}",
            "make --tensor-parallel-size, --pipeline-parallel-size and --data-parallel-size fit",
        )
    _check(costs, split)
    card = min(cards, key=lambda one: one.memory_bytes) if cards else Card("", 0, 0)
    number = version_of(version, VERSION, NAME)
    step, sequences = vllm.defaults(card.memory_bytes, card.name, number)
    if text(options, "performance", "") == "throughput":
        step, sequences = 2 * step, 2 * sequences
    if not switch(options, "no_images", False) and not _is_without_videos(text(options, "limits", "")):
        step = max(step, vllm.step_of_images(costs, number))
    said = text(options, "cache", "auto")
    if said in UNCOUNTED:
        raise Problem(f"no rule is known for vLLM's cache of type {said}", "give fp8, nvfp4 or int8_per_token_head")
    dtype = CACHE_TYPES[said] or given.dtype
    said = text(options, "mode", "")
    prefix = options.get("prefix")
    has_prefix = prefix if isinstance(prefix, bool) else None
    states = 1 if prefix is False or said == "none" else 0 if said == "all" else vllm.STATES
    draft, drafted, draft_layers = _drafted(options)
    setting = vllm.Setting(
        min(whole(options, "step", step), 10**9),
        whole(options, "sequences", sequences),
        dtype,
        states,
        whole(options, "block", 0),
        tensor,
        whole(options, "dcp", 1) * whole(options, "pcp", 1),
        drafted,
        draft_layers,
        BITS[text(options, "ssm", "auto")] or _stated_bits(costs, number),
        not switch(options, "no_windows", False) and number >= vllm.WINDOWS_SINCE,
        number,
        _batches(options, pipeline, number),
        vllm.capability_of(card.name, card.capability),
        text(options, "prefill", "auto"),
    )
    share = options.get("share")
    blocks = options.get("blocks")
    return Asked(
        split,
        setting,
        whole(options, "length", 0) or given.tokens,
        share if isinstance(share, Fraction) else vllm.SHARE if number >= vllm.SHARE_SINCE else vllm.OLD_SHARE,
        amount(options, "room"),
        blocks if isinstance(blocks, int) else None,
        switch(options, "eager", False),
        number,
        draft,
        has_prefix,
        text(options, "cache", ""),
    )


def _batches(options: Mapping[str, Value], stages: int, version: tuple[int, int]) -> int:
    """The steps that are scheduled at once (`max_concurrent_batches` in config/vllm.py)."""
    if version < vllm.IN_FLIGHT_SINCE and not switch(options, "in_flight", False):
        return 1
    has_more = stages == 1 or version >= vllm.SECOND_RUNNER_SINCE
    return stages + 1 if switch(options, "overlap", True) and has_more else stages


def _is_without_videos(limits: str) -> bool:
    """Whether the limits of a request, `{"image": 4, "video": 0}` or `video=0`, exclude videos."""
    plain = "".join([c for c in limits if c not in "\"' {}"]).replace("=", ":")
    return "video:0" in plain.split(",")


def _stated_bits(costs: Costs, version: tuple[int, int]) -> int:
    """Bits of a state according to the config's own key, or to what vLLM does with this type; 0 if neither says."""
    for key in ("mamba_ssm_dtype", "mamba_ssm_cache_dtype"):
        said = costs.counts.raw.get(key)
        if isinstance(said, str) and said in BITS:
            return BITS[said]
    architecture = costs.formats.architecture
    bits, since = (0, (0, 0)) if architecture is None else architecture.vllm.state
    return bits if version >= since else 0


def _check(costs: Costs, split: Split) -> None:
    """Raise `Problem` for degrees by which the model's sizes are not divisible."""
    costs.devices.check_experts(split.expert, split.tensor * split.data)
    if split.tensor not in costs.devices.tensors:
        able = ", ".join(f"{n:,}" for n in costs.devices.tensors)
        raise Problem(
            f"--tensor-parallel-size {split.tensor:,}: the model's sizes do not divide by it", f"give one of {able}"
        )
    if split.pipeline > max(costs.devices.n_layers, 1):
        raise Problem(
            f"--pipeline-parallel-size {split.pipeline:,}: the model has {costs.devices.n_layers:,} layers",
            "give fewer",
        )


def _drafted(options: Mapping[str, Value]) -> tuple[str, int, int]:
    """The draft's method, the tokens that it proposes, and the layers that join those of the model."""
    said = options.get("draft")
    if not isinstance(said, dict):
        return "", 0, 0
    method = str(said.get("method") or ("draft_model" if said.get("model") else "")).lower()
    number = said.get("num_speculative_tokens")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 1000:
        if method not in ("ngram", "suffix"):
            raise Problem(
                "--speculative-config without num_speculative_tokens", 'add it, as in "num_speculative_tokens": 2'
            )
        number = 1
    if method in OWN_HEADS or method.endswith("_mtp"):
        return method, number, 1
    if method == "dflash" and said.get("model"):  # its layers have a cache of their own kind
        return method, number, 0
    if method in OTHER_DRAFTS:
        return method, number, 0
    raise Problem(
        f"--speculative-config: no rule is known for the method {method!r}",
        f"give one of {', '.join(('mtp', 'eagle', 'eagle3', 'draft_model', 'ngram'))}, or dflash with its model",
    )


def deploy(
    costs: Costs,
    given: Conditions,
    options: Mapping[str, Value],
    cards: Sequence[Card],
    version: str = "",
    longest: int = 0,
    draft: Costs | None = None,
) -> Deployment:
    """vLLM with these options on these devices, one rank per device; without devices, the figures that need none.
    `longest` is the model's own longest context, for its rotary table. Raises `Problem`."""
    own = asked(costs, given, options, cards, version)
    cache = _cache_of(costs, own, cards, draft)
    ranks = _ranks(costs, given, own, longest, draft, cards)
    alive = _alive(costs, own) if cards else 0
    places = tuple([_place(costs, own, cache, ranks, cards, i, alive) for i in range(len(cards))])
    room = _room(own, cache, ranks, places)
    return Deployment(
        "vllm",
        f"{own.version[0]}.{own.version[1]}",
        places,
        (_loaded(ranks), *_figures(own, cache, ranks, room)),
        tuple(_command(own, options)),
        tuple(_advice(costs, given, options, cards, version, longest, draft, own, places, alive)),
        tuple(_notes(costs, own, cache, draft)),
        tuple(_more(costs, given, ranks)),
    )


def _cache_of(costs: Costs, own: Asked, cards: Sequence[Card], draft: Costs | None) -> vllm.Cache:
    """The layout of the cache on a rank. Raises `Problem` if no rule is known for it."""
    return layout_of(costs, own.setting, [card.vendor for card in cards], draft, own.cache, own.draft)


@dataclass(frozen=True)
class Rank:
    """What a stage's ranks load: bytes of weights (lower and upper bound), with the rule, and bytes of the rotary
    table."""

    least: int
    most: int
    rule: str
    rotary: int
    layers: tuple[int, int]


def _ranks(
    costs: Costs, given: Conditions, own: Asked, longest: int, draft: Costs | None, cards: Sequence[Card]
) -> list[Rank]:
    """What a rank of each stage loads."""
    kernels = dict.fromkeys([kernel for card in cards for kernel in kernels_of(card.name, card.vendor)])
    rotary = rotary_bytes(costs, longest)
    bounds = stages_of(costs.devices.n_layers, own.split.pipeline)
    weights, by_kernel = weights_by_kernel(
        costs, given, own.split, bounds, list(kernels) if cards else list(MXFP4_KERNELS)
    )
    found: list[Rank] = []
    for stage, layers in enumerate(bounds):
        least, most, rule = _weights_of(weights, by_kernel, stage)
        more = 0
        if draft is not None:
            more = draft.devices.split_weights(Split(tensor=own.split.tensor), given.format)[0]
        found.append(Rank(least + more, most + more, rule, rotary, layers))
    return found


# Padding of hidden and inner widths of experts in mxfp4, after the division over ranks, by kernel.
MXFP4_KERNELS = {
    "Marlin": (256, 128),
    "FlashInfer TRT-LLM": (256, 256),
    "FlashInfer CUTLASS": (128, 128),
    "Triton": (1, 64),
    "ROCm": (256, 128),
}


def kernels_of(name: str, vendor: str) -> tuple[str, ...]:
    """The kernels that a card may choose for experts in mxfp4; all of them for an unknown card."""
    capability = vllm.capability_of(name)
    if vendor == "AMD":
        return ("ROCm",)
    if vendor != "NVIDIA":
        return tuple(MXFP4_KERNELS)
    if capability == 90:
        return ("Marlin", "FlashInfer CUTLASS", "Triton")
    if capability >= 100 or "thor" in name.lower():
        return ("Marlin", "FlashInfer TRT-LLM", "FlashInfer CUTLASS", "Triton")
    return ("Marlin",)


def weights_by_kernel(
    costs: Costs, given: Conditions, split: Split, bounds: Sequence[tuple[int, int]], kernels: Sequence[str]
) -> tuple[list[int], dict[str, list[int]]]:
    """Bytes of a rank's weights by stage as they are stored, and with experts in mxfp4 as each kernel pads them."""
    totals = [0] * len(bounds)
    padded_totals: dict[str, list[int]] = {}
    values = costs.counts.values()
    for w, shape, layers, members in costs.devices.parts_on_rank(split):
        here = [[i for i in layers if low <= i < high] for low, high in bounds]
        is_padded = given.format == PUBLISHED and w.routed is not None and costs.formats.is_in(w, "mxfp4")
        for stage, own in enumerate(here):
            if own:
                size = costs.formats.part_size(w, given.format, shape, tuple(own), members)
                totals[stage] += size
                if not is_padded:
                    continue
                for kernel in kernels:
                    hidden, inner = MXFP4_KERNELS[kernel]
                    longer = list(shape)
                    for at, d in enumerate(w.shape):
                        names = d.expr.symbols
                        if "d_model" in names:
                            longer[at] = padded(shape[at], hidden)
                        elif any(name.startswith("d_ff") for name in names):
                            width = min(values[name] for name in names if name.startswith("d_ff"))
                            times = max(int(d) // width, 1)
                            longer[at] = padded(shape[at] // times, inner) * times
                    more = padded_totals.setdefault(kernel, [0] * len(bounds))
                    more[stage] += costs.formats.part_size(w, given.format, longer, tuple(own), members) - size
    return totals, {kernel: [a + b for a, b in zip(totals, more)] for kernel, more in padded_totals.items()}


def weights_of_kernels(costs: Costs, given: Conditions, name: str, vendor: str) -> Term:
    """The weights on one device: a range if the card's kernel pads them."""
    bounds = [(0, max(costs.devices.n_layers, 1))]
    return _weights_term(_weights_of(*weights_by_kernel(costs, given, Split(), bounds, kernels_of(name, vendor)), 0))


def _weights_of(weights: list[int], by_kernel: dict[str, list[int]], stage: int) -> tuple[int, int, str]:
    """Bytes of a rank's weights on a stage, lower and upper bound, and the rule."""
    if not by_kernel:
        return weights[stage], weights[stage], "every tensor in its format"
    sizes = [sizes[stage] for sizes in by_kernel.values()]
    said = ", ".join(
        [f"{written(Fraction(sizes[stage], GIB), 2)} GiB with {name}" for name, sizes in by_kernel.items()]
    )
    return min(sizes), max(sizes), f"experts in mxfp4 are padded by the kernel that the card chooses: {said}"


def _weights_term(of: tuple[int, int, str]) -> Term:
    least, most, rule = of
    if least == most:
        return exact("weights", "weights", least, rule, "")
    return between("weights", "weights", least, most, rule, CODE + "model_executor/layers/quantization/mxfp4.py")


def _alive(costs: Costs, own: Asked) -> int:
    """Bytes of the arrays that are alive at once in a step; the same on each rank."""
    values = costs.counts.values(T=own.setting.step, S=max(own.setting.step, own.length))
    return peak(steps_of(costs, pairs=False), lambda polynomial: polynomial.at(values))[1] * ITEM_BYTES


def _place(
    costs: Costs,
    own: Asked,
    cache: vllm.Cache,
    ranks: Sequence[Rank],
    cards: Sequence[Card],
    i: int,
    alive: int,
) -> Place:
    """The memory of a rank with these bytes `alive` at once: data-parallel groups one after another, in each the
    stages, in each the ranks of a matrix."""
    card, stage = cards[i], i // own.split.tensor % own.split.pipeline
    rank = ranks[stage]
    setting = own.setting
    step, sequences = setting.step, setting.sequences
    values = costs.counts.values()
    logits = step * values["d_model"] * ITEM_BYTES + sequences * values["vocab_size"] * (ITEM_BYTES + 4)
    blocks = cache.blocks(own.length, setting.in_flight)
    each = _unit(cache, ranks, stage)
    rule = f"{blocks:,} blocks of {each:,} bytes per sequence of {own.length:,} tokens, pages of {cache.block:,} tokens"
    weights = _weights_term((rank.least, rank.most, rank.rule))
    terms = [
        weights,
        exact(
            "rotary",
            "rotary table",
            rank.rotary,
            "sines and cosines of every position, in 16 bits, whole on each rank",
            CODE + "model_executor/layers/rotary_embedding/",
        ),
        exact("cache", "KV cache of one request", blocks * each, rule, CODE + "v1/core/kv_cache_utils.py"),
        estimate(
            "activations",
            f"activation peak at {step:,} tokens per step",
            max(alive, logits),
            f"the larger of the arrays that are alive at once, in 16 bits, and the logits of {sequences:,} sequences",
            CODE + "v1/worker/gpu_worker.py",
        ),
    ]
    if has_cuda(card.vendor):
        terms.append(
            between(
                "outside",
                "memory outside of PyTorch",
                *OUTSIDE,
                "CUDA context and libraries, as three reports print it",
                f"{SOURCE}issues/15340",
            )
        )
        if not own.is_eager:
            terms.append(
                between("graphs", "CUDA graphs", *GRAPHS, "as several reports print it", f"{SOURCE}pull/39559")
            )
    limit = min(math.floor(own.share * card.memory_bytes), card.free_bytes)
    return Place(card.name, tuple(terms), limit)


@dataclass(frozen=True)
class Room:
    """The pool of a rank: bounds of its bytes, and its blocks, the same on all ranks; `middle` are those for the amount
    as given."""

    size: tuple[int, int] | None
    blocks: tuple[int, int]
    middle: tuple[int, int] | None = None


def _room(own: Asked, cache: vllm.Cache, ranks: Sequence[Rank], places: Sequence[Place]) -> Room | None:
    """The pool as given (a log rounds it), or what is left on each device: the smallest number of blocks counts."""
    units = [_unit(cache, ranks, stage) for stage in range(len(ranks))]
    if own.blocks is not None:
        return Room(None, (own.blocks, own.blocks))
    if own.room is not None:
        low, middle, high = own.room
        unit = max(*units, 1)
        return Room((low, high), (low // unit, high // unit), (middle, middle // unit))
    if not places:
        return None
    ends: list[tuple[int, int, int, int]] = []
    for i, place in enumerate(places):
        rest = place.limit or 0
        low = max(rest - sum(t.most for t in place.terms if t.key != "cache"), 0)
        high = max(rest - sum(t.least for t in place.terms if t.key != "cache"), 0)
        unit = max(units[i // own.split.tensor % own.split.pipeline], 1)
        ends.append((low, high, low // unit, high // unit))
    return Room(
        (min(one[0] for one in ends), min(one[1] for one in ends)),
        (min(one[2] for one in ends), min(one[3] for one in ends)),
    )


def _unit(cache: vllm.Cache, ranks: Sequence[Rank], stage: int) -> int:
    """Bytes of a block on a stage; the last stage also has the layers of a draft."""
    if len(ranks) == 1:
        return cache.block_bytes
    first, last = ranks[stage].layers
    return cache.stage_bytes(first, 10**6 if stage == len(ranks) - 1 else last)


def _loaded(ranks: Sequence[Rank]) -> Figure:
    """What a log reports on the weights."""
    rank = max(ranks, key=lambda one: one.most)
    ends = Fraction(rank.least + rank.rotary), Fraction(rank.most + rank.rotary)
    proof = PROVED if rank.least == rank.most else BY_SOURCE
    rule = "weights of a rank and its rotary table; buffers of kernels come on top"
    return Figure("loaded", "Model loading took", *ends, "GiB", 2, rule, proof)


def _more(costs: Costs, given: Conditions, ranks: Sequence[Rank]) -> list[Figure]:
    """Further figures that a log may have: the size of the file, and measured ones, as several reports print them."""
    whole_file = costs.devices.split_weights(Split(), given.format)[0]
    rotary = max(rank.rotary for rank in ranks)
    return [
        exactly("checkpoint", "Checkpoint size", whole_file, "GiB", 2, "all tensors of the text part", BY_SOURCE),
        exactly("rotary", "rotary table", rotary, "bytes", 0, "sines and cosines, in 16 bits", PROVED),
        *[
            Figure(key, what, Fraction(ends[0]), Fraction(ends[1]), "GiB", 2, f"measured: {rule}", PROVED)
            for key, what, ends, rule in (
                ("outside", "memory outside of PyTorch", OUTSIDE, "CUDA context and libraries, as reports print it"),
                ("graphs", "CUDA graphs", GRAPHS, "as several reports print it"),
            )
        ],
    ]


def _figures(own: Asked, cache: vllm.Cache, ranks: Sequence[Rank], room: Room | None) -> list[Figure]:
    """The figures of its log, in order."""
    found = _layout(own, cache)
    if not cache.kinds:  # an encoder keeps nothing
        return found
    length = own.length
    each = cache.blocks(length, own.setting.in_flight)
    unit = max([_unit(cache, ranks, stage) for stage in range(len(ranks))])
    if own.version < (0, 16):
        unit = cache.block_bytes  # each stage had to hold the cache of the whole model
    needed = "KV cache needed for one request of " + f"{length:,} tokens"
    found.append(exactly("needed", needed, each * unit, "GiB", 2, f"{each:,} blocks of {unit:,} bytes", PROVED))
    if len(cache.kinds) == 1 or cache.layers:
        page = max(kind.page for kind in cache.kinds)
        found.append(
            exactly("page", "page of one layer", page, "bytes", 0, f"{cache.block:,} tokens on a rank", PROVED)
        )
    row = sum(kind.number * kind.row_bytes for kind in cache.kinds if not kind.states)
    if isinstance(cache, PackedCache):  # each row covers several tokens
        return found if room is None else [*found, *_room_figures(own, cache, room, unit, each)]
    found.append(
        exactly(
            "row",
            "cache of one token on a rank",
            row,
            "bytes",
            0,
            "keys, values, latents and indexer keys of all layers",
            PROVED,
        )
    )
    return found if room is None else [*found, *_room_figures(own, cache, room, unit, each)]


def _layout(own: Asked, cache: vllm.Cache) -> list[Figure]:
    """What a log reports on the layout: the block of attention next to states, and the layers that fill up groups."""
    found: list[Figure] = []
    recurrent = [kind for kind in cache.kinds if kind.states]
    if recurrent and cache.block > 1:
        proof = PROVED if own.version < vllm.GRAIN_SINCE[1] else BY_SOURCE
        rule = "the smallest multiple of the kernel's block whose page holds a state"
        found.append(exactly("block", "Setting attention block size to", cache.block, "tokens", 0, rule, proof))
        over = Fraction(recurrent[0].page - recurrent[0].state, max(recurrent[0].state, 1)) * 100
        found.append(
            exactly("padding", "Padding mamba page size by", over, "%", 2, "a page less a state, in states", proof)
        )
    for places, layers in cache.padding():
        what = f"Add {places:,} padding layers, may waste at most"
        found.append(
            exactly("layers", what, Fraction(places * 100, layers), "%", 2, "empty places of the last group", PROVED)
        )
    return found


def _room_figures(own: Asked, cache: vllm.Cache, room: Room, unit: int, each: int) -> list[Figure]:
    """What the memory for the cache holds: blocks of `unit` bytes, `each` of them for one request, tokens and
    requests."""
    step, length = own.setting.in_flight, own.length
    found: list[Figure] = []
    low, high = room.blocks
    given = room.middle
    if room.size is not None:
        rule = "as given, to its last digit" if own.room else "the share of the memory less all other terms"
        ends = Fraction(room.size[0]), Fraction(room.size[1])
        if given is not None:
            ends = Fraction(given[0]), Fraction(given[0])
        found.append(Figure("room", "Available KV cache memory", *ends, "GiB", 2, rule, PROVED))
    counts = [low, high] if given is None else [low, high, given[1]]
    is_pure = len(cache.kinds) == 1 and cache.kinds[0].window is None and not cache.kinds[0].states or not cache.layers
    is_pure = is_pure and not isinstance(cache, PackedCache)
    old = [cache.printed_tokens(n) for n in counts]
    new = old if is_pure else [math.floor(cache.concurrency(n, length, step) * length) for n in counts]
    rule = f"of {unit:,} bytes; all ranks take the smallest number"
    found.append(_figure("blocks", "blocks of the cache", counts, "", 0, rule))
    rule = "sequences times their length, as 0.20.2 and later print it"
    tokens = _figure("tokens", "GPU KV cache size", new, "tokens", 0, rule)
    rule = f"blocks ÷ {cache.groups:,} groups × {cache.block:,} tokens"
    older = _figure("old tokens", "GPU KV cache size before 0.20.2", old, "tokens", 0, rule)
    both = [tokens, older] if own.version >= vllm.DIGITS_SINCE else [older, tokens]
    found += [tokens] if new == old or isinstance(cache, PackedCache) else both
    ratios = [cache.concurrency(n, length, step) for n in counts]
    what = f"Maximum concurrency for {length:,} tokens per request"
    found.append(_figure("concurrency", what, ratios, "x", 2, f"blocks ÷ {each:,} blocks of a request"))
    most = max(length, 2**20)
    longest = [cache.longest(n * cache.block_bytes, step, most) for n in counts]
    rule = "the longest request that the pool holds"
    found.append(_figure("longest", "estimated maximum model length", longest, "tokens", 0, rule))
    return found


def _figure(key: str, what: str, ends: Sequence[int | Fraction], unit: str, digits: int, rule: str) -> Figure:
    """A figure at both bounds of the pool, and for the amount as given."""
    middle = Fraction(ends[2]) if len(ends) > 2 else None
    return Figure(key, what, Fraction(ends[0]), Fraction(ends[1]), unit, digits, rule, PROVED, "", middle)


def _command(own: Asked, options: Mapping[str, Value]) -> list[str]:
    """The options of `vllm serve` for this deployment."""
    split, setting = own.split, own.setting
    said = text(options, "cache", "")
    chosen: dict[str, Value] = {
        **options,
        "length": own.length,
        "share": own.share,
        "step": setting.step,
        "sequences": setting.sequences,
        "cache": said or ("fp8" if setting.dtype == "fp8" else "auto"),
    }
    if split.tensor > 1:
        chosen["tensor"] = split.tensor
    return words_for(OPTIONS, chosen)


def _advice(
    costs: Costs,
    given: Conditions,
    options: Mapping[str, Value],
    cards: Sequence[Card],
    version: str,
    longest: int,
    draft: Costs | None,
    own: Asked,
    places: Sequence[Place],
    alive: int,
) -> list[str]:
    """The changes that would each, on their own, guarantee that one request fits."""
    if not cards or not costs.counts.kept:
        return []
    cache = _cache_of(costs, own, cards, draft)
    room = _room(own, cache, _ranks(costs, given, own, longest, draft, cards), places)
    found = [] if room is None else [_advised_length(own, cache, room, longest)]
    fullest = max(places, key=lambda place: place.most - (place.limit or 0))
    if fullest.most <= (fullest.limit or 0):
        return found
    card = cards[list(places).index(fullest)]
    if fullest.most <= card.free_bytes * 98 // 100:
        share = math.ceil(Fraction(fullest.most, card.memory_bytes) * 100)
        found.append(f"--gpu-memory-utilization {decimal(Fraction(share, 100))} is enough.")
    tries = [
        ("--kv-cache-dtype fp8", {"cache": "fp8"}, own.setting.dtype not in ("fp8", "nvfp4", "fp8_ds_mla")),
        ("--enforce-eager (no CUDA graphs)", {"eager": True}, not own.is_eager),
        ("--max-num-seqs 16", {"sequences": 16}, own.setting.sequences > 16),
        ("--max-num-batched-tokens 2048", {"step": 2048}, own.setting.step > 2048),
    ]
    for said, change, is_new in tries:
        if is_new:
            other = asked(costs, given, {**options, **change}, cards, version)
            layout = _cache_of(costs, other, cards, draft)
            ranks = _ranks(costs, given, other, longest, draft, cards)
            same = other.setting.step == own.setting.step
            most = alive if same else _alive(costs, other)
            tried = [_place(costs, other, layout, ranks, cards, i, most) for i in range(len(cards))]
            if all(place.most <= (place.limit or 0) for place in tried):
                found.append(f"{said} is enough.")
    graphs = [t for t in fullest.terms if t.key == "graphs"]
    if graphs:
        found.append(f"Up to {written(Fraction(graphs[0].most, GIB), 2)} GiB of it are CUDA graphs.")
    return found


def _advised_length(own: Asked, cache: vllm.Cache, room: Room, longest: int) -> str:
    """The longest request that is certain to fit; `longest` is the model's, 0 if it is not known."""
    certain = cache.longest(room.blocks[0] * cache.block_bytes, own.setting.in_flight, max(own.length, 2**20))
    if certain >= own.length:
        return f"--max-model-len may be up to {min(certain, max(longest, own.length) or certain):,}."
    return (
        f"--max-model-len {certain}: the longest that is certain to fit." if certain else "No length is certain to fit."
    )


def _needs_device(costs: Costs, own: Asked) -> bool:
    """Whether the kernel that decides on the states depends on the device, and the device is not known."""
    named = replace(own.setting, capability=90)
    return vllm.checkpoint_grain(costs, named) != vllm.checkpoint_grain(costs, own.setting)


def _notes(costs: Costs, own: Asked, cache: vllm.Cache, draft: Costs | None) -> list[str]:
    """The notes below the figures."""
    found: list[str] = []
    if isinstance(cache, PackedCache):
        found.append(
            "Latents are kept in fp8_ds_mla, 584 bytes each, whatever --kv-cache-dtype says; pages of several sizes "
            "lie side by side in a block."
        )
    if any(kind.states for kind in cache.kinds) and own.has_prefix is None:
        kept = max(kind.states for kind in cache.kinds) - own.setting.drafted
        found.append(
            f"With prefix caching, a recurrent layer keeps {'two' if kept == 2 else 'three'} states per sequence; "
            "without it (--no-enable-prefix-caching), one."
        )
    if not own.setting.capability and own.setting.prefill == "auto" and _needs_device(costs, own):
        found.append(
            "On Hopper and Blackwell a kernel for prompts keeps one more state per sequence, in longer blocks: name "
            "the device."
        )
    if own.setting.contexts > 1 or own.split.expert > 1:
        found.append("Context and expert parallelism are by vLLM’s source: no log was at hand that proves them.")
    layers = own.setting.draft_layers if draft is None else draft.devices.n_layers
    if own.draft:
        found.append(
            f"The draft ({own.draft}) adds {layers:,} to the layers of attention and "
            f"{own.setting.drafted:,} rows to each convolution."
        )
    return found
