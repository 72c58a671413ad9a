"""A folder that is written next to the one that it replaces, and replaces it once it is complete.

If the process is killed, the previous folder stays; the next one removes the leftovers.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path

from ..engine.errors import Problem

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

ABANDONED = 24 * 3600  # seconds after which a folder counts as abandoned, if it cannot be locked


class WholeFolder:
    """A new `target`: the content of `folder` is `put` in its place, or `drop`ped."""

    def __init__(self, target: str | os.PathLike[str]):
        """Raise `Problem` if a file is there, and OSError if nothing can be written next to it."""
        self.target = Path(os.path.realpath(target))
        if os.path.lexists(self.target) and not self.target.is_dir():
            raise Problem("is a file, but has to be a folder", "give another path, or remove it", str(target))
        self.target.parent.mkdir(parents=True, exist_ok=True)
        for place in {self.target, Path(os.path.abspath(target))}:  # a link may have replaced the folder
            _tidy(place)
        while True:
            self.folder = self._beside("new")
            self.folder.mkdir()
            with suppress(BlockingIOError, FileNotFoundError):  # another process removed it before it was locked
                self.held = _hold(self.folder)
                break

    def put(self) -> None:
        """Replace the target. Hidden files in it (`.git`, `.nojekyll`) stay, as with MkDocs."""
        old = self._beside("old")
        if self.target.exists():
            shutil.copymode(self.target, self.folder)
        while True:
            try:
                self.target.rename(old)
            except FileNotFoundError:
                pass
            except OSError:  # a mount point
                self._put_content()
                break
            try:
                self.folder.rename(self.target)
                break
            except OSError:
                if not self.target.exists():
                    raise
                _remove(old, self.target)  # another folder appeared in the meantime, and is replaced
        _remove(old, self.target)
        self._let_go()

    def drop(self) -> None:
        """Leave the previous folder in place."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._let_go()
        _tidy(self.target)

    def _beside(self, kind: str) -> Path:
        return self.target.with_name(f"{_start(self.target, kind)}{secrets.token_hex(4)}")

    def _put_content(self) -> None:
        for path in self.target.iterdir():
            if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                shutil.rmtree(path)
            elif not path.name.startswith("."):
                path.unlink()
        for path in self.folder.iterdir():
            shutil.move(path, self.target / path.name)
        self.folder.rmdir()

    def _let_go(self) -> None:
        if self.held is not None:
            os.close(self.held)
            self.held = None


def _start(target: Path, kind: str) -> str:
    return f".{target.name}.{kind}-"


def _tidy(target: Path) -> None:
    """Remove leftovers of killed processes, and restore a folder that one of them was replacing."""
    for path in target.parent.iterdir():
        if path.name.startswith(_start(target, "old")):
            with suppress(OSError):
                if not target.exists():
                    path.rename(target)
            _remove(path, target)
        elif path.name.startswith(_start(target, "new")):
            # otherwise another process is writing there, or has cleaned up
            with suppress(BlockingIOError, FileNotFoundError):
                held = _hold(path)
                if held is not None or time.time() - path.stat().st_mtime > ABANDONED:
                    shutil.rmtree(path, ignore_errors=True)
                if held is not None:
                    os.close(held)


def _remove(old: Path, target: Path) -> None:
    """Remove the replaced folder, and move its hidden files into the new one."""
    for path in old.glob(".*"):
        if not os.path.lexists(target / path.name):
            with suppress(OSError):
                path.rename(target / path.name)
    shutil.rmtree(old, ignore_errors=True)


def _hold(folder: Path) -> int | None:
    """Lock a folder against cleanup by other processes, until it is closed or this process ends; None without file
    locks. Raises BlockingIOError if another process holds it."""
    if fcntl is None:
        return None
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.stat()
    except OSError as error:
        os.close(held)
        if isinstance(error, BlockingIOError | FileNotFoundError):
            raise
        return None
    return held
