"""The set of faults: each can still be put in, over all rooms and kinds, and a fault that is put in is seen."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import sampling
from affected import FAR, FIRST, Change, Definition, Graph, Module, Reach, held_by, nearer
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


def test_tests_of_the_room_and_of_the_name_come_first():
    far = {"tests/views/test_terms.py::test_it": 3.0, "tests/counting/test_costs.py::test_it": 3.0}
    far["tests/counting/test_whole_logs.py::test_it"] = 3.0
    paths = [*far, "tests/counting/test_logs.py::test_it", "tests/counting/test_bill.py::test_it"]
    modules = {one.partition("::")[0]: Module({"test_it": Definition()}) for one in paths}
    found = nearer(far, ["macros/counting/log_rows.py"], Graph(modules, {}))
    ordered = ["test_whole_logs", "test_costs", "test_terms", "test_logs"]
    assert [Path(name.partition("::")[0]).stem for name in sorted(found, key=lambda name: found[name])] == ordered
    assert nearer(far, [], Graph(modules, {})) == far


def test_a_test_that_imports_the_changed_module_comes_first_wherever_it_is():
    far = dict.fromkeys(["tests/site/test_kept.py::test_it", "tests/api/test_tables.py::test_it"], 4.0)
    modules = {name.partition("::")[0]: Module({"test_it": Definition()}) for name in far}
    modules["tests/site/test_kept.py"].imports["disk"] = "macros.cache.disk"
    found = nearer(far, ["macros/cache/disk.py"], Graph(modules, {}))
    assert found["tests/site/test_kept.py::test_it"] < found["tests/api/test_tables.py::test_it"] == 4
    modules["tests/site/test_kept.py"].imports["disk"] = "macros.cache.disk_space"
    assert nearer(far, ["macros/cache/disk.py"], Graph(modules, {})) == far


def test_a_share_has_what_is_near_and_more_is_drawn():
    near = sampling.near_first(range(20), 5, lambda n: n in (3, 17))
    assert {3, 17} <= {*near} and len(near) == (20 if sampling.WHOLE else 4)
    assert len(sampling.near_first(range(20), 5, lambda n: n > 2)) == (20 if sampling.WHOLE else 4)


def test_what_the_rooms_of_a_change_answer_comes_first():
    held = held_by(Change("a commit", {"macros/api/bills.py": b""}), {}, Graph({}, {}), ROOT)
    found = Reach(["held against a commit"], {"tests/api/test_python_api.py::test_it": 0.5}, held)
    assert found.length("room:api") == found.length("room:api_arguments") == FIRST < 0.5
    assert found.length("room:counting_engines") == 1 and found.length("llama") == FAR


def test_a_case_is_far_if_the_change_does_not_hold_it():
    assert Reach(["held against a commit"], held={"gpt2": 0}).is_far("llama")
    assert not Reach(["held against a commit"], held={"gpt2": 0}).is_far("gpt2") and not Reach().is_far("llama")
