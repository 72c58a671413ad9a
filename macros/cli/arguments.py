"""What the commands are called with."""

from __future__ import annotations

import argparse

from ..counting.formats import CACHE_BYTES, FORMATS
from ..engine.architectures import architectures
from ..engine.errors import Problem
from .publish_check import LARGEST

PROGRAM = "every-parameter"
MODEL = "MODEL is a preset's slug, the path of any Hugging Face config.json, or a folder that holds one."


class Parser(argparse.ArgumentParser):
    """argparse that reports a wrong call in one line."""

    def error(self, message):
        self.exit(2, f"{self.prog}: {Problem(message, f'see {self.prog} --help')}\n")


class Types(argparse.Action):
    """Prints the model types in place of running a command, as `--help` does."""

    def __init__(self, option_strings, dest, **given):
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **given)

    def __call__(self, parser, namespace, values, option_string=None):
        print(*architectures(), sep="\n")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The arguments of every command; `command` is its name."""
    whole = Parser(
        prog=PROGRAM,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Where the numbers of a large language model come from: every parameter, derived from one forward "
        "pass.",
        epilog="examples:\n"
        "  every-parameter describe llama3-8b\n"
        "  every-parameter describe --format json gpt2 path/to/config.json | jq .parameters.total\n"
        "  every-parameter compare qwen3-8b llama3.1-8b\n"
        "  every-parameter what-if llama3-8b --set n_layers=64 --on h100\n"
        "  every-parameter fits llama3.3-70b --weights fp8 --context 32k --on h100\n"
        "  every-parameter check\n"
        '  every-parameter run capitals --text "The capital of France is"\n'
        "  every-parameter add config.json --family Llama --hub meta-llama/Llama-4-Tiny\n",
    )
    commands = whole.add_subparsers(required=True, metavar="COMMAND", dest="command")
    _describe(commands)
    _compare(commands)
    _what_if(commands)
    _fits(commands)
    _check(commands)
    _run(commands)
    _add(commands)
    _totals(commands)
    _schema(commands)
    _diff(commands)
    _publish_check(commands)
    return whole


def _describe(commands) -> None:
    describing = _command(
        commands,
        "describe",
        "print the parameter table, totals and costs of models",
        f"{MODEL}\n"
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
        type=_tokens,
        action="append",
        metavar="N",
        help="tokens of context for cache, FLOPs, memory and time; may be given several times "
        "(default 4096 and 131072)",
    )
    _formats(describing)


def _compare(commands) -> None:
    comparing = _command(
        commands,
        "compare",
        "set models side by side",
        f"{MODEL}\n"
        "Hyperparameters that differ are marked with ≠; every figure of the others has its ratio to the first model's.",
        "every-parameter compare qwen3-8b llama3.1-8b --context 32k --on h100",
    )
    comparing.add_argument("models", nargs="+", metavar="MODEL", help="two or more")
    _conditions(comparing)
    _on(comparing, is_required=False)


def _what_if(commands) -> None:
    asking = _command(
        commands,
        "what-if",
        "say what follows where a model's hyperparameters are changed",
        f"{MODEL}\n"
        "Before and after stand side by side, under the same conditions. A value that cannot be is one line on\n"
        "standard error and exit status 2.",
        "every-parameter what-if llama3-8b --set n_layers=64 --context 32k --weights fp8 --cache fp8 --on h100",
    )
    asking.add_argument("model", metavar="MODEL")
    asking.add_argument(
        "--set",
        action="append",
        required=True,
        metavar="NAME=VALUE",
        help="a hyperparameter by the site's name (n_layers), its letter (L) or its key in config.json "
        "(num_hidden_layers); may be given several times",
    )
    _conditions(asking)
    _on(asking, is_required=False)


def _fits(commands) -> None:
    fitting = _command(
        commands,
        "fits",
        "say whether models fit into memory while texts are continued",
        f"{MODEL}\n"
        "The answer is a sentence, what it is made of, and the longest context that fits. On several devices it is\n"
        "for the fullest one under tensor parallelism, where the largest operation is taken as whole on each.\n"
        "Exit status 0 if all fit, 1 if any does not.",
        "every-parameter fits llama3.3-70b --weights fp8 --cache fp8 --context 32k --on h100",
    )
    fitting.add_argument("models", nargs="+", metavar="MODEL")
    _conditions(fitting)
    _on(fitting, is_required=True)


def _check(commands) -> None:
    checking = _command(
        commands,
        "check",
        "hold presets against published totals and reference tensor lists",
        "One line per preset, then a summary. Exit status 0 if all agree, 1 if any is off, 2 for an unknown slug.",
        "every-parameter check gpt2 llama3-8b",
    )
    checking.add_argument(
        "models", nargs="*", metavar="MODEL", help="slugs of presets; without one, the whole catalogue"
    )


def _run(commands) -> None:
    running = _command(
        commands,
        "run",
        "predict the next token with a checkpoint's real weights",
        "FOLDER holds config.json and *.safetensors (float32, float16 or bfloat16; one file, or several with\n"
        "model.safetensors.index.json), or is `capitals`, the small model that comes along. Computes in float32.\n"
        "A text is cut into tokens by the folder's tokenizer.json; most of these are read by the library tokenizers,\n"
        "which `pip install tokenizers` adds.",
        'every-parameter run path/to/gpt2 --text "The capital of France is" --top 3',
    )
    running.add_argument("folder", metavar="FOLDER")
    given = running.add_mutually_exclusive_group(required=True)
    given.add_argument("--text", metavar="TEXT", help="the text so far")
    given.add_argument("--tokens", metavar="ID,ID,…", help="its token ids, where there is no tokenizer.json")
    running.add_argument(
        "--source", metavar="ID,ID,…", help="what an encoder is to read: token ids, or a .npy file of a spectrogram"
    )
    running.add_argument(
        "--top", type=_at_least_one, default=5, metavar="N", help="how many candidates to print (default 5)"
    )
    running.add_argument(
        "--memory", metavar="AMOUNT", help="refuse what takes more, such as 8GB (default: what this machine has)"
    )
    running.add_argument(
        "--generate", type=_at_least_one, default=0, metavar="N", help="also continue the text by N likeliest tokens"
    )
    running.add_argument(
        "--trace", action="store_true", help="also print the shape, mean and largest size of what each step gives"
    )
    running.add_argument("--logits", metavar="OUT.npy", help="also save the [T, V] float32 logits of all tokens")


def _add(commands) -> None:
    adding = _command(
        commands,
        "add",
        "write the skeleton of a preset from a config.json",
        "Writes TOML with the config's keys, in the presets' order, and says what is to be filled in; or says which\n"
        "key of the config is not known. With --family it stands at its place below macros/presets.",
        "every-parameter add config.json --family Llama --hub meta-llama/Llama-4-Tiny",
    )
    adding.add_argument("config", metavar="config.json", help="the published file, or its folder")
    adding.add_argument("--family", help="the family's name; a new one gets its folder")
    adding.add_argument(
        "--hub", metavar="REPOSITORY", help="where the file is from, as organization/name (default: from its folder)"
    )
    adding.add_argument(
        "--slug", help="the preset's file name without .toml (default: from the repository's or the folder's name)"
    )
    adding.add_argument(
        "--output",
        metavar="FILE",
        help="write here instead of at its place or to standard output; never over an existing file",
    )


def _totals(commands) -> None:
    adding = _command(
        commands,
        "totals",
        "read the published number of parameters from a checkpoint's files",
        "PATH is a folder with *.safetensors, one such file, or a model.safetensors.index.json. Only the beginning of\n"
        "a file is read, which lists its tensors, and may be all that was downloaded of it. Prints the lines of\n"
        "[published]; with --preset they are added to the preset, and its tensors' names are held against the file's.",
        "every-parameter totals path/to/llama4-tiny --preset llama4-tiny",
    )
    adding.add_argument("path", metavar="PATH")
    adding.add_argument("--preset", metavar="SLUG", help="add them to this preset")
    adding.add_argument(
        "--hub", metavar="REPOSITORY", help="where the files are from (default: the preset's, or from their folder)"
    )


def _schema(commands) -> None:
    describing = _command(
        commands,
        "schema",
        "print the JSON Schema of presets",
        "What a preset may hold, made from the definitions that read it. Editors complete and check a preset by it:\n"
        ".taplo.toml names the file of the example.",
        "every-parameter schema --output .cache/preset.schema.json",
    )
    describing.add_argument(
        "--output", metavar="FILE", help="write here instead of standard output, over what is there"
    )


def _diff(commands) -> None:
    comparing = _command(
        commands,
        "diff",
        "list every figure that a change moves, by model",
        "BEFORE and AFTER are revisions of this repository, or folders of data such as site/data/v1. The code of a\n"
        "revision runs with the libraries that are installed now. Exit status 0 whether figures moved or not.",
        "every-parameter diff main --format markdown",
    )
    comparing.add_argument("before", metavar="BEFORE")
    comparing.add_argument("after", nargs="?", metavar="AFTER", help="(default: the code as it is)")
    comparing.add_argument(
        "--format",
        choices=("table", "markdown", "json"),
        default="table",
        help="table (default), markdown for a pull request, or json",
    )


def _publish_check(commands) -> None:
    checking = _command(
        commands,
        "publish-check",
        "look at a built site before it is published",
        "SITE is the folder that `mkdocs build` wrote. Nothing is fetched. A line for each find: links inside the\n"
        "site that lead nowhere, what a page would load from another host, a page without its policy, a missing\n"
        "404.html, an empty sitemap, a file that is too large. Exit status 0 for none, 1 for any, 2 where no site is.",
        "every-parameter publish-check site",
    )
    checking.add_argument("site", metavar="SITE")
    checking.add_argument(
        "--largest", default=LARGEST, metavar="AMOUNT", help=f"how large a file may be (default {LARGEST})"
    )


# --- what several commands share --------------------------------------------------------------------------------------


def _command(commands, name: str, summary: str, text: str, example: str) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n\n{text}",
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _conditions(command: argparse.ArgumentParser) -> None:
    """At one context, for how many texts, in which formats, on how many devices, and how it is printed."""
    command.add_argument("--format", choices=("table", "json"), default="table", help="table (default) or json")
    command.add_argument(
        "--context", type=_tokens, default=4096, metavar="N", help="tokens of context; 32k is 32,768 (default 4096)"
    )
    command.add_argument("--batch", type=_at_least_one, default=1, metavar="N", help="texts at once (default 1)")
    _formats(command)


def _formats(command: argparse.ArgumentParser) -> None:
    """`--format-weights` and `--dtype` are what `describe` first called them."""
    command.add_argument(
        *("--weights", "--format-weights"),
        choices=tuple(FORMATS),
        default="bfloat16",
        dest="weights",
        help="format of the weights in memory, bytes moved and time (default bfloat16)",
    )
    command.add_argument(
        *("--cache", "--dtype"),
        choices=tuple(CACHE_BYTES),
        default="bfloat16",
        dest="cache",
        help="type of the cache's elements (default bfloat16)",
    )


def _on(command: argparse.ArgumentParser, is_required: bool) -> None:
    command.add_argument(
        "--on",
        required=is_required,
        metavar="MACHINE",
        help="an accelerator, such as h100 or rtx-4090, or an amount of memory, such as 24GB",
    )
    command.add_argument(
        "--devices", type=_devices, default=1, metavar="N", help="how many of them share the model (default 1)"
    )


def _at_least_one(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number above 0")
    return int(text)


def _tokens(text: str) -> int:
    """A number of tokens; a k behind it counts in 1,024, as names of contexts do."""
    thousands = text[-1:] in ("k", "K")
    n = _at_least_one(text[:-1] if thousands else text) * (1024 if thousands else 1)
    if n >= 10**9:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is too long a context: give less than 1,000,000,000 tokens")
    return n


def _devices(text: str) -> int:
    n = _at_least_one(text)
    if n > 65536:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} are too many devices: give at most 65,536")
    return n
