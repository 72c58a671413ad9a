"""Decoders whose config says that attention looks both ways: `python -m tests.reference.both_ways VLLM`.

From the repository; VLLM is the folder of vLLM's source distribution. transformers reads each golden checkpoint once
more, with `is_causal` = false; Gemma 3's also with its own key. Where that changes the scores, those of the first and
of the last token are written to `tests/golden/both_ways/scores.npz`, by the checkpoint's name. The convolutions of
LFM2's class are those of vLLM's module.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from macros.catalogue.presets import make
from macros.engine.errors import Problem

from . import BOTH_WAYS_FILE, ENCODERS, KEY_OF_GEMMA, LFM2_CLASS, WITH_ENCODER, golden, goldens
from .models import saved_buffers, text_part, unfilled
from .vllm_models import MODELS, Finder


def scores(name: str, more: dict[str, Any]) -> np.ndarray:
    """The scores of a checkpoint with more keys in its config."""
    model = unfilled(golden(name).raw | more).requires_grad_(False)
    stored = golden(name).npz
    own = text_part(dict(model.named_parameters())) | text_part(saved_buffers(model))
    for place, tensor in own.items():
        key = next(f"{kind}/{place}" for kind in "wb" if f"{kind}/{place}" in stored.files)
        tensor.copy_(torch.from_numpy(stored[key]))
    if more.get("architectures"):
        both_sides = importlib.import_module(f"{MODELS}.lfm2")._bidirectional_conv1d
        for module in model.modules():
            if type(module).__name__ == "Lfm2ShortConv":
                module.forward = convolution(module, both_sides)
    return model(torch.from_numpy(stored["input_ids"]), use_cache=False).logits[0].numpy()


def is_read(name: str) -> bool:
    """Whether a type is read that way: none whose layers can only read from the left to the right."""
    try:
        make(name, golden(name).raw | {"is_causal": False})
    except Problem:
        return False
    return True


def convolution(module: Any, both_sides: Any) -> Any:
    """What a layer of convolutions gives, by vLLM's function."""

    def forward(hidden_states: torch.Tensor, **_: Any) -> torch.Tensor:
        before, after, x = module.in_proj(hidden_states[0]).chunk(3, dim=-1)
        mixed = both_sides(before * x, module.conv.weight, module.conv.bias, torch.arange(len(x)))
        return module.out_proj(after * mixed)[None]

    return forward


def main(folder: str) -> None:
    sys.meta_path.insert(0, Finder(Path(folder)))
    others = (*ENCODERS, *WITH_ENCODER)
    kinds = [(name, name, {"is_causal": False}) for name in goldens() if name not in others]
    kinds = [kind for kind in kinds if is_read(kind[1])]
    kinds.append(("gemma3_text by its own key", "gemma3_text", {KEY_OF_GEMMA: True}))
    kinds.append(("lfm2 by its class", "lfm2", {"is_causal": False, "architectures": [LFM2_CLASS]}))
    found: dict[str, np.ndarray] = {}
    for label, name, more in kinds:
        try:
            given, causal = scores(name, more), scores(name, {})
        except Exception as error:
            print(f"{label}: {type(error).__name__}: {[*str(error).splitlines(), ''][0][:100]}", flush=True)
            continue
        if np.abs(given - causal).max() > 1e-4:
            found[label] = given[[0, -1]]
        else:
            print(f"{label}: the key changes nothing", flush=True)
    BOTH_WAYS_FILE.parent.mkdir(exist_ok=True)
    np.savez_compressed(BOTH_WAYS_FILE, **found)
    print(f"{len(found)} checkpoints")


if __name__ == "__main__":
    main(*sys.argv[1:])
