"""Compares a log's figures with the computed ones: equal, explained, or different, and what to change."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..engine.errors import Problem
from ..engine.steps import Holds
from . import deploying
from .conditions import Conditions
from .costs import Costs
from .deployments import Card, Deployment, Figure, written
from .engine_options import Value, text, whole
from .formats import FLOATS, PUBLISHED, WEIGHTS
from .log_forms import Found
from .log_reader import Log, free_bytes
from .log_rows import Beside, Row, State, is_counted, is_host, last_of, number_of, rows_of
from .serving import GIB
from .vllm_options import MODEL_DRAFTS, UNCOUNTED

UNNAMED = "0.24"  # for vLLM, whose rules are tried where a log names no version
UNTAGGED = "0.1.dev"  # what a build from a copy of vLLM's repository without its tags calls itself
MIXES = {2: "Q2_K", 3: "Q3_K_M", 4: "Q4_K_M", 5: "Q5_K_M", 6: "Q6_K", 8: "Q8_0"}  # by bits, rounded down
MOST_RANKS = 16
MOST_LAYERS = 256
# What vLLM and SGLang call a quantization, as a format of weights; other methods leave that to the file.
QUANTIZATIONS = {
    "fp8": "fp8",
    "awq": "awq-4bit-g128",
    "awq_marlin": "awq-4bit-g128",
    "gptq": "gptq-4bit-g128",
    "gptq_marlin": "gptq-4bit-g128",
    "bitsandbytes": "nf4",
    "w8a8_int8": "w8a8",
    "w8a8_fp8": "fp8-channel",
    "modelopt": "fp8-tensor",
    "modelopt_fp4": "nvfp4-linear",
}


@dataclass(frozen=True)
class Replay:
    """A log's rows, the deployment that it was compared with, the options taken from it, and what to change."""

    rows: tuple[Row, ...]
    deployment: Deployment
    words: tuple[str, ...]
    advice: tuple[str, ...]

    def number(self, state: State) -> int:
        """The number of rows with this state."""
        return number_of(self.rows, state)


def version_in(log: Log, engine: str) -> str:
    """The version in a log in the form that the engine's rules take; "" without one, except `UNNAMED` for vLLM."""
    if engine in ("vllm", "ollama"):
        parts = log.version.split(".")
        is_number = len(parts) > 1 and all(part.isdigit() for part in parts[:2]) and not _is_untagged(log)
        return log.version if is_number else UNNAMED if engine == "vllm" else ""
    return log.version if engine == "llama.cpp" else ""


def _is_untagged(log: Log) -> bool:
    """Whether a build does not know its own version."""
    return log.version.startswith(UNTAGGED)


def format_in(log: Log, published: Collection[str], named: str) -> str:
    """The format of the weights according to the file, the model's name, the quantization, or, without one, the type;
    `published` are the formats of the model's own file."""
    if log.weights in ("F16", "BF16") and "mxfp4" in published:  # a file keeps the maker's experts
        return "MXFP4_MOE"
    if log.weights in WEIGHTS:
        return log.weights
    if named and not any(named.startswith(name) for name in published):
        return named
    if log.engine not in ("vllm", "sglang") or published:
        return PUBLISHED
    if log.quantization in QUANTIZATIONS:
        return QUANTIZATIONS[log.quantization]
    return log.dtype if log.quantization in ("", "None") and log.dtype in FLOATS else PUBLISHED


def nearest_mix(log: Log, name: str) -> str:
    """The mix of llama-quantize that is nearest in bits to a file in its maker's own mix. The bits are those that the
    log prints, or those in the file's name; "" if there are none."""
    bits = last_of(log, "bits")
    whole = 0 if bits is None else int(bits.number)
    for piece in name.lower().replace("-", "_").replace(".", "_").split("_") if not whole else ():
        mark = piece.removeprefix("i").removeprefix("t")
        if mark[:1] == "q" and mark[1:2].isdigit():
            whole = int(mark[1:2])
    return MIXES.get(whole, "")


def values_of(log: Log) -> tuple[dict[str, Value], tuple[str, ...]]:
    """The options that a log names, as values and as words: from its lines and from its figures."""
    grammar = "llama.cpp" if log.engine == "ollama" else log.engine
    values, _ = deploying.options(grammar, log.words, lenient=True)
    if values.get("cache") in UNCOUNTED:  # all else is compared
        values = {key: value for key, value in values.items() if key != "cache"}
    rooms = [one for one in log.found if one.key == "room"]
    if rooms:  # all ranks use the smallest number of blocks
        values["room"] = _room(min(rooms, key=lambda one: one.number))
    if log.engine == "sglang":
        tokens = [int(one.number) for one in log.found if one.key in ("tokens", "pool tokens")]
        slots = last_of(log, "slots")
        if tokens:  # pools of windows have no more
            values["tokens"] = max(tokens)
        if slots is not None:
            values["slots"] = int(slots.number)
    return values, log.words


def cards_in(log: Log, given: Sequence[Card]) -> list[Card]:
    """The devices: the given ones, or those that a log says it uses."""
    if given:
        return list(given)
    used = {one.place.removesuffix("_Mapped") for one in log.found if one.key in ("model", "weights", "cache")}
    some = [(name, free) for name, free in log.devices if name in used] or list(log.devices)
    cards = [Card(name, free_bytes(free), free_bytes(free), _vendor(name)) for name, free in some]
    if cards or log.engine not in ("llama.cpp", "ollama"):
        return cards
    keys = ("model", "weights")
    if not any(one.key in keys and one.place for one in log.found):  # a part of a log
        keys = ("cache", "windows", "state")
    places = [
        one.place.partition("-")[0] for one in log.found if one.key in keys and one.place and not is_host(one.place)
    ]
    own = sorted(dict.fromkeys(places), key=lambda name: (len(name), name))  # its buffers are in no order
    return [Card(name, 0, 0, _vendor(name)) for name in own]


def _vendor(name: str) -> str:
    return next((vendor for start, vendor in VENDORS.items() if name.startswith(start)), "")


VENDORS = {"CUDA": "NVIDIA", "ROCm": "AMD", "MTL": "Apple", "Metal": "Apple", "SYCL": "Intel"}


def replay(
    log: Log,
    costs: Costs,
    given: Conditions,
    cards: Sequence[Card] = (),
    longest: int = 0,
    asked: Mapping[str, Value] | None = None,
    version: str = "",
    parts: Sequence[tuple[str, int]] = (),
) -> Replay:
    """Compare a log with the figures computed for this model under the options that the log names. `asked` are further
    options, `parts` the bytes of anything an engine loads in addition to the text part, each with its name. Raises
    `Problem` if the engine or its rules for the model are not known."""
    if log.engine not in deploying.ENGINES:
        raise Problem(
            "no engine is known that writes such a log", "give a start-up log of vLLM, SGLang, llama.cpp or Ollama"
        )
    values, words = values_of(log)
    if log.engine in ("vllm", "sglang") and longest and "length" not in values:
        values["length"] = longest  # the default: the length the model was made for
    chosen = asked or {}
    if log.engine != "ollama":  # whose options have other units than those of the server that it starts
        values |= chosen
    several = list(cards)
    is_known = True
    if log.engine in ("llama.cpp", "ollama"):
        several = cards_in(log, cards)
        is_known = all(card.memory_bytes for card in several)
        if not is_known:
            several = _even(log, several)
        of_values = last_of(log, "cache V")
        if of_values is not None and of_values.number and any(k.holds is Holds.LATENT for k in costs.counts.kept):
            values["latents_twice"] = True
    number = version or version_in(log, log.engine)
    counted = _Counted(log, costs, given, several, longest, values, number, chosen)
    first, best, why, change = _best_of(counted)
    ranks = _of_ranks(counted, change)
    has_format = log.weights != "" or given.format != PUBLISHED
    alike = _in_16_bits(counted, change)
    unknown = _unknown_type(log, values) or _uncounted_draft(log, values)
    beside = Beside(best, why, alike, tuple(parts), log.quantization, ranks, has_format, unknown)
    rows = rows_of(log, beside, values)
    if why and first is not None:  # figures that are equal without the change need no explanation
        plain = rows_of(log, replace(beside, deployment=first, why=""), values)
        rows = [before if before.state == State.EQUAL else row for before, row in zip(plain, rows)]
    advice = [] if unknown else _advice(log, best, {**values, **change}, longest)
    if not is_known:  # nothing can be too small if the log does not print its size
        advice = [one for one in advice if not one.startswith("Device ")]
    return Replay(tuple(rows), best, words, tuple(advice))


def _unknown_type(log: Log, values: Mapping[str, Value]) -> str:
    """The type of the cache, if the log names one that is not known here; "" otherwise."""
    for option, key in (("--kv-cache-dtype", "cache"), ("--cache-type-k", "keys"), ("--cache-type-v", "values")):
        if option in log.words and key not in values:
            said = log.words[log.words.index(option) + 1]
            return f"no rule is known here for a cache of type {said}"
    return ""


def _uncounted_draft(log: Log, values: Mapping[str, Value]) -> str:
    """Which layers of a draft are in the cache without being counted; "" if there are none."""
    said = values.get("draft")
    if log.engine != "vllm" or not isinstance(said, dict) or said.get("method") not in MODEL_DRAFTS:
        return ""
    return "the draft, a model of its own, has layers in the cache too, whose sizes the log does not have"


def title_of(log: Log, deployment: Deployment) -> str:
    """The engine of a log with its version, or the fork of it that wrote the log."""
    title = deploying.TITLES[log.engine]
    if log.fork:
        return f"{log.fork}, a fork of {title},"
    return f"{title} {deployment.version}" if deployment.version else title


@dataclass(frozen=True)
class _Counted:
    """What a log is compared with."""

    log: Log
    costs: Costs
    given: Conditions
    cards: list[Card]
    longest: int
    values: dict[str, Value]
    version: str
    asked: Mapping[str, Value]

    def deploy(self, change: Mapping[str, Value], format: str = "") -> Deployment:
        """The deployment, with a change of its options. Raises `Problem`."""
        values = {**self.values, **change}
        given = replace(self.given, format=format) if format else self.given
        if self.log.engine == "ollama":
            return _of_ollama(self, given, values)
        return deploying.deploy(self.log.engine, self.costs, given, values, self.cards, self.version, self.longest)


def _best_of(counted: _Counted) -> tuple[Deployment | None, Deployment, str, dict[str, Value]]:
    """The deployment without a change, the one that most figures agree with, and its change, in words and as options.
    Raises `Problem`."""
    best: Deployment | None = None
    first: Deployment | None = None
    wrong: Problem | None = None
    why, best_score, kept = "", -1, dict[str, Value]()
    several = _variants(counted.log, counted.values)
    for said, change in several:
        try:
            one = counted.deploy(change)
        except Problem as problem:
            wrong = wrong or problem  # the first uses the options unchanged
            continue
        if not change:
            first = one
            several += _with_context(counted, one)
        states = [row.state for row in rows_of(counted.log, Beside(one), counted.values)]
        score = len([1 for state in states if is_counted(state)])
        if best is None or score > best_score:
            best, why, best_score, kept = one, said, score, change
        if not any(state in (State.DIFFERENT, State.ALONE) for state in states):
            break
    if best is None:
        assert wrong is not None
        raise wrong
    return first, best, why, kept


def _with_context(counted: _Counted, deployment: Deployment) -> list[tuple[str, dict[str, Value]]]:
    """The context implied by the size of llama.cpp's cache, for a part of a log that does not state it."""
    log = counted.log
    if log.engine not in ("llama.cpp", "ollama") or "context" in counted.values or last_of(log, "windows") is not None:
        return []
    printed = sum([one.number for one in log.found if one.key == "cache" and one.place], Fraction(0)) * 2**20
    own = sum([f.most for f in deployment.figures if f.key == "cache" and f.place], Fraction(0))
    tokens = printed * counted.given.tokens / own if own else Fraction(0)
    if not tokens or tokens.denominator > 1 or int(tokens) % 256:
        return []
    return [(f"with the context that the size of the cache means, {int(tokens):,}", {"context": int(tokens)})]


def _of_ranks(counted: _Counted, change: Mapping[str, Value]) -> tuple[Deployment, ...]:
    """The memory for the cache of each rank of vLLM, if they print different amounts."""
    rooms = [_room(one) for one in counted.log.found if one.key == "room"]
    others = [room for room in rooms if room != counted.values.get("room")][:MOST_RANKS]
    return tuple([counted.deploy({**change, "room": room}) for room in others])


def _room(one: Found) -> list[int]:
    """An amount that a log rounds, with both bounds."""
    size = int(one.number * GIB)
    half = GIB // (2 * 10 ** max(one.digits, 2))
    return [size - half, size, size + half]


def _in_16_bits(counted: _Counted, change: Mapping[str, Value]) -> Deployment | None:
    """The deployment with all weights in 16 bits, for a log that does not say how many of them are quantized."""
    is_quantized = counted.given.format not in (PUBLISHED, *FLOATS) or counted.log.quantization not in ("", "None")
    if counted.log.engine not in ("vllm", "sglang") or not is_quantized:
        return None
    try:
        return counted.deploy(change, "bfloat16")
    except Problem:
        return None


def _even(log: Log, cards: Sequence[Card]) -> list[Card]:
    """Estimates the free memory of devices for which a log does not state it: in proportion to the layers that their
    caches show, with the output on the last; otherwise in proportion to their caches and weights."""
    sizes: list[int] = []
    layers = _layers_in(log, cards)
    if layers:
        counts = [n if i + 1 < len(layers) else n + 1 for i, n in enumerate(layers)]
        return [Card(card.name, n * 2**30, n * 2**30, card.vendor) for card, n in zip(cards, counts)]
    for card in cards:
        own = [one.number for one in log.found if one.place == card.name and one.key in ("cache", "model", "windows")]
        sizes.append(int(sum(own, Fraction(0)) * 2**20))
    return [Card(card.name, max(size, 2**20), max(size, 2**20), card.vendor) for card, size in zip(cards, sizes)]


def _layers_in(log: Log, cards: Sequence[Card]) -> list[int]:
    """The layers of each device, derived from the sizes of their caches and states; empty if these do not determine
    them."""
    counts = [0] * len(cards)
    for key in ("cache", "windows", "state"):
        sizes = [
            sum([one.number for one in log.found if one.key == key and one.place == card.name], Fraction(0))
            for card in cards
        ]
        counts = [n + more for n, more in zip(counts, _in_units(sizes))]
    offloaded = last_of(log, "offloaded")
    number = sum(counts)
    layers = number if offloaded is None else int(offloaded.number) - 1
    if not number or layers % number or 0 in counts:
        return []
    return [n * (layers // number) for n in counts]


def _in_units(sizes: Sequence[Fraction]) -> list[int]:
    """Sizes of 0.01 MiB as multiples of the largest unit that divides all of them, to their last digit."""
    total = sum(sizes, Fraction(0))
    for parts in range(1, MOST_LAYERS) if total else ():
        counts = [int(size * parts / total + Fraction(1, 2)) for size in sizes]
        if all(abs(n * total / parts - size) <= Fraction(1, 100) for n, size in zip(counts, sizes)):
            return counts
    return [0] * len(sizes)


def _variants(log: Log, values: Mapping[str, Value]) -> list[tuple[str, dict[str, Value]]]:
    """Options that a log need not show, each with what it explains."""
    found: list[tuple[str, dict[str, Value]]] = [("", {})]
    if log.engine == "vllm":
        found += _variants_of_vllm(log, values)
    if log.engine == "sglang":
        for n in (1, 2, 4, 8) if "tensor" not in values else ():
            found.append((f"with --tp-size {n}", {"tensor": n}))
        for page in (1, 16, 32, 64, 128) if "page" not in values else ():
            found.append((f"with --page-size {page}", {"page": page}))
    if log.engine in ("llama.cpp", "ollama"):
        if whole(values, "parallel", 1) > 1 and "unified" not in values:
            found.append(("with one cache for all sequences, as in builds before July 2025", {"unified": True}))
        if text(values, "gpu_layers", "").isdigit():
            found.append(("with the output on the CPU first, as in builds before 2026", {"output_last": True}))
        found.append(("with --swa-full", {"full": True}))
        found.append(("with the experts on the CPU (--cpu-moe)", {"all_moe": True}))
        found.append(("without flash attention", {"flash": "off"}))
        found.append(("with the table of vectors for each layer on the device, as older builds", {"old_tables": True}))
        found.append(
            ("with one cache for all layers, latents written out, as builds before May 2025", {"old_caches": True})
        )
        found.append(("with cells in steps of 32, as older builds", {"unit": 32}))
        if "keys" not in values:
            found.append(("with a cache in 32 bits", {"keys": "f32", "values": "f32"}))
    return found


def _variants_of_vllm(log: Log, values: Mapping[str, Value]) -> list[tuple[str, dict[str, Value]]]:
    """vLLM's: one state per sequence, a cache in fp8, ranks, blocks, and a draft without a rule."""
    found: list[tuple[str, dict[str, Value]]] = []
    one_state: tuple[str, dict[str, Value]] = ("one state per sequence: prefix caching is off", {"prefix": False})
    if "prefix" not in values:
        found.append((f"with {one_state[0]}", one_state[1]))
    if "cache" not in values:
        found.append(("with a cache in fp8", {"cache": "fp8"}))
    if "step" not in values and "no_images" not in values:
        found.append(("without videos, for which the default of a step is longer", {"no_images": True}))
    if not log.version or _is_untagged(log):
        found.append(("with the rows of two steps in a window, as since 0.26", {"in_flight": True}))
    if "prefill" not in values:
        found.append(("with FlashInfer’s kernel for prompts, which keeps one more state", {"prefill": "flashinfer"}))
    for n in (2, 4, 8) if "tensor" not in values else ():
        found.append((f"with --tensor-parallel-size {n}", {"tensor": n}))
        if "prefix" not in values:
            found.append((f"with --tensor-parallel-size {n} and {one_state[0]}", {"tensor": n, **one_state[1]}))
    if "room" not in values:
        found += [(said, {**change, "blocks": n}) for said, change in [("", {}), *found] for n in _blocks_in(log)]
    if "draft" in values:
        found.append(("without the draft, for which no rule is known", {"draft": False}))
    return found


def _blocks_in(log: Log) -> list[int]:
    """The blocks that a log prints or, if it prints no memory, its tokens in blocks of 16."""
    blocks = last_of(log, "blocks")
    if blocks is not None:
        return [int(blocks.number)]
    tokens = last_of(log, "tokens")
    whole = 0 if tokens is None else int(tokens.number)
    return [whole // 16] if whole and whole % 16 == 0 else []


def _of_ollama(counted: _Counted, given: Conditions, values: dict[str, Value]) -> Deployment:
    """Ollama: its own engine if its lines list the buffers, otherwise llama.cpp."""
    log, chosen = counted.log, counted.asked
    parallel = max(whole(chosen, "parallel", whole(values, "parallel", 1)), 1)
    context = whole(chosen, "context", max(whole(values, "context", given.tokens) // parallel, 1))
    is_own = any(one.key == "weights" or one.key == "cache" and one.digits == 1 for one in log.found)
    has_buffers = any(one.key in ("model", "cache", "compute") for one in log.found)
    if not has_buffers and counted.version and counted.costs.formats.gguf.converted.is_own_of_ollama:
        is_own = True  # before it loads, a server of its own engine prints only an estimate
    if not is_own or any(one.key == "model" for one in log.found):
        from .ollama import command_of, on_server, server_options

        own = {**values, **(server_options(chosen, context, parallel) if chosen else {})}
        served = on_server(counted.costs, given, own, counted.cards, counted.version, counted.longest)
        return replace(served, command=command_of(own, context, parallel))
    said: dict[str, Value] = {"parallel": parallel, "context": context, "batch": whole(values, "step", 512)}
    layers = text(values, "gpu_layers", "")
    if layers.isdigit():
        said["gpu_layers"] = int(layers)
    for key, other in (("keys", "cache"), ("split", "split")):
        if key in values:
            said[other] = values[key]
    version = counted.version or "0.29"
    return deploying.deploy("ollama", counted.costs, given, {**said, **chosen}, counted.cards, version, counted.longest)


def _middle(figure: Figure) -> str:
    """A figure without its bounds."""
    return written(figure.value(figure.least if figure.middle is None else figure.middle), figure.digits)


def _advice(log: Log, deployment: Deployment, values: Mapping[str, Value], made_for: int) -> list[str]:
    """What to change, judging by the log's own figures."""
    found: list[str] = []
    longest = next((f for f in deployment.figures if f.key == "longest"), None)
    concurrency = next((f for f in deployment.figures if f.key == "concurrency"), None)
    length = values.get("length")
    if log.engine == "vllm" and longest is not None and isinstance(length, int):
        if longest.least < length:
            found.append(f"--max-model-len {int(longest.least)} fits in this cache; {length} does not.")
        elif concurrency is not None:
            most = min(int(longest.least), max(made_for, length) if made_for else int(longest.least))
            found.append(f"{_middle(concurrency)} requests of {length:,} tokens fit at once; one of {most:,}.")
    graphs = last_of(log, "graphs")
    if graphs is not None:
        off = "--disable-cuda-graph" if log.engine == "sglang" else "--enforce-eager"
        found.append(f"{graphs.text} are CUDA graphs: {off} frees them, and decodes more slowly.")
    if log.engine == "vllm" and "cache" not in values and last_of(log, "room") is not None:
        found.append("--kv-cache-dtype fp8 would hold about twice as many tokens.")
    if log.engine == "sglang":
        tokens = last_of(log, "tokens") or last_of(log, "pool tokens")
        if tokens is not None and isinstance(length, int):
            ratio = Fraction(tokens.number, length)
            found.append(f"{written(ratio, 2)} requests of {length:,} tokens fit at once.")
    found += [one for one in deployment.advice if one not in found]
    return found
