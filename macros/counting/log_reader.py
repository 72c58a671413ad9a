"""Reads the start-up log of an inference engine: which engine it is, its version, model, options and devices, and the
figures that it prints.

Only recognized facts are kept: names of options and numbers, the model's name without its path, a device's name. A line
that no form matches is skipped; nothing from it is guessed, kept or shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from . import log_facts
from .deploying import options_of
from .engine_options import Option
from .log_commands import Facts, cached_name, command_in
from .log_forms import FORKS, FORMS, MARKS, STARTS, Found, matched
from .own_machine import memory_of

MOST_LINES, LONGEST_LINE = 200_000, 16_384
OF_CACHES = ("cache", "cache size", "cache cells", "cache K", "cache V")
OF_DRAFTS = (
    *("loaded", "keys", "values", "cache", "pool tokens", "checkpoint"),
    *("file", "bits", "parameters", "offloaded", "model", "state", "compute", "outputs", "slot"),
    *("cache size", "cache cells", "cache K", "cache V", "state size"),
)
NAMED = ("draft", "projector")  # kinds whose figures are all kept apart
# Figures that Ollama prints before it starts a runner.
BEFORE_LOADING = ("all", "repeating", "nonrepeating", "all weights", "estimate", "graph")
# What llama.cpp prints while it tries how much fits: a table for each trial, and a message that the first does not fit.
TRIAL, LOADED = "memory_breakdown_print:", "model"
REFITTED = ("need to reduce device memory", "context size reduced", "set ngl_per_device")
# Facts that hold for every start in a log.
OF_SERVER = ("version",)


@dataclass(frozen=True)
class Log:
    """The facts of one start in a log: the engine, its version, the model's name, options as words of the engine's
    command line, the devices with the free memory of each (in MiB), the figures in order, the number of lines, the
    format of the weights, their type and quantization, the model's architecture, the name of its file, its sizes by the
    key of a config, the start's number and how many starts there are, the fork of the engine that wrote it, and the
    name under which a server offers the model."""

    engine: str
    version: str
    model: str
    words: tuple[str, ...]
    devices: tuple[tuple[str, int], ...]
    found: tuple[Found, ...]
    lines: int
    weights: str
    dtype: str = ""
    quantization: str = ""
    architecture: str = ""
    file: str = ""
    sizes: tuple[tuple[str, int], ...] = ()
    start: int = 1
    starts: int = 1
    fork: str = ""
    served: str = ""


@dataclass
class _Start:
    """One start of the engine, as parsed so far."""

    facts: Facts = field(default_factory=dict[str, str])
    devices: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    found: list[Found] = field(default_factory=list[Found])
    seen: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])
    kind: str = ""
    is_trial: bool = False
    loads: dict[str, int] = field(default_factory=dict[str, int])
    pools: dict[str, int] = field(default_factory=dict[str, int])


def read_log(text: str, engine: str = "", start: int = 0) -> Log:
    """The facts of a log. The engine is recognized by what only it writes, unless it is named; it is "" if unknown. Of
    several starts, the one with the most figures counts, or the one with the number `start`, counted from 1."""
    lines = [plain(line) for line in text.split("\n")[:MOST_LINES]]
    name = engine or engine_of(lines)
    starts: list[_Start] = []
    for service in _services(lines):
        starts += _starts(lines, name, service)
    best = len(starts) - 1
    for i in range(len(starts) - 1, -1, -1):
        if len({one.key for one in starts[i].found}) > len({one.key for one in starts[best].found}):
            best = i
    if 0 < start <= len(starts):
        best = start - 1
    this = starts[best]
    facts = this.facts
    _add_ranks(name, facts)
    return Log(
        name,
        facts.get("version", ""),
        facts.get("model", "") or facts.get("file", "") or facts.get("cached", ""),
        log_facts.options_in(facts),
        tuple(this.devices),
        tuple(this.found),
        len(lines),
        facts.get("weights", ""),
        facts.get("dtype", ""),
        facts.get("quantization", ""),
        facts.get("architecture", ""),
        facts.get("file", ""),
        tuple(log_facts.sizes_in(facts).items()),
        best + 1,
        len(starts),
        fork_of(lines),
        facts.get("served", ""),
    )


def _add_ranks(engine: str, facts: Facts) -> None:
    """Add the number of ranks that wrote lines, if no option states it."""
    option = {"vllm": "--tensor-parallel-size", "sglang": "--tp-size"}.get(engine, "")
    if option and option not in facts and facts.get("rank", "0") != "0":
        facts[option] = str(int(facts["rank"]) + 1)


def _services(lines: Sequence[str]) -> list[str]:
    """The services in a log of several, whose names precede each line: `web | `; just "" if lines have no such
    names."""
    counts: dict[str, int] = {}
    for line in lines:
        name, found, _ = line.partition(" | ")
        if found and name and " " not in name and not name.startswith("|"):
            counts[name] = counts.get(name, 0) + 1
    several = [name for name, n in counts.items() if n > 2]
    return several if len(several) > 1 else [""]


def _starts(lines: Sequence[str], engine: str, service: str) -> list[_Start]:
    """The starts of an engine in these lines, or in the lines of one service, each with its facts and figures."""
    options = () if not engine else options_of("llama.cpp" if engine == "ollama" else engine)
    this = _Start()
    starts = [this]
    command = ""
    for i, line in enumerate(lines):
        if not line or service and not line.startswith(service + " | "):
            continue
        if this.found and _begins(line, engine, this):
            this = _next(this, engine)
            starts.append(this)
        command = f"{command} {line}".strip() if command else line
        if command.endswith("\\") and len(command) < LONGEST_LINE:
            command = command.removesuffix("\\")
            continue
        _read_line(line, command, i + 1, engine, options, this)
        command = ""
    return starts


def _begins(line: str, engine: str, this: _Start) -> bool:
    """Whether another start begins with this line, rather than the load of a draft or another rank's."""
    if this.kind == "draft" or "_DP" in line and "_DP0" not in line:
        return False
    if engine == "ollama" and all(one.key in BEFORE_LOADING for one in this.found):
        return False
    for mark in STARTS.get(engine, ()):
        if mark in line:
            is_load = mark.startswith("llama_model_loader")
            return not is_load or any(one.key == "compute" for one in this.found)
    return False


def _next(this: _Start, engine: str) -> _Start:
    """Begin another start, which keeps the facts that hold for the whole log."""
    following = _Start({key: value for key, value in this.facts.items() if key in OF_SERVER})
    if engine == "ollama":
        following.devices = list(this.devices)
    return following


def _read_line(line: str, command: str, number: int, engine: str, options: Sequence[Option], this: _Start) -> None:
    """Add the facts and figures of a line to those of its start."""
    facts = this.facts
    if engine == "vllm":
        log_facts.of_vllm(line, facts)
    elif engine == "sglang":
        log_facts.of_sglang(line, facts)
        _see_draft(line, this)
    elif engine:
        this.kind = log_facts.kind_of(line, this.kind)
        if this.kind != "draft":
            log_facts.of_llama(line, facts)
        log_facts.devices_in(line, engine, this.devices)
    if engine == "ollama":
        log_facts.of_ollama(line, facts)
    command_in(command, engine, options, facts)
    if "cached" not in facts and engine in ("vllm", "sglang") and (said := cached_name(line)):
        facts["cached"] = said
    if engine == "vllm" and ("Loading drafter model" in line or "Model loading took" in line):
        this.kind = "draft" if "drafter" in line else ""
    kind = "projector" if "alloc_compute_meta:" in line else this.kind
    if engine == "sglang":
        kind = "draft" if _is_of_draft(line, this) else ""
    if _is_trial(line, this):
        return
    keys: set[str] = set()
    for form in FORMS.get(engine, ()):
        if form.sure not in line:
            continue
        one = matched(form, line, number)
        if one is None or one.key in keys:
            continue
        keys.add(one.key)
        one = one.of_kind(kind, OF_DRAFTS if kind in NAMED else OF_CACHES)
        said = (one.key, one.place, one.text)
        if said not in this.seen:  # ranks repeat each other
            this.seen.add(said)
            this.found.append(one)


def _is_trial(line: str, this: _Start) -> bool:
    """Whether a line of llama.cpp is about a trial of what fits, before it loads; the estimate counts too, if it does
    not fit."""
    if any(mark in line for mark in REFITTED):
        this.found = [one for one in this.found if one.key != "projected"]
    if "print_info: no_alloc = " in line:
        this.is_trial = line.endswith("1")
    return this.is_trial or TRIAL in line and not any(one.key == LOADED for one in this.found)


def _see_draft(line: str, this: _Start) -> None:
    """Counts the models that a rank of SGLang has loaded, and those that have pools: the second is the draft."""
    rank = log_facts.rank_of(line)
    if "Load weight begin" in line:
        this.loads[rank] = this.loads.get(rank, 0) + 1
    if "Memory pool end" in line:
        this.pools[rank] = this.pools.get(rank, 0) + 1


def _is_of_draft(line: str, this: _Start) -> bool:
    """Whether a line of SGLang is about the draft."""
    rank = log_facts.rank_of(line)
    return this.loads.get(rank, 0) > 1 if "Load weight" in line else this.pools.get(rank, 0) > 0


def plain(line: str) -> str:
    """A line without color codes, with single spaces, and with quotes as they were before they were escaped."""
    if len(line) > LONGEST_LINE:
        line = line[:LONGEST_LINE]
    if "\x1b" in line:
        parts = line.split("\x1b[")
        line = parts[0] + "".join([part.partition("m")[2] for part in parts[1:]])
    line = line.partition('\\n"')[0].replace('\\"', '"').replace("\t", " ").replace("\r", " ")  # out of JSON
    return " ".join([word for word in line.split(" ") if word])


def engine_of(lines: Sequence[str]) -> str:
    """The engine that wrote these lines; "" if none is recognized."""
    counts: dict[str, int] = {}
    for line in lines:
        for name, marks in MARKS:
            if any(mark in line for mark in marks):
                counts[name] = counts.get(name, 0) + 1
                break
    if counts.get("ollama"):
        return "ollama"
    best = ""
    for name, number in counts.items():
        if not best or number > counts[best]:
            best = name
    return best


def fork_of(lines: Sequence[str]) -> str:
    """The fork that wrote these lines; "" if none is recognized."""
    for line in lines:
        for name, marks in FORKS:
            if any(mark in line for mark in marks):
                return name
    return ""


def free_bytes(mib: int) -> int:
    """Bytes in this many MiB."""
    said = memory_of(f"{mib}MiB")
    return said.size if said else 0
