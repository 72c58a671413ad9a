"""Small checkpoints with their logits and saved configs: `python -m tests.reference.checkpoints FOLDER [TYPE ...]`.

As in tests/golden. Without a folder, the logits are only compared with ours.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import transformers

from macros.catalogue.presets import Model
from macros.engine.forward import logits
from macros.engine.loaded import Arrays, Cache

from . import close
from .configs import PROMPT, VARIANTS, configs, small_config
from .configs import model as our_model
from .models import AROUND, BESIDE_TOWERS, DECODERS, SEED, build, run, saved_buffers, source, text_part, token_ids
from .packing import unfuse

# Types some of whose blocks do not read what the one before gave: a loop begins again with what came before it.
RESTARTING = {"inkling2_loop_text"}


def checkpoint(model: torch.nn.Module) -> dict[str, np.ndarray]:
    """What a file holds: token ids, logits, hidden states where the model tells them, weights `w/…` and buffers `b/…`.

    Where an encoder reads: what it read, and its hidden states.

    The weights are copied before they are used: RWKV's code rescales them when it first runs.
    """
    ids = token_ids(model, PROMPT)
    weights, buffers = text_part(dict(model.named_parameters())), text_part(saved_buffers(model))
    stored = {f"w/{name}": p.detach().numpy().copy() for name, p in weights.items()}
    stored |= {f"b/{name}": b.numpy().copy() for name, b in buffers.items()}
    read = source(model)
    with torch.no_grad():
        out = run(model, ids, read, output_hidden_states=model.config.model_type != "blt")  # of four stacks at once
    if read is not None:
        told = (h[0] if isinstance(h, tuple) else h for h in out.get("encoder_hidden_states", ()))  # PEGASUS-X's last
        encoder = np.array([h[0].numpy() for h in told])
        stored |= {"source": read.numpy(), "source_hidden": encoder}
    hidden = [h[0].numpy() for h in out.get("decoder_hidden_states", out.get("hidden_states")) or ()]
    if len({h.shape for h in hidden}) > 1:  # several residual streams, and what becomes of them for the head
        told = {"hidden": np.zeros(0), "streams": np.array(hidden[:-1]), "final": hidden[-1]}
    else:
        told = {"hidden": np.zeros(0) if model.config.model_type in RESTARTING else np.array(hidden)}
    return {"input_ids": ids.numpy(), "logits": out.logits.numpy(), **told, **stored}


def compare(ours: Model, arrays: dict[str, np.ndarray]) -> float:
    """The largest difference of our scores, as a share of the largest score or 1. Raises AssertionError beyond 1e-5."""
    stored = unfuse(ours.architecture, {name[2:]: a for name, a in arrays.items() if name[:2] in ("w/", "b/")})
    start = Cache(read=arrays["source"][0] if "source" in arrays else None)
    here, _ = logits(ours.architecture, ours.config, Arrays(stored), arrays["input_ids"][0], start)
    reference = arrays["logits"][0]
    close(here, reference)
    return float(np.abs(here - reference).max() / max(1, np.abs(reference).max()))


def save_config(path: Path, name: str, model: torch.nn.Module) -> None:
    """Add what transformers writes into a config.json, and the parameters, to a list of such; a row a line."""
    rows = json.loads(path.read_bytes()) if path.exists() else {}
    around = small_config(name)["model_type"] in AROUND
    with TemporaryDirectory() as folder:
        (model.config.get_text_config() if around else model.config).save_pretrained(folder)
        config = json.loads((Path(folder) / "config.json").read_bytes())
    if (model_type := small_config(name)["model_type"]) in DECODERS:
        config["model_type"] = model_type
    if name in BESIDE_TOWERS:
        config = {key: value for key, value in config.items() if not key.endswith("_config")}
    parameters = sum(p.numel() for p in text_part(dict(model.named_parameters())).values())
    rows[name] = {"parameters": parameters, "config": dict(sorted(config.items()))}
    lines = (f"{json.dumps(key)}: {json.dumps(rows[key], separators=(',', ':'))}" for key in sorted(rows))
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def main(folder: str | None = None, *names: str) -> None:
    versions = {"seed": SEED, "torch": torch.__version__, "transformers": transformers.__version__}
    for name in names or [*configs(), *VARIANTS]:
        model = build(name)
        arrays = checkpoint(model)
        print(f"{name}: {compare(our_model(name), arrays):.1e}")
        if folder:
            told = {"config_json": json.dumps(small_config(name)), "meta_json": json.dumps(versions)}
            np.savez_compressed(Path(folder) / f"{name}.npz", **told, **arrays)
            save_config(Path(folder) / "saved_configs.json", name, model)


if __name__ == "__main__":
    main(*sys.argv[1:])
