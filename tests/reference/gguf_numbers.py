"""The golden checkpoints as llama.cpp's converter writes them, with their numbers in 32 bits: `python -m
tests.reference.gguf_numbers SOURCE [NAME ...]`, from the repository, converts them, reads the files as `run` does and
compares each number with the checkpoint's. Those of KEPT are written to `tests/golden/gguf`. SOURCE is the folder
llama.cpp; see `gguf`. What is printed says of which types a file runs.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from macros.catalogue.gguf_checkpoint import GgufCheckpoint
from macros.engine.errors import Problem
from macros.engine.forward import logits
from macros.engine.loaded import Cache

from . import golden, goldens
from .gguf import CLASSES, GOLDEN

FOLDER = GOLDEN / "gguf"
KEPT = ("gpt2", "granite", "llama", "llama3_rope", "mixtral", "phi3", "qwen2", "qwen3", "qwen3_moe", "starcoder2")


def converted(name: str, folder: Path) -> Path:
    """A golden checkpoint as a GGUF file, without a vocabulary."""
    from safetensors.numpy import save_file
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as NAMES

    gguf: Any = import_module("gguf")
    ours = golden(name)
    raw = dict(ours.raw)
    raw["architectures"] = [CLASSES.get(ours.model_type) or NAMES[ours.model_type]]
    (folder / "config.json").write_text(json.dumps(raw), "utf-8")
    save_file({key: np.ascontiguousarray(array) for key, array in ours.tensors.items()}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_text('{"model": {"type": "WordPiece"}}', "utf-8")
    out = folder / f"{name}.gguf"
    of_class = import_module("conversion").get_model_class(raw["architectures"][0])
    made = of_class(folder, gguf.LlamaFileType.ALL_F32, out)
    made = getattr(made, "impl", made)
    made.set_vocab = lambda: made.gguf_writer.add_tokenizer_model("no_vocab")
    made._get_suppress_tokens = lambda: None
    made.write()
    return out


def said_of(name: str, path: Path) -> str:
    """Whether each number that `run` reads is the checkpoint's."""
    ours, file = golden(name), GgufCheckpoint(path.name, path, is_checked=False)
    if file.model.model_type != ours.model_type:
        return f"read as {file.model.model_type}"
    wrong = []
    for key in file.model.trace.weights.values():
        for one in key.names():
            array = ours.tensors.get(one)
            if array is None:
                continue
            try:
                off = np.abs(file.files[one] - array).max()
            except KeyError:
                off = np.inf
            if not off <= 1e-6 * max(1, np.abs(array).max()):
                wrong.append(f"{one} by {off:.2g}")
    if wrong:
        return f"{len(wrong)} differ: {', '.join(wrong[:3])}"
    if ours.source is not None:
        return "equal, an encoder's"
    model = file.model
    scores, _ = logits(model.architecture, model.config, file.weights(), ours.ids, Cache())
    off = np.abs(scores - ours.logits).max() / max(1, np.abs(ours.logits).max())
    return "equal, logits too" if off <= 1e-5 else f"equal, logits differ by {off:.2g}"


def main(source: str, *names: str) -> None:
    sys.path += [source]
    logging.disable(logging.CRITICAL)
    FOLDER.mkdir(exist_ok=True)
    for name in names or goldens():
        with tempfile.TemporaryDirectory() as folder:
            try:
                path = converted(name, Path(folder))
                print(name, said_of(name, path), flush=True)
                if name in KEPT:
                    shutil.copy(path, FOLDER / path.name)
            except Problem as problem:
                print(name, "refused:", str(problem)[:150], flush=True)
            except Exception as error:
                print(name, "not converted:", type(error).__name__, str(error)[:120].replace("\n", " "), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
