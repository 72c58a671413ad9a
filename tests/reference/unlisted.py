"""The small configs of types that no model of the catalog has: `python -m tests.reference.unlisted` writes them for the
gallery, from those that are compared here.
"""

from __future__ import annotations

import json

from macros.catalogue import presets
from macros.catalogue.small_configs import FILE

from .configs import MULTIMODAL, REMOTE, all_configs, remote


def unlisted() -> dict[str, dict]:
    """The config of each such type; that of a multimodal type is its text model's, which has a type of its own."""
    models = [presets.model(slug) for slug in presets.paths() if presets.preset(slug).config is not None]
    listed = {model.model_type for model in models}
    known = all_configs() | {name: remote(name) for name in REMOTE}
    return {name: known[name] for name in sorted(known) if name not in listed and name not in MULTIMODAL}


if __name__ == "__main__":
    rows = (f"{json.dumps(name)}: {json.dumps(raw)}" for name, raw in unlisted().items())
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
