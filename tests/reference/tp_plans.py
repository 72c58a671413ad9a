"""How transformers splits the matrices of a layer: `python -m tests.reference.tp_plans`, from the repository.

Writes `tests/golden/tp_plans.json`: for each model type that is known here, the modules of a layer that its tensor
parallel plan cuts along their outputs (`colwise`) or their inputs (`rowwise`, whose results are summed). Other ways of
treating a module (copied, gathered) are left out. Needs transformers, without torch.
"""

from __future__ import annotations

import json
from pathlib import Path

from transformers import CONFIG_MAPPING, __version__

from macros.engine.architectures import architectures

WAYS = ("colwise", "rowwise", "rowwise_split_input")
LAYER = "layers.*."


def plans() -> dict[str, dict[str, str]]:
    """The modules of a layer by model type."""
    found = {}
    for name in sorted(architectures()):
        plan = getattr(CONFIG_MAPPING[name], "base_model_tp_plan", None) if name in CONFIG_MAPPING else None
        cut = {k.partition(LAYER)[2]: way for k, way in (plan or {}).items() if LAYER in k and way in WAYS}
        if cut:
            found[name] = cut
    return found


if __name__ == "__main__":
    rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(cut)}" for name, cut in plans().items())
    text = f'{{"transformers": "{__version__}", "plans": {{\n{rows}\n}}}}\n'
    (Path(__file__).parent.parent / "golden" / "tp_plans.json").write_text(text, "utf-8")
