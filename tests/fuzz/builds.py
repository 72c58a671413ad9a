"""Builds of a small site that are killed, come twice at once, meet a full disk or one that is only read; with caches
and checkouts as somebody may have them.

The site is what a clean build gives, or the one that stood there and a line; and the next build is a clean one.
"""

from __future__ import annotations

import atexit
import os
import random
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from copies import build, environment, small_site

from . import Case, is_one_line

SECONDS = 120  # for a build, on a machine that does much else

PAGES = {
    "index.md": '# Start\n\nGPT-2 has {{ params("gpt2") }} parameters. [Next](guide/one.md#a-section)\n',
    "guide/one.md": '# One\n\n## A section\n\n{{ value("gpt2", "d_model") }} and $L \\cdot D$.\n',
    "models/index.md": "# Models\n\n{{ catalogue() }}\n",
}
NAV = "\nnav:\n  - Home: index.md\n  - guide/one.md\n  - Models:\n      - models/index.md\n"
OLD = {"index.html": b"old", "old/index.html": b"old"}
KEPT = ".cache/views.sqlite"

PLACES = (
    "a b",
    "\u00fcber\u2013x",
    "[a-z]",
    "it's",
    "#1",
    "100%",
    "{{ x }}",
    "x.old-1",
    "-x",
    "a&b;c",
    "$HOME",
    "x" * 150,
)
NAMES = (".#{}", "#{}#", "{}~", ".{}.swp", "{}___jb_tmp___", "{}.orig")


class Setting(NamedTuple):
    """How a build is called: in which folder, with which options and variables."""

    folder: Path
    options: list[str]
    variables: dict[str, str]
    is_elsewhere: bool = False


class Base(NamedTuple):
    """A checkout that was built once, what that gave, and how long it took."""

    folder: Path
    site: dict[str, bytes]
    seconds: float


def contents(site: Path) -> dict[str, bytes]:
    """Every file of a site; what gzip adds to the sitemap is left out."""
    return {
        path.relative_to(site).as_posix(): path.read_bytes()
        for path in site.rglob("*")
        if path.is_file() and path.suffix != ".gz"
    }


@cache
def base() -> Base:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-base-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    small_site(folder / "x", presets=("gpt/gpt2",), pages=PAGES, nav=NAV)
    start = time.monotonic()
    built = build(folder / "x")
    seconds = time.monotonic() - start
    assert built.returncode == 0, built.stderr[-3000:]
    site = contents(folder / "x/site")
    shutil.rmtree(folder / "x/site")
    return Base(folder / "x", site, seconds)


# What a checkout, its cache or the machine may be like


def cache_none(at: Setting, rng: random.Random) -> None:
    shutil.rmtree(at.folder / ".cache")


def cache_half(at: Setting, rng: random.Random) -> None:
    file = at.folder / KEPT
    content = file.read_bytes()
    file.write_bytes(content[: rng.randrange(len(content))])


def cache_with_holes(at: Setting, rng: random.Random) -> None:
    content = bytearray((at.folder / KEPT).read_bytes())
    for _ in range(rng.choice((1, 10, 1000))):
        content[rng.randrange(len(content))] = rng.randrange(256)
    (at.folder / KEPT).write_bytes(content)


def cache_of_another(at: Setting, rng: random.Random) -> None:
    """Somebody else's database, with a table of the same name."""
    (at.folder / KEPT).unlink()
    with sqlite3.connect(at.folder / KEPT) as database:
        database.execute("CREATE TABLE results (key TEXT, x INT)")
        database.execute("INSERT INTO results VALUES ('a', 1)")


def cache_old(at: Setting, rng: random.Random) -> None:
    """Of the same code in its own words: every result is another, none may be taken."""
    with sqlite3.connect(at.folder / KEPT) as database:
        database.execute("UPDATE results SET code = 'of another edition'")


def cache_is_a_folder(at: Setting, rng: random.Random) -> None:
    (at.folder / KEPT).unlink()
    (at.folder / KEPT).mkdir()


def cache_is_a_file(at: Setting, rng: random.Random) -> None:
    cache_none(at, rng)
    (at.folder / ".cache").touch()


def cache_locked(at: Setting, rng: random.Random) -> None:
    """A journal that somebody left who was killed."""
    (at.folder / f"{KEPT}-journal").write_bytes(rng.randbytes(rng.choice((0, 28, 5000))))


def no_home(at: Setting, rng: random.Random) -> None:
    at.variables["HOME"] = rng.choice(("", "/nonexistent", "/dev/null"))


def no_words(at: Setting, rng: random.Random) -> None:
    """A terminal and a system that know ASCII alone."""
    at.variables.update(LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0", PYTHONIOENCODING="ascii")


def a_repository(at: Setting, rng: random.Random) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=at.folder, check=True)


def as_windows_writes(at: Setting, rng: random.Random) -> None:
    pages = [path for path in at.folder.glob("docs/**/*.md") if path.is_file()]  # not an editor's link to nothing
    for path in [*pages, at.folder / "mkdocs.yml", *at.folder.glob("macros/views/**/*.toml")]:
        marked = "utf-8-sig" if path.suffix == ".md" and rng.random() < 0.5 else "utf-8"
        path.write_text(path.read_text("utf-8"), marked, newline="\r\n")


def with_editors(at: Setting, rng: random.Random) -> None:
    """What editors lay beside the files that they have open."""
    files = [path for folder in ("docs", "macros") for path in (at.folder / folder).rglob("*.*") if path.is_file()]
    for path in rng.sample(sorted(files), 20):
        if not path.name.startswith((".", "#")):
            for name in rng.sample(NAMES, 3):
                beside = path.with_name(name.format(path.name))
                if name == ".#{}":
                    beside.symlink_to("author@desk.1:2")
                else:
                    beside.write_bytes(rng.choice((b"", b"{{ half(", b"\xff\xfe", path.read_bytes())))
    (at.folder / "docs/4913").touch()


def at_another_time(at: Setting, rng: random.Random) -> None:
    when = rng.choice((0, 1, 4_000_000_000))
    for path in at.folder.rglob("*"):
        os.utime(path, (when, when), follow_symlinks=False)


def with_a_site(at: Setting, rng: random.Random) -> None:
    """With something hidden in its folder, or a link in its place."""
    if rng.random() < 0.5:
        (at.folder / "site").rename(at.folder.parent / "its site")
        (at.folder / "site").symlink_to(at.folder.parent / "its site")
    else:
        (at.folder / "site").chmod(0o700)


def with_left_over(at: Setting, rng: random.Random) -> None:
    """By a build that was killed long ago."""
    for n in range(2):
        (at.folder / f".site.new-{n}/a").mkdir(parents=True)
        (at.folder / f".site.new-{n}/a/index.html").write_bytes(b"half")


DISTURBED: dict[str, Callable[[Setting, random.Random], None]] = {
    one.__name__: one
    for one in (
        *(cache_none, cache_half, cache_with_holes, cache_of_another, cache_old, cache_is_a_folder, cache_is_a_file),
        *(cache_locked, no_home, no_words, a_repository, as_windows_writes, with_editors, at_another_time),
        *(with_a_site, with_left_over),
    )
}
HOW = ("plain", "killed", "killed", "killed", "two", "two", "full", "full", "read", "edited", "elsewhere")


def draw(rng: random.Random) -> Case:
    caches = [name for name in sorted(DISTURBED) if name.startswith("cache_")]
    others = sorted(DISTURBED.keys() - set(caches))
    disturbed = rng.sample(caches, rng.choice((0, 1))) + rng.sample(others, rng.choice((0, 1, 1, 2)))
    case: Case = {"seed": rng.randrange(10**6), "disturbed": disturbed, "how": rng.choice(HOW)}
    if rng.random() < 0.3:
        case["place"] = rng.choice(PLACES)
    match case["how"]:
        case "killed":
            case |= {"signal": rng.choice(("SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")), "after": rng.uniform(0, 1.2)}
        case "two":
            case |= {"after": rng.choice((0, rng.uniform(0, 1.2))), "killed": rng.choice((None, rng.uniform(0, 1.2)))}
        case "full":
            case |= {"bytes": rng.choice((0, 1, 100, 5_000, 30_000, 100_000, 500_000))}
        case "edited":
            case |= {"after": rng.uniform(0, 1)}
    return case


def smaller(case: Case) -> Iterator[Case]:
    for n in range(len(case["disturbed"])):
        yield case | {"disturbed": case["disturbed"][:n] + case["disturbed"][n + 1 :]}
    if "place" in case:
        yield {key: value for key, value in case.items() if key != "place"}


def started(at: Setting, limit: int | None = None, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """`mkdocs build`, under way; with a limit, no file grows longer."""

    def limited():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "mkdocs", "build", *at.options],
        cwd="/" if at.is_elsewhere else at.folder,
        env=environment(**{"SITE_URL": "", "PYTHONPATH": str(at.folder), **at.variables}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="surrogateescape",
        preexec_fn=limited,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit status and what it said."""
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, err + out


def trial(case: Case, folder: Path) -> None:
    rng, clean = random.Random(case["seed"]), base()
    place = folder / case.get("place", "x")
    shutil.copytree(clean.folder, place)
    site = place / "site"
    for name, content in OLD.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(content)
    (site / ".hidden").write_bytes(b"hidden")
    hidden = {".hidden": b"hidden"}
    old, new = OLD | hidden, clean.site | hidden
    is_elsewhere = case["how"] == "elsewhere"
    options = ["-f", str(place / "mkdocs.yml")] if is_elsewhere else []
    at = Setting(place, options, {}, is_elsewhere)
    for name in case["disturbed"]:
        DISTURBED[name](at, rng)

    def is_whole() -> None:
        """A clean build's site, and nothing beside it."""
        _is(contents(site), new)
        left = [path.name for path in place.iterdir() if path.name.startswith(".site.")]
        assert not left, f"left over: {left}"

    def works(process: subprocess.Popen[str]) -> None:
        status, said = ended(process)
        assert status == 0, said[-3000:]

    match case["how"]:
        case "killed":
            process = started(at)
            time.sleep(case["after"] * clean.seconds)
            process.send_signal(getattr(signal, case["signal"]))
            status, said = ended(process)
            assert status or contents(site) == new, said
            if case["signal"] == "SIGINT" and status > 0:
                _is_told(said, "Aborted!")
            _is(contents(site), old, new)
        case "two":
            one = started(at)
            time.sleep(case["after"] * clean.seconds)
            other = started(at)
            if case["killed"] is not None:
                time.sleep(case["killed"] * clean.seconds)
                one.kill()
                ended(one)
                _is(contents(site), old, new)
            else:
                works(one)
            works(other)
            _is(contents(site), new)
        case "full":
            status, said = ended(started(at, case["bytes"]))
            if status:
                _is_told(said, "File too large", "No usable temporary directory")
                _is(contents(site), old)
            else:
                is_whole()
        case "read":
            if "with_a_site" in case["disturbed"]:  # it is written to another place
                return
            with _only_read(place) as prefix:
                status, said = ended(started(at, prefix=prefix))
                _is_told(said, "ermission denied")
                assert status == 1
                _is(contents(site), old)
                works(started(at._replace(options=[*options, "-d", str(folder / "to")]), prefix=prefix))
            _is(contents(folder / "to"), clean.site)
        case "edited":
            preset = place / "macros/presets/gpt/gpt2.toml"
            good = preset.read_bytes()
            process = started(at)
            time.sleep(case["after"] * clean.seconds)
            preset.write_bytes(good.replace(b'name = "GPT-2', b'name = "Another'))
            ended(process)
            preset.write_bytes(good)
    works(started(at))
    is_whole()


def _is(found: dict[str, bytes], *expected: dict[str, bytes]) -> None:
    """Raise unless a site is one of these."""
    if found not in expected:
        nearest = max(expected, key=lambda one: len(one.items() & found.items()))
        different = sorted(name for name in found.keys() | nearest.keys() if found.get(name) != nearest.get(name))
        raise AssertionError(f"{len(different)} files are not as they were: {different[:10]}")


def _is_told(said: str, *why: str) -> None:
    """Raise unless a build that ended says one of these reasons, in its last line and in no traceback."""
    line = ["nothing", *filter(None, map(str.strip, said.splitlines()))][-1]
    assert "Traceback" not in said, said[-3000:]
    assert any(one in line for one in why), said[-3000:]
    is_one_line(line)


class _only_read:
    """A folder to which this process' own may not write, though it may be root's."""

    def __init__(self, folder: Path):
        self.paths = [path for path in (folder, *folder.rglob("*")) if not path.is_symlink()]

    def __enter__(self) -> tuple[str, ...]:
        self.modes = [path.stat().st_mode for path in self.paths]
        for path, mode in zip(self.paths, self.modes):
            path.chmod(stat.S_IMODE(mode) & ~0o222)
        return ("setpriv", "--bounding-set=-dac_override") if os.geteuid() == 0 else ()

    def __exit__(self, *_) -> None:
        for path, mode in zip(self.paths, self.modes):
            path.chmod(stat.S_IMODE(mode))
