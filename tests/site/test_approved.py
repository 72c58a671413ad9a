"""The headings, rows, figures, sentences and labels that macros and commands show are the approved ones."""

from __future__ import annotations

import difflib
import re

import pytest
from approved import TEXTS, approved, as_text, called, calls, few, macros, newcomers, shown

NAMES = sorted(path.stem for path in TEXTS.glob("*.txt"))
MEND = "if the new lines are what readers should see, python -m tests.approved {}"


def differences(name: str, was: str, now: str) -> list[str]:
    return [
        line
        for line in difflib.unified_diff(was.splitlines(), now.splitlines(), name, "now", lineterm="", n=0)
        if not line.startswith("@@")
    ]


def blocks(name: str) -> dict[str, str]:
    return approved(TEXTS / f"{name}.txt")


@pytest.mark.every_case
@pytest.mark.parametrize("name", [name for name in NAMES if name != "terminal"])
def test_a_macro_shows_what_was_approved(name):
    wrong = [line for call, said in blocks(name).items() for line in differences(call, said, shown(call))]
    assert not wrong, "\n".join([MEND.format(name), *wrong[:60]])


@pytest.mark.every_case
@pytest.mark.parametrize("part", range(8))
def test_a_command_prints_what_was_approved(part):
    said = list(blocks("terminal").items())[part::8]
    wrong = [line for call, said in said for line in differences(call, said, shown(call))]
    assert not wrong, "\n".join([MEND.format("terminal"), *wrong[:60]])


@pytest.fixture(scope="module")
def of_few(tmp_path_factory):
    return few.texts(few.copied(tmp_path_factory.mktemp("few")))


@pytest.mark.every_case
@pytest.mark.parametrize("name", sorted({called(call) for call in few.calls()}))
def test_a_macro_shows_of_a_few_models_what_was_approved(name, of_few):
    """A few models stand for the catalog, so that a new one changes nothing."""
    wrong = differences(name, (few.FOLDER / f"{name}.txt").read_text("utf-8"), of_few[name])
    assert not wrong, "\n".join([MEND.format("few"), *wrong[:60]])


PARTS = 24


@pytest.mark.processes
@pytest.mark.share(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_ten_more_models_change_nothing_approved(part, tmp_path):
    """Mend: what goes through the catalog is approved of a few models, by its name in LEFT_OUT."""
    assert newcomers.changed(newcomers.copied(tmp_path), part, PARTS) == []


def test_every_macro_with_a_call_has_a_text():
    assert NAMES == sorted(calls()), "python -m tests.approved"
    assert all(called(call) == name and call for name in NAMES for call in blocks(name))
    assert set(NAMES) <= macros().keys()
    assert blocks("terminal").keys() == set(calls()["terminal"]), "python -m tests.approved terminal"


# --- the reader of HTML itself ----------------------------------------------------------------------------------------


def in_table(*heads: str) -> str:
    head, row = "".join(f"<th>{head}</th>" for head in heads), "<th>A</th><td>1</td><td><span title='20'>2</span></td>"
    return f"<table><caption>Costs</caption><thead><tr>{head}</tr></thead><tbody><tr>{row}</tr></tbody></table>"


def test_a_cell_stands_behind_the_heading_of_its_column():
    assert as_text(in_table("Model", "Decode", "Prefill")).splitlines() == [
        "table: Costs",
        "columns: Model | Decode | Prefill",
        "A: Decode = 1; Prefill = [20] 2",
    ]
    assert "A: Prefill = 1; Decode = [20] 2" in as_text(in_table("Model", "Prefill", "Decode"))


def test_a_long_table_has_a_few_models_or_all_of_its_rows():
    """Of a catalog a new model would change it; of anything else each row is read."""

    def rows(names):
        body = "".join(f"<tr><th>{name}</th><td>1</td></tr>" for name in names)
        head = "<tr><th>Name</th><th>Size</th></tr>"
        return as_text(f"<table><thead>{head}</thead><tbody>{body}</tbody></table>", 10**6).splitlines()[1:]

    others = [f"size {n}" for n in range(100)]
    assert rows(others) == [f"{name}: Size = 1" for name in others]
    assert rows([*others, "llama3-8b", "t5"]) == ["llama3-8b: Size = 1", "t5: Size = 1"]
    assert rows(["llama3-8b", "size 1"]) == ["llama3-8b: Size = 1", "size 1: Size = 1"]


@pytest.mark.parametrize("was, now", [('y="20"', 'y="23"'), ("M0 0", "M0 1"), ("Decode", "Prefill")])
def test_a_drawing_has_its_labels_in_their_places_and_its_shapes(was, now):
    drawing = '<svg><title>T</title><path d="M0 0L4 4"/><text x="10" y="20">Decode</text></svg>'
    assert "(10, 20) Decode" in as_text(drawing)
    assert as_text(drawing.replace(was, now)) != as_text(drawing)


def test_controls_say_their_choices_and_which_is_chosen():
    said = as_text('<p>Format <select><option value="a">A</option><option value="b" selected>B</option></select></p>')
    assert said == "Format\noptions: a A, b (chosen) B"


def test_the_table_of_macros_has_each_cell_behind_its_heading(monkeypatch):
    monkeypatch.setattr("approved.LONG", 1000)
    said = as_text(macros()["macro_table"](), most=1_000_000)
    row = next(line for line in said.splitlines() if line.startswith("params ("))
    assert "columns: Call | Gives | Live on" in said
    assert re.search(r": Gives = A number of parameters, .*; Live on = ", row), row
