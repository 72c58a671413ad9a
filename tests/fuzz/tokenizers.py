"""`run --text` by a tokenizer.json that nobody would write, whether a list of words or one for the library."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import Case, checkpoints
from .command_line import answered
from .configs import strange
from .texts import text

FEW = 15
SECONDS = 3.0

V = 97  # of the golden checkpoint
WORDS = (
    "a",
    "b",
    "the",
    "New York",
    "\x1b[31mred",
    "\u202egnirts",
    "a\nb",
    "",
    " ",
    "é",
    "\ud800",
    "w" * 9999,
    *"abcdefgh",
)
PLAIN = ("a", "b", "a", "b", "ab", "the", "New York")
IDS = (-1, 0, V - 1, V, 2**31, 2**32 - 1, 2**32, 2**63, 10**30)
MODELS: tuple[dict[str, Any], ...] = (
    {"type": "WordLevel", "vocab": {"a": 1, "b": 2, "the": 3}},
    {"type": "WordLevel", "vocab": {"a": 1, "b": 2, "[UNK]": 3}, "unk_token": "[UNK]"},
    {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]},
    {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": [["a", "b"]], "byte_fallback": True},
    {"type": "Unigram", "vocab": [["a", 0.0], ["b", -1.0]], "unk_id": 0},
    {"type": "WordPiece", "vocab": {"a": 0, "##b": 1, "[UNK]": 2}, "unk_token": "[UNK]"},
    {"type": "Nothing"},
)
PARTS: dict[str, tuple[Any, ...]] = {
    "pre_tokenizer": (
        {"type": "Whitespace"},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        {"type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "behavior": "Isolated", "invert": False},
        {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False},
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
        {"type": "Sequence", "pretokenizers": []},
    ),
    "normalizer": (
        {"type": "NFKC"},
        {"type": "Replace", "pattern": {"String": ""}, "content": "aa"},
        {"type": "Replace", "pattern": {"Regex": ""}, "content": "a" * 999},
        {"type": "Prepend", "prepend": "\x1b"},
        {"type": "Precompiled", "precompiled_charsmap": "ABCD"},
    ),
    "post_processor": (
        {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[X]", "type_id": 0}}],
            "pair": [],
            "special_tokens": {},
        },
        {"type": "BertProcessing", "sep": ["b", 2**31], "cls": ["a", 999]},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True},
    ),
    "decoder": (
        {"type": "ByteLevel"},
        {"type": "WordPiece", "prefix": "##", "cleanup": True},
        {"type": "ByteFallback"},
    ),
    "padding": (
        {
            "strategy": {"Fixed": 10**12},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "a",
        },
    ),
    "truncation": ({"direction": "Left", "max_length": 0, "strategy": "LongestFirst", "stride": 9},),
}


def draw(rng: random.Random) -> Case:
    model = copy.deepcopy(rng.choice(MODELS))
    listed: dict[str, Any] = {"version": "1.0", "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    if isinstance(model.get("vocab"), dict):
        for _ in range(rng.choice((0, 1, 3))):
            word = rng.choice(WORDS) if rng.random() < 0.7 else text(rng)
            model["vocab"][word] = rng.randrange(V) if rng.random() < 0.7 else rng.choice(IDS)
        if rng.random() < 0.3:
            model["vocab"] |= {f"{rng.choice(WORDS[4:7])}{i}": i for i in range(V)}
    if rng.random() < 0.4:
        listed["added_tokens"] = [added(rng) for _ in range(rng.choice((1, 2, 2000)))]
    for part in rng.sample([*PARTS], rng.choice((0, 0, 0, 1, 2))):
        listed[part] = rng.choice(PARTS[part])
    if rng.random() < 0.2:
        where = rng.choice((listed, model))
        key = rng.choice([*where])
        where[key] = strange(rng, where[key])
    spoilt = [rng.randrange(400), text(rng)[:20]] if rng.random() < 0.1 else None
    how_many = rng.choice((0, 1, 2, 3, 3, 7))
    said = " ".join(text(rng)[:99] if rng.random() < 0.05 else rng.choice(PLAIN) for _ in range(how_many))
    return {"listed": listed, "spoilt": spoilt, "text": said, "generate": rng.random() < 0.5}


def added(rng: random.Random) -> dict[str, Any]:
    token = {"id": rng.choice((2, 3, 5, *IDS)), "content": rng.choice(WORDS)}
    return token | {k: rng.random() < 0.5 for k in ("single_word", "lstrip", "rstrip", "normalized", "special")}


def smaller(case: Case) -> Iterator[Case]:
    for key in case["listed"]:
        yield case | {"listed": {k: v for k, v in case["listed"].items() if k != key}}
    model = case["listed"].get("model")
    if isinstance(model, dict) and isinstance(model.get("vocab"), dict):
        for word in model["vocab"]:
            less = {w: i for w, i in model["vocab"].items() if w != word}
            yield case | {"listed": case["listed"] | {"model": model | {"vocab": less}}}
    yield case | {"text": case["text"][: len(case["text"]) // 2]}
    yield case | {"spoilt": None, "generate": False}


def trial(case: Case, folder: Path) -> None:
    checkpoints.write({"base": "gpt2", "changes": []}, folder)
    written = json.dumps(case["listed"])
    if case["spoilt"]:
        at, piece = case["spoilt"]
        written = written[:at] + piece + written[at:]
    (folder / "tokenizer.json").write_bytes(written.encode("utf-8", "surrogatepass"))
    more = ["--generate=2"] if case["generate"] else []
    status, out, err = answered(["run", str(folder), f"--text={case['text']}", *more], SECONDS, memory=None)
    assert status != 1 and (err.count("\n") == 1 if status else not err), err
    assert status or len(out.splitlines()) == (6 if not more else 6 + 1 + 3 + 1 + 1), out
