"""The search: two hundred questions asked of the whole site’s index by the code that a browser runs; its pieces."""

import gzip
import json
import re
import tomllib
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from compiled_questions import Compiled
from copies import ROOT
from sampling import fewer
from serving import own_assets

from macros.catalogue import asked, presets
from macros.counting.accelerators import accelerators
from macros.counting.answering import BATCH
from macros.counting.figures import FIGURES
from macros.counting.formats import PUBLISHED, WEIGHTS
from macros.site.search import records, words
from macros.site.search.sections import sections

ASSETS = ROOT / "docs/assets/search"
QUESTIONS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text("utf-8"))
GLOSSARY = (ROOT / "docs/includes/glossary.md").read_text("utf-8")
OPENED = 48_000  # bytes, compressed: what is fetched when the search is opened, before the first letter
# And with the grammar, its runtime and the names of all models, which a worker fetches. The resolver of names (7 kB)
# comes only with a name that no model of the catalog has. With each model of the catalog it may grow.
FIRST_QUESTION = 48_000 + 116 * len(presets.paths())


class Searching:
    """docs/assets/search/ask.mjs in an engine of its own, with the compiled grammar where there is a site."""

    def __init__(self, files=()):
        from py_mini_racer import MiniRacer

        texts = {path.name: path.read_text("utf-8") for path in files}
        if texts:
            core = json.loads(texts["core.json"])
            models = dict(core["kinds"])["model"]
            self.names = json.loads(texts["names.json"])
            self.engine = Compiled(self.names, core["records"][:models]).engine
        else:
            self.engine = MiniRacer()
        source = (ASSETS / "ask.mjs").read_text("utf-8").replace("\nexport ", "\n")
        self.engine.eval(f"const asking = (() => {{ {source}\nreturn {{ ask, words, STOP }} }})(), files = {{}}; 0")
        for name, text in texts.items():
            self.engine.eval(f"files[{json.dumps(name)}] = {json.dumps(text)}; 0")
        self.engine.eval(
            "const core = JSON.parse(files['core.json'] ?? '{}')\n"
            "const load = async name => JSON.parse(files[name])\n"
            "let answer, before; 0"
        )

    def words(self, text):
        return json.loads(self.engine.eval(f"JSON.stringify(asking.words({json.dumps(text)}))"))

    def ask(self, question):
        """The results: kind, address, title, what is said."""
        # All files are there: what it waits for has come when the script ends.
        asked = json.dumps(question)
        found = f"asking.ask({asked}, core, load, async q => read(q))"
        self.engine.eval(f"answer = null; {found}.then(found => answer = found.results); 0")
        return json.loads(self.engine.eval("JSON.stringify(answer)"))

    def leads(self, question, **tools):
        """What comes before what the index finds; `tools` stand at these addresses, and at no other where None."""
        if tools:
            held = {name: address for name, address in {**self.names["tools"], **tools}.items() if address is not None}
            return self._with(question, {**self.names, "tools": held})
        return json.loads(self.engine.eval(f"JSON.stringify(read({json.dumps(question)}).leads)"))

    def _with(self, question, names):
        given = json.dumps(json.dumps(names))
        self.engine.eval(f"before = grammar; prepare({given}, core.records); 0")
        found = self.engine.eval(f"JSON.stringify(read({json.dumps(question)}).leads)")
        self.engine.eval("grammar = before; 0")
        return json.loads(found)


@pytest.fixture(scope="module")
def searching(site_folder):
    search = Searching(sorted((site_folder / "search").glob("*.json")))
    yield search
    search.engine.close()


def leads_to(address, expected):
    """Whether an address begins as expected, and has the choices that are."""
    page, _, choices = expected.partition("?")
    path, _, given = address.partition("?")
    if not choices:
        return address.startswith(page)
    given = dict(parse_qsl(given))
    # Of a comparison of families the first is enough.
    agrees = [given.get(k, "").startswith(v) if k == "models" else given.get(k) == v for k, v in parse_qsl(choices)]
    return path == page and all(agrees)


def pages_of(entry, is_built):
    """What a question has to lead to: where the page of the tool that it wants is built, there alone."""
    pages = entry["page"] if isinstance(entry, dict) else entry
    pages = [pages] if isinstance(pages, str) else pages
    if any(page.startswith("tools/fits/") for page in pages):
        otherwise = [page for page in pages if not page.startswith("tools/")]
        return [page for page in pages if page.startswith("tools/fits/")] + otherwise if is_built else pages[1:]
    return pages


@pytest.mark.processes
def test_it_answers_as_people_ask(site_folder, searching):
    is_built = (site_folder / "tools/fits").is_dir()
    asked_for = {**QUESTIONS["asked"], **QUESTIONS["public"], **QUESTIONS["own"]}
    assert len(asked_for) >= 320
    late, wrong = [], []
    for question, entry in fewer(asked_for.items(), 3):
        expected = pages_of(entry, is_built)
        found = [result["address"] for result in searching.ask(question)[:3]]
        places = [n for n, address in enumerate(found) if any(leads_to(address, page) for page in expected)]
        if not places:
            wrong.append(f"{question}: {found}, not {expected}")
        elif places[0]:
            late.append(f"{question}: {found}, not {expected} first")
    assert not wrong, "\n".join(wrong)
    assert len(late) <= 0.1 * len(asked_for), "\n".join(late)


def test_thirty_questions_are_from_public_threads():
    sources = [entry["source"] for entry in QUESTIONS["public"].values()]
    assert len(sources) >= 30 and all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+|https://\S+", source) for source in sources)


@pytest.mark.processes
def test_the_number_of_each_model_is_one_question_away(searching):
    """Whatever the model: a question for its parameters has its own page as the answer's source."""
    paths, wrong = presets.paths(), []
    for slug in fewer(presets.readable(), 4):
        p = presets.preset(slug)
        if p.config is None:
            continue
        for name in filter(None, (slug, p.name, p.hub)):
            [lead, *_] = searching.leads(f"how many parameters does {name} have") or [{}]
            if lead.get("address") != f"models/{paths[slug].parent.name}/{slug}/#every-parameter":
                wrong.append((name, lead.get("address")))
    assert not wrong


@pytest.mark.processes
def test_each_format_and_each_machine_is_read_by_its_name(searching):
    for name in WEIGHTS:
        if name != PUBLISHED:
            for written in (name, name.lower(), name.replace("_", "-")) if name != "BF16" else ():  # also a type's name
                [lead] = searching.leads(f"llama 3 8b {written} 24gb")
                assert leads_to(lead["address"], f"tools/what-if/?model=llama3-8b&weights={name}&on=24GB") or leads_to(
                    lead["address"], f"tools/fits/?model=llama3-8b&weights={name}&on=24GB"
                ), written
    for slug, accelerator in accelerators().items():
        for written in (slug, re.sub(r" \(.*", "", accelerator.name)):
            [lead] = searching.leads(f"3x {written} qwen3 8b")
            assert leads_to(lead["address"], f"tools/what-if/?model=qwen3-8b&on={slug}&devices=3"), written


MEANT = {
    "2x 24gb": {"on": "24GB", "devices": "2"},
    "4 x 48 GB GPUs": {"on": "48GB", "devices": "4"},
    "dual 4090 32k": {"on": "rtx-4090", "devices": "2", "context": "32768"},
    "dual 4070 32k": {"on": "rtx-4070", "devices": "2", "context": "32768"},
    "3x geforce rtx 4070 ti super": {"on": "rtx-4070-ti-super", "devices": "3"},
    "8xH100": {"on": "h100", "devices": "8"},
    "two H100s, context 100000": {"on": "h100", "devices": "2", "context": "100000"},
    "a100 40gb 8k": {"on": "a100-40gb", "context": "8192"},
    "24 GiB": {"on": "24GiB"},
    "16 gigs of vram for 4 users": {"on": "16GB", "batch": "4"},
    "24gb 1m tokens": {"on": "24GB", "context": "1048576"},
    "24 gb 8-bit": {"on": "24GB", "weights": "int8"},
    "24gb ctx 0": {"on": "24GB", "context": None},
    "24gb context 99999999999999999999": {"on": "24GB", "context": None},
    "vocab 128k": {"set.vocab_size": "128000"},
    "llama 3 8b 16 kv heads": {"model": "llama3-8b", "set.num_key_value_heads": "16"},
    "gpt2 vocab size 50,304": {"model": "gpt2", "set.vocab_size": "50304"},
    "qwen 32b 24gb": {"model": "qwen3-32b", "on": "24GB"},
    "70b llama 24gb": {"model": "llama3.3-70b"},
}


@pytest.mark.processes
def test_values_are_filled_in_as_they_are_written(searching):
    for question, expected in MEANT.items():
        [lead, *_] = searching.leads(question)
        choices = dict(parse_qsl(lead["address"].partition("?")[2]))
        assert {name: choices.get(name) for name in expected} == expected, (question, lead["address"])


@pytest.mark.processes
def test_other_questions_open_no_tool(searching):
    """Names of tensors and keys, words of prose, and models that nothing is known of."""
    for question in (
        "llama 3 8b",
        "deepseek v3 mlp.experts.gate_proj",
        "num_key_value_heads",
        "why is the hidden dimension 4096",
        "gpt-4 24gb",
        "command line",
        "attention",
        "<script>",
        "q" * 5000,
    ):
        assert searching.leads(question) == [], question


@pytest.mark.processes
def test_a_tool_is_offered_where_its_page_is_built(searching):
    questions = "24 GB 32k", "llama 3 70b int4 24gb", "deepseek vs qwen", "vocab 256k"
    assert [
        searching.leads(q, fits="f/", whatIf="w/", compare="c/")[0]["address"].partition("?")[0] for q in questions
    ] == [
        *("f/", "f/", "c/", "w/"),
    ]
    without = dict.fromkeys(("fits", "compare", "whatIf"))
    assert not [
        lead for q in questions for lead in searching.leads(q, **without) if lead["address"].startswith("tools")
    ]


@pytest.mark.processes
def test_other_names_are_those_of_pages_and_figures(site_folder):
    """Each with its reason: no page, section, figure or format but those that there are."""
    said = asked.asked()
    for topic in said["topic"]:
        html = site_folder / topic["page"].replace("index.md", "").replace(".md", "") / "index.html"
        if topic["page"] != asked.FITS or html.exists():
            assert not topic.get("anchor") or f' id="{topic["anchor"]}"' in html.read_text("utf-8"), topic
    assert all(entry["why"] for part in ("same", "topic", "format") for entry in said[part])
    assert {figure["name"] for figure in said["figure"]} - {"size", BATCH} <= FIGURES.keys()
    assert {entry["name"] for entry in said["format"]} <= WEIGHTS.keys()


@pytest.mark.processes
@pytest.mark.parametrize("slug", ["llama3-8b", "deepseek-v3", "gpt2", "qwen3-0.6b"])
def test_it_finds_a_model_by_each_of_its_names(searching, slug):
    preset = presets.preset(slug)
    for name in (slug, preset.name, preset.hub, *preset.aliases):
        assert searching.ask(name)[0]["address"] == f"models/{presets.paths()[slug].parent.name}/{slug}/", name


@pytest.mark.processes
def test_what_it_shows_is_read_as_it_stands(searching):
    of_model = [result["said"] for result in searching.ask("llama 3 8b grouped") if result["title"] == "Llama 3 8B"]
    assert of_model and of_model[0].startswith("8,030,261,248 parameters · 32 layers")
    [row, *_] = searching.ask("deepseek v3 mlp.experts.gate_proj")
    assert row["kind"] == "tensor" and row["address"].endswith("#model.layers.3.mlp.experts.0.gate_proj.weight")
    said = [result["said"] for question in fewer(QUESTIONS["asked"], 4) for result in searching.ask(question)]
    assert not [text for text in said if re.search(r"</|<(td|th|p|span|a|div|wbr)\b|¶|&#?\w+;", text)]


@pytest.mark.processes
def test_every_address_is_in_the_site(site_folder, searching):
    core = json.loads((site_folder / "search/core.json").read_text("utf-8"))
    pages = {}
    for address, title, *_ in core["records"]:
        path, _, anchor = address.partition("#")
        html = pages.setdefault(path, (site_folder / path / "index.html").read_text("utf-8"))
        assert not anchor or f' id="{anchor}"' in html, (title, address)


def test_sizes_and_terms_have_their_meanings(searching):
    """They are in the pieces of the texts, behind the sections."""
    explained = {r.title: r.said for r in records.symbol_records("")}
    shown = [one for size in ("d_ff", "n_kv_heads", "vocab_size") for one in searching.ask(size)]
    assert {one["title"] for one in shown if one["kind"] == "size"} >= {"d_ff", "n_kv_heads", "vocab_size"}
    assert all(one["said"] == explained[one["title"]] for one in shown if one["kind"] == "size")
    terms = [one["said"] for one in searching.ask("residual stream") if one["kind"] == "word"]
    assert terms[0].capitalize() in GLOSSARY


@pytest.mark.processes
def test_the_first_question_needs_little_and_no_page_any_of_it(site_folder):
    def size(files):
        return sum(len(gzip.compress(path.read_bytes())) for path in files)

    engine = own_assets(site_folder) / "engine"
    opened = size([*(own_assets(site_folder) / "search").glob("*"), site_folder / "search/core.json"])
    assert opened < OPENED
    asked_first = [site_folder / f"search/{name}.json" for name in ("names", "others")]
    assert opened + size([*asked_first, engine / "question.mjs", engine / "python.mjs"]) < FIRST_QUESTION
    assert all(len(gzip.compress(path.read_bytes())) < 34_000 for path in (site_folder / "search").glob("*.json"))


TEXTS = (
    "Its feed-forward part is gated (SwiGLU): one matrix, three layers.",
    "Llama-3.1-8B and Qwen2.5-72B-Instruct, meta-llama/Meta-Llama-3-8B",
    "model.layers.{i}.self_attn.q_proj.weight, `n_kv_heads`, __init__, d_ff",
    "8,030,261,248 or 8_030_261_248; [5, 128], 1,024,7 and 3.14, v0.1.2",
    "Größen, naïve, 12·L·D², FLOPs, queries, biases, basis, class, training",
)


def test_a_browser_cuts_a_text_into_the_same_words():
    search = Searching()
    for text in TEXTS:
        assert search.words(text) == words.words(text) and words.words(text)
    assert set(search.engine.eval("JSON.stringify([...asking.STOP])").strip('[]"').split('","')) == words.STOP
    search.engine.close()


def test_punctuation_separates_words_and_numbers_lose_their_commas():
    assert words.words("gated (SwiGLU):") == ["gated", "swiglu"]
    assert words.words("8,030,261,248 = 8_030_261_248") == ["8030261248"] * 2
    assert words.words("[5, 128]") == ["5", "128"]
    assert words.words("self_attn.q_proj") == ["self_attn", "self", "attn", "q_proj", "q", "proj"]
    assert words.words("Qwen2.5-7B") == ["qwen2.5", "qwen", "2.5", "7b"]


def test_sections_hold_text_in_which_nothing_runs_together():
    html = (
        '<p>Before</p><h1 id="top">Top<a class="headerlink" href="#top">¶</a></h1>'
        "<p>One<wbr>word &amp; d<sub>k</sub> of 10<sup>9</sup> <label>x</label><label>y</label></p>"
        "<table><tr><th>a</th><td>1</td></tr><tr><td>b</td></tr></table><svg><text>drawn</text></svg>"
        '<h2 class="x" id="in">In</h2><ul><li>x</li><li>y</li></ul>'
    )
    assert [tuple(s) for s in sections(html, "Page")] == [
        ("", "Page", "Before"),
        ("", "Top", "Oneword & d_k of 10^9 x y a · 1 · b"),
        ("in", "In", "x y"),
    ]
