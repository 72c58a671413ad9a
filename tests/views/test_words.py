"""The words as TOML: what is wrong in a file is one line that names the file, the key and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from macros.engine.errors import Problem
from macros.views.reference import claims
from macros.views.trace import operations
from macros.views.words import descriptions

READERS = {
    "STEPS": (descriptions, descriptions.steps),
    "WEIGHTS": (descriptions, descriptions.weights),
    "CALLS": (descriptions, descriptions.calls),
    "KINDS": (descriptions, descriptions.kinds),
    "CLAIMS": (claims, claims.claims),
    "FORMULAS": (claims, claims.formulas),
}


def forget() -> None:
    """Also what was found by the words: another reading makes others."""
    for found in [*vars(descriptions).values(), *vars(claims).values()]:
        if hasattr(found, "cache_clear"):
            found.cache_clear()


@pytest.fixture
def read(monkeypatch, tmp_path) -> Iterator[Callable[[str, str], object]]:
    """Read a text in the place of a file."""

    def reading(file: str, text: str) -> object:
        path = tmp_path / f"{file.lower()}.toml"
        path.write_text(text, "utf-8")
        module, function = READERS[file]
        monkeypatch.setattr(module, file, path)
        forget()
        return function()

    yield reading
    monkeypatch.undo()
    forget()


Q = '[[weight]]\nnames = ["q_proj"]\ntitle = "Query projection"\ngives = "q"\n'
CLAIM = '[[width]]\nsaid = "a"\nclaimed = "1"\ntrue = "2"\nof = "b"\nwhy = "c"\n'
WRONG = {
    "a key": ("WEIGHTS", Q + 'tittle = "x"', 'weight q_proj.tittle: unknown key; did you mean "title"?'),
    "a name for the table": ("WEIGHTS", Q.replace("weight", "wait"), "wait: unknown table; begin it with [[weight]]"),
    "no title": ("WEIGHTS", '[[weight]]\nnames = ["q_proj"]', "weight q_proj.title: missing; add it"),
    "no names": ("WEIGHTS", '[[weight]]\ntitle = "Make"', "weight 1.names: missing; add it"),
    "no text": ("WEIGHTS", Q + "why = 3", "weight q_proj.why: expected text, found a whole number; correct it"),
    "twice": ("WEIGHTS", Q + Q, "weight q_proj.names: q_proj has words already; leave it in one table"),
    "like none": (
        "WEIGHTS",
        Q + '[[weight]]\nnames = ["wq"]\nlike = "q_prj"',
        "weight wq.like = 'q_prj': no table above has that name; did you mean \"q_proj\"?",
    ),
    "no such step": (
        "WEIGHTS",
        '[[weight]]\nnames = ["wte"]\nstep = "embedd"',
        "weight wte.step: no step has the role 'embedd'; did you mean \"embed\"?",
    ),
    "a step without words": (
        "WEIGHTS",
        '[[weight]]\nnames = ["q_norm"]\nstep = "head_norms"',
        "weight q_norm.step = 'head_norms': the step has no words; write them here",
    ),
    "a role": (
        "STEPS",
        '[rms_nrm]\ntitle = "x"',
        "rms_nrm: no step has the role 'rms_nrm'; did you mean \"rms_norm\"?",
    ),
    "a role around": (
        "STEPS",
        '[softplus]\ntitle = "x"\n[softplus.inside.atention]\ntitle = "y"',
        "softplus.inside.atention: no step has the role 'atention'; did you mean \"attention\"?",
    ),
    "a factor": (
        "STEPS",
        '[weighted_sum]\ntitle = "x"\nfactors = ["a", "b"]',
        "weighted_sum: factors without a product, or the reverse; ",
    ),
    "no table": (
        "STEPS",
        "weighted_sum = 3",
        "weighted_sum = 3: expected a table of keys, found a whole number; correct it",
    ),
    "TOML": ("STEPS", '[weighted_sum]\ntitle = "\\x"', "broken TOML: "),
    "a call's term": ("CALLS", '[add]\ntitle = "Add"', "add.term: missing; add it"),
    "a term inside": (
        "STEPS",
        '[softplus]\ntitle = "x"\n[softplus.inside.attention]\ntitle = "y"\nterm = "z"',
        "softplus.inside.attention.term: unknown key; known ones: title, equation, why",
    ),
    "a call": ("CALLS", '[add]\ntitle = "Add"\nwhi = ""', 'add.whi: unknown key; did you mean "why"?'),
    "a kind": ("KINDS", "moe = 3", "moe = 3: expected text, found a whole number; correct it"),
    "a claim": ("CLAIMS", CLAIM + 'sad = "d"', 'width[0].sad: unknown key; did you mean "said"?'),
    "half a claim": ("CLAIMS", CLAIM + CLAIM.replace('of = "b"\n', ""), "width[1].of: missing; add it"),
    "a claim's context": (
        "CLAIMS",
        CLAIM + "context = 0",
        "width[0].context: expected a whole number >= 1; correct it",
    ),
    "a formula": ("FORMULAS", '[x]\ntitle = "x"', "x.claimed: missing; add it"),
}


@pytest.mark.parametrize("file, text, line", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_one_line(read, file, text, line):
    with pytest.raises(Problem) as said:
        read(file, text)
    assert re.sub(r"^.*?\.toml: ", "", str(said.value)).startswith(line), str(said.value)
    assert f"{file.lower()}.toml: " in str(said.value)


def test_a_table_says_what_the_one_that_it_is_like_does_not(read):
    words = read("WEIGHTS", Q + '[[weight]]\nnames = ["wq", "query"]\nlike = "q_proj"\ntitle = "Ask"\n')
    assert words["wq"] == words["query"] == descriptions.Words("Ask", gives="q") != words["q_proj"]
    of_step = read("WEIGHTS", '[[weight]]\nnames = ["wte"]\nstep = "embed"\nwhy = "So."\n')["wte"]
    assert (of_step.term, of_step.why) == ("token embedding", "So.") and of_step.equation.startswith("x_t = ")


def test_each_call_is_one_that_operations_ask_for():
    """Mend: delete the table of macros/views/words/calls.toml, or ask for it."""
    source = Path(operations.__file__).read_text("utf-8")
    asked = set(re.findall(r'\bcalled\("(\w+)"', source))
    asked |= {name for call in re.findall(r"of_numpy\(([^)]*)\)", source) for name in re.findall(r'"(\w+)"', call)}
    assert descriptions.calls().keys() == asked
    with pytest.raises(Problem, match=r"calls\.toml: \[none\] is missing; add the table"):
        descriptions.of_numpy("none")


def test_a_name_that_begins_with_a_dot_is_a_whole_one():
    """A draft head's own final norm and numbered heads, whose names are ends of many other names."""
    assert descriptions.of_weight("norm.weight").title == "Norm before the LM head"
    assert descriptions.of_weight("somewhere.else.norm.weight") is None
    assert descriptions.of_weight("17.1.weight").title == "LM head of a Medusa head"
    assert descriptions.of_weight("somewhere.1.weight") is None
    assert descriptions.of_weight("model.oe_embed_tokens11.weight").title == "N-gram embedding table"
    assert descriptions.of_weight("model.oe_embed_tokens.weight") is None
