"""The Python API: the figures and the lines of the command, tables that others can take, and nothing that acts."""

from __future__ import annotations

import csv
import datetime
import html
import io
import json
import pickle
import re
import warnings
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from reference import close, golden
from safetensors.numpy import save_file
from sampling import fewer

import macros as ep
from macros.__main__ import main
from macros.api import model as models
from macros.api.conditions import accelerator
from macros.api.pictures import STYLE
from macros.api.tables import SHOWN, one_type
from macros.catalogue import presets
from macros.counting.conditions import Conditions
from macros.counting.costs import of as costs_of
from macros.counting.figures import FIGURES

ROOT = Path(__file__).parent.parent.parent
CONFIG = {"model_type": "gpt2", "n_embd": 48, "n_layer": 2, "n_head": 3, "vocab_size": 97, "n_positions": 31}
HOSTILE = "<img src=x onerror=alert(1)>|`*_[a](javascript:b)_*`\u202e\n=1+1"
SLUGS = "gpt2 llama3-8b deepseek-v3.2 gemma3-12b jamba-v0.1 mamba-130m t5-base gpt-oss-20b qwen3-next-80b-a3b".split()


@pytest.fixture(autouse=True)
def quiet():
    """What is warned of is a test of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def printed(capsys, *arguments: str) -> str:
    capsys.readouterr()
    assert main(list(arguments)) in (0, 1)
    return capsys.readouterr().out


def refused(capsys, *arguments: str) -> str:
    """The line that the command prints in the place of an answer."""
    capsys.readouterr()
    assert main(list(arguments)) == 2
    *_, line = capsys.readouterr().err.splitlines()
    return line.removeprefix("every-parameter: ")


# --- a model ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", fewer(SLUGS, 4))
def test_the_object_of_describe_is_the_api_s(slug, capsys):
    m = ep.load(slug)
    for collapse in (True, False):
        option = ["--collapse"] if collapse else []
        said = json.loads(printed(capsys, "describe", "--format", "json", "--context", "6000", *option, slug))
        assert m.to_dict(collapse, context=6000) == said
    p = m.parameters
    counts = {name: int(getattr(p, name)) for name in ("total", "active", "embedding", "non_embedding")}
    assert counts.items() <= said["parameters"].items() and p.stored == said["parameters"]["stored"]
    assert p.stored_is_computed is said["parameters"]["stored_is_computed"]
    assert p.active_excluding_input_embedding == said["parameters"]["active_excluding_input_embedding"]
    assert [[row["tensor"], row["shape"]] for row in p.tensors] == said["tensors"]
    assert len(p.tensors) == len(said["tensors"]) and p.patterns.rows()[0]["formula"]
    assert m.kv_cache(6000) == said["kv_cache"]["bytes_at"]["6000"]
    assert m.flops(6000) == said["flops"]["decode_at"]["6000"]
    assert m.flops(6000, new_tokens=6000) == said["flops"]["prefill"]["6000"]
    assert m.name == said["name"] and m.architecture == said["architecture"]


@pytest.mark.parametrize("slug", SLUGS)
def test_a_figure_is_the_sum_of_its_rows(slug):
    m = ep.load(slug)
    for quantity, column in (
        (m.parameters.total, "parameters"),
        (m.parameters.active, "parameters"),
        (m.kv_cache(5000, batch=3, dtype="fp8"), "bytes"),
        (m.flops(5000, new_tokens=7), "flops"),
        (m.memory(5000, batch=3, weights="fp8", cache="fp8", devices=2), "bytes"),
    ):
        assert quantity == sum(row[column] for row in quantity.rows()) > 0
        assert quantity.unit in ("parameters", "bytes", "FLOPs") and quantity.convention
        assert type(quantity + 1) is int and pickle.loads(pickle.dumps(int(quantity))) == quantity
        assert f"{quantity:,}" in quantity._repr_html_()


def test_a_config_by_slug_path_folder_and_keys(tmp_path, monkeypatch):
    (tmp_path / "gpt2").mkdir()
    file = tmp_path / "gpt2" / "config.json"
    file.write_text(json.dumps(CONFIG))
    total = ep.load(CONFIG).parameters.total
    assert total != ep.load("gpt2").parameters.total
    for given in (file, str(file), file.parent, str(file.parent)):
        assert ep.load(given).parameters.total == total
    monkeypatch.chdir(tmp_path)
    assert (
        ep.load("gpt2").name == "GPT-2 Small" and ep.load(Path("gpt2")).parameters.total == total
    )  # a path is not a slug
    assert ep.load(dict(CONFIG, n_head=np.int64(3).item())).config["n_heads"] == 3


def test_what_if_is_the_command_s(capsys):
    m = ep.load("llama3-8b")
    deeper = m.what_if(n_layers=64, F=np.int64(1000))
    said = json.loads(
        printed(capsys, "what-if", "llama3-8b", "--set", "n_layers=64", "--set", "F=1000", "--format=json")
    )
    assert deeper.parameters.total == said["after"]["figures"]["total"] != m.parameters.total
    assert deeper.config == said["after"]["hyperparameters"]
    assert deeper.what_if(n_layers=32).config["d_ff"] == 1000


def test_compare_and_fits_are_the_command_s(capsys):
    given = dict(context=9000, batch=2, weights="int8", cache="fp8", devices=2)
    options = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    models_ = "llama3-8b", "mixtral-8x7b", "mamba-130m"
    both = ep.compare(*models_, on="h100", **given)
    assert both.to_dict() == json.loads(
        printed(capsys, "compare", *models_, "--format", "json", "--on", "h100", *options)
    )
    assert [row["total"] for row in both] == [ep.load(one).parameters.total for one in models_]
    assert both.select("model", "n_layers")[1] == {"model": "mixtral-8x7b", "n_layers": 32}
    for on in ("h100", "1GB"):
        answer = ep.fits("mixtral-8x7b", on, **given)
        said = json.loads(printed(capsys, "fits", "mixtral-8x7b", "--format", "json", "--on", on, *options))
        assert answer.to_dict() == said and bool(answer) is said["fits"] and str(answer) == said["sentence"]
    for name in ("vllm", "llama.cpp", "transformers", "mlx"):
        served = ep.fits("gemma3-1b", "24GB", 2048, engine=name)
        said = json.loads(
            printed(
                capsys, "fits", "gemma3-1b", *("--context", "2k", "--on", "24GB", "--engine", name), "--format", "json"
            )
        )
        assert served.to_dict() == said and bool(served) is said["fits"] and str(served) == said["sentence"]
        assert {t["known"] for t in said["terms"]} >= {"exact", "estimate"}
        assert all(("bytes" in t) is (t["known"] == "exact") for t in said["terms"])
        assert [row["term"] for row in served.rows()] == [t["name"] for t in said["terms"]]
        most = served.largest_batch
        assert said["largest_batch"] == most > 1 and f"is certain to fit is {most:,}." in served.advice
        assert ep.fits("gemma3-1b", "24GB", 2048, most, engine=name)
        assert not ep.fits("gemma3-1b", "24GB", 2048, most + 1, engine=name)
    assert [row["engine"] for row in ep.fits(["gpt2", "gemma3-1b"], "24GB", 512, engine="mlx")] == ["mlx", "mlx"]
    several = ep.fits([*models_], "24GB", **given)
    assert [row["total_bytes"] for row in several] == [ep.fits(one, "24GB", **given).total for one in models_]
    assert ep.fits(ep.load("gpt2"), "24GB")


@pytest.mark.parametrize("name", FIGURES)
def test_any_figure_by_its_name(name):
    m = ep.load("llama3-8b")
    value = m.figure(name, context=2000, on="h100")
    given = Conditions(2000, accelerator=accelerator("h100"))
    said = FIGURES[name].compute(costs_of(presets.model("llama3-8b").counts), given)
    assert value == (float(said) if isinstance(said, Fraction) else said)
    assert type(value) in (int, float, type(None))


# --- the catalogue ----------------------------------------------------------------------------------------------------


def test_the_format_that_a_name_states_is_the_default():
    """Of every answer that has weights, for a name as for a loaded model; another one is taken if it is asked for."""
    name, format = "mlx-community/Qwen3-8B-4bit", "mlx-4bit"
    with pytest.warns(UserWarning, match="Qwen3 8B in mlx-4bit"):
        named = ep.load(name)
    plain = ep.load("qwen3-8b")
    assert named.format == format and plain.format == "published" and named.what_if(n_layers=9).format == format
    for one in (named, name):
        for answer in (
            lambda model, **given: ep.fits(model, "24GB", **given).total,
            lambda model, **given: ep.fits([model], "24GB", **given).rows()[0]["total_bytes"],
            lambda model, **given: ep.fits(model, "24GB", engine="vllm", **given).sentence,
            lambda model, **given: ep.compare(model, "gpt2", **given).rows()[0]["weight_bytes"],
            lambda model, **given: ep.offload(model, "12GB", **given).sentence,
            lambda model, **given: ep.splits(model, devices=2, **given).rows()[0],
            lambda model, **given: ep.speculative(model, None, "h100", **given).sentence,
        ):
            assert answer(one) == answer(plain, weights=format) != answer(plain) == answer(one, weights="published")
    assert named.memory() == plain.memory(weights=format) != plain.memory() == named.memory(weights="published")
    assert named.figure("weight_bytes") == plain.figure("weight_bytes", weights=format)
    assert named.to_dict()["weights"]["bytes"] == named.figure("weight_bytes")
    assert ep.fits(name).rows()[0]["weights"] == format
    with pytest.warns(UserWarning, match="two formats, and none is taken"):
        ep.speculative(name, "Qwen/Qwen3-0.6B-AWQ", "h100")


def test_the_catalogue_is_filtered_and_sorted():
    table = ep.models(
        family="llama", min_parameters=2e9, max_parameters=8_030_261_248, sort_by="total", descending=True
    )
    totals = [row["total"] for row in table]
    assert totals == sorted(totals, reverse=True) and 8_030_261_248 in totals and min(totals) >= 2e9
    assert {row["family"] for row in table} == {"Llama"}
    of_one = ep.models(organization="ANTHROPIC", sort_by="total")
    assert of_one[0]["model"] == "claude-3-opus" and of_one[0]["total"] is None
    by_total = ep.models(family="GPT", sort_by="total")
    assert by_total[-1]["total"] is None and by_total[0]["total"] is not None
    for row in by_total:
        if row["total"]:
            assert row["total"] == ep.load(row["model"]).parameters.total


# --- run --------------------------------------------------------------------------------------------------------------


def test_a_run_gives_what_the_command_prints(capsys):
    text = "The capital of Japan is"
    answer = ep.run("capitals", text, top=3)
    lines = [
        re.split(r" {2,}", line.strip())
        for line in printed(capsys, "run", "capitals", "--text", text, "--top", "3").splitlines()[1:]
    ]
    assert [[str(row["token"]), f"{row['probability']:.6f}", row["text"]] for row in answer.rows()] == lines
    every = ep.run(ROOT / "macros" / "capitals", tokens=answer.tokens, all_logits=True)
    assert every.logits.shape == (len(answer.tokens), answer.logits.shape[1]) and every.logits.dtype == np.float32
    assert np.abs(every.logits[-1] - answer.logits[-1]).max() <= 1e-5 * np.abs(answer.logits).max()
    assert every.rows()[0]["text"] is None and every.rows()[0]["token"] == answer.rows()[0]["token"]


@pytest.mark.parametrize("name", ["gpt2", "llama", "t5", "whisper"])
def test_a_run_gives_the_reference_logits(name, tmp_path):
    """[T V] of every token, of what has an encoder too, whose source is an array or a file."""
    g = golden(name)
    (tmp_path / "config.json").write_text(json.dumps(g.raw))
    save_file({n: np.ascontiguousarray(t) for n, t in g.tensors.items()}, tmp_path / "model.safetensors")
    sources = [g.source]
    if g.source is not None and g.source.ndim == 2:
        np.save(tmp_path / "sound.npy", g.source)
        sources.append(tmp_path / "sound.npy")
    for source in sources:
        answer = ep.run(tmp_path, tokens=g.ids, source=source, all_logits=True, trace=True)
        close(answer.logits, g.logits)
        assert {None, 0} <= {step.layer for step in answer.steps}
        close(answer.steps[-1].output, g.logits)
    if g.source is not None:
        with pytest.raises(ep.Problem, match="^source = 3: not an input of an encoder; give"):
            ep.run(tmp_path, tokens=[1], source=3)


# --- what cannot be done ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, command",
    [
        (lambda: ep.load("lama3-8b"), "describe lama3-8b"),
        (lambda: ep.load("claude-3-opus"), "describe claude-3-opus"),
        (lambda: ep.load("nowhere/config.json"), "describe nowhere/config.json"),
        (lambda: ep.load("gpt2").what_if(n_head=7), "what-if gpt2 --set n_head=7"),
        (lambda: ep.load("gpt2").what_if(n_hed=7), "what-if gpt2 --set n_hed=7"),
        (lambda: ep.fits("gpt2", "h10"), "fits gpt2 --on h10"),
        (lambda: ep.run("nowhere", "x"), "run nowhere --text x"),
        (lambda: ep.run("capitals", tokens=[5000]), "run capitals --tokens 5000"),
        (lambda: ep.run("capitals", "x" * 3, memory="1kB"), "run capitals --text xxx --memory 1kB"),
    ],
)
def test_the_line_is_the_command_s(call, command, capsys):
    with pytest.raises(ep.Problem) as problem:
        call()
    assert problem.value.what and problem.value.what in (said := refused(capsys, *command.split()))
    assert "--" not in str(problem.value), "Python has no options"
    if not problem.value.parameter:
        assert str(problem.value) == said
    else:
        option, value = f"--{problem.value.parameter}", problem.value.value
        assert f"{problem.value.parameter}{value and f' = {value}'}: {problem.value.what}" in str(problem.value)
        assert f"{option}{value and f' {value}'}: {problem.value.what}" in said and option in command


@pytest.mark.parametrize(
    "call, line",
    [
        (lambda m: ep.load(7), "7 is not a model; give a preset's slug"),
        (lambda m: ep.load(b"gpt2"), "b'gpt2' is not a model"),
        (lambda m: ep.load({}), "config: model_type is missing"),
        (
            lambda m: ep.load({"model_type": "gpt2", "n_embd": {1}}),
            "config: Object of type set is not JSON serializable",
        ),
        (lambda m: ep.load(CONFIG | {"n_head": 5}), "config: n_head = 5 does not divide"),
        (lambda m: m.kv_cache(0), "context = 0: expected a whole number from 1 to 999,999,999"),
        (lambda m: m.kv_cache(True), "context = True: expected a whole number"),
        (lambda m: m.kv_cache(1.5), "context = 1.5: expected a whole number"),
        (lambda m: m.kv_cache(dtype="bf17"), "dtype = 'bf17': no such format"),
        (lambda m: m.memory(weights="fp9"), "weights = 'fp9': no such format; did you mean"),
        (lambda m: m.memory(devices=10**6), "devices = 1000000: expected"),
        (lambda m: m.flops(10, new_tokens=11), "new_tokens = 11: more than the context of 10"),
        (lambda m: m.figure("totl"), "no figure 'totl'; did you mean \"total\"?"),
        (lambda m: m.figure("decode_seconds"), "decode_seconds is a figure of an accelerator"),
        (lambda m: m.figure("decode_seconds", on="h10"), "on = 'h10': no accelerator; did you mean"),
        (lambda m: m.what_if(), "what_if without a hyperparameter"),
        (lambda m: m.what_if(n_layers=object()), "gpt2: <object object at"),
        (lambda m: m.parameters.patterns.select("tensors"), "no column 'tensors'; did you mean \"tensor\"?"),
        (lambda m: ep.models(family="lama"), "family = 'lama': no model; did you mean \"Llama\"?"),
        (lambda m: ep.models(sort_by="totl"), "sort_by = 'totl': no column"),
        (lambda m: ep.models(descending=range), "descending = <class 'range'>: no truth value"),
        (lambda m: ep.train(m, bias=np.zeros(2)), "bias: full training has no adapters"),
        (lambda m: ep.models(sort_by=np.zeros(2)), "sort_by = array([0., 0.]): no column"),
        (
            lambda m: ep.train("gpt2", sequence_parallel=np.zeros(2)),
            "sequence_parallel = array([0., 0.]): no truth value",
        ),
        (lambda m: ep.train("gpt2", method="lora", target_modules=1j), "target_modules = 1j: no names of modules"),
        (lambda m: m.figure(["total"]), "no figure"),
        (lambda m: ep.compare(m), "compare needs two or more models"),
        (lambda m: ep.fits(m, 24), "on = 24: neither an accelerator nor a size"),
        (lambda m: ep.fits([], "24GB"), "fits without a model; give one"),
        (lambda m: ep.fits(m, "24GB", engine="vlm"), "engine = 'vlm': no such engine; did you mean \"vllm\"?"),
        (lambda m: ep.fits(m, "24GB", engine=3), "engine = 3: no such engine"),
        (lambda m: ep.fits(m, "24GB", devices=2, engine="mlx"), "an engine is counted on one device"),
        (lambda m: ep.fits([m, 3], "24GB"), "3 is not a model"),
        (lambda m: m.to_dict(context=None), "context = None: expected a whole number"),
        (lambda m: m.to_dict(context=[]), "context = []: expected a number of tokens"),
        (lambda m: ep.fits(), "fits without a model; give one"),
        (lambda m: ep.fits([m]), "fits of several models without a machine"),
        (lambda m: ep.models(max_parameters="8B"), "max_parameters = '8B': no number"),
        (lambda m: ep.run(3, "x"), "folder = 3: no path"),
        (lambda m: ep.run("capitals", 3), "text = 3: expected a text"),
        (lambda m: ep.run("capitals", tokens=3), "tokens = 3: no list of token ids"),
        (lambda m: ep.run("capitals"), "run needs a text or token ids"),
        (lambda m: ep.run("capitals", tokens=["a"]), "tokens: 'a' is not a token id"),
        (lambda m: ep.run("capitals", "x", top=0), "top = 0: expected a whole number"),
    ],
)
def test_a_wrong_call_is_one_line(call, line):
    with pytest.raises(ep.Problem) as problem:
        call(ep.load("gpt2"))
    assert str(problem.value).startswith(line) and "\n" not in str(problem.value)


def test_what_the_command_says_besides_is_a_warning_of_this_file():
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        m = ep.load(CONFIG | {"a_key_of_theirs": 1})
        m.kv_cache(100), m.flops(100), m.memory(100), m.figure("cache_bytes", 100)
        ep.fits(m, "24GB", context=100), ep.compare(m, m, context=100)
        ep.fits(CONFIG | {"a_key_of_theirs": 1}, "24GB", context=10)
    said = [str(one.message) for one in warned]
    assert said[0] == said[-1] == "config: unknown keys, taken as changing no shape: 'a_key_of_theirs'"
    beyond = "config: beyond the 31 tokens of the model's position table: figures at 100 are arithmetic only"
    assert said[1:-1] == [beyond] * 7
    assert {one.filename for one in warned} == {__file__}


# --- tables -----------------------------------------------------------------------------------------------------------


TABLES = {
    "parameters": lambda: ep.load("deepseek-v3").parameters.table,
    "tensors": lambda: ep.load("deepseek-v3").parameters.tensors,
    "patterns": lambda: ep.load("deepseek-v3").parameters.patterns,
    "total": lambda: ep.load("deepseek-v3").parameters.total.table,
    "cache": lambda: ep.load("deepseek-v3").kv_cache().table,
    "flops": lambda: ep.load("deepseek-v3").flops().table,
    "memory": lambda: ep.load("deepseek-v3").memory().table,
    "models": lambda: ep.models(),
    "compare": lambda: ep.compare("jamba-v0.1", "dbrx", "a.x-k1", "gemma-2b", "gemma-4-26b-a4b", on="h100"),
    "fits": lambda: ep.fits(["gpt2", "llama3-8b"], "24GB"),
    "fit": lambda: ep.fits("gpt2", "24GB").table,
    "run": lambda: ep.run("capitals", "The capital of Japan is").table,
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_what_data_frames_take(name):
    """Dicts with the same keys, and in each column values of one plain type, or None."""
    table = TABLES[name]()
    rows = table.rows()
    assert len(rows) == len(table) > 0 and rows == list(table) and rows[-1] == table[-1] and len(table[:1]) == 1
    assert {tuple(row) for row in rows} == {table.columns}
    for column in table.columns:
        kinds = {type(row[column]) for row in rows} - {type(None)}
        assert kinds <= {int} or kinds <= {float} or kinds <= {str} or kinds <= {bool} or kinds <= {list}, column
    rows[0].clear()
    assert table[0]  # it was a copy
    heading, *lines = csv.reader(io.StringIO(table.to_csv()))
    assert tuple(heading) == table.columns and len(lines) == len(rows)
    assert table.heads or len(repr(table).splitlines()) <= SHOWN + 2
    assert "<table>" in table._repr_html_()


def test_a_column_of_two_types_is_of_one():
    rows = [{"a": 1, "b": True, "c": None}, {"a": 1.5, "b": 2.0, "c": 3}, {"a": None, "b": "x", "c": 4}]
    assert [list(row.values()) for row in one_type(rows)] == [[1.0, "True", None], [1.5, "2.0", 3], [None, "x", 4]]
    assert one_type([]) == []


def test_what_a_config_says_acts_nowhere():
    table = ep.Table(("name", HOSTILE), [{"name": HOSTILE, HOSTILE: 1234}], caption=HOSTILE)
    shown = table._repr_html_()
    assert "<img" not in shown and re.findall(r"<(\w+)", shown).count("td") == 2 and "\u202e" not in shown
    assert html.unescape(re.findall("<td>(.*?)</td>", shown)[0]) == " ".join(HOSTILE.split()).replace(
        "\u202e", "\\u202e"
    )
    heading, _, row = table.to_markdown().splitlines()
    for line in (heading, row):
        assert "<img" not in line and not re.search(r"(?<!\\)[`*_\[]", line)
        assert len(re.findall(r"(?<!\\)\|", line)) == 3
    assert "\u202e" not in table.to_csv() + repr(table)
    m = ep.load(CONFIG).what_if(n_layers=3)
    m.inner.slug = HOSTILE
    for content in (m._repr_html_(), m.diagram.svg, m.map.svg, ep.fits(m, "24GB")._repr_html_()):
        assert "<img" not in content


def test_a_long_table_says_how_many_rows_it_has():
    long, short = (ep.Table(("n",), [{"n": n} for n in range(rows)]) for rows in (SHOWN + 1, SHOWN))
    assert repr(long).splitlines()[-1] == f"… {SHOWN + 1:,} rows in all"
    assert repr(short).splitlines()[-1].strip() == f"{SHOWN - 1}" and len(repr(short).splitlines()) == SHOWN + 1


def test_numbers_stand_right_in_markdown():
    table = ep.Table(
        ("name", "n", "none"), [{"name": "a", "n": 1, "none": None}, {"name": "b", "n": 2.5, "none": None}]
    )
    heading, sides, *_ = table.to_markdown().splitlines()
    assert dict(zip(heading.split(" | "), sides.split(" | "))) == {"| name": "| ---", "n": "--:", "none |": "--- |"}


def test_a_comparison_is_shown_with_a_column_for_each_model():
    both = ep.compare("gpt2", "llama3-8b").select("model", "n_layers", "total")
    assert [line.split() for line in repr(both).splitlines()] == [
        ["gpt2", "llama3-8b"],
        ["n_layers", "12", "32"],
        ["total", "124,439,808", "8,030,261,248"],
    ]
    assert both.to_markdown().splitlines()[0] == "|  | gpt2 | llama3-8b |"
    assert both.to_csv().splitlines()[0] == "model,n_layers,total"


# --- formulas and drawings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", SLUGS)
def test_a_formula_is_the_total(slug):
    formula, m = ep.load(slug).formula, ep.load(slug)
    assert presets.model(slug).counts.total_poly.at(formula.symbols) == m.parameters.total
    assert formula._repr_latex_() == f"$${formula.tex}$$" and str(formula) == repr(formula)
    assert formula._repr_html_().startswith("<math")


def test_without_v8_a_formula_is_tex(monkeypatch):
    monkeypatch.setattr(models, "find_spec", lambda name: None)
    formula = ep.load("gpt2").formula
    assert html.unescape(formula._repr_html_()) == f"$${formula.tex}$$"


@pytest.mark.parametrize("slug", SLUGS)
def test_a_drawing_is_a_whole_file(slug):
    """XML with a size and a style of its own, in which nothing is left to a style sheet of the site, or leads there."""
    m = ep.load(slug)
    for picture in (m.diagram, m.map):
        root = ElementTree.fromstring(picture._repr_svg_())
        assert root.tag == "{http://www.w3.org/2000/svg}svg" and float(root.get("width")) > 100
        assert "var(" not in picture.svg and "href" not in picture.svg and len(list(root.iter())) > 10


def test_the_colours_of_drawings_are_the_site_s():
    sheet = (ROOT / "docs/assets/components.css").read_text("utf-8")
    colours = set(re.findall(r"#[0-9a-f]{6}", STYLE))
    assert len(colours) > 8 and colours <= set(re.findall(r"#[0-9a-f]{6}", sheet))


def test_a_missing_hyperparameter_is_told_with_the_nearest():
    config = ep.load("gpt2").config
    with pytest.raises(KeyError, match='d_modl; did you mean "d_model"'):
        config["d_modl"]
    with pytest.raises(KeyError, match="zzz; has vocab_size, "):
        config["zzz"]
    assert config.get("zzz") is None and "zzz" not in config and pickle.loads(pickle.dumps(config)) == config


def test_a_model_goes_to_a_worker_and_is_the_same_there():
    """By its preset or its config, not by its trace."""
    for model in (ep.load("llama3-8b"), ep.load("llama3-8b").what_if(n_layers=33), ep.load("Qwen/Qwen3-8B-AWQ")):
        packed = pickle.dumps(model)
        there = pickle.loads(packed)
        assert there == model and hash(there) == hash(model) and len(packed) < 20_000
        assert there.parameters.total == model.parameters.total and there.format == model.format
        assert there.memory(context=4096) == model.memory(context=4096)
    assert ep.load("llama3-8b") != ep.load("llama3-8b").what_if(n_layers=33)
    assert ep.load("qwen3-8b") != ep.load("Qwen/Qwen3-8B-AWQ") and ep.load("gpt2") != "gpt2"


def test_a_warning_names_its_model():
    with pytest.warns(UserWarning, match="^Llama 3 8B: beyond the 8,192 tokens"):
        ep.load("llama3-8b").memory(context=10_000)
    with pytest.warns(UserWarning, match="^config: unknown keys, taken as changing no shape: 'foo'$"):
        model = ep.load({**ep.load("llama3-8b").inner.raw, "foo": 1})
    assert model.warnings == ("unknown keys, taken as changing no shape: 'foo'",)


def test_models_that_are_not_disclosed_are_sides_without_figures():
    compared = ep.compare("llama3-8b", "claude-3-opus", "qwen3-8b")
    assert [row["total"] for row in compared.rows()] == [8_030_261_248, None, 8_190_735_360]
    assert compared.ratios[0] == {} and compared.ratios[1]["total"] > 1 and "vocab_size" in compared.differ
    nothing = ep.compare("claude-3-opus", "gpt-4")
    assert [row["name"] for row in nothing.rows()] == ["Claude 3 Opus", "GPT-4"] and nothing.differ == []


def test_dates_have_one_form_with_their_precision_beside_them():
    rows = ep.models().rows()
    assert all(datetime.date.fromisoformat(row["released"]) for row in rows)
    assert {row["released_to_the"] for row in rows} >= {"day", "month"}
    [llama] = [row for row in rows if row["model"] == "llama3-8b"]
    assert (llama["released"], llama["released_to_the"]) == ("2024-04-18", "day")
    assert all(row["released"].endswith("-01") for row in rows if row["released_to_the"] != "day")


@pytest.mark.parametrize("more", [{}, {"options": "-tp 2"}, {"devices": 2}, {"version": "0.30"}], ids=str)
@pytest.mark.parametrize("on", [24, ["h100"], b"h100", np.zeros(3)], ids=str)
def test_a_machine_for_an_engine_is_text(on, more):
    with pytest.raises(ep.Problem, match="neither an accelerator nor a size; give text, such as h100 or 24GB"):
        ep.fits("gpt2", on=on, engine="vllm", **more)
