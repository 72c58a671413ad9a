"""The modules without weights of transformers' models: `python -m tests.reference.weightless`, from the repository,
writes the table of `macros/engine/weightless.py` from the small configs. Needs `pip install torch transformers`.

Kept of each are the last two parts of its name, `*` for a number, where what it is in has weights of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch
import transformers

from .configs import MULTIMODAL, configs
from .models import unfilled

OF_TOWERS = re.compile(r"vis|audio|image|protein|merger|sam_encoder|vqmodel")
FILE = Path(__file__).parent.parent.parent / "macros" / "engine" / "weightless.py"


def of(model: torch.nn.Module) -> list[str]:
    """The modules without weights of a model."""
    holders = {name.rpartition(".")[0] for name, _ in model.named_parameters(remove_duplicate=False)}
    above = {".".join(name.split(".")[:n]) for name in holders for n in range(len(name.split(".")) + 1)}
    found: dict[str, None] = {}
    for name, _ in model.named_modules():
        before, _, last = name.rpartition(".")
        is_kept = name not in above and before in above and not last.isdecimal()
        if is_kept and not OF_TOWERS.search(name):
            parent = before.rpartition(".")[2].replace("language_model", "model")
            found[f"{'*' if parent.isdecimal() else parent}.{last}"] = None
    return list(found)


def main() -> None:
    transformers.logging.set_verbosity_error()
    groups: dict[str, list[str]] = {}
    for model_type, raw in configs().items():
        if model_type not in MULTIMODAL:
            with torch.device("meta"):
                listed = of(unfilled(raw))
            if listed:
                groups.setdefault(" ".join(listed), []).append(model_type)
    lines = "\n".join(f"{' '.join(types)}: {names}" for names, types in sorted(groups.items()))
    head, begin, rest = FILE.read_text("utf-8").partition('_LISTED = """\\\n')
    _, end, after = rest.partition('"""\n')
    FILE.write_text(f"{head}{begin}{lines}\n{end}{after}", "utf-8")


if __name__ == "__main__":
    main()
