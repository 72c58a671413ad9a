"""The table of torch's and transformers' figures: every type, and each letter with what it stands for."""

import re

import pytest

from macros.catalogue.independent import comparison
from macros.engine.errors import Problem
from macros.views.reference.independent import independent_summary, independent_table


def letters(html: str) -> tuple[set[str], set[str]]:
    """(letters behind a difference, letters explained)."""
    behind = re.findall(r'class="ep-range">[^<]*?\d ([a-z ]+)</span>', html)
    return set(" ".join(behind).split()), set(re.findall(r"<dt>([a-z]+)</dt>", html))


@pytest.mark.parametrize("types", [(), ("mixtral", "rwkv"), ("falcon",), ("llama",)], ids=str)
def test_each_letter_is_explained_and_each_explanation_used(types):
    used, explained = letters(independent_table(types))
    assert used == explained
    assert bool(used) == (types != ("llama",))


def test_the_table_has_every_type_that_was_compared():
    rows = re.findall(r'<th scope="row"><code>(.*?)</code>', independent_table())
    assert rows == list(comparison().types)


def test_the_summary_names_what_was_not_compared():
    assert all(f"<code>{name}</code>" in independent_summary() for name in comparison().absent)


def test_an_unknown_type_is_named():
    with pytest.raises(Problem, match="lama"):
        independent_table(["lama"])
