"""An answer's command line, read by the same grammar, gives the same answer; and its log names the same options."""

from __future__ import annotations

import itertools
import random
import re
from typing import Any

import pytest
from test_logs import LINES, MARKS

from macros.api.deployments import Served, served_by
from macros.api.logs import reading
from macros.api.model import read
from macros.counting import deploying
from macros.counting.conditions import Conditions
from macros.counting.deployments import written
from macros.counting.engine_options import JSON, NUMBER, SHARE, SHARES, SWITCH, TOKENS, WHOLE, Option, words_of
from macros.counting.log_rows import State
from macros.engine.errors import Problem

MODELS = ("llama3.1-8b", "qwen3-30b-a3b", "gemma3-12b", "qwen3.6-27b", "deepseek-v2-lite", "gpt-oss-20b")
DEVICES = (None, "24GB", "80GB+80GB", "24GB+12GB")
TIMES = 100
# Values of options that take a text of no closed list; a draft of another model is left to its own tests.
TEXTS = {
    "gpu_layers": ("0", "12", "all"),
    "override": ("exps=CPU", r"blk\.[0-9]\.ffn=CPU"),
    "draft_type": ("draft-mtp",),
}
DRAFTS = ("mtp", "eagle", "ngram")
LEFT_OUT = ("draft_model",)
# What is given beside the command line: what Ollama takes as a parameter of the model, not of its server; what is
# known of the machine or of the draft's config, as devices are, and no option of the engine.
BESIDE = {
    "ollama": ("--num-batch", "--num-gpu", "num_batch", "num_gpu"),
    "tensorrt-llm": ("--available-memory",),
    "sglang": ("--speculative-draft-layers",),
}
# The file that a note of TensorRT-LLM gives for what its server has no option for.
IN_FILE = re.compile(r"In the file of --extra_llm_api_options: kv_cache_config: \{(.*)\}\.")
OF_FILE = {"tokens_per_block": "--tokens-per-block", "max_tokens": "--max-tokens", "dtype": "--kv-cache-dtype"}


def value(option: Option, dice: random.Random) -> list[str]:
    """A valid value of an option, as words."""
    if option.kind == SWITCH:
        return []
    if option.choices:
        return [dice.choice(option.choices)]
    if option.kind == SHARE:
        return [f"0.{dice.randrange(1, 10000):04}"]
    if option.kind == SHARES:
        return [dice.choice(("3,1", "1,2.5", "0.333333,0.666667"))]
    if option.kind == TOKENS:
        return [str(dice.choice((256, 1000, 4096, 8192, 32768, 100_000)))]
    if option.kind == JSON:
        return [f'{{"method": "{dice.choice(DRAFTS)}", "num_speculative_tokens": {dice.randrange(1, 5)}}}']
    if option.kind in (WHOLE, NUMBER):
        return [str(dice.choice((1, 1, 2, 4, 16, 64)) if option.kind == WHOLE else dice.randrange(0, 40))]
    if option.key in TEXTS:
        return [dice.choice(TEXTS[option.key])]
    return [str(dice.randrange(2**30, 2**36))]


def asked(engine: str, dice: random.Random) -> list[str]:
    """Some of an engine's options."""
    options = [one for one in deploying.options_of(engine) if one.key not in LEFT_OUT]
    words: list[str] = []
    for option in dice.sample(options, dice.randrange(0, 7)):
        words += [dice.choice([*option.names, *option.off]), *value(option, dice)]
        if words[-1] in option.off:
            continue
    clean: list[str] = []
    off = {name for option in options for name in option.off}
    takes = {name: option.kind != SWITCH for option in options for name in option.names}
    at = 0
    while at < len(words):
        clean.append(words[at])
        if words[at] in off:
            at += 2 if at + 1 < len(words) and words[at + 1] not in takes and words[at + 1] not in off else 1
            continue
        if takes.get(words[at]):
            clean.append(words[at + 1])
            at += 1
        at += 1
    return clean


def answer(engine: str, model: str, on: str | None, words: list[str]) -> Served:
    weights = "Q4_K_M" if engine in ("llama.cpp", "ollama") else "published"
    return served_by(read(model), Conditions(4096, 1, weights, "bfloat16"), engine, on, words)


def beside(engine: str, words: list[str], served: Served) -> list[str]:
    """What belongs to an answer's command line and does not stand in it, as words."""
    found: list[str] = []
    for name, value in itertools.pairwise(words):
        found += [name, value] if name in BESIDE.get(engine, ()) else []
    for note in served.deployment.notes:
        inside = IN_FILE.fullmatch(note)
        for pair in inside[1].split(", ") if inside else []:
            key, _, value = pair.partition(": ")
            found += [OF_FILE[key], value]
    return found


def said(served: Served) -> dict[str, Any]:
    """What an answer says, without the command line."""
    deployment = served.deployment
    return {
        "figures": [(f.key, f.place, f.text) for f in deployment.figures],
        "places": [(p.name, p.limit, [(t.key, t.least, t.most) for t in p.terms]) for p in deployment.places],
        "advice": deployment.advice,
    }


@pytest.mark.parametrize("engine", deploying.ENGINES)
def test_the_command_line_of_an_answer_gives_the_same_answer(engine):
    """For random options of every engine; the command line is that of itself, too."""
    dice, held = random.Random(f"{engine} 1"), 0
    for _ in range(TIMES):
        model, on, words = dice.choice(MODELS), dice.choice(DEVICES), asked(engine, dice)
        try:
            first = answer(engine, model, on, words)
        except Problem:
            continue
        command = [*first.deployment.command, *beside(engine, words, first)]
        second = answer(engine, model, on, command)
        assert said(second) == said(first), (model, on, words, command)
        assert second.deployment.command == first.deployment.command
        assert first.command.endswith(" ".join(first.command.split(" ")[-1:]))
        assert words_of(first.command)
        held += 1
    assert held > TIMES // 5


# What a log prints of an answer, by engine: the keys of figures whose lines `test_logs.LINES` has.
PRINTED = {
    "vllm": ("block", "padding", "loaded", "tokens", "concurrency"),
    "sglang": ("keys", "values"),
    "llama.cpp": ("model", "cache", "cache size", "windows size", "state size", "outputs"),
}


# Lines with one figure alone.
ALONE = {
    "keys": "KV Cache is allocated. dtype: torch.bfloat16, K size: {} GB",
    "values": "KV Cache is allocated. dtype: torch.bfloat16, V size: {} GB",
}


def log_of(engine: str, served: Served) -> str:
    """The log of an answer: the command line, and its figures in the engine's format."""
    lines = [f"$ {served.command}", MARKS[engine].format(version=f"{served.version}.0")]
    for f in served.deployment.figures:
        if f.key not in PRINTED[engine] or f.least != f.most:
            continue
        number = written(f.value(f.least), f.digits)
        if f.key.startswith("windows"):
            lines.append("llama_kv_cache_iswa: creating     SWA KV cache")
        elif f.key.startswith("cache"):
            lines.append("llama_kv_cache_iswa: creating non-SWA KV cache")
        lines.append(
            ALONE.get(f.key, LINES[engine][f.key])
            .replace("{}", number)
            .format(device=f.place, tokens="", length="8,192", room="")
        )
    return "\n".join(lines)


@pytest.mark.parametrize("engine", PRINTED)
def test_a_log_names_the_options_of_its_answer(engine):
    """The command line of an answer stands in its log: it is read again, and every figure is equal."""
    dice, held = random.Random(f"{engine} 2"), 0
    for _ in range(TIMES):
        model, words = dice.choice(MODELS), asked(engine, dice)
        if engine == "vllm":
            words = [word for word in words if "memory" not in word or "util" in word]
            words += ["--kv-cache-memory-bytes", str(dice.randrange(2**32, 2**36)), "--max-model-len", "8192"]
        if engine == "sglang":
            words += ["--max-total-tokens", str(dice.randrange(10_000, 300_000))]
        try:
            first = answer(engine, model, None, words)
        except Problem:
            continue
        again = reading(log_of(engine, first), model, weights=first.given.format)
        assert again.replay.deployment.command == first.deployment.command, words
        assert [row for row in again.replay.rows if row.state not in (State.EQUAL, State.GIVEN)] == [], words
        held += 1
    assert held > TIMES // 5
