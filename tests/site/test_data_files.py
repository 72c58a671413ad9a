"""The data at addresses that stay: each file is as its schema says and as the command prints it; the page's examples
run."""

from __future__ import annotations

import copy
import csv
import html
import io
import json
import re

import every_parameter as ep
import pytest
from copies import ROOT
from jsonschema import Draft202012Validator, ValidationError
from sampling import fewer, sampled

from macros.__main__ import main
from macros.api.changes import changed
from macros.catalogue import presets
from macros.engine.errors import Problem
from macros.site import data_files

# Of each mechanism one, an encoder's part of several, and one that only a paper describes.
SLUGS = (
    "gpt2 llama3-8b deepseek-v3.2 gemma3-4b gpt-oss-20b llama4-scout qwen3-next-80b-a3b mamba-130m rwkv-4-169m "
    "nemotron-3-nano-30b-a3b gpt3-175b minimax-text-01"
).split()
UNDISCLOSED = "claude-3-opus"


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return {name: make() for name, make in data_files.files([*SLUGS, UNDISCLOSED])}


@pytest.fixture(scope="module")
def page() -> str:
    return (ROOT / "docs" / "reference" / "data.md").read_text("utf-8")


def validator(files: dict[str, str], of: str) -> Draft202012Validator:
    schema = json.loads(files[f"data/v1/{of}.schema.json"])
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.exhaustive
def test_every_file_is_as_its_schema_says(files):
    for_a_model = validator(files, "model")
    for slug in fewer(SLUGS, 3):
        for_a_model.validate(json.loads(files[f"data/v1/{slug}.json"]))
    for name in ("catalogue", "conformance"):
        validator(files, name).validate(json.loads(files[f"data/v1/{name}.json"]))
    assert len(files) == 2 * len(SLUGS) + 6


def test_the_conformance_file_says_what_the_models_objects_say(files):
    """At the contexts that both have; and its configs alone give the same figures."""
    conformance = json.loads(files["data/v1/conformance.json"])
    assert [one["model"] for one in conformance["models"]] == SLUGS
    keys = {f"{place}.{key}" for one in conformance["models"] for place in conformance_places for key in one[place]}
    without_convention = keys - conformance["conventions"].keys()
    assert without_convention == {"parameters.stored_is_computed"}
    for one in conformance["models"]:
        whole = json.loads(files[f"data/v1/{one['model']}.json"])
        assert one["parameters"] == whole["parameters"] and one["weight_bytes"] == whole["costs"]["weight_bytes"]
        for place in ("kv_cache", "flops"):
            for key, figure in one[place].items():
                assert key in whole[place]
                same = whole[place][key]
                if isinstance(figure, dict):
                    assert list(figure) == [str(n) for n in conformance["contexts"]]
                    figure = {context: figure[context] for context in same}
                assert figure == same
        alone = presets.make("alone", one["config"])
        assert alone.counts.total == one["parameters"]["total"]
        assert alone.counts.cache_bytes(32768) == one["kv_cache"]["bytes_at"]["32768"]


conformance_places = "parameters", "kv_cache", "flops"


@pytest.mark.slow("validates a quarter of the models' data")
def test_every_model_is_as_the_schema_says(files):
    for_a_model = validator(files, "model")
    for slug in sampled(presets.paths(), 4):
        if presets.preset(slug).config is not None:
            for_a_model.validate(json.loads(data_files.model_files(slug)[0]))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.pop("formulas"),
        lambda data: data.update(more=1),
        lambda data: data["parameters"].update(total="124439808"),
        lambda data: data["parameters"].update(total=-1),
        lambda data: data["kv_cache"]["bytes_at"].update(soon=1),
        lambda data: data["formulas"].update(parameters=["/", "d_model", 2]),
        lambda data: data["formulas"].update(parameters=["*", "d_model", ["+", "d_ff", 1.5]]),
        lambda data: data["tensors"].append(["x", "768"]),
        lambda data: data["costs"]["bounds_at"]["4096"]["h100"].pop("devices"),
        lambda data: data["sources"].update(verified=None),
        lambda data: data.update(version="v2"),
    ],
)
def test_what_is_not_as_the_schema_says_is_told(files, spoil):
    data = copy.deepcopy(json.loads(files["data/v1/gpt2.json"]))
    spoil(data)
    with pytest.raises(ValidationError):
        validator(files, "model").validate(data)


def test_a_file_is_what_describe_prints(files, capsys):
    for form, end in (("json", "json"), ("csv", "csv")):
        assert main(["describe", "--collapse", "--format", form, "llama3-8b"]) == 0
        assert capsys.readouterr().out == files[f"data/v1/llama3-8b.{end}"]


def test_a_config_of_ones_own_is_as_the_schema_says_too(files, capsys, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(presets.preset("gpt2").config))
    for collapse in ([], ["--collapse"]):
        main(["describe", "--format", "json", *collapse, str(tmp_path)])
        data = json.loads(capsys.readouterr().out)
        validator(files, "model").validate(data)
        assert data["sources"] is None


def test_the_examples_of_the_page_run(files, page, tmp_path, monkeypatch, capsys):
    """In their order, each going on from those before, beside the files that they name."""
    for address, content in files.items():
        path = tmp_path / address
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    examples = re.findall(r"^```python\n(.*?)^```", page, re.S | re.M)
    for example in examples:
        exec(example, names)
    *largest, wrong, doubled = capsys.readouterr().out.splitlines()
    assert len(examples) == 4 and len(largest) == 3 and largest[0].startswith("GPT-3 175B")
    assert wrong == f"{len({slug for slug, _ in names['wrong']})} of {len(SLUGS)} models are counted wrong"
    assert ("llama3-8b", "4096") not in names["wrong"] and ("deepseek-v3.2", "4096") in names["wrong"]
    assert doubled == f"with twice the layers: {changed(presets.model('llama3-8b'), {'n_layers': 64}).counts.total}"
    evaluate = names["evaluate"]
    for slug in SLUGS:
        data = json.loads(files[f"data/v1/{slug}.json"])
        symbols = data["formulas"]["symbols"] | {"T": 4096, "S": 4096}
        said = {name: evaluate(data["formulas"][name], symbols) for name in ("parameters", "active", "flops")}
        assert said == {
            "parameters": data["parameters"]["total"],
            "active": data["parameters"]["active"],
            "flops": data["flops"]["prefill"]["4096"],
        }
        kept = sum(evaluate(k["elements"], symbols) * (k["item_bytes"] or 2) for k in data["formulas"]["cache"])
        assert kept == data["kv_cache"]["bytes_at"]["4096"]
        for (name, shape, _), (same, formula, _copies) in zip(data["tensors"], data["formulas"]["tensors"]):
            assert name == same and shape == [evaluate(d, symbols) for d in formula]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_engines_links_adapters_and_training_are_as_the_api_answers(files):
    """Of each the same figure by another way: `fits`, `splits` and `train` of the Python API."""
    nulls: dict[str, set[str]] = {}
    slugs = fewer(SLUGS, 4)
    for slug in slugs:
        costs, model = json.loads(files[f"data/v1/{slug}.json"])["costs"], ep.load(slug)
        given = costs["engine_bytes"]
        for engine in ENGINES:
            try:
                answer = ep.fits(model, on="80GB", context=given["context"], weights="bfloat16", engine=engine)
            except ep.Problem:
                assert given[engine] is None
                nulls.setdefault(engine, set()).add(slug)
                continue
            exact = {t.key: t.least for t in answer.terms if t.how.value == "exact" and t.key != "weights"}
            assert given[engine] == exact and exact["cache" if "cache" in exact else "state"] > 0
        for devices, split in costs["split_bytes"].items():
            (row, *_) = ep.splits(model, devices=int(devices), context=4096)
            assert (split["sent"], split["total_sent"]) == (row["decode_sent_bytes"], row["decode_total_bytes"])
            assert (split["sent"] > 0) == (int(devices) > 1)
        all_linear = ALL_LINEAR
        if refused := presets.model(slug).architecture.peft.refused:  # a module that PEFT does not take
            with pytest.raises(Problem, match=f"target module {refused}: PEFT refuses it"):
                ep.train(model, method="lora", **all_linear)
            all_linear = all_linear | {"exclude_modules": [refused]}
        for lora, options in ((costs["lora"]["default"], {}), (costs["lora"]["all_linear"], all_linear)):
            if lora is None:  # PEFT has no default, or refuses a module of it
                with pytest.raises(Problem, match="no default|PEFT refuses it"):
                    ep.train(model, method="lora", **options)
                continue
            answer = ep.train(model, method="lora", **options)
            assert lora["parameters"] == answer.trainable and lora["rank"] == answer.adapters.adapter.rank
            assert lora["exclude_modules"] == options.get("exclude_modules", [])
        answer, told = ep.train(model, devices=8, zero=3), costs["zero3_bytes"]
        assert told["total"] == answer.total == sum(told["bytes"].values())
        assert told["bytes"]["optimizer_states"] == answer.terms["optimizer states"] > 0
    assert all(len(refused) < max(len(slugs) // 2, 2) for refused in nulls.values()), nulls


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_throughput_and_speculative_decoding_are_as_the_api_answers(files):
    """The rates of `splits`, and the ratios of `speculative` with free drafts; the largest batch fits, one more does
    not.
    """
    ends = 0
    for slug in {*fewer(SLUGS, 4), "llama3-8b"}:  # one at least fits on one device
        costs, model = json.loads(files[f"data/v1/{slug}.json"])["costs"], ep.load(slug)
        for machine, context in (("h100", 4096), ("h100", 131072), ("b200", 4096), ("rtx-4090", 4096)):
            bound, rates = (costs[key][str(context)][machine] for key in ("bounds_at", "throughput_at"))
            asked = {"on": machine, "devices": bound["devices"], "context": context}
            for batch, rate in rates.items():
                (row,) = (
                    row
                    for row in ep.splits(model, **asked, batch=int(batch), weights="bfloat16")
                    if {name: row[name] for name in bound["split"]} == bound["split"]
                )
                seconds = max(row[f"decode_{name}_seconds"] or 0 for name in ("compute", "memory", "link"))
                assert row["fits"] and rate == pytest.approx(int(batch) / seconds, rel=1e-5)
            if rates and bound["devices"] == 1:
                most, ends = max(map(int, rates)), ends + 1
                assert not ep.fits(model, **asked, batch=most + 1, weights="bfloat16")
            assert machine != "b200" or rates["1"] > 0
        for batch, ratios in costs["verify_ratio_at"]["4096"].items():
            for drafted, ratio in ratios.items():
                answer = ep.speculative(
                    model, None, "h100", 0.7, int(drafted), 4096, int(batch), "bfloat16",
                    devices=costs["bounds_at"]["4096"]["h100"]["devices"],
                ).to_dict()  # fmt: skip
                assert ratio == pytest.approx(answer["verify_seconds"] / answer["plain_seconds_per_token"], rel=1e-5)
    assert ends


ENGINES = "vllm", "llama.cpp", "transformers", "mlx"
ALL_LINEAR = {"rank": 16, "target_modules": "all-linear"}


def test_the_page_names_every_address_and_every_operation(files, page):
    named = set(re.findall(r"\(\.\./(data/v1/[^)]+)\)", page))
    assert named == {
        f"data/v1/{name}"
        for name in ("catalogue.json", "catalogue.csv", "conformance.json", "llama3-8b.json", "llama3-8b.csv")
        + tuple(f"{of}.schema.json" for of in data_files.SCHEMAS)
    }
    operations = validator(files, "model").schema["$defs"]["expression"]["anyOf"][2]["prefixItems"][0]["enum"]
    assert re.findall(r'^\| `\["(.+?)"', page, re.M) == operations


def test_the_catalogue_as_a_table_says_what_its_json_says(files):
    rows = list(csv.DictReader(io.StringIO(files["data/v1/catalogue.csv"])))
    models = json.loads(files["data/v1/catalogue.json"])["models"]
    assert [row["model"] for row in rows] == [model["model"] for model in models] == [*SLUGS, UNDISCLOSED]
    llama, hidden = rows[1], rows[-1]
    assert llama["parameters.total"] == "8030261248" and llama["sizes.d_model"] == "4096"
    assert llama["kv_cache.bytes_at.131072"] == str(131072**2) and llama["json"] == "llama3-8b.json"
    assert hidden["name"] == "Claude 3 Opus" and hidden["parameters.total"] == hidden["json"] == ""
    assert models[-1]["parameters"] is None and models[-1]["organization"] == "Anthropic"
    assert all(None not in row.values() and len(row) == len(rows[0]) for row in rows)


def test_the_fields_of_the_page_are_those_of_the_schema(files):
    shown = html.unescape(re.sub("<[^>]+>", "\n", data_files.data_fields("catalogue")))
    for key in ("models[].sizes.d_model", "models[].kv_cache.bytes_at", "models[].licence"):
        assert f"\n{key}\n" in shown
    assert "text or null" in shown


def test_addresses_are_those_of_the_page():
    assert (
        data_files.json_address("gpt2") == "data/v1/gpt2.json" and data_files.csv_address("gpt2") == "data/v1/gpt2.csv"
    )
    assert not list((ROOT / "docs").rglob("data/v1/*"))
