"""The command line: `describe`, `check`, `run`, `add`.

Exit status 2 and one line on standard error for what cannot be done.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path

import numpy as np

from ..catalogue import checks, presets
from ..counting.formats import CACHE_BYTES, FORMATS
from ..engine.architectures import architectures
from ..engine.checkpoint import Arrays, Files, Published
from ..engine.errors import Problem
from ..engine.forward import logits
from ..engine.ops import softmax
from .costs import USUAL, Asked
from .describe import CSV_PATTERNS, CSV_TENSORS, as_csv, as_json, as_table
from .skeleton import skeleton


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        options = parser().parse_args(arguments)
        status = options.command(options)
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
    print(f"every-parameter: {problem}", file=sys.stderr)
    return 2


def describe(options) -> int:
    """Parameter table, totals and costs of each model, in the order asked for."""
    status = 0
    asked = Asked(tuple(dict.fromkeys(options.context or USUAL.contexts)), options.dtype, options.format_weights)
    if options.format == "csv":
        print(CSV_PATTERNS if options.collapse else CSV_TENSORS)
    for name in options.models:
        try:
            model = presets.load(name)
            text = {"json": as_json, "csv": as_csv, "table": as_table}[options.format](model, options.collapse, asked)
        except Problem as problem:
            status = fail(problem)
            continue
        for warning in model.warnings:
            print(f"every-parameter: {name}: {warning}", file=sys.stderr)
        print(text, end="")
    return status


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
        raise Problem(f"{options.folder}: no such folder", "give a folder that holds config.json and *.safetensors")
    model = presets.load(os.path.join(options.folder, "config.json"))
    sizes = model.config.symbols
    tokens = read_tokens(options.tokens, int(sizes["vocab_size"]), sizes.get("n_positions"))
    files = Files(folder)
    weights = Arrays(Published(files, model.architecture))
    with np.errstate(all="ignore"):
        try:
            scores, _ = logits(model.architecture, model.config, weights, tokens, last=options.logits is None)
        except Problem as problem:
            raise problem.at(options.folder) from None
    for warning in (*model.warnings, *files.warnings()):
        print(f"every-parameter: {options.folder}: {warning}", file=sys.stderr)
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
    for warning in warnings:
        print(f"every-parameter: {options.config}: {warning}", file=sys.stderr)
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


# --- the arguments ----------------------------------------------------------------------------------------------------


class Parser(argparse.ArgumentParser):
    """argparse that reports a wrong call in one line."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


class Types(argparse.Action):
    """Prints the model types in place of running a command, as `--help` does."""

    def __init__(self, option_strings, dest, **given):
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **given)

    def __call__(self, parser, namespace, values, option_string=None):
        print(*architectures(), sep="\n")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The arguments of every command."""
    whole = Parser(
        prog="every-parameter",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Where the numbers of a large language model come from: every parameter, derived from one forward "
        "pass.",
        epilog="examples:\n"
        "  every-parameter describe llama3-8b\n"
        "  every-parameter describe --format json gpt2 path/to/config.json | jq .parameters.total\n"
        "  every-parameter check\n"
        "  every-parameter run path/to/gpt2 --tokens 464,3139,286,4881,318\n"
        "  every-parameter add config.json --slug llama4-tiny\n",
    )
    commands = whole.add_subparsers(required=True, metavar="COMMAND")

    describing = _command(
        commands,
        "describe",
        describe,
        "print the parameter table, totals and costs of models",
        "MODEL is a preset's slug, the path of any Hugging Face config.json, or a folder that holds one.\n"
        "A model that cannot be described is one line on standard error and exit status 2; the others are printed.",
        "every-parameter describe --format json --collapse deepseek-v3",
    )
    describing.add_argument("models", nargs="+", metavar="MODEL")
    describing.add_argument("--types", action=Types, help="print every model_type that is known, one a line, and exit")
    describing.add_argument(
        "--format",
        choices=("table", "json", "csv"),
        default="table",
        help="table (default): patterns, formulas and totals for reading; json: one object per model and line; "
        "csv: one row per tensor",
    )
    describing.add_argument(
        "--collapse",
        action="store_true",
        help="json and csv: name patterns with {i} for the layer and {e} for the expert, instead of every tensor",
    )
    describing.add_argument(
        "--context",
        type=_at_least_one,
        action="append",
        metavar="N",
        help="tokens of context for cache, FLOPs, memory and time; may be given several times "
        "(default 4096 and 131072)",
    )
    describing.add_argument(
        "--dtype",
        choices=tuple(CACHE_BYTES),
        default="bfloat16",
        help="type of the cache's elements (default bfloat16)",
    )
    describing.add_argument(
        "--format-weights",
        choices=tuple(FORMATS),
        default="bfloat16",
        help="format of the weights in memory, bytes moved and time (default bfloat16)",
    )

    checking = _command(
        commands,
        "check",
        check,
        "hold presets against published totals and reference tensor lists",
        "One line per preset, then a summary. Exit status 0 if all agree, 1 if any is off, 2 for an unknown slug.",
        "every-parameter check gpt2 llama3-8b",
    )
    checking.add_argument(
        "models", nargs="*", metavar="MODEL", help="slugs of presets; without one, the whole catalogue"
    )

    running = _command(
        commands,
        "run",
        run,
        "predict the next token with a checkpoint's real weights",
        "FOLDER holds config.json and *.safetensors (float32, float16 or bfloat16; one file, or several with\n"
        "model.safetensors.index.json). Computes in float32.",
        "every-parameter run path/to/gpt2 --tokens 464,3139,286,4881,318 --top 3",
    )
    running.add_argument("folder", metavar="FOLDER")
    running.add_argument("--tokens", required=True, metavar="ID,ID,…", help="the token ids of the text so far")
    running.add_argument(
        "--top", type=_at_least_one, default=5, metavar="N", help="how many candidates to print (default 5)"
    )
    running.add_argument("--logits", metavar="OUT.npy", help="also save the [T, V] float32 logits of all tokens")

    adding = _command(
        commands,
        "add",
        add,
        "write the skeleton of a preset from a config.json",
        "Writes TOML with [sources] and [published] to fill in, or says which key of the config is not known.",
        "every-parameter add config.json --slug llama4-tiny --output macros/presets/llama/llama4-tiny.toml",
    )
    adding.add_argument("config", metavar="config.json")
    adding.add_argument("--slug", help="the preset's file name without .toml (default: from the config's folder)")
    adding.add_argument(
        "--output", metavar="FILE", help="write here instead of standard output; never over an existing file"
    )
    return whole


def _command(commands, name: str, function, summary: str, text: str, example: str) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n\n{text}",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(command=function)
    return command


def _at_least_one(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number above 0")
    return int(text)


def _discard_output() -> None:
    """Keep the interpreter from writing, and failing, once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
