"""Every decimal number of a config is read where it was: at values far from the usual ones, scores are those approved.

The scores at the usual values are others' (`test_architectures`, `test_drafts`, `test_towers`).
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from approved.floats import LEFT_OUT, SUMS, all_of

from macros.engine.architectures import architectures

COMPUTED = all_of()
APPROVED = json.loads(SUMS.read_text("utf-8"))
CASES = [(of, name) for of, those in COMPUTED.items() for name in those]


@pytest.mark.parametrize("of, name", CASES)
def test_the_scores_are_the_approved_ones(of, name):
    """If a change of them is meant: `python -m tests.approved floats`."""
    ours, approved = COMPUTED[of][name](), APPROVED[of][name]
    assert np.allclose(ours, approved, rtol=1e-6, atol=1e-6), f"{ours} against {approved}"


def test_each_is_written_down():
    assert {of: [*those] for of, those in APPROVED.items()} == {of: [*those] for of, those in COMPUTED.items()}
    assert {architectures()[name].predicts is None for name in {*COMPUTED["of_module"], *LEFT_OUT}} == {False}
