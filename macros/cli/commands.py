"""The commands: `describe`, `compare`, `what-if`, `fits`, `check`, `run`, `add`, `totals`, `schema`, `diff`,
`publish-check`.

Exit status 2 and one line on standard error for what cannot be done.
"""

from __future__ import annotations

import atexit
import gc
import io
import itertools
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from ..api.changes import changed
from ..api.comparison import as_compared, as_what_if, side
from ..api.fits import Memory, amount, as_data, fit, memory
from ..catalogue import checks, preset_schema, presets
from ..catalogue.presets import Model
from ..counting.conditions import Conditions
from ..data.costs import USUAL, Asked
from ..data.model import CSV_PATTERNS, CSV_TENSORS, beyond, csv_pieces, json_pieces, line
from ..engine.errors import Problem, named, placed, seen
from ..engine.files import place
from . import differences, fits, publish_check, sides
from .arguments import PROGRAM, parser
from .describe import as_table
from .printing import show
from .run import predict
from .settings import read
from .skeleton import skeleton
from .totals import totals as published_totals


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status. Without arguments it is this process's own, which ends with it."""
    if arguments is None:
        gc.set_threshold(100_000, 20, 20)  # most of what is made stays: few looks for garbage are enough
        atexit.register(gc.freeze)  # and none at the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        options = parser().parse_args(arguments)
        status = COMMANDS[options.command](options)
        sys.stdout.flush()
        return status
    except Problem as problem:
        return fail(problem)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _discard_output()
        return 141
    except OSError as error:
        _discard_output()
        return fail(Problem(f"cannot write: {error.strerror}", "check the disk and the path"))


def fail(problem: Problem) -> int:
    """Say on standard error what is wrong; exit status 2."""
    print(f"{PROGRAM}: {problem}", file=sys.stderr)  # every character of a problem is seen
    return 2


def describe(options) -> int:
    """Parameter table, totals and costs of each model, in the order asked for."""
    status = 0
    wanted = Asked(tuple(dict.fromkeys(options.context or USUAL.contexts)), options.cache, options.weights)
    pieces = json_pieces if options.format == "json" else csv_pieces
    if options.format == "csv":
        print(CSV_PATTERNS if options.collapse else CSV_TENSORS)
    for name in options.models:
        try:
            model = presets.load(name)
            blocks = as_table(model, wanted) if options.format == "table" else []
            rest = pieces(model, options.collapse, wanted) if options.format != "table" else iter(())
            first = next(rest, "")  # what cannot be described says so here
        except Problem as problem:
            status = fail(problem)
            continue
        warn(name, model.warnings)
        if blocks:
            show(blocks)
            print()
        for piece in itertools.chain([first], rest):
            sys.stdout.write(piece)
    return status


def compare(options) -> int:
    """Models side by side, a column of each."""
    if len(options.models) < 2:
        raise Problem("compare needs two models or more", f"{named(options.models[0])} alone is what describe is for")
    on = memory(options.on) if options.on else None
    given = conditions(options, on)
    models = [loaded(name, options.context) for name in options.models]
    columns = [side(model, given, on) for model in models]
    if options.format == "json":
        print_json(as_compared(columns, given, on))
    else:
        show(sides.blocks(columns, options.models, given))
    return 0


def what_if(options) -> int:
    """A model beside itself with other hyperparameters."""
    on = memory(options.on) if options.on else None
    given = conditions(options, on)
    model = loaded(options.model, options.context)
    other = changed(model, read(options.set))
    before, after = side(model, given, on), side(other, given, on)
    if options.format == "json":
        print_json(as_what_if(before, after, given, on))
    else:
        show([other.name, *sides.blocks([before, after], ["before", "after"], given)])
    return 0


def fitting(options) -> int:
    """Whether each model fits; 1 where any does not."""
    on = memory(options.on)
    given = conditions(options, on)
    status = 0
    for name in options.models:
        try:
            answer = fit(loaded(name, options.context), given, on)
        except Problem as problem:
            status = fail(problem)
            continue
        if options.format == "json":
            print_json(as_data(answer))
        else:
            show(fits.blocks(answer))
            print()
        status = status or int(not answer.is_enough)
    return status


def conditions(options, on: Memory | None) -> Conditions:
    """The conditions of an answer."""
    accelerator = on.accelerator if on else None
    return Conditions(options.context, options.batch, options.weights, options.cache, options.devices, accelerator)


def loaded(name: str, context: int) -> Model:
    """A model, once all that is to be said of it was said on standard error."""
    model = presets.load(name)
    warn(name, (*model.warnings, *beyond(model, Asked((context,)))))
    return model


def warn(name: str, warnings: Iterable[str]) -> None:
    """A line on standard error for each."""
    for warning in warnings:
        print(f"{PROGRAM}: {placed(name)}: {seen(warning)}", file=sys.stderr)


def print_json(data: dict) -> None:
    """One object on one line."""
    print(line(data), end="")


def check(options) -> int:
    """Hold presets against their published totals and their reference tensor lists."""
    states: list[str] = []
    status = 0
    known = presets.paths()
    for slug in options.models or known:
        if slug not in known:
            status = fail(presets.unknown(slug))
            continue
        result = checks.check(slug)
        states.append(result.state)
        print(f"{'off' if result.state == 'off' else 'ok':3}  {slug:28}  {result.text}")
    published, counted, undisclosed, off = map(states.count, ("ok", "counted", "undisclosed", "off"))
    without = f"{counted} without a published total, " if counted else ""
    models = f"{len(states)} model{'' if len(states) == 1 else 's'}"
    print(f"{models}, {published} as published, {without}{undisclosed} undisclosed, {off} off")
    return status or int(off > 0)


def run(options) -> int:
    """The most likely next tokens by a checkpoint's real weights."""
    predict(options, warn)
    return 0


def add(options) -> int:
    """The skeleton of a preset for a config.json, at its place where a family is given."""
    made = skeleton(options.config, options.slug, options.family, options.hub)
    output = Path(options.output) if options.output else made.path
    if output is None:
        warn(options.config, made.warnings)
        print(made.text, end="")
        return 0
    try:
        if not options.output:
            output.parent.mkdir(exist_ok=True)
        with output.open("x", encoding="utf-8") as file:
            file.write(made.text)
    except FileExistsError:
        raise Problem("exists already", "give another path, or remove it first", place(output)) from None
    except OSError as error:
        raise Problem(f"cannot be written: {error.strerror}", "check the path", place(output)) from None
    warn(place(output), made.warnings)
    return 0


def totals(options) -> int:
    """The published number of parameters, from a checkpoint's headers or its index."""
    lines, said, is_same = published_totals(options.path, options.hub, options.preset)
    warn(options.path, said)
    if not options.preset:
        print(f"\n{lines}", end="")
    return 0 if is_same else 1


def schema(options) -> int:
    """The JSON Schema of presets."""
    text = json.dumps(preset_schema.schema(), ensure_ascii=False, indent=1) + "\n"
    if options.output is None:
        print(text, end="")
        return 0
    path = Path(options.output)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        raise Problem(f"cannot be written: {error.strerror}", "check the path", options.output) from None
    return 0


def diff(options) -> int:
    """Every figure that differs between two states of the data."""
    found = differences.compared(options.before, options.after)
    if options.format == "json":
        print_json(differences.as_data(found))
    elif options.format == "markdown":
        print(differences.as_markdown(found), end="")
    else:
        show(differences.blocks(found))
    return 0


def published(options) -> int:
    """What is wrong with a built site, a line each; 1 where anything is."""
    count = 0
    for problem in publish_check.finds(Path(options.site), amount(options.largest, "--largest")):
        count += 1
        print(problem)
    print(f"{count} found" if count else "nothing found")
    return int(count > 0)


def _discard_output() -> None:
    """Keep the interpreter from writing, and failing, once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


COMMANDS = {
    "describe": describe,
    "compare": compare,
    "what-if": what_if,
    "fits": fitting,
    "check": check,
    "run": run,
    "add": add,
    "totals": totals,
    "schema": schema,
    "diff": diff,
    "publish-check": published,
}
