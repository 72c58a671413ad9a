"""Which model a log means, and what it does not say of the cache: plain names, names of a server, drafts, types."""

from __future__ import annotations

import pytest

from macros.api.deployments import Served, served_by
from macros.api.logs import LogReading, reading
from macros.api.model import read
from macros.counting.conditions import Conditions
from macros.counting.log_reader import read_log
from macros.counting.log_rows import State
from macros.engine.errors import Problem
from macros.views.charts.device_chart import device_chart

CACHE = (
    "Available KV cache memory: 20.00 GiB\nGPU KV cache size: {} tokens\n"
    "Maximum concurrency for {} tokens per request: {}x"
)


def of_vllm(
    model: str, more: str = "", version: str = "0.23.0", cache: tuple[str, str, str] = ("1", "8,192", "1")
) -> str:
    """A log of vLLM with 20 GiB for the cache."""
    head = f"vLLM API server version {version}\nnon-default args: {{'model': '{model}'{more}}}"
    return f"{head}\n{CACHE.format(*cache)}"


def figures(answer: LogReading) -> dict[str, str]:
    return {f.key: f.text.split(" ")[0].removesuffix("x") for f in answer.replay.deployment.figures}


def printed_with(slug: str, name: str) -> str:
    """The log of a model under a name, its figures those that are counted for it."""
    more = ", 'max_model_len': 32768"
    own = figures(reading(of_vllm(name, more), slug))
    return of_vllm(name, more, cache=(own["tokens"], "32,768", own["concurrency"]))


def test_of_several_models_of_a_name_the_one_with_its_figures_counts():
    """Mistral 7B's first version has windows, the others keep all tokens, and do not differ in a cache."""
    answer = reading(printed_with("mistral-7b-v0.1", "/models/mistral-7b"))
    assert answer.model.slug == "mistral-7b-v0.1"
    assert answer.notes[0].startswith(
        "Taken for Mistral 7B v0.1, of those that its name could mean the one whose figures"
    )
    assert {row.state for row in answer.replay.rows} == {State.GIVEN, State.EQUAL}
    with pytest.raises(Problem) as raised:
        reading(printed_with("mistral-7b-v0.2", "/models/mistral-7b"))
    assert str(raised.value) == (
        "the log names its model 'mistral-7b', which could be several models; "
        "name it with --model mistral-7b-v0.1 or mistral-7b-v0.2 or mistral-7b-v0.3"
    )


def test_of_several_models_of_a_name_the_one_with_its_sizes_counts():
    """32,768 tokens are those of the third version."""
    text = (
        "llama_model_loader: - kv 2: general.name str = mistral 7b\nprint_info: arch = llama\nprint_info: n_vocab = {}"
    )
    text += "\nllama_context: n_ctx = 4096\nllama_kv_cache: CUDA0 KV buffer size = 512.00 MiB"
    answer = reading(text.format(32768))
    assert (answer.model.slug, answer.replay.rows[0].state) == ("mistral-7b-v0.3", State.EQUAL)
    assert "the one with the log’s sizes" in answer.notes[0]
    with pytest.raises(Problem, match="mistral-7b-v0.1 or mistral-7b-v0.2$"):
        reading(text.format(32000))


@pytest.mark.parametrize("served", ["['Qwen3-8B', 'chat']", "'qwen3-8b'"])
def test_the_name_of_a_server_counts_with_its_architecture(served):
    """Where a folder's name says nothing; a name alone may be anything."""
    text = of_vllm("/models/target", f", 'served_model_name': {served}")
    for line, slug in (("Qwen3ForCausalLM", "qwen3-8b"), ("Qwen2ForCausalLM", ""), ("", "")):
        whole = f"{text}\nResolved architecture: {line}" if line else text
        if slug:
            assert reading(whole).model.slug == slug
            continue
        with pytest.raises(Problem, match="the log names a model that is not known here: unknown model 'target'"):
            reading(whole)
    sglang = "server_args=ServerArgs(model_path='/models/target', served_model_name='qwen3-8b', tp_size=1)\n"
    sglang += "Load weight end. elapsed=1 s, type=Qwen3ForCausalLM, mem usage=15.27 GB."
    assert reading(sglang).model.slug == "qwen3-8b"


def test_a_build_without_a_tag_has_no_rules_of_version_0_1():
    """Its windows are counted: before 0.9 there were none."""
    answer = reading(of_vllm("google/gemma-3-12b-it", ", 'max_model_len': 8192", "0.1.dev1+gda1daf40b"))
    assert answer.replay.deployment.version == "0.24"
    old = reading(of_vllm("google/gemma-3-12b-it", ", 'max_model_len': 8192", "0.8.5"))
    assert int(figures(answer)["tokens"].replace(",", "")) > int(figures(old)["tokens"].replace(",", ""))


def test_a_cache_of_an_unknown_type_is_not_compared():
    """And nothing is advised by it."""
    answer = reading(of_vllm("Qwen/Qwen3-8B", ", 'kv_cache_dtype': 'turboquant_k8v4'"))
    rows = {row.what: row for row in answer.replay.rows}
    assert [row.state for row in rows.values()] == [State.GIVEN, State.ALONE, State.ALONE]
    assert rows["GPU KV cache size"].why == "no rule is known here for a cache of type turboquant_k8v4"
    assert answer.replay.advice == ()
    llama = "llama_model_loader: - kv 2: general.name str = Qwen3 8B\nllama_context: n_ctx = 8192\n"
    llama += "x, K (turbo3): 1.00 MiB, V (turbo3): 1.00 MiB\nllama_kv_cache: CUDA0 KV buffer size = 252.00 MiB"
    assert reading(llama).replay.rows[-1].why == "no rule is known here for a cache of type turbo3"


def test_a_draft_without_its_sizes_is_not_compared():
    """But one whose layers are the model's own is."""
    draft = ", 'speculative_config': {{'method': '{}', 'model': '/models/draft', 'num_speculative_tokens': 4}}"
    for method, state in (("dflash", State.ALONE), ("draft_model", State.ALONE), ("mtp", State.DIFFERENT)):
        rows = reading(of_vllm("Qwen/Qwen3.6-27B", draft.format(method))).replay.rows
        assert {row.state for row in rows if row.state is not State.GIVEN} == {state}, method


def test_whole_mebibytes_are_cut_off():
    """62.81 and 80 MiB: 142 is printed, and 143 is another figure."""
    text = "llama_model_loader: - kv 2: general.name str = Qwen3.6 35B A3B\nprint_info: file type = Q4_K - Medium\n"
    text += "load_tensors: offloaded 41/41 layers to GPU\nload_tensors: CUDA0 model buffer size = 19902.90 MiB\n"
    text += "llama_context: n_ctx = 4096\nx: | - CUDA0 (RTX) | 24000 = 1000 + (22000 = 19902 + {} + 98) + 1 |"
    for printed, state in (("142", State.EQUAL), ("143", State.DIFFERENT)):
        (row,) = [row for row in reading(text.format(printed)).replay.rows if row.what == "CUDA0 context"]
        assert (row.state, row.counted) == (state, "142.81 MiB")


def test_the_parts_that_are_nearest_explain_a_file():
    """Gemma 4's tower is below the 3% that kernels may take."""
    text = "vLLM API server version 0.20.0\nnon-default args: {{'model': 'google/gemma-4-26B-A4B-it'}}\n"
    text += "Checkpoint size: {} GiB."
    said = [reading(text.format(size), weights="bfloat16").replay.rows[0] for size in ("48.07", "47.30")]
    assert [row.state for row in said] == [State.EXPLAINED] * 2
    assert said[0].why.endswith("with the towers of images and sound")
    assert said[1].why.endswith("other tensors of the file")


def test_the_type_of_a_state_that_vllm_chooses_is_read():
    line = "[config.py:506] Updating mamba_ssm_cache_dtype to 'float16' for NemotronH model"
    words = read_log(f"vLLM API server version 0.19.0\n{line}").words
    assert " ".join(words) == "--mamba-ssm-cache-dtype float16"


def asked(model: str, words: str, on: str | None = None) -> Served:
    *options, version = words.split(" ")
    return served_by(read(model), Conditions(4096, 1, "published", "bfloat16"), "vllm", on, options, version)


@pytest.mark.parametrize(("version", "block"), [("0.19", 992), ("0.20", 1952)])
def test_states_of_nemotron_h_are_wide_since_0_20(version, block):
    """Both were printed for its 4B, by the line that names the type."""
    answer = asked("nemotron-3-nano-4b", f"--kv-cache-dtype fp8 {version}")
    assert [int(f.least) for f in answer.deployment.figures if f.key == "block"] == [block]


@pytest.mark.parametrize(
    ("model", "words", "step"),
    [
        ("gemma-4-26b-a4b", "0.22", 2496),
        ("gemma-4-26b-a4b", "0.21", 2048),
        ("gemma-4-26b-a4b", "--max-num-batched-tokens 2048 0.33", 2048),
        ("gemma-4-26b-a4b", "--language-model-only 0.33", 2048),
        ("gemma-4-26b-a4b", '--limit-mm-per-prompt {"image":2,"video":0} 0.33', 2048),
        ("gemma-4-26b-a4b", "--limit-mm-per-prompt image=0 0.33", 2496),
        ("gemma-4-e4b", "0.33", 2048),
        ("gemma3-12b", "0.33", 2048),
    ],
)
def test_a_step_of_gemma_4_holds_a_video(model, words, step):
    """As vLLM 0.25 prints it; on 80 GB 8,192 tokens are more."""
    command = asked(model, words, "48GB").deployment.command
    assert command[command.index("--max-num-batched-tokens") + 1] == str(step)


def test_the_tower_counts_in_sglang_s_share_everywhere():
    """The chart's tokens are those of the answer, and a log's answer has its note."""
    model = "gemma-4-31b"
    own = served_by(read(model), Conditions(4096, 1, "published", "bfloat16"), "sglang", "h100", [], "")
    (tokens,) = [f.text for f in own.deployment.figures if f.key == "tokens"]
    assert tokens in str(device_chart(model, "sglang", "h100"))
    log = reading(
        "server_args=ServerArgs(model_path='google/gemma-4-31B-it')\nLoad weight end. mem usage=1.00 GB.", on="h100"
    )
    (said,) = [note for note in own.deployment.notes if "--mem-fraction-static" in note]
    assert "for the tower of images" in said and said in log.replay.deployment.notes
