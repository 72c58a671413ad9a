"""The small configs of types that no model of the catalog has: `python -m tests.reference.unlisted` writes them for the
gallery, from those that are compared here.
"""

from __future__ import annotations

import json

from macros.catalogue import presets
from macros.catalogue.small_configs import FILE
from macros.engine.architectures import architectures

from .configs import configs


def unlisted() -> dict[str, dict]:
    """The config of each type whose forward pass no model of the catalog has; of types that share one, the first."""
    listed = [presets.model(slug) for slug in presets.paths() if presets.preset(slug).config is not None]
    forwards = {model.architecture.forward for model in listed}
    found: dict[str, dict] = {}
    for name, raw in configs().items():
        forward = architectures()[name].forward
        if forward not in forwards:
            forwards.add(forward)
            found[name] = raw
    return found


if __name__ == "__main__":
    rows = (f"{json.dumps(name)}: {json.dumps(raw)}" for name, raw in unlisted().items())
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
