"""llama.cpp on several devices in one module: where tensors, caches and states are placed, given its options and the
free memory of each device.

Source: llama.cpp in `llama-cpp-python` 0.3.36: `src/llama-model.cpp` (`load_tensors`), `src/llama-arch.cpp` (tensors of
the input and of the output), `src/llama-kv-cache.cpp`, `src/llama-kv-cache-iswa.cpp`, `src/llama-memory-recurrent.cpp`,
`common/arg.cpp`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..engine.bounds import MOST_TOKENS
from ..engine.errors import Problem
from . import llama_cpp
from .conditions import Conditions
from .costs import Costs
from .deployments import BY_SOURCE, PROVED, Card, Deployment, Figure, Place, exactly, written
from .engine_options import Value, amount, switch, text, whole, words_for
from .gguf_mixes import HEAD, bytes_of_row
from .gguf_types import BLOCKS
from .gguf_types import FORMATS as GGUF
from .llama_options import OF_CONDITIONS, OPTIONS
from .patterns import Pattern
from .serving import MIB, Term, between, estimate, exact, has_cuda

NAME = "llama.cpp"
VERSION = "b11434"
CODE = "https://github.com/ggml-org/llama.cpp/blob/master/"
ROW_OF_CUDA, ALIGNED_IN_CUDA = 512, 128  # elements of a row, bytes
PADDED = ("NVIDIA", "AMD", "")  # vendors of devices for CUDA and HIP; "" for a plain amount of memory
TOKENS_TABLE = "token_embd.weight"
TABLE_OF_LAYERS = "per_layer_token_embd.weight"
# Tensors outside of layers that stay on the CPU: those of the input.
INPUTS = frozenset(
    (
        TOKENS_TABLE,
        "position_embd.weight",
        "token_types.weight",
        "token_embd_norm.weight",
        "token_embd_norm.bias",
        TABLE_OF_LAYERS,
    )
)
# Architectures whose files have the layers for multi-token prediction after the others and count them as layers.
WITH_DRAFTS = frozenset("glm4moe glm-dsa deepseek32 exaone-moe cohere2moe hunyuan-v3 bailingmoe2 mimo2 step35".split())
# Tensors of routed experts, as --n-cpu-moe finds them.
EXPERTS = tuple([f".ffn_{name}_{kind}exps" for name in ("up", "down", "gate", "gate_up") for kind in ("", "ch")])
CONTEXT = 451 * MIB, 456 * MIB  # what its breakdown leaves unaccounted for on three RTX 4090
SPREAD = Fraction(9, 10), Fraction(11, 10)  # of an estimate for all devices
COPIES = 4  # copies of the inputs, if several devices take turns on parts of a batch
BACKENDS = ("CUDA", "ROCm", "MTL", "Metal", "SYCL", "Vulkan", "HIP", "MUSA", "CANN", "OpenCL", "RPC", "HTP")
VENDORS = {"NVIDIA": "CUDA", "AMD": "ROCm", "Apple": "MTL", "Intel": "SYCL"}


@dataclass(frozen=True)
class Spot:
    """What a device or the host holds, in bytes: weights, the cache of all tokens and that of windows, an indexer's
    keys, states, the number of layers, and the cache of a draft, which has a context of its own."""

    weights: int = 0
    cache: int = 0
    windows: int = 0
    index: int = 0
    states: int = 0
    layers: int = 0
    drafts: int = 0

    @property
    def held(self) -> int:
        """Bytes of caches and states."""
        return self.cache + self.windows + self.index + self.states + self.drafts


def single(x: Fraction) -> Fraction:
    """A number rounded to a 32-bit float: 24 binary digits, half to even."""
    if x <= 0:
        return Fraction(0)
    scale = x.numerator.bit_length() - x.denominator.bit_length() - 24
    unit = Fraction(2) ** scale if scale >= 0 else Fraction(1, 2**-scale)
    while x / unit >= 2**24:
        unit *= 2
    while x / unit < 2**23:
        unit /= 2
    scaled = x / unit
    whole_part = scaled.numerator // scaled.denominator
    rest = scaled - whole_part
    if rest * 2 > 1 or rest * 2 == 1 and whole_part % 2:
        whole_part += 1
    return whole_part * unit


def device_of(layers: int, gpu_layers: int, shares: Sequence[Fraction], output_last: bool = False) -> list[int]:
    """The device of each layer, then of the output; -1 is the CPU. Each of the last `gpu_layers` places goes to the
    first device whose share, added to those before it, exceeds its position. In builds before 2026 the output is the
    last to move to a device (`output_last`).
    """
    start = max(layers + (0 if output_last else 1) - gpu_layers, 0)
    placed = min(gpu_layers, layers + 1)
    sums: list[Fraction] = []
    total = Fraction(0)
    for share in shares:
        total = single(total + single(share))
        sums.append(total)
    ends = [single(one / total) for one in sums] if total else []
    found: list[int] = []
    for place in range(layers + 1):
        at = -1
        is_left = place == layers and output_last and gpu_layers <= layers
        if place >= start and placed and ends and not is_left:
            position = single(Fraction(place - start, placed))
            at = next((i for i, end in enumerate(ends) if end > position), len(ends) - 1)
        found.append(at)
    return found


@dataclass(frozen=True)
class Asked:
    """The request: the context, layers on devices, the devices' shares, how they share the model, patterns of tensors
    that are placed elsewhere, with their places (-1 for the CPU), the number of first layers whose experts are on the
    CPU, whether the table with vectors for each layer is placed with the output, as in builds around b8680, and whether
    the output is the last to move to a device."""

    setting: llama_cpp.Setting
    gpu_layers: int | None
    shares: tuple[Fraction, ...]
    mode: str
    main: int
    overrides: tuple[tuple[Pattern, int], ...]
    experts: int
    cache_on_host: bool
    drafted: int
    has_mtp: bool
    has_old_tables: bool
    has_output_last: bool


def asked(costs: Costs, given: Conditions, options: Mapping[str, Value], cards: Sequence[Card]) -> Asked:
    """The options, with llama.cpp's own defaults for the rest. Raises `Problem`."""
    parallel = whole(options, "parallel", given.batch)
    context = whole(options, "context", 0) or given.tokens * parallel
    room = amount(options, "room")
    keys = text(options, "keys", OF_CONDITIONS.get(given.dtype, given.dtype))
    values = text(options, "values", OF_CONDITIONS.get(given.dtype, given.dtype))
    flash = text(options, "flash", "auto") not in ("off", "0")
    if not flash and BLOCKS[values.upper()][0] > 1:
        raise Problem(f"--cache-type-v {values} needs flash attention", "give --flash-attn on")
    kind = text(options, "draft_type", "")
    has_mtp = "mtp" in kind
    drafted = whole(options, "drafted", 3) if kind or text(options, "draft_model", "") else 0
    has_states = any(k.row is None for k in costs.counts.kept)
    setting = llama_cpp.Setting(
        context,
        parallel,
        switch(options, "unified", False),
        min(whole(options, "step", llama_cpp.STEP), whole(options, "batch", llama_cpp.BATCH)),
        flash,
        keys,
        parallel,
        whole(options, "unit", llama_cpp.CELLS),
        values if values != keys else "",
        switch(options, "full", False),
        1 + drafted if has_states else 1,
        switch(options, "old_caches", False),
        switch(options, "latents_twice", False),
    )
    if room is not None:
        setting = replace(setting, context=context_in(costs, setting, room[1]))
    gpu_layers = _gpu_layers(options)
    mode = text(options, "mode", "layer")
    main = whole(options, "main", 0)
    if cards and main >= len(cards):
        raise Problem(f"--main-gpu {main}: there are {len(cards):,} devices", f"give 0 to {len(cards) - 1}")
    shares = _shares(options, cards)
    if mode == "none":
        shares = [Fraction(1 if i == main else 0) for i in range(len(cards))]
    return Asked(
        setting,
        gpu_layers,
        tuple(shares),
        mode,
        main,
        tuple(_overrides(options, cards)),
        10**6 if switch(options, "all_moe", False) else whole(options, "cpu_moe", 0),
        switch(options, "on_host", False),
        drafted,
        has_mtp,
        switch(options, "old_tables", False),
        switch(options, "output_last", False),
    )


def context_in(costs: Costs, setting: llama_cpp.Setting, room: int) -> int:
    """The longest context whose caches and states, summed over all devices, take at most this many bytes. Raises
    `Problem` if there is none."""
    unit = llama_cpp.CELLS * setting.streams

    def held(steps: int) -> int:
        tried = replace(setting, context=steps * unit)
        return llama_cpp.cache_bytes(costs, tried) + llama_cpp.state_bytes(costs, tried)

    if held(1) > room:
        raise Problem(f"--cache-memory: {held(1):,} bytes are the least that the caches take", "give more")
    low, high = 1, MOST_TOKENS // unit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if held(middle) <= room else (low, middle)
    return low * unit


def _gpu_layers(options: Mapping[str, Value]) -> int | None:
    """The number of layers that go on devices; None for all. Raises `Problem`."""
    said = text(options, "gpu_layers", "all").lower()
    if said in ("all", "auto", "-1"):
        return None
    if not (said.isascii() and said.isdigit() and len(said) < 8):
        raise Problem(f"--n-gpu-layers {said[:40]}: no number of layers", "give a whole number, or all")
    return int(said)


def _shares(options: Mapping[str, Value], cards: Sequence[Card]) -> list[Fraction]:
    """The share of each device: as given, or by its free memory. Raises `Problem`."""
    split = options.get("split")
    if not isinstance(split, list) or not any(split):
        return [Fraction(card.free_bytes) for card in cards]
    if len(split) > len(cards):
        raise Problem(
            f"--tensor-split has {len(split):,} numbers for {len(cards):,} devices",
            "name the devices with --on, as in 24GB+24GB",
        )
    return [Fraction(one) for one in [*split, *[0] * (len(cards) - len(split))]]


def _overrides(options: Mapping[str, Value], cards: Sequence[Card]) -> list[tuple[Pattern, int]]:
    """Patterns and the places of the tensors that they match, in the order in which they are tried."""
    found: list[tuple[Pattern, int]] = []
    for part in [one for one in text(options, "override", "").split(",") if one]:
        pattern, equals, buffer = part.rpartition("=")
        if not equals or not pattern:
            raise Problem(f"--override-tensor {part[:40]}: no pattern=buffer", "write it as in exps=CPU")
        place = -1
        if buffer.upper() != "CPU" and not buffer.upper().endswith("_HOST"):
            digits = "".join([c for c in buffer if c.isascii() and c.isdigit()])
            if not digits or len(digits) > 3 or int(digits) >= len(cards):
                raise Problem(f"--override-tensor {part[:40]}: no such buffer", "give CPU, or a device such as CUDA0")
            place = int(digits)
        found.append((Pattern(pattern), place))
    return found


def layers_in_file(costs: Costs, has_mtp: bool = False) -> int:
    """The layers that llama.cpp counts: those of multi-token prediction in its files are among them."""
    layers = costs.formats.gguf.layers + int(has_mtp and costs.formats.gguf.architecture not in WITH_DRAFTS)
    more = costs.counts.raw.get("num_nextn_predict_layers")
    if (
        costs.formats.gguf.architecture in WITH_DRAFTS
        and isinstance(more, int)
        and not isinstance(more, bool)
        and 0 < more < 64
    ):
        return layers + more
    return layers


def spots_of(costs: Costs, given: Conditions, own: Asked, cards: Sequence[Card]) -> tuple[list[Spot], list[int]]:
    """What the CPU (first) and each device hold, and the device of each layer and of the output."""
    layers = layers_in_file(costs, own.has_mtp)
    number = layers + 1 if own.gpu_layers is None else own.gpu_layers
    places = device_of(layers, number if cards else 0, own.shares, own.has_output_last)
    weights = [0] * (len(cards) + 1)
    output = places[layers]
    stored = costs.formats.gguf.in_format(format_of(costs, given))
    is_tied = all(one.tensor.name != HEAD for one in stored)
    is_padded = any(card.vendor in PADDED for card in cards)
    for one in stored:
        size = one.tensor.rows * bytes_of_row(one.type, one.tensor.columns)
        more = _padding(one.type, one.tensor.columns, size) if is_padded else 0
        if one.layers is None:
            name = one.tensor.name
            place = -1 if name in INPUTS and (name != TABLE_OF_LAYERS or not own.has_old_tables) else output
            _put(weights, (size, more), _moved(own, name, place), own, is_matrix=one.tensor.rows > 1)
            if name == TOKENS_TABLE and is_tied and output >= 0:
                _put(weights, (size, more), output, own, is_matrix=True)  # a copy that is the head
            continue
        for layer in one.layers:
            place = places[layer] if layer < layers else output
            _put(weights, (size, more), _moved(own, one.tensor.named(layer), place), own, is_matrix=one.tensor.rows > 1)
    cache, windows, index, states, drafts = ([0] * (len(cards) + 1) for _ in range(5))
    for part in llama_cpp.cache_parts(costs, own.setting):
        of = index if part.is_index else windows if part.is_windowed else cache
        for layer in part.layers:
            of[_cache_place(own, places[layer]) + 1] += (part.keys + part.values) // len(part.layers)
    for those, size in llama_cpp.state_parts(costs, own.setting):
        for layer in those:
            states[_cache_place(own, places[layer]) + 1] += size
    if own.has_mtp:
        last = max(
            (part for part in llama_cpp.cache_parts(costs, own.setting) if not part.is_index),
            key=lambda part: max(part.layers),
            default=None,
        )
        if last is not None:
            for part in llama_cpp.cache_parts(costs, own.setting):
                if max(part.layers) == max(last.layers):
                    drafts[_cache_place(own, output) + 1] += (part.keys + part.values) // len(part.layers)
    held = [sum(1 for place in places[:layers] if place == i - 1) for i in range(len(cards) + 1)]
    spots = [Spot(*those) for those in zip(weights, cache, windows, index, states, held, drafts)]
    return spots, places


def _cache_place(own: Asked, place: int) -> int:
    return -1 if own.cache_on_host else place


def _moved(own: Asked, name: str, place: int) -> int:
    """The place of a tensor, by the first pattern found in its name."""
    for pattern, other in own.overrides:
        if pattern.is_in(name):
            return other
    if own.experts and any(part in name for part in EXPERTS):
        layer = name.partition(".")[2].partition(".")[0]
        if layer.isdigit() and int(layer) < own.experts:
            return -1
    return place


def _padding(type_: str, columns: int, size: int) -> int:
    """The additional bytes that a tensor takes on a CUDA or HIP device: the last row of a quantized tensor is padded to
    a multiple of 512 elements (`ggml_backend_cuda_buffer_type_get_alloc_size` in ggml-cuda.cu), and each tensor starts
    at a multiple of 128 bytes."""
    rest = -columns % ROW_OF_CUDA if BLOCKS[type_][0] > 1 else 0
    more = bytes_of_row(type_, rest)
    return more + -(size + more) % ALIGNED_IN_CUDA


def _put(weights: list[int], sizes: tuple[int, int], place: int, own: Asked, is_matrix: bool) -> None:
    """Add a tensor to its device, with the padding there; a matrix may be split by rows over all devices."""
    size, more = sizes
    if own.mode == "row" and place >= 0 and is_matrix:
        total = sum(own.shares)
        for i, share in enumerate(own.shares):
            weights[i + 1] += int(size * share / total)
        return
    weights[place + 1] += size if place < 0 else size + more


def format_of(costs: Costs, given: Conditions) -> str:
    """The GGUF format of the weights; without one, as the converter writes them."""
    if given.format in GGUF:
        return given.format
    if given.format == "published" and "mxfp4" in costs.formats.names:
        return "MXFP4_MOE"
    return {"float16": "F16", "float32": "F32"}.get(given.format, "BF16")


def names_of(cards: Sequence[Card]) -> list[str]:
    """The devices as llama.cpp calls them: CUDA0, CUDA1; devices that already have such names keep their numbers."""
    return [
        card.name if card.name.startswith(BACKENDS) else f"{VENDORS.get(card.vendor, 'CUDA')}{i}"
        for i, card in enumerate(cards)
    ]


def deploy(
    costs: Costs,
    given: Conditions,
    options: Mapping[str, Value],
    cards: Sequence[Card],
    version: str = "",
    longest: int = 0,
    draft: Costs | None = None,
) -> Deployment:
    """llama.cpp with these options on these devices; without devices, on the CPU. Raises `Problem`."""
    llama_cpp.architecture(costs)
    own = asked(costs, given, options, cards)
    if "room" in options:  # from here on a context like any other, which advice may shorten
        options = {**{key: value for key, value in options.items() if key != "room"}, "context": own.setting.context}
    spots, places = spots_of(costs, given, own, cards)
    if draft is not None:
        other = replace(own, setting=replace(own.setting, states=1), has_mtp=False)
        of_draft, _ = spots_of(draft, given, replace(other, overrides=(), experts=0), cards)
        spots = [_added(spot, one) for spot, one in zip(spots, of_draft)]
    compute = _compute(costs, own, cards)
    names = ["CPU", *names_of(cards)]
    found = tuple([_place(costs, own, spots[i + 1], cards[i], compute) for i in range(len(cards))])
    host = Place("host memory", tuple(_host_terms(costs, own, spots[0])), None)
    figures = tuple(_figures(costs, given, own, spots, names, places, compute))
    enough = _enough(costs, given, options, cards, own, compute, found) if draft is None else []
    return Deployment(
        "llama.cpp",
        version or VERSION,
        found if cards else (),
        figures,
        tuple(_command(own, options)),
        (*_advice(found, host), *enough),
        tuple(_notes(costs, own, given, host, cards, draft)),
        tuple(_sums(costs, own, spots, names, compute)),
        host,
    )


def _added(one: Spot, other: Spot) -> Spot:
    return Spot(
        one.weights + other.weights,
        one.cache,
        one.windows,
        one.index,
        one.states,
        one.layers,
        one.drafts + other.held,
    )


def _compute(costs: Costs, own: Asked, cards: Sequence[Card]) -> tuple[int, int]:
    """The compute buffer of a device: with a row of logits for each sequence, as new versions reserve it, and with one
    for each token of a step, as old ones do; with several devices the inputs are copied."""
    least = llama_cpp.compute_bytes(costs, own.setting)
    most = llama_cpp.compute_bytes(costs, replace(own.setting, outputs=0))
    if len(cards) > 1:
        inputs = llama_cpp.mask_bytes(costs, own.setting) + own.setting.tokens * costs.counts.values()["d_model"] * 4
        most += inputs * (COPIES - 1)
    return least, max(least, most)


def _place(costs: Costs, own: Asked, spot: Spot, card: Card, compute: tuple[int, int]) -> Place:
    """The memory of a device."""
    source = f"{CODE}src/"
    terms: list[Term] = []
    if own.mode == "row":
        terms.append(
            estimate(
                "weights",
                "model buffer",
                spot.weights,
                "matrices cut by rows in proportion to the shares",
                f"{source}llama-model.cpp",
            )
        )
    else:
        terms.append(
            exact(
                "weights",
                "model buffer",
                spot.weights,
                f"{spot.layers:,} layers and what goes with them",
                f"{source}llama-model.cpp",
            )
        )
    for key, name, size in (
        ("cache", "KV buffer", spot.cache),
        ("windows", "KV buffer of windows", spot.windows),
        ("index", "KV buffer of indexers", spot.index),
        ("state", "RS buffer (recurrent state)", spot.states),
        ("draft", "KV buffer of the draft", spot.drafts),
    ):
        if size:
            terms.append(exact(key, name, size, "of the layers on this device", f"{source}llama-kv-cache.cpp"))
    if spot.layers or spot.weights:
        rule = "arrays in 32 bits, laid out as its allocator does; logits per sequence or per token of a step"
        code = f"{CODE}ggml/src/ggml-alloc.c"
        terms.append(between("compute", "compute buffer", compute[0], compute[1], rule, code))
        if spot.drafts and own.has_mtp:
            rule = "the context of the draft has one of its own, of about the same size"
            low = compute[0] * 4 // 5
            terms.append(between("draft compute", "compute buffer of the draft", low, compute[1], rule, code))
        if has_cuda(card.vendor):
            rule = "what its breakdown leaves unaccounted for on three RTX 4090"
            terms.append(
                between("context", "CUDA context", *CONTEXT, rule, "https://github.com/ggml-org/llama.cpp/pull/15860")
            )
    return Place(card.name, tuple(terms), card.free_bytes)


def _host_terms(costs: Costs, own: Asked, spot: Spot) -> list[Term]:
    source = f"{CODE}src/"
    found = [
        exact(
            "weights",
            "model buffer",
            spot.weights,
            "tensors of the input and what stays on the CPU",
            f"{source}llama-model.cpp",
        )
    ]
    size = spot.held
    if size:
        found.append(
            exact("cache", "KV and RS buffers", size, "of the layers on the CPU", f"{source}llama-kv-cache.cpp")
        )
    return found


def _figures(
    costs: Costs,
    given: Conditions,
    own: Asked,
    spots: Sequence[Spot],
    names: Sequence[str],
    places: Sequence[int],
    compute: tuple[int, int],
) -> list[Figure]:
    """The figures of its log, in order."""
    setting = own.setting
    size = costs.formats.gguf.size(format_of(costs, given))
    parts = llama_cpp.cache_parts(costs, setting)
    found = _of_file(costs, size)
    layers, on_devices = len(places) - 1, sum(1 for place in places if place >= 0)
    what = f"offloaded layers of {layers + 1}"
    found.append(exactly("offloaded", what, on_devices, "", 0, "the output is one of them", PROVED))
    found += _model_buffers(own, spots, names, places, size)
    for key, what, of in (
        ("cache", " non-SWA" if any(part.is_windowed for part in parts) else "", "cache"),
        ("windows", " SWA", "windows"),
        ("index", " indexer", "index"),
    ):
        sizes = [_of(spot, of) for spot in spots]
        if sum(sizes):
            found += _cache_figures(setting, parts, sizes, names, key, what)
    found += _state_figures(setting, [spot.states for spot in spots], names)
    for name, spot in zip(names, spots):
        if spot.drafts:
            rule = "a context of its own: the layers of the draft on it"
            what = f"{name} KV buffer size of the draft"
            found.append(exactly("draft", what, spot.drafts, "MiB", 2, rule, PROVED, name))
    outputs = llama_cpp.output_bytes(costs, setting)
    rule = "a row of logits per sequence, in 32 bits"
    found.append(exactly("outputs", "output buffer size", outputs, "MiB", 2, rule, PROVED))
    found += _compute_figures(spots, names, compute)
    if max((part.cells for part in parts if not part.is_windowed and not part.is_index), default=0):
        rule = "the context by sequences, padded to 256" if not setting.is_unified else "all of the context"
        found.append(exactly("slot", "tokens of a sequence (n_ctx_seq)", setting.cells, "", 0, rule, PROVED))
    return found


def _of_file(costs: Costs, size: int) -> list[Figure]:
    """The file of `size` bytes: its size, bits of a weight and number of parameters."""
    elements = costs.formats.gguf.elements
    bits = Fraction(size * 8, max(elements, 1))
    billions = Fraction(elements, 10**9)
    return [
        exactly("file", "file size", size, "GiB", 2, "all tensors of the file", PROVED),
        exactly("bits", "bits per weight", bits, "BPW", 2, "bits of all tensors by their elements", PROVED),
        exactly("parameters", "model params", billions, "B", 2, "elements of all tensors", PROVED),
    ]


def _model_buffers(
    own: Asked, spots: Sequence[Spot], names: Sequence[str], places: Sequence[int], size: int
) -> list[Figure]:
    """The weights on the CPU, of a file of `size` bytes, and on each device."""
    least, most = spots[0].weights, spots[0].weights
    rule, proof = "tensors of the input", PROVED
    if own.overrides or own.experts or any(place < 0 for place in places):
        most, proof = max(size, least), BY_SOURCE
        rule = "the tensors of the CPU; with mmap, the part of the file from the first to the last of them"
    what = "CPU_Mapped model buffer size"
    found = [Figure("model", what, Fraction(least), Fraction(most), "MiB", 2, rule, proof, "CPU", None)]
    proof = BY_SOURCE if own.mode == "row" else PROVED
    for name, spot in zip(names[1:], spots[1:]):
        if spot.weights:
            what, rule = f"{name} model buffer size", f"{spot.layers:,} layers"
            found.append(exactly("model", what, spot.weights, "MiB", 2, rule, proof, name))
    return found


def _cache_figures(
    setting: llama_cpp.Setting,
    parts: Sequence[llama_cpp.Part],
    sizes: Sequence[int],
    names: Sequence[str],
    key: str,
    what: str,
) -> list[Figure]:
    """One of the caches (that of all tokens, of windows or of an indexer): its bytes on each device, its size with
    cells and layers, and keys and values."""
    found: list[Figure] = []
    for name, size in zip(names, sizes):
        if size:
            title = f"{name} KV buffer size{what}"
            found.append(exactly(key, title, size, "MiB", 2, "the layers on it", PROVED, name))
    those = [
        part
        for part in parts
        if (part.is_index if key == "index" else part.is_windowed == (key == "windows") and not part.is_index)
    ]
    number = len({layer for part in those for layer in part.layers})
    cells = max((part.cells for part in those), default=0)
    title = f"llama_kv_cache{what} size ({cells:,} cells, {number:,} layers)"
    rule = f"{cells:,} cells × {setting.streams:,} streams"
    found.append(exactly(key + " size", title, sum(sizes), "MiB", 2, rule, PROVED))
    found.append(exactly(key + " cells", f"cells{what}", cells, "", 0, _cells_rule(setting, key), PROVED))
    for holds, of_kind in (("K", sum(part.keys for part in those)), ("V", sum(part.values for part in those))):
        if of_kind:
            found.append(exactly(f"{key} {holds}", f"{holds}{what}", of_kind, "MiB", 2, "", PROVED))
    return found


def _state_figures(setting: llama_cpp.Setting, sizes: Sequence[int], names: Sequence[str]) -> list[Figure]:
    """The states on each device, and their sum; empty for a model without any."""
    found: list[Figure] = []
    rule = f"{setting.sequences:,} sequences × {setting.states:,} states"
    for name, size in zip(names, sizes):
        if size:
            found.append(exactly("state", f"{name} RS buffer size", size, "MiB", 2, rule, PROVED, name))
    if found:
        what, rule = "llama_memory_recurrent size", "states and convolutions in 32 bits"
        found.append(exactly("state size", what, sum(sizes), "MiB", 2, rule, PROVED))
    return found


def _compute_figures(spots: Sequence[Spot], names: Sequence[str], compute: tuple[int, int]) -> list[Figure]:
    """The compute buffer of each device that holds anything; without devices, of the CPU."""
    found: list[Figure] = []
    rule = "an estimate: within a fifth where few logits are reserved; one row per token of a step at most"
    ends = Fraction(compute[0]), Fraction(compute[1])
    for i, spot in enumerate(spots):
        if i and (spot.layers or spot.weights) or len(spots) == 1:
            what = f"{names[i]} compute buffer size"
            found.append(Figure("compute", what, *ends, "MiB", 2, rule, BY_SOURCE, names[i]))
    return found


def _sums(
    costs: Costs, own: Asked, spots: Sequence[Spot], names: Sequence[str], compute: tuple[int, int]
) -> list[Figure]:
    """The sums in its breakdown and its fit, and the host's buffer of a step: the input’s vectors and the masks."""
    found: list[Figure] = []
    for name, spot in zip(names, spots):
        if name != names[0] or len(spots) == 1:
            what, rule = f"{name} context", "caches and states of the layers on it"
            found.append(exactly("context", what, spot.held, "MiB", 0, rule, BY_SOURCE, name))
            if not spot.weights:
                found.append(exactly("model", f"{name} model buffer size", 0, "MiB", 2, "0 layers", PROVED, name))
                rule = "an estimate: long prompts are computed on it all the same"
                ends = Fraction(0), Fraction(compute[1])
                what = f"{name} compute buffer size"
                found.append(Figure("compute", what, *ends, "MiB", 2, rule, BY_SOURCE, name))
    used = [spot for spot in spots[1:] if spot.layers or spot.weights]
    if len(spots) > 1:
        size = sum(spot.weights + spot.held for spot in used)
        each = compute[0] * len(used), compute[1] * max(len(used), 1)  # long prompts are computed there anyway
        low, high = [Fraction(size + one) * share for one, share in zip(each, SPREAD)]
        rule = "weights, caches and compute buffers of all devices; an estimate, as the last are"
        found.append(Figure("projected", "memory of all devices", low, high, "MiB", 0, rule, BY_SOURCE))
    masks = llama_cpp.mask_bytes(costs, replace(own.setting, flash=False))  # in 32 bits, cast on the device
    inputs = masks + own.setting.tokens * costs.counts.values()["d_model"] * 4
    # with flash attention newer builds have masks in 16 bits (`build_attn_inp_kq_mask` in src/llama-graph.cpp)
    least = inputs - masks // 2 if own.setting.flash else inputs
    ends = Fraction(least), Fraction(inputs * (COPIES if len(used) > 1 else 1) * 5, 4)
    rule = "an estimate: the vectors of a step’s tokens, in 32 bits, and the masks; several copies for several devices"
    if len(spots) > 1:
        found.append(Figure("compute", "host compute buffer size", *ends, "MiB", 2, rule, BY_SOURCE, "Host"))
    if own.has_mtp:
        found += _draft_sums(costs, own, spots, names, compute, ends)
    return found


def _draft_sums(
    costs: Costs,
    own: Asked,
    spots: Sequence[Spot],
    names: Sequence[str],
    compute: tuple[int, int],
    host: tuple[Fraction, Fraction],
) -> list[Figure]:
    """The buffers of a draft's context, other than its cache: about as large as the model's own."""
    outputs = llama_cpp.output_bytes(costs, own.setting)
    rule = "an estimate: the context of the draft has buffers of about the same size"
    found = [exactly("draft outputs", "output buffer size of the draft", outputs, "MiB", 2, rule, PROVED)]
    for name, spot in zip(names, spots):
        if spot.drafts:
            what = f"{name} compute buffer size of the draft"
            ends = Fraction(compute[0] * 4, 5), Fraction(compute[1])
            found.append(Figure("draft compute", what, *ends, "MiB", 2, rule, BY_SOURCE, name))
    if len(spots) > 1:
        what = "host compute buffer size of the draft"
        found.append(Figure("draft compute", what, *host, "MiB", 2, rule, BY_SOURCE, "Host"))
    return found


def _of(spot: Spot, key: str) -> int:
    return {"cache": spot.cache, "windows": spot.windows, "index": spot.index}[key]


def _cells_rule(setting: llama_cpp.Setting, key: str) -> str:
    if key != "windows" or setting.has_full_windows:
        return "the context, padded to 256"
    return "the window of each sequence of one cache and a step, padded to 256"


def _command(own: Asked, options: Mapping[str, Value]) -> list[str]:
    """The options of llama-server for this deployment."""
    setting = own.setting
    chosen: dict[str, Value] = {
        **options,
        "context": setting.context,
        "parallel": setting.sequences,
        "batch": max(setting.step, whole(options, "batch", llama_cpp.BATCH)),
        "step": setting.step,
        "gpu_layers": "999" if own.gpu_layers is None else str(own.gpu_layers),
        "flash": "on" if setting.flash else "off",
        "keys": llama_cpp.NAMES.get(setting.dtype, setting.dtype),
        "values": llama_cpp.NAMES.get(setting.values or setting.dtype, setting.values or setting.dtype),
    }
    return words_for(OPTIONS, chosen)


def _enough(
    costs: Costs,
    given: Conditions,
    options: Mapping[str, Value],
    cards: Sequence[Card],
    own: Asked,
    compute: tuple[int, int],
    places: Sequence[Place],
) -> list[str]:
    """The changes that would each, on their own, guarantee a fit: fewer layers or experts on the devices, a cache in 8
    bits, a shorter context."""
    if not cards or all(place.most <= (place.limit or 0) for place in places):
        return []

    def fits(change: Mapping[str, Value], sizes: tuple[int, int] | None = None) -> bool:
        other = asked(costs, given, {**options, **change}, cards)
        spots, _ = spots_of(costs, given, other, cards)
        sizes = sizes or _compute(costs, other, cards)
        tried = [_place(costs, other, spots[i + 1], card, sizes) for i, card in enumerate(cards)]
        return all(place.most <= (place.limit or 0) for place in tried)

    found: list[str] = []
    layers = layers_in_file(costs, own.has_mtp)
    most = layers + 1 if own.gpu_layers is None else own.gpu_layers
    experts = _least(0, layers, lambda n: fits({"cpu_moe": n}, compute))
    if experts and any(w.routed is not None for w in costs.counts.weights):
        found.append(f"--n-cpu-moe {experts} is enough.")
    fewer = _least(0, most, lambda n: fits({"gpu_layers": str(most - n)}, compute))
    if fewer is not None and fewer < most:
        found.append(f"--n-gpu-layers {most - fewer} is enough.")
    if llama_cpp.NAMES.get(own.setting.dtype, own.setting.dtype) in ("f16", "f32", "bf16") and own.setting.flash:
        try:
            if fits({"keys": "q8_0", "values": "q8_0"}):
                found.append("--cache-type-k q8_0 --cache-type-v q8_0 is enough.")
        except Problem:  # heads that are no multiple of 32
            pass
    unit = llama_cpp.CELLS * own.setting.streams
    steps = own.setting.context // unit
    shorter = _least(0, steps, lambda n: n < steps and fits({"context": (steps - n) * unit}))
    if shorter is not None:
        found.append(f"--ctx-size {(steps - shorter) * unit} is enough.")
    return found


def _least(low: int, high: int, is_enough: Callable[[int], bool]) -> int | None:
    """The smallest sufficient number above `low`; None if there is none. If a number is sufficient, so are all larger
    ones."""
    if high <= low:
        return None
    if not is_enough(high):
        high -= 1  # the last one need not leave anything
        if high <= low or not is_enough(high):
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _advice(places: Sequence[Place], host: Place) -> list[str]:
    """Advice on changes, and the host's needs."""
    found = [f"The host needs {written(Fraction(host.least, MIB), 2)} MiB."] if host.least else []
    for i, place in enumerate(places):
        over = place.most - (place.limit or 0)
        if over > 0:
            found.append(
                f"Device {i} is {written(Fraction(over, MIB), 0)} MiB too small: fewer --n-gpu-layers, "
                "a smaller share in --tensor-split, or --n-cpu-moe."
            )
    return found


def _notes(
    costs: Costs, own: Asked, given: Conditions, host: Place, cards: Sequence[Card], draft: Costs | None
) -> list[str]:
    found = ["llama-server without --parallel takes 4 slots and --kv-unified in new versions: give both."]
    if given.format not in GGUF:
        found.append(
            "The file has the type of the published weights: give --weights Q4_K_M or another format of GGUF files."
        )
    if layers_in_file(costs) > costs.formats.gguf.layers:
        found.append(
            "Its file holds layers of multi-token prediction: they count as layers, their tensors are not counted."
        )
    if not costs.counts.kept:
        found.append("An encoder needs --embedding, and a --ubatch-size as long as a text.")
    if own.mode == "row":
        found.append("--split-mode row is by its source.")
    if draft is not None:
        found.append("The draft lies on the same devices, with as long a context.")
    return found
