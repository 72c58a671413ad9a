"""llama.cpp's own memory, as it prints it: `python -m tests.reference.engines SOURCE BINDING LIBRARIES [SLUG ...]`,
from the repository, writes `macros/catalogue/engine_buffers.json`. SOURCE is the folder llama.cpp, BINDING the folder
above `llama_cpp` of the source distribution, LIBRARIES the folder that has libllama.so.

    pip install -e '.[reference]' sentencepiece
    pip download --no-binary :all: --no-deps --no-build-isolation llama-cpp-python==0.3.36   # has vendor/llama.cpp
    sed -i -E 's/%[78]\\.2f MiB/%.12f MiB/g' SOURCE/src/llama-kv-cache*.cpp SOURCE/src/llama-memory*.cpp \
        SOURCE/src/llama-context.cpp
    cmake -B build SOURCE -DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DLLAMA_CURL=OFF -DBUILD_SHARED_LIBS=ON
    cmake --build build --target llama

The `sed` makes it print every byte, and changes nothing else. A model is a GGUF file of its real shapes whose data is
a hole, loaded with `no_alloc`: llama.cpp then plans all its buffers and allocates none of the large ones. Nothing of
ours computes anything in the file.
"""

from __future__ import annotations

import ctypes
import json
import logging
import math
import os
import re
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from macros.catalogue.presets import model as preset_model

from .gguf import converted

FILE = Path(__file__).parent.parent.parent / "macros" / "catalogue" / "engine_buffers.json"

MODELS = """
    apertus-8b aya-23-8b bitnet-2b-4t bloom-560m command-r-35b dbrx deepseek-v2-lite deepseek-v3 deepseek-v3.2
    dots.llm1 ernie-4.5-21b-a3b exaone-4.0-32b falcon-180b falcon-h1-0.5b gemma-2b gemma-4-26b-a4b gemma-4-e2b
    gemma2-2b gemma3-1b gemma3-27b glm-4-9b glm-4.5 glm-4.7-flash glm-5 gpt-oss-120b gpt-oss-20b gpt2-xl
    granite-3.3-8b granite-4.0-h-small internlm3-8b jais-2-8b jamba-v0.1 kimi-k2 laguna-xs-2.1 lfm2-1.2b lfm2-8b-a1b
    llama-65b llama2-70b llama3-8b llama3.2-1b llama4-scout mamba-2.8b minicpm3-4b minimax-m2 mistral-7b-v0.1
    mistral-small-24b mistral-small-4-119b mixtral-8x22b mixtral-8x7b mpt-7b nemotron-4-340b olmo-7b olmo2-7b
    olmo3-32b olmoe-1b-7b phi-2 phi-3-medium phi-3-mini phi-4-mini pythia-160m qwen1.5-moe-a2.7b qwen2.5-72b
    qwen2.5-7b qwen3-0.6b qwen3-235b-a22b qwen3-30b-a3b qwen3-8b qwen3-next-80b-a3b qwen3-vl-30b-a3b starcoder2-3b
""".split()

TYPES = {"float32": 0, "float16": 1, "q4_0": 2, "q8_0": 8, "bfloat16": 30}

# Tokens of all sequences, sequences, whether these share one cache, tokens of a step, flash attention, type of the
# cache, outputs of a step: 0 stands for as many as there are tokens.
Setting = tuple[int, int, bool, int, bool, str, int]
SETTINGS: tuple[Setting, ...] = (
    (4096, 1, False, 512, True, "float16", 1),
    (4096, 1, False, 512, True, "float16", 0),
    (32768, 1, False, 512, True, "float16", 1),
    (32768, 1, False, 512, False, "float16", 1),
    (5000, 1, False, 512, True, "float16", 1),
    (300, 1, False, 512, True, "bfloat16", 1),
    (16384, 4, False, 512, True, "float16", 4),
    (16384, 4, True, 512, True, "float16", 4),
    (10000, 3, False, 256, False, "float32", 3),
    (8192, 1, False, 2048, True, "float16", 1),
    (8192, 1, False, 512, True, "q8_0", 1),
    (8192, 2, True, 512, True, "q4_0", 2),
)
BUFFERS = {"KV": "cache", "RS": "state", "output": "outputs", "compute": "compute"}
SUM = re.compile(r"llama_kv_cache: size = +[\d.]+ MiB \( *(\d+) cells.*?K \(\w+\): +([\d.]+) MiB, V \(\w+\): +([\d.]+)")
BUFFER = re.compile(r"(RS|output|compute) buffer size = +([\d.]+) MiB")


@contextmanager
def loaded(library: Any, path: Path) -> Iterator[Any]:
    """A model of which nothing but the header is read."""
    given = library.llama_model_default_params()
    given.no_alloc, given.n_gpu_layers, given.load_mode = True, 0, library.LLAMA_LOAD_MODE_NONE
    model = library.llama_model_load_from_file(str(path).encode(), given)
    if not model:
        raise RuntimeError(f"{path}: not loaded")
    try:
        yield model
    finally:
        library.llama_model_free(model)


def buffers(library: Any, model: Any, setting: Setting, said: list[str]) -> dict[str, Any] | str:
    """What llama.cpp prints of its buffers, in bytes; why not, where it makes no such context."""
    context, sequences, is_unified, step, flash, dtype, outputs = setting
    given = library.llama_context_default_params()
    given.n_ctx, given.n_seq_max, given.kv_unified, given.swa_full = context, sequences, is_unified, False
    given.n_batch, given.n_ubatch, given.n_outputs_max = max(2048, step), step, outputs
    given.n_outputs_max_per_seq = 1
    given.flash_attn_type = 1 if flash else 0
    given.type_k = given.type_v = TYPES[dtype]
    said.clear()
    made = library.llama_init_from_model(model, given)
    text = "".join(said)
    if not made:
        return next((line for line in text.splitlines() if "fail" in line or "require" in line), "no context")
    library.llama_free(made)
    found: dict[str, Any] = {"cells": [], "cache": 0}
    for cells, keys, values in SUM.findall(text):
        found["cells"].append(int(cells))
        found["cache"] += exact(keys) + exact(values)
    for name, size in BUFFER.findall(text):
        found[BUFFERS[name]] = found.get(BUFFERS[name], 0) + exact(size)
    return found


def exact(mebibytes: str) -> int:
    """Bytes of what is printed with twelve digits."""
    size = float(mebibytes) * 2**20
    assert math.isclose(size, round(size), abs_tol=0.01), mebibytes
    return round(size)


def binding(folder: str, libraries: str) -> Any:
    """The functions of llama.cpp as the binding declares them, without its package."""
    os.environ["LLAMA_CPP_LIB_PATH"] = libraries
    package = types.ModuleType("llama_cpp")
    package.__path__ = [str(Path(folder) / "llama_cpp")]
    sys.modules["llama_cpp"] = package
    return import_module("llama_cpp.llama_cpp")


def main(source: str, folder: str, libraries: str, *slugs: str) -> None:
    sys.path += [source, str(Path(source) / "gguf-py")]
    logging.disable(logging.CRITICAL)
    library = binding(folder, libraries)
    said: list[str] = []
    log: Callable[..., Any] = library.llama_log_callback(lambda level, text, data: said.append(text.decode()))
    library.llama_log_set(log, ctypes.c_void_p(0))
    library.llama_backend_init()
    made = json.loads(FILE.read_bytes()) if slugs and FILE.exists() else {}
    for slug in slugs or MODELS:
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            architecture, _, _ = converted(preset_model(slug), place)
            try:
                with loaded(library, place / "out.gguf") as model:
                    rows = [[*setting, buffers(library, model, setting, said)] for setting in SETTINGS]
            except RuntimeError:
                print(slug, *[line for line in said if "error" in line or "fail" in line][-3:], flush=True)
                continue
        print(slug, architecture, rows[0], flush=True)
        made[slug] = {"architecture": architecture, "rows": rows}
    lines = []
    for slug in sorted(made):
        rows = ",\n".join(f"  {json.dumps(row)}" for row in made[slug]["rows"])
        lines.append(f'{json.dumps(slug)}: {{"architecture": "{made[slug]["architecture"]}", "rows": [\n{rows}\n]}}')
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
