"""Golden checkpoints of types that only mlx-lm has: `python -m tests.reference.mlx_models [TYPE ...]`, from the
repository.

Needs `mlx[cpu]` and `mlx-lm`, in an environment of their own; no accelerator. mlx-lm's class of a type's small config
gets random weights; names, shapes and logits are compared, and `tests/golden` gets the checkpoint.
"""

from __future__ import annotations

import importlib
import json
import sys
from importlib.metadata import version

import mlx.core as mx
import numpy as np

from macros.engine.forward import logits
from macros.engine.loaded import Arrays

from . import TESTS, close
from .configs import PROMPT, small_config
from .own import SEED, listed, own_model

# The module of mlx-lm for each.
TYPES = {name: name for name in ("spark2_5", "qwen", "talkie", "lille-130m", "Klear", "plamo", "gear")}


def compared(model_type: str) -> float:
    """The largest difference of the logits, as a share of the largest. Raises AssertionError where anything differs."""
    raw = small_config(model_type)
    module = importlib.import_module(f"mlx_lm.models.{TYPES[model_type]}")
    theirs, ours = module.Model(module.ModelArgs.from_dict(raw)), own_model(model_type, raw)
    rng, arrays = np.random.default_rng(SEED), {}
    for name, shape in sorted(ours.counts.tensors()):
        random = rng.normal(size=tuple(map(int, shape)))
        near = 0.0 if random.ndim > 1 or name.endswith("bias") else 1.0
        arrays[name] = (near + random / (random.shape[-1] ** 0.5 if random.ndim > 1 else 5)).astype(np.float32)
    published = {name: mx.array(array) for name, array in arrays.items()}
    published = theirs.sanitize(published) if hasattr(theirs, "sanitize") else published
    theirs.load_weights(list(published.items()), strict=True)  # each name and shape, no more and no less
    ids = rng.integers(0, raw["vocab_size"], (1, PROMPT))
    reference = np.array(theirs(mx.array(ids)))
    mine, _ = logits(ours.architecture, ours.config, Arrays(arrays), ids[0])
    close(mine, reference[0])
    told = {"config_json": json.dumps(raw), "meta_json": json.dumps({"seed": SEED, "mlx_lm": version("mlx-lm")})}
    stored = {f"w/{name}": array for name, array in arrays.items()}
    file = TESTS / f"golden/{model_type}.npz"
    np.savez_compressed(file, **told, input_ids=ids, logits=reference, hidden=np.zeros(0), **stored)
    listed(model_type)
    return float(np.abs(mine - reference[0]).max() / max(1, np.abs(reference).max()))


if __name__ == "__main__":
    for name in sys.argv[1:] or TYPES:
        print(f"{name}: {compared(name):.1e}")
