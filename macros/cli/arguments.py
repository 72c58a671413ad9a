"""The options of every command, in one module. Only the requested command's parser is built, and imports only what its
own options need."""

from __future__ import annotations

import argparse
import sys

from ..counting.asked import Unsaid
from ..counting.formats import CACHE_BYTES, FORMATS, PUBLISHED, WEIGHTS, cache_meant, format_meant
from ..counting.gguf_types import FORMATS as GGUF
from ..counting.quantizers import QUANTIZERS
from ..engine.architectures import architectures
from ..engine.bounds import MOST_DEVICES, MOST_TOKENS
from ..engine.errors import Problem, nearest, nearest_option, shorten

PROGRAM = "every-parameter"
MODEL = "MODEL is a preset's slug, the path of any Hugging Face config.json, a folder that holds one, or a GGUF file."


class Parser(argparse.ArgumentParser):
    """An argument parser that reports a wrong call in one line."""

    def options(self, words: list[str]) -> argparse.Namespace:
        """The options of a call; a word that its command does not accept is rejected for that command."""
        found, left = self.parse_known_args(words)
        if left:
            self._refuse(found.command, left)
        return found

    def _refuse(self, command: str, words: list[str]) -> None:
        """Reject words that a command does not accept: an unknown option is reported with the nearest one that it
        has."""
        commands = next(one.choices for one in self._actions if isinstance(one, argparse._SubParsersAction))
        of_command = commands[command]
        option = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
        if option is None:
            return of_command.error(f"unrecognized arguments: {' '.join(words)}")
        names = [name for action in of_command._actions for name in action.option_strings]
        hint = nearest_option(option, names, f"see {of_command.prog} --help")
        self.exit(2, f"{of_command.prog}: {Problem(f'{shorten(option)}: no such option', hint)}\n")

    def error(self, message):
        self.exit(2, f"{self.prog}: {Problem(message, f'see {self.prog} --help')}\n")

    def print_help(self, file=None):
        print(self.format_help(), end="", file=file)  # argparse ignores a failed write

    def exit(self, status=0, message=None):
        sys.stdout.flush()
        super().exit(status, message)


class Types(argparse.Action):
    """Prints the model types instead of running a command, like `--help`."""

    def __init__(self, option_strings, dest, **given):
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **given)

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        print(*architectures(), sep="\n")
        parser.exit()


class Version(Types):
    """Prints the version of the installed package, like `--help`."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(PROGRAM, version(PROGRAM))
        except PackageNotFoundError:
            parser.error(f"{PROGRAM} is not installed, and only an installed package has a version; pip install -e .")
        parser.exit()


def parser(asked: str | None = None) -> Parser:
    """The parser of the requested command, or of all of them; `command` is its name."""
    whole = Parser(
        prog=PROGRAM,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Where the numbers of a large language model come from: every parameter, derived from one forward "
        "pass.",
        epilog="examples:\n"
        "  every-parameter describe llama3-8b\n"
        '  every-parameter ask "two rtx 3090 llama 70b 16k"\n'
        "  every-parameter describe --format json gpt2 path/to/config.json | jq .parameters.total\n"
        "  every-parameter compare qwen3-8b llama3.1-8b\n"
        "  every-parameter what-if llama3-8b --set n_layers=64 --on h100\n"
        "  every-parameter fits llama3.3-70b --weights fp8 --context 32k --on h100\n"
        "  every-parameter split deepseek-v3 --devices 16 --batch 64 --on h100\n"
        "  every-parameter speculative llama3.3-70b llama3.2-1b --on h200\n"
        "  every-parameter train llama3-8b --method qlora --rank 16 --on 24GB\n"
        "  every-parameter check\n"
        '  every-parameter run capitals --text "The capital of France is"\n'
        "  every-parameter add config.json --family Llama --hub meta-llama/Llama-4-Tiny\n",
    )
    whole.add_argument("--version", action=Version, help="print the version and exit")
    commands = whole.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, add in COMMANDS.items():
        if asked not in COMMANDS or name == asked:
            add(commands)
    return whole


def _describe(commands) -> None:
    describing = _command(
        commands,
        "describe",
        "print the parameter table, totals and costs of models",
        f"{MODEL}\n"
        "A model that cannot be described gives one line on standard error and exit status 2; the others are printed.\n"
        "In a folder with *.safetensors, the files decide about bytes; if config.json says otherwise, a line tells.",
        "every-parameter describe --format json --collapse deepseek-v3",
    )
    describing.add_argument("models", nargs="+", metavar="MODEL")
    describing.add_argument("--types", action=Types, help="print every known model_type, one per line, and exit")
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
    _on(describing, is_required=False)
    _towers_and_hub(describing)
    _strict(describing)
    _formats(describing, Unsaid("bfloat16"))


def _towers_and_hub(command) -> None:
    """The towers of a multimodal model, and the files of a model of the hub."""
    command.add_argument(
        "--components",
        action="store_true",
        help="also print the towers of a multimodal model, with tokens and FLOPs of an image or a sound, and the "
        "modules for multi-token prediction",
    )
    command.add_argument(
        "--image",
        type=_image,
        action="append",
        metavar="WIDTHxHEIGHT",
        help="size in pixels of an image for the towers; may be given several times (default 1024x1024)",
    )
    command.add_argument(
        "--sound",
        type=_seconds,
        action="append",
        metavar="SECONDS",
        help="length of a sound for the towers; may be given several times (default 30)",
    )
    command.add_argument(
        "--files",
        action="store_true",
        help="of a model of the hub (organization/name), also read the headers of its safetensors files, or that of a "
        "GGUF file (organization/name:Q4_K_M): they decide about bytes. No weight is downloaded",
    )
    command.add_argument("--revision", metavar="NAME", help="branch, tag or commit of a model of the hub")


def _strict(command) -> None:
    command.add_argument(
        "--strict",
        action="store_true",
        help="exit status 1 if the files of a folder differ from its config.json in names, shapes or bytes, or a GGUF "
        "file's tensors from its metadata",
    )


def _compare(commands) -> None:
    comparing = _command(
        commands,
        "compare",
        "compare models side by side",
        f"{MODEL}\n"
        "Hyperparameters that differ are marked with ≠. Each figure of the other models has its ratio to the first\n"
        "model's.",
        "every-parameter compare qwen3-8b llama3.1-8b --context 32k --on h100",
    )
    comparing.add_argument("models", nargs="+", metavar="MODEL", help="two or more")
    _conditions(comparing)
    _on(comparing, is_required=False)


def _what_if(commands) -> None:
    asking = _command(
        commands,
        "what-if",
        "change a model's hyperparameters and compare before and after",
        f"{MODEL}\n"
        "Both sides have the same conditions. An impossible value gives one line on standard error and exit status 2.",
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


def _ask(commands) -> None:
    asking = _command(
        commands,
        "ask",
        "answer a question in words, as the search of the site does",
        "QUESTION is read whole: a model by any of its names, a machine, a format, a context, users, a rank. The\n"
        "answer names values that it did not use. A model that the catalog lacks is said to be absent, and no other\n"
        "one answers for it.\n"
        "Exit status 0 for an answer, 1 if there is none or the model is absent.",
        'every-parameter ask "two rtx 3090 llama 70b 16k"\n  every-parameter ask "gemma 3 27b kv cache 20 users 16k"',
    )
    asking.add_argument("question", nargs="+", metavar="QUESTION")
    asking.add_argument("--format", choices=("text", "json"), default="text", help="text (default) or json")


def _fits(commands) -> None:
    fitting = _command(
        commands,
        "fits",
        "say whether models fit in memory during decode, and which do",
        f"{MODEL}\n"
        "The answer is a sentence, its terms, and the longest context that fits. On several devices it is for the\n"
        "fullest one of the split that it names; each device holds the largest operation whole.\n"
        "Without a MODEL, it lists the models of the catalog that fit, largest first; without --on, the machines that\n"
        "hold the model. Each row has the first format that fits, from the published one to fewer bits.\n"
        "With --host, layers or routed experts can be in the host's memory: as few as needed, experts first, or as\n"
        "many as --gpu-layers and --n-cpu-moe say. The answer then includes the minimum time per token.\n"
        "Exit status 0 if all fit, 1 if any does not or a list is empty; with --strict also 1 if files differ from "
        "their\nconfig.",
        "every-parameter fits llama3.3-70b --weights fp8 --cache fp8 --context 32k --on h100\n"
        "  every-parameter fits --on 24GB --context 32k\n"
        "  every-parameter fits llama3.3-70b",
    )
    fitting.add_argument("models", nargs="*", metavar="MODEL")
    _strict(fitting)
    _conditions(fitting, ("table", "json", "csv"), None)
    _on(fitting, is_required=False)
    _serving(fitting)


def _serving(command) -> None:
    """The engine that serves a model, and the host that holds part of it."""
    from ..counting.deploying import ENGINES
    from ..counting.engines import names as engines

    both = list(dict.fromkeys([*engines(), *ENGINES]))
    command.add_argument(
        "--engine",
        metavar="ENGINE",
        help=f"count what an inference engine adds, term by term: {', '.join(both)}. "
        f"With a MODEL; of {', '.join(ENGINES)} every option of the engine's own command line may "
        "follow, by its own name, and --on may name several devices, "
        "as in 2xh100+l40s or rtx-4090,free:20GB+rtx-5090",
    )
    command.add_argument(
        "--engine-version",
        default="",
        metavar="VERSION",
        help="version of the engine, whose rules and defaults hold; each answer names the one that it took",
    )
    command.add_argument(
        "--host",
        metavar="MACHINE",
        help="the host's memory, its bandwidth and the link to the accelerator: "
        "64GB,2xDDR5-5600,link:64GB/s (both directions together)",
    )
    command.add_argument(
        *("--gpu-layers", "--n-gpu-layers", "-ngl"),
        type=_layers,
        dest="gpu_layers",
        metavar="N",
        help="number of last layers on the accelerator, with their cache; the others are on the host",
    )
    command.add_argument(
        *("--n-cpu-moe", "-ncmoe"),
        type=_layers,
        dest="n_cpu_moe",
        metavar="N",
        help="number of first layers whose routed experts are in the host's memory",
    )


def _log(commands) -> None:
    reading = _command(
        commands,
        "log",
        "read an inference engine's start-up log, each figure beside the counted one",
        "FILE is the start-up log of vLLM, SGLang, llama.cpp or Ollama; - is standard input. Engine, version,\n"
        "model and options are read from it. Each figure is equal to the counted one, inside the rounding of what\n"
        "is given, explained, or different; lines that are not known are left alone. Paths, hosts and keys of the log\n"
        "are neither kept nor printed.\n"
        "Exit status 0 if no figure differs, 1 if one does.",
        "every-parameter log vllm.log\n  every-parameter log server.log --model qwen3-30b-a3b --weights Q4_K_M",
    )
    reading.add_argument("file", metavar="FILE")
    reading.add_argument(
        "--format", choices=("table", "json", "csv"), default="table", help="table (default), json or csv"
    )
    reading.add_argument("--model", metavar="MODEL", help="the model, if the log does not name it as the catalog does")
    reading.add_argument("--weights", metavar="FORMAT", help="format of the weights, if the log does not show it")
    reading.add_argument("--on", metavar="MACHINE", help="the devices, for what is to change: 2xrtx-3090")
    reading.add_argument("--engine", metavar="ENGINE", help="the engine, if the log does not show it")
    reading.add_argument(
        "--engine-version", default="", metavar="VERSION", help="its version, if the log does not show it"
    )
    reading.add_argument(
        "--options", default="", metavar="OPTIONS", help="options of the engine that the log does not show"
    )
    reading.add_argument(
        "--start", type=int, default=0, metavar="N", help="which start of several in the log; the fullest without it"
    )


def _split(commands) -> None:
    from ..counting.links import DISPATCH_TYPES

    splitting = _command(
        commands,
        "split",
        "list the splits of a model over devices, with the traffic between them",
        f"{MODEL}\n"
        "One row per split: the bytes on the fullest device, the bytes that one device sends for a decode step "
        "and for\n"
        "prefill, and the minimum times. --tensor, --pipeline or --data choose one split and list its messages;\n"
        "routed experts are divided over the devices of a stage.\n"
        "Exit status 0 if a split fits, 1 if none does, 2 if the sizes do not divide.",
        "every-parameter split deepseek-v3 --devices 16 --batch 64 --on h100",
    )
    splitting.add_argument("model", metavar="MODEL")
    _conditions(splitting)
    _on(splitting, is_required=True)
    for name, what in (
        ("tensor", "devices that share each matrix"),
        ("pipeline", "stages of layers"),
        ("data", "groups of devices, each with its own sequences"),
    ):
        splitting.add_argument(f"--{name}", type=_devices, metavar="N", help=f"{what} (default 1)")
    splitting.add_argument(
        "--dispatch",
        choices=tuple(DISPATCH_TYPES),
        default="bfloat16",
        help="type of tokens sent to experts (default bfloat16)",
    )


def _speculative(commands) -> None:
    from ..counting.speculative import MOST_DRAFTED

    speculating = _command(
        commands,
        "speculative",
        "bound the speedup of speculative decoding",
        f"{MODEL}\n"
        "DRAFT proposes tokens one by one, and TARGET checks them in one step. Without a draft, proposals cost "
        "nothing.\n"
        "The times are lower bounds on the machine, from each model's own shapes.",
        "every-parameter speculative llama3.3-70b llama3.2-1b --acceptance 0.8 --draft-tokens 5 --on h200",
    )
    speculating.add_argument("target", metavar="TARGET")
    speculating.add_argument("draft", nargs="?", metavar="DRAFT")
    _conditions(speculating)
    _on(speculating, is_required=True)
    speculating.add_argument(
        "--acceptance",
        default="0.8",
        metavar="SHARE",
        help="probability that a proposed token is accepted, from 0 to 1, independent of the others (default 0.8)",
    )
    speculating.add_argument(
        *("--draft-tokens", "--num-speculative-tokens"),
        type=_drafted,
        dest="draft_tokens",
        metavar="N",
        help=f"tokens proposed per step, up to {MOST_DRAFTED} (default: the best number)",
    )


def _prefix(commands) -> None:
    sharing = _command(
        commands,
        "prefix",
        "count what sequences save that share a prefix",
        f"{MODEL}\n"
        "The KV cache and the FLOPs of prefill for a batch of sequences whose first tokens are the same: with a\n"
        "prefix for each, with the prefix stored and computed once, and the difference.",
        "every-parameter prefix llama3-8b --prefix 2048 --context 8192 --batch 16",
    )
    sharing.add_argument("model", metavar="MODEL")
    sharing.add_argument("--prefix", type=_tokens, required=True, metavar="N", help="tokens that the sequences share")
    _conditions(sharing, batch=2)


def _bill(commands) -> None:
    billing = _command(
        commands,
        "bill",
        "count what a token costs: seconds, joules and money",
        f"{MODEL}\n"
        "Seconds, joules and money for a million input, cached and output tokens on a machine: at the bound of the\n"
        "hardware, at a utilization of it, and at a rate that you measured. Prices are yours, in any currency.",
        "every-parameter bill llama3.1-8b --on h100 --batch 64 --price-per-hour 2\n"
        "  every-parameter bill qwen3-32b --on rtx-3090 --devices 2 --weights Q4_K_M --purchase 700 --years 4 "
        "--electricity 0.30",
    )
    billing.add_argument("model", metavar="MODEL")
    for name, default, help in (
        ("input", 1000, "new tokens of a request"),
        ("output", 1000, "tokens that it writes"),
    ):
        billing.add_argument(
            f"--{name}", type=_tokens, default=default, metavar="N", help=f"{help} (default {default:,})"
        )
    billing.add_argument(
        "--cached", type=_tokens, default=0, metavar="N", help="tokens before them that are in the cache (default none)"
    )
    _conditions(billing, has_context=False)
    _on(billing, is_required=True)
    for name, metavar, help in (
        ("utilization", "SHARE", "the share of the bound that is reached, as 0.5 (default 1, the bound)"),
        ("tokens-per-second", "RATE", "output tokens per second of all devices that you measured"),
    ):
        billing.add_argument(f"--{name}", metavar=metavar, help=help)
    billing.add_argument(
        "--engine", metavar="ENGINE", help="the engine that serves: whether its memory holds the requests"
    )
    _prices(billing)


def _prices(command: argparse.ArgumentParser) -> None:
    """What the reader pays."""
    for name, metavar, help in (
        ("price-per-hour", "MONEY", "of a device"),
        ("purchase", "MONEY", "price of a device that you buy; give --years, too"),
        ("years", "N", "for which it is used all the time"),
        ("electricity", "MONEY", "price of a kilowatt-hour"),
    ):
        command.add_argument(f"--{name}", metavar=metavar, help=help)


def _train(commands) -> None:
    from . import training_arguments

    training = _command(
        commands,
        "train",
        "count the memory and time to train models, in full or with adapters",
        f"{MODEL}\n"
        "Trainable parameters, memory on the fullest device by term, and with --tokens the time and energy of a run.\n"
        "Adapters are counted as PEFT makes them. Exit status 1 if any model does not fit on the machine of --on.",
        "every-parameter train llama3-8b --method qlora --rank 16 --target-modules q_proj,v_proj --on 24GB",
    )
    training.add_argument("models", nargs="+", metavar="MODEL")
    training_arguments.add(training, _at_least_one, _devices, _tokens)
    _prices(training)
    _on(training, is_required=False)


def _check(commands) -> None:
    checking = _command(
        commands,
        "check",
        "compare presets with published totals and reference tensor lists",
        "One line per preset, then a summary. Exit status 0 if all agree, 1 if any is off, 2 for an unknown slug.",
        "every-parameter check gpt2 llama3-8b",
    )
    checking.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help="slugs of presets, or paths of their files; without one, the whole catalog",
    )


def _run(commands) -> None:
    running = _command(
        commands,
        "run",
        "predict the next token with a checkpoint's real weights",
        "FOLDER holds config.json and *.safetensors (float32, float16 or bfloat16; one file, or several with\n"
        "model.safetensors.index.json), or is `capitals`, the included small model. Computes in float32.\n"
        "The folder's tokenizer.json cuts a text into tokens. Most of these files need the library tokenizers, which\n"
        "`pip install tokenizers` adds.",
        'every-parameter run path/to/gpt2 --text "The capital of France is" --top 3',
    )
    running.add_argument("folder", metavar="FOLDER")
    given = running.add_mutually_exclusive_group(required=True)
    given.add_argument("--text", metavar="TEXT", help="the prompt")
    given.add_argument("--tokens", metavar="ID,ID,…", help="the token ids of the prompt, if there is no tokenizer.json")
    running.add_argument(
        "--source", metavar="ID,ID,…", help="the input of the encoder: token ids, or a .npy file of a spectrogram"
    )
    running.add_argument(
        "--top", type=_at_least_one, default=5, metavar="N", help="number of candidates to print (default 5)"
    )
    running.add_argument(
        "--memory",
        metavar="AMOUNT",
        help="refuse a run that needs more memory, such as 8GB (default: this machine's memory)",
    )
    running.add_argument(
        "--generate",
        type=_at_least_one,
        default=0,
        metavar="N",
        help="also generate N tokens, always the likeliest one",
    )
    running.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="DESIGN",
        help="leave out a design: scaling, causal_mask, residual_stream, norms, or one norm by its name, such as ln_f; "
        "may be given several times",
    )
    running.add_argument(
        "--trace",
        action="store_true",
        help="also print the shape, mean and largest absolute value of each step's output",
    )
    running.add_argument("--logits", metavar="OUT.npy", help="also save the [T, V] float32 logits of all tokens")


def _add(commands) -> None:
    adding = _command(
        commands,
        "add",
        "write the skeleton of a preset from a config.json",
        "Writes TOML with the config's keys, in the presets' order, and lists what to fill in. If a key of the "
        "config is\n"
        "not known, it names the key. With --family, the file goes to its place below macros/presets of a\n"
        "clone; elsewhere, name it with --output. Several files give a preset each, all or none of them.",
        "every-parameter add config.json --family Llama --hub meta-llama/Llama-4-Tiny",
    )
    adding.add_argument(
        "config",
        nargs="+",
        metavar="config.json",
        help="the published file, its folder, organization/name on the hub, or organization/name=FILE",
    )
    adding.add_argument("--family", help="the family's name; a new one gets its folder")
    adding.add_argument(
        "--like", metavar="SLUG", help="a preset of the same family and organization, as both are there"
    )
    adding.add_argument(
        "--hub", metavar="REPOSITORY", help="source of the file, as organization/name (default: from its folder)"
    )
    adding.add_argument(
        "--slug", help="the preset's file name without .toml (default: from the repository's or the folder's name)"
    )
    adding.add_argument(
        "--output",
        metavar="FILE",
        help="write to this file instead of the preset's place or standard output; never overwrites a file",
    )


def _scaffold(commands) -> None:
    scaffolding = _command(
        commands,
        "scaffold",
        "write the files of a new architecture, and list what is still open",
        "Copies the forward pass of a similar type into a module of its own, with a small config, the stub of a\n"
        "closed form and the statement that no library has the type. Works in a clone of the repository. For a type\n"
        "that is there, it lists what is still open.",
        "every-parameter scaffold my_llama --like llama",
    )
    scaffolding.add_argument("type", metavar="TYPE", help="the new model_type")
    scaffolding.add_argument("--like", metavar="TYPE", help="a similar type, whose code is copied")


def _totals(commands) -> None:
    adding = _command(
        commands,
        "totals",
        "read the published number of parameters from a checkpoint's files",
        "PATH is a folder with *.safetensors, one such file, a GGUF file, or a model.safetensors.index.json. The "
        "command reads only\n"
        "the beginning of a file, which lists its tensors; you need not download the rest. It prints the lines of\n"
        "[published]. With --preset, it adds them to the preset, and compares its tensor names with the file's.",
        "every-parameter totals path/to/llama4-tiny --preset llama4-tiny",
    )
    adding.add_argument("path", metavar="PATH")
    adding.add_argument(
        "--preset", metavar="SLUG", help="add the lines to this preset; also a preset's file, models/ours-1b.toml"
    )
    adding.add_argument(
        "--hub", metavar="REPOSITORY", help="source of the files (default: the preset's, or from their folder)"
    )
    adding.add_argument(
        "--strict",
        action="store_true",
        help="also refuse gaps between tensors, bytes after the last one, and empty tensors",
    )


def _schema(commands) -> None:
    describing = _command(
        commands,
        "schema",
        "print the JSON Schema of presets",
        "The schema lists the keys of a preset, from the definitions that read it. Editors use it to complete "
        "and check\n"
        "presets; .taplo.toml names the file of the example.",
        "every-parameter schema --output .cache/preset.schema.json",
    )
    describing.add_argument(
        "--output", metavar="FILE", help="write to this file instead of standard output, and overwrite it"
    )


def _macros(commands) -> None:
    finding = _command(
        commands,
        "macros",
        "find the macro that shows something on a page",
        "WORDs say what to show. Prints the macros that fit best, each with its call to copy; without a word, all\n"
        "that pages can show. Exit status 2 if there is none.",
        "every-parameter macros two models side by side",
    )
    finding.add_argument("words", nargs="*", metavar="WORD")


def _diff(commands) -> None:
    comparing = _command(
        commands,
        "diff",
        "list every figure that a change moves, by model",
        "BEFORE and AFTER are revisions of this repository, folders of data such as site/data/v1, or two models: a\n"
        "name, a config.json, a folder that holds one, or a GGUF file. The code of a revision runs with the currently\n"
        "installed libraries. Exit status 0 whether or not figures moved.",
        "every-parameter diff main --format markdown\n  every-parameter diff qwen3-8b Qwen3-8B-Q4_K_M.gguf",
    )
    comparing.add_argument("before", metavar="BEFORE")
    comparing.add_argument("after", nargs="?", metavar="AFTER", help="(default: the current code)")
    comparing.add_argument(
        "--format",
        choices=("table", "markdown", "json"),
        default="table",
        help="table (default), markdown for a pull request, or json",
    )


def _publish_check(commands) -> None:
    from .publish_check import LARGEST

    checking = _command(
        commands,
        "publish-check",
        "check a built site before publishing it",
        "SITE is the folder that `mkdocs build` wrote. Nothing is fetched. Prints one line per problem: broken links\n"
        "inside the site, anything that a page would load from another host, a page without its policy, a missing\n"
        "404.html, an empty sitemap, a file that is too large. Exit status 0 for none, 1 for any, 2 if there is no\n"
        "site.",
        "every-parameter publish-check site",
    )
    checking.add_argument("site", metavar="SITE")
    checking.add_argument(
        "--largest", default=LARGEST, metavar="AMOUNT", help=f"largest allowed file (default {LARGEST})"
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


def _conditions(
    command: argparse.ArgumentParser,
    written: tuple[str, ...] = ("table", "json"),
    weights: str | None = PUBLISHED,
    batch: int = 1,
    has_context: bool = True,
) -> None:
    """Context, batch size, formats, and the output format."""
    command.add_argument(
        "--format", choices=written, default="table", help=f"table (default), {' or '.join(written[1:])}"
    )
    if has_context:
        command.add_argument(
            "--context", type=_tokens, default=4096, metavar="N", help="tokens of context; 32k is 32,768 (default 4096)"
        )
    command.add_argument(
        "--batch",
        type=_at_least_one,
        default=batch,
        metavar="N",
        help=f"batch size: sequences in one step (default {batch})",
    )
    _formats(command, weights)


def _formats(command: argparse.ArgumentParser, weights: str | None) -> None:
    """The formats of weights and cache; `--format-weights` and `--dtype` are their older names. `best` is allowed where
    it is the default."""
    default = weights or f"{PUBLISHED}; in a list best, the first that fits"
    command.add_argument(
        *("--weights", "--format-weights"),
        type=_weights if weights else _weights_or_best,
        default=weights,
        dest="weights",
        metavar="FORMAT",
        help="format of the weights in memory, bytes moved and time: published, the maker's own, tensor by "
        "tensor (also "
        f"used if you name a format in which some of them are published); {', '.join(FORMATS)}; "
        f"of quantizers: {', '.join(QUANTIZERS)}; of GGUF files: {', '.join(GGUF)}; in upper or lower case "
        f"(default {default}{'; of a GGUF file its own' if isinstance(default, Unsaid) else ''})",
    )
    command.add_argument(
        *("--cache", "--dtype"),
        type=_cache,
        default="bfloat16",
        dest="cache",
        metavar="TYPE",
        help=f"type of the cache's elements: {', '.join(CACHE_BYTES)}, in upper or lower case; those from q8_0 on are "
        "llama.cpp's, scales included (default bfloat16)",
    )


def _on(command: argparse.ArgumentParser, is_required: bool) -> None:
    command.add_argument(
        "--on",
        required=is_required,
        metavar="MACHINE",
        help="an accelerator, such as h100 or rtx-4090, an amount of memory, such as 24GB, or a machine of your own: "
        "24GB,1008GB/s,165TFLOPS",
    )
    command.add_argument(
        "--devices", type=_devices, default=1, metavar="N", help="number of devices that share the model (default 1)"
    )


def _weights(text: str) -> str:
    """A weight format, in upper or lower case."""
    if isinstance(text, Unsaid):  # argparse also passes the default
        return text
    meant = format_meant(text)
    if not isinstance(meant, str) or meant not in WEIGHTS:
        known = f"one of {', '.join(WEIGHTS)}"
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a format of weights: {nearest(text, WEIGHTS, known)}")
    return meant


def _weights_or_best(text: str) -> str:
    """Like `_weights`, or `best`."""
    from ..counting.fitting import BEST

    return BEST if text.lower() == BEST else _weights(text)


def _cache(text: str) -> str:
    """A cache type, in upper or lower case."""
    meant = cache_meant(text)
    if not isinstance(meant, str) or meant not in CACHE_BYTES:
        known = f"one of {', '.join(CACHE_BYTES)}"
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a type of a cache: {nearest(text, CACHE_BYTES, known)}")
    return meant


def _at_least_one(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number above 0")
    return int(text)


def _tokens(text: str) -> int:
    """A number of tokens; a trailing k means 1,024, as in the names of contexts."""
    thousands = text[-1:] in ("k", "K")
    n = _at_least_one(text[:-1] if thousands else text) * (1024 if thousands else 1)
    if n > MOST_TOKENS:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is too long a context: give at most {MOST_TOKENS:,} tokens")
    return n


def _image(text: str) -> tuple[int, int]:
    """The width and height of an image in pixels."""
    width, by, height = text.partition("x")
    if not by:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not the size of an image: give its sides, as in 1024x768")
    return _at_least_one(width), _at_least_one(height)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of seconds") from None


def _layers(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of layers: give a whole number, 0 or more")
    return int(text)


def _drafted(text: str) -> int:
    from ..counting.speculative import MOST_DRAFTED

    n = _at_least_one(text)
    if n > MOST_DRAFTED:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is too many tokens: give at most {MOST_DRAFTED}")
    return n


def _devices(text: str) -> int:
    n = _at_least_one(text)
    if n > MOST_DEVICES:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is too many devices: give at most {MOST_DEVICES:,}")
    return n


COMMANDS = {
    "ask": _ask,
    "describe": _describe,
    "compare": _compare,
    "what-if": _what_if,
    "fits": _fits,
    "log": _log,
    "split": _split,
    "speculative": _speculative,
    "prefix": _prefix,
    "bill": _bill,
    "train": _train,
    "check": _check,
    "run": _run,
    "add": _add,
    "scaffold": _scaffold,
    "totals": _totals,
    "schema": _schema,
    "macros": _macros,
    "diff": _diff,
    "publish-check": _publish_check,
}
