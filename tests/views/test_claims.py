"""Claims in circulation: each row states what its figure depends on."""

from __future__ import annotations

import re
from html import unescape

import pytest

from macros.views.reference import claims


@pytest.mark.parametrize("group", claims.claims())
def test_a_claim_at_a_context_states_it(group):
    rows = [unescape(r) for r in re.findall(r'<tr><th scope="row".*?</tr>', claims.claims_table(group))]
    assert len(rows) == len(claims.claims()[group])
    for claim, found in zip(claims.claims()[group], rows):
        assert (f"{claim.of} at a context of {claim.context or 0:,}" in found) == bool(claim.context)


def test_a_figure_that_depends_on_the_context_has_one():
    for claim in (
        c
        for group in claims.claims().values()
        for c in group
        if "decode_flops" in c.true or re.search(r"\bcache_bytes\b", c.true)
    ):
        assert claim.context


def test_tables_of_claims_have_names_of_their_own():
    names = [re.search(r'aria-label="([^"]+)"', claims.claims_table(group))[1] for group in claims.claims()]
    assert len(set(names)) == len(names) > 1
