"""What each option of a command changes, as approved text: what a line prints, and the lines that differ with each."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shlex
from collections.abc import Iterator

from macros.cli import arguments, commands, printing

from .answers import digest

SHOWN = 90  # characters of the first line that differs, before the digest of all that do
# Values of an option by what it takes; a wrong one ends each row.
VALUES = {
    "N": ("3", "4", "2k", "0"),
    "FORMAT": ("int8", "Q4_K_M", "int3"),
    "TYPE": ("fp8", "q8_0", "int3"),
    "MACHINE": ("a100-40gb", "h10"),
    "WIDTHxHEIGHT": ("640x480", "640"),
    "SECONDS": ("7.5", "x"),
    "SHARE": ("0.5", "1.5"),
    "MONEY": ("3", "-1"),
    "RATE": ("50", "x"),
    "R": ("4", "0"),
    "W": ("500", "0"),
    "ENGINE": ("vllm", "vlm"),
    "VERSION": ("0.1", "x"),
    "FRAMEWORK": ("megatron", "megatro"),
    "NAME,NAME,…": ("q_proj,v_proj", "zzz"),
    "N,N,…": ("0,1", "99"),
    "NAME,…": ("layers", "zzz"),
    "NAME=R,…": ("q_proj=4", "zzz=4"),
    "NAME=A,…": ("q_proj=4", "zzz=4"),
    "NAME=VALUE": ("n_layers=3", "n_layer"),
}
LEFT_OUT = {"--help", "--types", "--files", "--revision"}  # they end the command, or ask the hub


def printed(line: str) -> str:
    """What a line prints, with its exit status."""
    written, token = io.StringIO(), printing.WIDTH.set(200)
    with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
        try:
            status = commands.main(shlex.split(line))
        except SystemExit as ended:
            status = ended.code
    printing.WIDTH.reset(token)
    return f"status {status}\n{written.getvalue()}"


def flags(command: str) -> Iterator[str]:
    """Each option with each of its values."""
    of_all = next(one for one in arguments.parser(command)._actions if isinstance(one, argparse._SubParsersAction))
    for option in of_all.choices[command]._actions:
        name = option.option_strings[-1] if option.option_strings else ""
        if name and not LEFT_OUT & {*option.option_strings}:
            values = ("",) if option.nargs == 0 else option.choices or VALUES[str(option.metavar)]
            yield from (f"{name} {value}".strip() for value in values)


def each_flag(line: str) -> Iterator[str]:
    """What a line prints, and with each further option the first line that differs, and how many do."""
    first = printed(line)
    yield f"{first[: 4 * SHOWN]} {digest(first)}".replace("\n", " ⏎ ")
    known = {*first.splitlines()}
    for flag in flags(line.split()[0]):
        other = printed(f"{line} {flag}")
        differ = [re.sub(" +", " ", one) for one in other.splitlines() if one not in known]
        refused = other.startswith("status 2")
        yield f"{flag}: " + (
            "the same"
            if other == first
            else " ⏎ ".join(differ[1:])
            if refused
            else f"{len(differ)} lines, {(differ or ['fewer'])[0][:SHOWN]} {digest(other)}"
        )
