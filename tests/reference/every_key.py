"""Every key of transformers' config classes: `python -m tests.reference.every_key [TYPE ...]`, from the repository.

`TYPE:KEY` tries one key of a type alone, and leaves the other rows as they stand.

Each key of a covered type's class, those of its base classes, its other spellings and the older keys of rotary
embeddings among them, gets other legal values in the small config, is null, and is left out. Where transformers builds
a model of it and runs it, ours must have the same tensors, scores and numbers in the cache, refuse the config in one
line, or say what differs. What is silently different is printed, and its type is not written then.

What changes transformers' model is written to `tests/golden/every_key.json`: for each type the change, the parameters,
a digest of the tensors, whether the scores are others (null: not with the numbers of the tests, or they lack what an
encoder read), and the numbers in the cache. The tests hold ours against it.
"""

from __future__ import annotations

import inspect
import json
import math
import re
import sys
import typing
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import CONFIG_MAPPING
from transformers.configuration_utils import ALLOWED_ATTN_LAYER_TYPES

from macros.catalogue.presets import Model, make
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Arrays, Cache
from macros.engine.ops import ACTIVATIONS

from . import TESTS, checkpoints, costs, digest, drawn, models, names, tensors
from . import in_double as double
from .configs import MULTIMODAL, PROMPT, configs
from .conventions import CACHE, CACHE_OF_OTHERS, differences, kept
from .double_precision import InDouble
from .variants import FIXED

FILE = TESTS / "golden" / "every_key.json"
ABSENT = "left out"
MOST_RUN = 2  # values of a key that are run, of those that transformers takes
LARGEST = 3_000_000  # parameters of a model that is small: where a class's default takes a key's place, it is not

# Keys that older files have, whatever the class; and the values they get.
OLDER: dict[str, list[Any]] = {
    "rope_scaling": [{"type": "linear", "factor": 2.0}, {"rope_type": "linear", "factor": 2.0}],
    "rope_theta": [500.0],
    "partial_rotary_factor": [0.5, None],
    "rope_parameters": [
        {"rope_type": "default", "rope_theta": 500.0},
        {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5},
        {"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0},
        {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 16},
        {"rope_type": "dynamic", "rope_theta": 500.0, "factor": 4.0},
        {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
        | {"original_max_position_embeddings": 16},
    ],
    "is_decoder": [True, False],
    "add_cross_attention": [True],
    "layer_types": [["sliding_attention", "full_attention"], ["full_attention", "sliding_attention"]],
}
# Names of keys that hardly ever change what a model computes: they get other values together first.
HARMLESS = re.compile(
    r"dropout|pdrop|drop|_token|_index$|_idx$|init|use_cache|^output_|return_dict|summary|aux|jitter|z_loss|loss"
    r"|chunk_size_feed|pretraining|gradient|^max_length"
)
# What is tried besides where a key's name says that it may change the cache alone.
OF_CACHE = re.compile(
    r"window|chunk|layer|head|share|cache|dim|rank|type|attention|_every|pattern|interval|position|cycle|pass|loop"
)
# Formats, which also make other random numbers, and how much an encoder read, which is no key there.
NOT_TRIED = "model_type", "dtype", "inference_state_dtype", "router_dtype", "num_image_tokens"
LAYERS_OF: dict[type, int] = {}  # of the small config that is changed
ASIDE = re.compile(r'kwargs\.(?:pop|get)\(\s*"(\w+)"|(?<=")(\w+)(?=" in kwargs)')
WORDS = re.compile(r"""["']([\w.-]+)["']""")


def class_of(model_type: str) -> type:
    return CONFIG_MAPPING[models.DECODERS.get(model_type, model_type)]


def keys(model_type: str) -> dict[str, Any]:
    """Each key of a type's class and of its small config, with the value in the small config or the class's own."""
    base, cls = configs()[model_type], class_of(model_type)
    own = {f.name: None if f.default is MISSING else f.default for f in fields(cls)}
    own |= {name: own.get(of) for name, of in cls.attribute_map.items()}
    own |= {name: base.get(of, own.get(of)) for name, of in aside(cls).items() if name not in own}
    return {name: base.get(name, value) for name, value in (own | dict.fromkeys(OLDER) | base).items()}


@cache
def kinds(cls: type) -> dict[str, str]:
    """What a class says of each key's type, as text."""
    said: dict[str, str] = {}
    for one in reversed(cls.__mro__):
        said |= {name: str(kind) for name, kind in getattr(one, "__annotations__", {}).items()}
    return said


@cache
def aside(cls: type) -> dict[str, str]:
    """Keys that a class reads though it does not list them, older files' mostly, and the keys in whose place they
    stand; one that stands in no other's is its own."""
    found: dict[str, str] = {}
    for one in cls.__mro__:
        if one.__module__.startswith("transformers.models."):
            found |= {name: name for name in map("".join, ASIDE.findall(inspect.getsource(one)))}
    return found | names.read_aside(cls)


@cache
def source(cls: type) -> str:
    """The code of a type's model and config."""
    config = Path(inspect.getfile(cls))
    return "".join(path.read_text("utf-8") for path in sorted(config.parent.glob("*ing_*.py")) + [config])


def words(cls: type, name: str) -> list[str]:
    """The words that a type's code compares a key's value with."""
    found: list[str] = []
    for line in re.findall(rf"\b{re.escape(name)}\b\s*(?:==|!=|in|not in)\s*(.{{1,120}})", source(cls)):
        found += WORDS.findall(line)
    literal = kinds(cls).get(name, "")
    return list(dict.fromkeys([*found, *(WORDS.findall(literal) if "Literal" in literal else [])]))


def others(cls: type, name: str, value: Any, table: str = "") -> Iterator[Any]:
    """Other values of a key, the likeliest first; not all are legal."""
    kind = kinds(cls).get(cls.attribute_map.get(name, name), "") if not table else ""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from dict.fromkeys((value * 2, value + 1, value // 2, value - 1, value + 2, value * 3, 1, 0, 4))
    elif isinstance(value, float):
        yield from (value * 2, value / 2, value + 0.25)
    elif isinstance(value, str):
        yield from (word for word in words(cls, name) if word != value)
        if value in ACTIVATIONS:
            yield from (word for word in ("gelu", "relu", "silu", "gelu_new", "tanh") if word != value)
    elif isinstance(value, (list, tuple)):
        yield from lists(cls, list(value))
    elif isinstance(value, dict):
        for inner, one in value.items():
            tried = 0
            for new in others(cls, inner, one, name):
                yield value | {inner: new}
                if (tried := tried + 1) == 2:
                    break
        yield dict(list(value.items())[1:])
    elif value is None and not table:
        yield from words(cls, name)
        if "bool" in kind:
            yield from (True, False)
        if "int" in kind:
            yield from (2, 3, 1, 4, 8, 12)
        if "float" in kind:
            yield from (0.5, 2.0)
        if "list" in kind and "list[str]" not in kind:
            yield from ([0], [1], [0, 1])
            n = LAYERS_OF.get(cls, 2)
            yield from ([kind] * n for kind in ("full_attention", "sliding_attention", "sparse", "dense"))
    if value is not None:
        yield None


def layers_of(raw: dict[str, Any]) -> int:
    """The layers of a config."""
    return next((raw[n] for n in ("num_hidden_layers", "num_layers", "n_layer", "n_layers") if n in raw), 2)


def lists(cls: type, value: list[Any]) -> Iterator[list[Any]]:
    if value[::-1] != value:
        yield value[::-1]
    if value and value[1:] + value[:1] != value:
        yield value[1:] + value[:1]
    if value and all(isinstance(one, str) for one in value):
        known = [one for one in (*ALLOWED_ATTN_LAYER_TYPES, "sparse", "dense") if f'"{one}"' in source(cls)]
        for word in dict.fromkeys([*value, *known]):
            yield [word] * len(value)
    elif value and all(type(one) in (int, float) for one in value):
        yield [one + 1 for one in value]
        yield [one * 2 for one in value]
        yield []
    elif value and all(isinstance(one, bool) for one in value):
        yield [not one for one in value]


def changes(model_type: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """By key, the changes of a small config that are tried."""
    base, cls = configs()[model_type], class_of(model_type)
    n = LAYERS_OF[cls] = layers_of(base)
    for name, value in keys(model_type).items():
        if name in NOT_TRIED or f"{model_type} {name}" in FIXED:
            continue
        tried: list[dict[str, Any]] = [{name: new} for new in others(cls, name, value)]
        if value is None and name in aside(cls):
            tried += [{name: new} for new in (2, 3, True, False, [2, 3] * (n // 2), 5)]
        if name in base:
            tried.append({name: ABSENT})
        if (of := cls.attribute_map.get(name)) is not None and of in base:
            tried = [{name: new} for new in others(cls, of, base[of])] + [{of: ABSENT, name: base[of]}]
        if name in OLDER:
            more = [{name: new} for new in OLDER[name]]
            if name == "layer_types":
                more = [{name: (new * n)[:n]} for new in OLDER[name]]
            if name in ("rope_scaling", "rope_parameters"):
                bare = {key: ABSENT for key in ("rope_theta", "rope_parameters", "rope_scaling") if key in base}
                more += [bare | change for change in more]
            if name in ("rope_theta", "partial_rotary_factor") and "rope_parameters" in base:
                more += [{"rope_parameters": ABSENT} | change for change in more]
            tried = more + tried
        yield name, tried


def changed(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """A config with a change."""
    return {name: value for name, value in (deepcopy(base) | deepcopy(change)).items() if value != ABSENT}


def as_loaded(raw: dict[str, Any]) -> dict[str, Any]:
    """A config under the type as which transformers loads it from a file."""
    is_ministral = raw["model_type"] == "mistral" and "layer_types" in raw
    return raw | {"model_type": "ministral"} if is_ministral else raw


class There(typing.NamedTuple):
    """What transformers makes of a config: the model, and what it says of a text."""

    model: torch.nn.Module
    stored: dict[str, np.ndarray]
    shapes: dict[str, tuple[int, ...]]
    held: int | None  # numbers in the cache after a prompt and a token

    def differs(self, other: There) -> bool:
        """Whether it is another model than another one."""
        if self.shapes != other.shapes or self.held != other.held:
            return True
        a, b = self.stored["logits"], other.stored["logits"]
        return a.shape != b.shape or bool(np.abs(a - b).max() > 1e-5 * max(1, np.abs(a).max()))


def built(
    raw: dict[str, Any],
    seed: int = models.SEED,
    dtype: torch.dtype = torch.float32,
    first: There | None = None,
    is_small: bool = False,
) -> There | None:
    """What transformers makes of a config; None where it makes nothing of it, or cannot run it. The cache is taken for
    that of the `first` where that is given and has the same tensors."""
    try:
        raw = as_loaded(deepcopy(raw))
        if not is_small:
            with torch.device("meta"):
                parts = models.text_part(dict(models.unfilled(deepcopy(raw)).named_parameters()))
                if sum(p.numel() for p in parts.values()) > LARGEST:
                    return None
        model = models.filled(raw, seed).to(dtype)
        shapes = {n: tuple(p.shape) for n, p in models.text_part(dict(model.named_parameters())).items()}
        stored = checkpoints.checkpoint(model)
        if not math.isfinite(stored["logits"].sum()):
            return None
        if first is not None and shapes == first.shapes:
            return There(model, stored, shapes, first.held)
        try:
            ids = models.token_ids(model, PROMPT + 1)
            _, cache, encoded = costs.step(model, ids[:, :PROMPT], is_counted=False)
            if cache is not None:
                new = ids if raw["model_type"] in costs.WHOLE_TEXT else ids[:, PROMPT:]
                _, cache, _ = costs.step(model, new, cache, encoded, is_counted=False)
            held = costs.elements(cache) if cache is not None else None
        except Exception:  # it reads a prompt, and no token after it
            held = None
        return There(model, stored, shapes, held)
    except Exception:  # of many kinds: a check of the config, or a shape that does not fit
        return None


def said(ours: Model, names: set[str]) -> bool:
    """Whether a model's answer says, above the figures, that one of these keys is read in another way."""
    return any(re.search(rf"\b{re.escape(name)}\b", line) for line in ours.read_otherwise for name in names)


def at_random(ours: Model, raw: dict[str, Any]) -> None:
    """Raise `AssertionError` unless the scores are the same with one of three sets of other random numbers: rounding
    makes those of some differ, another computation those of all. Double precision, where theirs runs in it."""
    for seed in (7, 8, 9):
        again = in_double(raw, seed)
        try:
            if again is not None:
                with double():
                    return checkpoints.compare(ours, again.stored)
            if (again := built(raw, seed)) is not None:
                return checkpoints.compare(ours, again.stored)
        except AssertionError as error:
            last = error
    raise last


def in_double(raw: dict[str, Any], seed: int) -> There | None:
    """The same as `built`, all of it in double precision."""
    torch.set_default_dtype(torch.float64)
    try:
        with InDouble():
            return built(raw, seed, torch.float64)
    finally:
        torch.set_default_dtype(torch.float32)


def compare(raw: dict[str, Any], there: There, names: set[str]) -> str:
    """How ours is beside transformers': "the same", "refused", "said", or in words what differs."""
    try:
        ours = make(raw["model_type"], raw)
        ours.counts
    except Problem as problem:
        return f"refused: {problem}"
    try:
        tensors.compare(ours, there.model)
        try:
            checkpoints.compare(ours, there.stored)
        except AssertionError:
            at_random(ours, raw)
        if there.held is not None and not ours.config.looks_both_ways:
            more = sum(differences(CACHE | CACHE_OF_OTHERS, ours, 1, PROMPT + 1).values())
            here = kept(ours, PROMPT + 1) + more
            assert here == there.held, f"cache: {there.held} there, {here} here"
    except Problem as problem:
        return f"refused: {problem}"
    except AssertionError as error:
        read = there.stored.get("source", np.zeros(0))
        ids = [
            *models.token_ids(there.model, PROMPT).flatten().tolist(),
            *(read.flatten().tolist() if read.ndim == 2 else ()),
        ]
        if getattr(there.model.config, "pad_token_id", None) in ids and str(error).startswith("differs by"):
            return "the text has padding"
        return "said" if said(ours, names) else f"differs: {str(error)[:200]}"
    return "the same"


def shows(*both: dict[str, Any]) -> bool | None:
    """Whether ours says something else of two configs with the numbers that the tests draw; None where it lacks what an
    encoder reads, or a number."""
    said = []
    for raw in both:
        ours = make(raw["model_type"], raw)
        arrays = drawn(dict(ours.counts.tensors()) | dict(ours.counts.tensors(ours.counts.buffers)))
        try:
            said.append(logits(ours.architecture, ours.config, Arrays(arrays), np.arange(PROMPT) % 7, Cache())[0])
        except Problem:
            return None
    return not np.allclose(*said, rtol=0, atol=1e-6)


def rows(model_type: str, only: str = "") -> tuple[list[list[Any]], Counter[str], list[str]]:
    """A type's changes that change transformers' model: each with what it is there; how many are how; those that are
    silently different. Of one key alone, where it is told."""
    base = configs()[model_type]
    first, found, count, silent = built(base), [], Counter(), []
    if first is None:
        return [], Counter({"no model": 1}), [f"{model_type}: transformers makes no model of the small config"]
    if (state := compare(base, first, set())) not in ("the same", "said"):
        silent.append(f"{model_type} as it is: {state}")
    done: set[str] = set()
    everything = {name: tried for name, tried in changes(model_type) if only in ("", name)}
    together = {
        name: tried[0][name]
        for name, tried in everything.items()
        if HARMLESS.search(name) and tried and set(tried[0]) == {name} and tried[0][name] not in (None, ABSENT)
    }
    there = built(changed(base, together), is_small=True)
    if there is not None and not there.differs(first) and compare(changed(base, together), there, set()) == "the same":
        count["harmless"] = len(together)
        everything = {name: tried for name, tried in everything.items() if name not in together}
    for name, tried in everything.items():
        ran = 0
        for change in tried:
            text = json.dumps(change, sort_keys=True)
            raw = changed(base, change)
            if text in done or raw == base:
                continue
            done.add(text)
            is_plain = set(change) == {name} and change[name] not in (None, ABSENT) and name not in OLDER
            if is_plain and ran >= MOST_RUN and not isinstance(change[name], dict):
                continue
            is_small = not any(value in (None, ABSENT) for value in change.values())
            there = built(raw, first=None if OF_CACHE.search(text) else first, is_small=is_small)
            if there is None:
                count["transformers does not run it"] += 1
                continue
            ran += is_plain
            differs = there.differs(first)
            state = compare(raw, there, set(change))
            short = state.partition(":")[0]
            count[short] += 1
            if short == "differs":
                silent.append(f"{model_type} {text}: {'' if differs else '(theirs stays) '}{state}")
                print(silent[-1], flush=True)
            elif short == "refused":
                print(f"{model_type} {text}: {'' if differs else '(theirs stays) '}{state}", flush=True)
            elif short == "the same" and differs:
                listed = tensors.shapes(make(raw["model_type"], raw), dict(there.model.named_parameters()))
                a, b = there.stored["logits"], first.stored["logits"]
                same = there.shapes == first.shapes and a.shape == b.shape
                others_say = not same or bool(np.abs(a - b).max() > 1e-5 * max(1, np.abs(a).max()))
                shown = others_say if not same or shows(base, raw) == others_say else None
                found.append([change, sum(map(math.prod, listed.values())), digest(listed), shown, there.held])
    return found, count, silent


def compact(row: list[Any]) -> str:
    return json.dumps(row, separators=(",", ":"))


def main(model_types: list[str]) -> None:
    known = json.loads(FILE.read_bytes()) if FILE.exists() else {}
    together: Counter[str] = Counter()
    wrong: list[str] = []
    for model_type in model_types or [t for t in configs() if t not in MULTIMODAL]:
        model_type, _, only = model_type.partition(":")
        found, count, silent = rows(model_type, only)
        if only:
            found = [row for row in known.get(model_type, []) if only not in row[0]] + found
        known = {name: row for name, row in known.items() if name != model_type} | (
            {} if silent else {model_type: found}
        )
        together += count
        wrong += silent
        print(f"{model_type}: {dict(count)}", flush=True)
        types = [f'"{name}": [\n' + ",\n".join(map(compact, known[name])) + "\n]" for name in sorted(known)]
        FILE.write_text("{\n" + ",\n".join(types) + "\n}\n", "utf-8")
    print(dict(together))
    if wrong:
        sys.exit("some differ in silence")


if __name__ == "__main__":
    main(sys.argv[1:])
