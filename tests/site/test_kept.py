"""Kept results: taken where nothing that they come from has changed, and nowhere else."""

import gc
import random
import resource
import sqlite3
import weakref
import zlib
from unittest import mock

import pytest
from copies import build, small_site
from mkdocs.structure.files import File

from macros.cache import disk, memory
from macros.cache.memory import depends_on, tracking
from macros.catalogue import presets
from macros.counting.costs import of as costs_of
from macros.data.model import as_json
from macros.site import data_files
from macros.site.mkdocs import pages
from macros.views.kit.html import Html


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Code and two presets; `kept` reads these."""
    (tmp_path / "code/presets/llama").mkdir(parents=True)
    (tmp_path / "code/includes").mkdir()
    (tmp_path / "code/includes/terms.md").write_text("terms")
    (tmp_path / "code/module.py").write_text("x = 1")
    for slug in ("one", "other"):
        (tmp_path / f"code/presets/llama/{slug}.toml").write_text(f'name = "{slug}"')
    monkeypatch.setattr(disk, "PRESETS", tmp_path / "code/presets")
    monkeypatch.setattr(disk, "STARTED", 1 << 62)
    return tmp_path


def begin(folder, is_preview=False, is_edited=False):
    """A build over the folder's files as they are; a preview after an edit."""

    def states():
        files = [path for path in (folder / "code").rglob("*") if path.is_file()]
        return {path: (path.read_text(), (path.stat().st_mtime_ns,)) for path in files}

    disk.open_store(folder / ".cache/views.sqlite", states(), None if is_edited else states, is_preview)


def ask(folder, slug="one", is_preview=False, is_edited=False, meanwhile=lambda: None):
    """Whether a result that uses a preset was computed, in a build of its own."""
    computed = []

    def compute():
        depends_on("preset", slug)
        computed.append(1)
        return "a text", f"of {slug}"

    begin(folder, is_preview, is_edited)
    with tracking() as used:
        value = disk.get_or_compute("view", (slug, 7), compute)
    meanwhile()
    disk.close_store()
    assert value == ("a text", f"of {slug}")
    assert used == {("preset", slug)} | ({("pages", None)} if is_preview and not computed else set())
    return bool(computed)


def test_it_is_computed_once(folder):
    assert ask(folder) and not ask(folder) and ask(folder, slug="other") and not ask(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "code/module.py").write_text("x = 2"),
        lambda folder: (folder / "code/new.toml").write_text(""),
        lambda folder: (folder / "code/includes/terms.md").write_text("other terms"),
        lambda folder: (folder / "code/presets/llama/one.toml").write_text('name = "One"'),
        lambda folder: (folder / "code/presets/llama/one.toml").unlink(),
        lambda folder: (folder / ".cache/views.sqlite").unlink(),
        lambda folder: (folder / ".cache/views.sqlite").write_bytes(b"no database" * 999),
    ],
)
def test_after_a_change_it_is_computed_again(folder, change):
    assert ask(folder)
    change(folder)
    assert ask(folder)


def test_another_preset_or_a_page_s_text_changes_nothing_but_another_page_does(folder):
    (folder / "code/page.md").write_text("text")
    assert ask(folder)
    (folder / "code/presets/llama/other.toml").write_text("")
    (folder / "code/page.md").write_text("another text")
    assert not ask(folder)
    (folder / "code/another.md").write_text("text")
    assert ask(folder)


def test_a_new_preset_computes_what_comes_from_all(folder):
    def computed():
        begin(folder)
        disk.get_or_compute("view", (), lambda: depends_on("presets") or told.append(1))
        disk.close_store()
        return len(told)

    told = []
    assert computed() == computed() == 1
    (folder / "code/presets/llama/another.toml").write_text("")
    assert computed() == 2


def test_another_python_computes(folder, monkeypatch):
    assert ask(folder)
    monkeypatch.setattr("sys.version", "4.0")
    disk.installed_versions.cache_clear()
    assert ask(folder)
    monkeypatch.undo()
    disk.installed_versions.cache_clear()


def test_the_same_files_built_in_another_way_compute(folder):
    """Addresses without folders are others."""

    def computed(how):
        disk.open_store(folder / ".cache/views.sqlite", states, lambda: states, how=how)
        disk.get_or_compute("view", (), lambda: told.append(how) or "text")
        disk.close_store()
        return told

    states, told = {folder / "code/module.py": ("x = 1", (0,))}, []
    assert computed(True) == computed(True) == [True] and computed(False) == [True, False]


def test_of_a_whole_no_part_is_kept_by_itself(folder):
    """As a part of nothing it is."""

    def part():
        return disk.get_or_compute("part", "one", lambda: computed.append("part") or "a·part", is_part=True)

    def build(ask):
        computed.clear()
        begin(folder)
        assert ask() == "a·part"
        disk.close_store()
        return computed

    def whole(name):
        return lambda: disk.get_or_compute_whole("whole", name, lambda: computed.append("whole") or part())

    computed = []
    assert build(whole("a")) == ["whole", "part"] and build(whole("a")) == []
    assert build(part) == ["part"] and build(part) == [] and build(whole("b")) == ["whole", "part"]


def test_told_so_it_takes_nothing(folder, monkeypatch):
    assert ask(folder)
    monkeypatch.setenv("KEPT", "no")
    assert ask(folder)


def test_nothing_of_a_build_that_failed_is_kept(folder):
    begin(folder)
    disk.get_or_compute("view", ("one", 7), lambda: "half")
    assert ask(folder) and not ask(folder)


def test_what_was_saved_while_it_was_computed_keeps_nothing(folder, monkeypatch):
    module = folder / "code/module.py"
    assert ask(folder, meanwhile=lambda: module.write_text("x = 3"))
    module.write_text("x = 1")
    assert ask(folder) and not ask(folder)
    (folder / ".cache/views.sqlite").unlink()
    monkeypatch.setattr(disk, "STARTED", 0)  # all was saved after the modules were imported
    assert ask(folder) and ask(folder)


def test_a_preview_keeps_until_something_is_saved(folder):
    assert ask(folder, is_preview=True, is_edited=True) and ask(folder, is_preview=True)
    assert not ask(folder) and not ask(folder, is_preview=True, is_edited=True)


def test_a_preview_s_builds_keep_together_what_one_of_them_did_not_live_to_keep(folder):
    begin(folder, is_preview=True)
    disk.get_or_compute("view", ("one", 7), lambda: depends_on("preset", "one") or ("a text", "of one"))
    begin(folder, is_preview=True)
    disk.close_store()
    assert not ask(folder)
    begin(folder, is_preview=True)
    disk.get_or_compute("view", ("other", 7), lambda: "half")
    (folder / "code/module.py").write_text("x = 2")
    begin(folder, is_preview=True)
    disk.close_store()
    assert ask(folder, slug="other")


def test_damaged_results_and_those_of_more_than_presets_are_computed(folder):
    assert ask(folder)
    with sqlite3.connect(folder / ".cache/views.sqlite") as database:
        database.execute("UPDATE results SET value = ?", (b"no text",))
    assert ask(folder)
    begin(folder)
    assert disk.get_or_compute("view", (), lambda: depends_on("error") or "wrong") == "wrong"
    assert not disk._stores[0].new
    disk.close_store()


def test_a_file_that_is_no_database_is_made_anew(folder):
    ask(folder)
    (folder / ".cache/views.sqlite").write_bytes(b"no database" * 999)
    assert ask(folder) and ask(folder) and not ask(folder)


def test_a_database_with_holes_is_made_anew(folder):
    ask(folder)
    database = folder / ".cache/views.sqlite"
    whole = database.read_bytes()
    database.write_bytes(whole[:4096] + b"x" * (len(whole) - 4096))
    assert ask(folder) and ask(folder) and not ask(folder)


@pytest.mark.parametrize("full", ["the disk", "the folder of temporary files"])
def test_on_a_full_disk_it_is_computed_and_not_kept(folder, monkeypatch, full):
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    if full == "the disk":
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    else:
        monkeypatch.setattr("tempfile.TemporaryFile", mock.Mock(side_effect=FileNotFoundError))
    try:
        assert ask(folder) and ask(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def test_a_folder_that_cannot_be_is_done_without(folder):
    (folder / ".cache").write_text("a file")
    assert ask(folder) and ask(folder)


@pytest.mark.share(18, of="copies of the project")
@pytest.mark.processes
@pytest.mark.slow("builds a small site four times")
def test_a_build_takes_what_was_kept_and_is_a_clean_one(tmp_path):
    folder = small_site(tmp_path / "site")

    def pages(**variables):
        done = build(folder, SITE_URL="https://example.org/", **variables)
        assert done.returncode == 0, done.stderr[-3000:]
        site = folder / "site"
        return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}

    first = pages()
    assert pages() == first == pages(KEPT="no")
    # Of results that say so it is seen that they are taken; what the edited preset goes into is computed.
    with sqlite3.connect(folder / ".cache/views.sqlite") as database:
        for key, value in database.execute("SELECT key, value FROM results").fetchall():
            if (content := zlib.decompress(value)).startswith(disk.TEXT + b"[["):  # a page: its contents, its HTML
                said, _, html = disk.decode(content).partition("\n")
                told = zlib.compress(disk.encode(f"{said}\n<p>as kept</p>{html}"))
                database.execute("UPDATE results SET value = ? WHERE key = ?", (told, key))
    preset = folder / "macros/presets/gpt/gpt2.toml"
    preset.write_text(preset.read_text("utf-8").replace('name = "GPT-2', 'name = "The GPT-2'), "utf-8")
    after = pages()
    assert b"as kept" not in after["models/gpt/gpt2/index.html"] and b"The GPT-2" in after["models/gpt/gpt2/index.html"]
    assert b"as kept" in after["models/llama/llama3-8b/index.html"]


def test_of_long_texts_a_build_remembers_the_last(monkeypatch):
    """A thousand models' tables at once are too much; whatever else was computed stays."""
    monkeypatch.setattr(memory, "_most", [])
    computed = []

    @memory.memoized
    def result(name, length):
        computed.append(name)
        return f"{name:{length}}"

    def ask(*names, length=memory.LONG + 1):
        computed.clear()
        for name in names:
            assert result(name, length) == f"{name:{length}}"
        return "".join(computed)

    assert ask(*"abcab") == "abc", "a preview remembers all"
    result.cache_clear()
    memory.limit_large_results(2)
    assert ask(*"aabbccb") == "abc" and ask(*"abc") == "abc"
    assert ask(*"abcabc", length=memory.LONG) == "abc"


def test_a_preview_s_long_texts_are_kept_compressed(monkeypatch):
    """They come back as they were, and as what they were."""
    monkeypatch.setattr(memory, "_packs", [])
    memory.pack_long_texts()
    computed = []

    @memory.memoized
    def view(n):
        computed.append(n)
        return Html(f"<p>{n} × 4,096 – α</p>" * (1000 if n else 1))

    texts = [view(n) for n in (0, 1)]
    again = [view(n) for n in (0, 1)]
    assert computed == [0, 1] and again == texts and all(type(text) is Html for text in again)
    assert again[0] is texts[0] and again[1] is not texts[1] and len(again[1]) > 10_000


def test_a_build_lets_go_of_models_behind_their_pages(monkeypatch):
    """Some at once, the costs of all behind a written page, and what is said of them stays as it was."""
    slugs = ["llama3-8b", "gpt2"]
    monkeypatch.setattr(pages, "AT_ONCE", 2)
    monkeypatch.setattr(pages, "counted", [])
    files = {slug: pages.Generated(f"models/any/{slug}.md", None, "site", True) for slug in slugs}
    said = {slug: data_files.model_files(slug) for slug in slugs}
    costs = {slug: costs_of(presets.model(slug).counts) for slug in slugs}
    assert all(one.traffic.weight_bytes_read(1) and "weight_bytes_read" in vars(one.traffic) for one in costs.values())
    pages.release_after(File("index.md", None, "site", True))
    assert not any("weight_bytes_read" in vars(one.traffic) for one in costs.values())
    pages.release_after(files["llama3-8b"])
    assert all("counts" in vars(presets.model(slug)) for slug in slugs)
    pages.release_after(files["gpt2"])
    assert not any("counts" in vars(presets.model(slug)) or "trace" in vars(presets.model(slug)) for slug in slugs)
    data_files.model_files.cache_clear()
    assert {slug: data_files.model_files(slug) for slug in slugs} == said


@pytest.mark.parametrize("slug", ["llama3-8b", "kimi-k3", "qwen3-vl-8b"])
def test_what_a_preview_releases_is_computed_again(slug):
    """The costs come out as before. A trace of which somebody holds a part stays the same one: views find its parts by
    identity."""

    @memory.memoized
    def fresh(slug):
        return presets.model.__wrapped__(slug)

    model = fresh(slug)

    def everything() -> list:
        towers = [(component.total, component.counts.flops) for component in model.components]
        return [as_json(model, True), *model.drawn.counts.weights, model.drawn.counts.flops, *towers]

    before, held = everything(), model.trace.root.children[0]
    drawn, trace = model.drawn, weakref.ref(model.trace)
    memory.release()
    assert model.trace is trace() and model.trace.root.children[0] is held
    del held
    memory.release()
    gc.collect()
    assert trace() is None and model.drawn is drawn
    assert everything() == before


def test_what_rests_on_a_compared_result_stays_while_that_is_equal():
    files, computed = {"a": "Llama, by Meta"}, []

    def first_word(name):
        memory.depends_on("preset", name)
        if not files[name]:
            raise ValueError
        return files[name].split(",")[0]

    shown = memory.Compared("beside", first_word)

    @memory.memoized
    def page(name):
        computed.append(files[name])
        return shown(name)

    def after(text, compares=True):
        files["a"] = text
        memory.invalidate({("preset", "a")}, compares)
        return page("a")

    assert page("a") == after("Llama, by nobody") == "Llama" and len(computed) == 1
    assert after("Lama, by nobody") == "Lama" and len(computed) == 2
    assert after("Lama", compares=False) == "Lama" and len(computed) == 3, "the code may have changed, too"
    with pytest.raises(ValueError):
        after("")
    assert after("Lama") == "Lama"
    with memory.tracking() as used:
        page("a")
    assert used == {("beside", "a")}


def test_packed_texts_are_what_they_were_when_their_file_begins_anew(monkeypatch):
    """Their file holds no more than twice of what is needed; without room for it, memory has them."""
    monkeypatch.setattr(memory, "LEAST", 1 << 14)
    contents = memory._Contents()
    monkeypatch.setattr(memory, "_contents", contents)
    chance, kept = random.Random(1), {}
    for n in range(500):
        text = "".join(chr(chance.randrange(32, 1000)) for _ in range(chance.randrange(3000)))
        kept[chance.randrange(20)] = text, memory.Packed(text)
        if n == 400:
            assert all(packed.text() == text for text, packed in kept.values())
            monkeypatch.setattr(contents, "write", refuse)
    assert all(packed.text() == text for text, packed in kept.values())
    assert contents.end < 4 * sum(len(packed.content) for _, packed in kept.values())


def refuse(content):
    raise OSError(28, "No space left on device")
