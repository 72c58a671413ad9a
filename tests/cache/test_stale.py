"""Caches against a model of them: after random changes an answer is the one that nothing remembers, and what a change
does not affect is not computed again. `test_kept` has the cases by hand.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter

import pytest

from macros.cache import disk, memory
from macros.cache.second_process import available_memory
from macros.views.kit.html import Html

SOURCES = tuple("abcd")
STEPS = 60


class Layers:
    """Results that rest on sources, directly and on each other, and what each was computed from at last."""

    def __init__(self, chance: random.Random):
        self.sources = dict.fromkeys(SOURCES, 1)
        self.computed: Counter[str] = Counter()
        self.first = {name: tuple(chance.sample(SOURCES, 2)) for name in ("x", "y")}  # of the lower results
        self.parity = memory.Compared("parity", self.is_odd)
        self.lower, self.upper = memory.memoized(self._lower), memory.memoized(self._upper)
        self.beside = memory.memoized(self._beside)
        self.step = memory.Latest("")

    def read(self, name: str) -> int:
        memory.depends_on("preset", name)
        return self.sources[name]

    def is_odd(self, name: str) -> bool:
        return self.read(name) % 2 == 1

    def _lower(self, name: str, times: int) -> int:
        self.computed[f"lower {name} {times}"] += 1
        return times * sum(map(self.read, self.first[name]))

    def _upper(self, name: str, width: int) -> str:
        self.computed[f"upper {name} {width}"] += 1
        return f"{self.lower(name, times=2) + self.lower(name, times=1):0{width}}"

    def _beside(self, name: str) -> tuple[str, str]:
        self.computed[f"beside {name}"] += 1
        return Html(f"<b>{self.parity(name)}</b>" * 300), "odd" if self.parity(name) else "even"

    def latest(self, name: str) -> str:
        """A step with one result."""
        if not self.step.begin(name):
            self.computed[f"step {name}"] += 1
            with memory.tracking() as used:
                value = f"step {name} {self.upper(name, 5)}"
            self.step.end(value, frozenset(used))
        return self.step.value

    def questions(self) -> dict[str, tuple]:
        """What can be asked: how, what it rests on, and the answer from the sources alone."""
        found = {}
        for name, of in self.first.items():
            rests, total = {("preset", one) for one in of}, sum(self.sources[one] for one in of)
            for times in (1, 2):
                key = f"lower {name} {times}"
                found[key] = (lambda n=name, t=times: self.lower(n, times=t)), rests, times * total
            for width in (4, 3000):
                key = f"upper {name} {width}"
                found[key] = (lambda n=name, w=width: self.upper(n, w)), rests, f"{3 * total:0{width}}"
            found[f"step {name}"] = (lambda n=name: self.latest(n)), rests, f"step {name} {3 * total:05}"
        for name, value in self.sources.items():
            said = f"<b>{value % 2 == 1}</b>" * 300, "odd" if value % 2 else "even"
            found[f"beside {name}"] = (lambda n=name: self.beside(n)), {("parity", name)}, said
        return found


def asked_with(key: str) -> list[str]:
    """A result and those that it asks for."""
    kind, name, *_ = key.split()
    more = {"step": [f"upper {name} 5"], "upper": []}.get(kind)
    return [key, *(more or []), *([f"lower {name} {times}" for times in (1, 2)] if more is not None else [])]


@pytest.fixture
def as_in(request, monkeypatch):
    """As in a command, in a build that drops long texts, or in a preview that packs them."""
    monkeypatch.setattr(memory, "_most", [1] if request.param == "build" else [])
    monkeypatch.setattr(memory, "_packs", [True] if request.param == "preview" else [])
    return request.param


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("as_in", ["command", "build", "preview"], indirect=True)
def test_after_random_changes_an_answer_is_fresh_and_nothing_else_is_computed_again(as_in, seed):
    chance = random.Random(seed)
    layers = Layers(chance)
    kept: dict[str, set] = {}  # results, with what they rest on
    for _ in range(STEPS):
        changed = {("preset", name) for name in chance.sample(SOURCES, chance.choice([0, 0, 1, 2]))}
        for _, name in sorted(changed):
            more = chance.choice([1, 2])
            layers.sources[name] += more
            kept = {key: on for key, on in kept.items() if (("parity", name) if more == 1 else 0) not in on}
        memory.invalidate(set(changed))
        kept = {key: on for key, on in kept.items() if not on & changed}
        key, (ask, on, expected) = chance.choice([*layers.questions().items()])
        before = layers.computed[key]
        with memory.tracking() as used:
            assert ask() == expected, key
        is_step = key.startswith("step")  # who asks a step records for himself that it was used
        assert used == on or is_step and used <= on
        if not (as_in == "build" and ("3000" in key or "beside" in key)):  # which keeps one of them
            assert (layers.computed[key] == before) == (key in kept), key
        if is_step:
            kept = {other: on for other, on in kept.items() if not other.startswith("step")}
        if key not in kept:
            kept |= dict.fromkeys(asked_with(key), on)


def test_a_step_is_current_for_its_last_key_alone():
    step = memory.Latest("nothing")
    assert (step.value, step.is_current, step.is_there()) == ("nothing", False, False)
    assert not step.begin("a")
    step.end("of a", frozenset({("preset", "x")}))
    assert step.is_there() and step.begin("a") and step.value == "of a"
    assert not step.begin("b") and step.value == "of a"
    memory.invalidate({("preset", "y")})
    assert step.begin("a")
    memory.invalidate({("preset", "x")})
    assert not step.is_there() and not step.begin("a")
    step.end("of a again")
    memory.invalidate({("preset", "x")})
    assert step.begin("a"), "it used nothing now"
    step.drop()
    assert not step.begin("a")


def test_results_are_told_apart_by_all_of_their_arguments():
    asked = []

    @memory.memoized
    def result(*args, **kwargs):
        asked.append((args, kwargs))
        return len(asked)

    calls = [((), {}), ((1,), {}), ((1, 2), {}), ((2, 1), {}), ((), {"a": 1}), ((), {"a": 2}), ((1,), {"a": 1})]
    first = [result(*args, **kwargs) for args, kwargs in calls]
    assert first == [*range(1, len(calls) + 1)] == [result(*args, **kwargs) for args, kwargs in calls]
    assert result(b=1, a=2) == result(a=2, b=1) == len(asked) == len(calls) + 1
    result.cache_clear()
    assert result(1, 2) == len(calls) + 2


def test_work_that_nobody_wants_ends_at_a_look_up(monkeypatch):
    asked = []
    monkeypatch.setattr(memory, "before_each_call", [lambda: asked.append("first"), lambda: asked.append("second")])
    memory.memoized(lambda: 1)()
    assert asked == ["first", "second"]
    memory.go_on()
    assert asked == ["first", "second"] * 2


@pytest.mark.parametrize(
    "value, is_packed",
    [
        ("x" * memory.LONG, False),
        ("x" * (memory.LONG + 1), True),
        (Html("x" * (memory.LONG + 1)), True),
        (("short", "x" * (memory.LONG + 1)), True),
        (("short", "also short"), False),
        (("x" * (memory.LONG + 1), 3), False),
        ((), False),
        (["x" * (memory.LONG + 1)], False),
        (3, False),
        (None, False),
    ],
)
def test_of_texts_alone_long_ones_are_packed(value, is_packed):
    packed = memory.pack(value)
    assert (packed is not None) == is_packed
    if packed is not None:
        assert packed.unpacked() == value and type(packed.unpacked()) is type(value)
        assert memory.pack(value) == packed != memory.pack("y" * (memory.LONG + 1))


KINDS = {  # what a result used, and what it rests on, of a folder's files
    "one": ([("preset", "one")], lambda files: [files["presets/a/one.toml"]]),
    "both": ([("preset", "one"), ("beside", "other")], lambda files: [v for k, v in files.items() if "/o" in k]),
    "all": ([("about presets", "")], lambda files: {k: v for k, v in sorted(files.items()) if "presets" in k}),
    "list": ([("presets", None)], lambda files: [key for key in files if "presets" in key]),
    "nothing": ([], lambda files: 0),
    "a page": ([("page", "index"), ("preset", "one")], None),  # of what no file tells: never kept
}


@pytest.mark.parametrize("seed", range(4))
def test_a_store_returns_what_is_fresh_and_nothing_else_is_computed_again(tmp_path, monkeypatch, seed):
    """Random edits of code, pages and presets between builds, some of which fail or see a save while they work."""
    chance, root = random.Random(seed), tmp_path / "code"
    monkeypatch.setattr(disk, "PRESETS", root / "presets")
    monkeypatch.setattr(disk, "STARTED", 1 << 62)
    monkeypatch.setenv("KEPT", "yes")
    files = {"presets/a/one.toml": 1, "presets/a/other.toml": 1, "presets/b/third.toml": 1, "module.py": 1}
    files |= {"docs/index.md": 1, "docs/includes/words.md": 1}
    code_of = lambda: {  # noqa: E731
        key: 0 if key.endswith("index.md") or "new.md" in key else value
        for key, value in files.items()
        if "presets" not in key
    }
    states = lambda: {root / key: (str(value), (value,)) for key, value in files.items()}  # noqa: E731
    rows: dict[str, dict[str, tuple]] = {}  # by code, what each result rests on and is
    for n in range(25):
        edited = chance.choice(["", "", *files, "presets/c/new.toml", "docs/new.md"])
        if "new" in edited and edited in files:
            del files[edited]
        elif edited:
            files[edited] = files.get(edited, 0) + 1
        code, new = str(code_of()), {}
        kept = rows.get(code, {})
        disk.open_store(tmp_path / ".cache/kept.sqlite", states(), states)
        assert disk.is_cold() == (not kept)
        for name in chance.sample([*KINDS], 3):
            (used, rests), computed = KINDS[name], []

            def compute(used=used, name=name, computed=computed, n=n):
                computed.append(f"{name} {n}" if name == "one" else (name, n))
                for one in used:
                    memory.depends_on(*one)
                return computed[0]

            value = disk.get_or_compute("view", (name, 1), compute)
            on = repr(rests(files)) if rests else None
            was = kept.get(name, ("new",))[0]
            is_same = was == on if name != "all" else on.startswith(was.rstrip("}"))  # a new one changes no others
            assert bool(computed) == (on is None or not is_same), (n, name, edited)
            assert value == (computed[0] if computed else kept[name][1])
            if computed and on is not None:
                new[name] = on, value
        how = chance.choice(["ends", "ends", "ends", "fails", "a save"])
        if how == "a save":
            files["module.py"] += 1
        if how != "fails":
            disk.close_store()
        if how == "ends" and new:
            rows = {code: kept | new}
        if how == "a save":
            files["module.py"] -= 1
    disk._stores.clear()


def test_results_of_a_command_are_in_a_folder_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("KEPT", "yes")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "not" / "yet"))
    monkeypatch.setattr(disk, "_package_states", dict)
    for is_kept in (False, True):
        computed = []
        with disk.for_commands():
            assert disk.is_cold() != is_kept
            disk.get_or_compute("a", "text", lambda: computed.append(1) or "value")
            with disk.for_commands():
                assert len(disk._stores) == 1, "one within another has the same store"
            assert disk._stores
        assert not disk._stores and bool(computed) != is_kept
    assert [path.suffix for path in (tmp_path / "not/yet/every-parameter").iterdir()] == [".sqlite"]
    monkeypatch.setenv("KEPT", "no")
    with disk.for_commands():
        assert not disk._stores


def test_what_a_value_can_compute_again_is_released_and_long_texts_are_dropped(monkeypatch):
    monkeypatch.setattr(memory, "_most", [2])
    released, asked = [], []

    class Model:
        is_large_result = False

        def release(self):
            released.append(self)

    @memory.memoized
    def result(name):
        asked.append(name)
        return "x" * (memory.LONG + 1) if name == "text" else model

    model = Model()
    memory.can_release(model)
    assert model in memory.holders()
    for drop, again in ((memory.release, ["text"]), (memory.drop_large, ["text"]), (lambda: None, [])):
        result("model"), result("text")
        asked.clear()
        drop()
        result("model"), result("text")
        assert asked == again
    assert released == [model]
    Model.is_large_result = True
    result.cache_clear()
    result("model")
    memory.drop_large()
    asked.clear()
    result("model")
    assert asked == ["model"]


def test_a_user_s_folder_is_where_the_system_has_it(monkeypatch, tmp_path):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(disk.Path, "home", lambda: tmp_path)
    assert disk.cache_folder() == tmp_path / ".cache"
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "Local"))
    assert disk.cache_folder() == tmp_path / "Local"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert disk.cache_folder() == tmp_path / "xdg"


@pytest.mark.skipif(not hasattr(os, "sysconf") or sys.platform != "linux", reason="memory as Linux states it")
def test_available_memory_is_in_bytes():
    page = os.sysconf("SC_PAGE_SIZE")
    assert page * os.sysconf("SC_AVPHYS_PAGES") / 4 < available_memory() <= page * os.sysconf("SC_PHYS_PAGES")
