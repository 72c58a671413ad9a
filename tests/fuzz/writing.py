"""Files that commands write, where the disk is full, fails or is taken away, and where something else stands.

Either the file is there as a whole and nothing else is new, or all is as it was and a line says why.
"""

from __future__ import annotations

import errno
import io
import os
import random
import resource
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from unittest import mock

from macros.catalogue.checkpoints import SHIPPED
from macros.cli.commands import main

from . import Case, is_one_line, within
from .texts import text

FEW = 20
SECONDS = 5.0

CAPITALS = str(SHIPPED["capitals"])
COMMANDS = {
    "schema": ("schema", "--output"),
    "add": ("add", CAPITALS, "--slug", "new", "--output"),
    "run": ("run", CAPITALS, "--tokens", "1,2", "--logits"),
}
STANDS = ("nothing", "file", "link", "link to nothing", "folder", "no folder", "a file for a folder", "device", "other")
CALLS = ("os.fsync", "os.link", "shutil.copymode", "pathlib.Path.replace", "pathlib.Path.mkdir")
ERRORS = ("ENOSPC", "EDQUOT", "EIO", "EROFS", "EACCES", "EPERM", "ENOENT", "EEXIST", "EBUSY", "KeyboardInterrupt")


def draw(rng: random.Random) -> Case:
    case: Case = {"command": rng.choice(sorted(COMMANDS)), "stands": rng.choice(STANDS)}
    case["name"] = rng.choice(("new", "new", "a/b/new", "x" * 255, "x" * 256, text(rng)[:100].replace("..", "__")))
    match rng.randrange(3):
        case 0:
            case["bytes"] = rng.choice((0, 1, 100, 1000, 4096, 10**6))
        case 1:
            case |= {"call": rng.choice(CALLS), "error": rng.choice(ERRORS)}
    return case


def smaller(case: Case) -> Iterator[Case]:
    if case["name"] != "new":
        yield case | {"name": "new"}
    if "call" in case or "bytes" in case:
        yield {key: value for key, value in case.items() if key not in ("call", "error", "bytes")}


@cache
def whole(command: str) -> bytes:
    """What a command writes; what it prints beside has no place here."""
    written: list[bytes] = []
    with mock.patch("macros.engine.files._put", lambda temporary, *_: written.append(temporary.read_bytes())):
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            assert main([*COMMANDS[command], "/tmp/none"]) == 0
    return written[0]


def everything(folder: Path) -> dict[str, object]:
    """What is below a folder: of a file its bytes, of a link where it leads, None of a folder."""
    return {
        os.path.relpath(path, folder): os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in map(Path, _below(folder))
    }


def _below(folder: Path) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        yield from (os.path.join(place, name) for name in (*folders, *names))


def trial(case: Case, folder: Path) -> None:
    expected, target = whole(case["command"]), folder / "w" / case["name"]
    (folder / "w").mkdir()
    try:
        _stands(case["stands"], target)
    except (OSError, ValueError):  # no name of a file
        pass
    if case["stands"] == "device":
        target = Path("/dev/full")
    before, said, status = everything(folder), io.StringIO(), -1
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(io.StringIO()))
        stack.enter_context(redirect_stderr(said))
        if "call" in case:
            error = case["error"]
            raised = KeyboardInterrupt() if error not in dir(errno) else OSError(getattr(errno, error), "as is wanted")
            stack.enter_context(mock.patch(case["call"], side_effect=raised))
        if "bytes" in case:
            stack.callback(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
            resource.setrlimit(resource.RLIMIT_FSIZE, (case["bytes"], limits[1]))
        stack.enter_context(within(SECONDS))
        status = main([*COMMANDS[case["command"]], str(target)])
    after = everything(folder)
    if status == 0:
        new = {name: content for name, content in after.items() if before.get(name, 0) != content}
        assert expected in new.values(), f"not written: {sorted(new)}"
        made = [name for name, content in new.items() if content is not None]
        assert len(made) == 1, f"more than the file is new: {made}"
    else:
        assert after == before, f"not as it was: {sorted(after.items() ^ before.items(), key=str)}"
        if status != 130:
            assert status == 2
            lines = said.getvalue().splitlines()
            assert lines and said.getvalue().endswith("\n")
            for line in lines:
                is_one_line(line)


def _stands(what: str, target: Path) -> None:
    if what == "no folder":
        return
    if what == "a file for a folder" and target.parent.name != "w":
        target.parent.parent.mkdir(parents=True, exist_ok=True)
        target.parent.touch()
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    match what:
        case "file":
            target.write_bytes(b"what stood there")
        case "link":
            target.with_name("linked").write_bytes(b"what stood there")
            target.symlink_to("linked")
        case "link to nothing":
            target.symlink_to("linked")
        case "folder":
            target.mkdir()
        case "other":
            target.with_name(f"{target.name}.other").write_bytes(b"another")
