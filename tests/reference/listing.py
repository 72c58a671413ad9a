"""A published model's reference list: `python -m tests.reference.listing SLUG ...`, from the repository.

transformers makes the model of the preset's config without memory for its weights; its tensors are written to
`macros/catalogue/references`, where `every-parameter check` finds them. This project computes nothing in the file.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Sequence

try:
    import torch
except ModuleNotFoundError:
    sys.exit("torch and transformers are not here; install them: pip install -e '.[reference]'")

from macros.catalogue.checks import REFERENCES
from macros.catalogue.presets import Model
from macros.catalogue.presets import model as preset_model

from .models import saved_buffers, text_part, unfilled
from .packing import Ranges, unfuse_list

Row = tuple[str, Ranges | None, Sequence[int]]


def listing(ours: Model) -> dict[str, object]:
    """A reference list, as `macros/catalogue/references/SOURCE.md` has it; null where transformers does not say."""
    with torch.device("meta"):
        model = unfilled(ours.raw)
    own = text_part(dict(model.named_parameters()))
    named: dict[int, list[str]] = {}
    for name, parameter in text_part(dict(model.named_parameters(remove_duplicate=False))).items():
        named.setdefault(id(parameter), []).append(name)
    published = ours.published
    return {
        "total": sum(parameter.numel() for parameter in own.values()),
        "stored": published.parameters if published and published.exact else None,
        "buffers": unfuse_list(ours.architecture, collapsed(text_part(saved_buffers(model)))),
        "tied": [names for names in named.values() if names[1:]],
        "active": None,
        "active_excluding_input_embedding": None,
        "kv_cache_bytes_per_token": None,
        "names": "published" if ours.names_verified else "transformers",
        "tensors": unfuse_list(ours.architecture, collapsed(own)),
    }


def collapsed(tensors: dict[str, torch.Tensor]) -> list[Row]:
    """Tensors whose names differ in the layer's number alone, or in the expert's too, as one row."""
    rows: dict[tuple[str, tuple[int, ...]], list[list[int]]] = {}
    for name, tensor in tensors.items():
        numbers = [int(n) for n in re.findall(r"(?<![^.])\d+(?![^.])", name)]
        pattern = re.sub(r"(?<![^.])\d+(?![^.])", "{i}", name, count=1)
        pattern = re.sub(r"(?<![^.])\d+(?![^.])", "{e}", pattern, count=1)
        rows.setdefault((pattern, tuple(tensor.shape)), []).append(numbers[:2])
    return [row for (pattern, shape), numbers in rows.items() for row in _rows(pattern, shape, numbers)]


def _rows(pattern: str, shape: tuple[int, ...], numbers: list[list[int]]) -> Iterable[Row]:
    kinds = [sorted(set(which)) for which in zip(*numbers, strict=True)]
    if not kinds:
        yield pattern, None, shape
    elif math.prod(map(len, kinds)) == len(numbers):
        yield pattern, {letter: runs(which) for letter, which in zip("ie", kinds, strict=False)}, shape
    else:  # not every layer has the same members
        for i in kinds[0]:
            members = sorted(n[1] for n in numbers if n[0] == i)
            yield pattern.replace("{i}", str(i)).replace("{e}", "{i}"), {"i": runs(members)}, shape


def runs(numbers: Sequence[int]) -> list[list[int]]:
    """Rising numbers as [first, last, step]: the longest runs, from the left."""
    found: list[list[int]] = []
    for n in numbers:
        if found and (found[-1][0] == found[-1][1] or n - found[-1][1] == found[-1][2]):
            first, last, _ = found[-1]
            found[-1] = [first, n, n - last]
        else:
            found.append([n, n, 1])
    return found


def written(content: dict[str, object]) -> str:
    """The JSON text, a row of tensors a line."""
    lines = []
    for key, value in content.items():
        rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in value) if isinstance(value, list) else None
        inside = f"[\n{rows}\n]" if rows else json.dumps(value)
        lines.append(f"{json.dumps(key)}:{inside}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main(slugs: list[str]) -> None:
    for slug in slugs:
        path = REFERENCES / f"{slug}.json"
        path.write_text(written(listing(preset_model(slug))), "utf-8")
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
