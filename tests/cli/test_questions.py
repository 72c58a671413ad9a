"""The questions of the command line: compare, what-if, fits; and how its tables are printed."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from io import StringIO

import pytest
from copies import ROOT
from rich.console import Console

from macros.__main__ import main
from macros.api import changes, comparison
from macros.api.fits import fit, memory
from macros.catalogue import presets
from macros.cli import describe, fits, printing, sides
from macros.counting.accelerators import accelerator, accelerators
from macros.counting.conditions import Conditions
from macros.counting.costs import of as costs_of
from macros.data.costs import Asked
from macros.data.costs import _bounds as bounds_of
from macros.data.costs import _room as room_on
from macros.engine.errors import Problem
from macros.site.terminal import is_of_presets, terminal

GIGA = 10**9


@pytest.fixture
def run(capsys):
    """`run("fits", …)` -> (exit status, standard output, standard error)."""

    def call(line: str):
        try:
            status = main(line.split())
        except SystemExit as exit_:
            status = exit_.code
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def data(run):
    """What a command prints with `--format json`."""
    return lambda line: json.loads(run(f"{line} --format json")[1])


# --- ask --------------------------------------------------------------------------------------------------------------


def test_a_speed_is_said_only_where_the_model_fits(run):
    """47 GB on a card of 24: what does not fit has no speed there, and the format that does has."""
    _, out, _ = run("ask tokens per second mistral small on 4090")
    assert "does not fit on GeForce RTX 4090" in out and re.search(r"Q\w+ fits .* at most \d+ tokens per second", out)
    _, out, _ = run("ask tokens per second llama 3 8b on h100")
    assert "at most" in out.partition("\n")[0]


def test_an_engine_is_offered_only_formats_that_it_runs(run):
    """TensorRT-LLM reads no GGUF file, and vLLM neither; llama.cpp reads nothing else of few bits."""
    line = "llama 3.1 405b fp8 8 h100 batch 64"
    assert " Q6_K fits on 8 × H100 SXM" in run(f"ask {line}")[1]
    for engine, format in (("trt-llm", "int4"), ("vllm", "int4"), ("llama.cpp", "Q6_K"), ("ollama", "Q6_K")):
        assert f" {format} fits on 8 × H100 SXM" in run(f"ask {engine} {line}")[1], engine
    assert "llama.cpp does not run fp8 on H100 SXM" in run(f"ask ollama {line}")[1]


def test_ollamas_memory_is_that_of_its_usual_files_unless_they_keep_the_published_format(run):
    said = run("ask ollama deepseek r1 how much ram")[1]
    assert said.startswith("DeepSeek-V3 in Q4_K_M, Ollama’s usual format: 405 GB of memory")
    assert "674 GB as published (linear layers in fp8" in said
    assert run("ask deepseek r1 how much ram")[1].startswith("DeepSeek-V3 as published")
    assert run("ask ollama gpt-oss 20b how much ram")[1].startswith("gpt-oss-20b as published (experts in mxfp4")
    assert run("ask ollama qwen3 8b q8_0 how much ram")[1].startswith("Qwen3 8B in Q8_0: ")


def test_a_family_of_several_sizes_has_a_line_for_each_or_one_that_all_share(run):
    def titles(question):
        return [one["title"] for one in json.loads(run(f"ask {question} --format json")[1])["answers"]]

    assert titles("hidden size llama 3") == [
        f"{name}: {presets.model(slug).config.d_model:,} dimensions in each token's vector (d_model)"
        for name, slug in (("Llama 3 8B", "llama3-8b"), ("Llama 3 70B", "llama3-70b"))
    ]
    sizes = ("270m", "1b", "4b", "12b", "27b")
    assert (
        len(titles("vocabulary size gemma 3"))
        == len(sizes)
        > len({presets.model(f"gemma3-{size}").config.vocab_size for size in sizes})
    )
    assert titles("context length qwen3") == ["Qwen3 in each of its 8 sizes: 40,960 tokens of context"]
    assert titles("heads gpt oss") == ["gpt-oss in each of its 2 sizes: 64 attention heads"]


def test_an_answer_says_a_context_beyond_what_the_model_was_made_for(run):
    """Where the answer depends on the context, and only there."""
    said = "The model was made for 1,024 tokens."
    for question in ("gpt2 on h100", "gpt2 kv cache", "gpt2 2000 tokens on a 4090"):
        assert said in run(f"ask {question}")[1], question
    for question in ("gpt2 1000 tokens on a 4090", "gpt2 parameters"):
        assert said not in run(f"ask {question}")[1], question


def test_pages_are_named_beside_a_model(run):
    _, out, _ = run("ask rope theta llama 3")
    assert "attention-deep-dive/#position" in out


def test_describe_says_whether_a_model_fits_on_a_machine_and_the_best_format_that_does(run):
    there = fit(presets.model("llama3-70b"), Conditions(4096, format="fp8", devices=2), memory("rtx-3090"))
    status, out, _ = run("describe llama3-70b --weights fp8 --on rtx-3090 --devices 2")
    assert status == 0 and there.best and f"{there.sentence} {there.advice}" in " ".join(out.split())
    status, _, error = run("describe llama3-70b --on rtx-3090 --format json")
    assert status == 2 and "take fits MODEL --on MACHINE --format json" in error


# --- fits -------------------------------------------------------------------------------------------------------------


def test_llama_3_3_70b_in_fp8_on_80_gb_at_32k(run):
    """The sum by hand: 70.6 of weights, 32,768 × 327,680 bytes of cache."""
    status, out, _ = run("fits llama3.3-70b --weights fp8 --context 32k --on h100")
    assert status == 1
    assert out.startswith(
        "Llama 3.3 70B Instruct in fp8 does not fit on H100 SXM (80.0 GB) at 32,768 tokens with the cache in bfloat16: "
        "it takes 81.3 GB; 1.32 GB missing.\n"
    )
    assert "KV cache           10.7 GB  10,737,418,240\n" in out
    assert "The longest context that fits is 28,748 tokens. 2 devices hold it: tensor parallel 2." in out
    status, out, _ = run("fits llama3.3-70b --weights fp8 --cache fp8 --context 32768 --on 80GB")
    assert status == 0 and "fits on 80 GB at" in out and "it takes 75.9 GB; 4.05 GB left." in out


@pytest.mark.parametrize(
    "line",
    [
        "llama3.1-8b --on l4",
        "gemma3-27b --on 24GB --weights int4 --cache int8",
        "llama3.3-70b --on h100 --devices 4 --batch 3",
        "gpt-oss-20b --on 16GiB --weights mxfp4",
        "qwen3-next-80b-a3b --on b200",
    ],
)
def test_the_longest_context_fits_and_one_more_token_does_not(data, line):
    longest = data(f"fits {line}")["longest_context"]
    assert longest > 1000
    at, beyond = (data(f"fits {line} --context {n}") for n in (longest, longest + 1))
    assert at["fits"] and at["left_bytes"] >= 0 > beyond["left_bytes"] and not beyond["fits"]


@pytest.mark.parametrize("slug", ["llama3.1-8b", "deepseek-v2-lite", "gemma3-1b", "jamba-v0.1"])
def test_what_fits_on_one_device_is_what_inference_takes(data, slug):
    costs = costs_of(presets.model(slug).counts)
    answer = data(f"fits {slug} --on h200 --context 5000 --batch 7 --weights int8 --cache fp8")
    assert answer["bytes"] == costs.memory.inference_bytes(1, Conditions(5000, 7, "int8", "fp8"))
    assert answer["total_bytes"] + answer["left_bytes"] == 141 * GIGA
    asked = {"context": 5000, "batch": 7, "weights": "int8", "cache": "fp8", "devices": 1}
    assert answer["conditions"] == asked | {"on": "H200 SXM", "memory_bytes": 141 * GIGA}


def test_no_context_and_every_context(run):
    assert "No context fits. 4 devices hold it: tensor parallel 4." in run("fits llama3.3-70b --on 60GB")[1]
    status, out, _ = run("fits mamba-2.8b --on l4 --context 1k")
    assert status == 0 and "Every context fits" in out
    assert "The model is made for 8,192." in run("fits llama3-8b --on 24GB")[1]
    assert "hold it" not in run("fits deepseek-v3 --on 500MB")[1]


def test_as_many_devices_as_it_takes_hold_it_and_fewer_do_not(run, data):
    """DeepSeek-V3's 128 heads and 61 layers divide by 8 and by 16; 9, which its bytes would need, divides nothing."""
    call = "fits deepseek-v3 --weights fp8 --batch 64 --on h100"
    one = data(call)
    assert one["enough_devices"] == 16
    assert one["enough_split"] == {"tensor": 16, "data": 1, "expert": 16, "pipeline": 1}
    assert one["by_sequences"]["split"] == {"tensor": 1, "data": 16, "expert": 16, "pipeline": 1}
    assert [data(f"{call} --devices {n}")["fits"] for n in (8, 16)] == [False, True]
    status, out, err = run(f"{call} --devices 9")
    assert (status, out) == (2, "") and "DeepSeek-V3: no split over 9 devices" in err and "give 8 or 16" in err
    said = run(f"{call} --devices 16")[1]
    assert "fits on 16 × H100 SXM (80.0 GB each), tensor parallel 16, expert parallel 16, at 64 sequences" in said
    assert "With attention split by sequences, 16 hold it: data parallel 16, expert parallel 16" in said
    assert "Llama 3 70B: no split over 5 devices" not in run("compare llama3-70b llama3-8b --devices 5")[2]
    assert "Llama 3 8B: no split over 5 devices" in run("compare llama3-70b llama3-8b --devices 5")[2]
    assert "give 5 or 8" in run("what-if llama3-70b --set F=29696 --devices 7")[2]


def test_pages_and_data_give_the_number_that_fits_gives(data):
    """For each accelerator, of a model with latents, one with few key/value heads and one without heads."""
    for slug in ("deepseek-v3", "qwen2.5-7b", "mamba-2.8b"):
        costs = costs_of(presets.model(slug).counts)
        for name, machine in accelerators().items():
            answer = data(f"fits {slug} --on {name}")
            given = Conditions(4096, format="published", accelerator=machine)
            assert answer["enough_devices"] == costs.devices_needed(given), (slug, name)
            bounds = bounds_of(costs, room_on(costs, machine, Conditions(4096, format="published")))
            assert (bounds["devices"], bounds["split"]) == (answer["enough_devices"], answer["enough_split"])


def test_several_models_are_answered_one_by_one(run):
    status, out, err = run("fits gpt2 nope gpt2-xl --on 4GB --format json")
    assert status == 2 and [json.loads(line)["model"] for line in out.splitlines()] == ["gpt2", "gpt2-xl"]
    assert "unknown model 'nope'" in err and "gpt2: beyond the 1,024 tokens" in err


@pytest.mark.parametrize(
    "name, size",
    [("24GB", 24 * GIGA), ("24 gb", 24 * GIGA), ("16GiB", 2**34), ("1.5TB", 1500 * GIGA), ("h200", 141 * GIGA)],
)
def test_memory_by_name_and_by_size(name, size):
    assert memory(name).size == size


# --- what-if ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["n_layers=64", "L=64", "num_hidden_layers=64"])
def test_a_change_is_the_model_of_the_changed_config(data, tmp_path, setting):
    """A second way: the config.json with another value, described from its file."""
    config = {**presets.preset("llama3-8b").config, "num_hidden_layers": 64}
    (tmp_path / "config.json").write_text(json.dumps(config))
    described = data(f"describe {tmp_path} --collapse --context 5000")
    answer = data(f"what-if llama3-8b --set {setting} --context 5000")
    assert answer["after"]["figures"]["total"] == described["parameters"]["total"] == 15_009_845_248
    assert answer["after"]["figures"]["cache_bytes"] == described["kv_cache"]["bytes_at"]["5000"]
    assert answer["before"]["figures"]["total"] == presets.model("llama3-8b").counts.total
    assert (
        answer["difference"]["figures"]["total"] == 8_030_261_248 - 1_050_677_248
    )  # all but the tables and the last norm
    assert answer["difference"]["parts"]["unembed"] == 0


def test_several_at_once_on_an_accelerator(run):
    status, out, err = run(
        "what-if llama3-8b --set D=8192 --set F=28672 --set N=64 --context 32768 --weights fp8 --cache fp8 --on h100"
    )
    assert status == 0 and err.count("\n") == 1 and "beyond the 8,192 tokens" in err
    assert re.search(r"^d_model +4,096 +8,192  ≠$", out, re.M)
    assert re.search(r"^n_kv_heads +8 +8$", out, re.M)
    assert re.search(r"^total +8\.03B +8,030,261,248 +29\.5B +29,482,295,296 +× 3\.67$", out, re.M)
    assert re.search(r"^total +10\.2 GB .* × \d", out, re.M)
    assert "after: llama3-8b with d_model = 8192, d_ff = 28672, n_heads = 64 in fp8 fits on H100" in out


@pytest.mark.parametrize("slug", ["gpt-oss-20b", "smollm3-3b", "minimax-text-01"])
def test_a_list_of_layers_goes_on_in_its_pattern(slug):
    model = presets.model(slug)
    layers = int(model.config.symbols["n_layers"])
    [key] = [k for k, value in model.raw.items() if isinstance(value, list) and len(value) == layers]
    longer = changes.changed(model, {"n_layers": layers + 10})
    shorter = changes.changed(model, {"n_layers": layers - 2})
    assert longer.raw[key][:layers] == model.raw[key] and len(longer.raw[key]) == layers + 10
    assert longer.raw[key][8:] == longer.raw[key][: layers + 2]  # patterns of 2, 4 and 8
    assert shorter.raw[key] == model.raw[key][:-2]
    assert shorter.counts.total < model.counts.total < longer.counts.total


@pytest.mark.parametrize(
    "line, said",
    [
        ("llama3-8b --set n_heads=30", "num_attention_heads = 30 does not divide hidden_size = 4096"),
        ("llama3-8b --set K=5", "num_key_value_heads = 5 does not divide num_attention_heads = 32"),
        ("llama3-8b --set n_layer=64", "no hyperparameter 'n_layer'; did you mean \"n_layers\"?"),
        ("llama3-8b --set x=1", "llama has vocab_size, d_model, n_layers, n_heads, n_kv_heads, d_head, d_ff"),
        ("llama3-8b --set model_type=gpt2", "no hyperparameter 'model_type'"),
        ("llama3-8b --set n_layers=many", "num_hidden_layers = 'many': expected a whole number, found text"),
        ("llama3-8b --set n_layers=-1", "expected a whole number >= 1"),
        ("llama3-8b --set n_layers", "write a name, = and a value, such as n_layers=64"),
        ("llama3-8b --set L=3 --set L=4", "--set: L is given twice"),
        ("llama3-8b --set L=3 --set n_layers=3", "L and n_layers are the same hyperparameter"),
        ("mixtral-8x7b --set E=1", "num_experts_per_tok = 2 exceeds num_local_experts = 1"),
        ("falcon-7b --set n_kv_heads=3", "n_kv_heads of falcon-7b follows from other sizes"),
        ("nemotron-3-nano-30b-a3b --set L=60", "hybrid_override_pattern has 52 layers, and num_hidden_layers = 60"),
        ("claude-3-opus --set L=3", "not disclosed"),
        ("llama3-8b", "the following arguments are required: --set"),
        ("llama3-8b --set L=3 --on h1000", 'did you mean "h100"?'),
        ("llama3-8b --set L=3 --on 0GB", "give an amount above 0"),
        ("llama3-8b --set L=3 --context 0", "'0' is not a whole number above 0"),
        ("llama3-8b --set L=3 --context 999999999k", "too long a context"),
        ("llama3-8b --set L=3 --devices 70000", "too many devices"),
    ],
)
def test_what_cannot_be_is_one_line(run, line, said):
    status, out, err = run(f"what-if {line}")
    assert status == 2 and not out and err.count("\n") == 1 and said in err, err


# --- compare ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "models, differ",
    [
        ("llama3-8b qwen3-8b", ["vocab_size", "n_layers", "norm_eps", "d_ff"]),  # Qwen3's window is off
        ("deepseek-v3 llama3-8b", None),
        ("mistral-7b-v0.1 mistral-7b-v0.3", ["vocab_size", "sliding_window"]),
        ("qwen2.5-7b qwen2.5-14b", None),
    ],
)
def test_a_difference_is_one_that_changes_something(data, run, models, differ):
    """The rows that the terminal marks are the ones of JSON; a mark is never between a value and the same."""
    answer = data(f"compare {models}")
    assert differ is None or answer["differ"] == differ
    assert {"n_layers", "d_ff"} <= set(answer["differ"]) or "mistral" in models
    first, second = (one["hyperparameters"] for one in answer["models"])
    assert all(first.get(name) != second.get(name) for name in answer["differ"])
    assert ("n_experts" in answer["differ"]) == ("deepseek" in models)
    rows = [line.split() for line in run(f"compare {models}")[1].split("\n\n")[0].splitlines()]
    marked = [row[0] for row in rows if row and row[-1] == "≠"]
    assert [name for name in marked if name in first or name in second] == answer["differ"]


def test_compared_figures_are_those_of_describe(data):
    answer = data("compare qwen3-8b llama3.1-8b gemma3-12b --context 32k --on h100")
    for one in answer["models"]:
        alone = data(f"describe {one['model']} --collapse --context 32768")
        assert one["figures"]["total"] == alone["parameters"]["total"] == sum(one["parts"].values())
        assert one["figures"]["cache_bytes"] == alone["kv_cache"]["bytes_at"]["32768"]
        assert one["figures"]["decode_flops"] == alone["flops"]["decode_at"]["32768"]
        assert one["memory"]["total_bytes"] == sum(alone["costs"]["inference_bytes_at"]["32768"].values())
        assert sum(one["layers"].values()) == one["hyperparameters"]["n_layers"]
    assert {"n_layers", "d_ff", "sliding_window"} <= set(answer["differ"]) and "tied" in answer["differ"]
    assert "attention_bias" not in answer["differ"]
    assert not {"use_sliding_window", "full_layers", "mlp_bias"} & set(answer["differ"]), "off, or of one type alone"
    first, second, _ = answer["models"]
    assert answer["ratios"][0]["total"] == second["figures"]["total"] / first["figures"]["total"]
    for one in answer["models"]:
        assert one["memory"]["left_bytes"] == accelerator("h100").memory_bytes - one["memory"]["total_bytes"]


def test_a_difference_is_what_a_change_adds(data):
    answer = data("what-if gpt2 --set n_layers=15")
    before, after, difference = answer["before"], answer["after"], answer["difference"]
    of_three_layers = 3 * (12 * 768**2 + 13 * 768)
    assert difference["figures"]["total"] == of_three_layers == sum(difference["parts"].values())
    assert after["figures"]["total"] - before["figures"]["total"] == of_three_layers


def test_compared_for_reading(run):
    status, out, err = run("compare qwen3-8b llama3.1-8b")
    assert status == 0 and not err
    assert re.search(r"^n_layers +36 +32  ≠$", out, re.M) and re.search(r"^d_head +128 +128$", out, re.M)
    assert re.search(r"^total +8\.19B +8,190,735,360 +8\.03B +8,030,261,248 +× 0\.980$", out, re.M)
    assert "Memory on" not in out and "seconds" not in out
    assert "use describe" in run("compare gpt2")[2]


# --- tables -----------------------------------------------------------------------------------------------------------


def blocks_of_each() -> list[list[printing.Block]]:
    model, other = presets.model("deepseek-v3"), presets.model("llama3.1-8b")
    given = Conditions(131_072, 4, "fp8", "fp8")
    on = memory("h100")
    return [
        describe.as_table(model, Asked((4096,))),
        fits.blocks(fit(model, given, on)),
        sides.blocks(
            [comparison.side(one, given, None) for one in (model, other)], ["deepseek-v3", "llama3.1-8b"], given
        ),
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140, 200])
def test_a_table_fits_the_terminal_and_breaks_no_figure(width):
    for blocks in blocks_of_each():
        file = StringIO()
        printing.write(Console(file=file, width=width, color_system=None, highlight=False), blocks)
        out = file.getvalue()
        assert max(map(len, out.splitlines())) <= width
        for grid in (block for block in blocks if isinstance(block, printing.Grid)):
            for row in grid.rows:
                for column, cell in zip(grid.columns, row):
                    if column.is_number and (width >= 140 or not column.may_go):
                        assert all(word in out for word in cell.split()), (width, cell)


def test_a_narrow_terminal_shows_what_is_rounded():
    file = StringIO()
    printing.write(Console(file=file, width=80), blocks_of_each()[2])
    assert "16,781,316,608" not in file.getvalue() and re.search("weights, bytes +673 GB +8.03 GB", file.getvalue())


def test_into_a_pipe_there_are_no_codes_and_no_row_is_broken():
    """Whatever the environment says of terminals and colours."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": "30", "TERM": "xterm-256color", "CLICOLOR_FORCE": "1"}
    command = [sys.executable, "-m", "macros", *"compare qwen3-8b llama3.1-8b".split()]
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True)
    assert done.returncode == 0 and "\x1b" not in done.stdout and " \n" not in done.stdout
    assert re.search(r"^non-embedding +6\.95B +6,946,075,648 +6\.98B +6,979,588,096 +× 1\.00$", done.stdout, re.M)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_in_a_terminal_titles_are_bold_and_it_is_as_wide():
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 64, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "macros", *"compare qwen3-8b llama3.1-8b".split()]
    process = subprocess.Popen(command, cwd=ROOT, env={**environment, "TERM": "xterm"}, stdout=theirs)
    os.close(theirs)
    out = b""
    while True:
        try:
            if not (part := os.read(ours, 65536)):
                break
        except OSError:  # how Linux says that the other side is closed
            break
        out += part
    os.close(ours)
    assert process.wait() == 0
    lines = out.decode().splitlines()
    assert any(line.startswith("\x1b[1mParameters") for line in lines)
    assert max(len(re.sub(r"\x1b\[\d*m", "", line)) for line in lines) <= 64


# --- on a page --------------------------------------------------------------------------------------------------------


def test_a_page_shows_what_a_call_prints():
    shown = html.unescape(re.sub("<[^>]+>", "", terminal("fits llama3-8b --on 24GB")))
    assert shown.startswith("$ every-parameter fits llama3-8b --on 24GB\nLlama 3 8B in bfloat16 fits on 24 GB at")
    assert max(map(len, shown.splitlines())) <= 68 and "16,060,522,496" in shown
    assert terminal("fits gpt2 --on 1TB", lines=2).endswith("…&#10;</code></pre></div>")


@pytest.mark.parametrize(
    "call, said", [("fits lama3-8b --on h100", 'did you mean "llama3-8b"'), ("fit", "invalid choice")]
)
def test_a_call_that_cannot_be_answered_is_a_problem(call, said):
    with pytest.raises(Problem, match=said):
        terminal(call)


def test_a_refusal_is_shown_where_the_page_says_so():
    shown = html.unescape(re.sub("<[^>]+>", "", terminal("what-if llama3-8b --set n_heads=30", is_refused=True)))
    assert shown.endswith(
        "n_heads = 30: num_attention_heads = 30 does not divide hidden_size = 4096; correct one of the two\n"
    )
    with pytest.raises(Problem, match="the call is answered"):
        terminal("fits llama3-8b --on 24GB", is_refused=True)


def test_a_call_that_may_read_a_file_depends_on_more_than_presets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_of_presets("compare gpt2 llama3-8b --context 8k")
    assert not any(map(is_of_presets, ("", "run gpt2 --text a", "describe 'a file'", "add gpt2")))
    (tmp_path / "gpt2").mkdir()
    assert not is_of_presets("compare gpt2 llama3-8b --context 8k") and is_of_presets("describe llama3-8b")
