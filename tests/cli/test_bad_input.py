"""Bad input: one line that names the file, the key and the mend; never a traceback, never markup."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from functools import cache

import pytest
from copies import ROOT
from fuzzing import examples
from hypothesis import given
from hypothesis import strategies as st
from reference import golden
from small import configs

from macros.catalogue import checks, families, presets
from macros.cli import commands
from macros.counting.parameters import Counts
from macros.engine.architectures import architectures
from macros.engine.architectures.config import fields_of
from macros.engine.bounds import LARGEST_TEXT
from macros.engine.errors import Problem, nearest
from macros.site import model_pages

GOOD = {
    "model_type": "llama",
    "vocab_size": 97,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "intermediate_size": 55,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500.0,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
}

TOML = """
name = "Tiny"
family = "Llama"
organization = "Someone"
released = 2024-04-18

[config]
model_type = "llama"
vocab_size = 97
hidden_size = 48
num_hidden_layers = 3
num_attention_heads = 6
num_key_value_heads = 2
intermediate_size = 55

[sources]
config = "someone/tiny, config.json"
verified = 2026-11-01

[published]
parameters = 50_000
exact = false
source = "the model's card"
"""


def one_line(problem: Problem) -> str:
    text = str(problem)
    assert "\n" not in text and len(text) < 1200 and "Traceback" not in text and "`" not in text
    return text


@pytest.fixture
def catalogue(tmp_path, monkeypatch):
    """A catalogue of its own: `catalogue(text)` writes tiny.toml and loads the model of that slug."""

    def clear():
        for cached in (
            presets.paths,
            families._by_letters,
            families._by_name,
            families._by_maker,
            presets.readable,
            presets.preset,
            presets.model,
            model_pages.problem,
        ):
            cached.cache_clear()
        families._all_about.results.clear()

    monkeypatch.setattr(presets, "FOLDER", tmp_path / "macros" / "presets")
    monkeypatch.setattr("macros.engine.files.PACKAGE", tmp_path / "macros")
    clear()

    def load(text: str | bytes, folder="llama", slug="tiny"):
        path = tmp_path / "macros" / "presets" / folder / f"{slug}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        clear()
        return presets.model(slug)

    yield load
    clear()


def test_the_good_ones_are_good(catalogue):
    assert catalogue(TOML).counts.total > 0 and presets.make("x", GOOD).counts.total > 0


# what is replaced in TOML, by what, and what the line says
PRESETS = {
    "a missing size": ("hidden_size = 48\n", "", r"hidden_size is missing; add it"),
    "a misspelt size": ("hidden_size", "hiden_size", r'hidden_size is missing; the file has "hiden_size": rename it'),
    "an extra key": (
        "vocab_size = 97",
        "vocab_size = 97\nrotary_dims = 3",
        r"config\.rotary_dims: unknown key of llama",
    ),
    "a near key": (
        "vocab_size = 97",
        "vocab_size = 97\nhead_dims = 3",
        r'config\.head_dims: unknown key of llama; did you mean "head_dim"\?',
    ),
    "zero": ("hidden_size = 48", "hidden_size = 0", r"hidden_size = 0: expected a whole number >= 1"),
    "negative": ("vocab_size = 97", "vocab_size = -97", r"vocab_size = -97: expected"),
    "too large": ("vocab_size = 97", f"vocab_size = {10**30}", r"vocab_size = 10+: expected"),
    "thousands of digits": ("vocab_size = 97", f"vocab_size = {'9' * 5000}", r"broken TOML"),
    "a fraction": (
        "hidden_size = 48",
        "hidden_size = 4096.5",
        r"hidden_size = 4096\.5: expected a whole number, found a number",
    ),
    "text": ("hidden_size = 48", 'hidden_size = "48"', r"hidden_size = '48': expected a whole number, found text"),
    "true": (
        "hidden_size = 48",
        "hidden_size = true",
        r"hidden_size = True: expected a whole number, found true or false",
    ),
    "a list": (
        "hidden_size = 48",
        "hidden_size = [48]",
        r"hidden_size = \[48\]: expected a whole number, found a list",
    ),
    "a date": ("hidden_size = 48", "hidden_size = 2024-04-18", r"hidden_size = "),
    "nan": ("vocab_size = 97", "vocab_size = 97\nrms_norm_eps = nan", r"rms_norm_eps = nan: expected a finite number"),
    "infinity": ("vocab_size = 97", "vocab_size = 97\nrope_theta = inf", r"rope_theta = inf: expected"),
    "heads that do not divide": (
        "num_key_value_heads = 2",
        "num_key_value_heads = 4",
        r"num_key_value_heads = 4 does not divide num_attention_heads = 6",
    ),
    "a width that heads do not divide": (
        "hidden_size = 48",
        "hidden_size = 49",
        r"num_attention_heads = 6 does not divide hidden_size = 49",
    ),
    "a billion layers": (
        "num_hidden_layers = 3",
        "num_hidden_layers = 1_000_000_000",
        r"num_hidden_layers = 1000000000: expected at most",
    ),
    "an odd head": ("vocab_size = 97", "vocab_size = 97\nhead_dim = 7", r"even number"),
    "a misspelt architecture": (
        '"llama"',
        '"lama"',
        r"model_type = 'lama' is not known; did you mean \"llama\"\?",
    ),
    "an architecture with a hyphen": (
        '"llama"',
        '"granite-moe"',
        r"model_type = 'granite-moe' is not known; did you mean \"granitemoe\"\?",
    ),
    "an unknown architecture": (
        '"llama"',
        '"koala"',
        r"model_type = 'koala' is not known; it is another architecture than those covered; nearest by its keys is \w+",
    ),
    "no architecture": ('model_type = "llama"\n', "", r"model_type is missing"),
    "an unknown activation": (
        "vocab_size = 97",
        'vocab_size = 97\nhidden_act = "sillu"',
        r'hidden_act: unknown activation .sillu.; did you mean "silu"',
    ),
    "an unknown rope": (
        "vocab_size = 97",
        'vocab_size = 97\nrope_scaling = { type = "linera", factor = 2.0 }',
        r'did you mean "linear"',
    ),
    "a rope without its factor": (
        "vocab_size = 97",
        'vocab_size = 97\nrope_scaling = { type = "linear" }',
        r"rope_scaling\.factor is missing",
    ),
    "a misspelt key of a rope": (
        "vocab_size = 97",
        'vocab_size = 97\nrope_scaling = { type = "yarn", foctar = 2.0, original_max_position_embeddings = 9 }',
        r'config\.rope_scaling\.foctar: unknown key; did you mean "factor"\?',
    ),
    "an unknown key of a rope": (
        "vocab_size = 97",
        'vocab_size = 97\nrope_parameters = { rope_type = "default", colour = 1 }',
        r"config\.rope_parameters\.colour: unknown key; known ones: .*factor",
    ),
    "a yarn whose factor is left out": (
        "vocab_size = 97",
        "vocab_size = 97\nmax_position_embeddings = 90\n"
        'rope_scaling = { type = "yarn", original_max_position_embeddings = 9 }',
        r"config\.rope_scaling\.factor is missing; rope type yarn needs it",
    ),
    "parts of an image's places that are not a head": (
        "vocab_size = 97",
        'vocab_size = 97\nrope_scaling = { type = "mrope", mrope_section = [1, 1, 1] }',
        r"config\.rope_scaling\.mrope_section = \[1, 1, 1\]: its sum is not 4, the pairs of a head that turn",
    ),
    "a misspelt key of a quantization": (
        "vocab_size = 97",
        'vocab_size = 97\nquantization_config = { quant_method = "fp8", weigth_block_size = [128, 128] }',
        r'config\.quantization_config\.weigth_block_size: unknown key; did you mean "weight_block_size"\?',
    ),
    "broken TOML": ("[sources]", "[sources", r"broken TOML: .*line 1\d"),
    "a truth value of Python's": (
        "vocab_size = 97",
        "vocab_size = 97\ntie_word_embeddings = True",
        r"broken TOML: Invalid value .*; fix the line: .*true and false, null is \{ __null__ = true \}",
    ),
    "a key twice": ("vocab_size = 97", "vocab_size = 97\nvocab_size = 98", r"broken TOML"),
    "a misspelt part": ("[sources]", "[source]", r'source: unknown key; did you mean "sources"\?'),
    "a misspelt key of a part": ("exact =", "exakt =", r'published\.exakt: unknown key; did you mean "exact"\?'),
    "no name": ('name = "Tiny"\n', "", r"fill in: name; .*adding-a-model"),
    "no sources": (
        '[sources]\nconfig = "someone/tiny, config.json"\nverified = 2026-11-01',
        "",
        r"fill in: sources\.config, sources\.verified;",
    ),
    "a number as name": ('"Tiny"', "3", r"name = 3: expected text, found a whole number"),
    "an empty name": ('"Tiny"', '""', r"fill in: name;"),
    "a wrong date": ("released = 2024-04-18", 'released = "spring"', r"released = 'spring': expected a date"),
    "no source of a date": ("released =", 'released_source = ""\nreleased =', r"fill in: released_source;"),
    "no day": ("2026-11-01", '"spring"', r"sources\.verified = 'spring': expected a day, such as 2024-04-18"),
    "a misspelt source of a date": (
        "released =",
        'release_source = "a card"\nreleased =',
        r'release_source: unknown key; did you mean "released_source"\?',
    ),
    "a licence without its source": (
        "released =",
        'licence = "MIT"\nreleased =',
        r"licence and licence_source go together; give both",
    ),
    "a licence that was found and not found": (
        "released =",
        'hub = "us/tiny"\nlicence = "MIT"\nlicence_source = "a card"\nlicence_looked_at = "a card"\nreleased =',
        r"licence and licence_looked_at exclude each other; remove licence_looked_at",
    ),
    "a licence not found of weights that are not published": (
        "released =",
        'licence_looked_at = "a card"\nreleased =',
        r"licence_looked_at without hub; name the repository of the weights",
    ),
    "no list of what was read for a licence": (
        "released =",
        'licence_looked_at = ""\nreleased =',
        r"fill in: licence_looked_at;",
    ),
    "markup in a name": ('"Tiny"', '"<b>Tiny</b>"', r"'<b>Tiny</b>' holds '<': expected plain text"),
    "a script in a name": ('"Tiny"', '"<script>alert(1)</script>"', r"holds '<'"),
    "Markdown in a name": ('"Tiny"', '"[Tiny](http://x.y)"', r"holds '\['"),
    "a macro in a name": ('"Tiny"', '"{{ value() }}"', r"holds '{'"),
    "a cell in a name": ('"Tiny"', '"Tiny | 3"', r"holds '\|'"),
    "a newline in a name": ('"Tiny"', '"Tiny\\n# Title"', r"holds '\\n'"),
    "markup in an organization": ('"Someone"', '"<i>"', r"holds '<'"),
    "markup in an alias": ('family = "Llama"', 'family = "Llama"\naliases = ["a", "<b>"]', r"holds '<'"),
    "HTML in a note": (
        'family = "Llama"',
        'family = "Llama"\nnote = "a <img src=x onerror=y> b"',
        r"note holds '<i': expected prose",
    ),
    "a macro in a note": ('family = "Llama"', 'family = "Llama"\nnote = "a {% raw %} b"', r"note holds '{%'"),
    "a wrong total": (
        "50_000\nexact = false",
        "50_000\nexact = true",
        r"published\.parameters = 50,000, and the forward pass gives [\d,]+ \([+-]",
    ),
    "zero published": ("50_000", "0", r"published\.parameters = 0: expected a whole number >= 1"),
    "a wrong row": (
        '"the model\'s card"\n',
        '"the model\'s card"\nextra = [{ name = "masks", count = "3" }]',
        r"published\.extra\[0\]\.count: expected a whole number, found text",
    ),
    "a key of a row": (
        '"the model\'s card"',
        '"the model\'s card"\nextra = [{ name = "masks", parameters = 3 }]',
        r"published\.extra\[0\]\.parameters: unknown key; known ones: name, count, part",
    ),
    "the hub's total without the file": (
        TOML,
        TOML.replace("released", 'hub = "us/tiny"\nreleased')
        .replace("false", "true")
        .replace("the model's card", "us/tiny on the Hugging Face Hub, safetensors total"),
        r"published\.file is missing: its source is the file at hub; write file = true$",
    ),
    "a file of no repository": (
        TOML,
        TOML.replace("exact = false", "exact = true\nfile = true"),
        r"hub is missing, and published\.file = true; name the repository",
    ),
    "a headline below the config": (
        "[config]\n",
        '[config]\nheadline = "8B"\n',
        r"config\.headline: unknown key of llama; it belongs above the first table",
    ),
    "a table's name below the config": (
        "[config]\n",
        '[config]\nsources = "a card"\n',
        r"config\.sources: unknown key of llama; (?!it belongs)",
    ),
    "a licence at the end": (
        TOML,
        f'{TOML}licence = "MIT"\n',
        r"licence: unknown key; it belongs above the first table",
    ),
    "spaces in a name": ('"Tiny"', '"Tiny "', r"name: 'Tiny ' has leading, trailing"),
    "an accent in a family alone": ('family = "Llama"', 'family = "Lláma "', r"family: 'Lláma ' has leading, trailing"),
    "published without config": ("[config]", "[sources.x]", r"sources\.x: unknown key"),
}


@pytest.mark.parametrize("name", PRESETS)
def test_a_bad_preset(catalogue, name):
    import re

    old, new, found = PRESETS[name]
    assert old in TOML
    with pytest.raises(Problem) as raised:
        model = catalogue(TOML.replace(old, new, 1))
        try:
            model.verify()
            assert model.counts
        except Problem as problem:
            raise problem.at("macros/presets/llama/tiny.toml") from None
    text = one_line(raised.value)
    assert text.startswith("macros/presets/llama/tiny.toml: ")
    assert re.search(found, text), text


def test_all_that_is_to_be_filled_in_is_said_at_once(catalogue):
    blanks = {
        'name = "Tiny"': 'name = ""',
        'organization = "Someone"\n': "",
        "released = 2024-04-18": 'released = ""',
        "verified = 2026-11-01": 'verified = ""',
        "exact = false": "",
        "parameters = 50_000": 'parameters = "many"',
    }
    text = TOML
    for old, new in blanks.items():
        assert old in text
        text = text.replace(old, new)
    with pytest.raises(Problem) as raised:
        catalogue(text)
    assert one_line(raised.value) == (
        "macros/presets/llama/tiny.toml: fill in: name, organization, released, sources.verified, "
        "published.exact; published.parameters = 'many': expected a whole number, found text; "
        "docs/reference/adding-a-model.md says what each key holds"
    )


@pytest.mark.parametrize(
    "data, found",
    [
        (b"\xef\xbb\xbf" + TOML.encode(), "starts with a byte-order mark; save it as UTF-8 without one"),
        (TOML.replace("Tiny", "T\x00").encode(), "broken TOML"),
        (TOML.encode().replace(b"Someone", b"Some\xffone"), "line 4: byte 0xff is not UTF-8; save it as UTF-8"),
        (b"", "fill in: name, family, organization, released, sources.config, sources.verified; docs/"),
        (b"\x80\x81", "line 1: byte 0x80 is not UTF-8"),
        (b"a = " + b"[" * 100_000, "broken TOML"),
    ],
)
def test_bad_bytes(catalogue, data, found):
    with pytest.raises(Problem) as raised:
        catalogue(data)
    assert found in one_line(raised.value) and "tiny.toml: " in str(raised.value)


def test_a_duplicate_slug(catalogue):
    catalogue(TOML)
    with pytest.raises(
        Problem,
        match=r"macros/presets/mistral/tiny\.toml: duplicate slug, also in macros/presets/llama/tiny\.toml; rename",
    ) as raised:
        catalogue(TOML, folder="mistral")
    one_line(raised.value)


@pytest.mark.parametrize(
    "file, text, found",
    [
        ("llama/index.toml", TOML, "'index' is not a slug: another file of the site has that name; choose another"),
        ("llama/README.toml", TOML, "'README' is not a slug; use small letters"),
        ("llama/catalogue.toml", TOML, "'catalogue' is not a slug: another file"),
        ("llama/a{{ 7*7 }}.toml", TOML, "'a{{ 7*7 }}' is not a slug; use small letters"),
        (f"llama/{'a' * 101}.toml", TOML, "is not a slug; use small letters, digits, dots and hyphens"),
        ("llama/tiny.TOML", TOML, "tiny.TOML: ends in .TOML; rename it"),
        ("tiny.toml", TOML, "tiny.toml: is in no family's folder; move it to macros/presets/<family>/tiny.toml"),
        ("llama/more/tiny.toml", TOML, "tiny.toml: is in no family's folder"),
        (
            "mistral/tiny.toml",
            TOML,
            "family = 'Llama', and the folder is 'mistral'; move the file to macros/presets/llama",
        ),
        ("llama/tiny.toml", TOML.replace('"Llama"', '"美洲驼"'), "family = '美洲驼': its pages have no address"),
        (
            "llama/tiny.toml",
            TOML.replace('"Llama"', f'"{"L" * 300}"'),
            f"family = '{'L' * 58}…: expected text of length <= 100",
        ),
        ("llama/tiny.toml", TOML.replace('"Llama"', '"<b>"'), "'<b>' holds '<': expected plain text"),
        (
            "llama/tiny.toml",
            TOML.replace('"Tiny"', "'0;url=/\" http-equiv=\"refresh'"),
            "holds '\"': expected plain text",
        ),
        ("llama/tiny.toml", f"hub = \"' pwned='1\"{TOML}", "hub = \"' pwned='1\": no repository of the hub; write"),
        ("llama/tiny.toml", f'hub = "../../x"{TOML}', "hub = '../../x': no repository of the hub"),
        ("llama/tiny.toml", TOML.replace('"Someone"', '"&lt;b&gt;"'), "'&lt;b&gt;' holds '&': expected plain text"),
        (
            "llama/tiny.toml",
            TOML.replace('"Tiny"', '"Ti\u202eny"'),
            "'Ti\\u202eny' holds '\\u202e': expected plain text",
        ),
    ],
)
def test_a_name_that_cannot_be(catalogue, tmp_path, file, text, found):
    """One gate for slugs, families, names and where a preset's file is: what does not pass is said, nothing is lost."""
    with pytest.raises(Problem) as raised:
        path = tmp_path / "macros/presets" / file
        path.parent.mkdir(parents=True)
        path.write_text(text, "utf-8")
        presets.model("tiny")
    assert found in one_line(raised.value) and str(raised.value).startswith("macros/presets/")


def test_what_an_editor_leaves_is_no_preset(catalogue, tmp_path):
    model = catalogue(TOML)
    folder = tmp_path / "macros/presets/llama"
    for name in (".tiny.toml", ".#tiny.toml", "tiny.toml~", "#tiny.toml#", ".~lock.tiny.toml#", "4913"):
        (folder / name).write_text("{")
    presets.paths.cache_clear()
    assert list(presets.paths()) == [model.slug]


def test_a_size_that_no_named_count_gives_is_told_by_the_build_and_by_check(catalogue):
    catalogue(TOML.replace('family = "Llama"', 'family = "Llama"\nheadline = "7B"'))
    found = "headline_counts: total is "
    assert found in one_line(model_pages.problems()["tiny"]) and found in checks.check("tiny").text


def test_a_family_is_spelt_in_one_way(catalogue):
    """In another case it has the same page, which only one of the two would keep."""
    catalogue(TOML)
    catalogue(TOML.replace('"Llama"', '"LLaMA"'), slug="tinier")
    found = "family = 'LLaMA', and that of macros/presets/llama/tiny.toml is 'Llama'; write family = \"Llama\""
    assert found in one_line(model_pages.problems()["tinier"])
    assert found in checks.check("tinier").text and checks.check("tinier").state == "off"


@pytest.mark.parametrize(
    "old, new, found",
    [
        ("2024-04-18", "2127-12-18", "released = 2127-12-18 is in the future; correct it"),
        ("2024-04-18", '"2099-12"', "released = 2099-12 is in the future"),
        ("2024-04-18", '"2024"', None),
        ('"Someone"', '"SomeOne"', "organization = 'SomeOne': other presets spell it 'Someone'; write \"Someone\""),
        ("", "", "name = 'Tiny' is also the name of macros/presets/llama/tiny.toml; give each a name of its own"),
    ],
)
def test_what_two_presets_cannot_say_is_refused_of_each_and_of_all(catalogue, capsys, old, new, found):
    """By `check` of all presets, and of the one that is named; and by the build."""
    changed = TOML.replace(old, new, 1)
    catalogue(TOML)
    catalogue(changed if old == "" else changed.replace('"Tiny"', '"Tinier"'), slug="tinier")
    for asked in ([], ["tinier"]):
        commands.main(["check", *asked])
        out = capsys.readouterr().out
        assert (found is None) == (" off" not in out.split("undisclosed,")[0] and "0 off" in out), out
        assert found is None or found in out, out
    problem = model_pages.problem("tinier")
    assert problem is None if found is None else found in one_line(problem)


@pytest.mark.parametrize(
    "odd, folder, mend",
    [
        ("Llama", "deepseek", "move the file to macros/presets/llama"),
        ("Deepseek", "deepseek", "is 'DeepSeek'; write family = \"DeepSeek\""),
        ("Deep Seek", "deep-seek", 'write family = "DeepSeek", and move the file to macros/presets/deepseek'),
    ],
)
def test_the_spelling_of_the_fewer_is_wrong(catalogue, odd, folder, mend):
    for slug in ("tiny", "tinier"):
        catalogue(TOML.replace('"Llama"', '"DeepSeek"').replace('"Tiny"', f'"{slug}"'), "deepseek", slug)
    with contextlib.suppress(Problem):
        catalogue(TOML.replace('"Llama"', f'"{odd}"'), folder, "odd")
    assert list(model_pages.problems()) == ["odd"] and mend in one_line(model_pages.problems()["odd"])
    assert [checks.check(slug).state for slug in ("tiny", "tinier", "odd")] == ["ok", "ok", "off"]


def test_an_unknown_model(catalogue):
    catalogue(TOML)
    with pytest.raises(Problem, match="unknown model 'tini'; did you mean \"tiny\"") as raised:
        presets.load("tini")
    one_line(raised.value)


def nested(depth: int) -> list:
    inner = []
    for _ in range(depth):
        inner = [inner]
    return inner


CONFIGS = {
    "not a table": ("[1]", "expected a table of keys, found"),
    "empty": ("", "broken JSON: line 1, column 1"),
    "null": ("null", "expected a table of keys"),
    "broken": ('{"a": 1,}', "broken JSON: line 1, column "),
    "deep": ("[" * 100_000, "nested too deeply"),
    "a large number": ('{"a": ' + "9" * 5000 + "}", "broken JSON"),
    "no architecture": ('{"hidden_size": 3}', "model_type is missing"),
    "a null architecture": ('{"model_type": null}', "model_type is missing"),
    "a list as architecture": ('{"model_type": ["llama"]}', "model_type = ['llama'] is not known"),
    "an image model": ('{"model_type": "llava", "text_config": 3}', "the config has no table for its text part"),
    "an inner error": (
        json.dumps({"model_type": "llava", "text_config": {**GOOD, "hidden_size": -1}}),
        "hidden_size = -1: expected",
    ),
    "NaN": (json.dumps({**GOOD, "rms_norm_eps": float("nan")}), "rms_norm_eps = nan: expected a finite number"),
    "Infinity": (json.dumps({**GOOD, "rope_theta": float("inf")}), "rope_theta = inf: expected"),
    "1e999": (json.dumps(GOOD).replace("1e-05", "1e999"), "rms_norm_eps = inf: expected"),
    "a byte-order mark": ("\ufeff{}", "byte-order mark"),
    "rope as a list": (json.dumps({**GOOD, "rope_scaling": [1]}), "rope_scaling = [1]: expected a table"),
    "a rope type as a list": (
        json.dumps({**GOOD, "rope_scaling": {"type": [1]}}),
        "rope_scaling.rope_type = [1]: unknown",
    ),
    "half a character": (json.dumps({**GOOD, "hidden_size": "\ud800"}), "'\\ud800' holds half a character"),
    "half a character in a flag": (json.dumps({**GOOD, "tie_word_embeddings": "x\udfff"}), "holds half a character"),
    "half a character in a key": (json.dumps({**GOOD, "\ud800": 1}), "holds half a character"),
    "600 deep": (json.dumps({**GOOD, "architectures": nested(600)}), "nested more than 64 deep"),
    "a factor without end": (
        json.dumps({**dict(presets.preset("jamba-v0.1").config), "mamba_expand": 1e308}),
        "mamba_expand = 1e+308: expected a number <= 1e+18",
    ),
    "a factor that is too large": (
        json.dumps({**dict(presets.preset("jamba-v0.1").config), "mamba_expand": 1e9}),
        "mamba_d_inner = 4096000000000, as follows from other sizes: expected at most 2147483648; correct those",
    ),
    "a long wrong value": (json.dumps({**GOOD, "hidden_size": "x" * 5000}), "hidden_size = 'xxx"),
    "a long wrong architecture": (json.dumps({"model_type": "x" * 5000}), "model_type = 'xxx"),
    "an architecture whose name is near to others": (
        json.dumps({"model_type": "qwen3_6_moe"}),
        "model_type = 'qwen3_6_moe' is not known; every-parameter describe --types prints the known ones",
    ),
    "an architecture near to none": (
        json.dumps({"model_type": "zzz"}),
        "model_type = 'zzz' is not known; every-parameter describe --types prints the known ones",
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_bad_config(tmp_path, name):
    text, found = CONFIGS[name]
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    for given_ in (str(path), str(tmp_path)):
        with pytest.raises(Problem) as raised:
            _ = presets.load(given_).counts
        line = one_line(raised.value)
        assert line.startswith(f"{path}: ") and found in line, line


@pytest.mark.parametrize(
    "change",
    [
        {"text_config": GOOD, "model_type": "llava"},
        {"time_step_limit": [0.0, float("inf")]},
        {"head_dim": None},
        {"rope_scaling": None},
    ],
)
def test_what_hubs_do_is_read(tmp_path, change):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(change if "text_config" in change else GOOD | change))
    assert presets.load(str(path)).counts.total == presets.make("x", GOOD).counts.total


def test_an_unknown_key_of_a_foreign_config_is_a_warning():
    model = presets.make("x", GOOD | {"<script>\n": 1, "another": 2} | {f"k{i}": i for i in range(99)})
    [line] = model.warnings
    assert (
        line.startswith("unknown keys, taken as changing no shape: '<script>\\n', 'another'")
        and "\n" not in line
        and len(line) < 300
    )
    assert model.counts.total == presets.make("x", GOOD).counts.total


def test_a_missing_folder_and_odd_paths(tmp_path):
    (tmp_path / "config.json").mkdir()
    for name in (
        str(tmp_path),
        str(tmp_path / "none.json"),
        str(tmp_path / "none"),
        "x" * 5000,
        "a/" * 3000,
        "",
        "\x00",
        ".",
        "/",
    ):
        with pytest.raises(Problem) as raised:
            presets.load(name)
        one_line(raised.value)


@pytest.mark.parametrize(
    "command", [["describe"], ["add"], ["totals"], ["fits", "--on", "h100"], ["run", "--tokens", "1"]], ids=" ".join
)
@pytest.mark.parametrize(
    "name", ["x" * 5000, "a/" * 3000, "x" * 300 + ".json", ""], ids=["long", "deep", "file", "none"]
)
def test_a_path_that_cannot_be(capsys, command, name):
    assert commands.main([command[0], name, *command[1:]])
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and len(told) < 1200, told


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "config.json")
    (tmp_path / "zero.json").symlink_to("/dev/zero")
    (tmp_path / "large.json").write_bytes(b" " * (LARGEST_TEXT + 1))
    for name, found in (
        ("config.json", "a device or a pipe, not a file"),
        ("zero.json", "a device or a pipe, not a file"),
        ("large.json", "8,388,609 bytes, more than 8,388,608"),
    ):
        with pytest.raises(Problem, match=f"{name}: cannot be read: it .*{found}") as raised:
            presets.load(str(tmp_path / name))
        one_line(raised.value)


def test_a_message_is_cut():
    line = str(Problem("a" * 5000, "b" * 5000, "c" * 5000 + "/config.json"))
    assert len(line) < 2400 and "c/config.json: aaa" in line and "a…; bbb" in line and line.endswith("b…")


def test_the_nearest_word():
    assert (
        nearest("hiden_size", ["hidden_size", "vocab_size"]) == 'did you mean "hidden_size"?'
        and nearest("zzz", ["a"], "none") == "none"
    )


STRANGE = [
    None,
    0,
    -1,
    1,
    3,
    10**30,
    2**31,
    4096.5,
    float("nan"),
    float("inf"),
    "",
    "4",
    "llama",
    True,
    False,
    [],
    [1],
    [None],
    {},
    {"a": 1},
    {"type": "linear"},
    ["full_attention"],
    [[]],
    "<b>",
    -0.5,
    1e308,
    2**31 - 1,
]


@cache
def known() -> list[str]:
    return [s for s in presets.paths() if (c := presets.preset(s).config) and c.get("model_type") in architectures()]


@pytest.mark.exhaustive
@examples(400)
@given(st.data())
def test_no_value_of_any_key_gives_a_traceback(data):
    """One key of a preset's config replaced by something strange: it is counted, or refused in one line."""
    slug = data.draw(st.sampled_from(known()))
    raw = dict(presets.preset(slug).config)
    for key in data.draw(st.lists(st.sampled_from(sorted(raw)), min_size=1, max_size=2)):
        raw[key] = data.draw(st.sampled_from(STRANGE))
    try:
        model = presets.make("x", raw)
        assert isinstance(model.counts, Counts) and model.counts.total > 0
        model.counts.decode_flops(4096), model.counts.cache_bytes(4096)
    except Problem as problem:
        one_line(problem)


@pytest.mark.slow("every size of every architecture as 0 and as 1")
def test_a_size_of_nothing_or_of_one_is_counted_or_refused():
    tried = {}
    for slug in presets.paths():
        if presets.preset(slug).config is not None:
            tried.setdefault((model := presets.model(slug)).architecture.name, model)
    for model in tried.values():
        for k in fields_of(model.architecture.config):
            for value in (0, 1) if k.key and k.is_size else ():
                raw = {name: given for name, given in model.raw.items() if name not in k.also} | {k.key: value}
                try:
                    assert presets.make("x", raw).counts.total > 0
                except Problem as problem:
                    one_line(problem)


@examples(30)
@given(configs(), st.data())
def test_every_size_is_needed(raw, data):
    sizes = {"gpt2": ["vocab_size", "n_positions", "n_embd", "n_layer", "n_head"]}.get(
        raw["model_type"],
        ["vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"],
    )
    name = data.draw(st.sampled_from(sizes))
    with pytest.raises(Problem, match=f"^{name} is missing"):
        presets.make("x", {k: v for k, v in raw.items() if k != name})


def test_the_command_line_shows_one_line(tmp_path):
    """A few of the above through a process of its own."""
    for i, name in enumerate(("broken", "deep", "NaN", "a long wrong value")):
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / "config.json").write_text(CONFIGS[name][0])
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "macros",
            "describe",
            "--format",
            "csv",
            "--collapse",
            *(str(tmp_path / str(i)) for i in range(4)),
            "gpt2",
        ],
        cwd=ROOT,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 4 and "Traceback" not in done.stderr
    assert (
        all(line.startswith("every-parameter: ") for line in done.stderr.splitlines())
        and "transformer.wte.weight" in done.stdout
    )


# What each command needs besides an option.
CALLS = {
    **dict.fromkeys(("describe", "compare", "train", "fits"), "gpt2"),
    **dict.fromkeys(("check", "schema", "macros", "diff"), ""),
    "prefix": "gpt2 --prefix 9",
    "bill": "gpt2 --on h100",
    "speculative": "gpt2 gpt2 --on h100",
    "split": "gpt2 --on h100",
    "ask": "model",
    "publish-check": "site",
}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("fits --engine vllm --nothing 3", "'--nothing': no option of vLLM that is known here; the page on "),
        ("fits gpt2 --engine vllm --max-model-length 9", 'of vLLM that is known here; did you mean "--max-model-len"?'),
        ("fits gpt2 --engine llama.cpp --wieghts Q8_0", 'of llama.cpp that is known here; did you mean "--weights"?'),
        ("train gpt2 --framework megatron --contxt 9", 'of Megatron-LM that is known here; did you mean "--context"?'),
        ("describe gpt2 --contxt=3", "describe: '--contxt': no such option; did you mean \"--context\"?"),
        ("schema model", "every-parameter schema: unrecognized arguments: model; see every-parameter schema --help"),
        *[
            (f"{name} {words} --nothing 3", f"{name}: '--nothing': no such option; see every-parameter {name} --help")
            for name, words in CALLS.items()
        ],
    ],
)
def test_an_unknown_option_is_one_line(capsys, call, said):
    """What it is an option of, and the one that is meant or where to look."""
    try:
        status = commands.main(call.split())
    except SystemExit as end:
        status = end.code
    error = capsys.readouterr().err
    assert (status, error.count("\n")) == (2, 1), error
    assert said in error


def test_layers_that_are_all_different_are_refused_at_once():
    """Each kind of layer is run on its own."""
    n = 5000
    lists = {"layer_types": ["full_attention"] * n, "activation_sparsity_pattern": [0.0] * n}
    raw = golden("gemma3n_text").raw | {"num_hidden_layers": n, "num_kv_shared_layers": 0, **lists}
    with pytest.raises(Problem, match="5000 layers are of a kind of their own; at most 128 kinds"):
        _ = presets.make("x", raw | {"intermediate_size": list(range(64, 64 + n))}).counts
    assert presets.make("x", raw | {"intermediate_size": [64] * n}).counts.total > 0


@pytest.mark.parametrize(
    "turns, sources, found",
    [
        (
            [1, 0, 1],
            [0, 1, 1],
            "has 1 for layer 2; name the last layer before it with rotary embedding that has a cache",
        ),
        ([0, 1, 0], [0, 1, 1], "has 1 for layer 2; name the last layer before it without rotary embedding that has a"),
        ([1, 1, 1], [0, 1, 0], "has 0 for layer 2"),
        ([1, 1, 1], [1, 1, 1], "has 1 for layer 0"),
        ([1, 1, 1], [0, 0, 0], None),
        ([1, 0, 1], [0, 1, 0], None),
    ],
)
def test_a_layer_borrows_from_the_last_one_that_is_turned_like_it(turns, sources, found):
    raw = {**golden("mistral_large4_text").raw, "num_hidden_layers": 3}
    lists = {"mlp_layer_types": ["dense"] * 3, "indexer_types": ["full"] * 3}
    raw |= {**lists, "no_rope_layers": turns, "kv_source_layers": sources}
    if found is None:
        assert presets.make("x", raw).counts.total > 0
    else:
        with pytest.raises(Problem, match=f"kv_source_layers {found}"):
            _ = presets.make("x", raw).counts


@pytest.mark.parametrize("slug", ["mamba-130m", "jamba-v0.1", "granite-4.0-h-small", "qwen3-next-80b-a3b"])
def test_a_convolution_over_more_tokens_than_any_has_is_refused_at_once(slug):
    """Its forward pass has a term for each of them."""
    raw = dict(presets.preset(slug).config)
    (key,) = {"conv_kernel", "mamba_d_conv", "linear_conv_kernel_dim"} & raw.keys()
    with pytest.raises(Problem, match=key):
        presets.make("x", raw | {key: 2**31 - 1})


def test_names_of_nobody_are_said(catalogue):
    catalogue(TOML.replace("verified", 'names = "publishd"\nverified'))
    result = checks.check("tiny")
    assert result.state == "off" and one_line(Problem(result.text)) == (
        "macros/presets/llama/tiny.toml: sources.names = 'publishd'; did you mean \"published\"?"
    )
