"""The browser's numbers and Python's, to the last digit: the engine and the counting, compiled, in Chromium."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import served, until
from random_models import cases
from reference import TESTS
from reference.configs import configs

from macros.browser.bundle import files
from macros.catalogue import presets
from macros.counting.accelerators import accelerators
from macros.engine.errors import Problem

pytestmark = pytest.mark.browser

HEADS = json.loads((TESTS / "golden" / "heads.json").read_text("utf-8"))
ASSETS = Path(__file__).parent.parent.parent / "docs" / "assets"

CHECK = """
import { accelerator, conditions, described, FIGURES, isProblem, load, model, py } from "./model.mjs"
const plain = dict => Object.fromEntries(py.entries(dict))
const inNumbers = (_, x) => (typeof x === "bigint" ? Number(x) : x instanceof py.Dict ? plain(x) : x)
globalThis.check = async (cases, machines) => {
  const known = py.parse(machines), wrong = []
  let counts
  for (const one of py.parse(cases)) {
    const raw = one.read("raw")
    const same = (what, here, there) => {
      const keys = JSON.stringify(raw, inNumbers)
      if (here !== there) wrong.push(`${one.read("slug")}, ${what}: ${here} and not ${there}: ${keys}`)
    }
    try {
      await load(raw.read("model_type"))
      if (one.read("is_another")) counts = undefined
      if (!counts) ({ counts } = model(raw))
      same("problem", null, one.read("problem", null))
      if (one.has("problem")) continue
      const machine = accelerator(plain(known.read(one.read("accelerator"))))
      const given = conditions({ ...plain(one.read("given")), accelerator: machine })
      for (const [name, there] of py.entries(one.read("figures"))) {
        const here = FIGURES.read(name).of(counts, given)
        same(name, here === null ? null : py.str(here), there)
      }
      const weights = [...counts.trace.weights.map.values()].map(([, weight]) => weight)
      const shapes = weights.map(w => [w.shape.map(d => py.int(d)).join("x"), py.str(w.count.expr)])
      same("shapes", JSON.stringify(shapes), JSON.stringify(one.read("shapes")))
    } catch (error) {
      const here = isProblem(error) ? error.what ?? "ShapeError" : error?.$class?.__name__ ?? error.stack
      same("problem", here, one.read("problem", null))
    }
  }
  return wrong
}
globalThis.described = async configs => {
  const answers = []
  for (const raw of py.parse(configs)) {
    try {
      const { head, sizes, counts } = model(await described(raw))
      const shapes = [...counts.trace.weights.map.values()].map(([, w]) => `${w.name} ${py.str(w.count.expr)}`)
      const flops = py.str(counts.decode_flops(64n))
      answers.push([head?.said ?? null, [...sizes], shapes, flops])
    } catch (error) {
      answers.push(isProblem(error) ? error.what + "; " + error.mend : error.stack)
    }
  }
  return answers
}
globalThis.ready = true
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """A folder with the compiled engine and a page that compares."""
    folder = tmp_path_factory.mktemp("engine")
    shutil.copy(ASSETS / "model.mjs", folder)
    (folder / "engine").mkdir()
    for name, text in files().items():
        (folder / "engine" / name).write_text(text, "utf-8")
    (folder / "check.mjs").write_text(CHECK, "utf-8")
    (folder / "index.html").write_text('<!doctype html><script type="module" src="check.mjs"></script>', "utf-8")
    with served(folder) as address:
        yield address


def wrong(open_page, engine, number, seed, each=1):
    page = open_page(engine)
    until(page, "globalThis.ready")
    machines = {
        slug: dict(
            name=a.name,
            vendor=a.vendor,
            peak_flops=a.peak_flops,
            bytes_per_second=a.bytes_per_second,
            memory_bytes=a.memory_bytes,
            source=a.source,
        )
        for slug, a in accelerators().items()
    }
    given = cases(number, seed, each)
    counted = sum("figures" in case for case in given)
    assert counted > number / 3, f"only {counted} of {number} models can be"
    found = []
    for i in range(0, number, 500):
        found += page.evaluate(
            "([cases, machines]) => check(cases, machines)",
            [json.dumps(given[i : i + 500], default=str), json.dumps(machines)],
        )
    return found


def test_the_browser_counts_what_python_counts(open_page, engine):
    assert not wrong(open_page, engine, 200, seed=13)


def described(raw):
    """What Python says of a config of one's own, as the browser's `described` does."""
    try:
        one = presets.make("it", raw)
        shapes = [f"{w.name} {w.count.expr}" for w in one.counts.trace.weights.values()]
        said = one.head.said if one.head else None
        return [said, one.unknown_sizes, shapes, str(one.counts.decode_flops(64))]
    except Problem as problem:
        return f"{problem.what}; {problem.mend}"


def test_a_config_of_ones_own_is_read_and_refused_as_python_does(open_page, engine):
    """Every head of some types, draft heads, unknown classes, sizes and types, and parts of unknown wholes."""
    small, llama = configs(), configs()["llama"]
    given = [
        small[model_type] | {"architectures": [name], "num_labels": 3}
        for model_type in (
            "llama",
            "gpt2",
            "bert",
            "modernbert",
            "t5",
            "bart",
            "whisper",
            "opt",
            "qwen2",
            "gemma3_text",
        )
        for name in HEADS[model_type]
    ]
    classes = "LlamaForCausalLMEagle3 MedusaModel DFlashDraftModel LlamaForFoo MistralForCausalLM".split()
    given += [llama | {"architectures": [name]} for name in classes]
    given += [llama | keys for keys in ({"num_tails": 3, "a_dim": 4, "colour": 1}, {"architectures": "Llama"})]
    given += [llama | {"architectures": ["LlamaForTokenClassification"], "id2label": {"0": "a"}}]
    given += [raw | {"model_type": "made-up"} for raw in (llama, small["bert"] | {"n_parts": 3}, small["mamba"], {})]
    text = small["kimi_linear"]
    given += [
        {"model_type": "kimi_k3", "text_config": text | keys} for keys in ({}, {"hidden_act": "situ"}, {"n_a": 1})
    ]
    given += [
        {"model_type": "gemma3", "text_config": small["gemma3_text"], "architectures": [name]}
        for name in ("Gemma3ForConditionalGeneration", "Gemma3ForSequenceClassification", "LlavaForCausalLM")
    ]
    given += [
        {"model_type": model_type, "text_config": llama, "architectures": [name]}
        for model_type, name in (("ultravox", "UltravoxModel"), ("llava", "LlavaModel"), ("llava", "LlavaForCausalLM"))
    ]
    given += [small["deepseek_v3"] | {"model_type": "kimi_k2", "architectures": ["DeepseekV3ForCausalLM"]}]
    given += [small["gemma3_text"] | {"model_type": "gemma3"}, {"architectures": ["LlamaForCausalLM"]}]
    page = open_page(engine)
    until(page, "globalThis.ready")
    answers = page.evaluate("configs => described(configs)", json.dumps(given))
    there = [described(raw) for raw in given]
    assert [pair for pair in zip(answers, there, given, strict=True) if pair[0] != pair[1]] == []
    assert sum(isinstance(answer, str) for answer in there) > 10 and sum(not isinstance(a, str) for a in there) > 20


@pytest.mark.slow("ten thousand counts, each made twice")
@pytest.mark.timeout(3600)
def test_the_browser_counts_ten_thousand_times_what_python_counts(open_page, engine):
    """Each model under four conditions."""
    assert not wrong(open_page, engine, 10_000, seed=31, each=4)
