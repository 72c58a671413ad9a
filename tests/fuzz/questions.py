"""The questions of the command line: `describe`, `compare`, `what-if`, `fits`, of models, configs and no such things.

With settings, conditions and machines that cannot be, in terminals of any width.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from macros.catalogue import presets
from macros.counting.accelerators import accelerators
from macros.counting.formats import CACHE_BYTES, WEIGHTS
from macros.counting.quantization import KEPT, METHODS
from macros.engine.architectures import find
from macros.engine.architectures.config import fields_of
from macros.views.words import notation

from . import Case, configs, own_machines
from .command_line import answered
from .texts import text

FEW = 12
SECONDS = 4.0  # of two models, one of them changed

COMMANDS = ("describe", "compare", "what-if", "fits")
GOOD_NUMBERS = ("1", "2", "8", "32k", "4096", "999999999")
NUMBERS = ("0", "-1", "999999k", "k", "1e3", "1000000000", "9" * 5000, "१", " 7 ", "0x10")
AMOUNTS = ("24GB", "80 GB", "1e3GB", "0GB", "-1GB", "inf GB", "nanGB", "1TB", "9" * 400 + "GB", "1e400GB", "GB", "24")
WIDTHS = (1, 2, 5, 20, 20, 20, 40, 80, None, None)
NO_FILES = ("/dev/zero", "/", ".", "", "pipe", "link", "none.json", "\x00", "a" * 5000, "~", "config.json/x")


@cache
def slugs() -> list[str]:
    return sorted(presets.paths())


@cache
def keys_of(slug: str) -> list[tuple[tuple[str, ...], Any, Any, bool]]:
    """Of each hyperparameter of a preset what it is called, its value, its type, and whether it is a size."""
    config = presets.preset(slug).config if slug in slugs() else None
    if config is None:
        return [(("n_layers", "hidden_size"), 32, int, True)]
    fields = fields_of(find(config["model_type"]).config)
    return [
        ((k.field, notation.letter(k.field), str(k.key), *k.also), config.get(str(k.key)), k.type, k.is_size)
        for k in fields
    ]


def draw(rng: random.Random) -> Case:
    command = rng.choice(COMMANDS)
    how_many = 1 if command == "what-if" else rng.choice((1, 2, 2, 3))
    models = [model(rng) for _ in range(how_many)]
    options: list[str] = []
    if command == "what-if":
        of = keys_of(models[0] if isinstance(models[0], str) else "")
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            options += ["--set", setting(rng, of)]
    kinds = ["context", "weights", "cache", "format"]
    kinds += ["collapse"] if command == "describe" else ["batch", "devices", "on"]
    for kind in rng.sample(kinds, rng.choice((0, 1, 1, 2))) + (["on"] if command == "fits" else []):
        options += option(rng, kind)
    if rng.random() < 0.03:
        options.append(text(rng))
    return {"command": command, "models": models, "options": options, "width": rng.choice(WIDTHS)}


def model(rng: random.Random) -> Any:
    """A slug, a config of its own, or what is neither."""
    kind = rng.random()
    if kind < 0.6:
        return rng.choice(slugs())
    if kind < 0.96:
        case = {"config": configs.draw(rng)}
        if rng.random() < 0.5:
            case |= {"beside" if rng.random() < 0.3 else "quantization": quantization(rng)}
        return case
    return rng.choice((*NO_FILES, text(rng)))


OF_TORCHAO = ("Int4WeightOnlyConfig", "Int8WeightOnlyConfig", "Float8WeightOnlyConfig", "x", None, 4)
GRANULARITIES: tuple[Any, ...] = (
    *(None, 128, 0, -1, True, "x", [], [3], {}, {"_type": "PerRow"}, {"_type": []}, [{"_type": "PerTensor"}] * 2),
    *({"_type": "PerGroup"}, {"_type": "PerGroup", "_data": {"group_size": 64}}, {"_type": "PerGroup", "_data": 3}),
)


def quantization(rng: random.Random) -> Any:
    """How a config says that its weights are quantized."""
    names = [module(rng) for _ in range(rng.choice((0, 1, 2, 5)))] * rng.choice((1, 1, 1, 1, 2000))
    scheme: dict[str, Any] = {"num_bits": rng.choice((4, 8, 3)), "type": rng.choice(("int", "float")), "group_size": 32}
    said: dict[str, Any] = {"quant_method": rng.choice((*METHODS, "torchao", "x", None)), rng.choice(KEPT): names}
    ours = {rng.choice(("granularity", "group_size", "x")): rng.choice(GRANULARITIES)}
    said |= rng.choice(
        (
            {"weight_block_size": [128, 128]},
            {"bits": rng.choice((4, 8)), "group_size": rng.choice((-1, 1, 128, 2**20)), "lm_head": True},
            {"quant_algo": rng.choice(("FP8", "NVFP4", "MXFP8", "MIXED_PRECISION", "x")), "group_size": 16},
            {"quantized_layers": {name: {"quant_algo": rng.choice(("FP8", "NVFP4"))} for name in names}},
            {"config_groups": {"g": {"targets": rng.choice((["Linear"], names)), "weights": scheme}}, "format": "x"},
            {"dynamic": {f"-:{name}": {} for name in names}, "bits": 4},
            {"quant_type": {"default": {"_type": rng.choice(OF_TORCHAO), "_version": 2, "_data": ours}}},
        )
    )
    if rng.random() < 0.5:
        key = rng.choice([*said])
        said[key] = configs.strange(rng, said[key])
    return said


def module(rng: random.Random) -> str:
    """The name of a module, with stars, or as an expression."""
    name = rng.choice(
        ("lm_head", "model.layers.0", f"model.layers.{rng.randrange(9)}.self_attn", "mlp.experts.3", "a." * 99)
    )
    piece = rng.choice(("(", "(a|b)", "[0-9]", ".*", "(?:x)?", "\\d+", "a?", "|", ")", "*", "{9}", "\\", "[", "[z-a]"))
    expression = f"{rng.choice(('', '^', '.*'))}{piece * rng.choice((1, 1, 2, 12, 5000))}{rng.choice(('', '$', 'x'))}"
    return rng.choice((name, f"{name}*", "*" * rng.choice((1, 50, 5000)) + "x", f"re:{expression}", text(rng)))


def setting(rng: random.Random, of: list) -> str:
    names, before, kind, is_size = rng.choice(of)
    name = rng.choice(names) if rng.random() < 0.95 else text(rng)
    value = configs.likely(rng, before, kind, is_size)
    if rng.random() < 0.3:
        value = rng.choice((configs.strange(rng, before), text(rng), "9" * 5000))
    written = value if isinstance(value, str) else json.dumps(value)
    return rng.choice((f"{name}={written}",) * 30 + (name, f"{name}=", f"={written}", f"{name}=={written}"))


def option(rng: random.Random, kind: str) -> list[str]:
    is_strange = rng.random() < 0.1
    good: dict[str, tuple[str, ...]] = {
        **dict.fromkeys(("context", "batch", "devices"), GOOD_NUMBERS),
        "weights": tuple(WEIGHTS),
        "cache": tuple(CACHE_BYTES),
        "format": ("table", "json"),
        "on": (*accelerators(), "24GB", "0.5GB"),
    }
    if kind == "collapse":
        return ["--collapse"]
    if kind == "on" and rng.random() < 0.3:
        return [f"--on={own_machines.machine(rng)}"]
    bad = AMOUNTS if kind == "on" else NUMBERS if good[kind] is GOOD_NUMBERS else ("", "csv")
    return [f"--{kind}={rng.choice((*bad, text(rng))) if is_strange else rng.choice(good[kind])}"]


def smaller(case: Case) -> Iterator[Case]:
    for part in ("options", "models"):
        for i in range(len(case[part])):
            yield case | {part: case[part][:i] + case[part][i + 1 :]}
    for i, one in enumerate(case["models"]):
        if isinstance(one, dict):
            for less in (one | {"config": config} for config in configs.smaller(one["config"])):
                yield case | {"models": [*case["models"][:i], less, *case["models"][i + 1 :]]}
    if case["width"]:
        yield case | {"width": None}


def written(given: list[Any], folder: Path) -> list[str]:
    """What a command is called with for its models, once the configs are in the folder."""
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("link")
    models = []
    for i, one in enumerate(given):
        if isinstance(one, dict):
            made = folder / str(i)
            made.mkdir()
            raw = configs.config(one["config"])
            raw |= {"quantization_config": one["quantization"]} if "quantization" in one else {}
            (made / "config.json").write_text(json.dumps(raw), "utf-8")
            if "beside" in one:
                (made / "hf_quant_config.json").write_text(json.dumps({"quantization": one["beside"]}), "utf-8")
            one = str(made)
        models.append(str(folder / one) if one in ("pipe", "link") else one)
    return models


def trial(case: Case, folder: Path) -> None:
    models = written(case["models"], folder)
    if case["command"] == "describe" and "--format=table" not in case["options"]:
        # every tensor of a large model is a page of a book
        case = case | {"options": [*case["options"], "--collapse"]}
    answered([case["command"], *models, *case["options"]], SECONDS * len(models), width=case["width"])
