"""Forward passes on numbers in the browser: those of Python, for the golden checkpoint of each type, and in parts."""

import json

import numpy as np
import pytest
from conftest import served, until, write_engine
from reference import DYNAMIC, ENCODERS, WITH_ENCODER, close, golden, goldens
from safetensors.numpy import save_file

from macros.engine.forward import logits

pytestmark = pytest.mark.browser

# A dozen that use most of NumPy: rope and its scalings, windows, experts, latents, recurrences, encoders, n-grams.
FEW = (
    *("gpt2", "llama3_rope", "llama_dynamic_rope", "gemma3n_text", "gpt_oss", "deepseek_v4", "minimax_m3_vl_text"),
    *("qwen3_next", "jamba", "rwkv", "t5", "whisper", "kolibri1", "inkling2_text"),
)

RUN = """
import { array, Cache, checkpoint } from "./running.mjs"
import { wholeNumbers } from "./engine/numpy.mjs"
const read = async (name, as) => (await fetch(name))[as]()
globalThis.run = async (name, parts, source, shape) => {
  const model = await checkpoint(await read(`${name}.json`, "text"), await read(`${name}.safetensors`, "arrayBuffer"))
  const given = source && (shape.length === 1 ? wholeNumbers(source) : array(Float32Array.from(source), shape))
  let cache = Cache(0n, undefined, 0n, undefined, 0n, given)
  const rows = []
  for (const ids of parts) {
    const { scores, cache: next } = model.run(ids, { cache })
    cache = next
    rows.push(...scores.lists())
  }
  return rows
}
globalThis.ready = true
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the compiled engine, and a page that runs checkpoints."""
    folder = tmp_path_factory.mktemp("running")
    write_engine(folder, "model.mjs", "running.mjs")
    (folder / "run.mjs").write_text(RUN, "utf-8")
    (folder / "index.html").write_text('<!doctype html><script type="module" src="run.mjs"></script>', "utf-8")
    return folder


def computed(page, folder, name, *parts):
    """What the browser computes for a golden checkpoint's text, cut into parts."""
    g = golden(name)
    (folder / f"{name}.json").write_text(json.dumps(g.raw), "utf-8")
    save_file({key: np.ascontiguousarray(a) for key, a in g.tensors.items()}, folder / f"{name}.safetensors")
    source, shape = (None, []) if g.source is None else (g.source.ravel().tolist(), list(g.source.shape))
    asked = [name, [part.tolist() for part in parts or (g.ids,)], source, shape]
    return np.array(page.evaluate("asked => run(...asked)", asked))


def python(name):
    g = golden(name)
    return logits(g.architecture, g.config, g.weights(), g.ids, g.start())[0]


def each(open_page, folder, names, *cuts):
    """The names for which the browser computes something else than Python, each with how."""
    wrong = {}
    with served(folder) as address:
        page = open_page(address)
        until(page, "globalThis.ready")
        for name in names:
            try:
                close(computed(page, folder, name, *(np.split(golden(name).ids, cuts) if cuts else ())), python(name))
            except Exception as error:  # each is said
                wrong[name] = str(error)[:300]
    return wrong


def test_a_dozen_types_run_as_in_python(open_page, folder):
    assert not each(open_page, folder, FEW)


def test_a_text_in_parts_is_the_text(open_page, folder):
    assert not each(open_page, folder, [name for name in FEW if name not in (DYNAMIC, *WITH_ENCODER)], 1, 4)


@pytest.mark.slow("the forward pass of every type, in Chromium")
@pytest.mark.timeout(600)
def test_every_type_runs_as_in_python(open_page, folder):
    """At once and, but for encoders, in parts."""
    assert not each(open_page, folder, goldens())
    parted = [name for name in goldens() if name not in (DYNAMIC, *ENCODERS, "zamba2")]
    assert not each(open_page, folder, parted, 3)
