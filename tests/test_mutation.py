"""The set of faults: each can still be put in, over all rooms and kinds, and a fault that is put in is seen."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from mutation import KINDS, ROOT, Fault, faults, stale, tenth
from mutation.record import share

ROOMS = sorted(path.name for path in (ROOT / "macros").iterdir() if (path / "__init__.py").is_file())


def test_each_fault_can_still_be_put_in():
    """Mend: give the fault of tests/mutation/faults.toml the text as it now stands, or another fault of its kind;
    `python -m tests.mutation --drop-stale` takes it out."""
    assert stale(faults()) == []


def test_a_fault_whose_text_has_gone_is_told():
    (one,) = stale([Fault("README.md", "no such text in it", "another", "label")])
    assert "its text stands 0 times" in one
    assert stale([Fault("no/such/file.py", "a", "b", "label")])
    assert stale([Fault("README.md", "e", "a", "label")])


def test_they_are_of_all_rooms_and_kinds():
    those = faults()
    assert len(those) >= 150
    assert {fault.kind for fault in those} == {*KINDS}
    rooms = Counter(Path(fault.file).parts[1] if fault.file.startswith("macros") else "scripts" for fault in those)
    assert rooms["scripts"] >= 30 and not {*ROOMS, "scripts"} - rooms.keys()


def test_ten_nights_take_each_once():
    those = faults()
    assert sorted(map(str, (fault for day in range(739_000, 739_010) for fault in tenth(those, day)))) == sorted(
        map(str, those)
    )


@pytest.mark.parametrize("seen, tried, expected", [(10, 10, 100), (5, 10, 50), (0, 4, 0)])
def test_a_share_has_its_quartiles(seen, tried, expected):
    at, low, high = share(seen, tried)
    assert at == expected and -0.01 <= low < high <= 100.01
    assert low <= at <= high if 0 < at < 100 else min(abs(low - at), abs(high - at)) < 1
