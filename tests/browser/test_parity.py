"""The browser's numbers and Python's, to the last digit: the engine and the counting, compiled, in Chromium."""

import json

import pytest
from chromium import until
from own_machines import OWN, WRONG
from quantizations import LLAMA, SAID, UNKNOWN
from random_models import cases
from reference import TESTS, draft, drafts
from reference.configs import READ_OTHERWISE, all_configs, configs, every_type
from reference.rounded import small as rounded
from sampling import sampled
from serving import served, write_engine

from macros.catalogue import presets
from macros.catalogue.checks import expand
from macros.counting import own_machine
from macros.counting.accelerators import accelerators
from macros.counting.costs import of as costs_of
from macros.engine.errors import Problem
from macros.engine.files import parse_json
from macros.engine.layouts import Layout

pytestmark = pytest.mark.browser

LAYOUTS = json.loads((TESTS / "golden" / "layouts.json").read_text("utf-8"))
HEADS = json.loads((TESTS / "golden" / "heads.json").read_text("utf-8"))

CHECK = """
import { accelerator, conditions, described, FIGURES, isProblem, load, machine, model, parsed, py } from "./model.mjs"
import { layoutOf, tensorsOf } from "./model.mjs"
import "./engine/gguf.mjs"
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
      const machine = accelerator(plain(known.read(one.read("accelerator"))))
      const given = conditions({ ...plain(one.read("given")), accelerator: machine })
      if (one.has("problem")) {
        for (const [, figure] of py.entries(FIGURES)) figure.of(counts, given)
        same("problem", null, one.read("problem"))
        continue
      }
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
globalThis.machines = (known, texts) => {
  const listed = new Map(py.entries(py.parse(known)).map(([slug, keys]) => [slug, accelerator(plain(keys))]))
  return texts.map(text => {
    try {
      const { name, memory_bytes: memory, accelerator: a } = machine(text, listed)
      const peaks = a && JSON.stringify(py.entries(a.peak_flops).map(([kind, n]) => [kind, String(n)]))
      return [name, String(memory), a && String(a.bytes_per_second), peaks]
    } catch (error) {
      return isProblem(error) ? error.what : error.stack
    }
  })
}
globalThis.described = async configs => {
  const answers = []
  for (const raw of py.parse(configs)) {
    try {
      const { head, sizes, otherwise, counts } = model(await described(raw))
      const shapes = [...counts.trace.weights.map.values()].map(([, w]) => `${w.name} ${py.str(w.count.expr)}`)
      const flops = py.str(counts.decode_flops(64n))
      answers.push([head?.said ?? null, [...sizes], otherwise, shapes, flops])
    } catch (error) {
      answers.push(isProblem(error) ? error.what + "; " + error.mend : error.stack)
    }
  }
  return answers
}
globalThis.refused = texts => texts.map(text => {
  try {
    parsed(text)
    return null
  } catch (error) {
    return isProblem(error) ? `${error.what}; ${error.mend}` : error.stack
  }
})
globalThis.quantized = configs =>
  py.parse(configs).map(raw => {
    const { counts, costs } = model(raw)
    try {
      return [counts.formats.said("published"), py.str(costs.weight_bytes("published"))]
    } catch (error) {
      return isProblem(error) ? error.what + "; " + error.mend : error.stack
    }
  })
globalThis.placed = async cases => {
  const answers = []
  for (const { config, stored } of cases) {
    const one = model(await described(py.parse(JSON.stringify(config))))
    const layout = layoutOf(one, new Map(stored))
    answers.push(tensorsOf(one).map(([name]) => {
      const place = layout.find(name)
      return [name, [...place.cuts].map(cut => cut.stored), [...layout.shape(place)].map(Number)]
    }))
  }
  return answers
}
globalThis.ready = true
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """A folder with the compiled engine and a page that compares."""
    folder = tmp_path_factory.mktemp("engine")
    write_engine(folder, "conditions.mjs", "model.mjs")
    (folder / "check.mjs").write_text(CHECK, "utf-8")
    (folder / "index.html").write_text('<!doctype html><script type="module" src="check.mjs"></script>', "utf-8")
    with served(folder) as address:
        yield address


def wrong(open_page, engine, number, seed, each=1):
    page = open_page(engine)
    until(page, "globalThis.ready")
    machines = {slug: {key: getattr(a, key) for key in KEYS} for slug, a in accelerators().items()}
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


def test_a_machine_of_ones_own_is_read_and_refused_as_python_does(open_page, engine):
    def said(text):
        try:
            found = own_machine.named(text, accelerators())
        except Problem as problem:
            return problem.what
        if (a := found.accelerator) is None:
            return [found.name, str(found.memory_bytes), None, None]
        peaks = json.dumps([[kind, str(n)] for kind, n in a.peak_flops.items()], separators=(",", ":"))
        return [found.name, str(found.memory_bytes), str(a.bytes_per_second), peaks]

    page = open_page(engine)
    until(page, "globalThis.ready")
    texts = [*OWN, *WRONG, "", "24", "h1000", "h100", "dgx-spark"]
    known = {slug: {key: getattr(a, key) for key in KEYS} for slug, a in accelerators().items()}
    here = page.evaluate("([known, texts]) => machines(known, texts)", [json.dumps(known), texts])
    assert here == [said(text) for text in texts]


KEYS = "name", "vendor", "bytes_per_second", "memory_bytes", "peak_flops"


def described(raw):
    """What Python says of a config of one's own, as the browser's `described` does."""
    try:
        one = presets.make("it", raw)
        shapes = [f"{w.name} {w.count.expr}" for w in one.counts.trace.weights.values()]
        said = one.head.said if one.head else None
        return [said, one.unknown_sizes, list(one.read_otherwise), shapes, str(one.counts.decode_flops(64))]
    except Problem as problem:
        return f"{problem.what}; {problem.mend}"


def test_every_type_is_counted_as_python_counts_it(open_page, engine):
    """Also types that no model of the catalog has: each with its small config."""
    given = list(every_type().values())
    page = open_page(engine)
    until(page, "globalThis.ready")
    answers = page.evaluate("configs => described(configs)", json.dumps(given))
    there = [described(raw) for raw in given]
    wrong = [raw["model_type"] for raw, here, said in zip(given, answers, there, strict=True) if here != said]
    assert wrong == []
    assert all(isinstance(answer, list) for answer in there)


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
    classes = "LlamaForCausalLMEagle3 MedusaModel PEagleDraftModel LlamaForFoo MistralForCausalLM".split()
    given += [llama | {"architectures": [name]} for name in classes] + [draft(name).raw for name in drafts()]
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
    given += [small[model_type] | keys for model_type, rows in READ_OTHERWISE.items() for keys in rows]
    given += [
        rounded(model_type, width) for model_type in ("glm4_moe", "llama", "mistral", "qwen2") for width in (8, 7)
    ]
    given += [small["deepseek_v3"] | {"model_type": "kimi_k2", "architectures": ["DeepseekV3ForCausalLM"]}]
    given += [small["gemma3_text"] | {"model_type": "gemma3"}, {"architectures": ["LlamaForCausalLM"]}]
    untied = {"tie_word_embeddings": False}
    given += [small[name] | untied for name in ("marian", "led", "prophetnet", "switch_transformers")]
    given += [{"model_type": "florence2", "text_config": small["bart"] | keys} for keys in ({}, untied)]
    flat = {"model_type": "step3p7", "architectures": ["Step3p7FlashForCausalLM"], "num_sliding_attention_heads": None}
    given += [small["step3p5"] | flat, all_configs()["alice_ai"] | {"linear_num_value_heads": 10}]
    both_ways = {"is_causal": False}
    given += [small[name] | both_ways for name in ("llama", "gemma2", "deepseek_v3", "qwen3_next", "mamba", "t5")]
    given += [small["gemma3_text"] | {"use_bidirectional_attention": True}, all_configs()["longcat_flash_ngram"]]
    given += [llama | {"model_type": "llama_bidirec", "architectures": ["LlamaBidirectionalForSequenceClassification"]}]
    given += [small["lfm2"] | {"architectures": ["Lfm2BidirectionalModel"]}]
    given += [small["qwen3"] | {"architectures": ["VoyageQwen3BidirectionalEmbedModel"]}]
    nulls = (("bamba", "mamba_conv_bias"), ("iquestcoder", "head_dim"), ("nomic_bert", "tie_word_embeddings"))
    given += [small[name] | {key: None} for name, key in nulls]
    page = open_page(engine)
    until(page, "globalThis.ready")
    answers = page.evaluate("configs => described(configs)", json.dumps(given))
    there = [described(raw) for raw in given]
    assert [pair for pair in zip(answers, there, given, strict=True) if pair[0] != pair[1]] == []
    assert sum(isinstance(answer, str) for answer in there) > 10 and sum(not isinstance(a, str) for a in there) > 20


HALF = '{"a": "\\ud800 and \u202e"}'


def test_json_from_elsewhere_is_read_and_refused_as_python_does(open_page, engine):
    """What is within the bounds, what is beyond them, and what is no JSON, which each says in words of its own."""
    small = json.dumps({"a": [1, 1.5, "x", None, {"__float__": "Infinity"}], "é": True})
    beyond = [HALF, f'{{"a": {"9" * 4301}}}', '{"a":' * 65 + "1" + "}" * 65]
    within = [small, f'{{"a": {"9" * 4300}}}', '{"a":' * 60 + "1" + "}" * 60, f'{{"a": "{"x" * 10**6}"}}']
    within += [f'{{"a": [{"[1]," * 200_000}1]}}']
    broken = [
        "",
        "{",
        '{"a": 007}',
        '{"a": "\x01"}',
        "[" * 10**6,
        '{"a" 1}',
        "{} {}",
        '{"a": 1,}',
        "zzz",
        '{"a": "\\x"}',
    ]
    page = open_page(engine)
    until(page, "globalThis.ready")
    given = [*within, *beyond, *broken]
    answers = page.evaluate("texts => refused(texts)", given)
    there = [refused(text) for text in given]
    assert answers[: len(within) + len(beyond)] == there[: len(within) + len(beyond)]
    assert [answer is None for answer in answers] == [answer is None for answer in there]
    assert all(answer.startswith("broken JSON: ") and "\n" not in answer for answer in answers[-len(broken) :])


def refused(text):
    """What Python says of a text of JSON; None where it is taken."""
    try:
        parse_json(text)
    except Problem as problem:
        return f"{problem.what}; {problem.mend}"
    return None


def test_the_published_format_is_read_as_python_reads_it(open_page, engine):
    given = [
        LLAMA | {"quantization_config": said} for said in (*(s for s, _ in SAID.values()), *(s for s, _ in UNKNOWN))
    ]
    given += [LLAMA | keys for keys in ({"dtype": "float32"}, {"torch_dtype": "torch.float16"}, {})]
    there = []
    for raw in given:
        counts = presets.make("it", raw).counts
        try:
            there.append([counts.formats.said("published"), str(costs_of(counts).weight_bytes("published"))])
        except Problem as problem:
            there.append(f"{problem.what}; {problem.mend}")
    page = open_page(engine)
    until(page, "globalThis.ready")
    page.evaluate("load => import('./model.mjs').then(({ load }) => load('llama'))")
    answers = page.evaluate("configs => quantized(configs)", json.dumps(given))
    assert [pair for pair in zip(answers, there, given, strict=True) if pair[0] != pair[1]] == []


def test_the_tensors_of_a_file_are_found_where_python_finds_them(open_page, engine):
    """Of each type, in the layout that transformers writes; another third of them for each commit."""
    cases, there = [], []
    names = sampled(LAYOUTS, 3)
    for name, row in ((name, LAYOUTS[name]) for name in names):
        config = configs()[name] if row["text"] is None else {"model_type": name, "text_config": configs()[row["text"]]}
        counts = presets.make("it", config).counts
        asked = [*counts.tensors(), *counts.tensors(counts.buffers)]
        stored = {n: list(map(int, shape)) for n, shape in (expand(row["stored"]) if row["stored"] else asked)}
        cases.append({"config": config, "stored": list(stored.items())})
        layout = Layout(presets.make("it", config).architecture, stored)
        places = [(n, layout.find(n)) for n, _ in asked]
        there.append([[n, [cut.stored for cut in place.cuts], list(layout.shape(place))] for n, place in places])
    page = open_page(engine)
    until(page, "globalThis.ready")
    placed = page.evaluate("cases => placed(cases)", cases)
    assert [name for name, *pair in zip(names, placed, there, strict=True) if pair[0] != pair[1]] == []


@pytest.mark.share(50)
@pytest.mark.slow("ten thousand counts, each made twice")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(31, 81))
def test_the_browser_counts_ten_thousand_times_what_python_counts(open_page, engine, seed):
    """Each model under four conditions."""
    assert not wrong(open_page, engine, 200, seed=seed, each=4)
