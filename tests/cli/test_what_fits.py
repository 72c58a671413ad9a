"""The lists of `fits`: the models that fit on a machine, the machines that hold a model."""

import csv
import io
import json
import os
import subprocess
import sys

import pytest
from copies import ROOT
from sampling import fewer

import macros as ep
from macros.catalogue import presets
from macros.cli.commands import main
from macros.counting.accelerators import accelerator, accelerators
from macros.counting.conditions import Conditions
from macros.counting.costs import of as costs_of
from macros.counting.fitting import fitting
from macros.counting.own_machine import named as machine
from macros.data.listed import listed
from macros.views.kit import rounding


@pytest.fixture
def run(capsys):
    def run_(line):
        try:
            status = main(line.split())
        except SystemExit as ended:
            status = ended.code
        said = capsys.readouterr()
        return status, said.out, said.err

    return run_


@pytest.fixture(scope="module")
def found():
    return ep.fits(on="24GB", context=32_768)


@pytest.mark.exhaustive
def test_every_model_of_the_list_fits_alone(found):
    """And the format before it on the ladder does not."""
    assert 50 < len(found) < 200 and found
    for row in fewer(found.rows()[::9], 4):
        alone = ep.fits(row["model"], "24GB", context=32_768, weights=row["weights"])
        assert alone and (alone.total, alone.left) == (row["total_bytes"], row["left_bytes"])
        assert alone.longest_context == row["longest_context"]
        assert ep.fits(row["model"], "24GB", context=32_768, weights="best").given.format == row["weights"]
        if row["weights"] != "published":
            assert not ep.fits(row["model"], "24GB", context=32_768)


def test_what_is_not_in_the_list_does_not_fit_or_is_made_for_less(found):
    listed = {row["model"] for row in found.rows()}
    out = found.to_dict()
    assert listed | {*out["too_large"]} | {*out["made_for_shorter_contexts"]} == {
        slug for slug in presets.paths() if presets.preset(slug).config is not None
    }
    assert "llama3.3-70b" in out["too_large"] and "gpt2" in out["made_for_shorter_contexts"]


def test_the_best_stand_first(found):
    rows = found.rows()
    few = [row["bits_per_weight"] < 4 for row in rows]
    assert few == sorted(few)
    wide = [row["parameters"] for row in rows if row["bits_per_weight"] >= 4]
    assert wide == sorted(wide, reverse=True)


def test_the_terminal_says_the_same(run, found):
    status, out, err = run("fits --on 24GB --context 32k")
    assert status == 0 and not err and out.startswith(found.sentence)
    assert [line.split()[0] for line in out.splitlines()[3:] if line] == [row["model"] for row in found.rows()]
    assert "Time" not in out, "no bandwidth is known"
    status, out, _ = run("fits --on 24GB --context 32k --format json")
    assert json.loads(out) == json.loads(json.dumps(found.to_dict())) and status == 0
    status, out, _ = run("fits --on 24GB --context 32k --format csv")
    rows = [*csv.DictReader(io.StringIO(out))]
    assert [int(row["total_bytes"]) for row in rows] == [row["total_bytes"] for row in found.rows()]


@pytest.mark.exhaustive
def test_a_format_is_taken_for_all(run):
    status, out, _ = run("fits --on 8GB,100GB/s --weights q4_k_m --format json")
    said = json.loads(out)
    assert status == 0 and {row["weights"] for row in said["models"]} == {"Q4_K_M"} and said["models"]
    assert all(row["decode_seconds"] > 0 for row in said["models"])
    assert run("fits --on 1kB")[0] == 1


def test_machines_hold_a_model(run):
    status, out, _ = run("fits llama3.3-70b --context 8k --format json")
    said = json.loads(out)
    rows = {row["machine"]: row for row in said["machines"]}
    assert status == 0 and rows["h100"]["fits"] and not rows["l4"]["fits"]
    for slug in ("h100", "b200"):
        alone = ep.fits("llama3.3-70b", slug, context=8192, weights="best")
        assert (alone.given.format, alone.total) == (rows[slug]["weights"], rows[slug]["total_bytes"])
    for slug in ("l4", "h100"):
        assert rows[slug]["enough_devices"] == ep.fits("llama3.3-70b", slug, context=8192).enough_devices
    assert [row["fits"] for row in said["machines"]] == sorted((row["fits"] for row in said["machines"]), reverse=True)
    status, out, _ = run("fits llama3.3-70b --context 8k --weights int4")
    assert "Devices in int4" in out and "does not fit" in out and "with weights in int4." in out


def test_where_no_format_fits_the_smallest_is_said(run):
    status, out, _ = run("fits llama3-70b --on 24GB --weights best --context 8k")
    assert status == 1 and out.startswith("Llama 3 70B in Q2_K does not fit on 24 GB")


@pytest.mark.parametrize(
    "line, said",
    [
        ("fits", "fits needs a model or a machine; such as fits llama3-8b, or fits --on 24GB"),
        ("fits --on 24", "neither an accelerator nor a size"),
        ("fits gpt2 --on 24GB --format csv", "--format csv is for one list"),
        ("fits opt-125m --weights q4_k_m --context 1k", "no GGUF format is known for 'opt'"),
        ("fits --on 24GB --weights bestest", "'bestest' is not a format of weights"),
        ("compare gpt2 gpt2-xl --weights best", "'best' is not a format of weights"),
    ],
)
def test_what_cannot_be_is_one_line(run, line, said):
    status, out, err = run(line)
    assert status == 2 and not out and err.count("\n") == 1 and said in err, err


def weights(slug, name):
    return f"{costs_of(presets.model(slug).counts).weight_bytes(name):,}"


def speed(slug, machine, devices):
    given = Conditions(4096, format="published", devices=devices, accelerator=accelerator(machine))
    seconds = costs_of(presets.model(slug).counts).bound(1, given).seconds
    return (
        f"A decode step takes at least {rounding.duration(seconds)}: at most {rounding.significant(1 / seconds)} tokens"
    )


# The questions of tests/browser/test_home.py, which threads on inference engines ask most; what fits is asked above.
COMMANDS = {
    "fits llama3.3-70b --weights int4 --on 24GB": lambda: weights("llama3.3-70b", "int4"),
    "describe qwen3-32b --weights q4_k_m": lambda: weights("qwen3-32b", "Q4_K_M"),
    "fits deepseek-v3 --on h200 --devices 8": lambda: "fits on 8 × H200 SXM (141 GB each), tensor parallel 8",
    "fits deepseek-v3 --on h100": lambda: "No context fits. 16 devices hold it",
    "describe mixtral-8x7b": lambda: weights("mixtral-8x7b", "bfloat16"),
    "fits gpt-oss-120b --on rtx-4090": lambda: weights("gpt-oss-120b", "published"),
    "describe gemma3-27b --context 128k": lambda: f"{presets.model('gemma3-27b').counts.cache_bytes(131_072):,}",
    "fits llama3-70b --on h100 --devices 2": lambda: speed("llama3-70b", "h100", 2),
    "train llama3.1-8b --method qlora": lambda: (
        "Llama 3.1 8B with QLoRA of rank 8 on q_proj, v_proj: 3,407,872 trainable"
    ),
}


def test_what_is_asked_most_is_one_command(run):
    for line, said in COMMANDS.items():
        assert said() in run(line)[1], line


def test_the_least_time_stands_where_the_model_fits_and_a_bandwidth_is_known(run):
    assert "decode step" not in run("fits llama3-8b --on 24GB")[1]
    assert "decode step" not in run("fits llama3-70b --on h100")[1]
    said = json.loads(run("fits llama3-8b --on m2-pro --weights int4 --batch 3 --format json")[1])
    given = Conditions(4096, 3, "int4", accelerator=accelerator("m2-pro"))
    seconds = costs_of(presets.model("llama3-8b").counts).bound(1, given).seconds
    assert said["decode_seconds"] == float(seconds)
    rate = rounding.significant(3 / seconds)
    assert f"at most {rate} tokens per second" in run("fits llama3-8b --on m2-pro --weights int4 --batch 3")[1]


@pytest.mark.parametrize("on, weights, cache, batch", [("24GB", "best", "q8_0", 3), ("h100", "Q4_K_M", "bfloat16", 1)])
def test_the_list_without_traces_is_that_of_the_traces(on, weights, cache, batch):
    """Of each model that is drawn, every figure of its row, or that it does not fit."""
    answer = ep.fits(on=on, context=8192, weights=weights, cache=cache, batch=batch)
    rows = {row["model"]: row for row in answer.rows()}
    on_machine = machine(on, accelerators())
    given = Conditions(8192, batch, "published" if weights == "best" else weights, cache, 1, on_machine.accelerator)
    known = [slug for slug in presets.readable() if presets.preset(slug).config is not None]
    for slug in fewer(known, 8):
        model = presets.model(slug)
        said = fitting(costs_of(model.counts), weights, given, on_machine)
        assert (slug in answer.left_out["too_large"]) == (said is None), slug
        if slug in rows:
            row = rows[slug]
            seconds = None if said.seconds is None else float(said.seconds)
            assert row["weights"] == said.format and row["format"] == model.counts.formats.said(said.format), slug
            assert (row["total_bytes"], row["left_bytes"]) == (said.total, said.left), slug
            assert (row["longest_context"], row["largest_batch"]) == (said.longest_context, said.largest_batch), slug
            assert row["decode_seconds"] == seconds and row["parameters"] == model.counts.total, slug
            assert (row["name"], row["model_context"]) == (model.name, model.longest_context[0]), slug


LISTING = """
import sys
from macros.catalogue import presets
if sys.argv[1] == "later":
    def model(slug):
        raise AssertionError("a trace is made anew")
    presets.model = model
from macros.__main__ import main
sys.exit(main(["fits", "--on", "24GB", "--format", "json"]))
"""


def listed_by_another(cache, when, **environment):
    """The status, output and errors of a process of its own, whose cache is there."""
    command = [sys.executable, "-c", LISTING, when]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), **environment}
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True)
    return done.returncode, done.stdout, done.stderr


def test_a_second_call_makes_no_trace(tmp_path):
    """What depends on the models alone is on disk."""
    cache = tmp_path / "cache"
    status, first, _ = listed_by_another(cache, "first", KEPT="yes")
    assert status == 0 and json.loads(first)["models"] and cache.exists()
    assert listed_by_another(cache, "later", KEPT="yes")[:2] == (0, first)


@pytest.mark.slow("three lists, for each of which all models are traced")
def test_without_a_cache_the_list_is_the_same(tmp_path):
    """With KEPT=no nothing is on disk, nor where there is no folder."""
    cache, blocked = tmp_path / "cache", tmp_path / "file"
    blocked.write_text("")
    status, first, _ = listed_by_another(cache, "first", KEPT="no")
    assert status == 0 and json.loads(first)["models"] and not cache.exists()
    assert listed_by_another(blocked, "first", KEPT="yes")[:2] == (0, first)
    assert "a trace is made anew" in listed_by_another(cache, "later", KEPT="no")[2]


@pytest.mark.parametrize("folders", [[], ["presets"]])
def test_presets_of_another_folder_are_kept_nowhere(tmp_path, monkeypatch, folders):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KEPT", raising=False)
    monkeypatch.setattr(presets, "also", [tmp_path / name for name in folders])
    assert listed()
    assert (tmp_path / "cache").exists() == (not folders)


def test_no_gguf_file_is_offered_where_no_engine_runs_one():
    """llama.cpp has no backend for TPUs, Gaudi, Trainium and Inferentia, which would hold 70B in 2 bits."""
    found = {row["machine"]: row for row in ep.fits("llama3.3-70b").rows() if row["fits"]}
    assert not found.keys() & {"tpu-v4", "tpu-v6e", "trainium", "inferentia2"} and "tpu-v5p" in found
    named = {slug: accelerators()[slug].name for slug in found}
    assert not [
        slug
        for slug, row in found.items()
        if named[slug].startswith(("TPU", "Gaudi", "Trainium", "Inferentia")) and row["weights"].startswith("Q")
    ]
    assert found["rtx-6000-ada"]["weights"] == "Q4_K_M"
