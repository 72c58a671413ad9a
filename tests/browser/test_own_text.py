"""A text of a reader's own for the small model: what it is cut into, what completes it, what of it is unknown, and how
the next word is chosen."""

import re
from urllib.parse import urljoin

import numpy as np
import pytest
from chromium import accessibility, overflow, until
from serving import own_assets

from macros.catalogue import capitals
from macros.catalogue.checkpoints import checkpoint
from macros.engine.errors import Problem
from macros.engine.forward import logits

pytestmark = pytest.mark.browser

FIELD = "Your own sentence"

CUT = """async ([assets, texts]) => {
  const { Vocabulary } = await import(new URL("tools/capitals/vocabulary.mjs", assets))
  const words = new Vocabulary(await (await fetch(new URL("capitals/tokenizer.json", assets))).json())
  return texts.map(text => words.cut(text).map(piece => piece.id ?? null))
}"""

CANDIDATES = """async ([assets, scores, how]) => {
  const { candidates, drawn } = await import(new URL("tools/capitals/candidates.mjs", assets))
  const all = candidates(scores, how)
  return [all, [0, 0.5, 0.999999].map(chance => drawn(all, chance))]
}"""


@pytest.fixture
def choose(open_page, site):
    return lambda asked="", **options: open_page(urljoin(site, f"real-numbers/choose/{asked}"), **options)


@pytest.fixture
def assets(site, site_folder):
    return urljoin(site, f"{own_assets(site_folder).name}/")


def said(page):
    return " ".join(page.locator(".ep-answer").inner_text().split())


def test_texts_are_cut_as_in_python(choose, assets):
    words = checkpoint("capitals").tokenizer
    texts = [s.prompt(facts) for s in capitals.sentences() for facts in capitals.countries()]
    texts += ["New Zealand New Delhi", "Panama City, Panama.", "the UnitedStates", "São Tomé and Príncipe", "is.is"]

    def ids(text):
        try:
            return words.encode(text)
        except Problem:
            return None

    there = choose().evaluate(CUT, [assets, texts])
    assert [None if None in cut else cut for cut in there] == [ids(text) for text in texts]


def test_temperature_top_k_and_top_p_leave_what_they_say(choose, assets):
    """Against NumPy, and at the edges: one word, all of them, the last of those that reach top-p."""
    page, scores = choose(), [2.0, 0.5, 1.0, -3.0, 1.5]

    def left(temperature=1, top_k=5, top_p=1):
        how = {"temperature": temperature, "topK": top_k, "topP": top_p}
        return page.evaluate(CANDIDATES, [assets, scores, how])

    shares = np.exp(np.array(scores) / 2)
    shares /= shares.sum()
    all_, drawn = left(temperature=2)
    assert [one["id"] for one in all_] == [0, 4, 2, 1, 3] and drawn == [0, 4, 3]
    assert np.allclose([one["share"] for one in all_], shares[[0, 4, 2, 1, 3]])
    assert np.allclose([one["left"] for one in all_], shares[[0, 4, 2, 1, 3]])
    all_, drawn = left(top_k=3, top_p=0.7)
    assert [one["by"] for one in all_] == ["", "", "top-p", "top-k", "top-k"] and drawn == [0, 0, 4]
    assert np.isclose(sum(one["left"] for one in all_), 1)
    assert [one["by"] for one in left(top_k=1)[0]] == ["", *["top-k"] * 4]


def test_a_sentence_of_ones_own(choose):
    """Completed while it is typed, by arrow keys and Enter; each number follows at once, and the address keeps it."""
    page = choose()
    field, note = page.get_by_label(FIELD), page.locator("#ep-own-text")
    field.click()
    field.press_sequentially("Tokyo is the capital of ja")
    field.fill("Tokyo is the capital of ja")
    options = page.locator("#ep-completions [role=option]")
    options.first.wait_for()
    assert options.all_inner_texts()[0] == "Japan" and field.get_attribute("aria-invalid") == "false"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('.ep-answer').textContent.startsWith('Tokyo is the capital of Japan')")
    assert field.input_value() == "Tokyo is the capital of Japan " and not options.count()
    heads = page.get_by_role("group", name=re.compile("Attention weights, layer"))
    assert heads.get_by_role("columnheader").all_inner_texts()[-2:] == ["of", "Japan"]
    until(
        page, "location.search.endsWith('Japan+')"
    )  # a moment later: browsers allow an address to change only so often
    again = choose(page.url[page.url.index("?") :])
    again.get_by_text("Most likely next words").wait_for()
    assert said(again) == said(page) and again.get_by_label(FIELD).input_value() == "Tokyo is the capital of Japan"
    field.fill("Tokyo is the captial of")
    page.get_by_text("“captial” is unknown").wait_for()
    assert "Did you mean “capital”?" in note.inner_text() and field.get_attribute("aria-invalid") == "true"
    assert said(page) == "Tokyo is the …" and page.get_by_role("button", name="Next word").is_disabled()
    field.fill('<img src=x onerror="alert(1)">')
    page.get_by_text("“<” is unknown").wait_for()
    assert said(page) == "Write a word that the model knows."
    page.locator("select[name=country]").select_option("Peru")
    until(page, "document.querySelector('.ep-answer').textContent.startsWith('The capital of Peru is')")
    assert field.input_value() == "The capital of Peru is" and "text=" not in page.url


def test_the_probabilities_are_those_of_python(choose):
    small = checkpoint("capitals")
    ids = small.tokenizer.encode("Lima is the currency of")
    scores, _ = logits(small.model.architecture, small.model.config, small.weights(), ids, last=True)
    best = np.argsort(-scores[0], kind="stable")[:3]
    page = choose("?text=Lima+is+the+currency+of&top_k=2")
    rows = page.get_by_role("group", name=re.compile("Most likely next words")).get_by_role("row")
    rows.nth(8).wait_for()
    for row, id in zip(rows.all_inner_texts()[1:], best, strict=False):
        word, score = row.split("\t")[:2]
        assert word.strip() == small.tokenizer.token(int(id))
        assert float(score.replace("−", "-")) == pytest.approx(float(scores[0, id]), abs=0.0051)
    assert "cut by top-k" in rows.nth(3).inner_text() and "cut" not in rows.nth(2).inner_text()
    page.get_by_role("button", name="Draw a word").click()
    until(page, "new URL(location).searchParams.get('added')")
    drawn = page.evaluate("new URL(location).searchParams.get('added')")
    assert drawn in {small.tokenizer.token(int(id)) for id in best[:2]}


def test_an_own_sentence_on_a_phone_and_for_everybody(choose):
    page = choose("?text=Lima+is+th&top_p=0.5", viewport={"width": 390, "height": 844})
    page.get_by_text("“th” is unknown").wait_for()
    assert not overflow(page) and not accessibility(page, "light", "dark")
    page.get_by_label(FIELD).fill("Lima is th")
    page.locator("#ep-completions [role=option]").first.wait_for()
    assert not overflow(page) and not accessibility(page)
