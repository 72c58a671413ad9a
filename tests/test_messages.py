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
NEAR = 700  # characters between the parts of one message
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
"""
# Of another host, another installation, a build or an editor at work.
ELSEWHERE = """
cli/differences.py: : its code describes no model:
site/mkdocs/markdown.py: on the pages, told above: nothing was built
site/mkdocs/preview/pages.py: ; mend it: the preview goes on with the one before
site/requirements.py: the site cannot be built without
"""
# Not provoked yet: this list gets shorter.
OPEN = """
api/changes.py: change the sizes it follows from
cli/scaffold.py: choose another TYPE
cli/totals.py: remove [published], or give the file that it is of
counting/frameworks.py: Megatron counts latent attention and dense layers beside experts since 0.12
counting/frameworks.py: Megatron prints no memory for a model with recurrent layers
counting/frameworks.py: no modules are known of this model
counting/vllm.py: no rule is known for vLLM's pages of latents next to rows that do not divide
engine/architectures/domino.py: : no scores of a block are corrected
engine/architectures/domyn_edge.py: give the width of a head for each layer
engine/architectures/dspark.py: confidence_head_with_markov = true without a markov_rank
engine/architectures/heads.py: every-parameter describe --types prints the known ones
engine/architectures/longcat_flash_sparse.py: correct oe_neighbor_num or oe_split_num
engine/architectures/rwkv7.py: num_heads × head_dim =
engine/architectures/step3p5.py: layer_types has no entry for module
engine/checkpoint.py: , although the index lists it
engine/checkpoint.py: is not a file of this folder
engine/checkpoint.py: weight_map: expected a table of tensor names and file names
engine/ops/rope.py: a head needs
engine/published.py: and others in the file, whose shapes differ
engine/published.py: in the file, and has whole heads of pairs of rows
site/mkdocs/markdown.py: the page is not UTF-8:
site/mkdocs/preview/pages.py: mkdocs.yml: hooks: macros/site/mkdocs/hooks.py is missing; add it: no page can be built without
site/mkdocs/preview/pages.py: mkdocs.yml: plugins: macros is missing; add it: every figure comes from it
site/page_macros.py: write a context that it supports
views/guide/real_numbers.py: , by the forward pass
views/kit/values.py: ask for it alone, not in a formula
views/reference/claims.py: ” names the model
"""  # noqa: E501
UNSEEN = {line for those in (GUARDS, ELSEWHERE, OPEN) for line in those.strip().splitlines()}


def words_of(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def whole_words(text: ast.JoinedStr) -> Iterator[tuple[int, str]]:
    """The fixed parts of a text by their nodes, without a word that a value goes on with, as in `{name}_config`."""
    for n, part in enumerate(text.values):
        if isinstance(part, ast.Constant):
            said = re.sub(r"^\w+", "", part.value) if n else part.value
            yield id(part), re.sub(r"\w+$", "", said) if n + 1 < len(text.values) else said


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
            inside = [n for one in given for n in ast.walk(one)]
            cut = {key: text for n in inside if isinstance(n, ast.JoinedStr) for key, text in whole_words(n)}
            texts = [cut.get(id(n), n.value) for n in inside if isinstance(n, ast.Constant)]
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
        found += [
            f"{name}: {max(parts, key=len)}" for _, parts in messages(path.read_text("utf-8")) if not is_whole(parts)
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
    assert [*messages('warn(f"a {n}_config of {n}es as said")')] == [(1, ["as said"])]
