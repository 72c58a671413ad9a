"""The small model in a browser: its forward pass is Python's, a reader chooses and goes on, steps through a walk, and
nothing of it is heavy."""

import gzip
import re
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

import numpy as np
import pytest
from chromium import accessibility, ignored, moving, overflow, until
from reference import close
from serving import own_assets

from macros.catalogue import capitals
from macros.catalogue.checkpoints import checkpoint
from macros.engine.forward import logits
from macros.views.guide import real_numbers

pytestmark = pytest.mark.browser

MOST_OF_SCRIPT, MOST_OF_PAGE = 150_000, 250_000  # bytes, compressed
PAGES = ("step-by-step/", "why/", "model/")
OF_CHOICE = ("answer", "candidates", "form", "numbers", "rules")

COMPUTED = """async ([assets, texts]) => {
  const { smallModel } = await import(new URL("tools/capitals/small.mjs", assets))
  const { session } = await smallModel()
  return texts.map(ids => ids.map((_, i) => {
    session.run(ids.slice(0, i + 1))
    return session.scores
  }))
}"""


@pytest.fixture
def choose(open_page, site):
    """Open the choice: `choose("?country=Peru")`."""
    return lambda asked="", **options: open_page(urljoin(site, f"real-numbers/step-by-step/{asked}"), **options)


def text(page):
    return " ".join(page.locator(".ep-answer").inner_text().split())


def test_the_browser_computes_what_python_does(choose, site, site_folder):
    small, page = checkpoint("capitals"), choose()
    sentences, countries = capitals.sentences(), capitals.countries()
    texts = [small.tokenizer.encode(s.prompt(countries[13 * i + 5])) for i, s in enumerate(sentences)]
    assets = urljoin(site, f"{own_assets(site_folder).name}/")
    computed = page.evaluate(COMPUTED, [assets, texts])
    for ids, scores in zip(texts, computed, strict=True):
        ours, _ = logits(small.model.architecture, small.model.config, small.weights(), ids)
        close(np.array(scores), ours)


def test_a_reader_chooses_and_goes_on(choose):
    """The weights are loaded by the first thing that a reader does; without a script one example stands complete."""
    page = choose(java_script_enabled=False)
    assert all(page.get_by_role("group", name=name).count() for name in ("After “The capital", "Softmax"))
    asked = []
    page = choose()
    page.on("request", lambda request: asked.append(request.url.rsplit("/", 1)[-1]))
    page.locator("select[name=country]").select_option("Japan")
    page.get_by_text("Most likely next words").wait_for()
    assert "model.safetensors" in asked and text(page) == "The capital of Japan is …"
    page.get_by_role("button", name="Next word").click()
    page.get_by_text("Tokyo", exact=True).first.wait_for()
    cache = page.get_by_role("group", name=re.compile("KV cache"))
    assert text(page) == "The capital of Japan is Tokyo …" and cache.get_by_role("row").count() == 1 + 6
    page.get_by_label("Temperature").fill("3")
    page.get_by_text("at temperature 3").wait_for()
    again = choose(page.url[page.url.index("?") :])
    again.get_by_text("at temperature 3").wait_for()
    assert text(again) == text(page)
    page.get_by_role("button", name="Remove last word").click()
    page.get_by_role("rowheader", name="Tokyo").first.wait_for()
    assert text(page) == "The capital of Japan is …"
    page.go_back()
    cache.get_by_role("row").nth(6).wait_for()
    assert text(page) == "The capital of Japan is Tokyo …"


def test_what_an_address_says_and_cannot_be_is_said(choose):
    page = choose("?country=Atlantis&temperature=1e-300&added=zzz&layer=1")
    said = ignored(page)
    assert all(part in said for part in ('country = "Atlantis"', "from 0.1 to 3", 'added = "zzz"'))
    assert text(page) == "The capital of France is …" and page.locator("select[name=layer]").input_value() == "1"


def test_on_a_phone_and_for_everybody(choose):
    page = choose("?country=Peru&sentence=9", viewport={"width": 390, "height": 844})
    page.get_by_text("Most likely next words").wait_for()
    assert not overflow(page) and not accessibility(page)
    assert not moving(page)


def test_one_step_at_a_time(open_page, site):
    """By button, by key and by the address, the box of each step lit; and back to the whole walk."""
    page = open_page(urljoin(site, "real-numbers/step-by-step/"), viewport={"width": 1280, "height": 800})
    panel, title = page.locator(".ep-stepper"), page.locator(".ep-stepper .ep-what strong")
    panel.get_by_text("Step 1 of ").wait_for()
    assert panel.evaluate("e => e.getBoundingClientRect().bottom") <= 800
    while title.inner_text() != "Softmax":
        page.keyboard.press("ArrowRight")
    assert "Softmax" in panel.locator(".node.lit").text_content()
    assert panel.get_by_role("group", name="Softmax").is_visible()
    assert not page.locator("ol.ep-walk").is_visible()
    number = re.search(r"step=(\d+)", page.url)[1]
    assert panel.get_by_text(f"Step {number} of ").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("ol.ep-walk").is_visible() and "step=" not in page.url
    page.get_by_role("button", name="One step at a time").click()
    assert panel.get_by_text("Step 1 of ").is_visible()


def test_each_step_lights_a_box_and_draws_to_its_scale(open_page, site):
    """Of all steps none is without a box; what only rearranges has that before it; what is empty is not drawn."""
    page = open_page(urljoin(site, "real-numbers/step-by-step/"))
    panel = page.locator(".ep-stepper")
    lit, n = {}, int(panel.locator(".ep-stepper-place").inner_text().split(" of ")[1])
    for step in range(1, n + 1):
        title = panel.locator(".ep-what strong").first.inner_text()
        boxes = panel.locator(".node.lit").evaluate_all("all => all.map(box => box.ariaLabel ?? box.textContent)")
        assert boxes, (step, title)
        lit.setdefault(title, boxes[0])
        if title == "Append to the KV cache (k)":
            drawn = panel.locator(".ep-stepper-scale")
            assert drawn.locator("svg").count() == 2 and "holds nothing: [0, 4, 12]" in drawn.inner_text()
        panel.press("ArrowRight")
    assert "keys" in lit["Append to the KV cache (k)"] and "values" in lit["Append to the KV cache (v)"]
    assert lit["Split into heads (q)"] == lit["Fused QKV projection"]
    assert lit["Token embedding"] and lit["LM head (unembedding)"]


def steps(walk):
    """The title, the shapes and the table of each step of a walk, as they read."""

    def said(html):
        return unescape(re.sub("<.*?>", "", html)).strip()

    for step in re.split('<li class="ep-step"', walk)[1:]:
        rows = re.findall("<tr>(.*?)</tr>", step.partition("<tbody>")[2].partition("</tbody>")[0])
        shapes = re.findall(r"&#91;([\d, ]+)&#93;", step.partition("ep-numbers")[2].partition("</div>")[0])
        yield (
            said(step.partition('<strong class="ep-name">')[2].partition("</strong>")[0]),
            [f"[{shape}]" for shape in shapes],
            [[said(cell) for cell in re.findall("<t[hd].*?>(.*?)</t[hd]>", row)] for row in rows],
        )


def test_the_steps_are_those_of_the_readers_sentence(choose):
    """Of another length, and in another head: each number and shape is Python's. What is pressed answers there."""
    sentence, head = "People in Japan pay with the", 3
    page = choose(f"?text={sentence.replace(' ', '+')}&head={head}&layer=0")
    page.get_by_text("Most likely next words").wait_for()
    panel = page.locator(".ep-stepper")
    for title, shapes, rows in steps(str(real_numbers.number_walk(sentence, head=head))):
        assert panel.locator(".ep-what strong").first.inner_text() == title
        assert panel.locator(".ep-numbers .ep-shape").all_inner_texts() == shapes, title
        shown = panel.locator(".ep-matrix tbody tr").evaluate_all(
            "all => all.map(row => [...row.cells].map(cell => cell.textContent.trim()))"
        )
        hidden = [["–" if cell == "−∞" else cell for cell in row] for row in rows]
        assert shown == (hidden if len(shown) > 1 else hidden[-1:]), title
        panel.press("ArrowRight")
    panel.press("Home")
    panel.locator("td[data-place]").nth(2).click()
    origin = panel.get_by_role("region", name="What this number is made of")
    origin.get_by_text("A trained number").wait_for()
    until(page, "document.activeElement.className.startsWith('ep-origin')")
    assert "step=1" in page.url and "number=token" in page.url
    page.keyboard.press("Escape")
    origin.wait_for(state="detached")
    assert panel.is_visible() and page.evaluate("document.activeElement.dataset.place").startswith("token/0/2")


def test_an_old_address_leads_on_with_its_choices(open_page, site):
    page = open_page(urljoin(site, "real-numbers/choose/?country=Peru#choose-a-country"))
    page.get_by_text("Most likely next words").wait_for()
    assert page.url.endswith("real-numbers/step-by-step/?country=Peru#choose-a-country")
    assert text(page) == "The capital of Peru is …"
    page = open_page(urljoin(site, "real-numbers/"), java_script_enabled=False)
    page.get_by_role("heading", name="One score by hand").wait_for()


def test_every_model_can_be_stepped_through(open_page, site):
    page = open_page(urljoin(site, "models/gpt/gpt2/?step=5"), viewport={"width": 390, "height": 844})
    panel = page.locator(".ep-stepper")
    panel.locator(".node.lit").wait_for()
    assert panel.locator(".node.lit").count() == 1 and not overflow(page)
    assert panel.locator(".ep-stepper-scale svg").count() == 3
    panel.get_by_role("button", name="Next").click()
    assert "step=6" in page.url and not accessibility(page)


def test_the_pages_are_light(site_folder):
    """A page with its styles, its fonts and its scripts; and the script of the choice by itself."""
    folder, of_all = Path(site_folder), []
    page = (folder / "real-numbers/why/index.html").read_text("utf-8")
    for address in re.findall(r'(?:<link rel="stylesheet" href|<script [^>]*src)="([^"]+)"', page):
        of_all.append((folder / "real-numbers/why" / address.partition("?")[0]).read_bytes())
    together = sum(len(gzip.compress(file)) for file in of_all)
    fonts = (own_assets(folder) / "vendor/source-sans-3-latin-wght-normal.woff2").stat().st_size
    for name in PAGES:
        html = gzip.compress((folder / "real-numbers" / name / "index.html").read_bytes())
        assert len(html) + together + fonts <= MOST_OF_PAGE, (name, len(html), together, fonts)
    scripts = [
        own_assets(folder) / name
        for name in ("tools/capitals.mjs", *(f"tools/capitals/{part}.mjs" for part in OF_CHOICE), "tools/view.mjs")
    ]
    data = [own_assets(folder) / "capitals" / name for name in ("countries.csv", "sentences.txt")]
    assert sum(path.stat().st_size for path in (*scripts, *data)) <= MOST_OF_SCRIPT
