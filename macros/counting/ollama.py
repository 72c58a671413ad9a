"""Ollama: since 0.30 it starts llama.cpp's server; before, it had an engine of its own.

Source in Ollama: `llm/llama_server.go` (options of the server that it starts); before 0.30 `kvcache/causal.go`
(`Init`), `kvcache/recurrent.go`, `llm/server.go` (`assignLayers`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from ..engine.errors import Problem
from . import llama_cpp, llama_devices
from .conditions import Conditions
from .costs import Costs
from .deployments import BY_SOURCE, PROVED, Card, Deployment, Figure, Place, exactly, version_of
from .engine_options import BYTES, NUMBER, TEXT, TOKENS, WHOLE, Option, Value, amount, text, whole
from .gguf_mixes import HEAD, bytes_of_row
from .serving import Term, estimate, exact, padded, window_of

NAME = "Ollama"
VERSION = "0.30"
SINCE = (0, 30)  # the version that starts llama.cpp's server
CODE = "https://github.com/ollama/ollama/blob/"
BATCH = 512
CELLS = 256  # rows to which its own engine pads a cache
LONGER = 4096  # minimum rows that its own engine keeps for shorter windows of these architectures
KEEPS_LONGER = frozenset(("gpt-oss", "gemma4"))
STATES = 25  # a state and 24 checkpoints of it, for each sequence
TYPES = ("f32", "f16", "q8_0", "q4_0")
# What its own engine assumes before it loads: a byte or half a byte per element, without scales
# (`kvCacheBytesPerElement` in fs/ggml/ggml.go).
ESTIMATED = {"q8_0": Fraction(32, 34), "q4_0": Fraction(16, 18)}

OPTIONS = (
    Option("context", ("--num-ctx", "num_ctx", "OLLAMA_CONTEXT_LENGTH"), TOKENS, "tokens of a sequence"),
    Option("room", ("--cache-memory",), BYTES, "memory of all caches; not an option of its own"),
    Option("parallel", ("--num-parallel", "num_parallel", "OLLAMA_NUM_PARALLEL"), WHOLE, "sequences at once; 1"),
    Option("batch", ("--num-batch", "num_batch"), TOKENS, "tokens of a step; 512"),
    Option("gpu_layers", ("--num-gpu", "num_gpu"), NUMBER, "last layers on the devices; as many as fit"),
    Option("cache", ("--kv-cache-type", "OLLAMA_KV_CACHE_TYPE"), TEXT, "type of the cache; f16", choices=TYPES),
    Option(
        "flash",
        ("--flash-attention", "OLLAMA_FLASH_ATTENTION"),
        TEXT,
        "flash attention: 1, 0 or auto",
        choices=("1", "0", "auto", "true", "false"),
        bare="1",
    ),
)
IGNORED = ("--verbose", "--keepalive=", "--think=", "--format-json", "--nowordwrap", "--insecure")


def deploy(
    costs: Costs,
    given: Conditions,
    options: Mapping[str, Value],
    cards: Sequence[Card],
    version: str = "",
    longest: int = 0,
    draft: Costs | None = None,
) -> Deployment:
    """Ollama with these options on these devices. Raises `Problem`."""
    number = version_of(version, VERSION, NAME)
    context, parallel = whole(options, "context", given.tokens), whole(options, "parallel", given.batch)
    room = amount(options, "room")
    if room is not None:
        if number < SINCE:
            raise Problem("--cache-memory: no rule is known for it before 0.30", "give num_ctx")
        values = {**server_options(options, context, parallel), "room": list(room)}
        setting = llama_devices.asked(costs, given, values, cards).setting
        context = setting.context // parallel
    if number >= SINCE:
        return _of_server(costs, given, options, cards, version, longest, context, parallel)
    return _own(costs, given, options, cards, version, context, parallel)


def _of_server(
    costs: Costs,
    given: Conditions,
    options: Mapping[str, Value],
    cards: Sequence[Card],
    version: str,
    longest: int,
    context: int,
    parallel: int,
) -> Deployment:
    """The server that Ollama starts, with the options that it passes on."""
    values = server_options(options, context, parallel)
    served = on_server(costs, given, values, cards, version or VERSION, longest)
    words = " ".join(served.command)
    advice = tuple([one for said in served.advice if (one := _own_words(said, parallel))])
    notes = (f"Since 0.30 it starts llama-server: {words}", *_of_requests(options), *served.notes[1:])
    return replace(served, command=_command(options, context, parallel), notes=notes, advice=advice)


def _own_words(advice: str, parallel: int) -> str:
    """Advice on the server that it starts, in Ollama's own options; "" for options that it does not pass on."""
    name, _, rest = advice.partition(" ")
    if name == "--ctx-size":
        return f"num_ctx {int(rest.partition(' ')[0]) // parallel} is enough."
    if name == "--n-gpu-layers":
        return f"num_gpu {rest}"
    if name == "--cache-type-k":
        return "OLLAMA_KV_CACHE_TYPE=q8_0 is enough."
    if name == "--n-cpu-moe":
        return ""
    return advice.partition(": fewer ")[0] + (": fewer layers (num_gpu)." if ": fewer " in advice else "")


def server_options(options: Mapping[str, Value], context: int, parallel: int) -> dict[str, Value]:
    """The options of the server that it starts: llama.cpp's."""
    values: dict[str, Value] = {"context": context * parallel, "parallel": parallel, "flash": "auto"}
    flash = text(options, "flash", "auto")
    if flash != "auto":
        values["flash"] = "on" if flash in ("1", "true") else "off"
    if "batch" in options:
        values["batch"] = values["step"] = whole(options, "batch", BATCH)
    if "gpu_layers" in options:
        values["gpu_layers"] = str(whole(options, "gpu_layers", 0))
    if "cache" in options:
        values["keys"] = values["values"] = text(options, "cache", "f16")
    return values


def on_server(
    costs: Costs, given: Conditions, values: Mapping[str, Value], cards: Sequence[Card], version: str, longest: int
) -> Deployment:
    """llama.cpp under Ollama, with llama.cpp's own options and the figures that Ollama prints before it loads."""
    served = llama_devices.deploy(costs, given, values, cards, "", longest)
    cache = sum(f.most for f in served.figures if f.key in ("cache size", "windows size"))
    sequences, vectors = whole(values, "parallel", given.batch), costs.counts.values()
    outputs = sequences * (vectors["vocab_size"] + vectors["d_model"]) * 4
    rule = "a row of logits and a vector per sequence, in 32 bits: its runner embeds, too"
    embedded = exactly("outputs", "output buffer size", outputs, "MiB", 2, rule, PROVED)
    more = (*served.more, embedded, _all(cache), *_estimates(costs, given, cache))
    return replace(served, engine="ollama", version=version, more=more)


def _all(size: int | Fraction) -> Figure:
    return exactly("all", "kv cache of all layers", size, "GiB", 1, "all sequences, before it loads", PROVED)


def _estimates(costs: Costs, given: Conditions, cache: int | Fraction) -> list[Figure]:
    """The weights as Ollama adds them up before it loads: the layers, and the output's tensors. Up to 0.6.0, a layer
    includes its cache, and the output counts as one of the layers (`llm/memory.go`)."""
    layers = output = table = 0
    for one in costs.formats.gguf.in_format(llama_devices.format_of(costs, given)):
        size = one.tensor.rows * bytes_of_row(one.type, one.tensor.columns)
        name = one.tensor.name
        if one.layers is not None:
            layers += size * len(one.layers)
        elif name == llama_devices.TOKENS_TABLE:
            table = size
        elif name == HEAD:
            output += size
        elif name.startswith("output_norm"):
            output += size
    if all(one.tensor.name != HEAD for one in costs.formats.gguf.in_format("F16")):
        output += table
    return [
        exactly(key, what, size, "GiB", 1, rule, BY_SOURCE)
        for key, what, size, rule in (
            ("all weights", "memory.weights.total", layers + output, "the layers and the output"),
            ("all weights", "memory.weights.total", layers, "the layers, as versions before 0.4 add up"),
            ("all weights", "memory.weights.total", layers + cache, "the layers with their cache, up to 0.6.0"),
            ("repeating", "memory.weights.repeating", layers, "tensors of the layers"),
            ("repeating", "memory.weights.repeating", layers - output, "the layers less the output, before 0.4"),
            (
                *("repeating", "memory.weights.repeating", layers + cache - output),
                "the layers with their cache less the output, up to 0.6.0",
            ),
            ("nonrepeating", "memory.weights.nonrepeating", output, "the output, or the table if they are tied"),
        )
    ]


def _command(options: Mapping[str, Value], context: int, parallel: int) -> tuple[str, ...]:
    """The environment variables of its server."""
    words = [f"OLLAMA_CONTEXT_LENGTH={context}", f"OLLAMA_NUM_PARALLEL={parallel}"]
    if text(options, "cache", ""):
        words.append(f"OLLAMA_KV_CACHE_TYPE={text(options, 'cache', '')}")
    if text(options, "flash", ""):
        words.append(f"OLLAMA_FLASH_ATTENTION={text(options, 'flash', '')}")
    return tuple(words)


def _of_requests(options: Mapping[str, Value]) -> list[str]:
    """A note on the options that have no variable: they go into a request or a Modelfile."""
    named = [("num_gpu", "gpu_layers"), ("num_batch", "batch")]
    said = [f"{name} {whole(options, key, 0)}" for name, key in named if key in options]
    return [f"In the Modelfile, as PARAMETER, or in the request: {', '.join(said)}."] if said else []


def command_of(values: Mapping[str, Value], context: int, parallel: int) -> tuple[str, ...]:
    """The environment variables that correspond to the options of the server that it starts."""
    options: dict[str, Value] = {}
    if text(values, "keys", "f16") in TYPES and "keys" in values:
        options["cache"] = text(values, "keys", "f16")
    flash = text(values, "flash", "auto")
    if flash != "auto":
        options["flash"] = "1" if flash in ("on", "1") else "0"
    return _command(options, context, parallel)


def _own(
    costs: Costs,
    given: Conditions,
    options: Mapping[str, Value],
    cards: Sequence[Card],
    version: str,
    context: int,
    parallel: int,
) -> Deployment:
    """Ollama's own engine: caches layer by layer, weights by layers from the last one down."""
    llama_cpp.architecture(costs)
    batch = min(whole(options, "batch", BATCH), context)
    kind = text(options, "cache", "f16")
    setting = llama_cpp.Setting(context * parallel, parallel, True, batch, True, kind)
    asked = options.get("gpu_layers")
    places = _places(costs, options, cards)
    cache, per_layer = _caches(costs, setting, places, len(cards), context, batch)
    weights = _weights(costs, given, places, len(cards))
    names = ["CPU", *llama_devices.names_of(cards)]
    estimated, _ = _caches(costs, setting, places, len(cards), context, batch, is_estimate=True)
    figures = _figures(weights, cache, names, sum(estimated) * ESTIMATED.get(kind, Fraction(1)))
    for name, size in per_layer.items():
        figures.append(
            exactly(name, f"cache of a {name}", size, "bytes", 0, _said(name, costs, context, parallel, batch), PROVED)
        )
    compute = llama_cpp.compute_bytes(costs, setting)
    ends = Fraction(compute), Fraction(max(compute, llama_cpp.compute_bytes(costs, replace(setting, outputs=0))))
    rule = "an estimate, as llama.cpp lays out the arrays of a step"
    more = [
        Figure("compute", f"compute graph {name}", *ends, "GiB", 1, rule, BY_SOURCE, name)
        for name in names[1:] or names
    ]
    found = [_place(card, weights[i + 1], cache[i + 1], compute) for i, card in enumerate(cards)]
    notes = ["Before 0.30 it had an engine of its own; 0.30 and later start llama.cpp's server."]
    notes += _of_requests(options)
    if not isinstance(asked, int) and cards:
        notes.append("It places as many layers as fit, from the last one down: num_gpu says how many.")
    return Deployment(
        "ollama",
        version,
        tuple(found),
        tuple(figures),
        _command(options, context, parallel),
        (),
        tuple(notes),
        (*_estimates(costs, given, sum(cache)), *more),
    )


def _places(costs: Costs, options: Mapping[str, Value], cards: Sequence[Card]) -> list[int]:
    """The device of each layer, then of the output; -1 is the CPU."""
    layers = costs.formats.gguf.layers
    if not cards:
        return [-1] * (layers + 1)
    asked, split = options.get("gpu_layers"), options.get("split")
    shares = [Fraction(one) for one in (split if isinstance(split, list) else [card.free_bytes for card in cards])]
    shares = [*shares, *[Fraction(0)] * (len(cards) - len(shares))][: len(cards)]
    if isinstance(asked, int) and asked <= layers:  # the output is the first to move to the CPU
        return [*llama_devices.device_of(layers - 1, asked, shares), -1]
    return llama_devices.device_of(layers, layers + 1, shares)


def _caches(
    costs: Costs,
    setting: llama_cpp.Setting,
    places: Sequence[int],
    number: int,
    context: int,
    batch: int,
    is_estimate: bool = False,
) -> tuple[list[int], dict[str, int]]:
    """Bytes of caches and states on the CPU and on each of a `number` of devices, and in one layer of each kind; in the
    `is_estimate` that it prints before it loads, a window does not keep another row for several sequences."""
    found, per_layer = [0] * (number + 1), dict[str, int]()
    parallel = setting.sequences
    for k in costs.counts.kept:
        if k.is_shared:
            continue
        if k.row is None:
            size = llama_cpp.state_of(k) * llama_cpp.STATE_BYTES * STATES * parallel
            per_layer["recurrent layer"] = per_layer.get("recurrent layer", 0) + size
        else:
            window = window_of(costs, k)
            rows = _rows(costs, window, context, parallel, batch, is_estimate)
            elements = 1
            for d in k.row:
                elements *= int(d)
            size = setting.row_bytes(elements, int(k.shape[-1])) * rows
            name = "full layer" if window is None else "window layer"
            if k.layers[0] == min(
                other.layers[0]
                for other in costs.counts.kept
                if other.row is not None and (window_of(costs, other) is None) == (window is None)
            ):
                per_layer[name] = per_layer.get(name, 0) + size
        for layer in k.layers:
            found[places[layer] + 1] += size
    return found, per_layer


def _figures(
    weights: Sequence[int], cache: Sequence[int], names: Sequence[str], estimated: int | Fraction
) -> list[Figure]:
    """Weights and caches of each device that has any, and the caches of all as `estimated`."""
    found: list[Figure] = []
    for key, what, rule, proof, sizes in (
        ("weights", "model weights", "tensors of the layers on it", BY_SOURCE, weights),
        ("cache", "kv cache", "of the layers on it", PROVED, cache),
    ):
        for name, size in zip(names, sizes):
            if size:
                found.append(exactly(key, f"{what} {name}", size, "GiB", 1, rule, proof, name))
    return [*found, _all(estimated)]


def _place(card: Card, weights: int, cache: int, compute: int) -> Place:
    """The memory of a device."""
    server = f"{CODE}v0.29.0/llm/server.go"
    terms: list[Term] = [
        exact("weights", "model weights", weights, "tensors of the layers on it", server),
        exact("cache", "kv cache", cache, "of the layers on it", f"{CODE}v0.29.0/kvcache/causal.go"),
        estimate("compute", "compute graph", compute, "as llama.cpp lays out the arrays of a step", server),
    ]
    return Place(card.name, tuple(terms), card.free_bytes)


def _rows(costs: Costs, window: int | None, context: int, parallel: int, batch: int, is_estimate: bool = False) -> int:
    """Rows of a layer's cache: a window keeps its length (or 4,096) for each sequence, plus a step."""
    if window is None:
        return padded(context * parallel, CELLS)
    kept = max(window, LONGER) if costs.formats.gguf.architecture in KEEPS_LONGER else window
    if parallel > 1 and not is_estimate:
        kept = max(kept, window + 1)
    if kept >= context:
        return padded(context * parallel, CELLS)
    return padded(kept * parallel + batch, CELLS)


def _said(name: str, costs: Costs, context: int, parallel: int, batch: int) -> str:
    if name == "recurrent layer":
        return f"{STATES} states (24 of them checkpoints) for each of {parallel:,} sequences"
    if name == "full layer":
        return f"{parallel:,} × {context:,} rows"
    windows = [window_of(costs, k) for k in costs.counts.kept if k.row is not None]
    window = next((one for one in windows if one is not None), None)
    return f"{_rows(costs, window, context, parallel, batch):,} rows: the window of each sequence and a step"


def _weights(costs: Costs, given: Conditions, places: Sequence[int], number: int) -> list[int]:
    """Bytes of tensors on the CPU and on each device; the table of tokens stays on the CPU, and is also copied to the
    output's device if it is the output (`ml/backend/ggml/ggml.go`)."""
    found = [0] * (number + 1)
    stored = costs.formats.gguf.in_format(llama_devices.format_of(costs, given))
    is_tied = all(one.tensor.name != HEAD for one in stored)
    for one in stored:
        size = one.tensor.rows * bytes_of_row(one.type, one.tensor.columns)
        if is_tied and one.tensor.name == llama_devices.TOKENS_TABLE and places[-1] >= 0:
            found[places[-1] + 1] += size
        if one.layers is None:
            place = -1 if one.tensor.name in llama_devices.INPUTS else places[-1]
            found[place + 1] += size
        for layer in one.layers or ():
            found[places[layer] + 1] += size
    return found
