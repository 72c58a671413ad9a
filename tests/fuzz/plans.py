"""What a model needs: `fits` with engines, hosts and lists, `split`, `speculative`, `train`, `describe` by format.

Each ends with an answer that does not contradict itself, and that needs no less with more context, texts or fewer
devices, or with one line and exit status 2.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from macros.counting.adapters import BIASES
from macros.counting.engines import names as engines
from macros.counting.formats import CACHE_BYTES, WEIGHTS
from macros.counting.links import DISPATCH_TYPES
from macros.counting.training_setup import GRADIENTS, METHODS, OPTIMIZERS, RECOMPUTED

from . import MEMORY, Case, invariants, questions
from .command_line import answered
from .own_machines import machine
from .texts import text

FEW = 25
SECONDS = 5.0  # for each model; of the longest list twice as many

COMMANDS = (
    "fits",
    "fits",
    "served",
    "offloaded",
    "list",
    "split",
    "split",
    "speculative",
    "prefix",
    "train",
    "train",
    "describe",
)
# Of each option the values that can be; and those of the same kind that cannot, or hardly.
DEVICES = ("1", "2", "2", "4", "4", "8", "8", "16", "3", "6", "64")
LAYERS = ("0", "1", "2", "4", "8", "12", "16")
SHARES = ("0.8", "0", "1", "0.5", "1.0", ".5", "0.0000000000000000001", "0.999999999999999")
TOKENS = ("15T", "300B", "1", "1000000", "1000000T", "1.5T", "1k", "9" * 18)
TARGETS = ("q_proj,v_proj", "all-linear", "q_proj", "gate_proj,up_proj,down_proj", "c_attn", "q_proj,q_proj", "lm_head")
SAVED = ("lm_head", "embed_tokens,lm_head", "norm", "wte", "q_proj")
RANKS = ("1", "8", "16", "64", "65536")
CONTEXTS = ("1", "2", "7", "512", "4096", "32k", "131072", "1000k", "999999999")
BATCHES = ("1", "1", "2", "3", "16", "64", "1000", "999999999")
OF_WEIGHTS = (*WEIGHTS, "published", "published", "q4_k_m", "IQ2_xxs")
STRANGE: dict[Any, tuple[str, ...]] = {
    DEVICES: ("5", "7", "512", "65536", "65537", "0", "-8", "٨", "1e1"),
    LAYERS: ("32", "99", "999999999", "9999999999", "-1", "all", "1.0", "٣", ""),
    SHARES: (
        *(
            "1e-400",
            "1e-320",
            "1e-300",
            "2",
            "-0.1",
            "nan",
            "inf",
            "1/2",
            "80%",
            "०.५",
            "0." + "9" * 5000,
            "",
            ".",
            "0x1p-1",
        ),
        *("1_0e-2", " 0.5 ", "1e-5", "1.", "0.0", "00.5", "-0"),
    ),
    TOKENS: ("0", "1000001T", "0.0001k", "1e12", "-1B", "T", "٣T", "1.T", "9" * 19, ".5T", "1 T", "1.9999999999B"),
    TARGETS: ("nothing", "", ",", "q_proj,,v_proj", "experts", "embed_tokens", "model.layers.0.self_attn.q_proj", "*")
    + ("a," * 3000, "proj", "0", "all-linear,q_proj", "ALL-LINEAR", "^q"),
    SAVED: ("layers", "model", "x", "", "self_attn", "lm_head,lm_head", "0", "weight", "lm_head.weight"),
    RANKS: ("65537", "999999999", "0", "-1", "8.0", "१"),
    CONTEXTS: ("1000000000", "0", "k", "٤k", "4.096k", "32K ", "99999999k"),
    BATCHES: ("1000000000", "0", "1.5", "-1", "٣"),
}


def draw(rng: random.Random) -> Case:
    command = rng.choice(COMMANDS)
    models = [] if command == "list" else [model(rng)]
    if command == "list" and rng.random() < 0.6:
        models = [rng.choice(questions.slugs())]
    options = [f"--format={rng.choice(('json',) * 7 + ('table', 'table', 'csv', 'x'))}"]
    if command == "speculative" and rng.random() < 0.7:
        models.append(model(rng))
    if command in ("fits", "train", "describe") and rng.random() < 0.1:
        models.append(model(rng))
    strange = rng.choice((0.0, 0.0, 0.0, 0.25))
    for name, values in settings(rng, command):
        options += option(rng, name, values, strange)
    if rng.random() < 0.02:
        options.append(text(rng))
    return {"command": command, "models": models, "options": options, "more": rng.choice(MORE)}


def model(rng: random.Random) -> Any:
    """Most are models of the catalogue, which can be asked anything."""
    return rng.choice(questions.slugs()) if rng.random() < 0.5 else questions.model(rng)


def settings(rng: random.Random, command: str) -> Iterator[tuple[str, Any]]:
    """The options of a command, as many as happen to be there; None for one without a value."""

    def wanted(share: float) -> bool:
        return rng.random() < share

    is_known = command != "list" or wanted(0.4)
    if command in ("split", "speculative", "served", "offloaded", "fits") or command in ("train", "list") and is_known:
        yield "on", machine
    if command == "describe":
        yield "weights", (*OF_WEIGHTS, "gptq")
        if wanted(0.3):
            yield "cache", tuple(CACHE_BYTES)
        if wanted(0.3):
            yield "context", CONTEXTS
        return
    if command == "train":
        yield from _of_training(wanted)
        return
    if command == "prefix" and wanted(0.98):
        yield "prefix", CONTEXTS
    for name, values, share in (
        ("context", CONTEXTS, 0.7),
        ("batch", BATCHES, 0.5),
        ("weights", (*OF_WEIGHTS, *("best", "Best") * 9) if command in ("fits", "list") else OF_WEIGHTS, 0.5),
        ("cache", (*CACHE_BYTES, "Q8_0", "f16"), 0.5),
        ("devices", DEVICES, {"split": 0.9, "served": 0.05, "offloaded": 0.05, "prefix": 0.02}.get(command, 0.3)),
    ):
        if wanted(share):
            yield name, values
    if command == "served":
        yield "engine", engines()
    if command == "offloaded":
        yield "host", machine
        if wanted(0.4):
            yield rng.choice(("gpu-layers", "n-gpu-layers")), LAYERS
        if wanted(0.4):
            yield "n-cpu-moe", LAYERS
    if command == "split":
        for name in ("tensor", "pipeline", "data") if wanted(0.3) else ():
            yield name, DEVICES
        if wanted(0.3):
            yield "dispatch", tuple(DISPATCH_TYPES)
    if command == "speculative":
        if wanted(0.7):
            yield "acceptance", SHARES
        if wanted(0.6):
            yield "draft-tokens", ("1", "2", "5", "16", "64")
    if command == "fits" and wanted(0.03):
        yield rng.choice(("gpu-layers", "n-cpu-moe", "engine", "host")), (*LAYERS, "vllm", "64GB")


def _of_training(wanted: Any) -> Iterator[tuple[str, Any]]:
    is_adapted = wanted(0.6)
    for name, values, share in (
        ("method", tuple(METHODS)[1:] if is_adapted else ("full",), 1.0 if is_adapted else 0.3),
        *((("rank", RANKS, 0.4), ("target-modules", TARGETS, 0.4)) if is_adapted else ()),
        *((("bias", tuple(BIASES), 0.2), ("modules-to-save", SAVED, 0.2)) if is_adapted else ()),
        ("optimizer", tuple(OPTIMIZERS), 0.6),
        ("zero", ("0", "1", "2", "3", "fsdp"), 0.6),
        ("devices", DEVICES, 0.6),
        ("tensor", DEVICES, 0.0 if is_adapted else 0.25),
        ("pipeline", DEVICES, 0.0 if is_adapted else 0.25),
        ("expert", DEVICES, 0.0 if is_adapted else 0.15),
        ("sequence-parallel", None, 0.2),
        ("no-master-weights", None, 0.2),
        ("recompute", tuple(RECOMPUTED), 0.5),
        ("gradients", tuple(GRADIENTS), 0.3),
        ("sequence", CONTEXTS, 0.5),
        ("micro-batch", BATCHES, 0.4),
        ("tokens", TOKENS, 0.4),
        ("utilization", SHARES, 0.3),
        ("watts", ("1", "700", "1000000"), 0.2),
    ):
        if wanted(share):
            yield name, values


# What is then asked besides: of which the answer may not need less, or more.
MORE = (None, "context", "batch", "devices")
OF_TRAINING = {"context": "sequence", "batch": "micro-batch"}


def option(rng: random.Random, name: str, values: Any, strange: float) -> list[str]:
    if values is None:
        return [f"--{name}"]
    if values is machine:
        return [f"--{name}={machine(rng, 0.1 + strange)}"]
    if rng.random() < strange:
        values = (*STRANGE.get(values, ("", "x", "None", "__class__", "0")), text(rng))
    return [f"--{name}={rng.choice(values)}"]


def smaller(case: Case) -> Iterator[Case]:
    if case["more"]:
        yield case | {"more": None}
    yield from (less | {"more": case["more"]} for less in questions.smaller(case | {"width": None}))


def trial(case: Case, folder: Path) -> None:
    command = {"served": "fits", "offloaded": "fits", "list": "fits"}.get(case["command"], case["command"])
    is_named = any(option.startswith("--on=") for option in case["options"])
    is_list = command == "fits" and not (case["models"] and is_named)
    arguments = [command, *questions.written(case["models"], folder)]
    options = [*case["options"], *(["--collapse"] if command == "describe" else [])]
    seconds = 2 * SECONDS if is_list else SECONDS * max(1, len(case["models"]))
    memory = None if is_list else MEMORY
    said = _answers(answered([*arguments, *options], seconds, memory), command, options)
    if (name := case["more"]) and len(said) == 1 and (before := invariants.needed(command, said[0])) is not None:
        more = _more(command, options, name, said[0])
        if more is None:
            return
        after = _answers(answered([*arguments, *more], seconds, memory), command, more)
        if len(after) == 1 and (needed := invariants.needed(command, after[0])) is not None:
            is_less = name == "devices"
            assert needed <= before if is_less else needed >= before, f"{before:,}, and {needed:,} with {more}"


def _answers(came: tuple[int, str, str], command: str, options: list[str]) -> list[dict]:
    """The objects of an answer in JSON, each held against what it has to keep to."""
    status, shown, _ = came
    if "--format=json" not in options or not shown:
        return []
    said = [invariants.strict(line) for line in shown.splitlines()]
    for one in said:
        invariants.holds(command, one)
    assert status != 0 or said
    return said


def _more(command: str, options: list[str], name: str, said: dict) -> list[str] | None:
    """The options of the same question with twice as much of something; in the same format, and split alike."""
    given = said["setup"] if command == "train" else said["conditions"]
    key = OF_TRAINING.get(name, name) if command == "train" else name
    if name == "devices":
        if (
            command == "train"
            and (given["data"] == 1 or "run" in said and said["run"])
            or given.get("devices", 0) > 512
        ):
            return None
        if any(option.startswith(("--tensor=", "--pipeline=", "--data=")) for option in options) and command == "split":
            return None
        if "host_memory_bytes" in given or "engine" in said:
            return None
    now = given[key.replace("-", "_")]
    if key == "context" and now == 1:  # the step of the first token, which also runs an encoder, if there is one
        return None
    if command == "fits" and any(option.lower() == "--weights=best" for option in options):
        options = [*options, f"--weights={given['weights']}"]
    return [*options, f"--{key}={2 * now}"]
