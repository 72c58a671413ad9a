"""Random variants of the small configs: `python -m tests.reference.variants [TYPE ...]`, from the repository.

One to three keys of a small config get other values: sizes, flags, activations, the order of the kinds of layers. Where
transformers builds a model of it and runs it, ours has to have the same tensors and scores, or refuse the config in one
line. What transformers listed is written into `tests/golden/variants.json`, against which the tests hold our lists.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import Counter
from copy import deepcopy
from typing import Any

import torch
from transformers import AutoConfig

from macros.catalogue.presets import make
from macros.engine.architectures import find
from macros.engine.architectures.config import fields_of
from macros.engine.errors import Problem
from macros.engine.keys import OWN_OF_TYPE
from macros.engine.ops import ACTIVATIONS

from . import TESTS, checkpoints, digest, models, tensors
from .configs import READ_OTHERWISE, configs

FILE = TESTS / "golden" / "variants.json"
LEAST, MOST = 12, 60  # of each type; tries, as transformers does not run every one
# A choice between equal scores is anybody's, and single precision has errors of its own: what is another with the
# first seed's weights is computed again with the second's, in double precision where a model's code allows for it.
SEEDS = models.SEED, 7

# Keys that stay as they are, and why; besides those that a config class says transformers reads otherwise.
FIXED = {
    "longcat_flash zero_expert_num": "transformers 5.24 keeps matrices of the experts that are nothing",
    "moshi sliding_window": "transformers 5.24 keeps a window of a text, and hides nothing of a prompt",
    "cpmant vocab_size": "another vocabulary brings token 0 into the text, which is no text there",
    "xlnet mem_len": "transformers keeps a part of a text, and hides nothing of a prompt",
    "gpt_neox_japanese num_attention_heads": "transformers 5.24 widens a head of which an odd number turns",
    "fsmt max_position_embeddings": "transformers makes a longer table of places for a longer text",
    **dict.fromkeys(
        [f"{name} tie_word_embeddings" for name in ("t5", "mt5", "umt5")],
        "transformers 5.24 builds it tied, until it reads a file with a head of its own",
    ),
}
ROPE = (
    {"rope_type": "linear", "factor": 2.0},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    | {"original_max_position_embeddings": 16},
)


def changes(rng: random.Random, model_type: str) -> dict[str, Any]:
    """Keys of a type's small config with other values."""
    base = configs()[model_type]
    default = AutoConfig.for_model(models.DECODERS.get(model_type, model_type)).to_dict()
    ours = {name for k in fields_of(find(model_type).config) for name in (k.key, *k.also)}
    flags = {name: value for name, value in default.items() if isinstance(value, bool) and name in ours}
    values = {name: value for name, value in (flags | base).items() if not name.endswith(("_type", "_token_id"))}
    if "rope_theta" in base and not {"rope_scaling", "rope_parameters"} & base.keys():
        values["rope_parameters"] = {}
    otherwise = {row.key for row in find(model_type).config.otherwise}
    names = [name for name in sorted(values) if f"{model_type} {name}" not in FIXED and name not in otherwise]
    chosen = rng.sample(names, min(len(names), rng.choice((1, 1, 2, 3))))
    new = {name: another(rng, name, values[name]) for name in chosen}
    if new.get("rope_parameters") == {}:
        new["rope_parameters"] = {"rope_theta": base["rope_theta"]} | rng.choice(ROPE)
        new.pop("rope_theta", None)
    return {name: value for name, value in new.items() if value != values[name]}


def another(rng: random.Random, name: str, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value + 2, value * 2, value * 3, max(1, value // 2), max(1, value - 1)))
    if isinstance(value, float):
        return rng.choice((value * 2, value / 2))
    if isinstance(value, str) and "act" in name:
        return rng.choice(sorted(ACTIVATIONS))
    if isinstance(value, dict) and (name in ("encoder", "decoder", "text_config") or name in OWN_OF_TYPE["blt"]):
        inner = rng.choice([key for key in sorted(value) if not key.endswith(("_token_id", "vocab_size", "dings"))])
        return value | {inner: another(rng, inner, value[inner])}
    if isinstance(value, list):
        return rng.sample(value, len(value))
    return value


def runs(raw: dict[str, Any], seed: int, dtype: torch.dtype = torch.float32) -> tuple[torch.nn.Module, dict] | None:
    """The model that transformers makes of a config, and what it says of a text; None where it cannot."""
    try:
        model = models.filled(deepcopy(raw), seed).to(dtype)  # tables of the config are filled in on the way
        stored = checkpoints.checkpoint(model)
        return (model, stored) if math.isfinite(stored["logits"].sum()) else None
    except Exception:  # of many kinds: a check of the config, or a shape that does not fit
        return None


def compare(raw: dict[str, Any]) -> dict[str, tuple[int, ...]] | str:
    """What transformers has of a variant; in words why it is not compared. AssertionError for a difference."""
    if (there := runs(raw, SEEDS[0])) is None:
        return "transformers does not run it"
    try:
        ours = make(raw["model_type"], raw)
        listed = tensors.compare(ours, there[0])
    except Problem:
        return "ours refuses it"
    try:
        checkpoints.compare(ours, there[1])
    except AssertionError:
        if (again := runs(raw, SEEDS[1], torch.float64) or runs(raw, SEEDS[1])) is None:
            raise
        checkpoints.compare(ours, again[1])
    return listed


def rows(model_type: str) -> tuple[list[list], Counter]:
    """A type's variants that both have: what was changed, the parameters, a digest of the list of tensors. Prints each
    that is not the same."""
    compared, count = {}, Counter()
    for number in range(MOST):
        if len(compared) == LEAST:
            break
        new = changes(random.Random(f"{model_type} {number}"), model_type)
        if not new or json.dumps(new, sort_keys=True) in compared:
            continue
        try:
            listed = compare(configs()[model_type] | new)
        except AssertionError as error:
            listed = "said" if make(model_type, configs()[model_type] | new).read_otherwise else "differ"
            print(f"{model_type} with {new}: {listed}: {str(error)[:300]}")
        if isinstance(listed, str):
            count[listed] += 1
        else:
            count["the same"] += 1
            row = [new, sum(map(math.prod, listed.values())), digest(listed)]
            compared[json.dumps(new, sort_keys=True)] = row
    return list(compared.values()), count


def hold_otherwise(model_type: str) -> None:
    """End the program at a key that transformers reads as we do, where the config class says that it does not. What is
    null in an example is left out here: transformers 5.24 refuses some nulls."""
    from . import every_key  # which imports this module

    for new in READ_OTHERWISE.get(model_type, ()):
        raw = {
            name: value for name, value in (configs()[model_type] | new).items() if value is not None or name not in new
        }
        try:
            listed = compare(raw)
        except AssertionError:
            continue
        there = every_key.built(raw, is_small=True)
        if there is not None and every_key.compare(raw, there, {*new}) == "said":  # the cache of a later step differs
            continue
        sys.exit(f"{model_type} with {new}: {listed if isinstance(listed, str) else 'the same here and there'}")


def written(known: dict[str, list[list]]) -> str:
    """The file: a variant a line."""
    types = [f'"{name}": [\n' + ",\n".join(map(json.dumps, known[name])) + "\n]" for name in sorted(known)]
    return "{\n" + ",\n".join(types) + "\n}\n"


def main(model_types: list[str]) -> None:
    known = json.loads(FILE.read_bytes()) if FILE.exists() else {}
    together = Counter()
    for model_type in model_types or configs():
        hold_otherwise(model_type)
        known[model_type], count = rows(model_type)
        together += count
        print(f"{model_type}: {dict(count)}", flush=True)
    print(dict(together))
    if together["differ"]:
        sys.exit("nothing is written: some differ")
    FILE.write_text(written(known), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
