"""Sentences about the whole catalog are computed: where they are written, a claim of `model_claims.py` is named."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from model_claims import CLAIMS

ROOT = Path(__file__).parent.parent
MARK = re.compile(r"(?:\{#|#) claim: ([a-z0-9, -]+?)(?: #\})?$", re.M)
PLACES = ("docs/**/*.md", "macros/**/*.py", "macros/**/*.toml")


def marked() -> dict[str, list[str]]:
    """The claims that are named, with the lines that name them."""
    found = defaultdict(list)
    for path in (path for place in PLACES for path in sorted(ROOT.glob(place))):
        text = path.read_text("utf-8")
        for mark in MARK.finditer(text):
            line = f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, mark.start()) + 1}"
            for name in mark[1].split(", "):
                found[name].append(line)
    return found


@pytest.mark.parametrize("claim", CLAIMS)
def test_claim(claim):
    CLAIMS[claim]()


def test_each_claim_is_marked_where_it_is_written():
    """Mend: write the mark at the end of the sentence's line, or take the claim away with its sentence."""
    found = marked()
    unknown = {name: found[name] for name in found.keys() - CLAIMS.keys()}
    assert not unknown, f"no claims of model_claims.py: {unknown}"
    assert not CLAIMS.keys() - found.keys(), f"held by no sentence: {sorted(CLAIMS.keys() - found.keys())}"


def test_no_mark_is_written_in_another_way():
    """What is no mark would hold nothing, and nobody would see it."""
    wrong = [
        f"{path.relative_to(ROOT)}: {line.strip()[-80:]}"
        for path in (path for place in PLACES for path in sorted(ROOT.glob(place)))
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"#\s*claims?\b\s*:", line, re.I) and not MARK.search(line)
    ]
    assert wrong == []
