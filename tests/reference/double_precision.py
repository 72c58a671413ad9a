"""Golden logits again in double precision: `python -m tests.reference.double_precision NAME ...`, from the repository.

For a checkpoint of tests/golden on whose small weights single precision itself is further off than the tests allow. Its
weights stay as they are.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from transformers import AutoConfig, AutoModelForCausalLM

from . import TESTS


class InDouble(TorchFunctionMode):
    """Whoever asks for float32, as norms and softmax do, gets float64."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.float:
            function = torch.Tensor.double
        wide = [torch.float64 if x is torch.float32 else x for x in (*args, *(kwargs or {}).values())]
        return function(*wide[: len(args)], **dict(zip(kwargs or {}, wide[len(args) :])))


def record(name: str) -> None:
    """Write the logits and the hidden states of one golden checkpoint anew."""
    file = TESTS / "golden" / f"{name}.npz"
    there = dict(np.load(file))
    weights = {key[2:]: torch.from_numpy(a) for key, a in there.items() if key[:2] in ("w/", "b/")}
    config = AutoConfig.for_model(**json.loads(str(there["config_json"])))
    torch.set_default_dtype(torch.float64)  # of tables that are computed, such as those of angles
    with torch.no_grad(), InDouble():
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").double().eval()
        unexpected = model.load_state_dict(weights, strict=False).unexpected_keys
        assert not unexpected, unexpected
        out = model(torch.from_numpy(there["input_ids"]), output_hidden_states=True, use_cache=False)
    told = {"logits": out.logits, "hidden": torch.stack([h[0] for h in out.hidden_states])}
    for key, numbers in told.items():
        assert numbers.dtype == torch.float64
        anew = numbers.numpy().astype(there[key].dtype)
        print(f"{name}: {key} was off by {np.abs(anew - there[key]).max():.2g}")
        there[key] = anew
    np.savez_compressed(file, **there)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        record(each)
