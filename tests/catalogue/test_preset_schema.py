"""The JSON Schema of presets is in step with what reads them: it takes every preset, and refuses what they refuse."""

from __future__ import annotations

import ast
import copy
import functools
import json
import tomllib

import pytest
from copies import ROOT
from jsonschema import Draft202012Validator
from reference.configs import REMOTE, all_configs, configs, remote
from sampling import CI, near_first, sampled

from macros.__main__ import main
from macros.catalogue import preset_schema, presets
from macros.catalogue.small_configs import small_configs
from macros.engine.architectures import architectures
from macros.engine.architectures.config import COMMON_IGNORED, Config, fields_of, keys_of
from macros.engine.architectures.drafts import KINDS
from macros.engine.errors import Problem
from macros.engine.keys import language_part


@pytest.fixture(scope="module")
def schema() -> Draft202012Validator:
    said = preset_schema.schema()
    kinds = said["$defs"]
    Draft202012Validator.check_schema({**said, "$defs": {kind: kinds[kind] for kind in sampled(kinds, 5)}})
    made = Draft202012Validator(said)
    assert made.is_valid(table("llama3-8b"))
    return made


def table(slug: str) -> dict:
    return preset_schema.plain(tomllib.loads(presets.paths()[slug].read_text("utf-8")))


@pytest.mark.slow("validates every preset")
def test_every_preset_is_as_the_schema_says(schema):
    wrong = {slug: error.message for slug in presets.paths() for error in schema.iter_errors(table(slug))}
    assert not wrong


@pytest.mark.exhaustive
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
    change(changed)
    assert not schema.is_valid(changed)


def test_it_names_every_key_of_every_architecture():
    kinds = preset_schema.schema()["$defs"]
    for model_type, architecture in architectures().items():
        assert model_type in kinds["config"]["properties"]["model_type"]["enum"]
        keys = {k.key for k in fields_of(architecture.config) if k.key}
        assert keys <= kinds[architecture.config.__name__]["properties"].keys()


@functools.cache
def raws() -> dict[type[Config], dict]:
    """The keys of a model of each config class."""
    found = {}
    heads = [all_configs()[kind] for kind in KINDS]
    listed = [raw for slug in presets.paths() if (raw := table(slug).get("config"))]
    others = [*map(remote, REMOTE), *listed, *small_configs().values()]
    for raw in [*configs().values(), *heads, *others]:
        found.setdefault(architectures()[raw["model_type"]].config, dict(language_part(raw)[0]))
    assert found.keys() == {a.config for a in architectures().values()}
    return found


@pytest.fixture
def some(reach, request) -> list[tuple[type[Config], dict]]:
    """Config classes, each with a model's keys: the changed ones, and others for each commit."""
    is_near = lambda one: reach.holds(one[0].__module__.rpartition(".")[2])  # noqa: E731
    return near_first(raws().items(), 4 if CI else 12, is_near, request.node.name)


@functools.cache
def names() -> frozenset[str]:
    """The keys of every architecture, and every text of their modules that may be one, with those that are put together
    of a beginning and a key.
    """
    keys = frozenset().union(*map(keys_of, raws()))
    trees = [ast.parse(path.read_text("utf-8")) for path in (ROOT / "macros/engine/architectures").glob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    starts = {
        n.values[0].value for n in nodes if isinstance(n, ast.JoinedStr) and isinstance(n.values[0], ast.Constant)
    }
    made = {start + key for start in starts if start.isidentifier() for key in keys}
    return keys | made | {text for text in texts if text.isidentifier()}


VALUES = 3, 0.5, True, "x", [1], {"x": 1}


def is_accepted(config: type[Config], raw: dict, key: str) -> bool:
    """Whether the reader knows a key, with the first value that it takes at all."""
    for value in (None, *VALUES):
        try:
            return key not in config.read({key: value} | raw)[1]
        except Problem:
            continue
    raise AssertionError(f"{config.__name__} takes none of these values of {key}")


@pytest.mark.exhaustive
def test_it_accepts_the_keys_that_the_reader_accepts_and_no_others(some):
    kinds = preset_schema.schema()["$defs"]
    wrong = {}
    for config, raw in some:
        own, common = kinds[config.__name__]["propertyNames"]["anyOf"]
        allowed = {*own["enum"], *kinds["changes_nothing"]["enum"]}
        assert common == {"$ref": "#/$defs/changes_nothing"} and raw.keys() <= allowed
        _, unknown = config.read(raw | dict.fromkeys(names() - allowed, "auto"))  # which some leave out
        refused = {key for key in allowed if not is_accepted(config, raw, key)}
        if refused or set(unknown) != names() - allowed:
            wrong[config.__name__] = sorted(refused), sorted(names() - allowed - set(unknown))
    assert not wrong


def test_it_describes_the_keys_of_a_table_that_is_unfolded(schema):
    changed = table("dbrx")
    for key, is_known in (("clip_qkv", True), ("attn_pdrop", True), ("clip_kv", False)):
        changed["config"] = {**changed["config"], "attn_config": {"kv_n_heads": 8, key: 8}}
        assert schema.is_valid(changed) == is_known
        assert (architectures()["dbrx"].config.read(changed["config"])[1] == []) == is_known


def is_read(config: type[Config], raw: dict, more: dict) -> bool:
    """Whether `prepare` does anything with further keys but keep them."""
    try:
        return config.prepare(raw | more) != config.prepare(dict(raw)) | more
    except Problem:
        return True


@pytest.mark.exhaustive
def test_a_class_declares_the_keys_that_it_rewrites_and_no_others(some):
    wrong = {}
    for config, raw in some:
        fields = {name for k in fields_of(config) if k.key for name in (k.key, *k.also)}
        twice = config.rewritten & (fields | config.ignored | COMMON_IGNORED)
        stale = {key for key in config.rewritten if not any(is_read(config, {}, {key: value}) for value in VALUES)}
        others = names() - config.rewritten - fields - COMMON_IGNORED - {"model_type"}
        more = [dict.fromkeys(others - base.keys(), value) for value in VALUES for base in ({}, raw)]
        undeclared = {
            key
            for n, all_of_them in enumerate(more)
            if is_read(config, raw if n % 2 else {}, all_of_them)
            for key in all_of_them
            if is_read(config, raw if n % 2 else {}, {key: all_of_them[key]})
        }
        if twice or stale or undeclared:
            wrong[config.__name__] = sorted(twice), sorted(stale), sorted(undeclared)
    assert not wrong


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
