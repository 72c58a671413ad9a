"""The command line, as a process and as a function: describe, check, run, add. The others: test_questions.py."""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import json
import math
import os
import re
import resource
import subprocess
import sys
import time
import tomllib
import tracemalloc
from pathlib import Path
from unittest import mock

import msgspec
import numpy as np
import pytest
from copies import ROOT
from fuzz.configs import described, filled
from reference import TOLERANCE, checkpoint, close, golden, goldens
from reference.configs import small_config
from rich.console import Console
from sampling import fewer

import macros as ep
from macros.__main__ import main
from macros.api.run_memory import needed
from macros.cache import memory
from macros.catalogue import checks, preset_file, presets
from macros.catalogue.checkpoints import SHIPPED
from macros.catalogue.stored import BITS, INDEX, header
from macros.cli.commands import HERE
from macros.cli.other_commands import COMMANDS
from macros.cli.printing import EXACT, ROUND, WORDS, Column, Grid, Title, plain
from macros.cli.printing import write as write_blocks
from macros.engine.architectures import architectures
from macros.engine.errors import Problem
from macros.engine.files import write, writing
from macros.engine.forward import logits
from macros.views.models import model_page

ml_dtypes = pytest.importorskip("ml_dtypes")
safetensors = pytest.importorskip("safetensors.numpy")


def process(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "macros", *map(str, arguments)], cwd=ROOT, text=True, capture_output=True, **options
    )


@pytest.fixture
def run(capsys):
    """`run("describe", "gpt2")` -> (exit status, standard output, standard error); nothing may be a traceback."""

    def call(*arguments):
        try:
            status = main([str(a) for a in arguments])
        except SystemExit as exit_:
            status = exit_.code
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return status, out, err

    return call


def refused(result) -> str:
    """The one line of a call that fails with 2."""
    status, out, err = result
    assert status == 2 and err.count("\n") == 1 and err.endswith("\n"), (status, err)
    return err


CAPITALS = SHIPPED["capitals"]
FORGED = "a\x1b[31m\x9b1m\r\u202e\u2028b"


def test_tables_without_a_terminal_are_those_of_rich():
    grid = Grid([WORDS, ROUND, EXACT, WORDS], [("a", "1 GB", "1,000,000,000", ""), ("日本 §", "", "7", "− b\u200b")])
    headed = Grid([Column("name"), Column("copies", is_number=True)], [("w.{i}", "× 2"), ("", "")])
    blocks = [Title("模型 ×"), grid, "two words", headed, Grid([WORDS], [])]
    by_rich = io.StringIO()
    write_blocks(Console(file=by_rich, width=1000, color_system=None, legacy_windows=False), blocks)
    assert plain(blocks) == "".join(f"{line.rstrip()}\n" for line in by_rich.getvalue().splitlines())


def test_no_text_of_others_acts_on_the_terminal(run, tmp_path):
    """Names of files, keys, values and arguments: every character is shown, none obeyed, and none makes a line."""
    folder = tmp_path / FORGED
    folder.mkdir()
    raw = presets.preset("llama3-8b").config
    (folder / "config.json").write_text(json.dumps(raw | {FORGED: FORGED, FORGED * 99: 1}))
    (folder / "wrong.json").write_text(json.dumps(raw | {"hidden_act": FORGED}))
    calls = (
        *(("describe", folder, "--format", f) for f in ("table", "json", "csv")),
        ("describe", folder / "wrong.json", FORGED, FORGED * 999),
        ("compare", folder, "gpt2"),
        ("compare", FORGED),
        ("what-if", folder, "--set", f"{FORGED}=1"),
        ("what-if", folder, "--set", f"hidden_act={FORGED}"),
        ("fits", folder, "--on", FORGED),
        ("fits", folder, "--on", "h100"),
        ("run", folder, "--tokens", FORGED),
        ("add", folder),
        ("add", folder, "--slug", FORGED),
        ("check", FORGED),
        ("describe", "gpt2", f"--{FORGED}"),
        (FORGED,),
    )
    for call in calls:
        _, out, err = run(*call)
        assert all(line.isprintable() for line in (out + err).split("\n")), call
        assert all(line.startswith("every-parameter") and len(line) < 2000 for line in err.splitlines()), err


# --- describe --------------------------------------------------------------------------------------------------------


def test_json_has_the_promised_keys(run):
    status, out, err = run("describe", "--format", "json", "llama3-8b", "gpt2")
    assert status == 0 and not err
    llama, gpt2 = map(json.loads, out.splitlines())
    assert llama["model"] == "llama3-8b" and gpt2["model"] == "gpt2" and llama["architecture"] == "llama"
    assert llama["parameters"] == {
        "total": 8030261248,
        "active": 8030261248,
        "active_excluding_input_embedding": 8030261248 - 128256 * 4096,
        "active_non_embedding": 8030261248 - 2 * 128256 * 4096,
        "excluding_ngram_tables": 8030261248,
        "embedding": 2 * 128256 * 4096,
        "non_embedding": 8030261248 - 2 * 128256 * 4096,
        "stored": 8030261248,
        "stored_is_computed": False,
    }
    assert len(llama["tensors"]) == 291 and llama["tensors"][1] == ["model.layers.0.input_layernorm.weight", [4096]]
    assert llama["names_verified"] is True and gpt2["names_verified"] is False
    assert llama["kv_cache"]["bytes_per_token"] == llama["kv_cache"]["bytes_per_token_uncapped"] == 131072
    assert llama["kv_cache"]["bytes_at"] == {"4096": 131072 * 4096, "131072": 131072 * 131072}
    assert (
        set(llama["flops"]) == {"decode_at", "prefill"}
        and llama["flops"]["decode_at"]["4096"] == 2 * (8030261248 - 128256 * 4096 - 65 * 4096) + 4 * 32 * 4096 * 4096
    )
    assert gpt2["parameters"]["stored"] == 137022720


@pytest.mark.exhaustive
@pytest.mark.parametrize("slug", ["gpt2", "deepseek-v3", "mixtral-8x7b"])
def test_every_layer_and_expert_is_written_out(run, slug):
    tensors = json.loads(run("describe", "--format", "json", slug)[1])["tensors"]
    rows = [(n, i, e) for n, r, _ in checkpoint(slug)["tensors"] for i in _all(r, "i") for e in _all(r, "e")]
    assert sorted(n for n, _ in tensors) == sorted(n.replace("{i}", str(i)).replace("{e}", str(e)) for n, i, e in rows)


def _all(ranges, key):
    return [n for a, b, s in ranges[key] for n in range(a, b + 1, s)] if ranges and key in ranges else [None]


def test_collapsed(run):
    tensors = json.loads(run("describe", "--format", "json", "--collapse", "deepseek-v3")[1])["tensors"]
    assert [
        "model.layers.{i}.mlp.experts.{e}.gate_proj.weight",
        [2048, 7168],
        {"i": [[3, 60, 1]], "e": [[0, 255, 1]]},
    ] in tensors and len(tensors) < 60


@pytest.mark.parametrize("collapse", [[], ["--collapse"]], ids=str)
def test_csv(run, collapse):
    _, out, _ = run("describe", "--format", "csv", *collapse, "gpt2", "llama3-8b")
    rows = list(csv.DictReader(io.StringIO(out)))
    for slug, total in (("gpt2", 124439808), ("llama3-8b", 8030261248)):
        assert sum(int(r["parameters"]) for r in rows if r["model"] == slug) == total
    assert {"shape": rows[0]["shape"], "tensor": rows[0]["tensor"]} == {
        "shape": "50257x768",
        "tensor": "transformer.wte.weight",
    }


def test_the_table_is_for_reading(run):
    _, out, _ = run("describe", "gpt2")
    for expected in (
        "GPT-2 Small (gpt2)",
        "124,439,808",
        "vocab_size·d_model",
        "[768, 2304]",
        "× 12",
        "36,864",
        "transformer.h.{i}.mlp.c_fc.weight",
    ):
        assert expected in out


def test_what_cannot_be_described_does_not_stop_the_others(run):
    status, out, err = run(
        "describe", "--format", "json", "gpt2", "nope", "claude-3-opus", "/none/config.json", "gpt2-xl"
    )
    assert status == 2 and [json.loads(line)["model"] for line in out.splitlines()] == ["gpt2", "gpt2-xl"]
    assert (
        err.count("\n") == 3
        and "unknown model 'nope'" in err
        and "not disclosed" in err
        and "/none/config.json: cannot be read" in err
    )


def test_the_format_of_a_name_counts_unless_another_is_asked_for(run):
    def moved(*arguments):
        """The bytes of a token at 4,096, model by model."""
        text = run("describe", *arguments)[1]
        return [line.split()[-5] for line in text.splitlines() if line.startswith("bytes moved per token at 4,096")]

    plain, mlx = moved("qwen3-8b")[0], moved("qwen3-8b", "--weights", "mlx-4bit")[0]
    assert plain != mlx
    assert moved("mlx-community/Qwen3-8B-4bit") == [mlx]
    assert moved("qwen3-8b", "mlx-community/Qwen3-8B-4bit", "Qwen/Qwen3-8B") == [plain, mlx, plain]
    assert moved("mlx-community/Qwen3-8B-4bit", "--weights", "bfloat16") == [plain]
    assert "none is taken" in run("compare", "qwen3-8b", "mlx-community/Qwen3-14B-4bit")[2]
    assert "none is taken" not in run("compare", "Qwen/Qwen3-8B-AWQ", "Qwen/Qwen3-14B-AWQ")[2]


def test_a_config_and_its_folder(run, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({**presets.preset("gpt2").config, "some_new_key": 1}))
    for path in (tmp_path, tmp_path / "config.json"):
        status, out, err = run("describe", "--format", "json", path)
        found = json.loads(out)
        assert (
            status == 0
            and found["model"] == str(path)
            and found["parameters"]["total"] == 124439808
            and found["names_verified"] is False
        )
        assert (
            err.count("\n") == 1
            and "unknown keys, taken as changing no shape: 'some_new_key'" in err
            and "some_new_key" in found["warnings"][0]
        )


# --- check -----------------------------------------------------------------------------------------------------------


def test_check_some(run):
    status, out, err = run("check", "gpt2", "claude-3-opus", "gpt3-13b")
    lines = out.splitlines()
    assert status == 0 and not err and len(lines) == 4
    assert (
        lines[0].split()[:2] == ["ok", "gpt2"]
        and "exact, 12,582,912 more than the parameters by name; 148 tensors as in the reference list" in lines[0]
    )
    assert (
        "undisclosed" in lines[1]
        and "of the rounded 13,000,000,000" in lines[2]
        and lines[3] == "3 models, 2 as published, 1 undisclosed, 0 off"
    )


def test_two_processes_check_what_one_does(monkeypatch):
    monkeypatch.setattr(checks, "MANY", 1)
    monkeypatch.setattr("macros.cache.second_process.is_worthwhile", lambda: True)
    slugs, here, processes = ["gpt2", "claude-3-opus", "gpt3-13b", "llama3-8b"], os.getpid(), set[int]()
    alone = [checks.check(slug) for slug in slugs]

    def check(slug):
        time.sleep(0.05)
        return checks.Result(alone[slugs.index(slug)].state, f"{alone[slugs.index(slug)].text} {os.getpid()}")

    monkeypatch.setattr(checks, "check", check)
    for result, expected in zip(checks.results(slugs), alone, strict=True):
        text, _, process = result.text.rpartition(" ")
        processes.add(int(process))
        assert (result.state, text) == (expected.state, expected.text)
    assert here in processes and len(processes) == 2


def test_check_of_a_file(run, tmp_path):
    """A preset that is not ours, by its path; one of ours by the path of its file is itself."""
    ours = presets.paths()["gpt2"]
    text = ours.read_text("utf-8")
    theirs = text.replace('name = "', 'name = "Their ', 1)
    files = {
        "theirs": theirs,
        "off": theirs.replace("n_layer = 12", "n_layer = 13").replace("Their", "Another", 1),
        "blank": 'name = ""\n',
        "gpt2": text,
        "none": None,
    }
    for name, content in files.items():
        if content is not None:
            (tmp_path / f"{name}.toml").write_text(content, "utf-8")
    paths = [tmp_path / f"{name}.toml" for name in files]
    status, out, err = run("check", *paths, ours)
    *lines, last = out.splitlines()
    assert status == 1 and not err and last == "6 models, 2 as published, 0 undisclosed, 4 off"
    said = (
        (f"ok   {paths[0]}  ", "exact, 12,582,912 more than the parameters by name"),
        ("off", f"{paths[1]}: published.parameters = 137,022,720, and the forward pass gives"),
        ("off", f"{paths[2]}: fill in: name, family, "),
        ("off", f"{paths[3]}: duplicate slug, also in macros/presets/gpt/gpt2.toml"),
        ("off", f"{paths[4]}: cannot be read: No such file"),
        ("ok   gpt2  ", "148 tensors as in the reference list"),
    )
    for line, (begin, inside) in zip(lines, said, strict=True):
        assert line.startswith(begin) and inside in line
    assert "`every-parameter schema` says what each key holds" in lines[2]
    assert presets.also == [] and "theirs" not in presets.paths()


def test_check_of_an_unknown_slug(run):
    status, out, err = run("check", "gpt2", "lama3-8b")
    assert status == 2 and 'did you mean "llama3-8b"' in err and "gpt2" in out


def test_check_finds_what_is_off(run, monkeypatch):
    listed = checkpoint("gpt2")
    monkeypatch.setattr("macros.catalogue.checks.reference", lambda slug: {**listed, "tensors": listed["tensors"][1:]})
    status, out, _ = run("check", "gpt2")
    assert (
        status == 1 and out.startswith("off  gpt2") and out.endswith("1 model, 0 as published, 0 undisclosed, 1 off\n")
    )


# --- run -------------------------------------------------------------------------------------------------------------


def folder_of(
    name: str, path: Path, kind="one file", dtype=np.float32, rename=lambda n: n, extra=None, packed=False
) -> Path:
    """A checkpoint folder as the hub has them, or as transformers 5 saves it, made of a golden checkpoint."""
    g = golden(name)
    path.mkdir(exist_ok=True)
    stored = g.packed if packed else g.tensors
    as_stored = {n: t if t.dtype.kind == "i" else t.astype(dtype) for n, t in stored.items()}
    tensors = {rename(n): np.asarray(t, order="C") for n, t in as_stored.items()} | (extra or {})
    (path / "config.json").write_text(json.dumps(g.raw))
    if kind == "one file":
        safetensors.save_file(tensors, path / "model.safetensors")
        return path
    names, weight_map = sorted(tensors), {}
    for i, part in enumerate(np.array_split(names, 3)):
        file = f"model-{i + 1:05}-of-00003.safetensors"
        safetensors.save_file({n: tensors[n] for n in part}, path / file)
        weight_map |= dict.fromkeys(map(str, part), file)
    if kind == "sharded":
        (path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return path


def ids(name):
    return ",".join(map(str, golden(name).ids))


@pytest.mark.parametrize("kind", ["one file", "sharded", "several without an index"])
@pytest.mark.parametrize("name", [n for n in ("gpt2", "llama", "llama3_rope", "mistral") if n in goldens()])
def test_run_gives_the_reference_logits(run, tmp_path, name, kind):
    folder = folder_of(name, tmp_path / "m", kind)
    status, out, err = run("run", folder, "--tokens", ids(name), "--logits", tmp_path / "out.npy", "--top", "3")
    logits = np.load(tmp_path / "out.npy")
    assert status == 0 and not err and logits.dtype == np.float32
    close(logits, golden(name).logits)
    rows = [line.split() for line in out.splitlines()[1:]]
    last = golden(name).logits[-1].astype(np.float64)
    shares = np.exp(last - last.max()) / np.exp(last - last.max()).sum()
    assert [int(token) for token, _ in rows] == list(np.argsort(-last)[:3])
    assert np.allclose([float(p) for _, p in rows], np.sort(shares)[::-1][:3], atol=1e-5)


@pytest.mark.parametrize("name", goldens())
def test_run_on_every_architecture(run, tmp_path, name):
    source = []
    if golden(name).source is not None:
        np.save(tmp_path / "sound.npy", golden(name).source)
        is_text = golden(name).source.ndim == 1
        source = ["--source", ",".join(map(str, golden(name).source)) if is_text else tmp_path / "sound.npy"]
    folder = folder_of(name, tmp_path / "m", "sharded")
    status, _, err = run("run", folder, "--tokens", ids(name), *source, "--logits", tmp_path / "out.npy")
    assert status == 0, err
    golden(name).close(np.load(tmp_path / "out.npy"))


@pytest.mark.parametrize("name", [n for n in goldens() if golden(n).architecture.fused])
def test_run_on_what_transformers_packs(run, tmp_path, name):
    folder = folder_of(name, tmp_path / "m", packed=True)
    status, _, err = run("run", folder, "--tokens", ids(name), "--logits", tmp_path / "out.npy")
    assert status == 0, err
    golden(name).close(np.load(tmp_path / "out.npy"))


@pytest.mark.parametrize(
    "name, source, said",
    [
        ("t5", [], "its input is missing"),
        ("t5", ["--source", "3,61"], "--source: 61 is beyond the vocabulary"),
        ("bart", ["--source", ",".join("3" * 14)], "--source: 14 tokens, and the model has 13 positions"),
        ("whisper", ["--source", "nowhere.npy"], "--source nowhere.npy: "),
        ("gpt2", ["--source", "3"], "--source: the model has no encoder"),
    ],
)
def test_what_an_encoder_is_to_read_is_checked(run, tmp_path, name, source, said):
    status, _, err = run("run", folder_of(name, tmp_path / "m", "one file"), "--tokens", "3,4", *source)
    assert status == 2 and said in err and err.count("\n") == 1


def nemotron(name, array):
    if ".experts." in name:
        stack, _, part = name.rpartition(".")
        return {f"{stack}.{e}.{part}.weight".replace("model.", "backbone.", 1): one for e, one in enumerate(array)}
    return {name.replace("model.", "backbone.", 1): array}


def granite(name, array):
    for ours, theirs in (
        ("experts.gate_up_proj", "input_linear.weight"),
        ("experts.down_proj", "output_linear.weight"),
        ("router.weight", "router.layer.weight"),
    ):
        name = name.replace(ours, theirs)
    return {name: array}


def mixtral_names(name, array):
    head, _, part = name.rpartition(".mlp.experts.")
    if part == "gate_up_proj":
        return {
            f"{head}.block_sparse_moe.experts.{e}.{w}.weight": half
            for e, one in enumerate(array)
            for w, half in zip(("w1", "w3"), np.split(one, 2))
        }
    if part == "down_proj":
        return {f"{head}.block_sparse_moe.experts.{e}.w2.weight": one for e, one in enumerate(array)}
    return {name.replace(".mlp.gate.", ".block_sparse_moe.gate."): array}


@pytest.mark.parametrize(
    "name, published",
    [
        ("gpt_neox", lambda name, array: {name.replace("lm_head", "embed_out"): array}),
        ("gemma3_text", lambda name, array: {f"language_model.{name}": array}),
        ("nemotron_h", nemotron),
        ("granitemoehybrid", granite),
        ("minimax", mixtral_names),
    ],
)
def test_run_on_the_published_spelling(run, tmp_path, name, published):
    folder, g = folder_of(name, tmp_path / "m"), golden(name)
    tensors = {
        n: np.asarray(t, order="C") for old, array in g.tensors.items() for n, t in published(old, array).items()
    }
    assert set(tensors) != set(g.tensors)
    safetensors.save_file(tensors, folder / "model.safetensors")
    status, _, err = run("run", folder, "--tokens", ids(name), "--logits", tmp_path / "out.npy")
    close(np.load(tmp_path / "out.npy"), g.logits)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_run_in_half_precision(run, tmp_path, dtype):
    """Equal to the same weights rounded to half precision and computed in float32; near the reference."""
    from macros.engine.forward import logits
    from macros.engine.loaded import Arrays

    g = golden("llama")
    folder = folder_of("llama", tmp_path / "m", dtype=dtype)
    assert run("run", folder, "--tokens", ids("llama"), "--logits", tmp_path / "out.npy")[0] == 0
    rounded = {n: t.astype(dtype).astype(np.float32) for n, t in g.tensors.items()}
    expected, _ = logits(g.architecture, g.config, Arrays(rounded), g.ids)
    close(np.load(tmp_path / "out.npy"), expected)
    close(np.load(tmp_path / "out.npy"), g.logits, 0.1)
    with pytest.raises(AssertionError):
        close(np.load(tmp_path / "out.npy"), g.logits, TOLERANCE)


def test_run_on_the_official_gpt2_layout(run, tmp_path):
    """Without the prefix, with the masks that old releases saved."""
    masks = {f"h.{i}.attn.bias": np.tril(np.ones((1, 1, 8, 8), np.float32)) for i in range(3)}
    folder = folder_of("gpt2", tmp_path / "m", rename=lambda n: n.removeprefix("transformer."), extra=masks)
    status, _, err = run("run", folder, "--tokens", ids("gpt2"), "--logits", tmp_path / "out.npy")
    assert status == 0 and not err
    close(np.load(tmp_path / "out.npy"), golden("gpt2").logits)


def test_run_says_what_it_did_not_use(run, tmp_path):
    folder = folder_of(
        "llama", tmp_path / "m", extra={f"model.layers.{i}.extra.weight": np.ones(3, np.float32) for i in range(5)}
    )
    status, out, err = run("run", folder, "--tokens", "1,2")
    assert status == 0 and out and err.count("\n") == 1 and "model.layers.0.extra.weight" in err and "and 2 more" in err


def test_run_leaves_out_designs(run, tmp_path):
    """As `ep.run` does, for each word that is generated, and in the trace; a name that no step has is one line."""
    text, left_out = "The capital of Japan is", ["causal_mask", "ln_f"]
    options = [one for name in left_out for one in ("--without", name)]
    status, out, err = run(
        "run", "capitals", "--text", text, *options, "--generate", "3", "--trace", "--logits", tmp_path / "out.npy"
    )
    assert status == 0 and not err
    answer = ep.run("capitals", text, without=left_out, all_logits=True, trace=True)
    close(np.load(tmp_path / "out.npy"), answer.logits)
    assert f"{answer.logits.mean():.4f}" in next(line for line in out.splitlines() if "unembedding" in line)
    close(answer.steps[-1].output, answer.logits)
    tokens = list(answer.tokens)
    for _ in range(3):
        tokens.append(ep.run("capitals", tokens=tokens, without=left_out, top=1).rows()[0]["token"])
    assert [int(row.split()[0]) for row in out.splitlines()[-5:-2]] == tokens[-3:]
    wrong = refused(run("run", "capitals", "--tokens", "1", "--without", "scalling"))
    assert "--without 'scalling': no step has it; did you mean \"scaling\"?" in wrong


def test_run_reads_only_what_it_needs(tmp_path):
    """A file is opened when one of its tensors is asked for."""
    from macros.engine.checkpoint import Files

    files = Files(folder_of("llama", tmp_path / "m", "sharded"))
    assert not files.open
    files["model.norm.weight"]
    assert len(files.open) == 1 and files.used == {"model.norm.weight"}


@pytest.mark.parametrize(
    "tokens, found",
    [
        ("", "'' is not a token id"),
        ("1,,2", "'' is not a token id"),
        ("1, x", "'x' is not a token id"),
        ("-1", "'-1' is not a token id"),
        ("1.5", "'1.5' is not"),
        ("²", "is not a token id"),
        ("9" * 400, "is not a token id"),
        ("1,99999", "99999 is beyond the vocabulary; ids of this model run from 0 to "),
        (",".join(["1"] * 4000), "4000 tokens, and the model has "),
        ("1;2", "'1;2' is not a token id"),
        ("\n", "is not a token id"),
    ],
)
def test_bad_tokens(run, tmp_path, tokens, found):
    folder = folder_of("gpt2", tmp_path / "m")
    err = refused(run("run", folder, f"--tokens={tokens}"))
    assert found in err


def spoil(what, folder: Path):
    index, shard = folder / "model.safetensors.index.json", folder / "model-00002-of-00003.safetensors"
    raw = json.loads((folder / "config.json").read_text())
    if what == "a missing shard":
        shard.unlink()
    elif what == "a cut shard":
        shard.write_bytes(shard.read_bytes()[:50])
    elif what == "no safetensors":
        shard.write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00not json")
    elif what == "a shard that is a folder":
        shard.unlink(), shard.mkdir()
    elif what == "a broken index":
        index.write_text("{")
    elif what == "an index of another kind":
        index.write_text('{"weight_map": [1]}')
    elif what == "an index that leads elsewhere":
        index.write_text(json.dumps({"weight_map": {"model.norm.weight": "../x.safetensors"}}))
    elif what == "an index that is wrong":
        weight_map = json.loads(index.read_text())["weight_map"]
        first, *_, last = sorted(set(weight_map.values()))
        index.write_text(json.dumps({"weight_map": {n: last if f == first else f for n, f in weight_map.items()}}))
    elif what == "no weights":
        for file in folder.glob("*.safetensors*"):
            file.unlink()
    elif what == "another config":
        (folder / "config.json").write_text(json.dumps(raw | {"intermediate_size": raw["intermediate_size"] + 1}))
    elif what == "one layer too many":
        (folder / "config.json").write_text(json.dumps(raw | {"num_hidden_layers": raw["num_hidden_layers"] + 1}))
    elif what == "no config":
        (folder / "config.json").unlink()
    elif what == "not numbers":
        tensors = {n: np.full_like(t, np.nan) if "norm" in n else t for n, t in golden("llama").tensors.items()}
        for file in folder.glob("*.safetensors*"):
            file.unlink()
        safetensors.save_file(tensors, folder / "model.safetensors")
    elif what == "quantised":
        tensors = {n: t.astype(np.int8) for n, t in golden("llama").tensors.items()}
        for file in folder.glob("*.safetensors*"):
            file.unlink()
        safetensors.save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize(
    "what, found",
    [
        ("a missing shard", "model-00002-of-00003.safetensors: cannot be read: no such file"),
        ("a cut shard", "model-00002-of-00003.safetensors: cannot be read"),
        ("no safetensors", "cannot be read"),
        ("a shard that is a folder", "cannot be read"),
        ("a broken index", "index.json: broken JSON"),
        ("an index of another kind", "weight_map: expected a table"),
        ("an index that leads elsewhere", "'../x.safetensors' is not a file of this folder"),
        ("an index that is wrong", "although the index lists it"),
        ("no weights", "no *.safetensors here"),
        ("another config", "in the file and"),
        ("one layer too many", "the checkpoint has no tensor model.layers."),
        ("no config", "config.json: cannot be read"),
        ("not numbers", "not finite"),
        ("quantised", "is stored as I8"),
    ],
)
def test_a_spoilt_folder(run, tmp_path, what, found):
    folder = folder_of("llama", tmp_path / "m", "sharded")
    spoil(what, folder)
    err = refused(run("run", folder, "--tokens", "1,2"))
    assert found in err, err


@pytest.mark.parametrize("target", ["none/out.npy", "."])
def test_logits_that_cannot_be_written(run, tmp_path, target):
    folder = folder_of("llama", tmp_path / "m")
    assert "cannot be written" in refused(run("run", folder, "--tokens", "1", "--logits", tmp_path / target))


@pytest.mark.parametrize("top", ["0", "-1", "x", "1.5", "9" * 30])
def test_a_bad_top(run, tmp_path, top):
    assert "--top" in refused(run("run", tmp_path, "--tokens", "1", f"--top={top}"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["llama", "gemma2", "deepseek_v3", "gpt_oss", "mamba"])
def test_a_run_takes_the_memory_that_was_reckoned(name):
    g = golden(name)
    model = presets.make(name, g.raw)
    weights, tokens = g.weights(), [n % 50 for n in range(400)]
    tracemalloc.start()
    logits(g.architecture, g.config, weights, tokens, last=True)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 1 < needed(model, len(tokens), False) / taken < 4


def test_a_run_that_has_no_room_is_refused_before_it_begins(run, tmp_path, monkeypatch):
    folder, many = folder_of("llama", tmp_path / "m"), ",".join(["1"] * 20_000)
    takes = r"20,000 tokens take about 62\.4 GB of memory"
    assert re.search(
        f"m: --memory: {takes}, and the limit is 4.00 GB; give",
        refused(run("run", folder, "--tokens", many, "--memory", "4GB")),
    )
    monkeypatch.setattr("macros.api.run_memory.of_this_machine", lambda: 10**9)
    assert re.search(f"{takes}, and this machine has 1.00 GB", refused(run("run", folder, "--tokens", many)))
    assert "--memory 'much': not an amount" in refused(run("run", folder, "--tokens", "1", "--memory", "much"))
    monkeypatch.setattr("macros.api.run_memory.MUCH", 1000)
    status, _, err = run("run", folder, "--tokens", "1")
    assert status == 0 and re.search(r"m: 1 tokens take about .* kB of memory", err)


def test_a_checkpoint_of_many_tensors_is_read_at_once(run, tmp_path):
    """Each weight is looked up among the names, not in a list that is made for it."""
    extra = {f"x.{n}": np.zeros(1, np.float32) for n in range(20_000)}
    folder = folder_of("llama", tmp_path / "m", extra=extra)
    start = time.process_time()
    status, _, err = run("run", folder, "--tokens", "1,2")
    assert status == 0 and "and 19997 more" in err and time.process_time() - start < 2


def test_a_list_of_tensors_without_end_is_refused(run, tmp_path):
    folder = folder_of("llama", tmp_path / "m")
    file = folder / "model.safetensors"
    header = b'{"a":' + b" " * 2**24
    file.write_bytes(len(header).to_bytes(8, "little") + header + b"}")
    found = "cannot be read: its list of tensors has 16,777,221 bytes, more than 16,777,216; download the file again"
    assert found in refused(run("run", folder, "--tokens", "1"))


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", fewer(["json", "csv"], 2))
def test_a_long_list_is_written_as_it_is_made(tmp_path, form):
    raw = presets.preset("mixtral-8x7b").config | {"num_local_experts": 300}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    with (tmp_path / "out").open("w") as out, contextlib.redirect_stdout(out):
        tracemalloc.start()
        assert main(["describe", str(tmp_path), "--format", form]) == 0
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    written = (tmp_path / "out").stat().st_size
    assert written > 1_800_000 and taken < written / 2
    text = (tmp_path / "out").read_text()
    rows = json.loads(text)["tensors"] if form == "json" else text.splitlines()[1:]
    assert len(rows) == 3 + 32 * (7 + 3 * 300)


def test_more_candidates_than_tokens(run, tmp_path):
    out = run("run", folder_of("llama", tmp_path / "m"), "--tokens", "1", "--top", "99999")[1]
    assert len(out.splitlines()) == 1 + golden("llama").raw["vocab_size"]


def test_a_missing_folder(run, tmp_path):
    assert "no such folder" in refused(run("run", tmp_path / "none", "--tokens", "1"))


# A text in the place of token ids: any tokenizer.json, a list of words without a library.


def with_words(folder: Path, words: list[str], **other) -> Path:
    """A tokenizer.json beside a checkpoint, whose tokens are these words."""
    listed = {
        "added_tokens": [{"id": i, "content": w, "special": False} for i, w in enumerate(words) if " " in w],
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": {w: i for i, w in enumerate(words)}},
    } | other
    (folder / "tokenizer.json").write_text(json.dumps(listed))
    return folder


def test_a_text_is_what_its_token_ids_are(run, tmp_path):
    words = [f"w{i}" for i in range(golden("gpt2").raw["vocab_size"])]
    words[3], words[5] = "New", "New York"
    folder = with_words(folder_of("gpt2", tmp_path / "m"), words)
    by_text = run("run", folder, "--text", "w2 New York New w4", "--top", "3")
    by_ids = run("run", folder, "--tokens", "2,5,3,4", "--top", "3")
    rows = [line.split(maxsplit=2) for line in by_text[1].splitlines()[1:]]
    assert [row[:2] for row in rows] == [line.split() for line in by_ids[1].splitlines()[1:]]
    assert [word for *_, word in rows] == [words[int(id)] for id, *_ in rows]
    assert "'York' is not one of the" in refused(run("run", folder, "--text", "w2 York"))
    assert "it has no tokens" in refused(run("run", folder, "--text", " "))


def test_a_text_is_continued_as_without_a_cache(run, tmp_path):
    folder, g = folder_of("gpt2", tmp_path / "m"), golden("gpt2")
    given, out = [1, 2, 3], run("run", folder, "--tokens", "1,2,3", "--generate", "4")[1]
    ids = list(given)
    for _ in range(4):
        ids.append(int(logits(g.architecture, g.config, g.weights(), ids)[0][-1].argmax()))
    assert out.splitlines()[-1] == ",".join(map(str, ids))
    most = g.raw["n_positions"]
    assert f"the model has {most} positions" in refused(run("run", folder, "--tokens", "1,2", "--generate", str(most)))
    assert run("run", folder, "--tokens", "1,2", "--generate", str(most - 1))[0] == 0


def test_a_trace_prints_what_each_step_gives(run, tmp_path):
    folder, g = folder_of("gpt2", tmp_path / "m"), golden("gpt2")
    out = run("run", folder, "--tokens", ",".join(map(str, g.ids)), "--trace")[1]
    [last] = (line.split() for line in out.splitlines() if "LM head (unembedding)" in line)
    assert last[-3] == f"7×{g.raw['vocab_size']}"
    assert [float(x) for x in last[-2:]] == pytest.approx([g.logits.mean(), np.abs(g.logits).max()], abs=1e-4)
    assert sum("softmax" in line or "Softmax" in line for line in out.splitlines()) == g.config.n_layers


@pytest.mark.parametrize("name", ["rwkv", "t5", "deepseek_v4", "mamba2", "jamba", "whisper"])
def test_a_trace_of_layers_that_keep_something_else_prints_what_has_weights(run, tmp_path, name):
    g, source = golden(name), []
    if g.source is not None:
        np.save(tmp_path / "sound.npy", g.source)
        ids_read = ",".join(map(str, g.source)) if g.source.ndim == 1 else tmp_path / "sound.npy"
        source = ["--source", ids_read]
    status, out, err = run("run", folder_of(name, tmp_path / "m"), "--tokens", ids(name), *source, "--trace")
    assert status == 0, err
    lines = [line.split() for line in out.split("\n\n")[0].splitlines()[1:]]
    layers = [int(line[0]) for line in lines if line[1] == "Layer"]
    assert layers == list(range(len(layers))) and layers
    scores = lines[-1]
    assert scores[-3] == "×".join(map(str, g.logits.shape))
    assert [float(x) for x in scores[-2:]] == pytest.approx([g.logits.mean(), np.abs(g.logits).max()], abs=2e-4)


def test_a_tokenizer_that_is_missing_or_needs_its_library(run, tmp_path, monkeypatch):
    folder = folder_of("gpt2", tmp_path / "m")
    assert "no tokenizer.json here; put the model's" in refused(run("run", folder, "--text", "x"))
    with_words(folder, ["x"], model={"type": "BPE", "vocab": {"x": 0}, "merges": []})
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    err = refused(run("run", folder, "--text", "x"))
    assert "needs the library tokenizers; pip install tokenizers, or give --tokens" in err


def test_a_bar_counts_the_layers_of_long_work_in_a_terminal(monkeypatch):
    from macros.cli import run as running

    g = golden("gpt2")
    with running.progress(100) as watch:
        assert watch is None  # no terminal
    monkeypatch.setattr(running.sys.stderr, "isatty", lambda: True, raising=False)
    with running.progress(running.SHOWN_AFTER - 1) as watch:
        assert watch is None
    with running.progress(2 * g.config.n_layers + running.SHOWN_AFTER) as watch:
        for _ in range(2):
            logits(g.architecture, g.config, g.weights(watch), g.ids)
        [task] = watch.bar.tasks
        assert task.completed == 2 * g.config.n_layers


# --- add -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def new_presets(tmp_path, monkeypatch) -> Path:
    """A folder of presets of its own, with Llama 3 8B and no other."""
    folder = tmp_path / "macros" / "presets"
    (folder / "llama").mkdir(parents=True)
    (folder / "llama" / "llama3-8b.toml").write_bytes(presets.paths()["llama3-8b"].read_bytes())
    (tmp_path / "pyproject.toml").touch()  # a clone has it, an installed package does not
    monkeypatch.setattr(presets, "FOLDER", folder)
    monkeypatch.setattr("macros.engine.files.PACKAGE", tmp_path / "macros")
    memory.invalidate({("presets", None)})
    yield folder
    monkeypatch.undo()
    memory.invalidate({("presets", None), *(("preset", path.stem) for path in folder.rglob("*.toml"))})


def test_a_preset_that_is_gone_is_told_with_the_files_that_name_it(run, tmp_path, new_presets):
    written = {
        "docs/one.md": "# One\n\n{{ params('gone-1b') }} and gone-1b-base\n",
        "docs/two.md": "# Two: gone-1b-base\n",
        "docs/reference/three.md": "```sh\nevery-parameter describe gone-1b\n```\n",
        "docs/changelog.md": "`gone-1b`\n",
        "macros/presets/llama/other.toml": 'previous = "gone-1b"\n',
    }
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    status, out, err = run("check", "gone-1b")
    assert status == 2 and err.startswith("every-parameter: unknown model 'gone-1b'")
    places = "docs/one.md:3, docs/reference/three.md:2, macros/presets/llama/other.toml:1"
    assert out.splitlines()[0] == f"     gone-1b: still named in {places}"
    assert "named in" not in run("check", "gone-2b")[1]


def test_a_skeleton_becomes_a_preset(run, tmp_path, new_presets):
    raw = {**presets.preset("llama3-8b").config, "bos_token_id": 1, "torch_dtype": "bfloat16", "head_dim": None}
    (tmp_path / "config.json").write_text(json.dumps(dict(reversed(raw.items()))))
    named = ("--family", "Else Where", "--hub", "Somebody/New_Llama-8B")
    status, out, err = run("add", tmp_path / "config.json", *named)
    path = new_presets / "else-where/new-llama-8b.toml"
    place = "every-parameter: macros/presets/else-where/new-llama-8b.toml: "
    assert (
        status == 0
        and out == ""
        and err.splitlines()
        == [
            f"{place}the first of the family Else Where",
            f"{place}the forward pass gives 8,030,261,248 parameters",
            f"{place}fill in: organization, released",
            f"{place}look up: licence and licence_source, or licence_looked_at if none was found",
        ]
    )
    made = tomllib.loads(path.read_text("utf-8"))
    kept = {k: v for k, v in raw.items() if k not in ("bos_token_id", "torch_dtype")} | {"head_dim": preset_file.NULL}
    assert made["config"] == kept and list(made["config"])[:-1] == list(presets.preset("llama3-8b").config)
    assert (made["name"], made["hub"], made["headline"]) == (
        "New_Llama-8B",
        "Somebody/New_Llama-8B",
        "8B",
    ) and "#" not in path.read_text()
    assert made["sources"] == {
        "config": "Somebody/New_Llama-8B, config.json",
        "verified": datetime.date.today(),
        "names": "transformers",
    }
    memory.invalidate({("presets", None), ("preset", "new-llama-8b")})
    status, out, _ = run("check", "new-llama-8b")
    assert status == 1 and "fill in: organization, released; docs/" in out
    filled = path.read_text().replace('organization = ""', 'organization = "Me"').replace('""', '"2024"')
    path.write_text(filled)
    memory.invalidate({("preset", "new-llama-8b")})
    status, out, _ = run("check")
    assert status == 0 and "new-llama-8b                  8,030,261,248; no total published" in out
    assert "exists" in refused(run("add", tmp_path, *named))


def test_siblings_are_added_at_once(run, tmp_path, new_presets):
    """A preset for each file, with the family and the organization of one that is there; all or none."""
    raw, files = presets.preset("llama3-8b").config, []
    for name, layers in (("Llama-9B", 36), ("Llama-4B", 16)):
        (folder := tmp_path / f"models--Some-Body--{name}").mkdir()
        (folder / "config.json").write_text(json.dumps({**raw, "num_hidden_layers": layers}))
        files.append(folder)
    bad = tmp_path / "config.json"
    bad.write_text(json.dumps({**raw, "model_type": "none"}))
    assert "none" in refused(run("add", *files, bad, "--like", "llama3-8b"))
    assert "--slug with several files" in refused(run("add", *files, "--like", "llama3-8b", "--slug", "x"))
    assert "of several files" in refused(run("add", files[0], files[0], "--like", "llama3-8b"))
    assert [path.name for path in (new_presets / "llama").iterdir()] == ["llama3-8b.toml"]
    status, out, err = run("add", *files, "--like", "llama3-8b")
    assert (status, out) == (0, "") and err.count("fill in: released") == 2
    for slug, layers in (("llama-9b", 36), ("llama-4b", 16)):
        made = tomllib.loads((new_presets / f"llama/{slug}.toml").read_text("utf-8"))
        assert (made["organization"], made["config"]["num_hidden_layers"]) == ("Meta", layers)


def test_a_family_is_added_to_as_it_is_spelt(run, tmp_path, new_presets):
    (tmp_path / "config.json").write_text(json.dumps(presets.preset("llama3-8b").config))
    for spelling in ("llama", "LLaMA", "L lama"):
        said = refused(run("add", tmp_path, "--family", spelling, "--slug", "x"))
        assert f"--family {spelling}: its presets have it as 'Llama'; write --family \"Llama\"" in said
    assert "have no address" in refused(run("add", tmp_path, "--family", "羊驼", "--slug", "x"))
    assert "did you mean" in run("add", tmp_path, "--family", "Lama", "--slug", "x")[2]
    status, _, err = run("add", tmp_path, "--family", "Llama", "--slug", "y")
    assert status == 0 and "one of the family Llama" in err and (new_presets / "llama/y.toml").exists()


def test_a_list_names_the_repository_of_each_file(run, tmp_path, new_presets):
    """`organization/name=FILE`; a size in the name becomes the headline only if the total gives it."""
    (tmp_path / "one.json").write_text(json.dumps(presets.preset("llama3-8b").config))
    named = [f"Some-Body/{name}={tmp_path / 'one.json'}" for name in ("Ours-8B", "Ours-v1.8b-9B")]
    assert "write organization/name=FILE for each" in refused(run("add", *named, "--hub", "a/b"))
    assert run("add", *named, "--like", "llama3-8b")[0] == 0
    made = [
        tomllib.loads((new_presets / f"llama/{slug}.toml").read_text("utf-8")) for slug in ("ours-8b", "ours-v1.8b-9b")
    ]
    assert [(one["hub"], one.get("headline")) for one in made] == [
        ("Some-Body/Ours-8B", "8B"),
        ("Some-Body/Ours-v1.8b-9B", None),
    ]


def test_what_transformers_writes_into_a_tower_is_left_out(run, tmp_path):
    preset = presets.preset("llama3.2-90b-vision")
    tower = {**preset.components["vision_config"], "tie_word_embeddings": True, "use_bfloat16": False}
    whole = {"model_type": "mllama", "text_config": preset.config, "vision_config": tower}
    (tmp_path / "config.json").write_text(json.dumps(whole))
    _, out, _ = run("add", tmp_path, "--slug", "x")
    assert tomllib.loads(out)["components"]["vision_config"] == preset.components["vision_config"]


def test_the_repository_of_a_downloaded_file_names_the_preset(run, tmp_path):
    folder = tmp_path / "models--Some-Body--Llama-9B" / "snapshots" / "0123abcd"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(presets.preset("llama3-8b").config))
    made = tomllib.loads(run("add", folder)[1])
    assert made["hub"] == "Some-Body/Llama-9B" and made["name"] == "Llama-9B"


@pytest.mark.parametrize("slug", ["gpt2", "llama3.1-8b", "mistral-7b-v0.1", "deepseek-v3", "gemma2-2b"])
def test_a_skeleton_keeps_the_published_keys(run, tmp_path, slug):
    raw = presets.preset(slug).config
    (tmp_path / "config.json").write_text(json.dumps(raw))
    _, out, _ = run("add", tmp_path / "config.json", "--slug", "x")
    assert presets.make("x", tomllib.loads(out)["config"]).counts.total == presets.model(slug).counts.total


def test_a_preset_that_is_not_filled_in_keeps_no_other_from_being_added(run, tmp_path, new_presets):
    (tmp_path / "config.json").write_text(json.dumps(presets.preset("llama3-8b").config))
    for name in ("One-1B", "Two-2B"):
        status, _, err = run("add", tmp_path / "config.json", "--family", "Else Where", "--hub", f"Somebody/{name}")
        assert status == 0 and "fill in: organization, released" in err
        assert (new_presets / f"else-where/{name.lower()}.toml").exists()


@pytest.mark.parametrize(
    "slug, change",
    [
        ("gemma2-27b", {"num_key_value_heads": None}),  # one for each query head; left out, it is 4
        ("gemma2-27b", {"query_pre_attn_scalar": None, "attn_logit_softcapping": None}),
        ("phi-3-mini", {"original_max_position_embeddings": 2048}),
        ("gpt-oss-20b", {}),
        ("llama3-8b", {"torch_dtype": "float32"}),
        ("llama3-8b", {"max_position_embeddings": '\U0001f600 \x7f\x1b\u202e \\ "\n'}),
        ("llama3-8b", {"rope_scaling": {"rope_type": "default", "": [None, {"a": None}], "\U0001f600": float("inf")}}),
    ],
)
def test_a_skeleton_says_what_the_file_says(run, tmp_path, slug, change):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(presets.preset(slug).config | change))
    _, skeleton, _ = run("add", file, "--slug", "a-new-one")
    assert all(line.isprintable() for line in skeleton.splitlines())
    preset = tmp_path / "a-new-one.toml"
    preset.write_text(filled(skeleton), "utf-8")
    raw = preset_file.read_preset(preset).config
    assert described(presets.make("a-new-one", raw)) == described(presets.load(str(file)))


def test_add_writes_a_file_once(run, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(presets.preset("gpt2").config))
    target = tmp_path / "x.toml"
    assert run("add", tmp_path, "--slug", "x", "--output", target)[:2] == (0, "") and 'name = "x"' in target.read_text()
    assert "exists already" in refused(run("add", tmp_path, "--slug", "x", "--output", target))
    assert "cannot be written" in refused(run("add", tmp_path, "--slug", "x", "--output", tmp_path / "none" / "x.toml"))


def test_an_installed_package_is_no_place_for_a_preset(run, tmp_path, new_presets):
    (tmp_path / "config.json").write_text(json.dumps(presets.preset("llama3-8b").config))
    (tmp_path / "pyproject.toml").unlink()
    asked = "add", tmp_path, "--slug", "x", "--family", "Llama"
    assert "name the file with --output" in refused(run(*asked))
    assert [path.stem for path in new_presets.rglob("*.toml")] == ["llama3-8b"]
    assert run(*asked, "--output", tmp_path / "x.toml")[:2] == (0, "") and (tmp_path / "x.toml").is_file()


@pytest.mark.parametrize(
    "change, arguments, found",
    [
        ({"n_embed": 3}, (), 'n_embed: unknown key of gpt2; did you mean "n_embd"?'),
        ({"n_embd": "x"}, (), "n_embd = 'x': expected"),
        ({}, ("--slug", "gpt2"), "a preset of this name exists"),
        ({}, ("--slug", "../x"), "use small letters"),
        ({}, ("--slug", "A b"), "use small letters"),
        ({"model_type": "none"}, (), "model_type = 'none' is not known"),
        ({"quantization_config": {"quant_method": 0}}, (), "quant_method = 0 is not known; use the config.json of"),
    ],
)
def test_what_cannot_be_added(run, tmp_path, change, arguments, found):
    (tmp_path / "config.json").write_text(json.dumps({**presets.preset("gpt2").config, **change}))
    assert found in refused(run("add", tmp_path / "config.json", *(arguments or ("--slug", "x"))))


def test_add_leaves_out_keys_that_are_off_and_that_no_forward_pass_reads(run, tmp_path):
    more = {"new_bias": False, "new_window": None, "router_dropout": 0.1}
    (tmp_path / "config.json").write_text(json.dumps({**presets.preset("gpt2").config, **more}))
    status, out, err = run("add", tmp_path / "config.json", "--slug", "x")
    assert status == 0 and not any(name in out for name in more)
    assert f"left out, for no forward pass reads them: {', '.join(more)}" in err


def test_what_check_refuses_of_a_rotary_embedding_is_not_added(run, tmp_path):
    raw = small_config("qwen3_5_moe_text")
    (tmp_path / "config.json").write_text(json.dumps(raw | {"head_dim": 829}))
    assert "mrope_section = " in (line := refused(run("add", tmp_path, "--slug", "x"))) and "its sum is not" in line
    (tmp_path / "config.json").write_text(json.dumps(raw | {"rope_parameters": {"rope_theta": 1e4, "theta": 1}}))
    assert "config.rope_parameters.theta: unknown key" in refused(run("add", tmp_path, "--slug", "x"))


@pytest.fixture
def several_parts(tmp_path) -> Path:
    """The folder of a config.json with a text, an image and an audio part."""
    text = presets.preset("llama3-8b").config
    vision, audio = {"model_type": "a_tower", "hidden_size": 7}, {"num_layers": 3}
    config = {"model_type": "llava", "text_config": text, "vision_config": vision, "audio_config": audio}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


def test_describe_says_which_part_of_a_config_it_describes(run, several_parts):
    said = "described: text_config; left out: vision_config (a_tower), audio_config"
    for form in ("table", "json", "csv"):
        status, out, err = run("describe", "--format", form, "--collapse", several_parts)
        assert status == 0 and said in err and err.count("\n") == 1
        if form == "table":
            assert out.splitlines()[2] == said
        if form == "json":
            made = json.loads(out)
            assert made["part"] == {"described": "text_config", "left_out": ["vision_config", "audio_config"]}
            assert [w for w in made["warnings"] if said in w]
    assert json.loads(run("describe", "--format", "json", "--collapse", "llama3-8b")[1])["part"] is None


def test_a_preset_made_of_a_part_says_so(run, several_parts, monkeypatch):
    status, out, err = run("add", several_parts, "--slug", "several")
    assert status == 0 and "left out: vision_config (a_tower), audio_config" in err
    made = tomllib.loads(out)
    assert made["sources"]["part"] == "text_config" and made["config"].keys().isdisjoint(
        {"vision_config", "text_config"}
    )
    assert made["sources"]["left_out"] == ["vision_config", "audio_config"]
    made |= {"family": "x", "organization": "x", "released": "2024"}
    made["sources"] |= {"config": "x", "verified": datetime.date(2024, 1, 1)}
    preset = msgspec.convert({k: v for k, v in made.items() if k != "published"}, preset_file.Preset)
    model = presets.make("several", preset.config, preset)
    monkeypatch.setattr(presets, "preset", lambda slug: preset)
    monkeypatch.setattr(presets, "model", lambda slug: model)
    page = re.sub(r"<[^>]+>", "", model_page.model_intro.__wrapped__("several"))
    assert "This is what its config.json calls text_config, without vision_config, audio_config." in page


def test_the_known_types_stand_where_an_unknown_one_sends(run, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "none"}')
    assert "every-parameter describe --types prints the known ones" in refused(run("describe", tmp_path))
    status, out, err = run("describe", "--types")
    assert status == 0 and not err and out.split() == list(architectures())


# --- totals ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small(run, new_presets) -> Path:
    """The preset of the small model that comes along, without a published total; its folder."""
    run("add", CAPITALS, "--family", "GPT", "--slug", "capitals", "--hub", "us/capitals")
    path = new_presets / "gpt/capitals.toml"
    path.write_text(path.read_text().replace('= ""', '= "2024"'), "utf-8")
    memory.invalidate({("presets", None)})
    return path


def test_a_published_total_is_read_from_a_header_and_written(run, small):
    status, out, err = run("totals", CAPITALS, "--preset", "capitals")
    assert (status, out) == (0, "") and [line.rpartition(": ")[2] for line in err.splitlines()] == [
        "114,000 BF16",
        "114,000 in all, and the forward pass gives 114,000",
        "the same names and shapes in both directions",
    ]
    made = tomllib.loads(small.read_text("utf-8"))
    assert made["sources"]["names"] == "published" and made["published"] == {
        "parameters": 114_000,
        "exact": True,
        "file": True,
        "source": "us/capitals on the Hugging Face Hub, header of model.safetensors",
    }
    memory.invalidate({("preset", "capitals")})
    assert "114,000; exact" in run("check", "capitals")[1]
    # What was written with another config is compared again.
    text = small.read_text("utf-8")
    small.write_text(text.replace('names = "published"', 'names = "transformers"'), "utf-8")
    memory.invalidate({("preset", "capitals")})
    assert run("totals", CAPITALS, "--preset", "capitals")[0] == 0 and small.read_text("utf-8") == text
    small.write_text(text.replace("114_000", "114_001"), "utf-8")
    memory.invalidate({("preset", "capitals")})
    said = "published.parameters = 114,001, and the file has 114,000; remove [published], or"
    assert said in refused(run("totals", CAPITALS, "--preset", "capitals"))


def test_a_total_is_written_into_a_preset_that_is_not_ours(run, tmp_path):
    """By its file, as a site of somebody else's has it."""
    ours = tmp_path / "ours.toml"
    run("add", CAPITALS, "--output", ours, "--family", "Ours")
    text = ours.read_text("utf-8").replace('= ""', '= "2024"')
    # With a repository and without one, whose file nobody can look up.
    for hub in ["us/capitals"], []:
        ours.write_text(text, "utf-8")
        try:
            status, _, err = run("totals", CAPITALS, "--preset", ours, *(["--hub", *hub] if hub else []))
        finally:
            presets.read_also(None)
        assert status == 0 and "the same names and shapes in both directions" in err
        made = tomllib.loads(ours.read_text("utf-8"))
        assert (made["published"]["parameters"], [made["hub"]] if "hub" in made else []) == (114_000, hub)
        ours.write_text(ours.read_text("utf-8").replace('source = ""', 'source = "our card"'), "utf-8")
        assert "114,000; exact" in run("check", ours)[1]
    said = "theirs.toml: there is no such file; name a preset's file, or its slug"
    assert said in refused(run("totals", CAPITALS, "--preset", tmp_path / "theirs.toml"))


def header_of(tensors: dict) -> bytes:
    """The beginning of a file with these tensors, one behind the other."""
    end = 0
    for name, tensor in tensors.items():
        if name != "__metadata__" and "data_offsets" not in tensor:
            begin, end = end, end + math.prod(tensor["shape"]) * BITS[tensor["dtype"]] // 8
            tensor["data_offsets"] = begin, end
    text = json.dumps(tensors).encode()
    return len(text).to_bytes(8, "little") + text


def cut_off(folder: Path) -> Path:
    """The small model's tensors in two files that end after their headers, with their index."""
    listed = header(CAPITALS / "model.safetensors")
    names, files = list(listed), {}
    for part, chosen in (("a", names[:7]), ("b", names[7:])):
        tables = {n: {"dtype": listed[n].dtype, "shape": listed[n].shape} for n in chosen}
        (folder / f"{part}.safetensors").write_bytes(
            header_of({"__metadata__": {"format": "pt"}, **tables}) + b"weights"
        )
        files |= dict.fromkeys(chosen, f"{part}.safetensors")
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 228_000}, "weight_map": files}))
    return folder


def test_of_each_file_its_header_is_enough(run, tmp_path):
    cut_off(tmp_path)
    status, out, _ = run("totals", tmp_path, "--hub", "us/capitals")
    assert (
        status == 0
        and out.startswith("\n[published]\n")
        and tomllib.loads(out)["published"]
        == {
            "parameters": 114_000,
            "exact": True,
            "file": True,
            "source": "us/capitals on the Hugging Face Hub, headers of its 2 safetensors files",
        }
    )
    assert tomllib.loads(run("totals", tmp_path)[1])["published"]["source"] == ""  # to be filled in
    (tmp_path / "b.safetensors").unlink()
    assert "names 2 files, and 1 of them are not here: b.safetensors; download" in refused(run("totals", tmp_path))


def test_a_total_that_was_computed_is_not_called_published(run, tmp_path):
    index = cut_off(tmp_path) / INDEX
    assert "a number of bytes is no number of parameters" in refused(run("totals", index))
    whole = json.loads(index.read_text())
    whole["metadata"]["total_parameters"] = 114_001
    index.write_text(json.dumps(whole))
    assert tomllib.loads(run("totals", index, "--hub", "us/capitals")[1])["published"] == {
        "parameters": 114_001,
        "exact": True,
        "source": f"us/capitals on the Hugging Face Hub, {INDEX}, total_parameters",
    }


def test_tensors_that_are_not_the_forward_passes_own_are_named(run, small, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    tensors = safetensors.load_file(CAPITALS / "model.safetensors")
    cut, lost, *_ = sorted(tensors)
    tensors |= {FORGED: np.zeros(5, np.int8), cut: tensors[cut][:1]}
    tensors |= {f"h.{i}.attn.mask": np.zeros(1, np.int8) for i in range(12)}
    del tensors[lost]
    safetensors.save_file(tensors, folder / "model.safetensors")
    status, _, err = run("totals", folder, "--preset", "capitals")
    assert status == 1 and all(line.isprintable() for line in err.splitlines())
    assert err.endswith("correct [config], or name the difference in [[published.extra]]\n")
    assert "13 tensors in the files, and the forward pass does not ask for: " in err and ", 17 numbers" in err
    assert "h.{i}.attn.mask × 12" in err
    assert f"1 tensor asked for, and not in the files: {lost}" in err and f"of another shape: {cut}: [1" in err
    assert tomllib.loads(small.read_text("utf-8"))["sources"]["names"] == "transformers"
    memory.invalidate({("preset", "capitals")})
    status, out, _ = run("check", "capitals")
    assert status == 1 and "the forward pass gives 114,000" in out


@pytest.mark.parametrize("what", ["total", "name", "named rest"])
def test_a_file_that_differs_in_one_way_ends_with_1_unless_it_is_named(run, small, tmp_path, what):
    tensors = safetensors.load_file(CAPITALS / "model.safetensors")
    if what == "total":
        path = cut_off(tmp_path) / INDEX
        path.write_text(json.dumps({"metadata": {"total_parameters": 114_001}, "weight_map": {}}))
    else:
        path = tmp_path / "model.safetensors"
        name = min(tensors)
        more = {f"{name}.other": tensors.pop(name)} if what == "name" else {"rest": np.zeros(5, np.int8)}
        safetensors.save_file(tensors | more, path)
    if what == "named rest":
        extra = 'source = "a card"\nextra = [{ name = "rest", count = 5 }]\n'
        text = f"{small.read_text('utf-8')}\n[published]\nparameters = 114_005\nexact = true\n{extra}"
        small.write_text(text, "utf-8")
    memory.invalidate({("preset", "capitals")})
    assert run("totals", path, "--preset", "capitals")[0] == (0 if what == "named rest" else 1)


def test_other_names_of_the_same_tensors_differ_in_nothing_and_are_not_called_published(run, small, tmp_path):
    tensors = safetensors.load_file(CAPITALS / "model.safetensors")
    renamed = {name.removeprefix("transformer."): array for name, array in tensors.items()}
    assert renamed.keys() != tensors.keys()
    safetensors.save_file(renamed, tmp_path / "model.safetensors")
    status, _, err = run("totals", tmp_path, "--preset", "capitals")
    assert status == 0 and "tensors under other names or in other pieces: wte.weight for transformer.wte.weight" in err
    assert "asked for" not in err and "does not ask for" not in err and "the same names" not in err
    assert tomllib.loads(small.read_text("utf-8"))["sources"]["names"] == "transformers"


def test_one_of_several_files_is_not_taken_for_all(run, tmp_path):
    file = tmp_path / "model-00002-of-00003.safetensors"
    file.write_bytes(header_of({"a": {"dtype": "BF16", "shape": [2, 3]}}))
    said = "is one of 3 files, and 2 of them are not given: model-00001-of-00003.safetensors, model-00003-of-00003"
    assert said in refused(run("totals", file)) and said in refused(run("totals", tmp_path))
    for number in (1, 3):
        (tmp_path / f"model-0000{number}-of-00003.safetensors").write_bytes(
            header_of({f"b{number}": {"dtype": "F32", "shape": [number]}})
        )
    assert tomllib.loads(run("totals", tmp_path)[1])["published"]["parameters"] == 6 + 1 + 3


@pytest.mark.parametrize(
    "data, found",
    [
        (b"", "has no list of tensors"),
        (b"{" * 20, "begins with a list of tensors of 8,"),
        ((40).to_bytes(8, "little") + b"{}", "ends within its list of tensors, which has 40 bytes; download 48 bytes"),
        ((2).to_bytes(8, "little") + b"[]", "has no list of tensors"),
        ((17).to_bytes(8, "little") + b'{"a":{"shape":1}}', "has no list of tensors: expected a list"),
        (
            header_of({"a": {"dtype": "BF16", "shape": [-2, 3], "data_offsets": [0, 12]}}),
            "has no list of tensors: expected a whole number >= 0",
        ),
        (
            header_of({"__metadata__": {"format": "pt"}}),
            "all tensors that are listed are empty; give the files of the weights",
        ),
    ],
)
def test_what_is_no_safetensors_file_is_said(run, tmp_path, data, found):
    (tmp_path / "x.safetensors").write_bytes(data)
    assert found in refused(run("totals", tmp_path))


# --- the process -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [(), ("describe",), *((name, "--help") for name in (*HERE, *COMMANDS)), ("--help",)],
    ids=str,
)
def test_help(run, arguments):
    status, out, err = run(*arguments)
    if "--help" in arguments:
        assert status == 0 and "example" in out and "every-parameter" in out and max(map(len, out.splitlines())) < 200
    else:
        assert status == 2 and err.count("\n") == 1 and "--help" in err


def test_a_wrong_option_is_one_line(run):
    assert "--format" in refused(run("describe", "--format", "xml", "gpt2"))
    assert "invalid choice" in refused(run("describ"))


def test_a_reader_that_goes_away():
    """`… | head -1`: no traceback, nothing on standard error."""
    done = subprocess.run(
        f"{sys.executable} -m macros describe --format csv deepseek-v3 | head -1",
        shell=True,
        cwd=ROOT,
        text=True,
        capture_output=True,
    )
    assert done.stdout == "model,tensor,shape,parameters\n" and done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "macros", "describe", "gpt2"],
            cwd=ROOT,
            text=True,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "No space left" in done.stderr


# --- writing ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def full_disk():
    """Not one more byte goes into a file."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def everything(folder: Path) -> dict[str, bytes | None]:
    """What is below a folder: each file's bytes, None for a folder."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


WRITES = {
    "a preset in a new folder": ("add", CAPITALS, "--family", "New", "--slug", "new"),
    "a preset": ("add", CAPITALS, "--family", "GPT", "--slug", "new"),
    "a preset elsewhere": ("add", CAPITALS, "--slug", "new", "--output", "{}/new.toml"),
    "logits": ("run", CAPITALS, "--tokens", "1", "--logits", "{}/new.npy"),
    "logits anew": ("run", CAPITALS, "--tokens", "1", "--logits", "{}/old"),
    "a total": ("totals", CAPITALS, "--preset", "capitals"),
    "the schema in new folders": ("schema", "--output", "{}/a/b/schema.json"),
    "the schema anew": ("schema", "--output", "{}/old"),
}


@pytest.mark.parametrize("name", WRITES)
def test_on_a_full_disk_all_stays_as_it_was(run, small, tmp_path, name):
    """One line, and nothing is left: no file cut short, no new folder. With room the same call works."""
    (tmp_path / "old").write_text("what stood there")
    (tmp_path / "old").chmod(0o640)
    folders, arguments = (tmp_path, small.parent.parent), [str(part).format(tmp_path) for part in WRITES[name]]
    before = [*map(everything, folders)]
    with full_disk():
        assert "cannot be written: File too large; check the" in refused(run(*arguments))
    assert [*map(everything, folders)] == before
    assert run(*arguments)[0] == 0 and [*map(everything, folders)] != before
    assert not any(".writing-" in path for folder in folders for path in everything(folder))
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o640


def test_what_comes_meanwhile_is_not_written_over(tmp_path, monkeypatch):
    """A new file, a link, and a disk that has no links."""
    target = tmp_path / "new.toml"
    for has_links in (True, False):
        with pytest.raises(Problem, match="exists already"), writing(target, is_new=True) as file:
            file.write(b"ours")
            target.write_text("another's")
        assert everything(tmp_path) == {str(target): b"another's"}
        target.unlink()
        write(target, "ours", is_new=True)
        assert everything(tmp_path) == {str(target): b"ours"}
        target.unlink()
        if has_links:
            monkeypatch.setattr("os.link", mock.Mock(side_effect=OSError))
    (tmp_path / "file").write_text("before")
    target.symlink_to("file")
    write(target, "after")
    assert target.is_symlink() and (tmp_path / "file").read_text() == "after"


def test_what_is_interrupted_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), writing(tmp_path / "a" / "b", with_folders=True) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert everything(tmp_path) == {}


@pytest.mark.parametrize(
    "call", fewer(["gpt2 >&-", "gpt2 2>&-", "gpt2 <&- >&- 2>&-", "--help >/dev/full", "x 2>/dev/full"], 3)
)
def test_a_closed_stream_is_one_that_cannot_be_written(call):
    """`describe gpt2 >&-`: one line, or where nobody hears it the status alone. No file gets a stream's number."""
    command = ["sh", "-c", f'"$0" -m macros describe {call}', sys.executable]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    if call == "gpt2 2>&-":
        assert done.returncode == 0 and "124,439,808" in done.stdout
    else:
        assert done.returncode == 2 and not done.stdout
        said = "No space left on device" if "full" in call else "standard output is closed"
        line = f"every-parameter: cannot write: {said}; check the disk and the path\n"
        assert done.stderr == ("" if "2>" in call else line)


def test_a_terminal_that_cannot_spell():
    done = process("describe", "gpt2", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and not done.stderr and "124,439,808" in done.stdout


def test_an_interrupt(monkeypatch):
    monkeypatch.setattr("macros.catalogue.presets.load", lambda name: (_ for _ in ()).throw(KeyboardInterrupt))
    assert main(["describe", "gpt2"]) == 130


@pytest.mark.processes
def test_check_of_the_whole_catalogue_as_a_process():
    done = process("check")
    assert "Traceback" not in done.stderr and len(done.stdout.splitlines()) == len(presets.paths()) + 1
    assert done.returncode == (1 if "\noff" in done.stdout else 0)


def test_what_lies_beyond_a_models_context_is_marked(run):
    """As on the site: a dagger and a line in the table, a warning in the data; nothing where all is within."""
    table, data = run("describe", "gpt2")[1], json.loads(run("describe", "--format", "json", "gpt2")[1])
    body, _, footnote = table.partition("\n† ")
    assert re.findall(r"(?:4,096|131,072)(?! †).*", body) == [] and "4,096, 131,072" in footnote
    assert body.count("4,096 †") == body.count("131,072 †") > 10
    assert footnote.startswith("beyond the 1,024 tokens of the model's position table")
    assert data["warnings"] == [
        "beyond the 1,024 tokens of the model's position table: figures at 4,096, 131,072 are arithmetic only"
    ]
    within = run("describe", "--context", "1024", "gpt2")[1]
    assert "†" not in within
    llama = json.loads(run("describe", "--format", "json", "llama3-8b")[1])
    assert llama["warnings"] == [
        "beyond the 8,192 tokens of the model's config: figures at 131,072 are arithmetic only"
    ]
    assert json.loads(run("describe", "--format", "json", "llama3.1-8b")[1])["warnings"] == []
