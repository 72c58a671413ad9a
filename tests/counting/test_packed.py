"""vLLM's packed groups: random models of DeepSeek V4's kind as its own functions group them, and a printed log."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from macros.api.deployments import Served, served_by
from macros.api.model import read
from macros.catalogue.presets import preset
from macros.counting.conditions import Conditions
from macros.engine.errors import Problem

RECORDED = json.loads((Path(__file__).parent.parent / "golden" / "vllm_packed.json").read_text("utf-8"))


@cache
def published() -> dict[str, Any]:
    return dict(preset("deepseek-v4-flash").config or {})


def asked(model: Any, *words: str, on: str | None = None) -> Served:
    *options, version = ["", *words] if words and words[-1][:2] == "0." else [*words, ""]
    given = Conditions(4096, 1, "published", "bfloat16")
    return served_by(read(model), given, "vllm", on, [word for word in options if word], version)


def counted(row: dict[str, Any]) -> list[int]:
    """Bytes of a block and blocks of a request."""
    raw = {**published(), "num_hidden_layers": len(row["layers"])}
    raw["compress_ratios"] = [*row["layers"], 0]
    words = ["--max-model-len", str(row["length"]), "--max-num-batched-tokens", str(row["step"])]
    words += ["--pipeline-parallel-size", str(row["stages"])]
    if row["drafts"]:
        words += ["--speculative-config", '{"method": "mtp", "num_speculative_tokens": 1}']
    (rule,) = [f.rule for f in asked(raw, *words).deployment.figures if f.key == "needed"]
    blocks, _, _, size, _ = rule.replace(",", "").split(" ")
    return [int(size), int(blocks)]


@pytest.mark.parametrize("row", RECORDED, ids=range(len(RECORDED)))
def test_groups_are_those_of_vllm_s_own_functions(row):
    assert counted(row) == row["is"]


def test_a_printed_log_of_deepseek_v4():
    """12 GiB on one card, 262,144 tokens, steps of 8,192: 437,337 tokens and 1.67x, in a public repository."""
    words = "--kv-cache-memory-bytes 12884901888 --max-model-len 262144 --max-num-batched-tokens 8192"
    deployment = asked("deepseek-v4-flash", *words.split(" ")).deployment
    said = {f.key: f.text for f in deployment.figures}
    assert (said["tokens"], said["concurrency"]) == ("437,337 tokens", "1.67x")
    assert "old tokens" not in said and "row" not in said


@pytest.mark.parametrize(
    ("words", "on", "said"),
    [
        (
            ["--speculative-config", '{"method": "eagle3", "num_speculative_tokens": 1}'],
            None,
            "no rule is known for vLLM's pages of this draft beside packed ones; leave it out, or give the model's own "
            'heads: {"method": "mtp", "num_speculative_tokens": 1}',
        ),
        (
            [],
            "8xmi300x",
            "no rule is known for vLLM's packed pages on other devices than NVIDIA's; leave out the engine",
        ),
        (
            ["--decode-context-parallel-size", "2"],
            None,
            "no rule is known for vLLM's packed pages over contexts; leave out --decode-context-parallel-size and "
            "--prefill-context-parallel-size",
        ),
        (["--kv-cache-dtype", "bfloat16"], None, "vLLM has no cache of type bfloat16 for this model; give fp8"),
        (["--kv-cache-dtype", "nvfp4"], None, "vLLM has no cache of type nvfp4 for this model; give fp8"),
        (
            ["0.28"],
            None,
            "no rule is known for vLLM's pages of this model before 0.29; give --engine-version 0.29, or a later one",
        ),
    ],
)
def test_what_has_no_rule_is_refused(words, on, said):
    with pytest.raises(Problem) as raised:
        asked("deepseek-v4-flash", *words, on=on)
    assert str(raised.value) == said


def test_rows_of_another_width_are_refused():
    """vLLM's pages are made for 512 elements."""
    with pytest.raises(Problem) as raised:
        asked({**published(), "head_dim": 256})
    assert str(raised.value) == "no rule is known for vLLM's pages of this model's cache; leave out the engine"


def test_a_type_with_a_scale_per_token_and_head():
    """Of 8 bits, and a float behind the keys and the values of each head: by vLLM 0.33's `customize_spec`."""
    served = asked("llama3.1-8b", "--kv-cache-dtype", "int8_per_token_head", on="h100")
    (term,) = [term for term in served.deployment.places[0].terms if term.key == "cache"]
    assert term.most == 32 * 2 * 8 * (128 + 4) * 4096
    served = asked("deepseek-v3", "--kv-cache-dtype", "int4_per_token_head", on="8xh200")
    (term,) = [term for term in served.deployment.places[0].terms if term.key == "cache"]
    assert term.most == 61 * (576 // 2 + 8) * 4096
    said = "no rule is known for vLLM’s cache of type int8_per_token_head before 0.33; give --engine-version 0.33"
    with pytest.raises(Problem) as raised:
        asked("llama3.1-8b", "--kv-cache-dtype", "int8_per_token_head", "0.32")
    assert str(raised.value) == said
