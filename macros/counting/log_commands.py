"""Reads a command line in a log: the model, and the options with a valid value, by the engine's own grammar.

Only names of options, numbers and plain words are kept, and a model's name without its path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..engine.errors import Problem
from .engine_options import DIGITS, JSON, SWITCH, Option, value_of, words_of
from .log_forms import LETTERS, word

Facts = dict[
    str, str
]  # by option, or by "model", "served", "version", "architecture", "weights", "dtype", "quantization"
NAMES = LETTERS + DIGITS + "-_./:+"
PATTERNS = ",=\\[]()|*+?^$%"
SMALL = "abcdefghijklmnopqrstuvwxyz0123456789_"
# Programs in a command line, by engine; the model follows, or an option names it.
PROGRAMS = {
    "vllm": ("vllm serve ", "vllm.entrypoints.openai.api_server "),
    "sglang": ("sglang.launch_server ", "sglang serve "),
    "llama.cpp": (
        *("llama-server ", "llama-cli ", "llama-server.exe ", "llama-bench ", "llama-perplexity "),
        "llama-completion ",
    ),
    "ollama": ("llama-server ", "ollama_llama_server ", "ollama runner ", "ollama.exe runner ", "runner.exe "),
}
# Images whose entry point is such a program: whatever follows the tag is its command line.
IMAGES = {
    "vllm": ("vllm/vllm-openai:", "rocm/vllm:", "nvcr.io/nvidia/vllm:"),
    "llama.cpp": ("ggml-org/llama.cpp:server", "ggerganov/llama.cpp:server"),
}


def model_name(path: str) -> str:
    """The name of a model without leading folders: at most an owner and a name, in letters, digits and a few signs."""
    parts = [part for part in path.replace("\\", "/").split("/") if part]
    is_path = path.startswith(("/", ".", "~")) or ":" in path or "\\" in path or len(parts) > 2
    said = parts[-1] if is_path and parts else "/".join(parts[-2:])
    for part in reversed(parts):  # a folder of a hub's cache: models--Qwen--Qwen3-14B
        if part.startswith("models--"):
            said = part.removeprefix("models--").replace("--", "/")
            break
    return word(said, NAMES)[:96]


def command_in(line: str, engine: str, options: Sequence[Option], facts: Facts) -> None:
    """The options and the model of a command line that the log shows, by the engine's own grammar."""
    for program in (*PROGRAMS.get(engine, ()), *IMAGES.get(engine, ())):
        if program not in line:
            continue
        rest = line.partition(program)[2]
        if program in IMAGES.get(engine, ()):
            rest = rest.partition(" ")[2]
        if engine == "llama.cpp" and "file" not in facts and (said := _file_in(" " + rest)):
            facts["file"] = said
        try:
            words = words_of(rest.replace("\\n", " ").removesuffix('"'))
        except Problem:
            continue
        model = _options_in(words, options, facts)
        if engine == "vllm" and words and not words[0].startswith("-"):
            model = model or words[0]
        if model and "model" not in facts and engine in ("vllm", "sglang"):
            facts["model"] = model_name(model)
        return


def cached_name(line: str) -> str:
    """The name of a model whose folder in a hub's cache a line shows; "" for none."""
    _, found, rest = line.partition("models--")
    return model_name("models--" + word(rest, NAMES).partition("/")[0]) if found else ""


def _file_in(rest: str) -> str:
    """The name of the file that an option names, without its path; "" if none does."""
    for mark in (" -m ", " --model "):
        _, found, said = rest.partition(mark)
        if found:
            said = said[1:].partition(said[0])[0] if said[:1] in ("'", '"') else said.partition(" ")[0]
            return model_name("/" + said.removesuffix(".gguf")) if said.endswith(".gguf") else ""
    return ""


def _options_in(words: Sequence[str], options: Sequence[Option], facts: Facts) -> str:
    """The options with a valid value among words, and the value of an option that names the model."""
    known = {name: option for option in options for name in option.names}
    off = {name: option for option in options for name in option.off}
    model = ""
    at = 0
    while at < len(words):
        name, equals, given = words[at].partition("=")
        name = name.replace("_", "-") if name.startswith("--") else name
        following = given if equals else words[at + 1] if at + 1 < len(words) else ""
        at += 1
        if name in ("--model", "--model-path", "-m"):
            model = following
        if name in off:
            facts[name] = ""
        option = known.get(name)
        if option is None or option.key == "draft_model":
            continue
        first = option.names[0]
        if option.kind == SWITCH:
            facts[first] = ""
        elif first not in facts and following and not following.startswith("--"):
            said = _safe(option, name, following)
            if said:
                facts[first] = said
    return model


def _safe(option: Option, name: str, text: str) -> str:
    """The value of an option if it is safe to keep: a number, a plain word, a draft's method; "" otherwise."""
    try:
        value = value_of(option, name, text)
    except Problem:
        return ""
    if option.kind == JSON:
        return draft_of(value) if isinstance(value, dict) else ""
    return text if word(text, NAMES + PATTERNS) == text else ""


def draft_of(said: Mapping[str, object]) -> str:
    """A draft's method and the number of tokens that it proposes, as a JSON object; "" without them."""
    method, number = said.get("method"), said.get("num_speculative_tokens")
    if not isinstance(method, str) or not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 1000:
        return ""
    return '{"method": "' + word(method, SMALL) + '", "num_speculative_tokens": ' + str(number) + "}"
