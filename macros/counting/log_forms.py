"""The lines of a start-up log, as each engine writes them: forms with a number, and the markers that only one engine
has.

A form is text with gaps: `{n}` is the number, `{d}` the device, `{s}` a size with its unit, `{_}` anything up to the
text after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from .engine_options import DIGITS, number_of

UNITS = ("GiB", "MiB", "KiB", "GB", "MB", "KB", "G", "M")
# A number of bytes: what these engines call GB and MB are powers of two.
BYTES = {
    "GiB": 2**30,
    "MiB": 2**20,
    "KiB": 2**10,
    "GB": 2**30,
    "MB": 2**20,
    "KB": 2**10,
    "bytes": 1,
}
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
OF_DEVICES = LETTERS + DIGITS + "_-[]()."


@dataclass(frozen=True)
class Form:
    """A line as an engine writes it: the key of the figure, the text around its number, and the number's unit."""

    key: str
    text: str
    unit: str = ""

    @cached_property
    def parts(self) -> list[str]:
        """The texts of the form and its gaps, in order: `a {n} b` is `a `, `{n}`, ` b`."""
        found: list[str] = []
        rest = self.text
        while rest:
            before, brace, behind = rest.partition("{")
            if before:
                found.append(before)
            if not brace:
                break
            name, _, rest = behind.partition("}")
            found.append("{" + name + "}")
        return found

    @cached_property
    def sure(self) -> str:
        """The longest text that every such line contains."""
        return max([part for part in self.parts if not part.startswith("{")], key=len)


VLLM = (
    Form("graphs", "Graph capturing finished in {_}, took {n} GiB", "GiB"),
    Form("graphs", "Estimated CUDA graph memory: {n} GiB", "GiB"),
    Form("graphs", "CUDA graph pool memory: {n} GiB (actual)", "GiB"),
    Form("graphs", " {n} GiB for CUDAGraph", "GiB"),
    Form("block", "Setting attention block size to {n} tokens"),
    Form("padding", "Padding mamba page size by {n}%", "%"),
    Form("layers", "padding layers, may waste at most {n}%", "%"),
    Form("checkpoint", "Checkpoint size: {n} GiB", "GiB"),
    Form("loaded", "Model loading took {n} GiB", "GiB"),
    Form("loaded", "Model loading took {n} GB", "GB"),
    Form("loaded", "Loading model weights took {n} G", "GiB"),
    Form("loaded", "model weights take {n}GiB", "GiB"),
    Form("loaded", "Actual usage is {n} GiB for weight", "GiB"),
    Form("outside", "non_torch_memory takes {n}GiB", "GiB"),
    Form("outside", " {n} GiB for non-torch memory", "GiB"),
    Form("activations", "PyTorch activation peak memory takes {n}GiB", "GiB"),
    Form("activations", " {n} GiB for peak activation", "GiB"),
    Form("outside", "non_torch_memory {n}GiB", "GiB"),
    Form("outside", "non_torch_memory={n}GiB", "GiB"),
    Form("activations", "PyTorch activation peak memory {n}GiB", "GiB"),
    Form("memory", "total_gpu_memory {n}GiB", "GiB"),
    Form("memory", "total_gpu_memory={n}GiB", "GiB"),
    Form("desired", "vLLM instance can use {n}GiB", "GiB"),
    Form("room", "available_kv_cache_memory {n}GiB", "GiB"),
    Form("room", "kv_cache_size={n}GiB", "GiB"),
    Form("memory", "total_gpu_memory ({n}GiB)", "GiB"),
    Form("memory", "Free memory on device ({_}/{n} GiB)", "GiB"),
    Form("desired", "gpu_memory_utilization ({_}) = {n}GiB", "GiB"),
    Form("desired", "GPU memory utilization is ({_}, {n} GiB)", "GiB"),
    Form("desired", "GPU memory utilization ({_}, {n} GiB)", "GiB"),
    Form("room", "the rest of the memory reserved for KV Cache is {n}GiB", "GiB"),
    Form("room", "Available KV cache memory: {n} GiB", "GiB"),
    Form("room", "larger than the available KV cache memory ({n} GiB)", "GiB"),
    Form("room", "available GPU memory ({n} GiB available for KV cache)", "GiB"),
    Form("needed", "({n} GiB KV cache is needed", "GiB"),
    Form("longest", "estimated maximum model length is {n}"),
    Form("longest", "Auto-fit max_model_len: reduced from {_} to {n} to fit"),
    Form("longest", "tokens that can be stored in KV cache ({n})"),
    Form("tokens", "GPU KV cache size: {n} tokens"),
    Form("concurrency", "tokens per request: {n}x", "x"),
    Form("blocks", "# GPU blocks: {n}"),
    Form("blocks", "# cuda blocks: {n}"),
    Form("blocks", "num_gpu_blocks is: {n}"),
)
SGLANG = (
    Form("loaded", "Load weight end. {_}mem usage={n} GB", "GB"),
    Form("slots", "max_mamba_cache_size: {n},"),
    Form("convolution", "conv_state size: {n}GB", "GB"),
    Form("state", ", ssm_state size: {n}GB", "GB"),
    Form("intermediate", "intermediate_ssm_state_cache size: {n}GB", "GB"),
    Form("windows", "intermediate_conv_window_cache size: {n}GB", "GB"),
    Form("pool tokens", "KV Cache is allocated. {_}#tokens: {n},"),
    Form("keys", "KV Cache is allocated. {_}, K size: {n} GB", "GB"),
    Form("values", "KV Cache is allocated. {_}, V size: {n} GB", "GB"),
    Form("cache", "KV Cache is allocated. {_}KV size: {n} GB", "GB"),
    Form("pool tokens", "full_layer_tokens={n},"),
    Form("pool tokens of windows", "swa_layer_tokens={n}"),
    Form("pools", "SWAKVPool mem usage: {n} GB", "GB"),
    Form("graphs", "graph end. {_}mem usage={n} GB", "GB"),
    Form("tokens", "max_total_num_tokens={n},"),
)
LLAMA = (
    Form("file", "file size = {n} GiB", "GiB"),
    Form("file", "model size = {n} GiB", "GiB"),
    Form("file", "file size = {n} MiB", "MiB"),
    Form("file", "model size = {n} MiB", "MiB"),
    Form("bits", " GiB ({n} BPW)", "BPW"),
    Form("bits", " MiB ({n} BPW)", "BPW"),
    Form("parameters", "model params = {n} B", "B"),
    Form("parameters", "model params = {n} M", "M"),
    Form("offloaded", "offloaded {n}/"),
    Form("model", "{d} model buffer size = {n} MiB", "MiB"),
    Form("model", "llm_load_tensors: {d} buffer size = {n} MiB", "MiB"),
    Form("cache", "{d} KV buffer size = {n} MiB", "MiB"),
    Form("state", "{d} RS buffer size = {n} MiB", "MiB"),
    Form("compute", "{d} compute buffer size = {n} MiB", "MiB"),
    Form("outputs", "output buffer size = {n} MiB", "MiB"),
    Form("cache size", "llama_kv_cache{_}: size = {n} MiB (", "MiB"),
    Form("cache size", "KV self size = {n} MiB", "MiB"),
    Form("cache size", "kv self size = {n} MiB", "MiB"),
    Form("cache size", "kv self size = {n} MB", "MB"),
    Form("cache size", "self size = {n} MiB", "MiB"),
    Form("cache K", ", K ({_}): {n} MiB", "MiB"),
    Form("cache K", ", c^KV ({_}): {n} MiB", "MiB"),
    Form("cache V", ", V ({_}): {n} MiB", "MiB"),
    Form("state size", "llama_memory_recurrent: size = {n} MiB", "MiB"),
    Form("cache cells", "KV cache, size = {n} cells"),
    Form("slot", "n_ctx_seq = {n}"),
    Form("slot", "n_ctx_per_seq = {n}"),
    Form("projected", "projected to use {n} MiB of device memory", "MiB"),
    Form("model", "| - {d} ({_}) | {_} = {_} + ({_} = {n} + ", "MiB"),
    Form("context", "| - {d} ({_}) | {_} = {_} + ({_} = {_} + {n} + ", "MiB"),
    Form("compute", "| - {d} ({_}) | {_} = {_} + ({_} = {_} + {_} + {n})", "MiB"),
)
OLLAMA = (
    Form("weights", 'msg="model weights" device={d} size="{s}"'),
    Form("weights", 'msg="model weights" buffer={d} size="{s}"'),
    Form("cache", 'msg="kv cache" device={d} size="{s}"'),
    Form("compute", 'msg="compute graph" device={d} size="{s}"'),
    Form("compute", 'msg="compute graph" backend={d} buffer_type={_} size="{s}"'),
    Form("total", 'msg="total memory" size="{s}"'),
    Form("all", 'memory.required.kv="{s}"'),
    Form("repeating", 'memory.weights.repeating="{s}"'),
    Form("nonrepeating", 'memory.weights.nonrepeating="{s}"'),
    Form("all weights", 'memory.weights.total="{s}"'),
    Form("estimate", 'memory.required.full="{s}"'),
    Form("graph", 'memory.graph.full="{s}"'),
    *LLAMA,
)
FORMS = {"vllm": VLLM, "sglang": SGLANG, "llama.cpp": LLAMA, "ollama": OLLAMA}
# Markers that only one engine writes; the first one found decides, and Ollama's lines contain llama.cpp's.
MARKS = (
    ("sglang", ("server_args=ServerArgs(", "sglang", "KV Cache is allocated. ", "max_total_num_tokens=")),
    (
        "vllm",
        (
            *(
                "GPU KV cache size",
                "vLLM API server",
                "[kv_cache_utils.py",
                "Model loading took",
                "vllm",
                "# GPU blocks:",
            ),
            *("non-default args: {", "LLM engine (v", "(EngineCore", "[gpu_worker.py"),
        ),
    ),
    (
        "ollama",
        (
            "source=runner.go",
            "source=server.go",
            "source=sched.go",
            "source=llama_server.go",
            "OLLAMA_",
            'msg="model weights"',
        ),
    ),
    (
        "llama.cpp",
        (
            "llama_model_loader:",
            "load_tensors:",
            "llm_load_",
            "llama_kv_cache",
            "llama_context:",
            "print_info:",
            "llama_new_context",
            "llama_model_load_internal:",
        ),
    ),
)
# Forks, by what only they write: most of their rules are those of the engine they were forked from.
FORKS = (
    ("ik_llama.cpp", ("mla_attn = ", "fused_moe = ", "attn_max_b = ", "c^KV (", "llm_prepare_mla:")),
    ("KoboldCpp", ("Welcome to KoboldCpp",)),
    ("vLLM Ascend", ("vllm_ascend", "NPU graph memory")),
)
# Where an engine starts again in the same log.
STARTS = {
    "vllm": ("vLLM API server version", "non-default args", "Initializing an LLM engine", "Initializing a V"),
    "sglang": ("server_args=ServerArgs(",),
    "llama.cpp": ("system_info: n_threads", "build: ", "build_info: ", "llama_model_loader: loaded meta data"),
    "ollama": (
        "msg=offload ",
        'msg="offload to',
        'msg="starting runner"',
        'msg="starting llama server"',
        'msg="starting llama-server"',
    ),
}


@dataclass(frozen=True)
class Found:
    """A figure in a log: its line, key, device, number, unit, and its digits after the decimal point."""

    line: int
    key: str
    place: str
    number: Fraction
    unit: str
    digits: int

    @property
    def text(self) -> str:
        """The number as printed, without the text around it."""
        whole, rest = divmod(abs(self.number.numerator) * 10**self.digits // self.number.denominator, 10**self.digits)
        said = f"{whole:,}"
        if self.digits:
            rest_said = str(rest)
            said += "." + "0" * (self.digits - len(rest_said)) + rest_said
        space = "" if self.unit in ("x", "%") else " "
        return f"{said}{space}{self.unit}" if self.unit else said

    def of_kind(self, kind: str, keys: Sequence[str]) -> Found:
        """This figure as another kind, if it has one of these keys: of windows, of an indexer, or of a draft."""
        if not kind or self.key not in keys:
            return self
        is_apart = kind in ("draft", "projector")
        key = f"{kind} {self.key}" if is_apart else self.key.replace("cache", kind, 1)
        return Found(self.line, key, self.place, self.number, self.unit, self.digits)


def matched(form: Form, line: str, number: int) -> Found | None:
    """The figure of a line, if it has this form."""
    parts = form.parts
    for start in _places(parts, line):
        said = _captured(parts, line, start)
        if said is None:
            continue
        amount, unit = said.get("n", ""), form.unit
        if "s" in said:
            amount, _, unit = said["s"].partition(" ")
            unit = {"B": "bytes"}.get(unit, unit)
        digits = amount.replace(",", "").replace("_", "")
        value = number_of(digits)
        if value is None:
            continue
        place = said.get("d", "").split(" ")[-1].removesuffix(":")
        if len(place) > 40 or any(c not in OF_DEVICES for c in place):
            continue
        behind = len(digits.partition(".")[2])
        if unit == "M":  # millions of parameters
            value, unit, behind = value / 1000, "B", behind + 3
        return Found(number, form.key, place, value, unit, behind)
    return None


def place_of(text: str, part: str, start: int) -> int:
    """The position of a substring, searched from a position on; -1 if it is missing."""
    before, found, _ = text[start:].partition(part)
    return start + len(before) if found else -1


def _places(parts: Sequence[str], line: str) -> list[int]:
    """Where a form may start in a line: wherever its first text occurs, or at the start of the line for a form that
    starts with a device."""
    first = parts[0]
    if first.startswith("{"):
        return [0] if parts[1] in line else []
    found: list[int] = []
    if first not in line:
        return found
    at = place_of(line, first, 0)
    while at >= 0 and len(found) < 16:
        found.append(at)
        at = place_of(line, first, at + 1)
    return found


def _captured(parts: Sequence[str], line: str, start: int) -> dict[str, str] | None:
    """The texts in the gaps of a form from a position on; None if the line does not match."""
    at = start
    found: dict[str, str] = {}
    for i, part in enumerate(parts):
        if not part.startswith("{"):
            if line[at : at + len(part)] != part:
                return None
            at += len(part)
            continue
        if part == "{n}":
            end = _end_of_number(line, at)
            if end == at:
                return None
            found["n"] = line[at:end]
            at = end
            continue
        following = parts[i + 1] if i + 1 < len(parts) else ""
        end = place_of(line, following, at) if following else len(line)
        if end < 0:
            return None
        found[part[1:-1]] = line[at:end]
        at = end
    return found


def _end_of_number(line: str, at: int) -> int:
    """Where a number that starts at a position ends: a point or a comma belongs to it if a digit follows."""
    end = at
    while end < len(line) and (
        line[end] in DIGITS or line[end] in ".," and line[end + 1 : end + 2] in DIGITS and line[end + 1 : end + 2]
    ):
        end += 1
    return end


def word(text: str, signs: str) -> str:
    """The leading part of a string that consists of these characters."""
    end = 0
    while end < len(text) and text[end] in signs and end < 96:
        end += 1
    return text[:end]


def whole_behind(line: str, mark: str) -> str:
    """The whole number after a marker; "" if there is none, or if it is too long."""
    _, found, rest = line.partition(mark)
    said = word(rest, DIGITS) if found else ""
    return said if 0 < len(said) < 12 else ""


def whole_before(line: str, mark: str) -> str:
    """The whole number before a marker."""
    before, found, _ = line.partition(mark)
    said = before.split(" ")[-1].replace(",", "")
    return said if found and said and all(c in DIGITS for c in said) and len(said) < 12 else ""


def value_in(line: str, key: str) -> str:
    """The value of a key in a dict or a call as Python writes them; "" if it is missing."""
    for before, behind in (
        ("'" + key + "': ", ",}"),
        ('"' + key + '": ', ",}"),
        (" " + key + "=", ",)"),
        ("(" + key + "=", ",)"),
    ):
        if before not in line:
            continue
        rest = line.partition(before)[2]
        if rest[:1] in ("'", '"'):
            return rest[1:].partition(rest[0])[0]
        end = 0
        while end < len(rest) and rest[end] not in behind and end < 64:
            end += 1
        return rest[:end].strip()
    return ""
