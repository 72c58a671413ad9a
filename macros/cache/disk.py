"""Results on disk that outlive the process, in `.cache/`, keyed by the code and the presets that they were computed
from. Saves the next build 12 s of 17.

The dependencies of a result are recorded (memory.py), so a build recomputes only the results that an edited preset
affects; after an edit of the code, or with another version of a library, it recomputes everything. The folder is safe
to delete: a result that is missing, unreadable or doubtful is computed again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import sqlite3
import sys
import tempfile
import time
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, cached_property, wraps
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec, TypeVar, cast

from .memory import Dependency, depends_on, tracking

P = ParamSpec("P")
T = TypeVar("T")
States = Mapping[Path, tuple[str, tuple[int, ...]]]  # each file's digest and (modification time in ns, …)

Record = tuple[bytes, object, list[Dependency]]  # key, result, dependencies

PRESETS = Path(__file__).parent.parent / "presets"
STARTED = time.time_ns()

LAYOUT = "CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, code TEXT, used TEXT, state TEXT, value BLOB)"


def digest(*parts: object) -> str:
    return hashlib.blake2b("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


@cache
def installed_versions() -> tuple[str, ...]:
    """Python and all installed packages, with their versions."""
    return sys.version, *sorted({f"{d.name} {d.version}" for d in importlib.metadata.distributions()})


def _close(file: BinaryIO) -> None:
    with suppress(OSError):  # what was not written yet is not needed any more
        file.close()


class SpillFile:
    """Data that is not needed for a while, moved to a private file. Raises OSError if there is no space for it."""

    @cached_property
    def file(self) -> BinaryIO:
        made = cast(BinaryIO, tempfile.TemporaryFile())
        weakref.finalize(self, _close, made)
        return made

    def put(self, content: bytes) -> tuple[int, int]:
        """Append a string; returns its offset and length."""
        start = self.file.seek(0, os.SEEK_END)
        return start, self.file.write(content)

    def flush(self) -> None:
        """Write buffered data, before a fork."""
        self.file.flush()

    def get(self, place: tuple[int, int]) -> bytes:
        start, length = place
        self.file.flush()
        if hasattr(os, "pread"):  # a forked process shares the file's position
            return os.pread(self.file.fileno(), length, start)
        self.file.seek(start)
        return self.file.read(length)

    def clear(self) -> None:
        self.file.truncate(0)


class Store:
    """The cached results for one state of all files; `now` reads that state again, and without it a store is read-only.
    In a live preview, whose pages come and go, every result also depends on the set of pages."""

    def __init__(
        self, file: Path, states: States, now: Callable[[], States] | None, is_preview: bool, how: object = None
    ):
        self.files, self.now, self.is_preview = states, now, is_preview
        self.new: dict[bytes, tuple[str, str, tuple[int, int]]] = {}
        self.values = SpillFile()  # of the new results
        self.states: dict[str, str] = {}  # by the dependencies, as JSON
        self.presets: dict[str, list[str]] = {}  # by slug, the digests of its file
        self.places: list[str] = []
        folder = f"{PRESETS}{os.sep}"
        for path in sorted((path for path in states if str(path).startswith(folder)), key=str):
            self.presets.setdefault(path.stem, []).append(states[path][0])
            self.places.append(str(path).removeprefix(folder))
        self.code = digest(*installed_versions(), how, *sorted(self.seen(file.parent)))
        self.file = file
        self.database: sqlite3.Connection | None = None
        try:
            file.parent.mkdir(exist_ok=True)
            self.database = sqlite3.connect(file, timeout=5, check_same_thread=False)
            self.database.execute(LAYOUT)
        except (OSError, sqlite3.Error) as error:
            self.now = None
            self.drop_if_damaged(error)

    def is_empty(self) -> bool:
        """Whether it has no results of the current code."""
        if self.database is None:
            return True
        with suppress(sqlite3.Error):
            return self.database.execute("SELECT 1 FROM results WHERE code = ?", (self.code,)).fetchone() is None
        return True

    def seen(self, root: Path) -> Iterable[str]:
        """Everything other than presets that a result may depend on: for a page, its existence."""
        folder = f"{PRESETS}{os.sep}"
        for path, (content, _) in self.files.items():
            if not str(path).startswith(folder):
                is_page = path.suffix == ".md" and path.parent.name != "includes"
                yield f"{os.path.relpath(path, root)} {'' if is_page else content}"

    def state(self, used: str) -> str:
        """The current state of a result's presets."""
        if used not in self.states:
            self.states[used] = digest(*(self.digest_of(kind, name) for kind, name in json.loads(used)))
        return self.states[used]

    def digest_of(self, kind: str, name: str | None) -> str:
        if kind == "preset":
            return digest(*self.presets.get(str(name), ()))
        return digest(*self.places)

    def get(self, key: bytes) -> tuple[Any, list[Dependency]] | None:
        """A result with its dependencies."""
        if self.database is None:
            return None
        try:
            asked = "SELECT used, state, value FROM results WHERE key = ? AND code = ?"
            row = self.database.execute(asked, (key, self.code)).fetchone()
            if row is None or self.state(row[0]) != row[1]:
                return None
            return decode(zlib.decompress(row[2])), [(kind, name) for kind, name in json.loads(row[0])]
        except (sqlite3.Error, zlib.error, ValueError, TypeError):  # damaged
            return None

    def put(self, key: bytes, value: object, used: Iterable[Dependency]) -> None:
        used = {("preset" if kind == "beside" else kind, name) for kind, name in used}
        if ("about presets", "") in used:
            used = {one for one in used if one[0] != "about presets"} | {("preset", slug) for slug in self.presets}
        if self.now and all(kind in ("preset", "presets") for kind, _ in used):
            uses = json.dumps(sorted(used, key=str))
            try:
                place = self.values.put(zlib.compress(encode(value), 1))
            except OSError:  # the disk is full
                self.now = None
            else:
                self.new[key] = uses, self.state(uses), place

    def close(self) -> None:
        """Write new results, unless a file was saved since this process started to read."""
        try:
            if self.database is not None and self.new and not self.is_in_doubt():
                with self.database:
                    self.database.execute("DELETE FROM results WHERE code != ?", (self.code,))
                    rows = ((key, self.code, *row, self.values.get(place)) for key, (*row, place) in self.new.items())
                    self.database.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?)", rows)
            if self.database is not None:
                self.database.close()
        except (OSError, sqlite3.Error) as error:
            self.drop_if_damaged(error)

    def drop_if_damaged(self, error: Exception) -> None:
        """Remove a file that is not a database, or a damaged one: the next build creates another."""
        if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
            with suppress(OSError):
                self.file.unlink()

    def is_in_doubt(self) -> bool:
        states = self.now() if self.now else {}
        return states != self.files or any(then[0] > STARTED for _, then in states.values())


TEXT = b"="  # marks plain text; anything else is JSON


def encode(value: object) -> bytes:
    """A value as bytes: plain text unchanged, anything else as JSON."""
    return TEXT + value.encode() if type(value) is str else json.dumps(value, ensure_ascii=False).encode()


def decode(content: bytes) -> Any:
    """The inverse of `encode`."""
    return content[1:].decode() if content[:1] == TEXT else json.loads(content)


_wholes: list[str] = []  # under way
_unused: list[Store] = []  # of the parent process: closing one here would write to its database
_stores: list[Store | Records] = []  # of the current build, if it caches results


def is_asked() -> bool:
    """Whether builds cache results on disk: not with KEPT=no."""
    return os.environ.get("KEPT") != "no"


def open_store(
    file: Path, states: States, now: Callable[[], States] | None, is_preview: bool = False, how: object = None
) -> None:
    """Open the store for a build, unless caching is off; `how` adds to the key. A live preview's builds of one state
    share one store."""
    if is_preview and any(isinstance(one, Store) and one.files == states for one in _stores):
        return
    _stores.clear()  # from a failed build, whose results are dropped
    if is_asked():
        _stores.append(Store(file, states, now, is_preview, how))


def close_store() -> None:
    """Close the store at the end of the build."""
    while _stores:
        if isinstance(store := _stores.pop(), Store):
            store.close()


PACKAGE = Path(__file__).parent.parent


def cache_folder() -> Path:
    """Where the user's programs keep what can be computed again."""
    said = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(said) if said else Path.home() / ".cache"


def _package_states() -> States:
    """The size and modification time of every package file: a command finishes before all of them could be read."""
    found: dict[Path, tuple[str, tuple[int, ...]]] = {}
    for folder, folders, names in os.walk(PACKAGE):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            path = Path(folder, name)
            with suppress(OSError):
                state = path.stat()
                found[path] = f"{state.st_size} {state.st_mtime_ns}", (state.st_mtime_ns, state.st_size)
    return found


@contextmanager
def for_commands() -> Iterator[None]:
    """Use the results of earlier commands, from a folder of the user's own; not during a build, if caching is off, or
    if there can be no such folder."""
    if _stores or not is_asked():
        yield
        return
    try:
        folder = cache_folder() / "every-parameter"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, no room
        yield
        return
    open_store(folder / f"{digest(PACKAGE)}.sqlite", _package_states(), _package_states)
    try:
        yield
    finally:
        close_store()


class Records:
    """Stands in for a store in a second process, and collects the results for the first one's."""

    is_preview = False

    def __init__(self):
        self.found: list[Record] = []

    def get(self, key: bytes) -> None:
        pass

    def put(self, key: bytes, value: object, used: Iterable[Dependency]) -> None:
        self.found.append((key, value, list(used)))


def is_cold() -> bool:
    """Whether there are no results of earlier builds."""
    return not any(isinstance(one, Store) and not one.is_empty() for one in _stores)


def record() -> list[Record]:
    """Collect the results of this forked process from now on, instead of writing them to the store."""
    if not _stores:
        return []
    _unused.extend(one for one in _stores if isinstance(one, Store))
    records = Records()
    _stores[:] = [records]
    return records.found


def take_over(records: Iterable[Record]) -> None:
    """Store the results of another process."""
    for one in records if _stores else ():
        _stores[-1].put(*one)


def get_or_compute(name: str, arguments: object, compute: Callable[[], T], is_part: bool = False) -> T:
    """A cached result, or a new one: a JSON value or a tuple of such, from a string or from arguments whose `repr` is
    complete. A part of a larger result under computation is neither stored nor looked up on its own."""
    if not _stores or (is_part and _wholes):
        return compute()
    store = _stores[-1]
    key = bytes.fromhex(digest(name, arguments if type(arguments) is str else repr(arguments)))
    if (kept := store.get(key)) is not None:
        value, used = kept
        for one in used:
            depends_on(*one)
        if store.is_preview:
            depends_on("pages")
        return cast(T, tuple(value) if isinstance(value, list) else value)
    with tracking() as used:
        value = compute()
    store.put(key, value, used)
    return value


def get_or_compute_whole(name: str, arguments: object, compute: Callable[[], T]) -> T:
    """Like `get_or_compute`, for a result of many parts, which are not stored separately."""

    def computed() -> T:
        _wholes.append(name)
        try:
            return compute()
        finally:
            _wholes.pop()

    return get_or_compute(name, arguments, computed)


def cached_on_disk(function: Callable[P, T]) -> Callable[P, T]:
    """A function of plain arguments whose results outlive the process."""

    @wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        name = f"{function.__module__}.{function.__qualname__}"
        return get_or_compute(name, (args, sorted(kwargs.items())), lambda: function(*args, **kwargs))

    return wrapper
