"""Start-up logs of engines: every printed row in its engine's own format, and what a log must not do."""

from __future__ import annotations

import shlex
from fractions import Fraction
from typing import Any

import pytest
from test_engine_rows import ASKED, CONFIGS

from macros.api.logs import LogReading, reading
from macros.counting.log_facts import OF_SGLANG, OF_VLLM
from macros.counting.log_reader import read_log
from macros.counting.log_replay import values_of
from macros.counting.log_rows import State
from macros.engine.errors import Problem

AT = "INFO 06-01 10:11:12"
# How each engine writes a figure, by the key of the figure.
LINES = {
    "vllm": {
        "block": "[interface.py:499] Setting attention block size to {} tokens to ensure that attention page size is",
        "padding": "[interface.py:523] Padding mamba page size by {}% to ensure that mamba page size and",
        "layers": "[kv_cache_utils.py:1030] Add 3 padding layers, may waste at most {}% KV cache memory",
        "loaded": "[gpu_model_runner.py:3338] Model loading took {} GiB memory and 33.1 seconds",
        "needed": "ValueError: To serve at least one request with the models's max seq len ({length}), ({} GiB KV "
        "cache is needed, which is larger than the available KV cache memory ({room} GiB).",
        "longest": "Based on the available memory, the estimated maximum model length is {}.",
        "tokens": "[kv_cache_utils.py:1307] GPU KV cache size: {} tokens",
        "old tokens": "[kv_cache_utils.py:1307] GPU KV cache size: {} tokens",
        "concurrency": "[kv_cache_utils.py:1312] Maximum concurrency for {length} tokens per request: {}x",
        "blocks": "[executor_base.py:112] # cuda blocks: {}, # CPU blocks: 0",
    },
    "sglang": {
        "convolution": "Mamba Cache is allocated. max_mamba_cache_size: {slots}, conv_state size: {}GB,",
        "state": "Mamba Cache is allocated. max_mamba_cache_size: {slots}, conv_state size: 9GB, ssm_state size: {}GB",
        "intermediate": "intermediate_ssm_state_cache size: {}GB",
        "windows": "intermediate_conv_window_cache size: {}GB",
        "keys": "KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, K size: {} GB, V size: 0.00 GB",
        "values": "KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, K size: 0.00 GB, V size: {} GB",
        "keys of windows": "KV Cache is allocated. #tokens: {tokens}, K size: {} GB, V size: 0.00 GB",
        "values of windows": "KV Cache is allocated. #tokens: {tokens}, K size: 0.00 GB, V size: {} GB",
        "cache": "KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, KV size: {} GB",
    },
    "llama.cpp": {
        "model": "load_tensors: {device} model buffer size = {} MiB",
        "cache": "llama_kv_cache: {device} KV buffer size = {} MiB",
        "index": "llama_kv_cache: {device} KV buffer size = {} MiB",
        "compute": "sched_reserve: {device} compute buffer size = {} MiB",
        "outputs": "llama_context: CUDA_Host output buffer size = {} MiB",
        "cache size": "llama_kv_cache: size = {} MiB ( 8192 cells, 13 layers, 1/1 seqs), K (",
        "windows size": "llama_kv_cache: size = {} MiB ( 8192 cells, 13 layers, 1/1 seqs), K (",
        "windows cells": "llama_kv_cache_iswa: creating     SWA KV cache, size = {} cells",
        "state size": "llama_memory_recurrent: size = {} MiB ( 3 cells, 64 layers, 3 seqs)",
    },
    "ollama": {
        "weights": 'time=T level=INFO source=device.go:240 msg="model weights" device={device} size="{} GiB"',
        "cache": 'time=T level=INFO source=device.go:251 msg="kv cache" device={device} size="{} GiB"',
        "all": 'time=T level=INFO source=server.go:138 msg=offload memory.required.kv="{} GiB"',
    },
}
MARKS = {
    "vllm": f"{AT} [api_server.py:1289] vLLM API server version {{version}}",
    "sglang": "[2026-06-01 10:11:12] server_args=ServerArgs(model_path='x', tokenizer_path='/home/someone/x')",
    "llama.cpp": "llama_model_loader: loaded meta data",
    "ollama": "time=T level=INFO source=sched.go:517 msg=loading",
}
LOGGED = [
    row
    for row in ASKED
    if "why" not in row
    and (engine := shlex.split(row["call"])[2]) in LINES
    and all(key.split(" CUDA")[0].split(" CPU")[0] in LINES[engine] for key in row["printed"])
]


def option(words: list[str], name: str, otherwise: str = "") -> str:
    return words[words.index(name) + 1] if name in words else otherwise


def written(row: dict[str, Any]) -> tuple[str, str, list[str], dict[str, str]]:
    """A row as a log: the engine, its text, and the words that the log does not show."""
    model, *words = shlex.split(row["call"])
    engine = option(words, "--engine")
    version = option(words, "--engine-version", "0.24.0")
    fits = {name: option(words, name) for name in ("--weights", "--on", "--engine-version") if name in words}
    own = [w for i, w in enumerate(words) if w not in ("--engine", *fits) and words[i - 1] not in ("--engine", *fits)]
    room = option(own, "--kv-cache-memory-bytes").removesuffix("GiB")
    known = {
        "length": option(own, "--max-model-len", "4096"),
        "room": room,
        "slots": option(own, "--max-mamba-cache-size"),
        "tokens": option(own, "--max-total-tokens"),
    }
    lines = [MARKS[engine].format(version=version)]
    if engine == "vllm" and room:
        lines.append(f"(EngineCore_DP0 pid=7) {AT} [gpu_worker.py:298] Available KV cache memory: {room} GiB")
        own.remove("--kv-cache-memory-bytes")
        own.remove(f"{room}GiB")
    if engine == "sglang":
        lines.append(f"KV Cache is allocated. #tokens: {known['tokens']}, K size: 0.00 GB, V size: 0.00 GB")
    for key, number in row["printed"].items():
        plain, _, device = key.partition(" CUDA" if " CUDA" in key else " CPU" if " CPU" in key else " CUDA")
        place = f"CUDA{device}" if " CUDA" in key else "CPU_Mapped" if key != plain and engine == "llama.cpp" else "CPU"
        if plain.startswith("index"):
            lines.append("llama_kv_cache_dsa: creating indexer KV cache, size = 896000 cells")
        elif plain.startswith("windows") and engine == "llama.cpp":
            lines.append("llama_kv_cache_iswa: creating     SWA KV cache, size = 1024 cells")
        elif plain.startswith("cache") and any(k.startswith("windows") for k in row["printed"]):
            lines.append("llama_kv_cache_iswa: creating non-SWA KV cache, size = 8192 cells")
        lines.append(
            f"(x pid=7) {AT} " * (engine == "vllm")
            + LINES[engine][plain].replace("{}", number).format(device=place, **known)
        )
    return engine, "\n".join(lines), own, {"model": model, **fits}


def read(row: dict[str, Any]) -> LogReading:
    engine, text, own, said = written(row)
    model = CONFIGS[said["model"]]() if said["model"] in CONFIGS else said["model"]
    version = said.get("--engine-version", "")
    return reading(text, model, said.get("--on"), said.get("--weights"), None, own, version)


@pytest.mark.parametrize("row", LOGGED, ids=lambda row: row["id"])
def test_a_row_in_its_engines_format_is_read(row):
    """Each printed figure is found in the log, and stands beside the counted one."""
    answer = read(row)
    figures = {row_.printed.split(" ")[0].rstrip("x%"): row_.state for row_ in answer.replay.rows}
    for key, number in row["printed"].items():
        whole, point, rest = number.replace(",", "").partition(".")
        plain = f"{int(whole):,}{point}{rest}"
        assert figures.get(plain) in (State.EQUAL, State.INSIDE, State.EXPLAINED), (key, number, figures)


def test_most_rows_are_read():
    assert len(LOGGED) >= 58


def test_a_wrong_figure_is_different():
    """One digit changed is seen."""
    row = next(row for row in LOGGED if row["id"] == "e012")
    answer = read({**row, "printed": {**row["printed"], "tokens": "303,921"}})
    assert answer.replay.number(State.DIFFERENT) == 1
    [higher] = [row for row in answer.replay.rows if row.state is State.DIFFERENT]
    lower = read({**row, "printed": {**row["printed"], "tokens": "203,921"}})
    [lower] = [row for row in lower.replay.rows if row.state is State.DIFFERENT]
    assert "printed −" in lower.why and "printed " in higher.why and "−" not in higher.why


TYPES = "torch.float8_e4m3fn", "torch.float16"
SECRET = ["/home/someone", "sk-123456", "10.1.2.3", "someone", "hf_abc"]
PERSONAL = f"""
{AT} [api_server.py:1] vLLM API server version 0.20.2
{AT} [utils.py:1] non-default args: {{'model': '/home/someone/models/Qwen3-14B', 'host': '10.1.2.3', \
'api_key': ['sk-123456'], 'max_model_len': 32768, 'hf_token': 'hf_abc'}}
{AT} [gpu_worker.py:2] Available KV cache memory: 6.51 GiB
{AT} [kv_cache_utils.py:3] GPU KV cache size: 42,656 tokens
{AT} [kv_cache_utils.py:4] Maximum concurrency for 32,768 tokens per request: 1.30x
"""


def test_nothing_personal_is_kept():
    """Paths, hosts and keys are not in the reading; the model and the options are."""
    answer = reading(PERSONAL)
    assert answer.model.slug == "qwen3-14b"
    assert answer.replay.number(State.EQUAL) == 2
    said = repr(answer.to_dict()) + repr(answer.log) + repr(answer)
    assert [one for one in SECRET if one in said] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing\nof an engine",
        "\0\x1b[31m" * 1000,
        "GPU KV cache size: tokens\nvLLM",
        "llama_model_loader: " + "x" * 100_000,
        "server_args=ServerArgs(" + "(" * 5000,
        "vLLM API server version " + "9" * 5000,
        "Available KV cache memory: " + "9" * 400 + " GiB\nvLLM",
        "Maximum concurrency for 99999999999999999999 tokens per request: 1.30x\nGPU KV cache size: 0 tokens",
        "load_tensors: <script>alert(1)</script> model buffer size = 1.00 MiB\nllama_model_loader:",
        "offloaded 99999999999999/1 layers to GPU\nload_tensors:",
    ],
)
def test_a_strange_log_is_answered_in_one_line(text):
    """Or with a reading; never with another error, and with nothing of the log in it that is no number."""
    read_log(text)
    try:
        answer = reading(text, "llama3-8b")
    except Problem as problem:
        assert "\n" not in str(problem)
    else:
        assert "script" not in repr(answer.to_dict())


TWICE = "\n".join(
    f"{AT} [api_server.py:1] vLLM API server version 0.20.2\n{AT} [utils.py:1] non-default args: {{'model': '{model}', "
    f"'max_model_len': 32768}}\n{AT} [gpu_worker.py:2] Available KV cache memory: 6.51 GiB\n"
    f"{AT} [kv_cache_utils.py:3] GPU KV cache size: {tokens} tokens{more}"
    for model, tokens, more in (
        ("Qwen/Qwen3-14B", "42,656", f"\n{AT} [x.py:4] Maximum concurrency for 32,768 tokens per request: 1.30x"),
        ("Qwen/Qwen3-8B", "47,392", ""),
    )
)


def test_of_several_starts_the_fullest_counts():
    """Or the one that is chosen; each has its own model and figures."""
    answer = reading(TWICE)
    assert (answer.model.slug, answer.replay.number(State.EQUAL)) == ("qwen3-14b", 2)
    assert "The log has 2 starts: this is number 1." in answer.to_dict()["notes"]
    second = reading(TWICE, start=2)
    assert (second.model.slug, second.replay.number(State.EQUAL), len(second.replay.rows)) == ("qwen3-8b", 1, 2)
    with pytest.raises(Problem, match="the log has 2"):
        reading(TWICE, start=3)


@pytest.mark.parametrize(
    ("name", "architecture", "slug"),
    [
        ("someone/Qwen3-14B-abliterated-v2", "Qwen3ForCausalLM", "qwen3-14b"),
        ("someone/Qwen3-14B-abliterated-v2", "LlamaForCausalLM", ""),
        ("someone/Qwen3-14B-abliterated-7B", "Qwen3ForCausalLM", ""),
        ("someone/My-Model", "Qwen3ForCausalLM", ""),
    ],
)
def test_a_name_that_holds_another_needs_its_architecture(name, architecture, slug):
    """And no other size: otherwise the model is not known."""
    text = TWICE.replace("Qwen/Qwen3-14B", name).replace("Qwen/Qwen3-8B", name)
    text = f"{AT} [model.py:1] Resolved architecture: {architecture}\n{text}"
    if slug:
        answer = reading(text)
        assert answer.model.slug == slug
        assert any(note.startswith("Taken for Qwen3 14B") for note in answer.to_dict()["notes"])
    else:
        with pytest.raises(Problem, match="not known here"):
            reading(text)


COMMAND = r"""
$ llama-server -m /home/someone/models/qwen3-30b.gguf -c 8192 -ngl 99 \
    --n-cpu-moe 12 -ts 3,1 --api-key sk-123456
llama_model_loader: - kv 2: general.name str = Qwen3 30B A3B
print_info: file type = Q4_K - Medium
load_tensors: CUDA0 model buffer size = 1.00 MiB
"""


def test_options_of_a_command_line_in_a_log_are_read():
    """By the engine's grammar; the log's own lines go before, and nothing else of the line is kept."""
    found = read_log(COMMAND)
    words = " ".join(found.words)
    for said in ("--ctx-size 8192", "--n-gpu-layers 99", "--n-cpu-moe 12", "--tensor-split 3,1"):
        assert said in words
    assert found.model == "Qwen3-30B-A3B"
    assert [one for one in SECRET if one in repr(found)] == []


def test_the_rank_with_the_least_memory_counts():
    """vLLM gives all ranks the smallest number of blocks, in whichever order they print."""
    of = "INFO 06-01 10:11:12 (Worker_TP{} pid=7) [gpu_worker.py:298] Available KV cache memory: {} GiB"
    for sizes in (("9.25", "7.50", "8.00"), ("7.50", "9.25", "8.00"), ("8.00", "9.25", "7.50")):
        log = read_log("\n".join(["vLLM API server version 0.11.0", *(of.format(*one) for one in enumerate(sizes))]))
        assert values_of(log)[0]["room"][1] == Fraction("7.5") * 2**30


@pytest.mark.parametrize("key", OF_VLLM)
def test_an_argument_that_vllm_prints_is_its_option(key):
    """Of each key of its lists; `max_seq_len` is the config's name for `max_model_len`."""
    option = "--" + key.replace("max_seq_len", "max_model_len").replace("_", "-")
    value = {"gpu_memory_utilization": "0.5", "kv_cache_dtype": "fp8", "mamba_cache_mode": "all"}.get(key, "4096")
    value = "float32" if key == "mamba_ssm_cache_dtype" else value
    line = f"Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-8B', {key}={value}, seed=0"
    assert f"{option} {value}" in " ".join(read_log(line).words)


def test_a_cache_in_eight_bits_is_named_by_its_torch_type():
    said = "Using FlashAttention with kv_cache_dtype={} for 32 layers"
    eight, sixteen = (read_log(f"vLLM API server version 0.11.0\n{AT} {said.format(one)}").words for one in TYPES)
    assert eight == ("--kv-cache-dtype", "fp8") and "--kv-cache-dtype" not in sixteen


@pytest.mark.parametrize("key", OF_SGLANG)
def test_an_argument_that_sglang_prints_is_its_option(key):
    value = {"speculative_algorithm": "EAGLE", "kv_cache_dtype": "fp8_e5m2", "mamba_ssm_dtype": "float32"}.get(key, "7")
    value = "0.5" if "ratio" in key or "fraction" in key else value
    line = f"server_args=ServerArgs(model_path='Qwen/Qwen3-8B', tokenizer_mode='auto', {key}={value}, seed=0)"
    assert f"--{key.replace('_', '-')} {value}" in " ".join(read_log(line).words)


def test_the_eleventh_device_is_not_the_second():
    """Its layers are those that the caches show: 61 of DeepSeek-R1 on twelve devices."""
    layers = [7, 4, 6, 5, 5, 5, 5, 5, 5, 5, 6, 3]
    lines = [
        "llama_model_loader: - kv 2: general.name str = DeepSeek R1",
        "print_info: file type = Q4_K - Medium",
        "load_tensors: offloaded 62/62 layers to GPU",
        *(f"load_tensors: CUDA{i} model buffer size = 1.00 MiB" for i in range(12)),
        "llama_context: n_ctx = 32768",
        *(f"llama_kv_cache: CUDA{i} KV buffer size = {36 * n}.00 MiB" for i, n in enumerate(layers)),
    ]
    rows = {row.what: row for row in reading("\n".join(lines)).replay.rows}
    for i, n in enumerate(layers):
        assert rows[f"CUDA{i} KV buffer size"].state is State.EQUAL
        assert rows[f"CUDA{i} model buffer size"].why.endswith(f"; {n} layers")


def test_services_of_one_log_are_apart():
    """Docker Compose writes the lines of several services among each other."""
    lines: list[str] = []
    for told in ("Starting to load model", "size"):
        for name, tokens in (("qwen3-8b", 65536), ("qwen3-4b", 131072)):
            model = f"Qwen/{name.title()}..."
            own = [f"{told} {model}"] if told != "size" else [f"GPU KV cache size: {tokens:,} tokens"]
            own += ["(EngineCore pid=1) x", f"Maximum concurrency for 4,096 tokens per request: {tokens // 4096}.00x"]
            lines += [f"{name}  | {line}" for line in own]
    for start, slug in ((1, "qwen3-8b"), (2, "qwen3-4b")):
        answer = reading("\n".join(lines), start=start)
        assert (answer.log.starts, answer.model.slug) == (2, slug)


OF_FORK = """
llama_model_loader: - kv 2: general.name str = DeepSeek R1
llm_load_print_meta: arch = deepseek2
llama_new_context_with_model: n_ctx = 16384
llama_new_context_with_model: n_batch = 512
llama_new_context_with_model: n_ubatch = 512
llama_new_context_with_model: flash_attn = 1
llama_new_context_with_model: mla_attn = 3
llama_kv_cache_init: CUDA0 KV buffer size = 576.00 MiB
llama_kv_cache_init: CUDA1 KV buffer size = 522.00 MiB
llama_new_context_with_model: KV self size = 1098.00 MiB, c^KV (f16): 1098.00 MiB, kv^T: not used
llama_new_context_with_model: CUDA0 compute buffer size = 2094.00 MiB
"""


def test_a_fork_is_named_and_its_own_rules_are_not_answered():
    """ik_llama.cpp#492: latents are as they are in llama.cpp, buffers of a step are not. Its 61 layers are in units of
    the caches, 32 and 29; nothing is too small of which the log does not print the size.
    """
    answer = reading(OF_FORK)
    assert answer.sentence.startswith("ik_llama.cpp, a fork of llama.cpp, with DeepSeek-V3: 5 figures: 4 equal.")
    states = [(row.printed, row.state) for row in answer.replay.rows]
    assert states[:4] == [(f"{n} MiB", State.EQUAL) for n in ("576.00", "522.00", "1,098.00", "1,098.00")]
    assert states[4] == ("2,094.00 MiB", State.ALONE)
    assert "ik_llama.cpp’s own rules" in answer.replay.rows[4].why
    assert not any("too small" in one for one in answer.replay.advice)
    eight = reading(OF_FORK.replace("(f16): 1098", "(q8_0): 583"))
    assert [row.state for row in eight.replay.rows if row.printed == "583.00 MiB"] == [State.ALONE]
    assert "b11434" not in eight.sentence


@pytest.mark.parametrize(
    ("name", "arch", "said", "sizes"),
    [
        ("Gemma 3 12b It", "gemma3", "one cache for all layers", "3072.00 MiB, K (f16): 1536.00 MiB, V (f16): 1536.00"),
        ("DeepSeek R1", "deepseek2", "latents written out", "39040.00 MiB, K (f16): 23424.00 MiB, V (f16): 15616.00"),
        ("Meta Llama 3.1 8B", "llama", "in steps of 32", "1028.00 MiB, K (f16): 514.00 MiB, V (f16): 514.00"),
    ],
)
def test_caches_of_old_builds_are_explained(name, arch, said, sizes):
    """48 layers × 8 heads × 256, 61 layers × 128 heads × (192 + 128), and 32 layers × 8 heads × 128 with 8,224 cells,
    in 16 bits: the line of a log has its own sizes as K and V."""
    tokens = 8224 if "32" in said else 8192
    lines = ["build: 4700 (abc) with gcc", f"llama_model_loader: - kv 2: general.name str = {name}"]
    lines += [f"print_info: arch = {arch}", f"llama_context: n_ctx = {tokens}", "llama_context: flash_attn = 0"]
    rows = reading("\n".join([*lines, f"llama_context: KV self size = {sizes} MiB"])).replay.rows
    assert [row.state for row in rows] == [State.EXPLAINED] * 3
    assert all(said in row.why for row in rows)


def test_weights_of_a_log_without_their_format_are_not_compared():
    """But with --weights they are."""
    text = (
        "llama_model_loader: - kv 2: general.name str = Qwen3 8B\nload_tensors: CUDA0 model buffer size = 4095.05 MiB"
    )
    (row,) = reading(text).replay.rows
    assert (row.state, row.why) == (
        State.ALONE,
        "the log does not say the format of the weights: name it with --weights",
    )
    assert reading(text, weights="Q8_0").replay.rows[0].state is State.DIFFERENT


def test_a_log_of_ollama_ends_in_its_variables():
    """And in no option of the server that it starts."""
    text = (
        'msg="Listening" source=routes.go:1 (version 0.5.12)\nmsg=x source=server.go:1\n'
        "llama_model_loader: - kv 2: general.name str = Qwen2.5 32B Instruct\nllama_context: n_seq_max = 2\n"
        "llama_context: n_ctx = 4096\nllama_context: flash_attn = 0\nllama_kv_cache_init: CUDA0 KV buffer size = 1 MiB"
    )
    assert reading(text).command == (
        "OLLAMA_CONTEXT_LENGTH=2048 OLLAMA_NUM_PARALLEL=2 OLLAMA_FLASH_ATTENTION=0 ollama serve"
    )


@pytest.mark.parametrize(
    "line",
    [
        "the current vLLM instance can use total_gpu_memory (79.19GiB) x gpu_memory_utilization (0.80) = 63.35GiB",
        "Free memory on device (78.6/79.19 GiB) on startup. Desired GPU memory utilization is (0.8, 63.35 GiB)",
        "gpu_memory_utilization       0.80",
    ],
)
def test_the_share_of_the_memory_is_read_in_each_of_its_forms(line):
    found = read_log(f"vLLM API server version 0.8.5\n{AT} {line}")
    share = values_of(found)[0]["share"]
    assert share == Fraction(8, 10)


def state_at(lines: str, counted: float, share: float, digits: int = 2, **options: Any) -> State:
    """How a figure stands that is printed as this share of the counted one."""
    return reading(lines.format(f"{counted * share:.{digits}f}"), **options).replay.rows[-1].state


def counted_in(lines: str, **options: Any) -> float:
    """The counted figure, at most, in the unit of the line."""
    row = reading(lines.format("1.00"), **options).replay.rows[-1]
    return float(row.counted.rpartition(" to ")[2].split(" ")[0].replace(",", ""))


def test_how_much_more_may_be_loaded_than_is_counted():
    """3% are buffers of kernels in vLLM, and half a GiB of workspaces in SGLang; more is another figure."""
    lines = "vLLM API server version 0.11.0\nnon-default args: {{'model': 'Qwen/Qwen3-8B'}}\nModel loading took {} GiB"
    counted = counted_in(lines)
    assert [state_at(lines, counted, n) for n in (1, 1.02, 1.04)] == [State.EQUAL, State.EXPLAINED, State.DIFFERENT]
    lines = "server_args=ServerArgs(model_path='Qwen/Qwen3-0.6B')\nLoad weight end. x, mem usage={} GB."
    weights = 0.596e9 * 2 / 2**30 + 0.01  # of 596 million parameters, and the rotary table
    states = [state_at(lines, weights, 1 + more / weights) for more in (0, 0.45, 0.56)]
    assert states == [State.EQUAL, State.EXPLAINED, State.DIFFERENT]


def test_a_compute_buffer_is_inside_a_fifth_of_its_estimate():
    head = "llama_model_loader: - kv 2: general.name str = Qwen3 8B\nload_tensors: offloaded 37/37 layers to GPU\n"
    head += "load_tensors: CUDA0 model buffer size = 1.00 MiB\nllama_context: n_ctx = 8192\n"
    lines = head + "llama_context: CUDA0 compute buffer size = {} MiB"
    counted = counted_in(lines, weights="Q8_0")
    assert state_at(lines, counted, 1.18, weights="Q8_0") is State.INSIDE
    assert state_at(lines, counted, 1.25, weights="Q8_0") is State.DIFFERENT


def test_a_mix_of_a_maker_is_within_a_third_of_the_tool_s():
    """To a thousandth it is the tool's own, whose buffers then must agree."""
    head = "llama_model_loader: - kv 2: general.name str = Qwen3 8B\nprint_info: file type = Q4_K - Medium\n"
    counted = counted_in(head + "print_info: file size = {} GiB")
    found = [state_at(head + "print_info: file size = {} GiB", counted, n) for n in (1.0, 1.01, 1.3, 1.5)]
    assert found == [State.EQUAL, State.EXPLAINED, State.EXPLAINED, State.DIFFERENT]


def test_a_request_as_long_as_the_pool_fits():
    """And what frees the graphs of SGLang has SGLang's name."""
    lines = "vLLM API server version 0.19.0\nnon-default args: {{'model': 'Qwen/Qwen3-8B', 'max_model_len': {}}}\n"
    lines += f"{AT} Available KV cache memory: 2.25 GiB"
    (longest,) = [f for f in reading(lines.format(8192)).replay.deployment.figures if f.key == "longest"]
    fits, more = [reading(lines.format(int(longest.least) + n)).replay.advice[0] for n in (0, 16)]
    assert "does not" not in fits and f"--max-model-len {int(longest.least)} fits" in more
    graphs = "Capture cuda graph end. Time elapsed: 1 s. mem usage=1.25 GB."
    log = reading(f"server_args=ServerArgs(model_path='Qwen/Qwen3-8B')\n{graphs}")
    assert any("--disable-cuda-graph frees them" in one for one in log.replay.advice)


def test_facts_of_llama_cpp_and_ollama_are_read_by_their_names():
    """Tokens handed over and those of a step, flash attention in words, memory in GiB and MiB, slots of a runner."""
    lines = ["llama_context: n_batch = 256", "llama_context: n_ubatch = 128", "llama_context: flash_attn = disabled"]
    words = read_log("\n".join(["print_info: arch = llama", *lines])).words
    assert " ".join(words) == "--batch-size 256 --ubatch-size 128 --flash-attn off"
    compute = 'source=types.go:1 msg="inference compute" id=GPU-1 library=CUDA total="24.0 GiB" available="10.5 GiB"'
    load = 'msg=load request="{Operation:commit BatchSize:256 FlashAttention:true KvSize:8192 Parallel:4'
    log = read_log(f"{compute}\n{load}", "ollama")
    assert log.devices == (("CUDA0", 10752),)
    assert " ".join(log.words) == "--ctx-size 8192 --parallel 4 --ubatch-size 256 --flash-attn on"
    (size, bits) = read_log("print_info: file size = 373.71 MiB (5.00 BPW)").found
    assert (size.unit, float(size.number), bits.key) == ("MiB", 373.71, "bits")


def rows_in(text: str, **given: Any) -> dict[str, tuple[str, State]]:
    """The rows of a log, by their words: what is counted, and how it compares."""
    return {row.what: (row.counted, row.state) for row in reading(text, **given).replay.rows}


@pytest.mark.parametrize(
    "command",
    [
        "docker run --gpus all -p 8000:8000 vllm/vllm-openai:latest Qwen/Qwen3-32B -pp 2 --max-model-len 32768",
        "docker run vllm/vllm-openai:v0.21.0 \\\n  --model Qwen/Qwen3-32B \\\n  -pp 2 --max-model-len 32768",
    ],
)
def test_the_command_line_of_an_image_is_read(command):
    """What follows its tag: two stages, whose printed figures are those of a public log."""
    lines = [
        "(Worker_PP0 pid=611) INFO [model_runner.py:329] Model loading took 30.52 GiB and 9.017490 seconds",
        "(Worker_PP0 pid=611) INFO [gpu_worker.py:563] Available KV cache memory: 6.92 GiB",
        "(EngineCore pid=411) INFO [kv_cache_utils.py:2235] GPU KV cache size: 56,640 tokens",
    ]
    answer = reading("\n".join([command, *lines]))
    assert answer.model.slug == "qwen3-32b"
    assert [row.state for row in answer.replay.rows] == [State.EQUAL, State.GIVEN, State.INSIDE]


def test_the_folder_of_a_hub_s_cache_names_the_model():
    """Where nothing else does; what precedes it is not kept."""
    lines = [
        f"(Worker_TP7 pid=1) {AT} [utils.py:1] writing to /home/someone/hub/models--zai-org--GLM-5.1-FP8/refs/main",
        f"(Worker_TP0 pid=1) {AT} [gpu_worker.py:440] Available KV cache memory: 34.86 GiB",
        f"(EngineCore pid=1) {AT} [kv_cache_utils.py:1711] GPU KV cache size: 373,696 tokens",
        f"(EngineCore pid=1) {AT} [kv_cache_utils.py:1716] Maximum concurrency for 202,752 tokens per request: 1.84x",
    ]
    answer = reading("\n".join(lines))
    assert (answer.model.slug, answer.weights, answer.log.model) == ("glm-5.1", "fp8", "zai-org/GLM-5.1-FP8")
    assert "someone" not in str(answer.to_dict())
    assert [row.state for row in answer.replay.rows] == [State.GIVEN, State.EQUAL, State.EQUAL]


LOADED = [
    "llama_model_loader: - kv 2: general.name str = Llama 3.1 8B",
    "print_info: file type   = Q4_0",
    "load_tensors: offloaded 15/33 layers to GPU",
    "load_tensors:        CUDA0 model buffer size =  2049.43 MiB",
    "llama_context: n_ctx         = 32768",
    "llama_kv_cache:      CUDA0 KV buffer size =  1792.00 MiB",
]
TRIALS = [
    "common_memory_breakdown_print: | - CUDA0 (RTX 2060) | 5738 = 5141 + (8392 = 4155 + 4096 + 140) + -7794 |",
    "common_params_fit_impl: projected to use 8392 MiB of device memory vs. 5141 MiB of free device memory",
    "common_params_fit_impl: cannot meet free memory target of 1024 MiB, need to reduce device memory by 4274 MiB",
    "print_info: no_alloc = 1",
    "llama_kv_cache:      CUDA0 KV buffer size =  4096.00 MiB",
    "print_info: no_alloc = 0",
]


def test_trials_of_what_fits_are_not_the_load():
    """llama.cpp tries before it loads: the tables and buffers of these tries are no figures of the start."""
    assert rows_in("\n".join([*TRIALS, *LOADED])) == rows_in("\n".join(LOADED))
    table = TRIALS[0].replace("8392 = 4155 + 4096 + 140", "4089 = 2049 + 1792 + 248")
    assert rows_in("\n".join([*LOADED, table]))["CUDA0 context"][1] == State.EQUAL


def test_no_states_for_a_draft_are_no_draft():
    lines = [
        "llama_model_loader: - kv 2: general.name str = Qwen3.5-9B",
        "print_info: file type   = Q4_K - Medium",
        "llama_context: n_seq_max     = 4",
        "llama_context: n_ctx         = 8192",
        "llama_memory_recurrent: size =  201.00 MiB (     4 cells,  32 layers,  4 seqs  0 rs_seq), R (f32):",
    ]
    found = rows_in("\n".join(lines))
    assert found["llama_memory_recurrent size"] == ("201.00 MiB", State.EQUAL)
    lines[4] = lines[4].replace("201.00", "804.00").replace("0 rs_seq", "3 rs_seq")
    assert rows_in("\n".join(lines))["llama_memory_recurrent size"][1] == State.EQUAL


def test_a_part_of_a_log_has_the_context_that_its_cache_means():
    """By its cells, or by its size."""
    name = 'msg="template selection" model=registry.ollama.ai/library/qwen3.6:latest selected=renderer_parser'
    lines = [
        'time=T level=INFO source=server.go:100 msg="using llama-server for model" model=/home/x/sha256-f5',
        "print_info: model type            = 35B.A3B",
        "print_info: general.name          = n/a",
        "llama_kv_cache:       MTL0 KV buffer size =  2720.00 MiB",
        "llama_kv_cache: size = 2720.00 MiB (262144 cells,  10 layers,  1/1 seqs), "
        "K (q8_0): 1360.00 MiB, V (q8_0): 1360.00 MiB",
        f"time=T level=INFO source=images.go:382 {name}",
    ]
    answer = reading("\n".join(lines))
    assert answer.model.slug == "qwen3.6-35b-a3b"
    assert {row.state for row in answer.replay.rows} == {State.EQUAL}
    del lines[4]
    (row,) = reading("\n".join(lines), weights="Q4_K_M").replay.rows
    assert (row.counted, row.state) == ("2,720.00 MiB", State.EXPLAINED)
    assert row.why.startswith("with the context that the size of the cache means, ")


def test_the_pools_of_windows_have_the_ratio_that_the_log_prints():
    lines = [
        "[2025-12-19 07:42:57 TP3] KV Cache is allocated. #tokens: 1496958, K size: 41.76 GB, V size: 27.84 GB",
        "[2025-12-19 07:42:57 TP0] SWAKVPool mem usage: 77.63 GB, swa size: 1496958, full size: 1496958",
    ]
    found = reading("\n".join(lines), "mimo-v2-flash").replay
    assert [row.state for row in found.rows][1:] == [State.EQUAL] * 3
    assert "--swa-full-tokens-ratio 1" in " ".join(found.words)


def test_a_type_of_the_cache_without_a_rule_leaves_the_rest_counted():
    lines = [
        f"{AT} [utils.py:1] non-default args: {{'model': 'Qwen/Qwen3-14B', 'kv_cache_dtype': 'turboquant_4bit_nc'}}",
        f"{AT} [gpu_model_runner.py:1] Model loading took 27.5185 GiB memory and 10.0 seconds",
        f"{AT} [gpu_worker.py:1] Available KV cache memory: 11.00 GiB",
        f"{AT} [kv_cache_utils.py:1] GPU KV cache size: 210,016 tokens",
    ]
    rows = reading("\n".join(lines)).replay.rows
    assert (rows[0].state, rows[2].state) == (State.EXPLAINED, State.ALONE)
    assert rows[2].why == "no rule is known here for a cache of type turboquant_4bit_nc"
