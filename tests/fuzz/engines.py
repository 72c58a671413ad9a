"""Options of engines and their start-up logs, drawn and damaged: a reading or one line, nothing personal in it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from macros.api.deployments import served_by
from macros.api.logs import reading
from macros.api.model import read
from macros.counting import deploying
from macros.counting.conditions import Conditions
from macros.counting.engine_options import SWITCH
from macros.counting.log_rows import State
from macros.engine.errors import Problem

from . import Case, within
from .texts import text

FEW = 40
SECONDS = 6.0  # a log is held against several options
LOGS = Path(__file__).parent.parent / "counting" / "whole_logs.jsonl"
MODELS = (
    "llama3.1-8b",
    "qwen3-30b-a3b",
    "gemma3-12b",
    "qwen3.6-27b",
    "deepseek-v3",
    "gpt-oss-20b",
    "bert-base",
    "t5-base",
)
DEVICES = (None, "24GB", "2x80GB", "24GB+12GB", "rtx-4090,free:1MiB", "8xh100")
VALUES = (
    "0",
    "1",
    "2",
    "7",
    "4096",
    "999999999999",
    "0.5",
    "1.5",
    "-1",
    "",
    "auto",
    "on",
    "3,1",
    "fp8",
    "32k",
    "1e9",
    "²",
)
ENGINES = ("vllm", "sglang", "llama.cpp", "ollama", "tensorrt-llm")
DAMAGES = ("cut", "doubled", "number", "text", "joined", "swapped", "long")
SECRET = "hf_zzz/home/zzz"


@cache
def logs() -> list[dict[str, Any]]:
    return [json.loads(line) for line in LOGS.read_text("utf-8").splitlines()]


def draw(rng: random.Random) -> Case:
    if rng.random() < 0.5:
        engine = rng.choice(ENGINES)
        words: list[str] = []
        for option in rng.sample(deploying.options_of(engine), rng.randrange(6)):
            words.append(rng.choice([*option.names, *option.off]))
            if option.kind != SWITCH or rng.random() < 0.1:
                words.append(rng.choice((*option.choices, *VALUES, text(rng)[:40])))
        return {"engine": engine, "words": words, "model": rng.choice(MODELS), "on": rng.choice(DEVICES)}
    log = rng.choice(logs())
    lines = [f"{key}: {value}" for key, value in log["facts"].items()] + [SECRET, *log["lines"]]
    for _ in range(rng.randrange(1, 8)):
        lines = damaged(rng, lines)
    return {"engine": log["engine"], "lines": lines, "model": rng.choice((log["model"], *MODELS, None))}


def damaged(rng: random.Random, lines: list[str]) -> list[str]:
    """The lines with one of them changed."""
    at, how = rng.randrange(len(lines)), rng.choice(DAMAGES)
    line = lines[at]
    if how == "cut":
        line = line[: rng.randrange(len(line) + 1)]
    elif how == "doubled":
        return [*lines[:at], *[line] * rng.randrange(2, 40), *lines[at:]]
    elif how == "number":
        digits = rng.choice(("0", "9" * 18, "1" * 400, "0.00", "1,2,3", "-5", "٣", "1.", ".5"))
        line = "".join(digits if c.isdigit() and rng.random() < 0.3 else c for c in line)
    elif how == "text":
        line = line[: len(line) // 2] + text(rng)[:200] + line[len(line) // 2 :]
    elif how == "joined":
        line += " " + rng.choice(rng.choice(logs())["lines"])
    elif how == "swapped":
        other = rng.randrange(len(lines))
        lines = list(lines)
        lines[other], line = line, lines[other]
    else:
        line += "(" * rng.choice((10, 5000))
    return [*lines[:at], line, *lines[at + 1 :]]


def trial(case: Case, folder: Path) -> None:
    with within(SECONDS):
        try:
            answer = logged(case) if "lines" in case else served(case)
        except Problem as problem:
            assert "\n" not in str(problem), problem
            return
    json.dumps(answer.to_dict(), allow_nan=False)
    assert "\n" not in answer.sentence


def served(case: Case) -> Any:
    """An answer; each term and figure has its ends in order."""
    given = Conditions(4096, 1, "Q4_K_M" if case["engine"] in ("llama.cpp", "ollama") else "published", "bfloat16")
    answer = served_by(read(case["model"]), given, case["engine"], case["on"], case["words"])
    for figure in answer.deployment.figures:
        assert figure.least <= figure.most, figure
    for place in answer.deployment.places:
        assert all(0 <= term.least <= term.most for term in place.terms), place
    return answer


def logged(case: Case) -> Any:
    """A reading; each row is of a line, and nothing personal is kept."""
    whole = "\n".join([*case["lines"], ""])
    answer = reading(whole, case["model"], engine=case["engine"])
    assert SECRET not in repr(answer.to_dict()) + repr(answer.log)
    assert all(row.state in State and 0 < row.line <= whole.count("\n") for row in answer.replay.rows)
    return answer


def smaller(case: Case) -> Iterator[Case]:
    key = "lines" if "lines" in case else "words"
    for at in range(len(case[key])):
        yield {**case, key: [*case[key][:at], *case[key][at + 1 :]]}
