"""The JSON Schema of presets is in step with what reads them: it takes every preset, and refuses what they refuse."""

from __future__ import annotations

import copy
import json
import tomllib

import pytest
from copies import ROOT
from jsonschema import Draft202012Validator

from macros.__main__ import main
from macros.catalogue import preset_schema, presets
from macros.engine.architectures import architectures
from macros.engine.architectures.config import fields_of


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    said = preset_schema.schema()
    Draft202012Validator.check_schema(said)
    return Draft202012Validator(said)


def table(slug: str) -> dict:
    return preset_schema.plain(tomllib.loads(presets.paths()[slug].read_text("utf-8")))


@pytest.mark.slow("validates every preset")
def test_every_preset_is_as_the_schema_says(schema):
    wrong = {slug: error.message for slug in presets.paths() for error in schema.iter_errors(table(slug))}
    assert not wrong


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.pop("family"),
        lambda t: t.update(famly="Llama"),
        lambda t: t.update(released=2024),
        lambda t: t["config"].pop("model_type"),
        lambda t: t["config"].update(model_type="lama"),
        lambda t: t["config"].update(hiden_size=4096),
        lambda t: t["config"].update(hidden_size="4096"),
        lambda t: t["config"].update(hidden_size=0),
        lambda t: t["published"].update(parameters=-1),
        lambda t: t["sources"].pop("verified"),
        lambda t: t["sources"].update(names="pubished"),
    ],
)
def test_what_a_preset_refuses_the_schema_refuses(schema, change):
    changed = copy.deepcopy(table("llama3-8b"))
    assert schema.is_valid(changed)
    change(changed)
    assert not schema.is_valid(changed)


def test_it_names_every_key_of_every_architecture():
    kinds = preset_schema.schema()["$defs"]
    for model_type, architecture in architectures().items():
        assert model_type in kinds["config"]["properties"]["model_type"]["enum"]
        keys = {k.key for k in fields_of(architecture.config) if k.key}
        assert keys <= kinds[architecture.config.__name__]["properties"].keys()


def test_the_command_writes_it_where_the_editors_settings_say(tmp_path, monkeypatch, capsys):
    [rule] = tomllib.loads((ROOT / ".taplo.toml").read_text("utf-8"))["rule"]
    monkeypatch.chdir(tmp_path)
    assert main(["schema", "--output", rule["schema"]["path"]]) == 0 and main(["schema"]) == 0
    written = (tmp_path / rule["schema"]["path"]).read_text("utf-8")
    assert capsys.readouterr().out == written and json.loads(written) == json.loads(json.dumps(preset_schema.schema()))
    assert all(path.match(pattern) for pattern in rule["include"] for path in [*presets.paths().values()][:1])


def test_taplo_reads_it():
    """It refuses a schema with an `$id` that is no whole address, and knows one kind of entries for a list."""
    text = json.dumps(preset_schema.schema())
    assert '"$id"' not in text and '"prefixItems"' not in text
