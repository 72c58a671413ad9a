"""Every option of every engine at two values, and what each changes; and defaults, as the engines' sources have them.

`engine_options.jsonl` has the whole answer of each engine's plain call, and of each option and value what differs from
it. `python tests/counting/test_engine_options.py` writes it anew: read the difference before it is believed.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from test_engine_rows import CONFIGS, answer

from macros.api.deployments import Served
from macros.api.fits import fits
from macros.cli.commands import engine_words
from macros.counting import deploying, llama_cpp, ollama, sglang, tensorrt_llm, vllm
from macros.counting.engine_options import SWITCH, Option
from macros.counting.fitting import LADDER
from macros.counting.runs import left_out
from macros.engine.errors import Problem

FILE = Path(__file__).parent / "engine_options.jsonl"
CONFIGS["dflash.json"] = lambda: {
    "model_type": "dflash",
    "hidden_size": 5120,
    "num_hidden_layers": 5,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 17408,
    "vocab_size": 248320,
    "block_size": 16,
    "dflash_config": {"target_layer_ids": [1, 16, 31, 46, 61], "mask_token_id": 1},
}
# The plain call of each engine.
PLAIN = {
    "vllm": "qwen3.6-27b --engine vllm --on h100 --context 32768",
    "sglang": "qwen3.6-27b --engine sglang --on h100 --context 32768",
    "llama.cpp": "qwen3-30b-a3b --engine llama.cpp --weights Q4_K_M --on rtx-3090+rtx-4090 --context 16384",
    "ollama": "gemma3-27b --engine ollama --weights Q4_K_M --on rtx-3090 --context 16384",
    "tensorrt-llm": "llama3.1-8b --engine tensorrt-llm --on h100 --context 8192",
}
OLD_OLLAMA = PLAIN["ollama"] + " --engine-version 0.29"
WINDOWS = "gemma3-27b --engine {} --on h100 --context 32768"
VIDEOS = "gemma-4-26b-a4b --engine {} --on rtx-4090 --context 32768"
WINDOW_POOLS = "gpt-oss-20b --engine {} --on h100 --context 32768"
OF_EXPERTS = "qwen3-30b-a3b --engine {} --on 4xh100 --context 32768"
DENSE = "qwen3-32b --engine {} --on 4xh100 --context 32768"
GGUF_WINDOWS = "gemma3-27b --engine llama.cpp --weights Q4_K_M --on rtx-3090+rtx-4090 --context 16384"
GGUF_STATES = "qwen3.6-27b --engine llama.cpp --weights Q4_K_M --on rtx-3090+rtx-4090 --context 16384"
MTP = '\'{{"method": "mtp", "num_speculative_tokens": {}}}\''
# Two values of each option, and the call that they are added to where it is not the plain one. A switch has its names.
VALUES: dict[str, dict[str, tuple[str, ...]]] = {
    "vllm": {
        "tensor": ("2 --on 2xh100", "4 --on 4xh100"),
        "pipeline": ("2 --on 2xh100", "4 --on 4xh100"),
        "data": ("2 --on 2xh100", "4 --on 4xh100"),
        "experts": ("--enable-expert-parallel", "--no-enable-expert-parallel", OF_EXPERTS),
        "dcp": ("2", "4", DENSE),
        "pcp": ("2", "4", DENSE),
        "share": ("0.5", "0.95"),
        "length": ("65536", "131072"),
        "step": ("2048", "16384"),
        "sequences": ("16", "512"),
        "block": ("96", "1024"),
        "cache": ("fp8", "nvfp4"),
        "room": ("10GiB", "20GiB"),
        "blocks": ("1000", "2000"),
        "prefix": ("--enable-prefix-caching", "--no-enable-prefix-caching"),
        "ssm": ("float32", "float16"),
        "mode": ("none", "all"),
        "prefill": ("flashinfer", "triton", "qwen3.5-27b --engine vllm --on h100 --context 32768"),
        "draft": (MTP.format(1), MTP.format(3)),
        "no_windows": ("--disable-hybrid-kv-cache-manager", "--no-disable-hybrid-kv-cache-manager", WINDOWS),
        "overlap": ("--async-scheduling", "--no-async-scheduling", f"{WINDOWS} --engine-version 0.26"),
        "no_images": ("--language-model-only", "--no-language-model-only", VIDEOS),
        "limits": ("'{\"video\": 0}'", "image=4", VIDEOS),
        "performance": ("throughput",),
        "eager": ("--enforce-eager", "--no-enforce-eager"),
    },
    "sglang": {
        "tensor": ("2 --on 2xh100", "4 --on 4xh100"),
        "pipeline": ("2 --on 2xh100", "4 --on 4xh100"),
        "data": ("2 --on 2xh100", "4 --on 4xh100"),
        "expert": ("2", "4", OF_EXPERTS),
        "apart": ("--enable-dp-attention --dp-size 2", "--enable-dp-attention --dp-size 4", OF_EXPERTS),
        "share": ("0.7", "0.9"),
        "tokens": ("10000", "20000"),
        "room": ("10GiB", "20GiB"),
        "length": ("65536", "131072"),
        "running": ("16 --disable-radix-cache", "32 --disable-radix-cache"),
        "chunk": ("2048", "16384"),
        "graphs": ("8", "512"),
        "no_graphs": ("--disable-cuda-graph",),
        "cache": ("fp8_e5m2", "bf16"),
        "page": ("64", "128"),
        "windows": ("0.5", "1", WINDOW_POOLS),
        "no_radix": ("--disable-radix-cache --max-running-requests 8",),
        "states": ("0.5", "1"),
        "slots": ("16", "64"),
        "ssm": ("bfloat16", "float32"),
        "draft": ("EAGLE", "NEXTN", DENSE),
        "drafted": ("2 --speculative-algorithm EAGLE", "8 --speculative-algorithm EAGLE"),
        "draft_model": (
            "qwen3-0.6b --speculative-algorithm DFLASH",
            "qwen3-1.7b --speculative-algorithm DFLASH",
        ),
        "images": ("--enable-multimodal", "gemma3-27b --engine sglang --on 2xh100 --context 32768"),
        "no_images": ("--language-model-only",),
        "draft_layers": ("2 --speculative-algorithm EAGLE", "3 --speculative-algorithm EAGLE", DENSE),
    },
    "llama.cpp": {
        "context": ("8192", "40960"),
        "room": ("2GiB --parallel 2", "4GiB", GGUF_WINDOWS),
        "parallel": ("2", "4"),
        "batch": ("256", "4096"),
        "step": ("128", "2048"),
        "gpu_layers": ("10", "40"),
        "split": ("3,1", "1,2"),
        "mode": ("none", "row"),
        "main": ("0 --split-mode none", "1 --split-mode none"),
        "override": ("exps=CPU", r"'blk\.[0-9]\.ffn_.*=CUDA1'"),
        "cpu_moe": ("10", "20"),
        "all_moe": ("--cpu-moe",),
        "full": ("--swa-full", GGUF_WINDOWS),
        "unified": ("--kv-unified --parallel 2", "--no-kv-unified --parallel 2", GGUF_WINDOWS),
        "keys": ("q8_0", "f32"),
        "values": ("q8_0", "f32"),
        "flash": ("off", "on"),
        "on_host": ("--no-kv-offload", "--kv-offload"),
        "draft_model": ("qwen3-0.6b", "qwen3-1.7b"),
        "draft_type": ("draft-mtp", "draft-simple", GGUF_STATES),
        "drafted": ("1 --spec-type draft-mtp", "3 --spec-type draft-mtp", GGUF_STATES),
    },
    "ollama": {
        "context": ("8192", "40960"),
        "room": ("2GiB", "4GiB --num-parallel 2"),
        "parallel": ("2", "4"),
        "batch": ("256", "1024"),
        "gpu_layers": ("10", "40"),
        "cache": ("q8_0", "q4_0"),
        "flash": ("1", "0"),
    },
    "tensorrt-llm": {
        "tensor": ("2 --on 2xh100", "4 --on 4xh100"),
        "pipeline": ("2 --on 2xh100", "4 --on 4xh100"),
        "share": ("0.5", "0.8"),
        "block": ("32", "128"),
        "length": ("16384", "32768"),
        "tokens": ("10000", "20001"),
        "cache": ("fp8", "int8"),
        "room": ("10GiB", "20GiB"),
    },
}
# Options of which one value is the default, and those that change what an answer says and no figure.
SAME = {
    *(("vllm", key) for key in ("experts", "step", "prefix", "ssm", "prefill", "no_windows", "overlap", "eager")),
    *(("vllm", key) for key in ("no_images", "limits")),
    *(("sglang", key) for key in ("cache", "ssm")),
    *(("llama.cpp", key) for key in ("batch", "main", "flash", "on_host")),
    ("ollama", "flash"),
}
# SGLang's ranks divide their experts with --ep-size as with --tp-size.
NONE = {("sglang", "expert")}
FURTHER = {
    "vllm on 160 GiB since 0.28": "qwen3-32b --engine vllm --engine-version 0.28 --on b200",
    "vllm on 160 GiB before": "qwen3-32b --engine vllm --engine-version 0.27 --on b200",
    "vllm on A100": "qwen3-32b --engine vllm --on a100-80gb",
    "vllm before 0.20": "qwen3-32b --engine vllm --engine-version 0.19 --on h100",
    "vllm since 0.20": "qwen3-32b --engine vllm --engine-version 0.20 --on h100",
    "vllm with less free than its share": "qwen3-8b --engine vllm --on h100,free:40GB",
    "vllm draft on the last stage": "qwen3.6-27b --engine vllm -pp 2 --on 2xh100 "
    f" --speculative-config {MTP.format(2)}",
    "vllm one more state since 0.33": "qwen3.5-27b --engine vllm --on h100",
    "vllm one more state not before": "qwen3.5-27b --engine vllm --engine-version 0.32 --on h100",
    "vllm one more state on no Ampere": "qwen3.5-27b --engine vllm --on a100-80gb",
    "vllm one more state of Kimi K3": "kimi-k3 --engine vllm -tp 8 --on 8xb200",
    "vllm one more state of no Kimi Linear": "kimi-linear-48b-a3b --engine vllm -tp 2 --on 2xh200",
    "vllm latents on Blackwell": "deepseek-v3 --engine vllm -tp 8 --on 8xb200 --kv-cache-memory-bytes 20GiB",
    "vllm latents in fp8 on Hopper": "deepseek-v3 --engine vllm --on 16xh200 --kv-cache-memory-bytes 20GiB "
    "--kv-cache-dtype fp8",
    "vllm latents before 0.24": "deepseek-v3 --engine vllm --engine-version 0.23 --on 8xb200 "
    "--kv-cache-memory-bytes 20GiB",
    "vllm states of Nemotron-H": "nemotron-nano-9b-v2 --engine vllm --kv-cache-memory-bytes 8GiB",
    "vllm a video in a step": "gemma-4-31b --engine vllm --weights fp8 --on l40s",
    "vllm padded pages": "naive-n0.5-flash --engine vllm --kv-cache-memory-bytes 20GiB",
    "vllm 32k": "qwen3-8b --engine vllm --on h100 --max-model-len 32k",
    "vllm rounded memory": "qwen3-14b --engine vllm --kv-cache-memory-bytes 6.51GiB",
    "llama.cpp one long request": PLAIN["llama.cpp"] + " -c 81920 --parallel 2 --kv-unified",
    "sglang with free memory": "qwen3-8b --engine sglang --on rtx-4090,free:20GB",
    "vllm latents beside states 0.26": "kimi-linear-48b-a3b --engine vllm --engine-version 0.26 --on 2xh200",
    "vllm latents beside states 0.27": "kimi-linear-48b-a3b --engine vllm --engine-version 0.27 --on 2xh200",
    "vllm latents in fp8": "deepseek-v3.2 --engine vllm --kv-cache-memory-bytes 8GiB --kv-cache-dtype fp8_ds_mla",
    "vllm mxfp4 on H100": "gpt-oss-120b --engine vllm --weights published --on h100",
    "vllm mxfp4 on B200": "gpt-oss-120b --engine vllm --weights published --on b200",
    "vllm mxfp4 on AMD": "gpt-oss-120b --engine vllm --weights published --on mi300x",
    "vllm needs of a stage in 0.15": "qwen3-32b --engine vllm --engine-version 0.15 -pp 2 --on 2xh100",
    "vllm chunks": "llama4-scout --engine vllm -tp 4 --on 4xh200 --context 32768 --kv-cache-memory-bytes 20GiB",
    "vllm stages that do not divide": "qwen3-30b-a3b --engine vllm -pp 5 --on 5xh100",
    "sglang indexer": "deepseek-v3.2 --engine sglang --tp 8 --on 8xh200",
    "sglang windows": "gpt-oss-20b --engine sglang --on h100",
    "sglang DFlash": "qwen3.6-27b --engine sglang --speculative-algorithm DFLASH",
    "llama.cpp draft of states": GGUF_STATES + " --spec-type draft-mtp",
    "llama.cpp encoder": "bert-base --engine llama.cpp --on rtx-3090 --context 512",
    "llama.cpp indexer": "deepseek-v3.2 --engine llama.cpp --weights Q4_K_M --on 8xh100 --context 4096",
    "llama.cpp masks without flash attention": GGUF_WINDOWS + " -fa off -c 65536",
    "llama.cpp on AMD": "qwen3-8b --engine llama.cpp --weights Q4_K_M --on mi300x",
    "llama.cpp too small": "qwen3-32b --engine llama.cpp --weights Q8_0 --on rtx-3090",
    "ollama 0.29": OLD_OLLAMA,
    "ollama 0.29 with two sequences": OLD_OLLAMA + " num_parallel=2 num_batch=256",
    "ollama 0.29 with fewer layers": OLD_OLLAMA + " num_gpu=62",
    "ollama 0.29 with states": "qwen3-next-80b-a3b --engine ollama --engine-version 0.20 --weights Q4_K_M --on h100",
    "ollama 0.12 keeps 4,096 rows": "gpt-oss-20b --engine ollama --engine-version 0.12 --on rtx-4090 num_ctx=32768",
    "ollama 0.30 without flash attention": PLAIN["ollama"] + " OLLAMA_FLASH_ATTENTION=0",
    "ollama 0.30 with true": PLAIN["ollama"] + " OLLAMA_FLASH_ATTENTION=true num_batch=1024",
}


def said(option: Option, value: str) -> str:
    """An option with a value as words; a switch's are its own."""
    return value if option.kind == SWITCH else f"{option.names[0]} {value}"


def call_of(engine: str, option: Option, value: str) -> str:
    """The call of a value: the devices that it names take the place of those of the plain call."""
    values = VALUES[engine][option.key]
    base = next((one.format(engine) for one in values if " --engine " in one), PLAIN[engine])
    if " --on " in value:
        head, _, rest = base.partition(" --on ")
        base = f"{head} {rest.partition(' ')[2]}"
    return f"{base} {said(option, value)}"


def base_of(engine: str, key: str) -> str:
    return next((one.format(engine) for one in VALUES[engine][key] if " --engine " in one), PLAIN[engine])


def rows() -> dict[str, str]:
    """Every call by its name."""
    found = {f"{engine}: plain": call for engine, call in PLAIN.items()}
    for engine, by_key in VALUES.items():
        for option in deploying.options_of(engine):
            values = [one for one in by_key[option.key] if " --engine " not in one]
            found |= {f"{engine}: {said(option, value)}": call_of(engine, option, value) for value in values}
    return found | FURTHER


@cache
def figures(call: str) -> dict[str, str]:
    """All that an answer says, flat."""
    return flat(answer(call))


def flat(served: Served) -> dict[str, str]:
    of = served.deployment
    found: dict[str, str] = {}
    for f in of.figures:
        middle = "" if f.middle is None else f" ({float(f.middle):.6g})"
        found[f"{f.key} {f.place}".strip()] = f"{float(f.least):.12g} to {float(f.most):.12g}{middle} {f.proof[:6]}"
    for i, place in enumerate((*of.places, *((of.host,) if of.host else ()))):
        for t in place.terms:
            rule = t.rule if " kernel " in t.rule else ""
            found[f"{i} {place.name}: {t.key}"] = f"{t.least} to {t.most} {t.how.value} {rule}".strip()
        found[f"{i} {place.name}: limit"] = str(place.limit)
    found["command"] = " ".join(of.command)
    found["advice"] = " ".join(of.advice)
    found["notes"] = " ".join(of.notes)
    return found


def differing(call: str, plain: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in figures(call).items() if plain.get(key) != value}


def written() -> dict[str, dict[str, str]]:
    plain = {engine: figures(call) for engine, call in PLAIN.items()}
    found: dict[str, dict[str, str]] = {}
    for name, call in rows().items():
        engine = call.partition(" --engine ")[2].partition(" ")[0]
        is_plain = name.endswith(": plain")
        found[name] = plain[engine] if is_plain else differing(call, plain[engine])
    return found


def held() -> dict[str, dict[str, str]]:
    found: dict[str, Any] = {}
    for line in FILE.read_text("utf-8").splitlines():
        row = json.loads(line)
        found[row.pop("call")] = row
    return found


HELD = held() if FILE.exists() else {}


def test_every_option_has_two_values():
    """So that a new one is not forgotten."""
    for engine in deploying.ENGINES:
        assert list(VALUES[engine]) == [option.key for option in deploying.options_of(engine)], engine
    assert list(HELD) == list(rows())


def test_what_each_option_changes():
    """To the last byte, with the command, the advice and the notes."""
    for name, found in written().items():
        assert found == HELD[name], name


EACH = [(engine, option) for engine in deploying.ENGINES for option in deploying.options_of(engine)]


def test_no_option_is_without_effect():
    """Of two values one at least changes a figure; of those in `SAME` one is the default."""
    for engine, option in EACH:
        base = figures(base_of(engine, option.key))
        values = [one for one in VALUES[engine][option.key] if " --engine " not in one]
        changed = [
            [key for key in differing(call_of(engine, option, value), base) if key != "command"] for value in values
        ]
        is_enough = any(changed) if (engine, option.key) in SAME else all(changed)
        assert is_enough or (engine, option.key) in NONE, (option.names[0], changed)


def test_the_command_line_and_the_api_answer_the_same():
    """Each option as words of a call, and as `options` of `fits`."""
    for engine, option in EACH:
        value = next(one for one in VALUES[engine][option.key] if " --engine " not in one)
        call = call_of(engine, option, value)
        model, *words = call.split(" ") if "'" not in call else [call.split(" ")[0]]
        if not words:
            continue
        rest, own = engine_words(["fits", model, *words])
        named = dict(zip(rest[2::2], rest[3::2]))
        there = fits(
            model,
            engine=engine,
            options=own,
            on=named.get("--on"),
            version=named.get("--engine-version", ""),
            context=int(named["--context"]),
            **({"weights": named["--weights"]} if "--weights" in named else {}),
        )
        assert flat(there) == figures(call), option.names[0]


# Too large for the devices, with changes each of which is enough.
TOO_LARGE = (
    ("qwen3-32b --engine llama.cpp --weights Q4_K_M --on rtx-3090 -c 131072", 2),
    ("qwen3-30b-a3b --engine llama.cpp --weights Q6_K --on rtx-3090 -c 32768", 2),
    ("llama3.1-8b --engine llama.cpp --weights Q8_0 --on 16GB -c 65536", 3),
    ("qwen3-32b --engine ollama --weights Q8_0 --on 2xrtx-3090 num_ctx=65536", 3),
    ("qwen3-14b --engine sglang --on rtx-5090 --mem-fraction-static 0.97 --context-length 16000", 2),
    ("llama3.1-8b --engine tensorrt-llm --on rtx-3090 --max-seq-len 131072", 1),
)


def test_what_is_said_to_be_enough_is_enough():
    """And of the longest context and the most layers, one more is not."""
    for call, number in TOO_LARGE:
        served = answer(call)
        assert not served.is_enough, call
        found = [one for one in served.deployment.advice if " is enough" in one or "the longest" in one]
        assert len(found) >= number, (call, found)
        for one in found:
            words = one.partition(" is enough")[0].partition(":")[0].partition(" (")[0]
            name, _, value = words.partition(" ")
            assert answer(f"{call} {words if '=' in words or name.startswith('-') else f'{name}={value}'}").is_enough, (
                one
            )
            step = {"--n-cpu-moe": -1, "--n-gpu-layers": 1, "--ctx-size": 256, "num_gpu": 1, "num_ctx": 256}.get(name)
            if step:
                more = f"{name} {int(value) + step}" if name.startswith("-") else f"{name}={int(value) + step}"
                assert not answer(f"{call} {more}").is_enough, one


INSTEAD = " fits with the same options."


@pytest.mark.parametrize(
    "engine, options, devices",
    [("vllm", "--max-model-len 8192", 2), ("sglang", "", 1), ("sglang", "--context-length 8192", 2), ("ollama", "", 1)]
    + [("tensorrt-llm", "", 1), ("llama.cpp", "--ctx-size 8192", 2)],
)
def test_the_best_format_that_fits_is_named_where_the_asked_one_does_not(engine, options, devices):
    """The one that is named fits, and those before it in the ladder do not, or the engine does not run them there."""

    def served(format):
        return fits(
            "llama3.1-70b", "h100" if devices == 1 else "rtx-a6000", engine=engine, options=options, weights=format,
            devices=devices,
        )  # fmt: skip

    (said,) = [one for one in served(None).deployment.advice if one.endswith(INSTEAD)]
    format = said.removesuffix(INSTEAD)
    assert served(format) and not [one for one in served(format).deployment.advice if INSTEAD in one]
    runs = "llama.cpp" if engine == "ollama" else deploying.TITLES[engine]
    there = served(None).cards[0]
    for before in LADDER[1 : LADDER.index(format)]:
        assert left_out(before, there, runs) or not served(before), before


def test_no_format_is_named_for_an_older_version_or_without_a_device():
    """The table of formats is of the newest versions."""
    for version, on in (("0.5.4", "h100"), ("", None)):
        said = fits("llama3.1-70b", on, engine="sglang", version=version).deployment.advice
        assert not [one for one in said if INSTEAD in one]


def test_a_pool_that_holds_no_request_is_no_fit():
    """Not even where weights and pool do: Llama 3.1 8B has 54,528 tokens left on 24 GB."""
    for call in (
        "llama3.1-8b --engine tensorrt-llm --on rtx-3090 --max-seq-len {}",
        "llama3.1-8b --engine sglang --mem-fraction-static 0.9 --on rtx-3090 --context-length {}",
    ):
        assert answer(call.format(16384)).is_enough
        longer = answer(call.format(131072))
        assert not longer.is_enough and not longer.deployment.may_be_enough
        assert "does not fit" in longer.sentence
        assert any("the longest" in one for one in longer.deployment.advice)
    none = answer("qwen3-8b --engine sglang --on 24GB --context-length 32768").deployment
    assert [f.least for f in none.figures if "tokens" in f.key] == [0, 0]
    # the smaller share has a slot of states less and more tokens
    states = answer(PLAIN["sglang"] + " --speculative-num-draft-tokens 8 --speculative-algorithm EAGLE").deployment
    assert all(f.least <= f.most for f in states.figures)
    assert all(place.least <= place.most for place in states.places)
    unsure = answer("llama3.1-8b --engine sglang --on rtx-3090 --context-length 4000")
    assert unsure.deployment.may_be_enough and not unsure.is_enough


@pytest.mark.parametrize(
    ("call", "share"),
    [
        # MiB of the device less 512, 1.5 for each token of a step, 128 for each rank, 2 for each request of the largest
        # graph, and 8 for each graph of prompts, of which there are 50 up to 4,096 tokens and 58 up to 8,192.
        ("llama3.1-8b --on 24564MiB", "0.704 to 0.72"),
        ("llama3.1-8b --on 24564MiB --disable-cuda-graph", "0.724"),
        ("llama3.1-8b --on 24564MiB --max-running-requests 8", "0.707 to 0.723"),
        ("llama3.1-8b --on 81559MiB", "0.83 to 0.835"),
        ("llama3.1-8b --on 81559MiB --cuda-graph-max-bs-decode 32 --chunked-prefill-size 2048", "0.874"),
        ("llama3.1-8b --on 2x81559MiB --pp-size 2", "0.834"),
        ("llama3.1-8b --on mi300x --context-length 8192", "0.857"),
        ("llama3.1-8b --on mi300x", "0.7284 to 0.857"),
        # latents: 1,536 MiB for the graphs of prompts; groups of attention: 4.5 more for each and each of 512 requests
        ("deepseek-v3 --on 8x144384MiB", "0.887 to 0.897"),
        ("deepseek-v3 --on 8x144384MiB --dp-size 8 --enable-dp-attention", "0.759 to 0.77"),
    ],
)
def test_the_share_that_sglang_takes_by_default(call, share):
    """By hand from `handle_gpu_memory_settings` in SGLang 0.5.23."""
    model, _, rest = call.partition(" ")
    notes = " ".join(answer(f"{model} --engine sglang {rest}").deployment.notes)
    assert f"here {share}." in notes, notes
    assert "--mem-fraction-static" not in " ".join(
        answer(f"{model} --engine sglang {rest} --mem-fraction-static 0.8").deployment.notes
    )


@pytest.mark.parametrize(("card", "said"), [("2048MiB", "above 0: give one"), ("3840MiB", "here 0 to 0.029.")])
def test_sglang_takes_no_share_below_nothing(card, said):
    """512 + 1.5 · 2,048 + 128 + 2 · 8 MiB leave 112 of 3,840, less than prompts’ graphs take; and of 2,048 none."""
    notes = " ".join(answer(f"qwen3-0.6b --engine sglang --on {card}").deployment.notes)
    assert said in notes and "-0" not in notes and "-1" not in notes, notes


def test_memory_for_the_cache_says_how_many_tokens():
    """By hand: Qwen3 32B keeps 64 layers × 8 heads × (128 + 128) × 2 bytes a token, and Gemma 3 27B in llama.cpp 10
    layers × 16 heads × (128 + 128) × 2 bytes for all and 52 for 1,536 cells of each of two sequences."""
    token = 64 * 8 * 256 * 2
    for engine in ("sglang --available-memory", "llama.cpp --cache-memory", "ollama --cache-memory"):
        found = answer(f"qwen3-32b --engine {engine} 8GiB --context 4096").deployment.figures
        tokens = next(int(f.most) for f in found if f.key in ("tokens", "slot"))
        assert tokens == 8 * 2**30 // token
    one = 16 * 128 * 2 * 2
    cells = (4 * 2**30 // 2 - 52 * one * 1536) // (10 * one) // 256 * 256
    gemma = answer("gemma3-27b --engine ollama --weights Q4_K_M --cache-memory 4GiB num_parallel=2")
    assert gemma.deployment.command[0] == f"OLLAMA_CONTEXT_LENGTH={cells}"
    with pytest.raises(Problem, match="--available-memory: 104,857,600 bytes hold no token"):
        answer("qwen3.6-27b --engine sglang --available-memory 100MiB")


def test_defaults_are_those_of_the_engines():
    """vLLM: `config/cache.py` and `_set_default_max_num_seqs_and_batched_tokens_args` of `engine/arg_utils.py` in its
    packages 0.24 to 0.33 (from 160 GiB since 0.28, GB10 since 0.29), `platforms/interface.py` (128 since 0.27). SGLang
    0.5.23: `server_args.py` and `arg_groups`. llama.cpp: `common/common.h`. Ollama: `envconfig`, `llm/server.go`.
    TensorRT-LLM: `KvCacheConfig`.
    """
    gib = 2**30
    assert (vllm.BLOCK, float(vllm.SHARE), float(vllm.OLD_SHARE)) == (16, 0.92, 0.9)
    assert vllm.defaults(80 * gib, "H100 SXM") == (8192, 1024)
    assert vllm.defaults(80 * gib, "A100 80GB", (0, 33)) == vllm.defaults(24 * gib, "RTX 4090") == (2048, 256)
    assert vllm.defaults(180 * gib, "B200", (0, 28)) == (16384, 1024)
    assert vllm.defaults(180 * gib, "B200", (0, 27)) == (8192, 1024)
    assert vllm.defaults(119 * gib, "DGX Spark (GB10)", (0, 29)) == (2048, 256)
    assert vllm.defaults(119 * gib, "DGX Spark (GB10)", (0, 28)) == (8192, 1024)
    assert (vllm.GRAIN, vllm.GRAIN_OF_LATENTS, vllm.GRAIN_SINCE) == (16, 64, (128, (0, 27)))
    assert (float(sglang.RATIO_OF_WINDOWS), float(sglang.RATIO_OF_STATES)) == (0.8, 0.9)
    assert (llama_cpp.BATCH, llama_cpp.STEP, llama_cpp.CELLS) == (2048, 512, 256)
    assert (ollama.BATCH, ollama.LONGER, ollama.STATES) == (512, 4096, 25)
    assert (tensorrt_llm.BLOCK, float(tensorrt_llm.SHARE_OF_FREE)) == (64, 0.9)


if __name__ == "__main__":
    lines = [json.dumps({"call": name, **row}, ensure_ascii=False) for name, row in written().items()]
    FILE.write_text("\n".join(lines) + "\n", "utf-8")
    sys.stdout.write(f"{len(lines)} calls\n")
