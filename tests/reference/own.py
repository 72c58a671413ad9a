"""A golden checkpoint of an architecture that no library has, from its author's own torch module.

    python -m tests.reference.own TYPE my_model.py:build

`build(config)` gets the type's small config from configs.json, as a dict, and returns a torch module that maps token
ids [1 T] to logits [1 T V], as they are or as `.logits` of an object. Its parameters have the names by which the
forward pass asks for them. Needs torch, and nothing else.
"""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import torch

from macros.catalogue.presets import REFERENCE_LOGITS, make
from macros.engine.forward import logits
from macros.engine.loaded import Arrays

from . import TESTS, close
from .configs import PROMPT

SEED = 20261122


def own_config(model_type: str) -> dict[str, Any]:
    """The small config of a type."""
    for raw in json.loads((Path(__file__).parent / "configs.json").read_bytes()):
        if raw["model_type"] == model_type:
            return raw
    sys.exit(f"tests/reference/configs.json: {model_type} has no small config; add one, of unequal sizes")


def built(where: str, config: dict[str, Any]) -> torch.nn.Module:
    """The module that a function of a file makes of a config, with random weights that leave no norm at 1."""
    file, _, name = where.partition(":")
    spec = spec_from_file_location("own_model", file)
    if spec is None or spec.loader is None or not Path(file).is_file():
        sys.exit(f"{file}: there is no such Python file; name it and its function, as in my_model.py:build")
    spec.loader.exec_module(module := module_from_spec(spec))
    if not hasattr(module, name or "build"):
        sys.exit(f"{file}: has no function {name or 'build'}; name it behind the colon")
    torch.manual_seed(SEED)
    model = getattr(module, name or "build")(dict(config)).float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            random = torch.randn_like(parameter)
            if parameter.ndim > 1:
                parameter.copy_(random / parameter.shape[-1] ** 0.5)
            else:
                parameter.add_(random / 5)
    return model.requires_grad_(False)


def compared(model_type: str, config: dict[str, Any], stored: dict[str, np.ndarray], ids, reference) -> float:
    """The largest difference of our logits; names the tensors that one side has and the other has not."""
    ours = make(model_type, config)
    here = {name: tuple(shape) for name, shape in ours.counts.tensors()}
    there = {name: array.shape for name, array in stored.items()}
    for name in sorted(here.keys() | there.keys()):
        if here.get(name) != there.get(name):
            print(
                f"{name}: {here.get(name, 'missing')} in the forward pass, {there.get(name, 'missing')} in the module"
            )
    if here != there:
        sys.exit("the tensors differ; give them the same names and shapes in both")
    mine, _ = logits(ours.architecture, ours.config, Arrays(stored), ids)
    close(mine, reference)
    return float(np.abs(mine - reference).max() / max(1, np.abs(reference).max()))


def listed(model_type: str) -> None:
    """Add the type to those whose logits were compared."""
    lines = REFERENCE_LOGITS.read_text("utf-8").splitlines()
    own = f'  "{model_type}",'
    if own not in lines:
        types = [n for n, line in enumerate(lines) if line.startswith('  "')]
        lines.insert(next((n for n in types if lines[n] > own), types[-1] + 1), own)
        REFERENCE_LOGITS.write_text("\n".join(lines) + "\n", "utf-8")


def main(model_type: str, where: str) -> None:
    config = own_config(model_type)
    model = built(where, config)
    ids = torch.randint(0, config["vocab_size"], (1, PROMPT), generator=torch.Generator().manual_seed(SEED))
    out = model(ids)
    out = getattr(out, "logits", out).numpy()
    stored = {name: parameter.detach().numpy().copy() for name, parameter in model.named_parameters()}
    print(f"{model_type}: {compared(model_type, config, stored, ids[0].numpy(), out[0]):.1e}")
    told = {"config_json": json.dumps(config), "meta_json": json.dumps({"seed": SEED, "torch": torch.__version__})}
    arrays = {f"w/{name}": array for name, array in stored.items()}
    file = TESTS / f"golden/{model_type}.npz"
    np.savez_compressed(file, **told, input_ids=ids.numpy(), logits=out, hidden=np.zeros(0), **arrays)
    listed(model_type)
    print(f"wrote {file.relative_to(TESTS.parent)}, and {model_type} into {REFERENCE_LOGITS.relative_to(TESTS.parent)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
