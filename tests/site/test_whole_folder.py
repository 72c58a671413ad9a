"""A site stands until the next one is whole: what fails, is killed or comes twice at once leaves a whole one."""

import logging
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from copies import ROOT
from mkdocs.exceptions import PluginError
from mkdocs.utils import CountHandler

from macros.engine.errors import Problem
from macros.site.mkdocs import output
from macros.site.other_engines import command, sources
from macros.site.whole_folder import WholeFolder


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def site(tmp_path) -> Path:
    """A site of two files, with something hidden in it."""
    site = tmp_path / "site"
    (site / "a").mkdir(parents=True)
    (site / "a/index.html").write_text("old")
    (site / "gone.html").write_text("old")
    (site / ".git").write_text("hidden")
    return site


OLD = {"a/index.html": "old", "gone.html": "old", ".git": "hidden"}
NEW = {"a/index.html": "new", ".git": "hidden"}


def written(site: Path) -> WholeFolder:
    whole = WholeFolder(site)
    (whole.folder / "a").mkdir()
    (whole.folder / "a/index.html").write_text("new")
    return whole


def test_it_takes_the_place_at_once_and_leaves_what_is_hidden(site):
    site.chmod(0o750)
    whole = written(site)
    assert content(site) == OLD
    whole.put()
    assert content(site) == NEW and os.listdir(site.parent) == ["site"] and site.stat().st_mode & 0o777 == 0o750
    written(site).drop()
    assert content(site) == NEW and os.listdir(site.parent) == ["site"]


def test_a_first_one_and_one_behind_a_link(tmp_path, site):
    written(tmp_path / "x/y").put()
    assert content(tmp_path / "x") == {"y/a/index.html": "new"}
    (tmp_path / "link").symlink_to("site")
    written(tmp_path / "link").put()
    assert (tmp_path / "link").is_symlink() and content(site) == NEW


def test_what_was_left_before_a_link_took_the_place_is_removed(tmp_path, site):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/link").symlink_to(site)
    (tmp_path / "elsewhere/.link.new-0/a").mkdir(parents=True)
    written(tmp_path / "elsewhere/link").put()
    assert os.listdir(tmp_path / "elsewhere") == ["link"] and content(site) == NEW


def test_a_file_that_stands_there_is_a_line(tmp_path):
    (tmp_path / "site").touch()
    with pytest.raises(Problem, match="is a file, but has to be a folder; give another path"):
        WholeFolder(tmp_path / "site")


def test_what_was_killed_is_removed_by_the_next(site):
    """The system lets go what the process held. Whoever is still writing is left alone."""
    kill = f"os.kill(os.getpid(), {signal.SIGKILL.value})"
    command = f"import os; from macros.site.whole_folder import WholeFolder; WholeFolder({str(site)!r}); {kill}"
    subprocess.run([sys.executable, "-c", command], cwd=ROOT)
    assert len(os.listdir(site.parent)) == 2
    first = written(site)
    assert len(os.listdir(site.parent)) == 2
    second = written(site)
    assert len(os.listdir(site.parent)) == 3
    second.put()
    first.put()
    assert content(site) == NEW and os.listdir(site.parent) == ["site"]


def test_what_was_killed_between_two_renames_is_put_back(site):
    site.rename(site.with_name(".site.old-0"))
    whole = WholeFolder(site)
    assert content(site) == OLD
    shutil.copytree(site, site.with_name(".site.old-1"))
    (site / ".git").unlink()
    whole.drop()
    assert content(site) == OLD and os.listdir(site.parent) == ["site"]


def test_another_one_that_comes_while_it_is_put(site):
    whole, rename, came = written(site), Path.rename, []

    def and_another(self, target):
        if self == whole.folder and not came:
            came.append(1)
            (site / "b").mkdir(parents=True)
            (site / "b/index.html").write_text("another's")
        return rename(self, target)

    with mock.patch.object(Path, "rename", and_another):
        whole.put()
    assert content(site) == NEW and os.listdir(site.parent) == ["site"]


def test_a_folder_that_cannot_be_renamed_takes_the_content(site):
    """A disk of its own, a folder that a container was handed."""
    whole, rename = written(site), Path.rename

    def busy(self, target):
        if self == site:
            raise OSError(16, "Device or resource busy")
        return rename(self, target)

    with mock.patch.object(Path, "rename", busy):
        whole.put()
    assert content(site) == NEW and os.listdir(site.parent) == ["site"]


@pytest.mark.parametrize("warned, stands", [(0, NEW), (1, OLD)])
def test_a_build_that_is_refused_leaves_the_site(site, warned, stands):
    """MkDocs counts the warnings of a strict build, and refuses it after its last event."""
    config, counter = SimpleNamespace(site_dir=str(site)), CountHandler(level=logging.WARNING)
    logger = logging.getLogger("mkdocs")
    logger.addHandler(counter)
    try:
        output.on_config(config)
        beside = Path(config.site_dir)
        (beside / "a").mkdir()
        (beside / "a/index.html").write_text("new")
        record = logging.makeLogRecord({"msg": f"Building to {beside}"})
        assert output.in_place.filter(record) and record.msg == f"Building to {site}"
        for _ in range(warned):
            logger.warning("something")
        output.on_post_build_late(config)
    finally:
        logger.removeHandler(counter)
        output.end()
    assert content(site) == stands and os.listdir(site.parent) == ["site"]
    assert warned or config.site_dir == str(site)


def test_where_nothing_can_be_written_beside_it_mkdocs_builds_in_place(site):
    config = SimpleNamespace(site_dir=str(site))
    with mock.patch.object(Path, "mkdir", side_effect=PermissionError):
        output.on_config(config)
    output.on_post_build_late(config)
    output.end()
    assert config.site_dir == str(site) and content(site) == OLD


def test_a_fault_of_the_disk_is_one_line(site):
    config = SimpleNamespace(site_dir=str(site))
    output.on_config(config)
    for error, line in (
        (OSError(28, "No space left on device", f"{config.site_dir}/x"), f"{site}/x: No space left on device; check"),
        (OSError(28, "No space left on device"), "No space left on device; check the path and the disk"),
        (UnicodeDecodeError("utf-8", b"\xe9", 0, 1, "unexpected end of data"), "; save it as UTF-8"),
    ):
        with pytest.raises(PluginError) as refused:
            output.refuse(error)
        assert line in str(refused.value) and "\n" not in str(refused.value)
    output.refuse(ValueError("a fault of ours keeps its place in the code"))
    output.end()
    assert content(site) == OLD and os.listdir(site.parent) == ["site"]


def test_sources_for_another_builder_are_whole_or_not_there(tmp_path, capsys):
    def fails(root, folder):
        (folder / "half").touch()
        raise OSError(28, "No space left on device", str(folder / "half"))

    with mock.patch.object(sources, "_write", fails):
        assert command.main([str(tmp_path / "out")]) == 2
    assert os.listdir(tmp_path) == []
    assert capsys.readouterr().err.endswith("/half: No space left on device; check the path and the disk\n")


READ = """
import mkdocs.config
config = mkdocs.config.load_config("mkdocs.yml")
config.plugins.run_event("startup", command="mike", dirty=False)
print(config.plugins.run_event("config", config).site_dir)
"""


def test_what_only_reads_the_settings_gets_the_folder_that_they_name():
    """mike publishes the folder that it read there, once a process of its own has built the site."""
    asked = subprocess.run([sys.executable, "-c", READ], cwd=ROOT, capture_output=True, text=True, check=True)
    assert asked.stdout.splitlines()[-1] == str(ROOT / "site")
