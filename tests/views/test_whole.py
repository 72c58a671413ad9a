"""What `check` says of a named model: what the tests of the site would find."""

import re
import time
from types import SimpleNamespace

import pytest

from macros.__main__ import main
from macros.catalogue import presets
from macros.cli import closed_forms
from macros.views.models import whole
from macros.views.words import descriptions

DISCLOSED = [slug for slug in presets.paths() if presets.preset(slug).config is not None]


@pytest.mark.parametrize("slug", DISCLOSED)
def test_nothing_is_lacking_of_a_model_of_the_catalog(slug):
    assert [*whole.lacking(slug)] == []


def test_an_undisclosed_model_lacks_nothing():
    assert [*whole.lacking("claude-3-opus")] == [*whole.unusual("claude-3-opus")] == []


def test_a_weight_without_words_is_named(monkeypatch):
    monkeypatch.setattr(descriptions, "of_weight", lambda name: None if name == "transformer.wpe.weight" else "words")
    monkeypatch.setattr(whole, "PARTS", {})
    monkeypatch.setattr(whole.model_diagrams, "layer_kinds", lambda model: ())
    [line] = whole.lacking("gpt2")
    assert line.startswith("macros/views/words/weights.toml: transformer.wpe.weight has no words: add ")


def test_a_step_without_a_term_of_the_glossary_is_named(monkeypatch):
    monkeypatch.setattr(whole, "PARTS", {})
    monkeypatch.setattr(whole.model_diagrams, "layer_kinds", lambda model: ())
    words = [SimpleNamespace(title="Tide", term=""), SimpleNamespace(title="Ebb", term="KV cache, ebb gate")]
    section = whole.operations.Section(None, None, [SimpleNamespace(words=one) for one in words])  # pyright: ignore
    monkeypatch.setattr(whole.operations, "sections", lambda model: section)
    assert [*whole.lacking("gpt2")] == [
        "macros/views/words/weights.toml: Tide has no term: give its weight words with one of "
        "docs/includes/glossary.md, or its role in macros/engine/steps.py",
        "docs/includes/glossary.md: ebb gate is not explained: add an entry",
    ]


def test_a_part_of_the_page_that_cannot_be_made_is_named(monkeypatch):
    monkeypatch.setattr(whole, "PARTS", {"costs": lambda slug: presets.model(slug).counts.values()["no such key"]})
    [line] = whole.lacking("gpt2")
    assert re.fullmatch(
        r"its page: costs: macros/\S+\.py:\d+: KeyError: 'no such key'; correct the line, or the config", line
    )


def test_a_link_that_leads_nowhere_is_named(monkeypatch):
    parts = {
        "costs": lambda slug: '<a href="#there">a</a> <a href="&#35;nothing">b</a> <a href="../x/#y">c</a>',
        "flops": lambda slug: (
            '<b id="there">d</b> <a href="https://example.org/a">e</a> <a href="https:/example">f</a>'
        ),
    }
    monkeypatch.setattr(whole, "PARTS", parts)
    monkeypatch.setattr(whole.model_diagrams, "layer_kinds", lambda model: ())
    assert [*whole.lacking("gpt2")] == [
        "its page: costs: the link #nothing leads nowhere; give what it names this id",
        "its page: flops: the link https:/example leads nowhere; correct the address in the preset",
    ]


def test_a_value_that_no_other_model_has_is_named_unless_it_is_confirmed(monkeypatch):
    monkeypatch.setattr(whole, "_values", lambda model, key: [0.5] * 3 if key == "rms_norm_eps" else [])
    assert [*whole.unusual("llama3-8b")] == [
        "rms_norm_eps = 1e-05: the other 3 models of the family have 0.5; "
        "correct it, or confirm it by its source in [sources.values]"
    ]
    preset = presets.preset("llama3-8b")
    confirmed = SimpleNamespace(config=preset.config, sources=SimpleNamespace(values={"rms_norm_eps": "card: x"}))
    monkeypatch.setattr(whole.presets, "preset", lambda slug: confirmed)
    assert [*whole.unusual("llama3-8b")] == []
    monkeypatch.setattr(whole, "_values", lambda model, key: [0.5, 0.5])
    monkeypatch.setattr(whole.presets, "preset", lambda slug: preset)
    assert [*whole.unusual("llama3-8b")] == [], "two others may be the exception"


def test_it_takes_no_more_than_a_few_seconds():
    start = time.process_time()
    assert [*whole.lacking("llama3-8b")] == []
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("program", "differs", "left_out"),
    [
        ("print('gpt2\\tx.py: parameters: 1, the forward pass 2')", ["x.py: parameters: 1, the forward pass 2"], []),
        ("pass", [], []),
        ("import nothing_of_this_name", [], ["the closed forms were not asked: ModuleNotFoundError: No module named"]),
    ],
)
def test_the_closed_form_is_asked_of_a_named_model(monkeypatch, tmp_path, program, differs, left_out):
    monkeypatch.setattr(closed_forms, "PACKAGE", tmp_path / "macros")
    assert closed_forms.start(["gpt2"]) is None, "without tests there is none"
    path = tmp_path / closed_forms.PROGRAM
    path.parent.mkdir(parents=True)
    path.write_text(program, "utf-8")
    asked = closed_forms.start(["gpt2"])
    assert [*closed_forms.differences(asked, "gpt2")] == differs
    assert [line[: len(said)] for line, said in zip(closed_forms.left_out(asked), left_out, strict=True)] == left_out


def test_without_what_draws_pages_it_says_so(monkeypatch, capsys):
    monkeypatch.setattr(whole, "is_drawn", lambda: False)
    assert main(["check", "gpt2"]) == 0
    assert "gpt2: the parts of its page were not made: pip install 'every-parameter[site]'" in capsys.readouterr().err
