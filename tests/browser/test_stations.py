"""The stations of the guide: a static figure, until a reader tries a sentence of their own."""

from urllib.parse import urljoin

import numpy as np
import pytest
from conftest import accessibility, moving, overflow

from macros.catalogue.checkpoints import checkpoint
from macros.engine.forward import logits

pytestmark = pytest.mark.browser

TRY = "Try a sentence of your own"


def rows(place):
    return [row.split("\t") for row in place.get_by_role("row").all_inner_texts()[1:]]


def test_a_station_takes_a_sentence_of_ones_own(open_page, site):
    """The next word of another sentence is Python's; nothing of the model is loaded before."""
    asked = []
    page = open_page(
        urljoin(site, "what-happens/final-vector-to-token/"),
        before=lambda page: page.on("request", lambda request: asked.append(request.url)),
        viewport={"width": 390, "height": 844},
    )
    place = page.locator("[data-station=next]")
    place.get_by_role("button", name=TRY).wait_for()
    assert "Paris" in place.get_by_role("row").nth(1).inner_text()
    static = place.get_by_role("link").evaluate_all("all => all.map(a => a.href)")
    assert len(static) == 2 * 5 and "real-numbers/choose/?number=logit/" in static[0]
    assert not [url for url in asked if "safetensors" in url or "/engine/" in url]
    place.get_by_role("button", name=TRY).click()
    field = place.get_by_label("Sentence")
    field.fill("The capital of Japan is")
    place.get_by_text("Tokyo").wait_for()
    small = checkpoint("capitals")
    ids = small.tokenizer.encode("The capital of Japan is")
    scores = logits(small.model.architecture, small.model.config, small.weights(), ids, last=True)[0][0]
    for (word, logit, *_), id in zip(rows(place), np.argsort(-scores, kind="stable"), strict=False):
        assert word == small.tokenizer.token(int(id))
        assert float(logit.replace("−", "-")) == pytest.approx(float(scores[id]), abs=0.0051)
    link = place.get_by_role("link").first.get_attribute("href")
    assert link.endswith(f"choose/?text=The+capital+of+Japan+is&temperature=1&number=logit%2F{np.argmax(scores)}")
    field.fill("The capital of Jupiter is")
    place.get_by_text("“Jupiter” is not one of the").wait_for()
    assert not overflow(page) and not accessibility(page)
    assert not moving(page)


def test_a_word_has_its_row_of_the_table(open_page, site):
    """The row of a word that a reader types is the file's."""
    page = open_page(urljoin(site, "what-happens/embeddings/"))
    place = page.locator("[data-station=embedding]")
    assert "France" in place.get_by_role("row").nth(4).inner_text()
    place.get_by_role("button", name="Look up words of your own").click()
    place.get_by_label("Sentence").fill("Tokyo")
    place.get_by_role("rowheader", name="Tokyo").wait_for()
    small = checkpoint("capitals")
    (id,) = small.tokenizer.encode("Tokyo")
    row = np.array(small.weights().tensors["transformer.wte.weight"])[id]
    header, *cells = place.get_by_role("row").nth(1).inner_text().split("\t")
    assert header.replace("\xa0", " ") == f"Tokyo, row {id}"
    assert [float(x.replace("−", "-")) for x in cells] == pytest.approx(row.tolist(), abs=0.0051)
    place.locator("[data-place='token/0/2']").press("Enter")
    panel = page.get_by_role("region", name="What this number is made of")
    panel.get_by_text(f"transformer.wte.weight, {id}, 2").wait_for()
    assert panel.locator("output[data-value]").inner_text()[:4] == cells[2][:4]


def test_rope_turns_by_the_distance(open_page, site):
    """Both moved by the same amount, the score stays."""
    page = open_page(urljoin(site, "what-happens/attention-deep-dive/"))
    place = page.locator("[data-station=rope]")
    place.get_by_role("button", name="Turn them yourself").click()
    score = place.get_by_role("status")
    for query, key in (7, 2), (12, 7):
        place.get_by_label("Position of the query").fill(str(query))
        place.get_by_label("Position of the key").fill(str(key))
        assert f"Their score: {np.cos(5 * 0.25):.2f}, the cosine of {5 * 0.25:.2f}" in score.inner_text()
