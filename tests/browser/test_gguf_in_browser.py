"""GGUF files in the browser: types unpacked to the bit, scores as in Python, their own tokenizer, files in parts."""

import json
import struct
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from gguf_files import METADATA, QUANTIZED, V, tensors, text, value, write
from reference import TOLERANCE, close, golden
from serving import served, write_engine

import macros as ep
from macros.catalogue.checkpoints import checkpoint
from macros.catalogue.gguf_header import Values, read_gguf
from macros.counting.gguf_types import BLOCKS
from macros.site.tool_files import _gguf_types

pytestmark = pytest.mark.browser

FILES = Path(__file__).parent.parent / "golden" / "gguf"
TYPES = (
    *("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"),
    *("TQ1_0", "TQ2_0"),
)
SCRIPTS = (
    *("model.mjs", "running.mjs", "safetensors.mjs", "gguf.mjs", "dequantized.mjs", "vendor/tokenizers.mjs"),
    *(f"tools/{name}.mjs" for name in ("figures", "gguf_model")),
    *(f"tools/run/{name}.mjs" for name in ("opening", "gguf", "session", "folder", "tokens", "seen", "tape")),
    *(f"tools/capitals/{name}.mjs" for name in ("candidates", "inside", "vocabulary", "changes", "chances")),
)
RUN = """
import { open } from "./tools/run/opening.mjs"
import { numbersOf } from "./dequantized.mjs"
import { headerOf } from "./gguf.mjs"
import { py } from "./problems.mjs"
globalThis.opened = async (names, asked) => {
  const given = await Promise.all(names.map(async path => ({ path, file: await (await fetch(path)).blob() })))
  try {
    const session = await open(given)
    const ids = typeof asked === "string" ? session.encode(asked) : asked
    session.run(ids)
    return { ids, scores: session.scores, about: session.about, texts: ids.map(id => session.token(id).text) }
  } catch (error) {
    return { problem: `${error.what}; ${error.mend}`, said: `${error}` }
  }
}
globalThis.unpacked = (type, size, bytes) =>
  Array.from(numbersOf("x", type, [size], Uint8Array.from(bytes)).data, x => Object.is(x, -0) ? 0 : x)
globalThis.said = async name => {
  const { metadata, list_of } = await headerOf([new File([await (await fetch(name)).blob()], name)])
  return Object.fromEntries(py.entries(metadata).map(([key, one]) => {
    const value = list_of(key) ?? one
    return [key, Array.isArray(value) ? value.map(String) : String(value)]
  }))
}
globalThis.ready = true
"""


def write_page(folder, script):
    """A page that has the scripts of Run a checkpoint, and runs one of its own."""
    write_engine(folder, *SCRIPTS)
    (folder / "engine" / "gguf_types.json").write_text(_gguf_types(), "utf-8")
    (folder / "run.mjs").write_text(script, "utf-8")
    (folder / "index.html").write_text('<!doctype html><script type="module" src="run.mjs"></script>', "utf-8")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("gguf"), RUN)


@pytest.fixture
def asked(open_page, folder):
    """Asks a page of the folder."""
    with served(folder) as address:
        page = open_page(address)
        page.wait_for_function("globalThis.ready")
        yield lambda call, *given: page.evaluate(f"given => {call}(...given)", list(given))


def test_types_are_unpacked_as_by_the_package(asked):
    quants, constants = (import_module(f"gguf.{name}") for name in ("quants", "constants"))
    draw = np.random.default_rng(0)
    for kind in TYPES:
        block, size = BLOCKS[kind]
        data = draw.integers(0, 256, 8 * size, np.uint8)
        true = quants.dequantize(data, constants.GGMLQuantizationType[kind])
        found = np.array(asked("unpacked", kind, 8 * block, data.tolist()), np.float32)
        assert np.array_equal(found, true.ravel(), equal_nan=True), kind


SCALARS = {
    0: ("B", 200),
    1: ("b", -100),
    2: ("H", 60_000),
    3: ("h", -30_000),
    4: ("I", 4 * 10**9),
    5: ("i", -2 * 10**9),
}
SCALARS |= {6: ("f", -0.5), 7: ("?", True), 10: ("Q", 2**63 + 1), 11: ("q", -(2**62) - 1), 12: ("d", 0.1)}


def test_every_type_of_value_is_read_as_by_python(asked, folder):
    rest = b""
    for kind, (form, one) in SCALARS.items():
        rest += text(f"one.{form}") + struct.pack(f"<I{form}", kind, one)
        rest += text(f"list.{form}") + struct.pack(f"<IIQ3{form}", 9, kind, 3, one, 0, one)
    rest += text("general.architecture") + value("llama") + text("words") + value(["a", "", "zwei"])
    (folder / "values.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 2 * len(SCALARS) + 2) + rest)
    found = read_gguf(folder / "values.gguf").metadata
    true = {key: one.all() if isinstance(one, Values) else one for key, one in found.items()}
    assert {form: true[f"one.{form}"] for form, _ in SCALARS.values()} == dict(SCALARS.values())
    plain = {key: [*map(as_script, one)] if isinstance(one, list) else as_script(one) for key, one in true.items()}
    assert asked("said", "values.gguf") == plain


def as_script(one) -> str:
    return str(one).lower() if isinstance(one, bool) else f"{one:g}" if isinstance(one, float) else str(one)


def test_what_the_converter_wrote_gives_the_checkpoints_scores(asked, folder):
    for path in sorted(FILES.glob("*.gguf")):
        g = golden(path.stem)
        (folder / path.name).write_bytes(path.read_bytes())
        answer = asked("opened", [path.name], g.ids.tolist())
        assert "scores" in answer, answer
        close(np.array(answer["scores"]), g.logits[-1], TOLERANCE, f"{path.name} ")


def test_a_file_in_parts_runs_a_text_as_in_python(asked, folder, tmp_path):
    """Quantized, with its own tokenizer; a part that is missing is told, and so is a kind that is not known."""
    said = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": ["<s>", "a", "b", "c", "Ġ", "ab", "Ġab", "Ġc"] + [f"x{n}" for n in range(V - 8)],
        "tokenizer.ggml.token_type": [3] + [1] * (V - 1),
        "tokenizer.ggml.merges": ["a b", "Ġ ab", "Ġ c"],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
    }
    whole, both = tmp_path / "whole.gguf", list(tensors().items())
    write(whole, METADATA | said, tensors(), QUANTIZED)
    names = [f"m-{n + 1:05}-of-00002.gguf" for n in range(2)]
    for n, some in enumerate((both[:9], both[9:])):
        first = METADATA | said if n == 0 else {"general.architecture": "llama"}
        place = {"split.no": n, "split.count": 2, "split.tensors.count": len(both)}
        write(folder / names[n], first | place, dict(some), {k: v for k, v in QUANTIZED.items() if k in dict(some)})
    answer, true = asked("opened", names[::-1], "ab c ab"), ep.run(whole, "ab c ab")
    assert answer["ids"] == true.tokens == [0, 5, 7, 6] and answer["texts"][1:] == ["ab", " c", " ab"]
    assert np.allclose(answer["scores"], true.logits[-1], atol=1e-5)
    assert answer["about"]["types"] == ["Q8_0", "F32"] and answer["about"]["hasTokenizer"]
    assert "m-00002-of-00002.gguf" in asked("opened", names[:1], "ab")["problem"]
    write(folder / "new.gguf", METADATA | said | {"tokenizer.ggml.pre": "new-pre"}, tensors(), {})
    unknown = asked("opened", ["new.gguf"], [1, 2])
    assert "new-pre" in json.dumps(unknown["about"]["warnings"]) and not unknown["about"]["hasTokenizer"]
    (folder / "cut.gguf").write_bytes(whole.read_bytes()[:-100])
    assert "ends within" in asked("opened", ["cut.gguf"], [1])["problem"]
    assert checkpoint(str(whole)).tokenizer.encode("ab") == [0, 5]
