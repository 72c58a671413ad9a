"""How towers cut images, sounds and proteins of many sizes, and their configs' defaults: as approved."""

from __future__ import annotations

import pytest
from approved import approved
from approved.towers import FILE, NAMES, shown

from macros.engine.towers import modules


@pytest.mark.parametrize("name", NAMES)
def test_sizes_and_defaults_are_the_approved_ones(name):
    """If a change of them is meant: `python -m tests.approved towers`."""
    assert shown(name) == approved(FILE)[name]


def test_each_is_written_down():
    assert [*approved(FILE)] == NAMES
    assert len(NAMES) >= len(modules())
