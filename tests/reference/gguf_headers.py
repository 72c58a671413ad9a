"""What llama.cpp's converter says of models in the metadata of their files: `python -m tests.reference.gguf_headers
SOURCE [SLUG ...]`, from the repository, writes `tests/golden/gguf_headers.json`: of the models of `gguf`, the keys with
their values, without those of the tokenizer and of the publisher. SOURCE is the folder llama.cpp; see `gguf`.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path

from macros.catalogue.presets import make
from macros.catalogue.presets import model as preset_model

from .gguf import CONFIGS, GOLDEN, MODELS, converted, write

FILE = GOLDEN / "gguf_headers.json"
LEFT_OUT = ("general.", "tokenizer.", "GGUF.", "split.")


def main(source: str, *slugs: str) -> None:
    sys.path += [source, str(Path(source) / "gguf-py")]
    logging.disable(logging.CRITICAL)
    made = json.loads(FILE.read_bytes()) if FILE.exists() else {}
    for slug in slugs or [slug for slug in (*MODELS, *CONFIGS) if slug not in made]:
        ours = make(slug, CONFIGS[slug]) if slug in CONFIGS else preset_model(slug)
        with tempfile.TemporaryDirectory() as name:
            try:
                architecture, _, keys = converted(ours, Path(name))
            except Exception as error:  # said, and left out
                print(slug, type(error).__name__, str(error)[:200], flush=True)
                continue
        kept = {key: value for key, value in keys.items() if not key.startswith(LEFT_OUT)}
        made[slug] = {"architecture": architecture, "keys": json.loads(json.dumps(kept, default=plain))}
        print(slug, len(kept), flush=True)
        write(FILE, made)


def plain(value: object) -> object:
    """A value of NumPy's as JSON has it."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
