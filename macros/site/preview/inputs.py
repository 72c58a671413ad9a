"""The files that the site is made from: which were saved since a build last took them in."""

from __future__ import annotations

import hashlib
from pathlib import Path

from .modules import PACKAGE, ROOT

# Besides macros/ and docs/: what the pages say was checked comes from here.
CHECKED = [ROOT / "tests/golden"]

BIG = 1 << 20  # bytes: a larger file is known by its time, not by its contents


class Inputs:
    """Digests of contents, not times: two saves within one tick of the clock, or of the same size, are still two."""

    def __init__(self, config):
        self.taken: dict[Path, str] = {}  # each file's digest when it was last taken in
        self.states: dict[Path, tuple[str, tuple]] = {}
        self.follow(config)

    def follow(self, config) -> None:
        self.files = [Path(config.config_file_path)] if config.config_file_path else []
        self.folders = [PACKAGE, *CHECKED, Path(config.docs_dir)]
        theme = config.theme.custom_dir
        if theme and not Path(theme).is_relative_to(config.docs_dir):
            self.folders.append(Path(theme))

    def read(self) -> dict[Path, tuple[str, tuple]]:
        """Each file's digest, and when it was written."""
        states = {}
        for path in [*self.files, *(p for folder in self.folders for p in folder.rglob("*"))]:
            if path.name.startswith(".") or path.suffix == ".pyc":
                continue
            try:
                if path.is_file():
                    stat = path.stat()
                    written = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
                    if stat.st_size > BIG:
                        states[path] = str(written), written
                    else:
                        states[path] = hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest(), written
            except OSError:  # deleted meanwhile
                pass
        return states

    def begin(self) -> None:
        """Before anything is read for a build."""
        self.states = self.read()

    @property
    def are_taken_in(self) -> bool:
        """Whether nothing was saved between the builds before and the beginning of this one."""
        return self.taken == digests(self.states)

    def take_in(self) -> dict[Path, bool]:
        """What was saved since the last time, and whether that added or deleted the file."""
        before, self.taken = self.taken, digests(self.states)
        saved = [p for p in before.keys() | self.taken.keys() if before.get(p) != self.taken.get(p)]
        return {path: path not in before or path not in self.taken for path in saved}

    def end(self) -> None:
        """What was saved while it was being read is not trusted, even if it is back to what it was."""
        now = self.read()
        self.taken |= {path: "" for path in self.taken if now.get(path) != self.states.get(path)}


def digests(states: dict[Path, tuple[str, tuple]]) -> dict[Path, str]:
    return {path: digest for path, (digest, _) in states.items()}
