"""`macros`: the macro that shows what one wants to show, with its call to copy."""

from __future__ import annotations

import re

import pytest
from approved import macros, shown

from macros.__main__ import main
from macros.cli import macro_finder


@pytest.mark.parametrize(
    "words, call",
    [
        ("a number in a sentence", '{{ value("llama3-8b", "d_model") }}'),
        ("two models side by side", '{{ comparison(["llama3-8b", "qwen3-8b"]'),
        ("cache against context", '{{ cache_chart(["llama3-8b", "gemma3-27b"]) }}'),
        ("quantization", "{{ memory_table("),
        ("LoRA", "{{ adapter_table("),
        ("sequences that share a prefix", "{{ prefix_table("),
        ("speculative_table", "{{ speculative_table("),
    ],
)
def test_the_macro_that_fits_is_first(words, call, capsys):
    assert main(["macros", *words.split()]) == 0
    shows, first, *others = capsys.readouterr().out.splitlines()
    assert first.strip().startswith(call) and not shows.startswith(" ") and len(others) < 40


def test_without_a_word_it_lists_what_can_be_shown(capsys):
    assert main(["macros"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 * len(macro_finder.macros_for([])) > 60


def test_every_macro_with_an_example_is_known_and_there():
    names = {name for macro in macro_finder.known() for name in re.findall(r"{{ (\w+)\(", macro.call)}
    assert names <= macros().keys() and len(names) > 120


@pytest.mark.every_case
@pytest.mark.parametrize("macro", macro_finder.macros_for([]), ids=lambda macro: macro.shows)
def test_each_row_is_a_call_that_gives_something(macro):
    assert shown(macro.call[3:-3])


def test_a_word_that_no_macro_has_is_one_line(capsys):
    assert main(["macros", "zebra"]) == 2
    assert capsys.readouterr().err.startswith("every-parameter: no macro for 'zebra'; use other words")


def test_without_the_pages_it_says_where_they_are(monkeypatch, capsys):
    monkeypatch.setattr(macro_finder, "is_repository", lambda: False)
    assert main(["macros"]) == 2 and "not installed; run the command in a clone" in capsys.readouterr().err
