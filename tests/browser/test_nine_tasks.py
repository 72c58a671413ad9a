"""Nine questions that a reader comes with, each answered on the site as a reader would: with clicks and keys, from the
page that one would begin on, without arithmetic. The answer is read from the page and held against Python's.

A step costs a reader more time than a browser: each counts with seconds of its own, and a task may take 20.
"""

import csv
import io
import json
import re
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin

import pytest
from test_tools import UNLISTED

from macros.catalogue import presets
from macros.counting import design
from macros.counting.accelerators import accelerator
from macros.counting.conditions import Conditions
from macros.counting.costs import of as costs_of
from macros.views.kit import rounding

pytestmark = pytest.mark.browser

MOST_SECONDS = 20
# Seconds of a reader: to find what to press and press it, to type a letter, to choose from a list, to read the answer.
PRESS, LETTER, CHOOSE, PASTE, READ = 1.5, 0.15, 2.5, 2.0, 2.0


class Reader:
    """Somebody at a page, whose steps are counted in seconds."""

    def __init__(self, page):
        self.page, self.steps, self.begun = page, 0.0, time.monotonic()

    def press(self, what):
        self.steps += PRESS
        what.click()

    def type(self, what, text):
        self.steps += PRESS + LETTER * len(text)
        what.fill(text)

    def key(self, name):
        self.steps += PRESS
        self.page.keyboard.press(name)

    def paste(self, what, text):
        self.steps += PRESS + PASTE
        what.fill(text)

    def choose(self, what, option=None, **by):
        self.steps += CHOOSE
        what.select_option(option, **by)

    def search(self, words):
        """The search's first result, by keyboard."""
        self.key("/")
        box = self.page.get_by_role("combobox", name="Search")
        box.wait_for()
        self.type(box, words)
        self.page.get_by_role("option").first.wait_for()
        self.key("Enter")

    def read(self, what):
        """What is said somewhere, on one line."""
        self.steps += READ
        what.wait_for()
        return " ".join(what.inner_text().split())

    @property
    def seconds(self):
        """The reader's own, and those that the pages took."""
        return self.steps + time.monotonic() - self.begun


@pytest.fixture
def reader(open_page, site):
    """`with reader("models/") as r:` somebody who begins at a page, and is soon done."""

    @contextmanager
    def begins(path, **options):
        page = open_page(urljoin(site, path), **options)
        page.wait_for_load_state("networkidle")
        one = Reader(page)
        yield one
        assert one.seconds <= MOST_SECONDS, f"{one.seconds:.1f} s"

    return begins


def answer(r):
    r.page.locator(".ep-answer strong").wait_for()
    return r.read(r.page.locator(".ep-answer"))


def cell(r, row, column):
    """A cell of a table by the words of its row and of its column's heading, to the last digit where it says so."""
    table = r.page.get_by_role("table").filter(has=r.page.get_by_role("columnheader", name=column)).first
    headings = [" ".join(h.split()) for h in table.locator("thead tr > *").all_inner_texts()]
    found = table.locator("tbody tr").filter(has=r.page.get_by_role("rowheader", name=row, exact=True)).first
    shown = found.locator("th, td").nth(headings.index(column))
    return shown.locator("span[title]").first.get_attribute("title") or r.read(shown)


def test_the_parameters_of_a_model_and_where_they_are(reader):
    model = presets.model("llama3-8b")
    with reader("") as r:
        r.search("llama 3 8b")
        sheet = r.page.locator(".ep-sheet")
        assert f"Parameters {model.counts.total:,}" in r.read(sheet.locator("dl"))
        r.press(sheet.get_by_text("The same as a table"))
        listed = r.read(sheet.get_by_role("table"))
    counts = {part.name: part.count for part in model.counts.parts if part.name in ("attention", "feed_forward")}
    for n in counts.values():
        assert f"{n:,} {rounding.percent(n, model.counts.total)}" in listed


def test_whether_a_model_fits(reader):
    needed = sum(costs_of(presets.model("llama3.3-70b").counts).device_bytes(Conditions(32_768, format="fp8")).values())
    memory = accelerator("h100").memory_bytes
    with reader("models/llama/llama3.3-70b/") as r:
        r.press(r.page.get_by_role("link", name="Change it"))
        r.page.locator(".ep-answer strong").wait_for()
        r.type(r.page.get_by_label("Context, tokens"), "32768")
        r.choose(r.page.get_by_label("Weights"), "fp8")
        r.page.locator(".ep-answer").filter(has_text="parameters in fp8").wait_for()
        said = answer(r)
    assert "does not fit on one H100 SXM" in said and f"{rounding.decimal_bytes(needed - memory)} too much" in said


def test_two_models_beside_each_other(reader):
    totals = [presets.model(slug).counts.total for slug in ("qwen3-8b", "llama3.1-8b")]
    with reader("models/") as r:
        r.type(r.page.get_by_label("Find"), "qwen3 8b, llama 3.1 8b")
        r.press(r.page.get_by_role("checkbox", name="Compare Qwen3 8B"))
        r.press(r.page.get_by_role("checkbox", name="Compare Llama 3.1 8B"))
        r.press(r.page.get_by_role("link", name="Compare the 2 selected models"))
        r.page.locator(".ep-answer strong").wait_for()
        said = [cell(r, "Parameters", name) for name in ("Qwen3 8B", "Llama 3.1 8B")]
    assert said == [f"{n:,} parameters" for n in totals]


def test_a_width_twice_as_large(reader):
    model = presets.model("mistral-7b-v0.1")
    wider = presets.make("wider", {**model.raw, "hidden_size": 2 * model.raw["hidden_size"]})
    with reader("models/mistral/mistral-7b-v0.1/") as r:
        r.press(r.page.get_by_role("link", name="Change it"))
        r.page.locator(".ep-answer strong").wait_for()
        r.type(r.page.get_by_label("d_model", exact=True), "8192")
        r.page.get_by_role("columnheader", name="Difference").first.wait_for()
        now = cell(r, "Parameters", "Now")
    assert now == f"{wider.counts.total:,} parameters"


def test_a_config_that_is_on_no_list(reader):
    counts = presets.make("mine", UNLISTED).counts
    with reader("") as r:
        r.press(r.page.get_by_role("link", name="Tools", exact=True).first)
        r.press(r.page.get_by_role("link", name="Any config", exact=True).first)
        r.paste(r.page.get_by_label("Paste a config.json"), json.dumps(UNLISTED))
        r.page.locator(".ep-answer strong").wait_for()
        said = cell(r, "Parameters", "Value")
    assert said == f"{counts.total:,} parameters"


def test_a_table_as_csv(reader):
    with reader("models/qwen/qwen3-8b/") as r:
        r.press(r.page.get_by_text("The same as a table").first)
        r.press(r.page.get_by_role("button", name="Copy the table “Where the parameters of Qwen3 8B are”"))
        with r.page.expect_download() as saved:
            r.press(r.page.get_by_role("button", name="Save as CSV"))
    rows = list(csv.reader(io.StringIO(Path(saved.value.path()).read_text("utf-8"))))
    assert saved.value.suggested_filename == "where-the-parameters-of-qwen3-8b-are.csv"
    assert rows[0] == ["Part", "Parameters", "Share"]
    assert sum(int(row[1]) for row in rows[1:]) == presets.model("qwen3-8b").counts.total


def test_a_number_cited(reader):
    with reader("") as r:
        r.search("llama 3 8b q_proj")
        row = r.page.locator(":target")
        row.wait_for()
        number = r.read(row)
        cited = r.read(r.page.locator(".ep-cite"))
        address = r.page.url
    [weight] = [w for w in presets.model("llama3-8b").counts.weights if w.name.endswith("q_proj.weight")]
    assert f"{int(weight.count):,}" in number
    assert re.search(r"“Llama 3 8B”, version [\d.]+ of \d+ \w+ \d{4}, http", cited)
    assert address.endswith("models/llama/llama3-8b/#model.layers.0.self_attn.q_proj.weight")


def test_models_below_a_cache_of_so_much_a_token(reader):
    known = [slug for slug in presets.paths() if presets.preset(slug).config is not None]
    below = {presets.preset(slug).name for slug in known if design.cache_growth(presets.model(slug).counts) <= 50_000}
    with reader("") as r:
        r.press(r.page.get_by_role("link", name="Models", exact=True).last)
        r.type(r.page.get_by_label("KV cache per token, at most, kB"), "50")
        said = r.read(r.page.get_by_role("status").filter(has_text="models"))
        names = r.page.locator(".ep-catalogue tbody tr:visible th").evaluate_all("all => all.map(e => e.dataset.sort)")
    assert set(names) == below and said == f"{len(below)} of {len(presets.paths())} models"


def test_the_longest_context_that_fits(reader):
    counts = presets.model("llama3.1-8b").counts
    longest = costs_of(counts).largest_context(accelerator("rtx-4090").memory_bytes, Conditions())
    with reader("models/llama/llama3.1-8b/") as r:
        r.press(r.page.get_by_role("link", name="Change it"))
        r.page.locator(".ep-answer strong").wait_for()
        r.choose(r.page.locator("select[name=on]"), label="GeForce RTX 4090, 24.0 GB")
        r.page.locator(".ep-answer").filter(has_text="RTX 4090").wait_for()
        said = answer(r)
    assert f"The longest context that fits is {longest:,} tokens" in said
