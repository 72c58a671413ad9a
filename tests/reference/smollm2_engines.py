"""SmolLM2 135M Instruct by this engine, in Python and in the browser, and by llama.cpp: ten texts, continued greedily.

llama.cpp reads the file twice: unpacked to 32 bits, where it computes the same sums in another order, and as it is
shipped, where it rounds each vector before a matrix in 4 bits to 8 bits (`ggml_vec_dot_q4_1_q8_1`). The same rounding
in this engine moves its scores by as much. (Not to llama.cpp's: a number that is rounded to the other side in one layer
rounds more of them so in the next.) Needs llama-cpp-python, gguf, and for the browser Chromium.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from macros.engine.forward import logits
from macros.engine.loaded import Arrays, Cache
from macros.engine.ops import basic

TOKENS = 32
FIRST = 5  # tokens that all have to agree on
PROMPTS = (
    "The capital of France is",
    "Water boils at a temperature of",
    "Once upon a time, there was a",
    "The opposite of hot is",
    "To make a cup of tea, first",
    "The Sun is a star that",
    "def add(a, b):\n    return",
    "In 1969, the first humans",
    "A triangle has three sides and",
    "My favorite book is about",
)
BLOCK = 32  # numbers that share a scale
FAR = 0.1  # of a logit: computed in 32 bits, the engines are nearer to each other


def compared(path: Path, opened: Any) -> dict[str, Any]:
    """The version of llama.cpp's package, and a row for each prompt: `recordings.Answer`."""
    llama_cpp = import_module("llama_cpp")
    arrays = {name: np.ascontiguousarray(opened.files[name]) for name in opened.files}
    texts = [opened.tokenizer.encode(prompt) for prompt in PROMPTS]
    ours = [continued(opened.model, arrays, ids) for ids in texts]
    with mock.patch.object(basic, "np", SimpleNamespace(**vars(np) | {"einsum": rounded_einsum})):
        rounded = [continued(opened.model, arrays, ids, 1) for ids in texts]
    del arrays
    shipped = theirs(llama_cpp, path, texts)
    with tempfile.TemporaryDirectory() as folder:
        unpacked = theirs(llama_cpp, unpack(path, Path(folder) / "unpacked.gguf"), texts)
    shown = in_the_browser(path, texts)
    rows = []
    for i, prompt in enumerate(PROMPTS):
        (tokens, scores), of_unpacked, of_shipped = ours[i], unpacked[i], shipped[i]
        answer = "".join(opened.tokenizer.texts([tokens]))
        rows.append(
            [
                *(prompt, answer, same(tokens, of_unpacked[0]), far(scores, of_unpacked[1])),
                *(same(tokens, of_shipped[0]), far(scores, of_shipped[1]), far(scores, rounded[i][1])),
                same(tokens[:FIRST], shown[i]),
            ]
        )
        assert rows[-1][2] >= FIRST and rows[-1][7] == FIRST and rows[-1][3] < FAR, rows[-1]
    assert sum(row[2] == TOKENS for row in rows) >= 8, rows
    return {"llama_cpp_python": llama_cpp.__version__, "tokens": TOKENS, "first": FIRST, "rows": rows}


def same(ours: list[int], others: list[int]) -> int:
    """The number of tokens before the first that differs."""
    return next((i for i, (a, b) in enumerate(zip(ours, others)) if a != b), min(len(ours), len(others)))


def far(ours: np.ndarray, others: np.ndarray) -> float:
    """The largest difference between two engines' scores of the first new token."""
    return round(float(np.abs(ours - others).max()), 6)


def continued(model: Any, arrays: dict[str, np.ndarray], ids: list[int], more: int = TOKENS) -> tuple[list[int], Any]:
    """The likeliest tokens after a text, and the scores of the first: [V]."""
    cache, new, found, first = Cache(), ids, [], None
    for _ in range(more):
        scores, cache = logits(model.architecture, model.config, Arrays(arrays), new, cache, last=True)
        first = scores[-1] if first is None else first
        new = [int(scores[-1].argmax())]
        found += new
    return found, first


def rounded_einsum(pattern: str, x: np.ndarray, *others: np.ndarray, **options: Any) -> np.ndarray:
    """`np.einsum`; what a matrix of the file is multiplied with, rounded to 8 bits, as llama.cpp does it."""
    if pattern in ("ti,oi->to", "td,vd->tv"):
        blocks = x.reshape(-1, BLOCK)
        largest = np.abs(blocks).max(1, keepdims=True)
        scale = np.where(largest > 0, largest, 1) / 127
        x = (np.round(blocks / scale) * scale.astype(np.float16).astype(np.float32)).reshape(x.shape)
    return np.einsum(pattern, x, *others, **options)


def theirs(llama_cpp: Any, path: Path, texts: list[list[int]]) -> list[tuple[list[int], np.ndarray]]:
    """The same by llama.cpp, with a cache in 32 bits; its own tokenizer has to cut the prompts alike."""
    model = llama_cpp.Llama(str(path), n_ctx=128, n_threads=1, type_k=0, type_v=0, verbose=False)
    found = []
    for prompt, ids in zip(PROMPTS, texts, strict=True):
        cut = model.tokenize(prompt.encode(), add_bos=False, special=False)
        assert cut == ids, f"{prompt!r}: {cut}, and not {ids}"
        model.reset()
        new, tokens, first = ids, [], None
        for _ in range(TOKENS):
            model.eval(new)
            pointer = ctypes.cast(llama_cpp.llama_get_logits_ith(model.ctx, -1), ctypes.POINTER(ctypes.c_float))
            scores = np.ctypeslib.as_array(pointer, (model.n_vocab(),)).copy()
            first = scores if first is None else first
            new = [int(scores.argmax())]
            tokens += new
        found.append((tokens, first))
    model.close()
    return found


def unpack(path: Path, to: Path) -> Path:
    """A copy of a GGUF file with all tensors in float32."""
    gguf = import_module("gguf")
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(to, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name not in ("general.architecture", "general.file_type"):
            inner = field.types[-1] if len(field.types) > 1 else None
            writer.add_key_value(name, field.contents(), field.types[0], inner)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return to


PAGE = """
import { open } from "./tools/run/opening.mjs"
globalThis.continued = async (texts, tokens) => {
  const session = await open([{ path: "m.gguf", file: await (await fetch("m.gguf")).blob() }])
  return texts.map(text => {
    const ids = [...text]
    for (let i = 0; i < tokens; i++) {
      session.run(ids)
      ids.push(session.scores.indexOf(session.scores.reduce((a, b) => Math.max(a, b))))
    }
    return ids.slice(text.length)
  })
}
globalThis.ready = true
"""


def in_the_browser(path: Path, texts: list[list[int]]) -> list[list[int]]:
    """The first tokens by the run of the page Run a checkpoint, in Chromium."""
    from playwright.sync_api import sync_playwright

    sys.path[:0] = [str(Path(__file__).parent.parent)]  # as pytest has it
    serving, of_tests = import_module("serving"), import_module("browser.test_gguf_in_browser")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        of_tests.write_page(Path(folder), PAGE)
        (Path(folder) / "m.gguf").symlink_to(path.resolve())
        with serving.served(folder) as address:
            browser = playwright.chromium.launch(
                executable_path=import_module("chromium").chromium_path(), args=["--no-sandbox"]
            )
            page = browser.new_page()
            page.set_default_timeout(600_000)
            page.goto(address)
            page.wait_for_function("globalThis.ready")
            found = page.evaluate("([texts, tokens]) => continued(texts, tokens)", [texts, FIRST])
            browser.close()
    return found
