"""The commands other than `describe` and `check`: `ask`, `compare`, `what-if`, `fits`, `log`, `split`, `speculative`,
`prefix`, `train`, `run`, `add`, `scaffold`, `totals`, `schema`, `macros`, `diff`, `publish-check`."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..api.bills import billed, prices_of
from ..api.changes import changed
from ..api.choices import Choices, best_format, machines_that_hold, models_that_fit
from ..api.comparison import as_compared, as_what_if, side
from ..api.conditions import accelerator
from ..api.deployments import Served, as_printed, served_by
from ..api.engines import EngineFit, engine_known, engine_named
from ..api.fits import Memory, amount, as_machine, fit, memory, served
from ..api.logs import read_file, reading
from ..api.offloading import Offloaded, host_memory, offloaded
from ..api.parallel import as_data as as_splits
from ..api.parallel import every_spread
from ..api.sharing import speculated, vocabularies_differ, with_prefix
from ..api.training import as_data as training_as_data
from ..api.training import plan
from ..catalogue import hub, preset_schema
from ..catalogue.models import Model
from ..counting.asked import share
from ..counting.bill import Request
from ..counting.cards import are_several
from ..counting.conditions import Conditions
from ..counting.deploying import ENGINES
from ..counting.engines import names as engine_names
from ..counting.fitting import BEST
from ..counting.formats import PUBLISHED
from ..counting.log_rows import State
from ..counting.training_plan import Narrowing, narrowed
from ..counting.training_plan import asked as training_asked
from ..data.costs import Asked
from ..data.model import beyond, line
from ..engine.errors import Problem, named
from ..engine.files import is_repository, place, write
from . import asking, bills, differences, engines, fits, macro_finder, parallel, publish_check, sides
from . import training as trained
from .printing import show
from .reporting import fail, warn
from .run import predict
from .scaffold import scaffold, still_open
from .settings import read
from .skeleton import skeleton
from .totals import totals as published_totals


def ask(options) -> int:
    """Print the answers to a question in words, best first."""
    question = " ".join(options.question)
    meaning, found = asking.answers(question)
    if options.format == "json":
        print_json(asking.as_data(question, meaning, found))
        return 0 if found and not meaning.absent else 1
    for answer in found:
        print(answer["title"], f"  {answer['said']}", f"  {answer['address']}", sep="\n")
    if note := asking.note_of(meaning):
        print(note)
    if not found:
        print(asking.NOTHING)
    return 0 if found and not meaning.absent else 1


def compare(options) -> int:
    """Print models side by side, one column each."""
    if len(options.models) < 2:
        raise Problem("compare needs two models or more", f"for {named(options.models[0])} alone, use describe")
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
    """Print a model before and after a change of hyperparameters."""
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
    """Whether each model fits; 1 if any does not. Without a model, the models that fit; without a machine, the machines
    that hold it; 1 if there are none."""
    wanted = options.weights or (BEST if not (options.models and options.on) else PUBLISHED)
    is_best, options.weights = options.weights == BEST, PUBLISHED if wanted == BEST else wanted
    if options.engine and _has_own_answer(options):
        if is_best:
            raise Problem("--weights best with an engine's options", "give one format")
        return _served(options)
    on = memory(options.on) if options.on else None
    given = conditions(options, on)
    engine = engine_named(options.engine) if options.engine else None
    if engine and not (options.models and on):
        raise Problem("--engine needs a model and a machine", "such as fits llama3-8b --on 24GB --engine vllm")
    host = None if options.host is None else host_memory(options.host)
    for name, value in (("--gpu-layers", options.gpu_layers), ("--n-cpu-moe", options.n_cpu_moe)):
        if host is None and value is not None:
            raise Problem(f"{name} without --host", "say what the host has, such as --host 64GB,2xDDR5-5600")
    if host and not (options.models and on):
        raise Problem("--host needs a model and a machine", "such as fits llama3-70b --on 24GB --host 64GB,2xDDR5-5600")
    if host and engine:
        raise Problem("--host with --engine", "give one of the two")
    if host and given.devices > 1:
        raise Problem(
            "--host with --devices", "give one of the two: layers in a host's memory are counted for one device"
        )
    if not options.models:
        if on is None:
            raise Problem("fits needs a model or a machine", "such as fits llama3-8b, or fits --on 24GB")
        return chosen(options.format, models_that_fit(as_machine(on), wanted, given))
    if options.format == "csv" and (on or len(options.models) > 1):
        raise Problem("--format csv is for one list", "leave out MODEL or --on, or take json")
    status = 0
    for name in options.models:
        try:
            model = loaded(name, options.context)
            if on is None:
                status = chosen(options.format, machines_that_hold(model, wanted, given)) or status
                status = status or int(options.strict and bool(model.file_difference))
                continue
            at = replace(given, format=best_format(model, given, on.size)) if wanted == BEST else given
            if host:
                answer = offloaded(model, at, on, host, options.gpu_layers, options.n_cpu_moe)
            else:
                answer = fit(model, at, on) if engine is None else served(model, at, on, engine)
        except Problem as problem:
            status = fail(problem)
            continue
        if options.format == "json":
            print_json(answer.to_dict())
        else:
            if isinstance(answer, Offloaded):
                show(parallel.offloaded(answer))
            else:
                show(engines.blocks(answer) if isinstance(answer, EngineFit) else fits.blocks(answer))
            print()
        status = status or int(not answer.is_enough or (options.strict and bool(model.file_difference)))
    return status


def _has_own_answer(options) -> bool:
    """Whether a request follows the engine's own rules: with its options, on several devices, without a machine, or for
    an engine that has no other rules."""
    is_one = options.on and not are_several(options.on) and options.devices == 1
    name = engine_known(options.engine)
    if options.engine_words or options.engine_version or name not in engine_names():
        return name in ENGINES
    return name in ENGINES and bool(options.models) and not is_one


def _served(options) -> int:
    """A model served by an engine with its own options; 1 if it does not fit."""
    if not options.models:
        raise Problem("--engine needs a model", "such as fits llama3-8b --on 24GB --engine vllm")
    host_bytes = None if options.host is None else host_memory(options.host).size
    given = conditions(options, None)

    def of(name: str) -> Served:
        engine = engine_known(options.engine)
        model = loaded(name, options.context)
        return served_by(model, given, engine, options.on, options.engine_words, options.engine_version, host_bytes)

    return _each_served(options, of)


def _each_served(options, of: Callable[[str], Served]) -> int:
    """Print the answer for each model; 1 if one has machines and does not fit on them."""
    status = 0
    for name in options.models:
        try:
            answer = of(name)
        except Problem as problem:
            status = fail(problem)
            continue
        if options.format == "json":
            print_json(answer.to_dict())
        else:
            show(engines.served_blocks(answer))
            print()
        status = status or int(bool(answer.cards) and not answer.is_enough)
    return status


def chosen(format: str, choices: Choices) -> int:
    """The models or machines that fit; 1 if there are none."""
    if format == "json":
        print_json(choices.to_dict())
    elif format == "csv":
        print(choices.to_csv(), end="")
    else:
        show(fits.choice_blocks(choices))
        print()
    return int(not choices)


def log(options) -> int:
    """A log's figures next to the computed ones; 1 if one differs."""
    text = sys.stdin.read() if options.file == "-" else read_file(options.file)
    answer = reading(
        text,
        options.model,
        options.on,
        options.weights,
        options.engine,
        options.options,
        options.engine_version,
        options.start,
    )
    if options.format == "json":
        print_json(answer.to_dict())
    elif options.format == "csv":
        print(answer.to_csv(), end="")
    else:
        show(engines.log_blocks(answer))
    return int(answer.replay.number(State.DIFFERENT) > 0)


def split(options) -> int:
    """The splits over devices, or one of them; 1 if none fits."""
    on = memory(options.on)
    given = conditions(options, on)
    model = loaded(options.model, options.context)
    degrees = None
    if options.tensor or options.pipeline or options.data:
        degrees = options.tensor or 1, options.pipeline or 1, options.data or 1
    found = every_spread(model, given, options.dispatch, degrees)
    given = replace(given, devices=found[0].split.devices)
    if options.format == "json":
        print_json(as_splits(model, given, on, found))
    else:
        show(parallel.splits(model, given, on, found))
    return int(all(one.total > on.size for one in found))


def speculative(options) -> int:
    """The bound on speculative decoding."""
    given = replace(conditions(options, None), accelerator=accelerator(options.on))
    target = loaded(options.target, options.context)
    draft = None if options.draft is None else loaded(options.draft, options.context)
    warn(options.target, vocabularies_differ(target, draft))
    acceptance = share("acceptance", options.acceptance, may_be_zero=True)
    answer = speculated(target, draft, given, acceptance, options.draft_tokens)
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        show(parallel.speculated(answer))
    return 0


def prefix(options) -> int:
    """What a batch of sequences saves by sharing its prefix."""
    given = Conditions(options.context, options.batch, options.weights, options.cache)
    model = loaded(options.model, options.context)
    table = with_prefix(model, options.prefix, given)
    if options.format == "json":
        said = {"prefix": options.prefix, "context": given.tokens, "batch": given.batch, "cache": given.dtype}
        print_json({"model": model.slug, "conditions": said, **{row.pop("figure"): row for row in table}})
    else:
        show(parallel.prefix(table))
    return 0


def bill(options) -> int:
    """What a token of a model costs on a machine."""
    request = Request(options.input, options.output, options.cached, options.batch)
    given = Conditions(request.middle, options.batch, options.weights, options.cache, options.devices)
    prices = prices_of(options.price_per_hour, options.purchase, options.years, options.electricity)
    share_of = 1 if options.utilization is None else options.utilization
    model = loaded(options.model, request.cached + request.input + request.output)
    answer = billed(model, given, request, options.on, share_of, options.tokens_per_second, prices, options.engine)
    if options.format == "json":
        print_json(answer.to_dict())
    else:
        show(bills.blocks(answer))
    return 0


def training(options) -> int:
    """The cost of training each model; 1 if any does not fit on the machine."""
    if options.framework:
        return _each_served(options, lambda name: as_printed(loaded(name, 1), options.framework, options.engine_words))
    on = memory(options.on) if options.on else None
    setup, adapter = training_asked(options)
    adapter = narrowed(adapter, Narrowing(*[getattr(options, name) for name in Narrowing._fields]))
    status = 0
    for name in options.models:
        try:
            run = (options.on, options.tokens, options.utilization, options.watts)
            prices = prices_of(options.price_per_hour, options.purchase, options.years, options.electricity)
            answer = plan(loaded(name, options.sequence), setup, adapter, on, *run, prices)
            warn(name, answer.unmatched)
        except Problem as problem:
            status = fail(problem)
            continue
        if options.format == "json":
            print_json(training_as_data(answer))
        else:
            show(trained.blocks(answer))
            print()
        status = status or int(not answer)
    return status


def conditions(options, on: Memory | None) -> Conditions:
    """The conditions of an answer, from the options."""
    accelerator = on.accelerator if on else None
    return Conditions(options.context, options.batch, options.weights, options.cache, options.devices, accelerator)


def loaded(name: str, context: int) -> Model:
    """A model, after its warnings are printed on standard error."""
    model = hub.load(name)
    warn(name, (*model.warnings, *beyond(model, Asked((context,)))))
    return model


def print_json(data: dict) -> None:
    """Print one object on one line."""
    print(line(data), end="")


def run(options) -> int:
    """Print the most likely next tokens according to a checkpoint's real weights."""
    predict(options, warn)
    return 0


def add(options) -> int:
    """Write the skeleton of a preset for each config.json, into its folder if a family is given."""
    if len(options.config) > 1:
        for name in ("slug", "hub", "output"):
            if getattr(options, name):
                mend = "write organization/name=FILE for each" if name == "hub" else "add them one by one"
                raise Problem(f"--{name} with several files", mend)
    files = [_with_repository(said) for said in options.config]
    made = [
        skeleton(hub.config_file(file), options.slug, options.family, options.hub or repository, options.like)
        for repository, file in files
    ]
    outputs = [Path(options.output) if options.output else one.path for one in made]
    if not options.output and any(outputs) and not is_repository():
        raise Problem("outside a clone of the repository, no folder is a family's", "name the file with --output")
    if twice := [output for output, n in Counter(filter(None, outputs)).items() if n > 1]:
        raise Problem(f"{place(twice[0])} is the preset of several files", "add them one by one, with --slug")
    for file, one, output in zip(options.config, made, outputs):
        if output is None:
            warn(file, one.warnings)
            print(one.text, end="")
        else:
            write(output, one.text, is_new=True, with_folders=not options.output)
            warn(place(output), one.warnings)
    return 0


def _with_repository(said: str) -> tuple[str | None, str]:
    """The repository and the file in `organization/name=FILE`; a file, or a name on the hub, names no other."""
    repository, sign, file = said.partition("=")
    return (repository, file) if sign and not os.path.exists(said) else (None, said)


def scaffolding(options) -> int:
    """Write the files of a new architecture, and list the remaining tasks."""
    written = scaffold(options.type, options.like)
    print(*(f"wrote {path}" for path in written), sep="\n", end="\n\n" if written else "")
    left = still_open(options.type)
    print(*(["still open:", *left] if left else ["nothing is open"]), sep="\n")
    return 0


def totals(options) -> int:
    """Print the published number of parameters, from a checkpoint's headers or its index."""
    lines, said, is_same = published_totals(options.path, options.hub, options.preset, options.strict)
    warn(options.path, said)
    if not options.preset:
        print(f"\n{lines}", end="")
    return 0 if is_same else 1


def schema(options) -> int:
    """Print the JSON Schema of presets."""
    if options.output is None:
        print(preset_schema.schema_text(), end="")
        return 0
    write(Path(options.output), preset_schema.schema_text(), with_folders=True)
    return 0


def macros(options) -> int:
    """Print the macros that show what the words describe."""
    print(*macro_finder.lines(macro_finder.macros_for(options.words)), sep="\n")
    return 0


def diff(options) -> int:
    """Print every figure that differs between two states of the data."""
    found = differences.compared(options.before, options.after)
    if options.format == "json":
        print_json(differences.as_data(found))
    elif options.format == "markdown":
        print(differences.as_markdown(found), end="")
    else:
        show(differences.blocks(found))
    return 0


def published(options) -> int:
    """Print the problems of a built site, one line each; 1 if there are any."""
    count = 0
    for problem in publish_check.finds(Path(options.site), amount(options.largest, "largest")):
        count += 1
        print(problem)
    print(f"{count} found" if count else "nothing found")
    return int(count > 0)


COMMANDS = {
    "ask": ask,
    "compare": compare,
    "what-if": what_if,
    "fits": fitting,
    "log": log,
    "split": split,
    "speculative": speculative,
    "prefix": prefix,
    "bill": bill,
    "train": training,
    "run": run,
    "add": add,
    "scaffold": scaffolding,
    "totals": totals,
    "schema": schema,
    "macros": macros,
    "diff": diff,
    "publish-check": published,
}
