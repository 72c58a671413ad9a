"""Whole start-up logs of public repositories: what each says, and that its lines with figures are understood.

`whole_logs.jsonl` holds facts alone: of each log its source, the engine, version, model and options, and the lines with
figures in the engine's own format. `different` names the figures that are another than counted, `unknown` says why a
cache is not counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from macros.api.logs import LogReading, reading
from macros.counting.log_facts import SIZES
from macros.counting.log_rows import State

LOGS = [json.loads(line) for line in (Path(__file__).parent / "whole_logs.jsonl").read_text("utf-8").splitlines()]
KEYS = {
    "vllm": "tensor_parallel_size pipeline_parallel_size data_parallel_size decode_context_parallel_size max_model_len "
    "gpu_memory_utilization max_num_batched_tokens max_num_seqs kv_cache_dtype block_size gdn_prefill_backend "
    "mamba_ssm_cache_dtype",
    "sglang": "tp_size pp_size dp_size ep_size mem_fraction_static context_length max_running_requests "
    "chunked_prefill_size max_total_tokens "
    "max_mamba_cache_size kv_cache_dtype page_size swa_full_tokens_ratio mamba_full_memory_ratio mamba_ssm_dtype "
    "speculative_algorithm speculative_num_draft_tokens",
}
FORMS = {"Q4_K_M": "Q4_K - Medium", "Q5_K_M": "Q5_K - Medium", "Q4_K_S": "Q4_K - Small"}
OF_CONTEXT = {"--ctx-size": "n_ctx", "--parallel": "n_seq_max", "--batch-size": "n_batch", "--ubatch-size": "n_ubatch"}


def quoted(value: str) -> str:
    return value if value.replace(".", "").isdigit() else f"'{value}'"


def of_vllm(facts: dict[str, str]) -> list[str]:
    """The lines with the arguments that differ from the defaults, and with the config."""
    names = {f"--{key.replace('_', '-')}": key for key in KEYS["vllm"].split()}
    chosen = {names[option]: value for option, value in facts.items() if option in names}
    chosen |= {"model": facts["model"]} if "model" in facts else {}
    said = ", ".join(f"'{key}': {quoted(value)}" for key, value in chosen.items())
    prefix = next((str(not key.startswith("--no")) for key in facts if key.endswith("enable-prefix-caching")), "None")
    draft = json.loads(facts.get("--speculative-config", "null"))
    method = (
        draft and f"SpeculativeConfig(method='{draft['method']}', num_spec_tokens={draft['num_speculative_tokens']})"
    )
    switches = "".join(
        f", '{key}': True"
        for key, option in (
            ("enforce_eager", "--enforce-eager"),
            ("enable_expert_parallel", "--enable-expert-parallel"),
            ("language_model_only", "--language-model-only"),
        )
        if option in facts
    )
    return [
        f"[api_server.py:1] vLLM API server version {facts['version']}",
        f"[utils.py:1] non-default args: {{{said}{switches}}}",
        *([f"[model.py:1] Resolved architecture: {facts['architecture']}"] if "architecture" in facts else []),
        f"[core.py:1] Initializing a V1 LLM engine (v{facts['version']}) with config: speculative_config={method}, "
        f"dtype=torch.{facts.get('dtype', 'bfloat16')}, quantization={facts.get('quantization')}, "
        f"enable_prefix_caching={prefix}, x=1",
    ]


def of_sglang(facts: dict[str, str]) -> list[str]:
    """The line with its arguments."""
    names = {f"--{key.replace('_', '-')}": key for key in KEYS["sglang"].split()}
    chosen = {names[option]: value for option, value in facts.items() if option in names}
    chosen |= {"quantization": facts["quantization"]} if "quantization" in facts else {}
    switches = "".join(
        f", {option[2:].replace('-', '_')}=True"
        for option in ("--enable-dp-attention", "--disable-radix-cache")
        if option in facts
    )
    said = ", ".join(f"{key}={quoted(value)}" for key, value in chosen.items())
    return [f"|server_args=ServerArgs(model_path='/models/{facts['model']}', {said}{switches}, x=1)"]


def of_llama(facts: dict[str, str]) -> list[str]:
    """The lines about the model and the context."""
    weights = FORMS.get(facts.get("weights", ""), facts.get("weights", ""))
    lines = [
        f"build: {facts['version'][1:]} (abcdef0) with gcc for Linux"
        if facts.get("version", "").startswith("b")
        else "",
        f"llama_model_loader: - kv 2: general.name str = {facts['model'].replace('-', ' ')}"
        if "model" in facts
        else "",
        f"print_info: arch = {facts['architecture']}" if "architecture" in facts else "",
        f"print_info: file type = {weights}" if weights else "",
        *[f"print_info: {key} = {facts[key]}" for key in SIZES if key in facts],
        *[f"llama_context: {name:13} = {facts[option]}" for option, name in OF_CONTEXT.items() if option in facts],
    ]
    if "--flash-attn" in facts:
        lines.append(f"llama_context: flash_attn    = {int(facts['--flash-attn'] == 'on')}")
    if "--kv-unified" in facts:
        lines.append("llama_context: kv_unified    = true")
    if "--cache-type-k" in facts:
        lines.append(f"x, K ({facts['--cache-type-k']}) x, V ({facts['--cache-type-v']})")
    return lines


def of_ollama(facts: dict[str, str]) -> list[str]:
    """The same with what Ollama asks of its runner."""
    layers = facts.get("--n-gpu-layers", "")
    each = facts.get("--tensor-split", layers).split(",")
    devices = " ".join(f"ID:GPU-{i} Layers:{n}(0..1)" for i, n in enumerate(each))
    return [
        f'msg="Listening on 127.0.0.1:1 (version {facts.get("version", "")})" source=routes.go:1',
        *([f'msg=load request="{{Operation:commit GPULayers:{layers}[{devices}] x:1}}"'] if layers else []),
        *of_llama(facts),
    ]


HEADS = {"vllm": of_vllm, "sglang": of_sglang, "llama.cpp": of_llama, "ollama": of_ollama}


def lines_of(log: dict[str, Any]) -> list[str]:
    """A log in its engine's format, without what stands before its lines."""
    devices = [f"using device {name} (a card) - {free} MiB free" for name, free in log["devices"]]
    return [line for line in [*HEADS[log["engine"]](log["facts"]), *devices, *log["lines"]] if line]


def plain(engine: str, line: str, number: int) -> str:
    """A line as the engine writes it to a terminal."""
    if engine == "sglang":
        rank, _, text = line.partition("|")
        return f"[2026-06-01 10:11:12{' ' * bool(rank)}{rank}] {text}"
    if engine == "vllm":
        return f"INFO 06-01 10:11:12 {line}"
    return f"time=2026-06-01T10:11:12Z level=INFO source=server.go:1 {line}" if line.startswith("msg=") else line


def colored(engine: str, line: str, number: int) -> str:
    return f"\x1b[1;36m(EngineCore_DP0 pid=7)\x1b[0;0m {plain(engine, line, number)}\r"


def in_a_container(engine: str, line: str, number: int) -> str:
    return f"server-1  | {plain(engine, line, number)}"


def in_a_journal(engine: str, line: str, number: int) -> str:
    return f"Jun 01 10:11:12 host server[{number}]:   {plain(engine, line, number)}"


def in_json(engine: str, line: str, number: int) -> str:
    return json.dumps({"log": plain(engine, line, number) + "\n", "stream": "stderr", "time": "2026-06-01T10:11:12Z"})


def in_a_table(engine: str, line: str, number: int) -> str:
    return f"│ {plain(engine, line, number)}    │"


def with_time(engine: str, line: str, number: int) -> str:
    return f"0.00.{number:03}.961 I {plain(engine, line, number)}"


def read(log: dict[str, Any], form: Callable[[str, str, int], str] = plain) -> LogReading:
    return reading(
        "\n".join(form(log["engine"], line, i) for i, line in enumerate(lines_of(log))), engine=log["engine"]
    )


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log["id"])
def test_a_whole_log_is_understood(log):
    """Model, format and options are read; of the lines with figures at least four in five are understood."""
    answer = read(log)
    assert answer.model.slug == log["model"]
    assert answer.weights == log["weights"]
    words = set(answer.log.words)
    for option, value in log["facts"].items():
        assert not option.startswith("-") or {option, value} - {""} <= words, option
    rows = answer.replay.rows
    assert sorted({row.what for row in rows if row.state is State.DIFFERENT}) == log["different"]
    counted = [row for row in rows if row.state not in (State.ALONE, State.DIFFERENT)]
    marks = [line for line in log["lines"] if "weight begin" in line or "pool end" in line]
    assert len({row.line for row in rows}) * 5 >= (len(log["lines"]) - len(marks)) * 4
    assert len(counted) * 4 >= len(rows) * (3 if not log["different"] and "unknown" not in log else 2)
    assert log.get("unknown", "") in {row.why for row in rows if row.state is State.ALONE} | {""}


@pytest.mark.parametrize("form", [colored, in_a_container, in_a_journal, in_json, in_a_table, with_time])
@pytest.mark.parametrize("log", LOGS[::4], ids=lambda log: log["id"])
def test_what_stands_around_a_line_changes_nothing(log, form):
    """Colors, containers, journals, tables and times."""
    rows = [(row.what, row.printed, row.counted, row.state) for row in read(log).replay.rows]
    answer = read(log, form)
    assert [(row.what, row.printed, row.counted, row.state) for row in answer.replay.rows] == rows


def test_most_figures_of_whole_logs_are_understood():
    """Over all logs; and each engine has some."""
    rows = [row for log in LOGS for row in read(log).replay.rows]
    understood = [row for row in rows if row.state not in (State.ALONE, State.DIFFERENT)]
    assert len(LOGS) >= 25
    assert len(understood) * 100 >= len(rows) * 90
    assert {log["engine"] for log in LOGS} == HEADS.keys()
