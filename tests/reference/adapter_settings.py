"""Random settings of adapters, counted by PEFT on the meta device: `python -m tests.reference.adapter_settings [COUNT
[SEED [FILE]]]`, from the repository, writes `tests/golden/adapter_settings.json`: of the small configs (`configs.py`)
the options of `LoraConfig` and the trainable parameters, or null where PEFT refuses.

Needs `pip install torch transformers peft`.
"""

from __future__ import annotations

import json
import random
import sys
import warnings
from copy import deepcopy
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .configs import MULTIMODAL, configs

FILE = Path(__file__).parent.parent / "golden" / "adapter_settings.json"
# Types that are left out: their files pack what transformers keeps apart; positions that are computed, and the output
# head, count as tables and linear layers; layers share modules, which PEFT wraps several times; no weight's size tells
# the groups of a convolution.
LEFT_OUT = "gte", "jina_embeddings_v3", "nomic_bert", "hrm_text", "marian", "fsmt", "zamba", "zamba2", "squeezebert"


@cache
def built(model_type: str) -> Any:
    """The model of a type's small config."""
    import torch

    from .models import unfilled

    with torch.device("meta"):
        return unfilled(configs()[model_type])


def types() -> list[str]:
    """The types whose model in transformers is the text model alone."""
    from .models import text_part

    found = []
    for model_type in configs():
        if model_type not in (*MULTIMODAL, *LEFT_OUT):
            names = dict(built(model_type).named_parameters())
            if text_part(names).keys() == names.keys():
                found.append(model_type)
    return found


def expression(draw: random.Random, name: str) -> str:
    """A regular expression as people write it for a module of this name and others."""
    parts = name.split(".")
    last = parts[-1]
    ways = [
        rf".*\.{last}",
        rf".*\.({last}|q_proj|v_proj)",
        f".*{last}",
        rf".*{last[-5:]}$",
        ".".join(r"\d+" if part.isdigit() else part for part in parts),
        rf".*\.[02]\..*{last}",
        rf".*layers\.(0|1)\..*\.({last}|o_proj)",
        rf"^(?!.*head).*\.{last}$",
        rf".*{parts[-2] if len(parts) > 1 else last}\..*",
        last,
        rf"(?:.*\.)?{last}",
    ]
    return draw.choice(ways)


def some(draw: random.Random, names: list[str], most: int) -> list[str]:
    """Names by their last parts mostly, whole ones, and wrong ones now and then."""
    found = []
    for _ in range(1 + draw.randrange(most)):
        name = draw.choice(names)
        ways = [name.rpartition(".")[2]] * 6 + [name, ".".join(name.split(".")[-2:]), "not_there"]
        found.append(draw.choice(ways))
    return list(dict.fromkeys(found))


def pattern(draw: random.Random, names: list[str], values: tuple[int, ...]) -> dict[str, int]:
    """Ranks or alphas by names or expressions."""
    keys = some(draw, names, 2)
    if draw.random() < 0.3:
        keys = [expression(draw, draw.choice(names)) for _ in keys]
    if draw.random() < 0.15:
        keys.append(rf"^model\.layers\.1\..*{draw.choice(names).rpartition('.')[2]}")
    return {key: draw.choice(values) for key in keys}


def settings(draw: random.Random, model: Any) -> dict[str, Any]:
    """Options as people give them."""
    weighted = [name for name, module in model.named_modules() if getattr(module, "weight", None) is not None]
    linear = [name for name in weighted if "norm" not in name.lower() and "ln_" not in name]
    every = [name for name, _ in model.named_modules() if name]
    parameters = [name for name, _ in model.named_parameters()]
    large = [name for name, p in model.named_parameters() if p.ndim == 3] or parameters
    names = draw.choices((linear, weighted, every), (12, 2, 1))[0]
    said: dict[str, Any] = {"r": draw.choice((4, 8, 16)), "target_modules": some(draw, names, 4)}
    kind = draw.random()
    if kind < 0.15:
        said["target_modules"] = draw.choice(("all-linear", "all-linear", "All-Linear"))
    elif kind < 0.4:
        said["target_modules"] = expression(draw, draw.choice(names))
    elif kind < 0.45:
        said["target_modules"] = None
    elif kind < 0.5:
        said["target_modules"] = []
    is_text = isinstance(said["target_modules"], str)
    if draw.random() < 0.25 or said["target_modules"] == []:
        of = draw.choice((large, parameters))
        ends = some(draw, of, 2)
        said["target_parameters"] = [e if "." in e or draw.random() < 0.5 else f"experts.{e}" for e in ends]
    if draw.random() < 0.35:
        said["modules_to_save"] = [*some(draw, names, 2), *(["lm_head"] if draw.random() < 0.3 else [])]
        if draw.random() < 0.2:
            said["modules_to_save"].append(draw.choice(("norm", "embed_tokens", "mlp", "experts", "self_attn")))
    if draw.random() < (0.02 if is_text else 0.25):
        said["layers_to_transform"] = draw.choice((sorted({draw.randrange(3) for _ in range(2)}), 1, [0, 1], [0]))
    if draw.random() < (0.4 if "layers_to_transform" in said else 0.02):
        said["layers_pattern"] = draw.choice(("layers", "h", "blocks", ["layers", "h"], "block", "(h|layers)"))
    if draw.random() < 0.25:
        said["rank_pattern"] = pattern(draw, names, (2, 32))
    if draw.random() < 0.15:
        said["alpha_pattern"] = pattern(draw, names, (2, 32))
    if draw.random() < 0.2:
        said["exclude_modules"] = some(draw, names, 2)
        if draw.random() < 0.4:
            said["exclude_modules"] = expression(draw, draw.choice(names))
    if draw.random() < 0.15:
        said["bias"] = draw.choice(("all", "lora_only"))
    if draw.random() < 0.12:
        said["use_dora"] = True
    if draw.random() < 0.1:
        said["use_rslora"] = True
    return said


def trained(model: Any, said: dict[str, Any]) -> tuple[int | None, str]:
    """What PEFT trains, or why it refuses."""
    import torch
    from peft import LoraConfig, get_peft_model

    with torch.device("meta"):
        try:
            adapted = get_peft_model(model, LoraConfig(**deepcopy(said)), low_cpu_mem_usage=True)
        except Exception as error:
            return None, f"{type(error).__name__}: {str(error)}"
    return sum(p.numel() for p in adapted.parameters() if p.requires_grad), ""


def main(count: str = "2400", seed: str = "1", file: str = str(FILE)) -> None:
    import torch
    import transformers

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    warnings.filterwarnings("ignore")
    known = types()
    print(len(known), *known)
    cases: dict[str, list[Any]] = {}
    for number in range(int(count)):
        model_type = known[number % len(known)]
        draw = random.Random(f"{seed}/{number}")
        model = deepcopy(built(model_type))
        said = settings(draw, model)
        counted, why = trained(model, said)
        cases.setdefault(model_type, []).append([said, counted])
        print(number, model_type, json.dumps(said), counted, why[:150].replace("\n", " "), flush=True)
    head = json.dumps({"versions": {name: version(name) for name in ("peft", "torch", "transformers")}})[:-1]
    lines = ",\n".join(
        json.dumps(name) + ": [\n" + ",\n".join(map(json.dumps, one)) + "]" for name, one in cases.items()
    )
    Path(file).write_text(f'{head},\n"cases": {{\n{lines}\n}}}}\n', "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
