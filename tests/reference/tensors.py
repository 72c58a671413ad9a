"""Names and shapes of all tensors, ours against transformers', both ways: `python -m tests.reference.tensors TYPE ...`.

Prints transformers' list of each type, in the published names and packing.
"""

from __future__ import annotations

import sys

import torch

from macros.catalogue.presets import Model

from .configs import configs
from .configs import model as our_model
from .models import build, saved_buffers, text_part
from .packing import unfuse


def shapes(ours: Model, tensors: dict[str, torch.Tensor]) -> dict[str, tuple[int, ...]]:
    """Names and shapes of transformers' tensors in the published file's spelling and packing."""
    arrays = {name: t.detach().numpy() for name, t in text_part(tensors).items()}
    return {name: array.shape for name, array in unfuse(ours.architecture, arrays).items()}


def compare(ours: Model, model: torch.nn.Module) -> dict[str, tuple[int, ...]]:
    """The parameters of a model, tied ones once. Raises AssertionError where a name or a shape is not ours."""
    parameters = shapes(ours, dict(model.named_parameters()))
    here = dict(ours.counts.tensors())
    assert here == parameters, here.items() ^ parameters.items()
    buffers = shapes(ours, saved_buffers(model))  # more than ours: tables that are computed
    for name, shape in ours.counts.tensors(ours.counts.buffers):
        assert buffers[name] == shape, name
    return parameters


def main(model_types: list[str]) -> None:
    for model_type in model_types or configs():
        print(model_type)
        for name, shape in compare(our_model(model_type), build(model_type)).items():
            print("  ", name, list(shape))


if __name__ == "__main__":
    main(sys.argv[1:])
