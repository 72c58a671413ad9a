"""The command line: `describe` and `check`; the other commands are in `other_commands`.

A call that cannot be answered exits with status 2 and one line on standard error.
"""

from __future__ import annotations

import atexit
import errno
import gc
import io
import itertools
import os
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from ..catalogue import hub, presets
from ..catalogue.model_files import GgufFiles
from ..counting.asked import Unsaid
from ..counting.formats import PUBLISHED
from ..data.components import Inputs
from ..data.costs import USUAL, Asked
from ..data.model import CSV_PATTERNS, CSV_TENSORS, csv_pieces, json_pieces
from ..engine.errors import Problem
from .arguments import parser
from .describe import as_table
from .printing import Block, show
from .reporting import discard, fail, warn

if TYPE_CHECKING:
    from ..catalogue.models import Model


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status. Without arguments, run this process's own command and exit with its
    status."""
    if arguments is None:
        gc.set_threshold(100_000, 20, 20)  # most objects live to the end, so few collections are enough
        atexit.register(gc.freeze)  # and none at exit
    _stand_in_for_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        given = sys.argv[1:] if arguments is None else arguments
        given, own = engine_words(given)
        options = parser(given[0] if given else None).options(given)
        options.engine_words = own
        resolve_names(options)
        status = command(options.command)(options)
        sys.stdout.flush()
        return status
    except Problem as problem:
        return fail(problem)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        discard(sys.stdout)
        return 141
    except OSError as error:
        discard(sys.stdout)
        why = "standard output is closed" if error.errno == errno.EBADF else error.strerror or str(error)
        return fail(Problem(f"cannot write: {why}", "check the disk and the path"))


def engine_words(given: list[str]) -> tuple[list[str], list[str]]:
    """The words of a `fits` call without its engine's options, and these options; for `train`, those of the
    framework."""
    name = {"fits": "--engine", "train": "--framework"}.get(given[0] if given else "")
    if name is None or not any(word.partition("=")[0] == name for word in given):
        return given, []
    from .engines import own_words

    return own_words(given)


def resolve_names(options: Namespace) -> None:
    """Replace each name of a model by its slug, and report that on standard error.

    A format in the name of a conversion applies to the weights, unless another one is requested; `describe` uses each
    model's own.
    """
    formats: list[str] = []
    is_unsaid = isinstance(getattr(options, "weights", ""), Unsaid) or getattr(options, "weights", "") in (
        PUBLISHED,
        None,
    )
    for option in ("models", "model", "draft"):
        given = getattr(options, option, None)
        if not given:
            continue
        found = [_meant(name) for name in ([given] if isinstance(given, str) else given)]
        slugs = [slug for slug, _ in found]
        setattr(options, option, slugs[0] if isinstance(given, str) else slugs)
        formats += [format for _, format in found] if option != "draft" else []
    options.formats = formats if is_unsaid else []
    stated = [*filter(None, formats)]
    if not stated or not is_unsaid or not hasattr(options, "weights"):
        return
    if len(set(formats)) == 1:
        options.weights = stated[0]
    elif options.command != "describe":
        warn(options.command, [f"the names state several formats, and none is taken; ask with --weights {stated[0]}"])


def _meant(name: str) -> tuple[str, str]:
    """The slug and the format of a name; slugs, paths and unknown names are returned unchanged."""
    if name in presets.paths() or os.path.exists(name):
        return name, ""
    found = presets.meant(name)
    if not found.slug:
        return name, ""
    title = presets.preset(found.slug).name
    form = f" in {found.format}" if found.format else ""
    warn(name, [f"{title}{form}{f' ({found.why})' if found.why else ''}"])
    return found.slug, found.format


def command(name: str) -> Callable[[Namespace], int]:
    """The function of a command; most are imported on demand."""
    return HERE.get(name) or import_module(".other_commands", __package__).COMMANDS[name]


def describe(options) -> int:
    """Print the parameter table, totals and costs of each model, in the given order."""
    status = 0
    beside = Inputs()
    if options.image:
        beside = beside._replace(images=tuple(dict.fromkeys(options.image)))
    if options.sound:
        beside = beside._replace(sounds=tuple(dict.fromkeys(options.sound)))
    shown = beside if options.components or options.image or options.sound else None
    wanted = Asked(tuple(dict.fromkeys(options.context or USUAL.contexts)), options.cache, options.weights, shown)
    if options.on and options.format != "table":
        raise Problem(f"--on with --format {options.format}", "take fits MODEL --on MACHINE --format json")
    pieces = json_pieces if options.format == "json" else csv_pieces
    if options.format == "csv":
        print(CSV_PATTERNS if options.collapse else CSV_TENSORS)
    for name, stated in itertools.zip_longest(options.models, options.formats, fillvalue=""):
        try:
            model = hub.load(name, options.files, options.revision)
            is_own = isinstance(model.files, GgufFiles) and isinstance(options.weights, Unsaid)
            asked = wanted._replace(weights=stated or PUBLISHED) if stated or is_own else wanted
            blocks = as_table(model, asked) if options.format == "table" else []
            blocks += _there(model, asked, options) if options.on else []
            rest = pieces(model, options.collapse, asked) if options.format != "table" else iter(())
            first = next(rest, "")  # raises here if something cannot be described
        except Problem as problem:
            status = fail(problem)
            continue
        warn(name, model.warnings)
        if options.strict and model.file_difference:
            status = status or 1
        if blocks:
            show(blocks)
            print()
        for piece in itertools.chain([first], rest):
            sys.stdout.write(piece)
    return status


def _there(model: Model, asked: Asked, options) -> list[Block]:
    """Whether the model fits on a machine, at the first context, and the best format that does."""
    from ..api.fits import fit, memory

    given = replace(asked.at(asked.contexts[0]), devices=options.devices)
    answer = fit(model, given, memory(options.on))
    return [f"{answer.sentence} {answer.advice}"]


def check(options) -> int:
    """Compare presets with their published totals and their reference tensor lists."""
    from ..catalogue import checks, mentions
    from . import closed_forms

    states: list[str] = []
    status = 0
    known = presets.paths()
    asked = [_slug_of(name) if _is_file(name) else name for name in options.models or known]
    results = checks.results([slug for slug in asked if slug in known])
    forms = closed_forms.start([slug for slug in asked if slug in known]) if options.models else None
    for slug in asked:
        if slug not in known and not _is_file(slug):
            status = fail(presets.unknown(slug))
            if places := ", ".join(mentions.of(slug)):
                print(f"     {slug}: still named in {places}")
            continue
        result = next(results) if slug in known else checks.check_file(Path(slug))
        lines = []
        if options.models and slug in known and result.state != "off":
            lines = [*_lacking(slug), *closed_forms.differences(forms, slug)]
        states.append("off" if lines else result.state)
        print(f"{'off' if result.state == 'off' or lines else 'ok':3}  {slug:28}  {result.text}")
        for line in lines:
            print(f"     {slug}: {line}")
        if options.models and slug in known and result.state != "off":
            warn(slug, _unusual(slug))
    results.close()
    warn("check", closed_forms.left_out(forms) if options.models else [])
    published, counted, undisclosed, off = map(states.count, ("ok", "counted", "undisclosed", "off"))
    without = f"{counted} without a published total, " if counted else ""
    models = f"{len(states)} model{'' if len(states) == 1 else 's'}"
    print(f"{models}, {published} as published, {without}{undisclosed} undisclosed, {off} off")
    return status or int(off > 0)


def _lacking(slug: str) -> list[str]:
    """What the site's tests would find: missing words, parts of the page that cannot be built."""
    from ..views.models import whole

    return list(whole.lacking(slug))


def _unusual(slug: str) -> list[str]:
    from ..views.models import whole

    left_out = [] if whole.is_drawn() else ["the parts of its page were not made: pip install 'every-parameter[site]'"]
    return [*whole.unusual(slug), *left_out]


def _is_file(name: str) -> bool:
    """Whether a name is the path of a preset's file, rather than a slug."""
    return name.endswith(".toml") and "\0" not in name


def _slug_of(file: str) -> str:
    """The slug of one of our presets, given its file; any other path unchanged."""
    slug = Path(file).stem
    ours = presets.paths().get(slug)
    return slug if ours and os.path.realpath(file) == os.path.realpath(ours) else file


def _stand_in_for_closed() -> None:
    """Replace a closed standard stream (`>&-`) with one that rejects writes. Otherwise the next file that is opened
    takes its number, and standard error ends up in it."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")


# The others are imported on demand.
HERE = {"describe": describe, "check": check}
