"""“All”, “never”, “most”, “only”, “no”, superlatives: a sentence with one is held by a claim, or the list says why not.

The sentences of the pages and of what the site generates are listed in `statements.toml`, each with a claim of
`model_claims.py` or a reason of `REASONS`.
"""

from __future__ import annotations

import ast
import json
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from model_claims import CLAIMS

ROOT = Path(__file__).parent.parent
LIST = Path(__file__).parent / "statements.toml"

WORDS = re.compile(
    r"\b(?:all|always|any|anywhere|every|everybody|everything|everywhere|first|last|least|most|neither|never|no|nobody|none"
    r"|nothing|nowhere|only|best|worst|(?!(?:guest|interest|pytest|request|rest|suggest|test|west)\b)[a-z]{3,}est)\b",
    re.I,
)

# Why a sentence needs no claim.
REASONS = {
    "arithmetic": "follows from numbers that stand in it, or is mathematics",
    "bound": "a bound by a physical limit, held by the tests of costs",
    "convention": "how this site counts",
    "definition": "says what a word or a step of the computation is",
    "figure": "the figures in it are computed in the build, and it says no more than they do",
    "heading": "a heading or label",
    "instruction": "tells the reader what to do",
    "judgement": "an opinion, and worded as one",
    "quote": "quotes what others say, or a title",
    "reasoning": "an explanation that holds for any model of the kind it names",
    "site": "about this site, its build, its tests or its preview",
    "source": "what the source that is named says",
}


def prose(markdown: str) -> str:
    """A page without code, addresses and markup, calls and mathematics as `…`; of its head title and description."""
    head = re.match(r"---\n.*?\n---\n", markdown, re.S)
    if head:
        said = re.findall(r"^(?:title|description): (.*)$", head[0], re.M)
        markdown = "\n\n".join([*said, markdown[head.end() :]])
    for pattern, mark in (
        (r"\{%-? *raw.*?endraw *-?%\}", " "),
        (r"^( *)(```+|~~~+).*?^\1\2", " "),
        (r"\{\{.*?\}\}|\{%.*?%\}|\$\$.*?\$\$", "…"),
        (r"\$[^$\n]+\$|`[^`\n]+`", "…"),
        (r"\[([^\]]*)\]\([^)]*\)", r"\1"),
        (r"<?https?://[^\s)>]+>?|</?\w+[^>]*>|\s*\{ ?[:#.][^}]*\}", ""),
    ):
        markdown = re.sub(pattern, mark, markdown, flags=re.S | re.M)
    return markdown


def sentences(text: str) -> list[str]:
    """The sentences of prose, each once: of paragraphs, lists, headings and the cells of tables."""
    found = []
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+|#>]|\d+\.|\?\?\?|!!!|\*\[))", text):
        for part in block.split("|") if block.lstrip().startswith("|") else [block]:
            part = re.sub(r"^(?:[-*+#>]+|\d+\.|(?:\?\?\?|!!!)\+? \w+) ", "", " ".join(part.split()))
            part = re.sub(r"\*+(?!\[)", "", part).replace('"', "")
            found += re.split(r"(?<=[.?!:])\s+(?=[“A-Z…0-9])", part)
    return [said for said in dict.fromkeys(s.strip() for s in found) if said]


def strings(source: str) -> list[str]:
    """The texts of a module: its strings but docstrings, messages of errors and names; `…` for what is put in."""
    tree, left_out, found = ast.parse(source), set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            left_out |= {first.value for first in node.body[:1] if isinstance(first, ast.Expr)}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Problem", "unknown"):
            left_out.add(node)

    def visit(node: ast.AST) -> None:
        if node in left_out:
            return
        if isinstance(node, ast.JoinedStr):
            found.append("".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)):
                visit(child)

    visit(tree)
    texts = (" ".join(re.sub(r"<[^>]+>", " ", re.sub(r"\{[^{}]*\}", "…", text)).split()) for text in found)
    return [said for said in dict.fromkeys(texts) if " " in said]


def texts_of(table: object) -> list[str]:
    """The texts of a TOML file, except configs and anchors."""
    match table:
        case str():
            return [table]
        case dict():
            return [said for key, value in table.items() if key not in ("config", "anchor") for said in texts_of(value)]
        case list():
            return [said for value in table for said in texts_of(value)]
    return []


@cache
def found() -> dict[str, list[str]]:
    """Every sentence and text, by where it stands: a page, `generated` or `presets`."""
    pages = {
        path.relative_to(ROOT).as_posix(): sentences(prose(path.read_text("utf-8")))
        for path in sorted((ROOT / "docs").rglob("*.md"))
    }
    modules = [*(ROOT / "macros" / "views").rglob("*.py"), ROOT / "macros" / "site" / "model_pages.py"]
    modules += (ROOT / "macros" / "counting").rglob("formats.py")
    generated = [said for path in sorted(modules) for said in strings(path.read_text("utf-8"))]
    tables = sorted(path for path in (ROOT / "macros").rglob("*.toml") if path.name != "style.toml")  # wrong on purpose
    presets = [said for path in tables for said in texts_of(tomllib.loads(path.read_text("utf-8")))]
    places = {**pages, "generated": list(dict.fromkeys(generated)), "presets": list(dict.fromkeys(presets))}
    return {place: said for place, said in places.items() if said}


@cache
def listed() -> dict[str, dict[str, str]]:
    return tomllib.loads(LIST.read_text("utf-8"))


PLACES = [*(p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "docs").rglob("*.md"))), "generated", "presets"]


@pytest.mark.parametrize("place", [*PLACES, *(place for place in listed() if place not in PLACES)])
def test_each_statement_is_held_or_says_why_not(place):
    here, known = found().get(place, []), listed().get(place, {})
    new = [said for said in here if WORDS.search(said) and said not in known]
    lines = "\n".join(f'{json.dumps(said, ensure_ascii=False)} = "…"' for said in new)
    assert not new, (
        f'add below ["{place}"] in {LIST.name}, with “claim: …” (one of model_claims.py, or a new one) if it is about '
        f"models, otherwise with one of {', '.join(REASONS)}:\n{lines}"
    )
    stale = [said for said in known if said not in here]
    assert not stale, f"no longer said in {place}, take it off {LIST.name}:\n" + "\n".join(stale)


@pytest.mark.parametrize("claim", CLAIMS)
def test_claim(claim):
    CLAIMS[claim]()


def test_reasons_and_claims_are_known_and_used():
    given = {reason for statements in listed().values() for reason in statements.values()}
    claims = {name.strip() for reason in given if reason.startswith("claim:") for name in reason[6:].split(",")}
    assert claims == CLAIMS.keys(), f"unknown, or held by no sentence: {sorted(claims ^ CLAIMS.keys())}"
    reasons = {reason for reason in given if not reason.startswith("claim:")}
    assert reasons == REASONS.keys(), f"unknown, or of no sentence: {sorted(reasons ^ REASONS.keys())}"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Every model is good. Some are better.", ["Every model is good."]),
        ("# The largest\n\n- first of\n  two\n- a rest and a test", ["The largest", "first of two"]),
        ("| a | never |\n| - | - |\n| {{ value('only') }} | 2 |", ["never"]),
        ("A list:\n\n1. **All** of `them`\n2. $no$", ["All of …"]),
        ("---\ntitle: The worst\nhide: [all]\n---\nNo one: Every one.", ["The worst", "No one:", "Every one."]),
        ("```\nall\n```\n[only](most.md) <b class='all'>x</b>", ["only x"]),
    ],
)
def test_what_is_a_statement(text, expected):
    assert [said for said in sentences(prose(text)) if WORDS.search(said)] == expected


def test_what_is_a_text_of_a_module():
    source = '"""All."""\nf(f"only {x}, {g(\'no way\')}")\nProblem("never do", "all")\n{"most": "all <b>told</b> {}"}\n'
    assert strings(source) == ["only …, …", "no way", "all told …"]
    assert WORDS.search("the latest test") and not WORDS.search("a test of the rest")
