"""Builds are reproducible: in another folder, locale and time zone, with other hashes, on another day, by one process
as by two, with what editors leave beside open files."""

import shutil
import time
from pathlib import Path

import pytest
from copies import ROOT, build, small_site

# The clock of a process, by so many days ahead; Python reads this module before anything else.
AHEAD = """
import datetime, time

SECONDS = {days} * 86400
real_time, real_now = time.time, datetime.datetime.now
time.time = lambda: real_time() + SECONDS


class Date(datetime.date):
    @classmethod
    def today(cls):
        return real_now().date() + datetime.timedelta(seconds=SECONDS)


class DateTime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return real_now(tz) + datetime.timedelta(seconds=SECONDS)


datetime.date, datetime.datetime = Date, DateTime
"""


def built(folder: Path, days: int, **variables: str) -> dict[str, bytes]:
    """Every file of a build of the project, by its path, on a day so far ahead."""
    small_site(folder)
    (folder / "docs/reference").mkdir()
    shutil.copy(ROOT / "docs/reference/changelog.md", folder / "docs/reference/changelog.md")
    for name in ("#index.md#", "assets/site.css~", "overrides/#sitemap.xml#", "overrides/partials/path.html.swp"):
        if days:
            (folder / "docs" / name).write_text("half {{ ", "utf-8")
    clock = folder.parent / f"clock-{days}"
    clock.mkdir()
    (clock / "sitecustomize.py").write_text(AHEAD.replace("{days}", str(days)), "utf-8")
    paths = f"{clock}:{folder}"
    done = build(folder, SITE_URL="https://example.org/", PYTHONPATH=paths, **variables)
    assert done.returncode == 0, done.stderr[-3000:]
    site = folder / "site"
    return {p.relative_to(site).as_posix(): p.read_bytes() for p in site.rglob("*") if p.is_file()}


@pytest.mark.share(18, of="copies of the project")
@pytest.mark.processes
@pytest.mark.slow("the site is built twice")
def test_two_builds_are_the_same_to_the_last_byte(tmp_path):
    first = built(tmp_path / "here", 0, PYTHONHASHSEED="1", LC_ALL="C.UTF-8", TZ="UTC", PROCESSES="")
    time.sleep(1)
    second = built(
        tmp_path / "elsewhere" / "a folder",
        400,
        PYTHONHASHSEED="2",
        LC_ALL="de_DE.UTF-8",
        LANG="tr_TR.UTF-8",
        TZ="Pacific/Kiritimati",
        HOME=str(tmp_path),
        COLUMNS="40",
    )
    assert len(first) > 100 and first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    assert b"<lastmod>" in first["sitemap.xml"]
