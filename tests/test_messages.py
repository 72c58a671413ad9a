"""Each message of the package, of an error or a warning, is provoked by a test or by an approved answer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from copies import ROOT

PACKAGE = ROOT / "macros"
SAID = ("Problem", "warn", "warning")
LEAST = 4  # words that show that a message was seen
NEAR = 700  # characters between the parts of one message
WHOLE = (
    "api/",
    "catalogue/",
    "counting/",
    "data/",
    "engine/towers/",
)  # rooms seen to the last word: this list gets longer
# Of states that the code above them rules out.
GUARDS = """
api/tracing.py: weights carry no recurrence
data/capacity.py: has parts of numbers
data/capacity.py: has parts of rows
engine/forward.py: a type without attention
engine/ops/attention.py: its choice of keys
engine/rules.py: does not fit into
engine/steps.py: weights carry no recurrence
site/mkdocs/pages.py: keyword argument repeated
views/guide/model_size.py: write pairs=[["…", "…"], …]
"""
# Of another host, another installation, a build or an editor at work.
ELSEWHERE = """
cli/differences.py: : its code describes no model:
cli/differences.py: name a folder of data, or a revision of this repository
site/mkdocs/markdown.py: on the pages, told above: nothing was built
site/mkdocs/preview/pages.py: ; mend it: the preview goes on with the one before
site/requirements.py: the site cannot be built without
"""
# Not provoked yet: this list gets shorter.
OPEN = """
api/changes.py: change the sizes it follows from
cli/scaffold.py: choose another TYPE
cli/totals.py: remove [published], or give the file that it is of
engine/ops/rope.py: a head needs
engine/published.py: and others in the file, whose shapes differ
site/moved.py: : expected the paths of two pages
site/page_macros.py: write a context that it supports
site/python_examples.py: correct the example
site/terminal.py: correct the call
views/kit/values.py: ask for it alone, not in a formula
"""
UNSEEN = {line for those in (GUARDS, ELSEWHERE, OPEN) for line in those.strip().splitlines()}


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def messages(source: str) -> Iterator[tuple[int, list[str]]]:
    """The line of each message, and its fixed parts."""
    seen = set[int]()
    for node in ast.walk(ast.parse(source)):
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call):
            continue
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        if (isinstance(node, ast.Raise) or name in SAID) and call.lineno not in seen:
            seen.add(call.lineno)
            given = [*call.args, *(one.value for one in call.keywords)]
            texts = [n.value for one in given for n in ast.walk(one) if isinstance(n, ast.Constant)]
            parts = [" ".join(one.split()) for one in texts if isinstance(one, str)]
            if parts := [one for one in parts if len(words_of(one)) > 1]:
                yield call.lineno, parts


@cache
def provoked() -> str:
    """The words of what tests and pages expect."""
    files = [path for ending in ("py", "txt", "toml", "jsonl") for path in (ROOT / "tests").rglob(f"*.{ending}")]
    files = [path for path in files if path.name != Path(__file__).name and "golden" not in path.parts]
    texts = [path.read_text("utf-8") for path in [*files, *(ROOT / "docs").rglob("*.md")]]
    return f" {' '.join(word for text in texts for word in words_of(text))} "


def is_provoked(parts: list[str]) -> bool:
    """Whether some of the words of one part stand there in their order."""
    for part in parts:
        words = words_of(part)
        for n in range(max(1, len(words) - LEAST + 1)):
            if f" {' '.join(words[n : n + LEAST])} " in provoked():
                return True
    return False


def is_whole(parts: list[str]) -> bool:
    """Whether each part stands there to its last word, and all of them near each other."""
    wanted = [f" {' '.join(words_of(part))} " for part in parts]
    longest, said = max(wanted, key=len), provoked()
    at = said.find(longest)
    while at >= 0:
        near = said[max(0, at - NEAR) : at + len(longest) + NEAR]
        if all(one in near for one in wanted):
            return True
        at = said.find(longest, at + 1)
    return False


def unseen() -> list[str]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        is_seen = is_whole if name.startswith(WHOLE) else is_provoked
        found += [
            f"{name}: {max(parts, key=len)}" for _, parts in messages(path.read_text("utf-8")) if not is_seen(parts)
        ]
    return found


def test_each_message_is_provoked_once():
    """Mend: provoke it by a line of tests/approved/texts/answers, or say above why nothing does."""
    lacking = unseen()
    assert sorted({*lacking} - UNSEEN) == []
    assert sorted(UNSEEN - {*lacking}) == [], "take what is provoked now from the lists above"


def test_the_parts_of_a_message_are_read():
    source = 'if n:\n    raise Problem(f"no such {n} thing here", "give another one")\nwarn("x")\n'
    assert [*messages(source)] == [(2, ["no such", "thing here", "give another one"])]
