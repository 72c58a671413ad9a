"""SGLang on one or several devices in one module: its options, its pools of tokens and of recurrent states, and the
figures of its log.

Source in SGLang 0.5.23: `srt/model_executor/pool_configurator.py` (`DefaultPoolConfigurator`,
`HybridSWAPoolConfigurator`), `srt/mem_cache/memory_pool.py` (`MHATokenToKVPool`, `MLATokenToKVPool`, `MambaPool`),
`srt/mem_cache/kv_cache_configurator.py` (`_profile_available_bytes`), and of the share that it takes by default
`srt/arg_groups/memory_hook.py` (`handle_gpu_memory_settings`, `reserve_for_graph_mb`). Its log writes GB for GiB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ..engine.bounds import MOST_TOKENS
from ..engine.errors import Problem
from ..engine.steps import Holds
from . import vllm
from .conditions import Conditions
from .costs import Costs
from .deployments import BY_SOURCE, PROVED, Card, Deployment, Figure, Place, decimal, exactly, version_of
from .engine_options import (
    BYTES,
    SHARE,
    SWITCH,
    TEXT,
    TOKENS,
    WHOLE,
    Option,
    Value,
    amount,
    switch,
    text,
    whole,
    words_for,
)
from .parameters import INDEX
from .serving import MIB, Term, between, exact, has_cuda, row_of, window_of
from .splits import Split
from .vllm_options import rotary_bytes, stages_of

NAME = "SGLang"
VERSION = "0.5.23"
CODE = "https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/"
RATIO_OF_WINDOWS = Fraction(8, 10)  # --swa-full-tokens-ratio
RATIO_OF_STATES = Fraction(9, 10)  # --mamba-full-memory-ratio
# For device memory below this many MiB: tokens of a step of a prompt, and requests of the largest graph on fewer than 4
# ranks and on more (`handle_gpu_memory_settings`).
SIZES = (
    (20 * 1024, 2048, 8, 8),
    (35 * 1024, 4096, 48, 160),
    (60 * 1024, 4096, 32, 160),
    (160 * 1024, 8192, 256, 512),
)
LARGEST = 16384, 512, 512
# The graphs of prompts: first, last and step of their tokens (`generate_prefill_cuda_graph_batch_sizes`).
CAPTURED = ((4, 32, 4), (48, 256, 16), (288, 512, 32), (576, 1024, 64), (1280, 4096, 256))
CACHE_TYPES = {
    "auto": 0,
    "bf16": 2,
    "bfloat16": 2,
    "fp8_e5m2": 1,
    "fp8_e4m3": 1,
}
# Among the options: layers and width of the model's image tower, as its config states them.
TOWER, USUAL_LAYERS, USUAL_WIDTH = "tower", 24, 1024
IS_TRIED = "tried"  # among options: a change is being tried
STATE_TYPES = {"float32": 4, "bfloat16": 2, "float16": 2}
EAGLES = ("eagle", "eagle3", "nextn", "standalone", "none", "ngram", "dflash")
INDEX_SCALE = 4  # bytes of a scale, one for 128 elements
# Compute capability from which a model with an indexer has an fp8 cache by default, and a kernel that takes no scales
# (`_dsa_kv_cache_dtype_default`, `_dsa_split_backend_resolution` in arg_groups/overrides.py).
BLACKWELL = 100

OPTIONS = (
    Option("tensor", ("--tp-size", "--tp", "--tensor-parallel-size"), WHOLE, "ranks that share each matrix"),
    Option("pipeline", ("--pp-size", "--pipeline-parallel-size"), WHOLE, "stages of layers"),
    Option("data", ("--dp-size", "--dp", "--data-parallel-size"), WHOLE, "replicas, or groups of attention"),
    Option("expert", ("--ep-size", "--ep", "--expert-parallel-size"), WHOLE, "ranks that divide the routed experts"),
    Option("apart", ("--enable-dp-attention",), SWITCH, "each group has attention and a cache of its own"),
    Option("share", ("--mem-fraction-static",), SHARE, "the part of the free memory for weights and pools"),
    Option("tokens", ("--max-total-tokens",), TOKENS, "tokens of the pool"),
    # not an option of its own: the tokens follow from it
    Option("room", ("--available-memory",), BYTES, "memory of each rank's pools; not an option of its own"),
    Option("length", ("--context-length",), TOKENS, "tokens of a request"),
    Option("running", ("--max-running-requests",), WHOLE, "requests at once"),
    Option("chunk", ("--chunked-prefill-size",), TOKENS, "tokens of a step of a prompt"),
    Option("graphs", ("--cuda-graph-max-bs-decode", "--cuda-graph-max-bs"), WHOLE, "requests of the largest graph"),
    Option("no_graphs", ("--disable-cuda-graph",), SWITCH, "no CUDA graphs"),
    Option("cache", ("--kv-cache-dtype",), TEXT, "type of the cache", choices=tuple(CACHE_TYPES)),
    Option("page", ("--page-size",), WHOLE, "tokens of a page; 1"),
    Option("windows", ("--swa-full-tokens-ratio",), SHARE, "tokens of windows by tokens of full layers; 0.8"),
    Option("no_radix", ("--disable-radix-cache",), SWITCH, "no prefix caching"),
    Option("states", ("--mamba-full-memory-ratio",), SHARE, "states by cache; 0.9"),
    Option("slots", ("--max-mamba-cache-size",), WHOLE, "slots of recurrent states"),
    Option("ssm", ("--mamba-ssm-dtype",), TEXT, "type of a recurrent state", choices=tuple(STATE_TYPES)),
    Option("draft", ("--speculative-algorithm",), TEXT, "kind of the draft", choices=EAGLES),
    Option("drafted", ("--speculative-num-draft-tokens",), WHOLE, "tokens that the draft proposes"),
    Option(
        "draft_model", ("--speculative-draft-model-path", "--speculative-draft-model"), TEXT, "the draft, for DFlash"
    ),
    Option("images", ("--enable-multimodal",), SWITCH, "images, for a model whose tower is left out otherwise"),
    Option("no_images", ("--language-model-only", "--language-only"), SWITCH, "no images: the share is larger"),
    # not an option of its own: read from the draft's config
    Option("draft_layers", ("--speculative-draft-layers",), WHOLE, "layers of the draft; 1"),
)
IGNORED = tuple(
    """
    --model-path= --model= --host= --port= --trust-remote-code --served-model-name= --dtype= --quantization=
    --api-key= --log-level= --attention-backend= --reasoning-parser= --tool-call-parser=
    --speculative-num-steps= --speculative-eagle-topk=
    --random-seed= --nnodes= --node-rank= --dist-init-addr= --enable-metrics --chat-template= --schedule-policy=
    --mamba-scheduler-strategy= --moe-a2a-backend= --moe-runner-backend= --enable-torch-compile --is-embedding
    --device= --download-dir= --stream-interval=
    """.split()
)


@dataclass(frozen=True)
class Pools:
    """Bytes per token in a rank's pools: of K (or of latents and rotary keys together) and of V, in layers with all
    tokens and in layers with a window, and of an indexer's keys; and the bytes of one slot of states, in all layers."""

    full_keys: int
    full_values: int
    window_keys: int
    window_values: int
    index: int
    window: int
    state: int
    convolution: int
    column: int
    has_latents: bool
    width: int

    @property
    def full(self) -> int:
        """Bytes of a token in the layers that keep all tokens."""
        return self.full_keys + self.full_values + self.index

    @property
    def windowed(self) -> int:
        """Bytes of a token in the layers with a window."""
        return self.window_keys + self.window_values

    @property
    def slot(self) -> int:
        """Bytes of a slot of states."""
        return self.state + self.convolution


def pools_of(
    costs: Costs,
    tensor: int,
    item: int,
    state_item: int,
    stage: tuple[int, int] = (0, 10**6),
    has_scales: bool = False,
) -> Pools:
    """The pools of a rank, one of `tensor` ranks of attention, for the layers of a stage. A layer that reads another
    one's rows still has room for its own. With `has_scales`, latents in 8 bits have the layout of FlashMLA: a 32-bit
    scale for every 128 elements, and the rotated part in 16 bits (`calculate_mla_kv_cache_dim`). Raises `Problem` if no
    rule is known for the cache."""
    kept = costs.counts.kept
    if costs.counts.waiting or any(k.tokens != 1 for k in kept) or costs.compute.reads_source:
        raise Problem("no rule is known for SGLang's pools of this model's cache", "leave out the engine")
    sizes = vllm.elements_on_rank(costs, tensor)
    this = costs.formats.architecture
    has_pools = this is not None and this.windows_in_sglang
    keys, values = [0, 0], [0, 0]
    index = state = convolution = column = window = width = 0
    windows = {(k.holds, sizes[i]): window_of(costs, k) for i, k in enumerate(kept) if not k.is_shared}
    for i, k in enumerate(kept):
        if k.is_shared and (k.row is None or k.holds is INDEX):
            continue
        layers, size = len([i for i in k.layers if stage[0] <= i < stage[1]]), sizes[i]
        if k.row is None:
            if k.holds is Holds.CONVOLUTION:
                one = size // int(k.shape[0])
                width = max(width, int(k.shape[0]))
                convolution += (size - one) * layers * 2
                column += one * layers * 2
            else:
                state += size * layers * state_item
            continue
        if k.holds is INDEX:
            index += (row_of(k) + -(-row_of(k) // 128) * INDEX_SCALE) * layers
            continue
        own = None
        if has_pools:
            own = windows.get((k.holds, size)) if k.is_shared else window_of(costs, k)
        at = 0 if own is None else 1
        window = max(window, own or 0)
        each = size * item
        if has_scales and k.holds is Holds.LATENT:
            each = size + size // 128 * INDEX_SCALE
        elif has_scales and k.holds is Holds.ROPE_KEY:
            each = size * 2
        (values if k.holds is Holds.VALUES else keys)[at] += each * layers
    if not kept:  # an encoder: each layer has a cache anyway
        sizes_of = costs.counts.values()
        of_heads = sizes_of.get("n_kv_heads") or sizes_of.get("n_heads")
        if of_heads and "d_head" in sizes_of:
            heads = max(of_heads // tensor, 1)
            number = min(stage[1], costs.devices.n_layers) - stage[0]
            keys[0] = values[0] = heads * sizes_of["d_head"] * item * number
    has_latents = any(k.holds is Holds.LATENT for k in kept)
    if not keys[0] and not values[0]:  # every layer has a window: there is one pool
        keys, values, window = [keys[1], 0], [values[1], 0], 0
    return Pools(keys[0], values[0], keys[1], values[1], index, window, state, convolution, column, has_latents, width)


@dataclass(frozen=True)
class Filled:
    """How far pools are filled: tokens of the layers that keep all, tokens of windows, slots of states, and concurrent
    requests."""

    tokens: int
    windows: int
    slots: int


def deploy(
    costs: Costs,
    given: Conditions,
    options: Mapping[str, Value],
    cards: Sequence[Card],
    version: str = "",
    longest: int = 0,
    draft: Costs | None = None,
) -> Deployment:
    """SGLang with these options on these devices. Raises `Problem`."""
    version_of(version, VERSION, NAME)
    tensor, split = _split(costs, options, cards)
    layers = costs.devices.n_layers // split.pipeline
    has_index = any(k.holds is INDEX for k in costs.counts.kept)
    is_new = bool(cards) and all((card.capability or 0) >= BLACKWELL for card in cards)
    item = CACHE_TYPES[text(options, "cache", "auto")] or (1 if given.dtype == "fp8" or has_index and is_new else 2)
    has_scales = has_index and item == 1 and not is_new and all(has_cuda(card.vendor) for card in cards)
    said = costs.counts.raw.get("mamba_ssm_dtype")
    state_type = text(options, "ssm", said if isinstance(said, str) and said in STATE_TYPES else "float32")
    stages = stages_of(costs.devices.n_layers, split.pipeline)
    pools = max(
        [pools_of(costs, split.tensor, item, STATE_TYPES[state_type], stage, has_scales) for stage in stages],
        key=lambda one: one.full + one.windowed + one.slot,
    )
    weights = max(costs.devices.split_weights(split, given.format))
    rotary = rotary_bytes(costs, longest)
    drafts, drafted = _drafts(options)
    beside = of_weights = 0
    if draft is not None and "draft" in options:
        beside = _cell_of_draft(draft, split.tensor, item)
        of_weights = draft.devices.split_weights(Split(tensor=split.tensor), given.format)[0]
    length = whole(options, "length", 0) or given.tokens
    room = amount(options, "room")
    ends: list[Mapping[str, Value]] = [options, options]
    if room is not None:
        ends = [_in_room(pools, options, given, size, drafts, drafted, layers, beside) for size in (room[0], room[2])]
        options = ends[0]

    def holds(change: dict[str, Value]) -> bool:
        """Whether a request is certain to fit with another option."""
        if all(options.get(key) == value for key, value in change.items()) or IS_TRIED in options:
            return False
        tried = {**options, **change, IS_TRIED: True}
        return deploy(costs, given, tried, cards, version, longest, draft).request[0]

    share = options.get("share")
    shares = (
        (share, share) if isinstance(share, Fraction) else _shares(costs, options, cards, pools, tensor, split, longest)
    )
    loaded = weights + rotary + of_weights
    rests = [_rest(cards, loaded, fraction) for fraction in shares]
    low, high = [
        _filled(pools, end, given, rest, drafts, drafted, layers, bool(cards), beside) for end, rest in zip(ends, rests)
    ]
    sure = min(low.tokens, high.tokens)  # one more slot of states takes the memory of tokens
    page = whole(options, "page", 1)
    of_draft = beside or int(_cell(pools, _ratio_of_windows(pools, options), 0, layers) * drafts / max(layers, 1))
    places = tuple(
        [_place(card, weights, rotary, pools, page, low, high, (of_weights, of_draft), drafted) for card in cards]
    )
    chosen: dict[str, Value] = {**options, "length": length}
    if tensor > 1:
        chosen["tensor"] = tensor
    if "cache" not in options and given.dtype == "fp8":
        chosen["cache"] = "fp8_e4m3"
    return Deployment(
        "sglang",
        version or VERSION,
        places,
        tuple(_figures(pools, page, low, high, weights + rotary, drafts, drafted, layers, length, beside)),
        tuple(words_for([one for one in OPTIONS if one.key != "draft_layers"], chosen)),
        tuple(_advice(pools, cards, sure, longest, length, holds)),
        tuple(
            _notes(
                pools,
                shares if cards and not isinstance(share, Fraction) else None,
                tower_share(costs, options),
                text(options, "draft", "") == "dflash" and not beside,
            )
        ),
        request=(sure >= length, max(low.tokens, high.tokens) >= length) if cards and pools.full else (True, True),
    )


def _in_room(
    pools: Pools,
    options: Mapping[str, Value],
    given: Conditions,
    room: int,
    drafts: int,
    drafted: int,
    layers: int,
    beside: int,
) -> dict[str, Value]:
    """The options with tokens and slots of states, as many as this many bytes hold, in place of the bytes, which SGLang
    does not accept. Raises `Problem` if they hold none."""
    held = _filled(pools, options, given, room, drafts, drafted, layers, True, beside)
    states = (held.slots + 1) * pools.slot * (1 + drafted)
    cell = _cell(pools, _ratio_of_windows(pools, options), drafts, layers) + beside
    if not held.tokens or cell * held.tokens + states > room or (pools.slot and not held.slots):
        raise Problem(f"--available-memory: {room:,} bytes hold no token", "give more")
    found: dict[str, Value] = {key: value for key, value in options.items() if key != "room"}
    found["tokens"] = held.tokens
    return {**found, "slots": held.slots} if pools.slot else found


def tower_share(costs: Costs, options: Mapping[str, Value]) -> Fraction | None:
    """The part of the share that a model that takes images keeps, given the size of its tower; 1 for one that takes
    none, None if the tower is not known (`adjust_mem_fraction_for_vlm` in arg_groups/memory_hook.py)."""
    this = costs.formats.architecture
    is_off = this is not None and not this.images_in_sglang and not switch(options, "images", False)
    if is_off or switch(options, "no_images", False):
        return Fraction(1)
    sizes = options.get(TOWER)
    if not isinstance(sizes, list):
        return None
    if not sizes:
        return Fraction(1)
    ratio = Fraction(sizes[0] * sizes[1] ** 2, USUAL_LAYERS * USUAL_WIDTH**2)
    factor = max(Fraction(8, 10), min(Fraction(105, 100), 1 - (ratio - 1) / 10))
    return Fraction(95, 100) * factor


def _shares(
    costs: Costs,
    options: Mapping[str, Value],
    cards: Sequence[Card],
    pools: Pools,
    tensor: int,
    split: Split,
    longest: int,
) -> tuple[Fraction, Fraction]:
    """--mem-fraction-static if no option gives it: what the largest step and its graphs leave, to three decimals. It is
    lowest with the graphs of prompts, which CUDA has, but not for every model, and on AMD with aiter's attention, for
    which `attention_hook.py` keeps 0.85 of it if the context is longer than 8,192 tokens."""
    if not cards:
        return Fraction(0), Fraction(0)
    memory = Fraction(min([card.memory_bytes for card in cards]), MIB)
    step, few, many = next(([step, few, many] for below, step, few, many in SIZES if memory < below), LARGEST)
    step = whole(options, "chunk", step)
    graphs = whole(options, "graphs", 0)
    if not graphs:
        graphs = min(few if tensor < 4 else many, whole(options, "running", MOST_TOKENS))
    has_graphs = not switch(options, "no_graphs", False)
    reserved = 512 + Fraction(3, 2) * max(step, 2048) + Fraction(1024 * tensor * split.pipeline, 8)
    if has_graphs:
        reserved += 2 * graphs
    if split.data > 1:
        reserved += graphs * split.data * (3 if graphs <= 300 else Fraction(9, 2))
    has_prompts = has_graphs and split.pipeline == 1 and all(has_cuda(card.vendor) for card in cards)
    ends = [reserved, reserved]
    if has_prompts:
        most = min(step, whole(options, "tokens", step))
        captured = [max((min(last, most) - first) // by + 1, 0) for first, last, by in (*CAPTURED, (4608, most, 512))]
        ends[0] += 1536 if pools.has_latents else 8 * sum(captured)
    if memory > 60 * 1024:
        ends = [max(one, Fraction(10 * 1024)) for one in ends]
    low, high = [max(Fraction(int((memory - one) / memory * 1000 + Fraction(1, 2)), 1000), Fraction(0)) for one in ends]
    if whole(options, "length", longest) > 8192 and any(card.vendor == "AMD" for card in cards):
        low *= Fraction(85, 100)
    part = tower_share(costs, options)
    return (low, high) if part is None else (low * part, high * part)


def _rest(cards: Sequence[Card], loaded: int, share: Fraction) -> int:
    """The bytes for pools on the fullest device: its share minus what is loaded (`_profile_available_bytes`)."""
    return min([card.free_bytes - loaded - int(card.free_bytes * (1 - share)) for card in cards], default=0)


def _split(costs: Costs, options: Mapping[str, Value], cards: Sequence[Card]) -> tuple[int, Split]:
    """The ranks of --tp-size, and how the model is split over all of them. Raises `Problem`."""
    pipeline, data = whole(options, "pipeline", 1), whole(options, "data", 1)
    apart = switch(options, "apart", False)
    tensor = whole(options, "tensor", 0) or max(len(cards) // (pipeline * (1 if apart else data)), 1)
    if apart and tensor % data:
        raise Problem(f"--dp-size {data:,}: does not divide --tp-size {tensor:,}", "make them fit")
    attention = tensor // data if apart else tensor
    replicas = 1 if apart else data
    if cards and len(cards) != tensor * pipeline * replicas:
        raise Problem(
            f"--tp-size {tensor:,} with --pp-size {pipeline:,} and --dp-size {data:,} needs "
            f"{tensor * pipeline * replicas:,} devices, and there are {len(cards):,}",
            "make them fit",
        )
    if attention not in costs.devices.tensors:
        able = ", ".join(f"{n:,}" for n in costs.devices.tensors)
        raise Problem(f"{attention:,} ranks of attention: the model's sizes do not divide by it", f"give one of {able}")
    layers = costs.devices.n_layers
    if pipeline > 1 and layers % pipeline:
        raise Problem(f"--pp-size {pipeline:,} does not divide the {layers:,} layers", "give a divisor")
    expert = whole(options, "expert", 1)
    costs.devices.check_experts(expert, tensor)
    return tensor, Split(attention, expert, pipeline, data if apart else 1)


def _drafts(options: Mapping[str, Value]) -> tuple[int, int]:
    """Layers that a draft adds, and tokens that it proposes."""
    method = text(options, "draft", "")
    if not method or method == "none":
        return 0, 0
    drafted = whole(options, "drafted", 4)
    layers = whole(options, "draft_layers", 1) if method in ("eagle", "eagle3", "nextn", "standalone") else 0
    return layers, drafted


def _cell_of_draft(draft: Costs, tensor: int, item: int) -> int:
    """Bytes of a token of a draft's own pool on a rank, in all of its layers (`dflash_draft_cell_size_per_token` in
    `srt/speculative/dflash_utils.py`)."""
    sizes = vllm.elements_on_rank(draft, tensor)
    kept = draft.counts.kept
    return sum(sizes[i] * item * len(k.layers) for i, k in enumerate(kept) if k.row is not None and not k.is_shared)


def _cell(pools: Pools, ratio: Fraction, drafts: int, layers: int) -> Fraction:
    """Bytes of a token in the pools: with windows, their share is included; with a draft, its layers count like the
    target's."""
    cell = Fraction(pools.full) + ratio * pools.windowed
    return cell + int(cell * drafts / layers) if drafts else cell


def _filled(
    pools: Pools,
    options: Mapping[str, Value],
    given: Conditions,
    rest: int,
    drafts: int,
    drafted: int,
    layers: int,
    is_known: bool,
    beside: int,
) -> Filled:
    """Tokens and slots: as given, or as many as the remaining memory holds, states first."""
    slots = whole(options, "slots", 0)
    running = whole(options, "running", 0)
    if pools.slot and not slots:
        if switch(options, "no_radix", False) and running:
            slots = running
        elif is_known:
            ratio = _ratio(options, "states", RATIO_OF_STATES)
            budget = int(rest * ratio / (1 + ratio))
            slots = max((budget - pools.slot * (1 + drafted)) // (pools.slot * (1 + drafted)), 0)
    ratio = _ratio_of_windows(pools, options)
    page = whole(options, "page", 1)
    tokens = whole(options, "tokens", 0)
    if is_known:
        left = rest - (slots + 1) * pools.slot * (1 + drafted) if pools.slot else rest
        cell = _cell(pools, ratio, drafts, layers) + beside
        held = int(max(left, 0) / cell) if cell else 0
        tokens = min(tokens, held) if tokens else held
    tokens = (tokens if is_known else tokens or given.tokens) // page * page
    return Filled(tokens, int(tokens * ratio) // page * page, slots)


def _ratio_of_windows(pools: Pools, options: Mapping[str, Value]) -> Fraction:
    """The ratio of window tokens to tokens of the layers that keep all; 0 without windows."""
    return _ratio(options, "windows", RATIO_OF_WINDOWS) if pools.windowed else Fraction(0)


def _ratio(options: Mapping[str, Value], key: str, otherwise: Fraction) -> Fraction:
    said = options.get(key)
    return said if isinstance(said, Fraction) else otherwise


def _place(
    card: Card,
    weights: int,
    rotary: int,
    pools: Pools,
    page: int,
    low: Filled,
    high: Filled,
    of_draft: tuple[int, int],
    drafted: int,
) -> Place:
    """The memory of a rank."""
    ends = [(one.tokens + page) * pools.full + (one.windows + page) * pools.windowed for one in (low, high)]
    least, most = min(ends), max(ends)
    terms: list[Term] = [
        exact(
            "weights",
            "weights",
            weights,
            "every tensor in its format, on a rank",
            f"{CODE}model_executor/model_runner.py",
        ),
        exact(
            "rotary",
            "rotary table",
            rotary,
            "sines and cosines of every position, in 16 bits",
            f"{CODE}layers/rotary_embedding.py",
        ),
    ]
    rule = f"{max(low.tokens, high.tokens):,} tokens and one page more"
    source = f"{CODE}mem_cache/memory_pool.py"
    terms.append(
        exact("cache", "pool of tokens", most, rule, source)
        if least == most
        else between("cache", "pool of tokens", least, most, rule, source)
    )
    if of_draft[0]:
        terms.append(exact("draft weights", "weights of the draft", of_draft[0], "every tensor in its format", ""))
    if of_draft[1]:
        ends = [(one.tokens + page) * of_draft[1] for one in (low, high)]
        least, most = min(ends), max(ends)
        rule = f"as many tokens, {of_draft[1]:,} bytes each"
        terms.append(
            exact("draft", "pool of the draft", most, rule, source)
            if least == most
            else between("draft", "pool of the draft", least, most, rule, source)
        )
    if pools.slot:
        few, many = [(one.slots + 1) * pools.slot * (1 + drafted) for one in (low, high)]
        rule = f"{high.slots:,} slots and one more" + (
            f", each with {drafted:,} intermediate states" if drafted else ""
        )
        terms.append(
            exact("state", "pool of states", many, rule, source)
            if few == many
            else between("state", "pool of states", few, many, rule, source)
        )
    return Place(card.name, tuple(terms), card.free_bytes)


def _figures(
    pools: Pools,
    page: int,
    low: Filled,
    high: Filled,
    loaded: int,
    drafts: int,
    drafted: int,
    layers: int,
    length: int,
    beside: int,
) -> list[Figure]:
    """The figures of its log, in order."""
    rule = "weights of a rank and its rotary table"
    found = [exactly("loaded", "Load weight end, mem usage", loaded, "GB", 2, rule, BY_SOURCE)]
    if pools.slot:
        found += _slots(pools, (low.slots, high.slots), drafted)
    tokens = low.tokens, high.tokens
    if pools.full:
        found += _pool("", pools.full_keys, pools.full_values, pools.index, tokens, page, pools.has_latents)
    if pools.windowed:
        windows = low.windows, high.windows
        found += _pool(" of windows", pools.window_keys, pools.window_values, 0, windows, page, False)
        sizes = [(n + page) * pools.full + (few + page) * pools.windowed for n, few in zip(tokens, windows)]
        found.append(_ends("pools", "SWAKVPool mem usage", sizes, "GB", 2, "K and V of both pools", PROVED))
    if drafts:
        each = (pools.full_keys + pools.index) * drafts // max(layers, 1)
        sizes = [(n + page) * each for n in tokens]
        found.append(_ends("draft", "draft K size", sizes, "GB", 2, "layers like the target's", BY_SOURCE))
    if beside:
        sizes = [(n + page) * beside // 2 for n in tokens]
        rule = "as many tokens as the target's, in all layers of the draft, on a rank"
        found.append(_ends("draft", "draft K size", sizes, "GB", 2, rule, PROVED))
    row = pools.full + pools.windowed
    found.append(exactly("row", "cache of one token on a rank", row, "bytes", 0, "all layers", PROVED))
    rule = "the rest of the memory by the bytes of a token, down to whole pages"
    found.append(_ends("tokens", "max_total_num_tokens", tokens, "", 0, rule, BY_SOURCE))
    ratios = [Fraction(n, length) for n in tokens]
    what = f"requests of {length:,} tokens"
    return [*found, _ends("concurrency", what, ratios, "x", 2, "tokens by their length", PROVED)]


def _slots(pools: Pools, slots: tuple[int, int], drafted: int) -> list[Figure]:
    """The pool of states: its slots, convolutions and states, and those between the tokens of a draft."""
    rule = "slots of states, one more is allocated"
    found = [_ends("slots", "max_mamba_cache_size", slots, "", 0, rule, BY_SOURCE)]
    for key, what, each in (
        ("convolution", "conv_state size", pools.convolution),
        ("state", "ssm_state size", pools.state),
    ):
        sizes, rule = [(n + 1) * each for n in slots], f"slots + 1, each of {each:,} bytes"
        found.append(_ends(key, what, sizes, "GB", 2, rule, PROVED))
    if drafted:
        columns = drafted + pools.width - 2
        for key, what, each, rule in (
            ("intermediate", "intermediate_ssm_state_cache size", drafted * pools.state, f"{drafted:,} × a state"),
            ("windows", "intermediate_conv_window_cache size", columns * pools.column, f"{columns:,} columns"),
        ):
            sizes = [(n + 1) * each for n in slots]
            found.append(_ends(key, what, sizes, "GB", 2, f"(slots + 1) × {rule}", PROVED))
    return found


def _pool(
    of: str, keys: int, values: int, index: int, tokens: tuple[int, int], page: int, has_latents: bool
) -> list[Figure]:
    """The line for one pool: tokens, and K and V, or both together for latents."""
    found = [_ends(f"pool tokens{of}", f"KV Cache{of} is allocated, #tokens", tokens, "", 0, "", PROVED)]
    rows = [n + page for n in tokens]
    rule = f"tokens and a page of {page:,} more, in all layers, on a rank"
    if has_latents:
        found.append(
            _ends(
                f"cache{of}",
                "KV size",
                [n * (keys + index) for n in rows],
                "GB",
                2,
                rule + "; latents are not divided",
                PROVED,
            )
        )
        return found
    found.append(_ends(f"keys{of}", "K size", [n * keys for n in rows], "GB", 2, rule, PROVED))
    found.append(_ends(f"values{of}", "V size", [n * values for n in rows], "GB", 2, rule, PROVED))
    return found


def _ends(key: str, what: str, ends: Sequence[int | Fraction], unit: str, digits: int, rule: str, proof: str) -> Figure:
    return Figure(key, what, Fraction(min(ends)), Fraction(max(ends)), unit, digits, rule, proof)


def _advice(
    pools: Pools,
    cards: Sequence[Card],
    sure: int,
    longest: int,
    length: int,
    holds: Callable[[dict[str, Value]], bool],
) -> list[str]:
    """The longest request that is certain to fit, and the changes that would each, on their own, make one of `length`
    tokens fit."""
    if not cards:
        return []
    if sure < length:
        tries: list[tuple[str, dict[str, Value]]] = [
            ("--kv-cache-dtype fp8_e4m3", {"cache": "fp8_e4m3"}),
            ("--mem-fraction-static 0.9", {"share": Fraction(9, 10)}),
            ("--mem-fraction-static 0.95", {"share": Fraction(95, 100)}),
            ("--mamba-full-memory-ratio 0.1", {"states": Fraction(1, 10)}),
            ("--swa-full-tokens-ratio 0.1", {"windows": Fraction(1, 10)}),
        ]
        found = [f"{said} is enough." for said, change in tries if holds(change)]
        if sure:
            return [f"--context-length {sure}: the longest that is certain to fit.", *found]
        if found:
            return ["It is not certain that the weights leave memory for tokens.", *found]
        return ["The weights leave no memory for tokens: a higher --mem-fraction-static, or more ranks."]
    most = min(sure, max(longest, length) or sure)
    found = [f"--context-length may be up to {most:,} for one request."]
    if pools.windowed:
        found.append("A smaller --swa-full-tokens-ratio gives windows fewer tokens and full layers more.")
    if pools.slot:
        found.append("A smaller --mamba-full-memory-ratio gives states less memory and tokens more.")
    return found


def _said_of_images(part: Fraction | None) -> str:
    if part is None:
        return ", and for a model that takes images 0.76 to 0.9975 of that"
    return "" if part == 1 else f", with {decimal(part)} of it for the tower of images"


def _notes(
    pools: Pools, shares: tuple[Fraction, Fraction] | None, of_tower: Fraction | None, has_uncounted: bool
) -> list[str]:
    """Remarks; `shares`: the bounds of a share that no option gives, `of_tower` the part of it that images leave."""
    found = ["What its log calls GB is GiB."]
    if has_uncounted:
        found.append(
            "The draft has a pool of its own, which is not counted: name its config.json with "
            "--speculative-draft-model-path."
        )
    if shares is not None and not shares[1]:
        found.append("For a device of this size its source computes no --mem-fraction-static above 0: give one.")
    elif shares is not None:
        low, high = [decimal(share) for share in shares]
        found.append(
            "It computes --mem-fraction-static from the card and other options, by its source: here "
            f"{low if low == high else f'{low} to {high}'}{_said_of_images(of_tower)}."
        )
    if pools.index:
        found.append("Layers without an indexer reserve no room for its keys; versions before 0.5.20 reserved it.")
    return found
