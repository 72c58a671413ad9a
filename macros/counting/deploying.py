"""The engines that are modeled on several devices, by name: their options, versions and rules. Each has its own module,
loaded on demand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..engine.errors import Problem, nearest, shorten
from .conditions import Conditions
from .costs import Costs
from .deployments import Card, Deployment
from .engine_options import Option, Value, read, switch, whole
from .runs import left_out

if TYPE_CHECKING:
    from .weight_formats import WeightFormats

ENGINES = ("vllm", "sglang", "llama.cpp", "ollama", "tensorrt-llm")
FRAMEWORKS = ("megatron", "deepspeed", "torchtitan")  # training frameworks, handled the same way
TITLES = {
    "megatron": "Megatron-LM",
    "deepspeed": "DeepSpeed",
    "torchtitan": "torchtitan",
    "vllm": "vLLM",
    "sglang": "SGLang",
    "llama.cpp": "llama.cpp",
    "ollama": "Ollama",
    "tensorrt-llm": "TensorRT-LLM",
}
OTHER_NAMES = {
    "llama-cpp": "llama.cpp",
    "llamacpp": "llama.cpp",
    "llama-server": "llama.cpp",
    "trt-llm": "tensorrt-llm",
    "trtllm": "tensorrt-llm",
    "tensorrt_llm": "tensorrt-llm",
}
# What an engine does with a longer context than the model was made for.
BEYOND = {
    "vllm": "vLLM refuses more, unless VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 is set.",
    "sglang": "SGLang refuses more, unless SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 is set.",
    "llama.cpp": "llama.cpp warns and goes on; what it writes beyond may be nonsense.",
    "ollama": "Ollama takes the smaller number.",
    "tensorrt-llm": "What it writes beyond may be nonsense.",
}
COMMANDS = {
    "vllm": "vllm serve",
    "sglang": "python -m sglang.launch_server --model-path",
    "llama.cpp": "llama-server -m",
    "ollama": "ollama run",
    "tensorrt-llm": "trtllm-serve",
}


def named(name: object) -> str:
    """An engine given its name, in upper or lower case. Raises `Problem`."""
    lower = name.lower() if isinstance(name, str) else ""
    meant = OTHER_NAMES.get(lower, lower)
    if meant not in ENGINES:
        raise Problem(
            f"engine = {shorten(name)}: no such engine", nearest(str(name), ENGINES, f"one of {', '.join(ENGINES)}")
        )
    return meant


def options_of(engine: str) -> tuple[Option, ...]:
    """The options of an engine, or of a framework."""
    if engine in FRAMEWORKS:
        from .frameworks import OPTIONS as of_framework

        return of_framework[engine]
    return _rules(engine)[0]


def ignored_by(engine: str) -> tuple[str, ...]:
    """The options of an engine that do not affect the memory modeled here."""
    return () if engine in FRAMEWORKS else _rules(engine)[1]


def _rules(engine: str) -> tuple[tuple[Option, ...], tuple[str, ...]]:
    """The options of an engine, and those that are ignored."""
    if engine == "vllm":
        from . import vllm_options as of_vllm

        return of_vllm.OPTIONS, of_vllm.IGNORED
    if engine == "sglang":
        from . import sglang as of_sglang

        return of_sglang.OPTIONS, of_sglang.IGNORED
    if engine == "llama.cpp":
        from . import llama_options as of_llama

        return of_llama.OPTIONS, of_llama.IGNORED
    if engine == "ollama":
        from . import ollama as of_ollama

        return of_ollama.OPTIONS, of_ollama.IGNORED
    from . import tensorrt_llm as of_tensorrt

    return of_tensorrt.OPTIONS, of_tensorrt.IGNORED


def options(
    engine: str, words: Sequence[str], lenient: bool = False, others: Sequence[str] = ()
) -> tuple[dict[str, Value], list[str]]:
    """The values of an engine's options given in the words of its command line, and the ignored words; a wrong name may
    belong to one of `others`. Raises `Problem`."""
    return read(options_of(engine), words, TITLES[engine], ignored_by(engine), lenient, others)


def with_tower(engine: str, values: Mapping[str, Value], tower: list[int] | None) -> dict[str, Value]:
    """The options with the number of layers and the width of the model's image tower, from which SGLang computes its
    share."""
    if engine != "sglang" or tower is None:
        return {**values}
    from .sglang import TOWER

    return {**values, TOWER: tower}


def deploy(
    engine: str,
    costs: Costs,
    given: Conditions,
    values: Mapping[str, Value],
    cards: Sequence[Card],
    version: str = "",
    longest: int = 0,
    draft: Costs | None = None,
    formats: WeightFormats | None = None,
) -> Deployment:
    """Deploy a model on these devices under an engine with these options. Remarks say if the model was not made for
    such a context, if the engine does not run the format there and, given the model's formats, which format fits where
    the requested one does not. Raises `Problem`."""
    answer = _deploy(engine, costs, given, values, cards, version, longest, draft)
    if not version and engine in TITLES:  # the table describes the newest versions
        runs = "llama.cpp" if engine == "ollama" else TITLES[engine]
        strange = [said for card in cards if (said := left_out(given.format, card, runs, costs.published))]
        answer = replace(answer, notes=(*dict.fromkeys(strange), *answer.notes)) if strange else answer
        if cards and answer.is_known and (strange or not answer.is_enough):
            said = _instead(engine, costs, formats, given, values, cards, longest, draft)
            answer = replace(answer, advice=(*answer.advice, said)) if said else answer
    tokens = _tokens_of_a_request(engine, values)
    if engine in FRAMEWORKS or not longest or tokens <= longest:
        return answer
    beyond = f"{tokens:,} tokens per request: the model was made for {longest:,}. {BEYOND[engine]}"
    return replace(answer, notes=(beyond, *answer.notes))


def _instead(
    engine: str,
    costs: Costs,
    formats: WeightFormats | None,
    given: Conditions,
    values: Mapping[str, Value],
    cards: Sequence[Card],
    longest: int,
    draft: Costs | None,
) -> str:
    """The first format of the ladder that the engine runs on these devices and that is certain to fit with the same
    options; empty if there is none."""
    from .fitting import LADDER

    runs, room = "llama.cpp" if engine == "ollama" else TITLES[engine], sum(card.free_bytes for card in cards)
    for format in LADDER if formats is not None else ():
        if format == given.format or not costs.is_there(format) or costs.weight_bytes(format) > room:
            continue
        if any(left_out(format, card, runs, costs.published) for card in cards):
            continue
        try:
            there = _deploy(engine, costs, given.in_format(format), values, cards, "", longest, draft)
        except Problem:
            continue  # this engine does not serve the format
        if there.is_enough and formats is not None:
            return f"{formats.phrase(format).removeprefix('in ')} fits with the same options."
    return ""


def _tokens_of_a_request(engine: str, values: Mapping[str, Value]) -> int:
    """The tokens of a request that the options ask for; 0 if they ask for none."""
    if engine not in ("llama.cpp", "ollama"):
        return whole(values, "length", 0)
    is_shared = engine == "ollama" or switch(values, "unified", False)
    return whole(values, "context", 0) // (1 if is_shared else max(whole(values, "parallel", 1), 1))


def _deploy(
    engine: str,
    costs: Costs,
    given: Conditions,
    values: Mapping[str, Value],
    cards: Sequence[Card],
    version: str,
    longest: int,
    draft: Costs | None,
) -> Deployment:
    if engine in FRAMEWORKS:
        from .frameworks import deploy as of_framework

        return of_framework(engine, costs, given, values, cards, version)
    if engine == "vllm":
        from .vllm_server import deploy as of_vllm

        return of_vllm(costs, given, values, cards, version, longest, draft)
    if engine == "sglang":
        from .sglang import deploy as of_sglang

        return of_sglang(costs, given, values, cards, version, longest, draft)
    if engine == "llama.cpp":
        from .llama_devices import deploy as of_llama

        return of_llama(costs, given, values, cards, version, longest, draft)
    if engine == "ollama":
        from .ollama import deploy as of_ollama

        return of_ollama(costs, given, values, cards, version, longest, draft)
    from .tensorrt_llm import deploy as of_tensorrt

    return of_tensorrt(costs, given, values, cards, version, longest, draft)
