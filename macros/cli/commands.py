"""The commands: `describe`, `compare`, `what-if`, `fits`, `check`, `run`, `add`.

Exit status 2 and one line on standard error for what cannot be done.
"""

from __future__ import annotations

import io
import itertools
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ..catalogue import checks, presets
from ..catalogue.presets import Model
from ..counting.figures import Conditions
from ..engine.checkpoint import Arrays, Files, Published
from ..engine.errors import Problem, named, placed, seen
from ..engine.forward import logits
from ..engine.ops import softmax
from . import changes, fits, room, sides
from .arguments import PROGRAM, parser
from .costs import USUAL, Asked
from .data import CSV_PATTERNS, CSV_TENSORS, beyond, csv_pieces, json_pieces, line
from .describe import as_table
from .printing import show
from .skeleton import skeleton


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status."""
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
    on = fits.memory(options.on) if options.on else None
    given = conditions(options, on)
    models = [loaded(name, options.context) for name in options.models]
    columns = [sides.side(model, given, on) for model in models]
    if options.format == "json":
        print_json(sides.compared(columns, given, on))
    else:
        show(sides.blocks(columns, options.models, given))
    return 0


def what_if(options) -> int:
    """A model beside itself with other hyperparameters."""
    on = fits.memory(options.on) if options.on else None
    given = conditions(options, on)
    model = loaded(options.model, options.context)
    other = changes.changed(model, changes.read(options.set))
    before, after = sides.side(model, given, on), sides.side(other, given, on)
    if options.format == "json":
        print_json(sides.what_if(before, after, given, on))
    else:
        show([other.name, *sides.blocks([before, after], ["before", "after"], given)])
    return 0


def fitting(options) -> int:
    """Whether each model fits; 1 where any does not."""
    on = fits.memory(options.on)
    given = conditions(options, on)
    status = 0
    for name in options.models:
        try:
            answer = fits.fit(loaded(name, options.context), given, on)
        except Problem as problem:
            status = fail(problem)
            continue
        if options.format == "json":
            print_json(fits.as_data(answer))
        else:
            show(fits.blocks(answer))
            print()
        status = status or int(not answer.is_enough)
    return status


def conditions(options, on: fits.Memory | None) -> Conditions:
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
    published, undisclosed, off = (states.count(state) for state in ("ok", "undisclosed", "off"))
    print(f"{len(states)} models, {published} as published, {undisclosed} undisclosed, {off} off")
    return status or int(off > 0)


def run(options) -> int:
    """The most likely next tokens by a checkpoint's real weights."""
    folder = Path(options.folder)
    if not folder.is_dir():
        raise Problem("no such folder", "give one that holds config.json and *.safetensors", options.folder)
    model = presets.load(os.path.join(options.folder, "config.json"))
    sizes = model.config.symbols
    tokens = read_tokens(options.tokens, int(sizes["vocab_size"]), sizes.get("n_positions"))
    allowed = fits.amount(options.memory, "--memory") if options.memory else None
    try:
        warn(options.folder, room.check(model, len(tokens), options.logits is not None, allowed))
    except Problem as problem:
        raise problem.at(options.folder) from None
    files = Files(folder)
    weights = Arrays(Published(files, model.architecture))
    with np.errstate(all="ignore"):
        try:
            scores, _ = logits(model.architecture, model.config, weights, tokens, last=options.logits is None)
        except Problem as problem:
            raise problem.at(options.folder) from None
    warn(options.folder, (*model.warnings, *files.warnings()))
    scores = scores.astype(np.float32)
    if not np.isfinite(scores).all():
        raise Problem(
            "the logits are not finite numbers",
            "the files hold NaN or infinity, or belong to another config.json",
            options.folder,
        )
    if options.logits:
        try:
            with open(options.logits, "wb") as file:
                np.save(file, scores)
        except OSError as error:
            raise Problem(f"cannot be written: {error.strerror}", "check the path", options.logits) from None
    shares = softmax(scores[-1].astype(np.float64))
    print("token id  probability")
    for token in np.argsort(-shares, kind="stable")[: options.top]:
        print(f"{token:8}  {shares[token]:.6f}")
    return 0


def add(options) -> int:
    """The skeleton of a preset for a config.json."""
    text, warnings = skeleton(options.config, options.slug)
    warn(options.config, warnings)
    if options.output is None:
        print(text, end="")
        return 0
    try:
        with open(options.output, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Problem("exists already", "give another path, or remove it first", options.output) from None
    except OSError as error:
        raise Problem(f"cannot be written: {error.strerror}", "check the path", options.output) from None
    return 0


def read_tokens(text: str, vocabulary: int, positions: int | None = None) -> list[int]:
    """Token ids from `464,3139,…`. Raises `Problem` for no id of this vocabulary, and for more than the positions."""
    tokens = []
    for part in text.split(","):
        if not (part.strip().isascii() and part.strip().isdigit() and len(part) < 20):
            raise Problem(
                f"--tokens: {part.strip()[:40]!r} is not a token id",
                "give whole numbers with commas between, such as 464,3139,286",
            )
        tokens.append(int(part))
        if tokens[-1] >= vocabulary:
            raise Problem(
                f"--tokens: {tokens[-1]} is beyond the vocabulary", f"ids of this model run from 0 to {vocabulary - 1}"
            )
    if positions is not None and len(tokens) > positions:
        raise Problem(
            f"--tokens: {len(tokens)} tokens, and the model has {positions} positions", f"give at most {positions}"
        )
    return tokens


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
}
