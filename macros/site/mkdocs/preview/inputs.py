"""The files that the site is built from, and those saved since the last build read them."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISREG

from mkdocs.exceptions import PluginError

from ...editors import is_an_editors
from .modules import PACKAGE, ROOT

# In addition to macros/ and docs/: the sources of the reported checks.
CHECKED = [ROOT / "tests/golden"]

BIG = 1 << 20  # bytes: a larger file is identified by its modification time, not by its content
QUIET = 2_000_000_000  # ns: a file this much older than its reading gets a new modification time if it is written again


class Inputs:
    """Compares digests of contents, not times, so that two saves within one tick of the clock or of equal size are
    distinguished."""

    def __init__(self, config):
        self.taken: dict[Path, str] = {}  # each file's digest at the last build
        self.states: dict[Path, tuple[str, tuple]] = {}
        self.known: dict[Path, tuple[str, tuple]] = {}  # the last reading, and its time
        self.known_at = 0
        self.paths: dict[str, Path] = {}  # thousands of objects, reused between readings
        self.follow(config)

    def follow(self, config) -> None:
        self.files = [Path(config.config_file_path)] if config.config_file_path else []
        self.folders = [PACKAGE, *CHECKED, Path(config.docs_dir)]
        theme = config.theme.custom_dir
        if theme and not Path(theme).is_relative_to(config.docs_dir):
            self.folders.append(Path(theme))

    def read(self) -> dict[Path, tuple[str, tuple]]:
        """Each file's digest, and its modification time."""
        states, now = {}, time.time_ns()
        for name in [*map(str, self.files), *(name for folder in self.folders for name in names_below(folder))]:
            path = self.paths.get(name) or self.paths.setdefault(name, Path(name))
            try:
                stat = os.stat(name)
                if not S_ISREG(stat.st_mode):
                    continue
                written = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino)
                before = self.known.get(path)
                if before and before[1] == written and max(written[:2]) + QUIET < self.known_at:
                    states[path] = before
                elif stat.st_size > BIG:
                    states[path] = str(written), written
                else:
                    states[path] = digest(path), written
            except OSError:  # deleted meanwhile
                pass
        self.known, self.known_at = states, now
        return states

    def begin(self, states: dict[Path, tuple[str, tuple]] | None = None) -> None:
        """Start a build before anything is read, from a reading that was just made if there is one."""
        self.states = states or self.read()

    @property
    def are_taken_in(self) -> bool:
        """Whether nothing was saved between the earlier builds and the start of this one."""
        return self.taken == digests(self.states)

    def take_in(self) -> dict[Path, bool]:
        """The files saved since the last time, and whether a file was added or deleted."""
        before, self.taken = self.taken, digests(self.states)
        saved = [p for p in before.keys() | self.taken.keys() if before.get(p) != self.taken.get(p)]
        return {path: path not in before or path not in self.taken for path in saved}

    def end(self, states: dict[Path, tuple[str, tuple]] | None = None) -> None:
        """End a build. A file that was saved while it was being read is not trusted, even if its content is
        unchanged."""
        now = states or self.read()
        self.taken |= {path: "" for path in self.taken if now.get(path) != self.states.get(path)}


def digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def below(folder: Path) -> Iterator[Path]:
    """Every file below a folder, except editor, hidden, and compiled files."""
    return map(Path, names_below(folder))


def names_below(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_an_editors(name)]
        for name in names:
            if not is_an_editors(name) and not name.endswith(".pyc"):
                yield os.path.join(place, name)


def refuse_linked_folders(config) -> None:
    """End a build if links lead back, or out of the project. MkDocs follows them before anybody can leave them out:
    two that lead back give it 2^40 folders to read. Raises PluginError.
    """
    docs, project = (
        os.path.realpath(path) for path in (config.docs_dir, os.path.dirname(config.config_file_path or ""))
    )
    if found := next(_endless(config.docs_dir, frozenset([docs]), (docs, project)), None):
        to = os.path.relpath(os.path.realpath(found), project)
        name = os.path.relpath(os.path.join(os.path.realpath(os.path.dirname(found)), os.path.basename(found)), project)
        if to.startswith(".."):
            raise PluginError(f"{name}: it is a link to a folder outside of the project; copy the folder into docs/")
        raise PluginError(f"{name}: it is a link to {to}, a folder around it: reading it has no end; delete the link")


def _endless(folder: str, around: frozenset[str], roots: tuple[str, str]) -> Iterator[str]:
    """The links to folders that contain them, or that are outside the roots."""
    with suppress(OSError), os.scandir(folder) as entries:  # MkDocs passes over what it cannot read
        for entry in entries:
            if is_an_editors(entry.name) or not entry.is_dir():
                continue
            real = os.path.realpath(entry.path)
            if real in around or not any(os.path.commonpath([real, root]) == root for root in roots):
                yield entry.path
            else:
                yield from _endless(entry.path, around | {real}, roots)


def digests(states: dict[Path, tuple[str, tuple]]) -> dict[Path, str]:
    return {path: digest for path, (digest, _) in states.items()}
