"""A golden checkpoint of an architecture that no library has, from its author's own torch module.

    python -m tests.reference.own TYPE my_model.py:build
    python -m tests.reference.own TYPE my_model.py:build --variants

With `--variants` it writes no checkpoint: random variants of the small config are compared with the same module, and
their lists of tensors go into `tests/golden/variants.json`. `build` raises where the author's code refuses a config.

`build(config)` gets the type's small config from configs.json, as a dict, and returns a torch module that maps token
ids [1 T] to logits [1 T V], as they are or as `.logits` of an object. Its parameters have the names by which the
forward pass asks for them. Needs torch, and nothing else; variants need transformers, too.
"""

from __future__ import annotations

import json
import math
import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from macros.catalogue.presets import REFERENCE_LOGITS, Model, make
from macros.engine.architectures import find
from macros.engine.architectures.config import fields_of
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Arrays
from macros.engine.rules import ShapeError
from macros.engine.steps import Role

from . import TESTS, TOLERANCE, Blocks, digest
from .configs import PROMPT

if TYPE_CHECKING:
    import torch

SEED = 20261122
CONFIGS = "tests/reference/configs.json"


class Passed(NamedTuple):
    """What went into a block or a module, and what came out: [T D] each."""

    read: np.ndarray
    gave: np.ndarray


# The prefix of a block's weights, our block, and the author's module of that name.
Pair = tuple[str, Passed, Passed | None]


def rows(value: Any, batch: bool = False) -> np.ndarray:
    """The first array of what a block reads or gives, [T D], or the first tensor, [1 T D]; [0] where there is none."""
    while isinstance(value, (tuple, list)) and value:
        value = value[0]
    if hasattr(value, "detach"):
        value = value.detach().float().numpy()
    is_array = isinstance(value, np.ndarray) and value.ndim > batch
    return (value[0] if batch else value) if is_array else np.zeros(0)


class Named(Blocks):
    """A watch for `Arrays`: what each block read and gave, in order, by the prefix of its weights."""

    def __init__(self):
        super().__init__()
        self.passed: list[tuple[str, Passed]] = []

    def call(self, step, args, kwargs):
        outermost = self.depth == 0
        out = super().call(step, args, kwargs)
        if outermost and step.role is Role.LAYER:
            weights = next(value for value in (*args, *kwargs.values()) if isinstance(value, Arrays))
            self.passed.append((weights.prefix.rstrip("."), Passed(rows(args[0]), rows(out))))
        return out


def own_config(model_type: str) -> dict[str, Any]:
    """The small config of a type. Raises `Problem` if there is none, or if a key of it is wrong."""
    for raw in json.loads((Path(__file__).parent / "configs.json").read_bytes()):
        if raw["model_type"] == model_type:
            return raw
    raise Problem(f"{model_type} has no small config", "add one, of unequal sizes", CONFIGS)


def own_model(model_type: str, config: dict[str, Any]) -> Model:
    """Our model of a small config. Raises `Problem` for a key that is wrong, or that nothing reads."""
    where = f"{CONFIGS}: {model_type}"
    try:
        model = make(model_type, config)
    except Problem as problem:
        raise problem.at(where) from None
    if model.unknown:
        keys = ", ".join(model.unknown)
        raise Problem(f"{keys}: {model.architecture.name} does not read it", "remove it, or make it a field", where)
    return model


def of_author(file: str, doing: str, call: Callable[..., Any], *args: Any) -> Any:
    """What the author's code gives. What it raises becomes a `Problem` with the line of the file."""
    try:
        return call(*args)
    except (Exception, SystemExit) as error:
        here = Path(file).resolve()
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).resolve() == here]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
        where = f"{file}:{line}" if line else file
        raise Problem(f"{doing} raises {type(error).__name__}: {error}", "correct the line", where) from None


def built(where: str, config: dict[str, Any]) -> torch.nn.Module:
    """The module that a function of a file makes of a config, with random weights that leave no norm at 1."""
    if find_spec("torch") is None:
        raise Problem("torch is not installed", "pip install torch")
    import torch

    file, _, name = where.partition(":")
    name = name or "build"
    spec = spec_from_file_location("own_model", file)
    if spec is None or spec.loader is None or not Path(file).is_file():
        raise Problem("there is no such Python file", "name it and its function, as in my_model.py:build", file)
    module = module_from_spec(spec)
    of_author(file, "importing it", spec.loader.exec_module, module)
    if not callable(getattr(module, name, None)):
        raise Problem(f"has no function {name}", "name it after the colon", file)
    torch.manual_seed(SEED)
    model = of_author(file, f"{name}(config)", getattr(module, name), dict(config))
    if not isinstance(model, torch.nn.Module):
        raise Problem(f"{name}(config) returns {found(model)}", "return a torch.nn.Module", file)
    model = model.float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            random = torch.randn_like(parameter)
            if parameter.ndim > 1:
                parameter.copy_(random / parameter.shape[-1] ** 0.5)
            else:
                parameter.add_(random / 5)
    return model.requires_grad_(False)


def found(value: object) -> str:
    """A value of the author's for a message: its type, and of an array its shape."""
    shape = getattr(value, "shape", None)
    return "None" if value is None else type(value).__name__ + (f" {list(shape)}" if shape is not None else "")


def run(model: torch.nn.Module, where: str, ids: torch.Tensor, vocab_size: int):
    """Its logits [T V], and what each of its modules read and gave."""
    import torch

    passed: dict[str, list[Passed]] = {}

    def keep(name: str):
        def hook(_, args, kwargs, out):
            read = args or tuple(kwargs.values())
            passed.setdefault(name, []).append(Passed(rows(read, True), rows(out, True)))

        return hook

    for name, module in model.named_modules():
        module.register_forward_hook(keep(name), with_kwargs=True)
    file = where.partition(":")[0]
    out = of_author(file, f"the module, called with token ids {list(ids.shape)},", model, ids)
    out = getattr(out, "logits", out)
    expected = (*ids.shape, vocab_size)
    if not isinstance(out, torch.Tensor) or tuple(out.shape) != expected:
        raise Problem(
            f"the module returns {found(out)}",
            f"return logits {list(expected)}, [1 T V], as they are or as .logits of an object",
            file,
        )
    if not torch.isfinite(out).all():
        raise Problem("the module's logits are not finite numbers", "look for a division by 0 or a mask of -inf", file)
    return out.float().numpy()[0], passed


def compared(model: Model, where: str, stored: Mapping[str, np.ndarray], ids: np.ndarray, reference, passed):
    """The largest difference of our logits from `reference`, as a share of the largest, and our blocks beside the
    author's modules: `passed` is what each of these read and gave, by its name.

    Raises `Problem` where tensors or logits differ.
    """
    file, module = where.partition(":")[0], f"macros/engine/architectures/{model.architecture.name}.py"
    counts = model.counts
    here = {n: tuple(shape) for n, shape in (*counts.tensors(), *counts.tensors(counts.buffers))}
    there = {name: array.shape for name, array in stored.items()}
    differ = [name for name in sorted(here.keys() | there.keys()) if here.get(name) != there.get(name)]
    for name in differ:
        print(f"{name}: {here.get(name, 'missing')} in the forward pass, {there.get(name, 'missing')} in the module")
    if differ:
        raise Problem(
            f"{len(differ)} tensors differ from those of {module}", "give them the same names and shapes in both", file
        )
    watch = Named()
    try:
        mine, _ = logits(model.architecture, model.config, Arrays(stored, watch=watch), ids)
    except (ValueError, TypeError, ShapeError) as error:
        raise Problem(f"the forward pass raises {type(error).__name__}: {error}", "correct it", module) from None
    off, paired = apart(mine, reference), pairs(watch.passed, passed)
    if not off <= TOLERANCE:
        raise Problem(
            f"the logits differ from those of {module} by {off:.1e} of the largest, and {TOLERANCE:.0e} is allowed",
            first_difference(paired),
            file,
        )
    return off, paired


def apart(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference, as a share of the largest number."""
    return float(np.abs(ours - theirs).max() / max(1, np.abs(theirs).max()))


def pairs(ours: Sequence[tuple[str, Passed]], theirs: Mapping[str, Sequence[Passed]]) -> list[Pair]:
    """Each of our blocks beside the author's module of the same name; a block that runs again, beside its next run."""
    runs = {name: iter(passed) for name, passed in theirs.items()}
    return [(name, block, next(runs.get(name, iter(())), None)) for name, block in ours]


def first_difference(paired: Sequence[Pair]) -> str:
    """What to look at: the first block whose output differs from that of the author's module of the same name."""
    same = False
    for name, block, other in paired:
        for says, mine, its in zip(
            ("the input of {} differs already: compare what comes before it", "{} is the first block to differ"),
            block,
            other or (),
        ):
            if mine.shape == its.shape and mine.size:
                same = True
                if not apart(mine, its) <= TOLERANCE:
                    return says.format(name)
    if same:
        return "the output of each block is the same: compare what follows the last one"
    names = ", ".join(dict.fromkeys(name for name, *_ in paired[:2]))
    return f"make each block a module named as its weights begin ({names}), and the first that differs is named"


def inputs(paired: Sequence[Pair]) -> np.ndarray:
    """What each of the author's blocks read, [L T D], for the tests to compare; empty where one is not known."""
    read = [other.read for _, block, other in paired if other and other.read.shape == block.read.shape]
    return np.array(read) if len(read) == len(paired) and len({r.shape for r in read}) == 1 else np.zeros(0)


def listed(model_type: str) -> None:
    """Add the type to those whose logits were compared."""
    lines = REFERENCE_LOGITS.read_text("utf-8").splitlines()
    own = f'  "{model_type}",'
    if own not in lines:
        types = [n for n, line in enumerate(lines) if line.startswith('  "')]
        lines.insert(next((n for n in types if lines[n] > own), types[-1] + 1), own)
        REFERENCE_LOGITS.write_text("\n".join(lines) + "\n", "utf-8")


def held(model: Model, module: torch.nn.Module, where: str):
    """A text, the module's logits and what its modules passed on, and the tensors that it holds."""
    import torch

    vocab_size = int(model.config.vocab_size)
    ids = torch.randint(0, vocab_size, (1, PROMPT), generator=torch.Generator().manual_seed(SEED))
    out, passed = run(module, where, ids, vocab_size)
    asked = dict(model.counts.tensors(model.counts.buffers))
    has = dict(module.named_parameters()) | {name: b for name, b in module.named_buffers() if name in asked}
    return ids, out, passed, {name: tensor.detach().numpy().copy() for name, tensor in has.items()}


def changes(number: int, config: dict[str, Any], flags: Mapping[str, bool]) -> dict[str, Any]:
    """One to three keys of a small config with other values, inside of a table too."""
    from .variants import another

    rng = random.Random(f"{config['model_type']} {number}")
    values = {name: value for name, value in {**flags, **config}.items() if not name.endswith("_type")}
    new = {}
    for name in rng.sample(sorted(values), rng.choice((1, 1, 2, 3))):
        if isinstance(value := values[name], dict):
            inner = rng.choice([key for key in sorted(value) if value[key] is not None])
            new[name] = value | {inner: another(rng, inner, value[inner])}
        else:
            new[name] = another(rng, name, value)
    return {name: value for name, value in new.items() if value != values[name]}


def variants(model_type: str, where: str) -> None:
    """Compare random variants of the small config, and write down what each has. Ends the program if one differs."""
    from .variants import FILE, LEAST, MOST, written

    config, compares, count = own_config(model_type), {}, Counter[str]()
    flags = {k.key: k.default for k in fields_of(find(model_type).config) if k.key and isinstance(k.default, bool)}
    for number in range(MOST):
        new = changes(number, config, flags)
        if len(compares) == LEAST or not new or (said := json.dumps(new, sort_keys=True)) in compares:
            continue
        try:
            module = built(where, config | new)
            ours = make(model_type, config | new)
            ids, out, passed, stored = held(ours, module, where)
        except Problem as problem:
            print(f"{new}: {problem}")
            count["refused here or there"] += 1
            continue
        try:
            compared(ours, where, stored, ids[0].numpy(), out, passed)
        except Problem:  # rounding of single precision, if it is not so in double
            ids, out, passed, stored = held(ours, module.double(), where)
            compared(ours, where, stored, ids[0].numpy(), out, passed)
        listed = {name: tuple(map(int, shape)) for name, shape in ours.counts.tensors()}
        compares[said] = [new, sum(map(math.prod, listed.values())), digest(listed)]
        count["the same"] += 1
    print(f"{model_type}: {dict(count)}")
    FILE.write_text(written(json.loads(FILE.read_bytes()) | {model_type: list(compares.values())}), "utf-8")


def main(model_type: str, where: str) -> None:
    config = own_config(model_type)
    ours = own_model(model_type, config)
    model = built(where, config)
    import torch

    ids, out, passed, stored = held(ours, model, where)
    asked = dict(ours.counts.tensors(ours.counts.buffers))
    off, paired = compared(ours, where, stored, ids[0].numpy(), out, passed)
    print(f"{model_type}: {off:.1e}")
    told = {"config_json": json.dumps(config), "meta_json": json.dumps({"seed": SEED, "torch": torch.__version__})}
    arrays = {f"{'b' if name in asked else 'w'}/{name}": array for name, array in stored.items()}
    file = TESTS / f"golden/{model_type}.npz"
    np.savez_compressed(file, **told, input_ids=ids.numpy(), logits=out[None], hidden=inputs(paired), **arrays)
    listed(model_type)
    print(f"wrote {file.relative_to(TESTS.parent)}, and {model_type} into {REFERENCE_LOGITS.relative_to(TESTS.parent)}")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["--variants"]):
        sys.exit("usage: python -m tests.reference.own TYPE my_model.py:build [--variants]")
    try:
        (variants if sys.argv[3:] else main)(*sys.argv[1:3])
    except Problem as problem:
        sys.exit(str(problem))
