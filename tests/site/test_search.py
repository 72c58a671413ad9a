"""The search: sixty questions asked of the index of the whole site by the code that a browser runs, and its pieces."""

import gzip
import json
import re
import tomllib
from pathlib import Path

import pytest
from copies import ROOT

from macros.catalogue import presets
from macros.site.search import words
from macros.site.search.sections import sections

ASSETS = ROOT / "docs/assets/search"
QUESTIONS = tomllib.loads((Path(__file__).parent / "questions.toml").read_text("utf-8"))
FIRST_LOAD = 60_000  # bytes, compressed: what is fetched before the first question


class Searching:
    """docs/assets/search/ask.mjs in an engine of its own."""

    def __init__(self, files=()):
        from py_mini_racer import MiniRacer

        self.engine = MiniRacer()
        source = (ASSETS / "ask.mjs").read_text("utf-8").replace("\nexport ", "\n")
        self.engine.eval(f"{source}\nconst files = {{}}, fetched = []; 0")
        for path in files:
            self.engine.eval(f"files[{json.dumps(path.name)}] = {json.dumps(path.read_text('utf-8'))}; 0")
        self.engine.eval(
            "const core = JSON.parse(files['core.json'] ?? '{}')\n"
            "const load = async name => (fetched.push(name), JSON.parse(files[name]))\n"
            "let answer; 0"
        )

    def words(self, text):
        return json.loads(self.engine.eval(f"JSON.stringify(words({json.dumps(text)}))"))

    def ask(self, question):
        """The results: kind, address, title, what is said."""
        # All files are there: what it waits for has come when the script ends.
        asked = json.dumps(question)
        self.engine.eval(f"answer = null; ask({asked}, core, load).then(found => answer = found.results); 0")
        return json.loads(self.engine.eval("JSON.stringify(answer)"))


@pytest.fixture(scope="module")
def searching(site_folder):
    search = Searching(sorted((site_folder / "search").glob("*.json")))
    yield search
    search.engine.close()


@pytest.mark.processes
def test_it_answers_sixty_questions(searching):
    assert sum(map(len, QUESTIONS.values())) >= 60
    wrong = []
    for part, places in (("first", 1), ("among_three", 3)):
        for question, expected in QUESTIONS[part].items():
            starts = (expected,) if isinstance(expected, str) else tuple(expected)
            results = searching.ask(question)
            if not any(result["address"].startswith(starts) for result in results[:places]):
                wrong.append(f"{question}: {[result['address'] for result in results[:3]]}, not {expected}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.processes
@pytest.mark.parametrize("slug", ["llama3-8b", "deepseek-v3", "gpt2", "qwen3-0.6b"])
def test_it_finds_a_model_by_each_of_its_names(searching, slug):
    preset = presets.preset(slug)
    for name in (slug, preset.name, preset.hub, *preset.aliases):
        assert searching.ask(name)[0]["address"] == f"models/{presets.paths()[slug].parent.name}/{slug}/", name


@pytest.mark.processes
def test_what_it_shows_is_read_as_it_stands(searching):
    first = searching.ask("how many parameters does llama 3 8b have")[0]
    assert first["title"] == "Llama 3 8B" and first["said"].startswith("8,030,261,248 parameters · 32 layers")
    [row, *_] = searching.ask("deepseek v3 mlp.experts.gate_proj")
    assert row["kind"] == "tensor" and row["address"].endswith("#model.layers.3.mlp.experts.0.gate_proj.weight")
    said = [result["said"] for question in QUESTIONS["first"] for result in searching.ask(question)]
    assert not [text for text in said if re.search(r"</|<(td|th|p|span|a|div|wbr)\b|¶|&#?\w+;", text)]


@pytest.mark.processes
def test_every_address_is_in_the_site(site_folder, searching):
    core = json.loads((site_folder / "search/core.json").read_text("utf-8"))
    pages = {}
    for address, title, _ in core["records"]:
        path, _, anchor = address.partition("#")
        html = pages.setdefault(path, (site_folder / path / "index.html").read_text("utf-8"))
        assert not anchor or f' id="{anchor}"' in html, (title, address)


@pytest.mark.processes
def test_the_first_question_needs_little_and_no_page_any_of_it(site_folder):
    files = [*ASSETS.glob("*"), site_folder / "search/core.json"]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < FIRST_LOAD
    assert all(len(gzip.compress(path.read_bytes())) < 30_000 for path in (site_folder / "search").glob("*.json"))


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
    assert set(search.engine.eval("JSON.stringify([...STOP])").strip('[]"').split('","')) == words.STOP
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
